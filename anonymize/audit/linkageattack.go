package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/sample"
)

// An attackResult links rows of a synthetic trace to real ones: each to the nearest, if
// that is near enough. It can succeed by chance, since people do alike; so the
// same is tried with real rows that were held out, of other people than those that
// are linked to. A synthesiser that keeps to the population does not come nearer
// to real rows than these do.
type attackResult struct {
	Rows int `json:"rows"` // of each side, for the figures
	// in octaves; chosen on other rows, where the synthetic ones were most surely better
	Distance  float64     `json:"distance"`
	Synthetic attackScore `json:"synthetic"`
	HeldOut   attackScore `json:"held_out"`
}

// An attackScore is how well rows can be linked to real ones within a distance.
type attackScore struct {
	Precision float64 `json:"precision"` // of the rows: how many have a real one so near
	Recall    float64 `json:"recall"`    // of the real ones: how many have a row so near
	F1        float64 `json:"f1"`
	Low       float64 `json:"f1_low"` // of its interval of 95 %, of the intervals of both
	High      float64 `json:"f1_high"`
}

// String is a line for people.
func (a attackResult) String() string {
	side := func(s attackScore) string { return fmt.Sprintf("precision %.3f, recall %.3f", s.Precision, s.Recall) }
	return fmt.Sprintf("%d rows a side; synthetic %s; held out %s", a.Rows, side(a.Synthetic), side(a.HeldOut))
}

// Beaten reports whether the attack does better on the synthetic trace than on
// what was held out, beyond doubt.
func (a *attackResult) Beaten() bool { return a.Synthetic.Low > a.HeldOut.High }

const (
	attackRows  = 40_000 // of each side; half of them choose the distance
	attackLeast = 200
)

// A place is where a row is: by its lengths, in octaves.
type place struct{ x, y float64 }

func placeOf(in, out int32) place {
	return place{math.Log2(1 + float64(max(in, 0))), math.Log2(1 + float64(max(out, 0)))}
}

// linkAttack takes places of the synthetic trace, of the real rows that are linked
// to, and of those held out, as many of each.
func linkAttack(synthetic, real, held []place) attackResult {
	half := len(real) / 2
	s, h := nearests(synthetic[:half], real[:half]), nearests(held[:half], real[:half])
	best, distance := math.Inf(-1), 0.0
	try := []float64{0} // and where the synthetic rows are
	for i := range 200 {
		try = append(try, s.rows[i*len(s.rows)/200])
	}
	for _, d := range slices.Compact(try) {
		if gain := s.score(d).Low - h.score(d).High; gain > best { // where it is surest
			best, distance = gain, d
		}
	}
	s, h = nearests(synthetic[half:], real[half:]), nearests(held[half:], real[half:])
	return attackResult{Rows: len(real) - half, Distance: distance, Synthetic: s.score(distance),
		HeldOut: h.score(distance)}
}

// Both ways: how far each row is from the nearest real one, and each real one from
// the nearest row, in order.
type bothWays struct{ rows, real []float64 }

func nearests(rows, real []place) bothWays {
	b := bothWays{nearestEach(rows, real), nearestEach(real, rows)}
	slices.Sort(b.rows)
	slices.Sort(b.real)
	return b
}

// nearestEach is the distance of each place to the nearest of others. These are
// sorted by one coordinate, and looked at from there until that alone is farther.
func nearestEach(of, others []place) []float64 {
	sorted := slices.Clone(others)
	slices.SortFunc(sorted, func(a, b place) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) })
	out := make([]float64, len(of))
	for i, p := range of {
		best := math.Inf(1)
		at := sort.Search(len(sorted), func(j int) bool { return sorted[j].x >= p.x })
		for lo, hi := at-1, at; lo >= 0 || hi < len(sorted); {
			moved := false
			if hi < len(sorted) && sorted[hi].x-p.x < best {
				best = min(best, math.Hypot(sorted[hi].x-p.x, sorted[hi].y-p.y))
				hi, moved = hi+1, true
			}
			if lo >= 0 && p.x-sorted[lo].x < best {
				best = min(best, math.Hypot(p.x-sorted[lo].x, p.y-sorted[lo].y))
				lo, moved = lo-1, true
			}
			if !moved {
				break
			}
		}
		out[i] = best
	}
	return out
}

