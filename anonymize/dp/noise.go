package dp

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math"
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
		n.err = fmt.Errorf("read random numbers: %w", err)
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

// Denominator of the scales that noise is drawn at: a scale is so many 1/1024.
const Denominator = 1 << 10

// maxScale keeps all intermediate products below 2^120.
const maxScale = 1 << 20

// Laplace draws from the discrete Laplace distribution with a scale of
// b/[Denominator]: P(x) is proportional to exp(−|x|·Denominator/b) on the
// integers. Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
// Privacy", 2020, algorithm 2. The scale must be above 0 and at most 2^20.
func (n *Noise) Laplace(b uint64) (int64, error) {
	if b < 1 || b > maxScale*Denominator {
		return 0, fmt.Errorf("a Laplace scale of %d/%d: want above 0 and at most %d", b, Denominator, maxScale)
	}
	return n.laplace(b, Denominator), n.err
}

func (n *Noise) laplace(t, s uint64) int64 {
	one := wide{0, 1}
	for n.err == nil {
		u := n.below(wide{0, t})
		if !n.expSmall(u, wide{0, t}) {
			continue
		}
		x := u.lo
		for n.err == nil && n.expSmall(one, one) {
			x += t
		}
		y, minus := int64(x/s), n.word()&1 == 1
		switch {
		case minus && y == 0: // 0 would be twice as likely
		case minus:
			return -y
		default:
			return y
		}
	}
	return 0
}

// Gaussian draws from the discrete Gaussian distribution with σ² =
// v/[Denominator]: P(x) is proportional to exp(−x²/2σ²) on the integers. It takes
// a Laplace draw of about the same width and keeps it with the ratio of the two
// (algorithm 3 of the same paper). σ² must be above 0 and σ at most 2^20.
func (n *Noise) Gaussian(v uint64) (int64, error) {
	if v < 1 || v > maxScale*maxScale*Denominator {
		return 0, fmt.Errorf("a Gaussian variance of %d/%d: want above 0 and at most %d", v, Denominator,
			maxScale*maxScale)
	}
	t := uint64(math.Sqrt(float64(v)/Denominator)) + 1 // any t is right: it only sets how often a draw is kept
	for n.err == nil {
		y := n.laplace(t, 1)
		size := uint64(max(y, -y))
		if size > 1<<27 { // beyond 100 σ: e^−5000, and the products below would not fit
			continue
		}
		// keep with exp(−(|y| − σ²/t)²/2σ²) = exp(−(|y|·t·D − v)²/(2·v·D·t²))
		a, b := size*t*Denominator, v
		if a < b {
			a, b = b, a
		}
		if n.exp(product(a-b, a-b), product(2*v, Denominator).times(t).times(t)) {
			return y, n.err
		}
	}
	return 0, n.err
}
