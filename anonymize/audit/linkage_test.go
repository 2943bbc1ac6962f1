package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth/release"
	"reprise/trace"
)

// linkRows makes rows of few lengths in sessions.
func linkRows(rng *rand.Rand, n, lengths, sessions int) []linkRow {
	rows := make([]linkRow, n)
	for i := range rows {
		rows[i] = linkRow{ArrivalNS: int64(i) * int64(7*time.Second), InputTokens: int32(rng.IntN(lengths)), OutputTokens: trace.Ptr(int32(rng.IntN(3))), Model: "model-0"}
		if rng.IntN(9) > 0 {
			rows[i].Session = trace.Ptr(int64(rng.IntN(sessions)))
		}
	}
	return rows
}

func linkSource(rows []linkRow) func() (trace.Reader[linkRow], error) {
	return func() (trace.Reader[linkRow], error) {
		return &trace.SliceReader[linkRow]{Rows: slices.Clone(rows)}, nil
	}
}

// slowRisk counts classes by their words.
func slowRisk(keys []string, k int) setRisk {
	n := map[string]int64{}
	for _, key := range keys {
		n[key]++
	}
	r := setRisk{N: int64(len(keys)), Classes: int64(len(n)), Smallest: math.MaxInt64, K: k, Sampled: 1}
	for _, c := range n {
		r.Smallest = min(r.Smallest, c)
		if c == 1 {
			r.Unique++
		}
		if c < int64(k) {
			r.BelowK += float64(c)
		}
	}
	r.Unique /= float64(r.N)
	r.BelowK /= float64(r.N)
	r.Average, r.MaxRisk = float64(r.Classes)/float64(r.N), 1/float64(r.Smallest)
	return r
}

// All classes are those of a second count, by words in place of hashes.
func TestLinkageCountsClasses(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows := linkRows(rng, 50+rng.IntN(400), 1+rng.IntN(60), 1+rng.IntN(80))
		got, err := measureLinkage(t.Context(), linkSource(rows), linkOptions{k: 4, seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		keys := make([][]string, 3)
		shapes := map[int64]string{}
		for i := range rows {
			r := &rows[i]
			pair := fmt.Sprint(r.InputTokens, " ", *r.OutputTokens)
			keys[0] = append(keys[0], pair)
			keys[1] = append(keys[1], fmt.Sprint(pair, " ", r.ArrivalNS/60e9))
			keys[2] = append(keys[2], fmt.Sprint(pair, " ", r.ArrivalNS/1e9))
			if r.Session != nil {
				shapes[*r.Session] += pair + ";"
			}
		}
		var ofSessions []string
		for _, s := range shapes {
			ofSessions = append(ofSessions, s)
		}
		for i, want := range append(keys, ofSessions) {
			w, g := slowRisk(want, 4), got.Sets[i]
			w.Known, w.Of = g.Known, g.Of
			if g != w {
				t.Fatalf("seed %d, %s: %+v, want %+v", seed, g.Known, g, w)
			}
		}
		// Without the model, which all have, nothing changes; without the input less is unique.
		all, column := got.Columns[0].Unique, map[string]float64{}
		for _, c := range got.Columns {
			column[c.Column] = c.Unique
		}
		if column["model"] != all || column["input_tokens"] > all {
			t.Errorf("seed %d: %v", seed, got.Columns)
		}
		want := make([]string, len(rows))
		for i, r := range rows {
			want[i] = fmt.Sprint(*r.OutputTokens, " ", r.ArrivalNS/60e9)
		}
		if w := slowRisk(want, 4).Unique; column["input_tokens"] != w {
			t.Errorf("seed %d: %v are unique without the input, want %v", seed, column["input_tokens"], w)
		}
	}
}

// With too many classes to count a part of them is drawn: the share that is
// unique is right within its error.
func TestLinkageSamplesClasses(t *testing.T) {
	t.Parallel()
	far, near := 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		c, exact := newClassCounter(500), map[uint64]int{}
		for range 30_000 {
			key := mixKey(seed, uint64(rng.IntN(20_000)))
			c.add(key)
			exact[key]++
		}
		alone := 0.0
		for _, n := range exact {
			if n == 1 {
				alone++
			}
		}
		r := c.risk("", "", 3)
		if len(c.have) > 500 || r.Sampled > 0.05 || r.Error == 0 {
			t.Fatalf("seed %d: %+v from %d classes", seed, r, len(c.have))
		}
		switch off := math.Abs(r.Unique - alone/30_000); {
		case off > 2*r.Error:
			far++
		case off < r.Error/2:
			near++
		}
		if math.Abs(float64(r.N)/30_000-1) > 0.25 {
			t.Errorf("seed %d: %d rows of 30000", seed, r.N)
		}
	}
	if far > 6 || near > 25 { // about 2 and 15
		t.Errorf("of 40 %d are off by more than two standard errors, %d by less than half of one", far, near)
	}
}

