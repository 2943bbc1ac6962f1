package dp

import (
	"fmt"
	"math"
)

// A Selection keeps the keys of an open set, such as prefix nodes, that so many
// units have that one unit more or less cannot be told. Keys that nobody has are
// never asked, so a key of one unit alone must fail almost always: that is what
// δ pays for.
type Selection struct {
	Scale     uint64 `json:"laplace_scale_1024ths"`
	Threshold int64  `json:"threshold_users"` // noisy counts of units at or above it are kept
}

// NewSelection plans for counts of distinct units in which one unit is in at
// most keys of them: noise of scale keys/ε, and the threshold at which a key with
// one unit passes with a probability of δ/keys at most.
//
// P(1 + noise >= t) = e^(−(t−1)/b) / (1 + e^(−1/b)) for a discrete Laplace of
// scale b.
func NewSelection(b Budget, keys int) (Selection, error) {
	if !(b.Epsilon > 0) || !(b.Delta > 0 && b.Delta < 0.01) || keys < 1 {
		return Selection{}, fmt.Errorf(
			"selecting keys needs epsilon and delta above 0, and at least one key for each unit")
	}
	scale := up(float64(keys) / b.Epsilon)
	if scale > maxScale*Denominator {
		return Selection{}, fmt.Errorf("%d shared prefixes for each unit are too many for this epsilon: raise epsilon",
			keys)
	}
	width := float64(scale) / Denominator
	t := 1 + width*(math.Log(float64(keys)/b.Delta)-math.Log1p(math.Exp(-1/width)))
	return Selection{Scale: scale, Threshold: max(2, int64(math.Ceil(t)))}, nil
}

// Keep reports whether a key that so many units have is kept, and their noisy count. Each
// key may be asked once.
func (s Selection) Keep(n *Noise, units int64) (noisy int64, kept bool, err error) {
	x, err := n.Laplace(s.Scale)
	return units + x, err == nil && units > 0 && units+x >= s.Threshold, err
}
