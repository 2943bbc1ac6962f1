package token

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
)

// none is the rank of a pair of tokens that do not merge.
const none = 1<<32 - 1

// A slot of the hash table is a 14-bit tag taken from the hash, above an 18-bit id plus one. Zero is an empty slot.
const (
	idBits    = 18
	idMask    = 1<<idBits - 1
	tagShift  = 64 - (32 - idBits) // the tag is the top of the hash, the index its bottom
	maxTokens = idMask             // o200k_base has 199,998
)

// A vocab maps the bytes of a token to its id and back. The id is also the rank of the merge that makes the token.
//
// All tokens lie end to end in one string, found through an open-addressed table of four bytes a slot. A Go map from string
// to int takes twice the memory. Most look-ups are of pairs that do not merge, and the tag in the slot turns those away without
// touching the text.
type vocab struct {
	text    string   // every token, in id order
	off     []uint32 // token id is text[off[id]:off[id+1]]
	slots   []uint32
	mask    uint64
	seed    maphash.Seed    // of this process, so that no input can be made to collide
	single  [256]uint32     // ids of the one-byte tokens
	double  [1 << 16]uint32 // ids of the two-byte tokens, by first byte then second, or none: the start of every merge
	longest int             // length of the longest token in bytes
}

// parseVocab reads a tiktoken file: on each line a token in base64, a space and its id, which counts from 0. An error names
// the line. Every single byte must be a token, or some text could not be encoded.
func parseVocab(data []byte) (*vocab, error) {
	lines := bytes.Count(data, []byte{'\n'}) + 1
	if lines > maxTokens {
		return nil, fmt.Errorf("%d lines are more than the %d tokens a vocabulary may have", lines, maxTokens)
	}
	text := make([]byte, 0, len(data)/2)
	off := make([]uint32, 1, lines+1)
	for n := 1; len(data) > 0; n++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		code, id, ok := bytes.Cut(line, []byte{' '})
		if i, err := strconv.Atoi(string(id)); !ok || err != nil || i != n-1 {
			return nil, fmt.Errorf("line %d: want a token in base64, a space and the id %d", n, n-1)
		}
		var err error
		if text, err = base64.StdEncoding.AppendDecode(text, code); err != nil || len(text) == int(off[n-1]) {
			return nil, fmt.Errorf("line %d: the token is empty or not base64", n)
		}
		off = append(off, uint32(len(text)))
	}
	v := &vocab{text: string(text), off: slices.Clip(off), seed: maphash.MakeSeed()}
	return v, v.index()
}

// index fills the tables from text and off.
func (v *vocab) index() error {
	size := 1
	for size < 2*v.len() {
		size *= 2
	}
	v.slots, v.mask = make([]uint32, size), uint64(size-1)
	for i := range v.single {
		v.single[i] = none
	}
	for i := range v.double {
		v.double[i] = none
	}
	for id := range uint32(v.len()) {
		t := v.token(id)
		if !v.insert(t, id) {
			return fmt.Errorf("line %d: the token was on an earlier line", id+1)
		}
		v.longest = max(v.longest, len(t))
		switch len(t) {
		case 1:
			v.single[t[0]] = id
		case 2:
			v.double[uint(t[0])<<8|uint(t[1])] = id
		}
	}
	if b := slices.Index(v.single[:], none); b >= 0 {
		return fmt.Errorf("no token stands for the byte 0x%02x alone", b)
	}
	return nil
}

// insert enters a token into the table and reports whether it was new.
func (v *vocab) insert(t string, id uint32) bool {
	h := v.hash(t)
	if _, ok := v.find(t, h); ok {
		return false
	}
	i := h & v.mask
	for v.slots[i] != 0 {
		i = (i + 1) & v.mask
	}
	v.slots[i] = uint32(h>>tagShift)<<idBits | (id + 1)
	return true
}

// len is the number of tokens; ids run below it.
func (v *vocab) len() int { return len(v.off) - 1 }

// token is the bytes of an id below len.
func (v *vocab) token(id uint32) string { return v.text[v.off[id]:v.off[id+1]] }

func (v *vocab) hash(s string) uint64 { return maphash.String(v.seed, s) }

// find gives the id of s, whose hash is h.
func (v *vocab) find(s string, h uint64) (id uint32, ok bool) {
	tag := uint32(h >> tagShift)
	for i := h & v.mask; ; i = (i + 1) & v.mask {
		slot := v.slots[i]
		if slot == 0 {
			return none, false
		}
		if slot>>idBits == tag {
			if id := slot&idMask - 1; v.token(id) == s {
				return id, true
			}
		}
	}
}

// rank is the id of s, or none.
func (v *vocab) rank(s string) uint32 {
	switch {
	case len(s) == 2:
		return v.double[uint(s[0])<<8|uint(s[1])]
	case len(s) > v.longest:
		return none
	}
	id, _ := v.find(s, v.hash(s))
	return id
}
