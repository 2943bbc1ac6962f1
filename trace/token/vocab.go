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

// A slot of the hash table is an 11-bit tag taken from the hash, above a 21-bit id plus one. Zero is an empty slot.
const (
	idBits    = 21
	idMask    = 1<<idBits - 1
	tagShift  = 64 - (32 - idBits) // the tag is the top of the hash, the index its bottom
	maxTokens = 1 << 20            // o200k_base has 199,998, Gemma 3 has 262,145
)

// A vocab maps the bytes of a token to its id and back. The id is also the rank of the merge that makes the token, unless
// there is a list of merges.
//
// All tokens lie end to end in one string, found through an open-addressed table of four bytes a slot. A Go map from string
// to int takes twice the memory. Most look-ups are of pairs that do not merge, and the tag in the slot turns those away without
// touching the text.
type vocab struct {
	text    string   // every token, in id order
	off     []uint32 // token id is text[off[id]:off[id+1]]; an id that stands for nothing is empty
	slots   []uint32 // the pieces that are one token
	mask    uint64
	seed    maphash.Seed    // of this process, so that no input can be made to collide
	single  [256]uint32     // ids of the one-byte tokens
	double  [1 << 16]uint32 // ranks of the unions of two bytes, by first byte then second, or none: the start of every merge
	longest int             // length of the longest token in bytes
	pairs   *pairs          // the list of merges, or nil
	chars   bool            // pieces start as characters, and only those that are no token as bytes
}

// parseVocab reads a tiktoken file: on each line a token in base64, a space and its id, which counts from 0 and leaves out
// the ids of special tokens. An error names the line. Every single byte must be a token, or some text could not be encoded.
func parseVocab(data []byte, special ...uint32) (*vocab, error) {
	lines := bytes.Count(data, []byte{'\n'}) + 1
	if lines > maxTokens {
		return nil, fmt.Errorf("%d lines are more than the %d tokens a vocabulary may have", lines, maxTokens)
	}
	text := make([]byte, 0, len(data)/2)
	off := make([]uint32, 1, lines+1)
	for n := 1; len(data) > 0; n++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		for slices.Contains(special, uint32(len(off)-1)) {
			off = append(off, uint32(len(text)))
		}
		code, id, ok := bytes.Cut(line, []byte{' '})
		if i, err := strconv.Atoi(string(id)); !ok || err != nil || i != len(off)-1 {
			return nil, fmt.Errorf("line %d: want a token in base64, a space and the id %d", n, len(off)-1)
		}
		before := len(text)
		var err error
		if text, err = base64.StdEncoding.AppendDecode(text, code); err != nil || len(text) == before {
			return nil, fmt.Errorf("line %d: the token is empty or not base64", n)
		}
		off = append(off, uint32(len(text)))
	}
	v := newVocab(string(text), slices.Clip(off))
	return v, v.index()
}

func newVocab(text string, off []uint32) *vocab {
	return &vocab{text: text, off: off, seed: maphash.MakeSeed()}
}

// index fills the tables from text and off.
func (v *vocab) index() error {
	v.clear()
	line := 0
	for id := range uint32(v.len()) {
		t := v.token(id)
		if t == "" {
			continue // a special token
		}
		line++
		if !v.insert(t, id) {
			return fmt.Errorf("line %d: the token was on an earlier line", line)
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

// clear makes the tables, empty.
func (v *vocab) clear() {
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

// union is the rank of the union of two parts, which is the text s, or none.
func (v *vocab) union(left, right uint32, s string) uint32 {
	if v.pairs != nil {
		return v.pairs.rank(left, right)
	}
	return v.rank(s)
}

// made is the id of a union by its rank.
func (v *vocab) made(rank uint32) uint32 {
	if v.pairs != nil {
		return v.pairs.made[rank]
	}
	return rank
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
