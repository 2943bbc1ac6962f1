package profile_test

import (
	"container/list"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/profile"
)

// An outcome is what the requests of some stretch of a simulation found.
type outcome struct{ requests, blocks, hits, full, fullHits, tokens, hitTokens, shares float64 }

func (o outcome) ratios() profile.HitRatios {
	return profile.HitRatios{ByBlock: trace.Ptr(o.hits / o.blocks), ByToken: trace.Ptr(o.hitTokens / o.tokens),
		MeanOverRequests: trace.Ptr(o.shares / o.requests), FullBlocksOnly: trace.Ptr(o.fullHits / o.full)}
}

// cacheOf runs a paged LRU cache with memory for so many tokens, of which every
// block held takes size, over all rows. It tells what all of them found, and
// what those did that arrive at from or later, in ns since the first.
func cacheOf(rows []trace.Request, size, memory int64, generated bool, from int64) (whole, steady outcome) {
	order := list.New() // front is the most recent
	held := map[uint64]*list.Element{}
	touch := func(ids []uint64) {
		for i := len(ids) - 1; i >= 0; i-- {
			if e := held[ids[i]]; e != nil {
				order.MoveToFront(e)
				continue
			}
			held[ids[i]] = order.PushFront(ids[i])
			for int64(order.Len())*size > memory {
				delete(held, order.Remove(order.Back()).(uint64))
			}
		}
	}
	first := load(rows)[0].ArrivalNS
	for _, r := range load(rows) {
		if len(r.Blocks) == 0 {
			continue
		}
		one := outcome{requests: 1, blocks: float64(len(r.Blocks)), tokens: float64(r.InputTokens)}
		leading := true
		for i, b := range r.Blocks {
			tokens := min(size, int64(r.InputTokens)-int64(i)*size)
			if tokens == size {
				one.full++
			}
			if leading = leading && held[b] != nil; !leading {
				continue
			}
			one.hits++
			one.hitTokens += float64(tokens)
			if tokens == size {
				one.fullHits++
			}
		}
		one.shares = one.hits / one.blocks
		whole = plus(whole, one)
		if r.ArrivalNS-first >= from {
			steady = plus(steady, one)
		}
		if generated {
			touch(r.OutputBlocks)
		}
		touch(r.Blocks)
	}
	return whole, steady
}

func plus(a, b outcome) outcome {
	return outcome{a.requests + b.requests, a.blocks + b.blocks, a.hits + b.hits, a.full + b.full, a.fullHits + b.fullHits,
		a.tokens + b.tokens, a.hitTokens + b.hitTokens, a.shares + b.shares}
}

const unlimited = math.MaxInt64

// checkReuse holds all figures of s against simulations of each capacity.
func checkReuse(t *testing.T, s profile.ReuseSummary, rows []trace.Request, size int64, generated bool) {
	t.Helper()
	from := int64(math.Round(s.Steady.WarmUpS * 1e9))
	whole, steady := cacheOf(rows, size, unlimited, generated, from)
	checkRatios(t, "whole", s.HitRatios, whole)
	checkRatios(t, "steady", s.Steady.HitRatios, steady)
	if got := s.Steady; got.Requests != int64(steady.requests) || got.ReferencesBlocks != int64(steady.blocks) ||
		got.HitBlocks != int64(steady.hits) {
		t.Errorf("from %d ns on there are %d requests, %d of %d blocks hit; want %+v", from, got.Requests, got.HitBlocks,
			got.ReferencesBlocks, steady)
	}
	if steady.requests > 0 && len(s.Steady.LRUCurve) != len(s.LRUCurve) || steady.requests == 0 && s.Steady.LRUCurve != nil {
		t.Fatalf("%d points in steady state, %d over all", len(s.Steady.LRUCurve), len(s.LRUCurve))
	}
	for i, p := range s.LRUCurve {
		whole, steady := cacheOf(rows, size, memoryOf(t, p, size), generated, from)
		checkPoint(t, "whole", p, whole)
		if steady.requests > 0 {
			q := s.Steady.LRUCurve[i]
			if !reflect.DeepEqual(p.CapacityBlocks, q.CapacityBlocks) || !reflect.DeepEqual(p.CapacityTokens, q.CapacityTokens) {
				t.Errorf("point %d has another capacity in steady state", i)
			}
			checkPoint(t, "steady", q, steady)
		}
	}
}

