package block

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
)

// An ID is the keyed hash of a block and of everything before it, or the root of a chain. Two different chains share one with
// probability n²/2^129 among n blocks: below 1e-18 for ten billion.
type ID [16]byte

// The first field of each message, which keeps the kinds of ids apart.
const (
	tagRoot  = "root"
	tagBlock = "blk"
)

// A Hasher computes ids under one key, tokenizer and block size. It is not safe for concurrent use; each goroutine takes a
// Clone. HMAC-SHA256 was chosen for being in the standard library: BLAKE3 and SipHash are as good here, since the ids are
// replaced by dense numbers, and not enough faster to matter beside the tokenising.
type Hasher struct {
	tokenizer string
	size      int
	state     func() *state // behind a function, since package fmt prints what lies behind a pointer, under some verbs
}

// A state is what printing a Hasher must not show: the key, also in the form of HMAC's inner states, and the last tokens.
type state struct {
	key  Key
	mac  hash.Hash
	msg  []byte // scratch, beginning with the fields that all block messages share
	head int    // length of those
	sum  [sha256.Size]byte
}

// NewHasher makes a hasher for blocks of blockSize tokens, which must be positive. Tokenizer is the name of what made the
// tokens, since equal numbers mean different text under different vocabularies.
func NewHasher(key Key, tokenizer string, blockSize int) (*Hasher, error) {
	if blockSize < 1 || blockSize > math.MaxInt32 {
		return nil, fmt.Errorf("block size %d: want 1 to %d tokens", blockSize, math.MaxInt32)
	}
	return newHasher(key, tokenizer, blockSize), nil
}

func newHasher(key Key, tokenizer string, blockSize int) *Hasher {
	s := &state{key: key, mac: hmac.New(sha256.New, key[:])}
	h := &Hasher{tokenizer: tokenizer, size: blockSize, state: func() *state { return s }}
	s.msg = h.start(nil, tagBlock)
	s.head = len(s.msg)
	return h
}

// Clone gives another hasher of the same ids, for another goroutine. It costs about a microsecond.
func (h *Hasher) Clone() *Hasher { return newHasher(h.state().key, h.tokenizer, h.size) }

// start begins a message: the tag, the tokenizer and the block size. Every field of variable length goes behind its length
// (four bytes rather than eight, which at 16 tokens spares one of three SHA-256 blocks), so that no two lists of fields make
// the same message.
func (h *Hasher) start(msg []byte, tag string) []byte {
	msg = appendField(msg, tag)
	msg = appendField(msg, h.tokenizer)
	return binary.LittleEndian.AppendUint32(msg, uint32(h.size))
}

func appendField(msg []byte, s string) []byte {
	msg = binary.LittleEndian.AppendUint32(msg, uint32(len(s)))
	return append(msg, s...)
}

// Root is where the chain starts within one cache domain, such as a model, an adapter and a salt: equal tokens have different
// ids in two domains. The strings are told apart by their number and order; no string and one empty string are two domains.
func (h *Hasher) Root(domain ...string) ID {
	msg := h.start(nil, tagRoot)
	for _, s := range domain {
		msg = appendField(msg, s)
	}
	return h.state().hash(msg)
}

// next is the id of the block of tokens that follows the block prev. The number of tokens is hashed, so a partial block
// differs from every full one.
func (h *Hasher) next(prev ID, tokens []uint32) ID {
	s := h.state()
	msg := append(s.msg[:s.head], prev[:]...)
	msg = binary.LittleEndian.AppendUint32(msg, uint32(len(tokens)))
	for _, t := range tokens {
		msg = binary.LittleEndian.AppendUint32(msg, t)
	}
	s.msg = msg
	return s.hash(msg)
}

func (s *state) hash(msg []byte) ID {
	s.mac.Reset()
	s.mac.Write(msg) // a hash.Hash never returns an error
	return ID(s.mac.Sum(s.sum[:0])[:len(ID{})])
}