func (b bothWays) score(distance float64) attackScore {
	near := func(all []float64) (share, lo, hi float64) {
		n := sort.Search(len(all), func(i int) bool { return all[i] > distance })
		share = float64(n) / float64(len(all))
		lo, hi = sample.ClopperPearson(share, float64(len(all)), 0.95)
		return share, lo, hi
	}
	p, pLow, pHigh := near(b.rows)
	r, rLow, rHigh := near(b.real)
	return attackScore{p, r, harmonic(p, r), harmonic(pLow, rLow), harmonic(pHigh, rHigh)}
}

func harmonic(a, b float64) float64 {
	if a+b == 0 {
		return 0
	}
	return 2 * a * b / (a + b)
}

// nearRows looks whether drawn rows are nearer to their source than the people of that are
// to each other.
func (c *Case) nearRows(ctx context.Context, src anonymize.Source, fig Figures) Finding {
	rng := rand.New(rand.NewPCG(c.Seed, 0xa77ac))
	synthetic := sampler{rng: rng}
	rows, err := c.Output.Trace.Reader()
	if err == nil {
		err = trace.Each(rows, func(_ int64, r *trace.Request) error { return synthetic.add(ctx, r) })
	}
	if err != nil {
		return broken(err)
	}
	salt := rng.Uint64()
	real, held := sampler{rng: rng}, sampler{rng: rng}
	before, err := src.Open()
	if err == nil {
		err = trace.Each(before, func(row int64, r *trace.Request) error {
			person := mixKey(3, uint64(row)) // so that nobody is on both sides
			switch {
			case r.User != nil:
				person = mixKey(1, uint64(*r.User))
			case r.Session != nil:
				person = mixKey(2, uint64(*r.Session))
			}
			if mixKey(salt, person)&1 == 0 {
				return real.add(ctx, r)
			}
			return held.add(ctx, r)
		})
	}
	if err != nil {
		return broken(err)
	}
	n := min(len(synthetic.kept), len(real.kept), len(held.kept))
	if n < attackLeast {
		fig["rows"] = n
		return inconclusive(fig, "too few requests to tell: it takes %d on each side", attackLeast)
	}
	a := linkAttack(synthetic.first(n), real.first(n), held.first(n))
	fig["attack"] = a
	words := "within %.3g octaves, linking drawn rows to real ones has an F1 of %.3f (%.3f to %.3f), and linking " +
		"real ones held out has %.3f (%.3f to %.3f)"
	args := []any{a.Distance, a.Synthetic.F1, a.Synthetic.Low, a.Synthetic.High, a.HeldOut.F1,
		a.HeldOut.Low, a.HeldOut.High}
	if a.Beaten() {
		return failed(fig, "drawn rows are nearer to real ones than people are to each other: "+words, args...)
	}
	return passed(fig, words, args...)
}

// A sampler keeps a uniform sample of the places of rows (Vitter's algorithm R).
type sampler struct {
	rng  *rand.Rand
	seen int64
	kept []place
}

func (s *sampler) add(ctx context.Context, r *trace.Request) error {
	if s.seen%4096 == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	s.seen++
	p := placeOf(r.InputTokens, r.OutputOr(-1))
	if len(s.kept) < attackRows {
		s.kept = append(s.kept, p)
	} else if at := s.rng.Int64N(s.seen); at < attackRows {
		s.kept[at] = p
	}
	return nil
}

// first shuffles what was kept and returns so many.
func (s *sampler) first(n int) []place {
	s.rng.Shuffle(len(s.kept), func(i, j int) { s.kept[i], s.kept[j] = s.kept[j], s.kept[i] })
	return s.kept[:n]
}
