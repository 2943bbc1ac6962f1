package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"reprise/trace/block"
)

// A dictionary holds the ids that somebody outside could compute for texts that
// are known, by every scheme that serving engines and traces are known to use: see
// [dictionary.add].
type dictionary struct {
	ids   map[uint64]string // the scheme
	weak  []block.Key
	plain []string
}

// add adds the ids of all blocks of a sequence of tokens, and of what is left over
// at its end, cut at size: chained to the blocks before, and each by itself. The
// schemes are SHA-256 over little-endian tokens, vLLM's SHA-256 over canonical CBOR
// of (parent, tokens, nothing), xxHash64, SipHash-2-4 with a key of zeros, HMAC-SHA256
// with weak keys, among them none, and this project's own ids under such keys; of
// digests the first and the last 64 bits, in either order of bytes.
func (d *dictionary) add(tokenizer string, size int, tokens []uint32) {
	le := func(parent []byte, part []uint32) []byte {
		b := append([]byte{}, parent...)
		for _, t := range part {
			b = binary.LittleEndian.AppendUint32(b, t)
		}
		return b
	}
	word := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	schemes := []struct {
		name string
		of   func(parent []byte, part []uint32) []byte
	}{
		{"SHA-256", func(p []byte, part []uint32) []byte { return sum256(le(p, part)) }},
		{"xxh64", func(p []byte, part []uint32) []byte { return word(xxhash.Sum64(le(p, part))) }},
		{"SipHash of a zero key", func(p []byte, part []uint32) []byte { return word(sipHash(0, 0, le(p, part))) }},
	}
	for _, key := range d.plain {
		schemes = append(schemes, struct {
			name string
			of   func(parent []byte, part []uint32) []byte
		}{"HMAC of a weak key", func(p []byte, part []uint32) []byte {
			mac := hmac.New(sha256.New, []byte(key))
			mac.Write(le(p, part))
			return mac.Sum(nil)
		}})
	}
	for _, s := range schemes {
		var parent []byte
		for _, part := range cut(tokens, size) {
			parent = s.of(parent, part)
			d.digest(s.name, parent)
			d.digest(s.name, s.of(nil, part))
		}
	}
	// The hashes of vLLM's prefix cache with sha256_cbor, for the parents of a first
	// block that are known: none, zeros, and the hash of a seed such as "0".
	roots := [][]byte{nil, make([]byte, 32), sum256(cborText("0")), sum256(cborText("")), sum256(cborText("42"))}
	for _, parent := range roots {
		for _, part := range cut(tokens, size) {
			parent = sum256(cborBlock(parent, part))
			d.digest("vLLM CBOR SHA-256", parent)
		}
	}
	d.own(tokenizer, size, tokens)
}

func cut(tokens []uint32, size int) (parts [][]uint32) {
	for ; len(tokens) > size; tokens = tokens[size:] {
		parts = append(parts, tokens[:size])
	}
	return append(parts, tokens)
}

func sum256(b []byte) []byte {
	s := sha256.Sum256(b)
	return s[:]
}

// digest adds the words of 64 bits that a digest may be cut to.
func (d *dictionary) digest(scheme string, sum []byte) {
	first, last := sum[:8], sum[len(sum)-8:]
	for _, id := range []uint64{binary.BigEndian.Uint64(first), binary.LittleEndian.Uint64(first),
		binary.BigEndian.Uint64(last), binary.LittleEndian.Uint64(last)} {
		d.ids[id] = scheme
	}
}

// cborBlock is (parent, tokens, null) in canonical CBOR (RFC 8949, section 4.2.1).
func cborBlock(parent []byte, tokens []uint32) []byte {
	b := []byte{0x83}
	if parent == nil {
		b = append(b, 0xf6)
	} else {
		b = append(cborHead(b, 2, uint64(len(parent))), parent...)
	}
	b = cborHead(b, 4, uint64(len(tokens)))
	for _, t := range tokens {
		b = cborHead(b, 0, uint64(t))
	}
	return append(b, 0xf6)
}

func cborText(s string) []byte { return append(cborHead(nil, 3, uint64(len(s))), s...) }

// cborHead appends a major type and its argument in as few bytes as can be.
func cborHead(b []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

// own adds the ids of package block under weak keys, in the domain of no names.
func (d *dictionary) own(tokenizer string, size int, tokens []uint32) {
	for _, key := range d.weak {
		h, err := block.NewHasher(key, tokenizer, size)
		if err != nil {
			return // the size is none
		}
		for _, root := range []block.ID{h.Root("", "", ""), h.Root()} {
			c := h.Cutter(root)
			c.Write(tokens)
			for _, id := range c.Append(nil) {
				d.digest("own ids of a weak key", id[:])
			}
		}
	}
}

// sipHash is SipHash-2-4 with 64 bits of output (Aumasson and Bernstein, 2012).
func sipHash(k0, k1 uint64, p []byte) uint64 {
	v0, v1, v2, v3 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d, k0^0x6c7967656e657261, k1^0x7465646279746573
	round := func() {
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	word := func(m uint64) {
		v3 ^= m
		round()
		round()
		v0 ^= m
	}
	last := uint64(len(p)) << 56
	for ; len(p) >= 8; p = p[8:] {
		word(binary.LittleEndian.Uint64(p))
	}
	for i, c := range p {
		last |= uint64(c) << (8 * i)
	}
	word(last)
	v2 ^= 0xff
	for range 4 {
		round()
	}
	return v0 ^ v1 ^ v2 ^ v3
}
