package block

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math"
)

// An ID is the keyed hash of a block and of everything before it, or the root of a chain. Two different chains share
// one with probability n²/2^129 among n blocks: below 1e-18 for ten billion.
type ID [16]byte

// The first field of each message, which keeps the kinds of ids apart.
const (
	tagRoot  = "root"
	tagBlock = "blk"
)

// A Hasher computes ids under one key, tokenizer and block size. It is not safe for concurrent use; each goroutine
// takes a Clone. HMAC-SHA256 was chosen for being in the standard library: BLAKE3 and SipHash are as good here, since
// the ids are replaced by dense numbers, and not enough faster to matter beside the tokenising.
type Hasher struct {
	tokenizer string
	size      int
	state     func() *state // returned by a function, since package fmt follows pointers under some verbs
}

// A state is what printing a Hasher must not show: the key, also in the form of HMAC's inner states, and the last
// tokens.
type state struct {
	key  Key
	mac  hash.Hash
	msg  []byte // scratch, beginning with the fields that all block messages share
	head int    // length of those
	sum  [sha256.Size]byte
}

// NewHasher makes a hasher for blocks of blockSize tokens, which must be positive. Tokenizer is the name of what made
// the tokens, since equal numbers mean different text under different vocabularies.
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

// start begins a message: the tag, the tokenizer and the block size. Every field of variable length follows its length
// (four bytes rather than eight, which at 16 tokens spares one of three SHA-256 blocks), so that no two lists of fields
// make the same message.
func (h *Hasher) start(msg []byte, tag string) []byte {
	msg = appendField(msg, tag)
	msg = appendField(msg, h.tokenizer)
	return binary.LittleEndian.AppendUint32(msg, uint32(h.size))
}

func appendField(msg []byte, s string) []byte {
	msg = binary.LittleEndian.AppendUint32(msg, uint32(len(s)))
	return append(msg, s...)
}

// Root is where the chain starts within one cache domain, such as a model, an adapter and a salt: equal tokens have
// different ids in two domains. The strings are distinguished by their number and order; no string and one empty string
// are two domains.
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

// A Key is the secret of block ids. In its place package fmt, encoding/json and log/slog print a redaction, except for
// two cases in which fmt calls no method: a key in an unexported field, for which a struct should hold a function that
// returns it, as [Hasher] does; and the verbs %p and %w, wrong for it, which go vet refuses.
type Key [32]byte

const redacted = "block.Key(redacted)"

// NewKey draws a key from the operating system's generator.
func NewKey() (Key, error) {
	var k Key
	if _, err := io.ReadFull(rand.Reader, k[:]); err != nil {
		return Key{}, fmt.Errorf("draw a key for block ids: %w", err)
	}
	return k, nil
}

// String implements [fmt.Stringer].
func (Key) String() string { return redacted }

// GoString implements [fmt.GoStringer].
func (Key) GoString() string { return redacted }

// Format implements [fmt.Formatter], so that no verb prints the key, %x and %d included.
func (Key) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// MarshalText implements [encoding.TextMarshaler], which encoding/json and log/slog use.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// A Cutter cuts one token sequence at a time, written in any number of pieces, into blocks. It uses its hasher, so
// cutters of one hasher belong to one goroutine.
type Cutter struct {
	h    *Hasher
	last ID       // of the last full block, or the root
	full []ID     // of all full blocks
	rest []uint32 // tokens of the block that is not full yet
}

// Cutter makes a cutter for a sequence in the domain of root.
func (h *Hasher) Cutter(root ID) *Cutter { return &Cutter{h: h, last: root} }

// Reset forgets the sequence and begins one in the domain of root. The memory is used again.
func (c *Cutter) Reset(root ID) {
	c.last, c.full, c.rest = root, c.full[:0], c.rest[:0]
}

// Write adds tokens to the sequence.
func (c *Cutter) Write(tokens []uint32) {
	if len(c.rest) > 0 {
		n := min(c.h.size-len(c.rest), len(tokens))
		c.rest = append(c.rest, tokens[:n]...)
		tokens = tokens[n:]
		if len(c.rest) < c.h.size {
			return
		}
		c.push(c.rest)
		c.rest = c.rest[:0]
	}
	for len(tokens) >= c.h.size {
		c.push(tokens[:c.h.size])
		tokens = tokens[c.h.size:]
	}
	c.rest = append(c.rest, tokens...)
}

func (c *Cutter) push(tokens []uint32) {
	c.last = c.h.next(c.last, tokens)
	c.full = append(c.full, c.last)
}

// Len is the number of tokens written since the start of the sequence.
func (c *Cutter) Len() int { return len(c.full)*c.h.size + len(c.rest) }

// Append appends the ids of the blocks written so far: those of the full ones and, when tokens are left over, that of
// the partial block they make. Writing may go on afterwards; the partial block then grows, and its id changes.
func (c *Cutter) Append(dst []ID) []ID {
	dst = c.AppendFull(dst)
	if len(c.rest) > 0 {
		dst = append(dst, c.h.next(c.last, c.rest))
	}
	return dst
}

// AppendFull appends the ids of the full blocks written so far.
func (c *Cutter) AppendFull(dst []ID) []ID { return append(dst, c.full...) }
