package dp

import (
	"fmt"
	"math"
)

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
		return 0, fmt.Errorf("a Gaussian variance of %d/%d: want above 0 and at most %d", v, Denominator, maxScale*maxScale)
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
