package audit

import (
	"testing"
)

// The vector of the SipHash paper, and the first ones of its reference code.
func TestSipHash(t *testing.T) {
	const k0, k1 = 0x0706050403020100, 0x0f0e0d0c0b0a0908
	in := make([]byte, 15)
	for i := range in {
		in[i] = byte(i)
	}
	for n, want := range map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5} {
		if got := sipHash(k0, k1, in[:n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}
