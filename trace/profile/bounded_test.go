package profile

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/longtest"
)

// chats are rows of sessions that go on with their own prompts, the ids of their blocks
// numbered by first appearance; a few begin with a system prompt of two blocks.
func chats(n int) []trace.Request {
	rng := rand.New(rand.NewPCG(61, 62))
	type chat struct {
		id     int64
		blocks []uint64
		tokens int32
	}
	var open []chat
	var rows []trace.Request
	next, now, sessions := uint64(2), int64(0), int64(0)
	for range n {
		now += int64(rng.ExpFloat64() * 1e9)
		at := rng.IntN(40)
		if at >= len(open) || rng.IntN(5) == 0 {
			c := chat{id: sessions}
			if sessions++; rng.IntN(3) == 0 || sessions == 1 {
				c.blocks, c.tokens = []uint64{0, 1}, 32
			}
			if at < len(open) {
				open[at] = c
			} else {
				at = len(open)
				open = append(open, c)
			}
		}
		c := &open[at]
		c.blocks = append([]uint64(nil), c.blocks...)
		for range 1 + rng.IntN(6) {
			c.blocks = append(c.blocks, next)
			next, c.tokens = next+1, c.tokens+16
		}
		rows = append(rows, trace.Request{ArrivalNS: now, Session: trace.Ptr(c.id), User: trace.Ptr(c.id % 70), InputTokens: c.tokens, OutputTokens: trace.Ptr(int32(1 + rng.IntN(300))), Blocks: c.blocks, Category: trace.Categories()[rng.IntN(len(trace.Categories()))]})
	}
	return rows
}

func profiled(t *testing.T, rows []trace.Request, bound, sessionBound int) *Profiler {
	t.Helper()
	opts := ProfilerOptions{ReuseOptions: ReuseOptions{ExactBlocks: bound, bound: bound}}
	p := NewProfiler(trace.Meta{BlockSize: 16, Sessions: originSource}, opts)
	p.sessions.bound, p.sessions.ids.bound = sessionBound, sessionBound+1
	if _, err := p.Write(rows); err != nil {
		t.Fatal(err)
	}
	return p
}

