package audit

import (
	"encoding/binary"
	"math/bits"
)

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
