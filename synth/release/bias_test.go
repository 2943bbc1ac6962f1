package release

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Sums of tokens lose nothing to rounding on average, and never weigh more than a session.
func TestClippedIsUnbiased(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const limit, weight, sessions = 1 << 18, unit, 20_000
	var got, want [2]float64
	for range sessions {
		s := laterSums{r.Int64N(limit / 100), r.Int64N(limit / 300)}
		there, fresh := s.clipped(limit, weight)
		got[0], got[1] = got[0]+float64(there), got[1]+float64(fresh)
		want[0], want[1] = want[0]+float64(s.there)*weight/limit, want[1]+float64(s.fresh)*weight/limit
	}
	for i := range got {
		if off := math.Abs(got[i]/want[i] - 1); off > 0.02 {
			t.Errorf("sum %d is %.4f off", i, off)
		}
	}
	for range sessions {
		s := laterSums{r.Int64N(limit), r.Int64N(limit)}
		if there, fresh := s.clipped(limit, 1+r.Int64N(9)); there < 0 || fresh < 0 {
			t.Fatalf("%+v is %d and %d", s, there, fresh)
		}
		w := 1 + r.Int64N(weight)
		if there, fresh := s.clipped(limit, w); there+fresh > w {
			t.Fatalf("%+v weighs %d of %d", s, there+fresh, w)
		}
	}
}

// Noise that is cut off a table of lengths leaves their mean where it was on average.
func TestLengthsKeepTheirMean(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var l layout
	l.maxIn, l.maxOut, l.span = 1<<17, 1<<12, 1e12
	l.edges()
	values := middles(l.input, fine)
	const n, sd, runs = 7000., 2., 200
	cells, total := make([]float64, len(values)), 0.
	for i, v := range values {
		cells[i] = math.Exp(-math.Pow(math.Log(v/7000)/1.2, 2) / 2)
		total += cells[i]
	}
	for i := range cells {
		cells[i] *= n / total
	}
	want := mean(cells, values)
	var cut, kept, spread float64
	for range runs {
		noisy := noisyTable{columns: len(cells), sd: sd}
		for _, x := range cells {
			noisy.cells = append(noisy.cells, x+sd*r.NormFloat64())
		}
		cut += mean(project(tailed(noisy.cells, sd, values), n), values) / want / runs
		x := mean(lengths(&noisy, values, n), values) / want
		kept, spread = kept+x/runs, spread+(x-1)*(x-1)/runs
	}
	t.Logf("a mean of %.4f when noise is cut, %.4f when it is moved back", cut, kept)
	if math.Abs(kept-1) > 0.5*math.Abs(cut-1) || math.Sqrt(spread) > 0.01 {
		t.Errorf("a mean of %.4f, %.4f off, and %.4f when noise is only cut", kept, math.Sqrt(spread), cut)
	}
	still := noisyTable{cells: cells, columns: len(cells)}
	if x := mean(lengths(&still, values, n), values); math.Abs(x/want-1) > 1e-6 {
		t.Errorf("without noise the mean is %.6f of what it was", x/want)
	}
}