// memoryOf is the capacity of p in tokens, which must hold its blocks and no more.
func memoryOf(t *testing.T, p profile.CurvePoint, size int64) int64 {
	t.Helper()
	switch {
	case p.CapacityBlocks == nil && p.CapacityTokens == nil:
		return unlimited
	case p.CapacityBlocks == nil || p.CapacityTokens == nil || *p.CapacityTokens/size != *p.CapacityBlocks:
		t.Fatalf("a capacity is not whole: %+v with blocks of %d", p, size)
	}
	return *p.CapacityTokens
}

func checkPoint(t *testing.T, name string, p profile.CurvePoint, want outcome) {
	t.Helper()
	capacity := int64(unlimited)
	if p.CapacityTokens != nil {
		capacity = *p.CapacityTokens
	}
	equal(t, name+" by block", capacity, &p.HitRatio, want.hits/want.blocks)
	equal(t, name+" by token", capacity, p.HitRatioByToken, want.hitTokens/want.tokens)
}

func checkRatios(t *testing.T, name string, got profile.HitRatios, o outcome) {
	t.Helper()
	if o.requests == 0 {
		if got != (profile.HitRatios{}) {
			t.Errorf("%s: there are ratios of no requests", name)
		}
		return
	}
	want := o.ratios()
	equal(t, name+" by block", unlimited, got.ByBlock, *want.ByBlock)
	equal(t, name+" by token", unlimited, got.ByToken, *want.ByToken)
	equal(t, name+" mean over requests", unlimited, got.MeanOverRequests, *want.MeanOverRequests)
	equal(t, name+" full blocks only", unlimited, got.FullBlocksOnly, *want.FullBlocksOnly)
}

func equal(t *testing.T, name string, capacity int64, got *float64, want float64) {
	t.Helper()
	if got == nil || !(math.Abs(*got-want) <= 1e-12) {
		t.Errorf("%s, with %d tokens, the ratio is %v; want %v", name, capacity, deref(got), want)
	}
}

func deref(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// scaled makes every token k, so that small generated traces reach round
// capacities in tokens.
func scaled(rows []trace.Request, k int32) []trace.Request {
	for i := range rows {
		rows[i].InputTokens *= k
		*rows[i].OutputTokens *= k
	}
	return rows
}

func TestReuseEqualsPagedCache(t *testing.T) {
	longtest.Skip(t)
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			const k = 128
			size := k * s.block
			rows := scaled(generate(13, 800, s), k)
			at := time.Duration(load(rows)[300].ArrivalNS - load(rows)[0].ArrivalNS)
			// Half; everything; from a request on, and from just behind it; everything; nothing.
			for _, warmUp := range []*time.Duration{nil, trace.Ptr(time.Duration(0)), &at, trace.Ptr(at + 1),
				trace.Ptr(time.Duration(-1)), trace.Ptr(1000 * time.Hour)} {
				u := reuseOf(rows, size, profile.ReuseOptions{WarmUp: warmUp})
				checkReuse(t, u.Summary(), rows, int64(size), false)
				if got := u.Summary().Steady.WarmUpS; warmUp != nil && got != float64(max(*warmUp, 0))/1e9 {
					t.Errorf("the warm-up is %v s; want %v", got, *warmUp)
				}
				if g := u.WithGenerated(); g != nil {
					checkReuse(t, *g, rows, int64(size), true)
				}
			}
			sum := reuseOf(rows, size, profile.ReuseOptions{}).Summary()
			for _, p := range sum.LRUCurveDense {
				whole, _ := cacheOf(rows, int64(size), memoryOf(t, p, int64(size)), false, 0)
				checkPoint(t, "dense", p, whole)
			}
		})
	}
}

func TestRoundCapacities(t *testing.T) {
	sum := reuseOf(scaled(generate(13, 1500, shape{block: 4}), 128), 512, profile.ReuseOptions{}).Summary()
	want := map[[2]int64]bool{{1000, 512_000}: true, {1953, 1_000_000}: true, {2000, 1_024_000}: true, {3906, 2_000_000}: true,
		{5000, 2_560_000}: true}
	last := int64(0)
	for i, p := range sum.LRUCurve[:len(sum.LRUCurve)-1] {
		delete(want, [2]int64{*p.CapacityBlocks, *p.CapacityTokens})
		if *p.CapacityTokens <= last || (*p.CapacityBlocks >= sum.UniqueBlocks) != (i == len(sum.LRUCurve)-2) {
			t.Errorf("point %d holds %d of %d blocks", i, *p.CapacityBlocks, sum.UniqueBlocks)
		}
		last = *p.CapacityTokens
	}
	if len(want) > 0 {
		t.Errorf("the curve lacks %v", want)
	}
	sum = reuseOf(generate(13, 100, shape{block: 4}), 0, profile.ReuseOptions{}).Summary()
	for _, p := range append(sum.LRUCurve, sum.Steady.LRUCurve...) {
		if p.CapacityTokens != nil || p.HitRatioByToken != nil {
			t.Error("with blocks of unknown size there are tokens")
		}
	}
}