// slowAlone looks through all sessions.
func slowAlone(rows []linkRow, d pointDraw, key func(*linkRow) uint64) bool {
	bySession := map[int64][]uint64{}
	order := []int64{}
	for i := range rows {
		if s := rows[i].Session; s != nil {
			if bySession[*s] == nil {
				order = append(order, *s)
			}
			bySession[*s] = append(bySession[*s], key(&rows[i]))
		}
	}
	mine := bySession[order[d.session]]
	for n, s := range order {
		if uint32(n) == d.session {
			continue
		}
		rest, has := slices.Clone(bySession[s]), true
		for _, turn := range d.turns {
			at := slices.Index(rest, mine[turn])
			if has = has && at >= 0; has {
				rest = slices.Delete(rest, at, at+1)
			}
		}
		if has {
			return false
		}
	}
	return true
}

// Whether points match another session is what a look through all of them says.
func TestLinkagePoints(t *testing.T) {
	both := [2]int{}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rows := linkRows(rng, 150, 1+rng.IntN(12), 1+rng.IntN(30))
		m := linkMeasure{open: linkSource(rows), o: linkOptions{seed: seed}, limit: 1 << 20}
		if err := m.classes(t.Context()); err != nil {
			t.Fatal(err)
		}
		draws := m.draw()[:]
		for _, k := range m.knowledge() {
			points, sampled, err := m.sessionPoints(t.Context(), k, draws)
			if err != nil || sampled != 1 {
				t.Fatal(err, sampled)
			}
			for i := 0; i < len(draws); i += 37 {
				if len(draws[i].keys) != draws[i].p {
					t.Fatalf("%d keys of %d points", len(draws[i].keys), draws[i].p)
				}
				want := slowAlone(rows, draws[i], k.key)
				if got := matches(points, draws[i].keys) == 1; got != want {
					t.Fatalf("seed %d, %s, %+v: alone %v, want %v", seed, k.words, draws[i], got, want)
				}
				if want {
					both[0]++
				} else {
					both[1]++
				}
			}
		}
	}
	if min(both[0], both[1]) < 50 {
		t.Errorf("of the draws %v were alone and not", both)
	}
	// A part of the sessions makes more of them alone, never fewer.
	rows := linkRows(rand.New(rand.NewPCG(8, 8)), 4000, 6, 900)
	whole, err := measureLinkage(t.Context(), linkSource(rows), linkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	part, err := measureLinkage(t.Context(), linkSource(rows), linkOptions{limit: 400})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range part.Points {
		if p.Sampled >= 1 || p.Unique < whole.Points[i].Unique {
			t.Errorf("%+v of a part, %+v of all", p, whole.Points[i])
		}
	}
}

// linkHouse is a trace of tier internal whose sessions are as many as they differ.
func linkHouse(t *testing.T) *trace.Trace {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 4))
	var rows []trace.Request
	for s := range int64(400) {
		for turn := range int32(1 + rng.IntN(6)) {
			rows = append(rows, trace.Request{Session: trace.Ptr(s), Turn: trace.Ptr(turn), User: trace.Ptr(s % 150), Kind: "chat", Status: trace.StatusOK,
				InputTokens: int32(20 + rng.ExpFloat64()*500), OutputTokens: trace.Ptr(int32(5 + rng.ExpFloat64()*100))})
		}
	}
	for i := range rows {
		rows[i].ArrivalNS = int64(i) * 1e9
	}
	return linkTrace(t, trace.Meta{Tier: anonymize.Internal, Sessions: "source", Capture: trace.RelativeCapture(0, time.Hour)}, rows)
}

