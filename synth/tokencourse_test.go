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

// Where a burst of verdicts moves, it takes its few tokens along: requests that come where it was, or where it is now,
// get as many tokens as others. When the course was that of the trace, they made up for it, with up to twice as many.
func TestCourseMovesWithBursts(t *testing.T) {
	rng, next := rand.New(rand.NewPCG(3, 1)), uint64(1000)
	var rows []trace.Request
	chats := func(n int) {
		for range n {
			next++
			at := int64(0)
			if len(rows) > 0 {
				at = rows[len(rows)-1].ArrivalNS
			}
			tokens := 2 + int32(200*math.Exp(rng.NormFloat64()))
			rows = append(rows, trace.Request{ArrivalNS: at + 1 + rng.Int64N(3e9), InputTokens: 600 + rng.Int32N(400),
				OutputTokens: &tokens, Blocks: []uint64{next, next + 1<<40}})
		}
	}
	for burst := range uint64(4) {
		chats(100)
		for i := range uint64(80) {
			rows = append(rows, trace.Request{ArrivalNS: rows[len(rows)-1].ArrivalNS + 1e7, InputTokens: 1500,
				OutputTokens: trace.Ptr[int32](1), Blocks: []uint64{burst * 2, burst*2 + 1, 1<<50 + burst<<20 + i}})
		}
	}
	chats(100)

	const width = 20
	most := func(rows []trace.Request) (most float64) { // tokens of so many chats that follow each other
		var chats []float64
		for _, r := range rows {
			if *r.OutputTokens > 1 {
				chats = append(chats, float64(*r.OutputTokens))
			}
		}
		for i := 0; i+width <= len(chats); i += width {
			sum := 0.0
			for _, tokens := range chats[i : i+width] {
				sum += tokens
			}
			most = max(most, sum)
		}
		return most
	}
	for seed := range uint64(3) {
		got := generated(t, fitted(t, rows, trace.Meta{BlockSize: 512}, 10, seed), Options{Seed: seed})
		if a, b := most(rows), most(got); b > 1.3*a {
			t.Errorf("seed %d: %d chats in a row have up to %.0f tokens, in the trace %.0f", seed, width, b, a)
		}
	}
}