// Depths that are listed capacities themselves are within these.
func TestDepthsAtRoundCapacities(t *testing.T) {
	row := trace.Request{InputTokens: 2000*512 - 1}
	for b := range uint64(2000) {
		row.Blocks = append(row.Blocks, b)
	}
	rows := []trace.Request{row, row, row}
	rows[2].ArrivalNS = 7
	sum := reuseOf(rows, 512, profile.ReuseOptions{}).Summary()
	checkReuse(t, sum, rows, 512, false)
	for i, want := range []float64{1000, 1953, 2000, 2000} {
		equal(t, "steady", int64(i), &sum.Steady.LRUCurve[i].HitRatio, want/2000)
	}
}

// With nothing to warm up, the steady state is the whole trace.
func TestNoWarmUpIsTheWholeTrace(t *testing.T) {
	s := shapes["everything"]
	rows := generate(14, 500, s)
	for i := range rows[:100] {
		rows[i].OutputBlocks = nil // the figures with generated KV begin as a copy
	}
	u := reuseOf(rows, s.block, profile.ReuseOptions{WarmUp: trace.Ptr(time.Duration(0))})
	for _, sum := range []profile.ReuseSummary{u.Summary(), *u.WithGenerated()} {
		want := profile.SteadyState{Requests: sum.Requests, ReferencesBlocks: sum.ReferencesBlocks, HitBlocks: sum.HitBlocks,
			HitRatios: sum.HitRatios, LRUCurve: sum.LRUCurve}
		if !reflect.DeepEqual(sum.Steady, want) {
			t.Errorf("the steady state is %+v; want %+v", sum.Steady, want)
		}
	}
}

// The middle is found exactly in short traces, to a thousandth in others, and
// what is counted is what arrives from there on.
func TestMiddleOfTheTrace(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 15))
	for round := range 2000 {
		var times []int64
		at := rng.Int64N(1e12) - 5e11
		scale := math.Exp(rng.Float64() * 30)
		for range 1 + rng.IntN(50) {
			times = append(times, at)
			at += int64(rng.ExpFloat64() * scale * float64(rng.IntN(2)))
		}
		u := profile.NewReuse(1, profile.ReuseOptions{})
		for i, at := range times {
			r := trace.Request{ArrivalNS: at, InputTokens: 1, Blocks: []uint64{1}}
			if i == 0 || i == len(times)-1 {
				r.InputTokens, r.Blocks = 0, nil // without blocks it still is part of the duration
			}
			u.Add(&r)
		}
		s := u.Summary().Steady
		duration := times[len(times)-1] - times[0]
		warmUp := int64(math.Round(s.WarmUpS * 1e9))
		if half := duration - duration/2; duration < 1024 && warmUp != half {
			t.Fatalf("round %d: of %d ns, the warm-up takes %d; want %d", round, duration, warmUp, half)
		}
		if math.Abs(float64(warmUp)-float64(duration)/2) > max(float64(duration)/1000, 0.5) {
			t.Fatalf("round %d: of %d ns, the warm-up takes %d", round, duration, warmUp)
		}
		var want int64
		for i, at := range times {
			if i > 0 && i < len(times)-1 && at-times[0] >= warmUp {
				want++
			}
		}
		if s.Requests != want {
			t.Fatalf("round %d: of %d ns, %d requests come after %d; want %d", round, duration, s.Requests, warmUp, want)
		}
	}
}