func linkTrace(t *testing.T, meta trace.Meta, rows []trace.Request) *trace.Trace {
	t.Helper()
	tr, err := trace.Private(t.TempDir(), func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := dst.Write(rows)
		return meta, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// drawnCase draws sessions from a trace by the unit, and opens them as an output; change, if
// any, spoils what comes out.
func drawnCase(t *testing.T, src *trace.Trace, unit string, change func([]trace.Request)) *Case {
	t.Helper()
	rows, err := src.Reader()
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := release.Fit(t.Context(), rows, src.Meta, release.Options{Unit: unit, Unchecked: true, Noise: dp.NewNoiseFrom(rand.NewChaCha8([32]byte{1}))})
	if err != nil {
		t.Fatal(err)
	}
	card := anonymize.SessionsCard(m.Statement(), m.Meta())
	text, _, err := card.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetCard(text); err != nil {
		t.Fatal(err)
	}
	w, err := m.Generate(release.Drawing{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "partner.parquet")
	err = trace.Create(path, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		var out trace.SliceWriter[trace.Request]
		if _, err := trace.Copy(&copies{&out}, w.Reader()); err != nil {
			return trace.Meta{}, err
		}
		if change != nil {
			change(out.Rows)
		}
		_, err := dst.Write(out.Rows)
		return w.Meta(), err
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := OpenOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return &Case{Output: o, Internal: src, Seed: 1}
}

// Rows that claim no anonymity are reported on.
func TestLinkageReports(t *testing.T) {
	src := linkHouse(t)
	for _, tier := range []string{anonymize.Internal, anonymize.Partner} {
		c := &Case{Output: &Output{Kind: kindTrace, Trace: src, Meta: map[string]string{"tier": tier}}}
		if f := linkage(t.Context(), c); f.Status != Pass || !strings.Contains(f.Why, "report only") || f.Figures["sets"] == nil {
			t.Errorf("%s: %s, %s", tier, f.Status, f.Why)
		}
	}
}

// population draws rows of people who do alike, some more than others.
func population(seed uint64, n int) []trace.Request {
	rng := rand.New(rand.NewPCG(seed, 5))
	rows := make([]trace.Request, n)
	for i := range rows {
		rows[i] = trace.Request{ArrivalNS: int64(i), User: trace.Ptr(int64(rng.IntN(n / 3))), Kind: "chat", Status: trace.StatusOK,
			InputTokens: int32(math.Exp(6 + 1.5*rng.NormFloat64())), OutputTokens: trace.Ptr(int32(math.Exp(4 + rng.NormFloat64())))}
	}
	return rows
}

// Another draw of the population passes for a synthetic trace; copies of the real
// rows fail, even when only a third are copies and each is off by a little.
func TestLinkageAttack(t *testing.T) {
	t.Parallel()
	real := population(1, 6000)
	src := linkTrace(t, trace.Meta{Tier: anonymize.Internal}, real)
	judge := func(rows []trace.Request) Finding {
		out := linkTrace(t, trace.Meta{Tier: anonymize.Public}, rows)
		return linkage(t.Context(), &Case{Output: &Output{Kind: kindTrace, Trace: out, Meta: map[string]string{"tier": anonymize.Public}}, Internal: src, Seed: 3})
	}
	for seed := range uint64(8) {
		if f := judge(population(10+seed, 6000)); f.Status != Pass {
			t.Errorf("another draw, %d: %s, %s", seed, f.Status, f.Why)
		}
	}
	if f := judge(real); f.Status != Fail {
		t.Errorf("the source itself: %s, %s", f.Status, f.Why)
	}
	near := population(20, 6000)
	for i := 0; i < len(near); i += 3 {
		near[i].InputTokens, near[i].OutputTokens = real[i].InputTokens, trace.Ptr(*real[i].OutputTokens+1)
	}
	if f := judge(near); f.Status != Fail {
		t.Errorf("a third copied: %s, %s", f.Status, f.Why)
	}
	if f := judge(population(30, 6000)[:100]); f.Status != Inconclusive {
		t.Errorf("a hundred rows: %s, %s", f.Status, f.Why)
	}
	alone := &Case{Output: &Output{Kind: kindTrace, Trace: src, Meta: map[string]string{"tier": anonymize.Public}}}
	if f := linkage(t.Context(), alone); f.Status != Skipped {
		t.Errorf("without a source: %s, %s", f.Status, f.Why)
	}
}

// The nearest place is the one that a look at all of them finds.
func TestNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 50 {
		places := func(n int) (out []place) {
			for range n {
				out = append(out, placeOf(int32(rng.IntN(40)), int32(rng.IntN(40))))
			}
			return out
		}
		a, b := places(40), places(1+rng.IntN(60))
		for i, got := range nearestEach(a, b) {
			want := math.Inf(1)
			for _, p := range b {
				want = min(want, math.Hypot(a[i].x-p.x, a[i].y-p.y))
			}
			if got != want {
				t.Fatalf("%v is %v from the nearest of %v, want %v", a[i], got, b, want)
			}
		}
	}
}

// benchmarkLinkage measures a release of so many rows, in sessions of four.
func BenchmarkLinkage(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	rows := linkRows(rng, 1_000_000, 100, 250_000)
	for b.Loop() {
		if _, err := measureLinkage(b.Context(), linkSource(rows), linkOptions{k: 11}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
}

func sliceSource(rows []trace.Request) anonymize.Source {
	return anonymize.Source{Open: func() (trace.Reader[trace.Request], error) {
		return &trace.SliceReader[trace.Request]{Rows: rows}, nil
	}}
}
