package synth

import (
	"math"
	"math/rand/v2"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// The energy of a course is what counting anew finds.
func TestCourseEnergyAgainstBruteForce(t *testing.T) {
	const k, part = 2, coursePart * 2
	r := rand.New(rand.NewPCG(7, 7))
	trace, now := make([]int64, 97), make([]int64, 97)
	e := energyOfCourse(trace, now, r, k)
	energy := func() (sum float64) {
		for width := part; ; width *= 2 { // parts, pairs of these and so on; the last part has the rest
			parts := map[int]float64{}
			for i := range trace {
				parts[min(i/part, len(trace)/part-1)*part/width] += float64(now[i] - trace[i])
			}
			if len(parts) < 2 {
				return sum * e.unit
			}
			for _, more := range parts {
				sum += more * more
			}
		}
	}
	for range 300 {
		i, by := r.IntN(len(now)), int64(r.IntN(1200))-600
		before, cost := energy(), e.move(int32(i), by)
		now[i] += by
		if d := energy() - before; math.Abs(d-cost) > 1e-9 {
			t.Fatalf("%d tokens cost %g, want %g", by, cost, d)
		}
	}
}

func energyOfCourse(trace, now []int64, r *rand.Rand, k int) courseEnergy {
	for i := range trace {
		trace[i], now[i] = int64(r.IntN(900)), int64(r.IntN(900))
	}
	e := newCourseEnergy(trace, k)
	for i := range now {
		e.move(int32(i), now[i])
	}
	return e
}

// Swapped, hundreds of requests in a row bring about as many tokens as those of the trace did,
// and get as many: without the energies of the course they were 7 and 6 % apart.
func TestSwapKeepsTheCourseOfTokens(t *testing.T) {
	longtest.Skip(t)
	rows := mooncake(t)
	rows = rows[len(rows)-4000:]
	meta := trace.Meta{BlockSize: 512}
	got := generated(t, fitted(t, rows, meta, 10, 3), Options{Seed: 1})
	const width = 200
	apart := func(tokens func(*trace.Request) int32) float64 {
		sum, mean := 0.0, 0.0
		for from := 0; from+width <= len(rows); from += width {
			a, b := 0.0, 0.0
			for i := from; i < from+width; i++ {
				a, b = a+float64(tokens(&rows[i])), b+float64(tokens(&got[i]))
			}
			sum, mean = sum+(a-b)*(a-b), mean+a
		}
		n := float64(len(rows) / width)
		return math.Sqrt(sum/n) / (mean / n)
	}
	if off := apart(func(r *trace.Request) int32 { return r.InputTokens }); off > .02 {
		t.Errorf("input tokens of %d requests are %.3f apart", width, off)
	}
	if off := apart(func(r *trace.Request) int32 { return *r.OutputTokens }); off > .01 {
		t.Errorf("output tokens of %d requests are %.3f apart", width, off)
	}
}
