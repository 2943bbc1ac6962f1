package dp

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// A Noise draws noise. It is not safe for concurrent use.
type Noise struct {
	src *bufio.Reader
	buf [8]byte // of the draw at hand; a local one would be allocated for each
	err error
}

// NewNoise draws from the system's randomness.
func NewNoise() *Noise { return NewNoiseFrom(rand.Reader) }

// NewNoiseFrom draws from src. Whoever knows src can take the noise off again:
// it is there for tests and audits, which must see the same noise twice, and
// nothing that writes a release may call it with anything but crypto/rand.
func NewNoiseFrom(src io.Reader) *Noise { return &Noise{src: bufio.NewReaderSize(src, 1<<12)} }

// Err is the first failure of the source. All draws after it are 0 and must be
// thrown away.
func (n *Noise) Err() error { return n.err }

func (n *Noise) word() uint64 {
	if n.err != nil {
		return 0
	}
	if _, err := io.ReadFull(n.src, n.buf[:]); err != nil {
		n.err = fmt.Errorf("no randomness: %w", err)
		return 0
	}
	return binary.LittleEndian.Uint64(n.buf[:])
}

// A wide is an unsigned number of 128 bits. Products of a sum of squares and a
// common denominator need more than 64, and not more than 120.
type wide struct{ hi, lo uint64 }

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a wide) minus(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{hi, lo}
}

func (a wide) times(k uint64) wide {
	hi, lo := bits.Mul64(a.lo, k)
	return wide{hi + a.hi*k, lo}
}

func product(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

// below is uniform in [0, d), by rejection from the power of two above.
func (n *Noise) below(d wide) wide {
	var mask wide
	switch {
	case d.hi > 0:
		mask = wide{1<<bits.Len64(d.hi) - 1, ^uint64(0)}
	default:
		mask = wide{0, 1<<bits.Len64(d.lo) - 1}
	}
	for n.err == nil {
		var u wide
		if mask.hi > 0 {
			u.hi = n.word() & mask.hi
		}
		u.lo = n.word() & mask.lo
		if u.less(d) {
			return u
		}
	}
	return wide{}
}

// happens is true with probability a/d, for 0 <= a <= d.
func (n *Noise) happens(a, d wide) bool { return n.below(d).less(a) }

// expSmall is true with probability exp(−a/d), for a <= d: the first of a
// series of trials with chances x/1, x/2, x/3… to fail has an odd number with
// that probability (Canonne, Kamath and Steinke 2020, algorithm 1).
func (n *Noise) expSmall(a, d wide) bool {
	for k := uint64(1); n.err == nil; k++ {
		if !n.happens(a, d.times(k)) {
			return k%2 == 1
		}
	}
	return false
}

// exp is true with probability exp(−a/d).
func (n *Noise) exp(a, d wide) bool {
	for !a.less(d) {
		if !n.expSmall(wide{0, 1}, wide{0, 1}) {
			return false
		}
		a = a.minus(d)
	}
	return n.expSmall(a, d)
}
