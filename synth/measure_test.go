package synth

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
)

// capacities are the 61 of the mean error of the curve of hit ratios: from 100
// to 200,000 blocks, even in the logarithm.
func capacities() []int64 {
	var out []int64
	for i := range 61 {
		out = append(out, int64(100*math.Pow(2000, float64(i)/60)))
	}
	return out
}

// A curve holds hit blocks by capacity, without limit last, and references.
type curve struct {
	hits []float64
	refs float64
}

func curveOf(rows []trace.Request, size int) curve {
	u := profile.NewReuse(size, profile.ReuseOptions{ExactBlocks: 1 << 30})
	for i := range rows {
		u.Add(&rows[i])
	}
	s := u.Summary()
	c := curve{refs: float64(s.ReferencesBlocks)}
	for _, h := range u.LRUHitRatios(capacities()) {
		c.hits = append(c.hits, h*c.refs)
	}
	c.hits = append(c.hits, float64(s.HitBlocks))
	return c
}

// minus leaves what came behind the first rows.
func (c curve) minus(o curve) curve {
	d := curve{refs: c.refs - o.refs}
	for i := range c.hits {
		d.hits = append(d.hits, c.hits[i]-o.hits[i])
	}
	return d
}

func (c curve) ratio(i int) float64 { return c.hits[i] / c.refs }
func (c curve) infinite() float64   { return c.ratio(len(c.hits) - 1) }

// error is the mean absolute difference of the hit ratios, without the last.
func (c curve) error(o curve) float64 {
	sum := 0.0
	for i := range len(c.hits) - 1 {
		sum += math.Abs(c.ratio(i) - o.ratio(i))
	}
	return sum / float64(len(c.hits)-1)
}

// categories are the shares of the reuse categories in percent.
func categories(rows []trace.Request) map[string]float64 {
	out := map[string]float64{}
	for i := range rows {
		out[rows[i].Category] += 100 / float64(len(rows))
	}
	return out
}

// annotated gives rows the categories and sessions that profile finds.
func annotated(rows []trace.Request, size int) []trace.Request {
	out := slices.Clone(rows)
	a := profile.NewAnnotator(size, profile.Options{})
	for i := range out {
		a.Count(&out[i])
	}
	for i := range out {
		a.Annotate(int64(i), &out[i])
	}
	return out
}

func fitted(t testing.TB, rows []trace.Request, meta trace.Meta, k int, seed uint64) *Model {
	t.Helper()
	m, err := Fit(t.Context(), cloned(rows), meta, FitOptions{KSwap: k, Entropy: rand.NewChaCha8([32]byte{byte(seed)})})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func timesOf(rows []trace.Request) []int64 {
	out := make([]int64, len(rows))
	for i := range rows {
		out[i] = rows[i].ArrivalNS - rows[0].ArrivalNS
	}
	return out
}