// Times at both ends of an int64, and rows out of order, are counted somewhere.
func TestImpossibleTimes(t *testing.T) {
	u := profile.NewReuse(1, profile.ReuseOptions{})
	for _, at := range []int64{math.MinInt64, math.MaxInt64, 0, math.MaxInt64} {
		u.Add(&trace.Request{ArrivalNS: at, InputTokens: 1, Blocks: []uint64{1}})
	}
	late := profile.NewReuse(1, profile.ReuseOptions{})
	late.Add(&trace.Request{ArrivalNS: math.MinInt64, InputTokens: 1, Blocks: []uint64{1}})
	late.Add(&trace.Request{ArrivalNS: math.MaxInt64}) // no blocks
	if s := late.Summary(); s.Requests != 1 || s.Steady.Requests != 0 || s.Steady.LRUCurve != nil {
		t.Errorf("of %d requests %d come late", s.Requests, s.Steady.Requests)
	}
	if s := u.Summary(); s.Requests != 4 || s.Steady.Requests != 3 || math.Abs(s.Steady.WarmUpS-0x1p63/1e9) > 1e7 {
		t.Errorf("of %d requests %d come after %v s", s.Requests, s.Steady.Requests, s.Steady.WarmUpS)
	}
}

// A profile has the duration of all its load, and the same middle.
func TestProfileSteadyState(t *testing.T) {
	rows := generate(16, 400, shape{block: 4, statuses: true})
	rows = append(rows, trace.Request{ArrivalNS: 2 * rows[399].ArrivalNS, InputTokens: 9})
	var opts profile.ProfilerOptions
	sum := profileOf(t, rows, trace.Meta{BlockSize: 4}, opts).Summary()
	checkReuse(t, *sum.Reuse, rows, 4, false)
	if s := sum.Reuse.Steady; math.Abs(s.WarmUpS-sum.DurationS/2) > sum.DurationS/1000 || s.Requests > 1 {
		t.Errorf("of %v s, the warm-up takes %v", sum.DurationS, s.WarmUpS)
	}
	opts.WarmUp = trace.Ptr(3 * time.Second)
	sum = profileOf(t, rows, trace.Meta{BlockSize: 4}, opts).Summary()
	checkReuse(t, *sum.Reuse, rows, 4, false)
	if s := sum.Reuse.Steady; s.WarmUpS != 3 || s.Requests < 10 {
		t.Errorf("a warm-up of %v s leaves %d requests", s.WarmUpS, s.Requests)
	}
}

// A sample's steady state, and its tokens, are as good as its curve.
func TestSampledSteadyState(t *testing.T) {
	rows := generate(52, 20_000, shape{block: 16, system: true, reach: 8000})
	exact := reuseOf(rows, 16, profile.ReuseOptions{}).Summary()
	got := reuseOf(rows, 16, profile.ReuseOptions{ExactBlocks: 8192}).Summary()
	if !reflect.DeepEqual(got.Steady.HitRatios, exact.Steady.HitRatios) || got.Sampling == nil {
		t.Error("the cache without limit is not exact")
	}
	pairs := map[string][2][]profile.CurvePoint{"steady": {got.Steady.LRUCurve, exact.Steady.LRUCurve},
		"dense": {got.LRUCurveDense, exact.LRUCurveDense}}
	for name, pair := range pairs {
		var sum, n float64
		for i, p := range pair[0] {
			if p.CapacityBlocks == nil || *p.CapacityBlocks >= got.Sampling.ResolutionBlocks {
				sum += math.Abs(p.HitRatio-pair[1][i].HitRatio) + math.Abs(*p.HitRatioByToken-*pair[1][i].HitRatioByToken)
				n += 2
			}
		}
		t.Logf("%s: mean error %.5f of %v ratios", name, sum/n, n)
		if !(sum/n <= got.Sampling.MeanError) {
			t.Errorf("%s: the mean error is %v; want at most %v", name, sum/n, got.Sampling.MeanError)
		}
	}
}

// The conversation trace of Mooncake, each capacity run through a cache.
func TestMooncakeEqualsPagedCache(t *testing.T) {
	longtest.Skip(t)
	rows := mooncake(t)
	sum := profileOf(t, rows, trace.Meta{BlockSize: 512}, profile.ProfilerOptions{}).Summary()
	checkReuse(t, *sum.Reuse, rows, 512, false)
	s := sum.Reuse.Steady
	h := s.HitRatios
	checkDigits(t, []digits{{"warm-up", s.WarmUpS, 3, "1769.527"}, {"requests", float64(s.Requests), 0, "6425"},
		{"by block", *h.ByBlock, 4, "0.3926"}, {"by token", *h.ByToken, 4, "0.4008"},
		{"mean over requests", *h.MeanOverRequests, 4, "0.4049"}, {"full blocks only", *h.FullBlocksOnly, 4, "0.4103"}})
}
