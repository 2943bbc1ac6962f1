package audit

import (
	"cmp"
	"math"
	"slices"

	"reprise/trace/sample"
)

// A setRisk says how well requests, or sessions, hide among those that look the
// same to somebody who knows a set of columns of them.
type setRisk struct {
	Known    string  `json:"known"`         // the columns
	Of       string  `json:"of"`            // requests or sessions
	N        int64   `json:"n"`             // of these
	Classes  int64   `json:"classes"`       // of those that look the same
	Unique   float64 `json:"unique_share"`  // in a class of their own
	K        int     `json:"k"`             //
	BelowK   float64 `json:"below_k_share"` // in a class of fewer than K
	Smallest int64   `json:"smallest_class"`
	MaxRisk  float64 `json:"max_risk"`     // 1/Smallest
	Average  float64 `json:"average_risk"` // classes/n
	// Sampled is the share of the classes that were counted, drawn by a hash of
	// theirs; 1 for all. Error is then the standard error of Unique.
	Sampled float64 `json:"sampled_share"`
	Error   float64 `json:"unique_share_standard_error"`
}

// A classCounter counts how many times each key comes. With more distinct ones
// than its limit it keeps those whose first bits are 0, half as many each time:
// whole classes, so that what it says about classes is unbiased.
type classCounter struct {
	limit int
	shift uint
	fresh []uint64
	have  []classCount
	spare []classCount
}

type classCount struct {
	key uint64
	n   int64
}

const (
	freshKeys   = 1 << 18
	mostClasses = 4 << 20 // 16 bytes each, twice
)

func newClassCounter(limit int) *classCounter {
	return &classCounter{limit: limit, fresh: make([]uint64, 0, min(freshKeys, limit))}
}

// add counts a key, which must be a good hash.
func (c *classCounter) add(key uint64) {
	if c.kept(key) {
		c.fresh = append(c.fresh, key)
	}
	if len(c.fresh) == cap(c.fresh) {
		c.merge()
	}
}

func (c *classCounter) kept(key uint64) bool { return key>>(64-c.shift) == 0 }

// merge adds what is fresh to what it has.
func (c *classCounter) merge() {
	slices.Sort(c.fresh)
	out, have := c.spare[:0], c.have
	for i := 0; i < len(c.fresh); {
		key, n := c.fresh[i], int64(0)
		for ; i < len(c.fresh) && c.fresh[i] == key; i++ {
			n++
		}
		at, found := slices.BinarySearchFunc(have, key, func(h classCount, key uint64) int {
			return cmp.Compare(h.key, key)
		})
		out = append(out, have[:at]...)
		have = have[at:]
		if found {
			n += have[0].n
			have = have[1:]
		}
		out = append(out, classCount{key, n})
	}
	out = append(out, have...)
	c.fresh, c.have, c.spare = c.fresh[:0], out, c.have
	for len(c.have) > c.limit {
		c.shift++
		c.have = slices.DeleteFunc(c.have, func(h classCount) bool { return !c.kept(h.key) })
	}
}

// risk is what the classes say.
func (c *classCounter) risk(known, of string, k int) setRisk {
	c.merge()
	r := setRisk{Known: known, Of: of, K: k, Classes: int64(len(c.have)), Sampled: math.Exp2(-float64(c.shift)),
		Smallest: math.MaxInt64}
	var alone, few int64
	for _, h := range c.have {
		r.N += h.n
		r.Smallest = min(r.Smallest, h.n)
		if h.n == 1 {
			alone++
		}
		if h.n < int64(k) {
			few += h.n
		}
	}
	if r.N == 0 {
		r.Smallest = 0
		return r
	}
	n := float64(r.N)
	r.Unique, r.BelowK, r.Average, r.MaxRisk = float64(alone)/n, float64(few)/n, float64(r.Classes)/n,
		1/float64(r.Smallest)
	if c.shift > 0 {
		// The error of a ratio of sums over classes (Cochran, Sampling Techniques).
		squares := 0.0
		for _, h := range c.have {
			d := -r.Unique * float64(h.n)
			if h.n == 1 {
				d++
			}
			squares += d * d
		}
		r.Error = math.Sqrt(squares) / n
		r.N, r.Classes = int64(n/r.Sampled), int64(float64(r.Classes)/r.Sampled)
	}
	return r
}

// mixKey is a step of a hash over the parts of a key: h of those before, and x.
func mixKey(h, x uint64) uint64 { return sample.Mix64((h ^ x) + sample.Golden) }