// Beyond the blocks and sessions that are kept apart, all is exact but what is said to be of
// a sample, and that comes within its error.
func TestBeyondTheBounds(t *testing.T) {
	rows := chats(30_000)
	exact, sampled := profiled(t, rows, 1<<24, 1<<22), profiled(t, rows, 1<<13, 1<<11)
	a, b := exact.Summary(), sampled.Summary()
	if got := sampled.prefixes.uses; len(got) != 1<<13 {
		t.Errorf("%d blocks are kept apart", len(got))
	}
	// Sessions: counts within their error, means within 5 %.
	s := b.Sessions.Sampling
	if s == nil || s.Tracked > 512 || a.Sessions.Sampling != nil {
		t.Fatalf("sampled %+v and %+v", s, a.Sessions.Sampling)
	}
	about := func(what string, got, want, off float64) {
		t.Helper()
		if math.Abs(got-want) > off*want {
			t.Errorf("%s is %v, want %v within %.3g", what, got, want, off)
		}
	}
	about("sessions", float64(b.Sessions.Sessions), float64(a.Sessions.Sessions), s.Error)
	about("turns", b.Sessions.Turns.Mean, a.Sessions.Turns.Mean, s.Error)
	about("gaps", b.Sessions.TurnGap.Mean, a.Sessions.TurnGap.Mean, 2*s.Error)
	if a.Sessions.Requests != b.Sessions.Requests {
		t.Error("the requests of sessions are not exact")
	}
	meanOf := func(p *Profiler) float64 {
		sum, n := 0.0, 0.0
		for _, r := range p.Histograms() {
			if r.Metric == metricReuseTime && r.Category == "" {
				sum, n = sum+float64(r.Lo)*float64(r.Count), n+float64(r.Count)
			}
		}
		return sum / n
	}
	about("reuse time", meanOf(sampled), meanOf(exact), 0.05)
	// The rest is as it was.
	if b.Reuse.Sampling == nil {
		t.Fatal("the curve is exact")
	}
	for _, s := range []*Summary{&a, &b} {
		s.Sessions, s.Prefixes, s.Warnings = nil, nil, nil
		s.Reuse.Sampling, s.Reuse.LRUCurve, s.Reuse.LRUCurveDense, s.Reuse.Steady.LRUCurve = nil, nil, nil, nil
	}
	if x, y := jsonOf(t, a), jsonOf(t, b); x != y {
		t.Errorf("exact\n%s\nbeyond\n%s", x, y)
	}
	seen := map[int32]bool{}
	for _, metric := range []string{MetricHitBlocks, MetricNewBlocks, MetricInput, MetricInterArrival} {
		x, y := exact.histograms.Get(metric, ""), sampled.histograms.Get(metric, "")
		if !reflect.DeepEqual(x, y) {
			t.Error(metric, "is not exact")
		}
		seen[int32(x.Count())] = true
	}
	if len(seen) == 0 {
		t.Error("no histograms")
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A window of a working set has its distinct blocks, however many there are and whatever is
// kept of them.
func TestWorkingSetOfLaterBlocks(t *testing.T) {
	longtest.Skip(t)
	var w workingSets
	for i, width := range workingWindows {
		w.sets[i].width = width
	}
	now, rng := int64(0), rand.New(rand.NewPCG(71, 72))
	distinct := make([]map[uint32]bool, len(w.sets))
	var sums, most [len(workingWindows)]int64
	for i := range distinct {
		distinct[i] = map[uint32]bool{}
	}
	for range 3_000_000 {
		before := now
		now += rng.Int64N(int64(4 * time.Millisecond))
		for i, width := range workingWindows {
			if before/width != now/width {
				sums[i], most[i] = sums[i]+int64(len(distinct[i])), max(most[i], int64(len(distinct[i])))
				clear(distinct[i])
			}
		}
		w.arrive(now)
		n := uint32(rng.IntN(1 << 27))
		w.carryLater(n)
		for i := range distinct {
			distinct[i][n] = true
		}
	}
	for i := range w.sets {
		if s := &w.sets[i]; s.sum != sums[i] || s.max != most[i] || s.blocks != int64(len(distinct[i])) {
			t.Errorf("windows of %v: %d, %d and %d blocks, want %d, %d and %d", time.Duration(s.width), s.sum, s.max, s.blocks, sums[i], most[i], len(distinct[i]))
		}
	}
	if most[2] < listedBlocks {
		t.Errorf("at most %d blocks in an hour", most[2])
	}
}

// Ids that are far larger than their number are told apart up to the bound, and refused
// beyond it with what to do.
func TestSparseIds(t *testing.T) {
	rows := chats(3000)
	for i := range rows {
		for j, b := range rows[i].Blocks {
			rows[i].Blocks[j] = hashed(b)
		}
	}
	if s := profiled(t, rows, 1<<24, 1<<22).Summary(); jsonOf(t, s.Reuse) != jsonOf(t, profiled(t, chats(3000), 1<<24, 1<<22).Summary().Reuse) {
		t.Error("renamed blocks have another reuse")
	}
	p := NewProfiler(trace.Meta{BlockSize: 16}, ProfilerOptions{ReuseOptions: ReuseOptions{bound: 1000}})
	n, err := p.Write(rows)
	if err == nil || n == 0 || n == len(rows) {
		t.Fatalf("%d rows, %v", n, err)
	}
	if want := "row " + strconv.Itoa(n) + ": "; err.Error() != want+errSparse.Error() {
		t.Error(err)
	}
}

// The curve of a whole trace in a file, in REPRISE_TEST_TRACE, against that of a sample of
// its blocks.
func TestSampledCurveOfATrace(t *testing.T) {
	path := os.Getenv("REPRISE_TEST_TRACE")
	if path == "" {
		t.Skip("REPRISE_TEST_TRACE names no trace")
	}
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	of := func(exact int) ReuseSummary {
		u := NewReuse(tr.Meta.BlockSize, ReuseOptions{ExactBlocks: exact})
		r, err := tr.Reader()
		if err != nil {
			t.Fatal(err)
		}
		if err := trace.Each(r, func(_ int64, q *trace.Request) error { u.Add(q); return u.Err() }); err != nil {
			t.Fatal(err)
		}
		return u.Summary()
	}
	want := of(1 << 30)
	got := of(int(want.UniqueBlocks / 16))
	within, of95, worst := 0, 0, 0.0
	for i, p := range got.LRUCurveDense {
		if p.Error == nil {
			continue
		}
		of95++
		off := math.Abs(p.HitRatio - want.LRUCurveDense[i].HitRatio)
		if off <= *p.Error {
			within++
		}
		worst = max(worst, off)
		t.Logf("%d blocks: %.6f, exact %.6f, stated error %.3g", *p.CapacityBlocks, p.HitRatio, want.LRUCurveDense[i].HitRatio, *p.Error)
	}
	t.Logf("%d distinct blocks, one in %v sampled: %d of %d points within their errors; from %d blocks on at most %.3g off, stated %.3g",
		want.UniqueBlocks, 1/got.Sampling.Rate, within, of95, got.Sampling.ResolutionBlocks, worst, got.Sampling.LargestError)
	if within < of95*9/10 {
		t.Error("fewer than nine points in ten are within their errors")
	}
}

// What a row costs while all blocks are kept apart, and beyond that.
func BenchmarkProfiler(b *testing.B) {
	rows := chats(30_000)
	for name, bound := range map[string]int{"exact": 1 << 24, "sampled": 1 << 13} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p := NewProfiler(trace.Meta{BlockSize: 16, Sessions: originSource}, ProfilerOptions{ReuseOptions: ReuseOptions{ExactBlocks: bound, bound: bound}})
				if _, err := p.Write(rows); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(rows))/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
