package audit

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/sample"
)

// Figures of linkage as people read them.
func TestWordsOfLinkage(t *testing.T) {
	for want, got := range map[string]string{
		"5 rows a side; synthetic precision 0.100, recall 0.200; held out precision 0.300, recall 0.400": attackResult{Rows: 5,
			Synthetic: attackScore{Precision: 0.1, Recall: 0.2}, HeldOut: attackScore{Precision: 0.3, Recall: 0.4}}.String(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The measurement of five rows, by hand.
func TestLinkageOfFiveRows(t *testing.T) {
	id := func(n int64) *int64 { return &n }
	turn := func(n int32) *int32 { return &n }
	rows := []linkRow{
		{ArrivalNS: 0, Session: id(7), Turn: turn(0), Model: "m", InputTokens: 10, OutputTokens: trace.Ptr[int32](1)},
		{ArrivalNS: 61e9, Session: id(7), Turn: turn(1), ThinkNS: id(0), Model: "m", InputTokens: 20, OutputTokens: trace.Ptr[int32](1)},
		{ArrivalNS: 62e9, Session: id(3), Turn: turn(0), Model: "m", InputTokens: 10, OutputTokens: trace.Ptr[int32](1)},
		{ArrivalNS: 63e9, Session: id(3), Turn: turn(1), Model: "m", InputTokens: 20, OutputTokens: trace.Ptr[int32](1)},
		{ArrivalNS: 63.5e9, Model: "m", Class: trace.Ptr("c"), Category: "cold", InputTokens: 20, OutputTokens: trace.Ptr[int32](2)},
	}
	got, err := measureLinkage(t.Context(), linkSource(rows), linkOptions{k: 2, seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	risk := func(known, of string, n, classes, smallest int64, unique, below float64) setRisk {
		return setRisk{Known: known, Of: of, N: n, Classes: classes, Unique: unique, K: 2, BelowK: below, Smallest: smallest,
			MaxRisk: 1 / float64(smallest), Average: float64(classes) / float64(n), Sampled: 1}
	}
	sets := []setRisk{
		risk("input and output tokens", "requests", 5, 3, 1, 1./5, 1./5),
		risk("input and output tokens, minute", "requests", 5, 4, 1, 3./5, 3./5), // rows 1 and 3 are of the second minute
		risk("input and output tokens, second", "requests", 5, 5, 1, 1, 1),
		risk("the lengths of all turns", "sessions", 2, 1, 2, 0, 0),
	}
	if !reflect.DeepEqual(got.Sets, sets) {
		t.Errorf("%+v, want %+v", got.Sets, sets)
	}
	// Rows 1 and 3 differ by the pause alone, rows 0 and 2 by the minute alone.
	columns := []columnRisk{{"", 1, 1}, {"think_ns", 3. / 5, 1}, {"turn", 1, 1}, {"category", 1, 1}, {"class", 1, 1}, {"model", 1, 1},
		{"arrival_ns, by the minute", 3. / 5, 1}, {"output_tokens", 1, 1}, {"input_tokens", 1, 1}}
	if !reflect.DeepEqual(got.Columns, columns) {
		t.Errorf("%+v, want %+v", got.Columns, columns)
	}
	var points []pointRisk
	for i, known := range []string{"input and output tokens", "input and output tokens, minute", "input and output tokens, second"} {
		for p := 1; p <= 2; p++ {
			one := got.Points[2*i+p-1]
			// By lengths no session is alone. By the minute that of session 7's first
			// row is, and that of session 3's; the second rows are of one minute.
			low, high := [3]float64{0, 0.4, 1}[i], [3]float64{0, 0.6, 1}[i]
			if p == 2 && i == 1 {
				low, high = 1, 1
			}
			if one.Unique < low || one.Unique > high {
				t.Errorf("%+v, want %v to %v", one, low, high)
			}
			lo, hi := sample.ClopperPearson(one.Unique, 1000, 0.95)
			points = append(points, pointRisk{Known: known, Points: p, Draws: 1000, Unique: one.Unique, Low: lo, High: hi, Sampled: 1})
		}
	}
	if !reflect.DeepEqual(got.Points, points) {
		t.Errorf("%+v, want %+v", got.Points, points)
	}
	none, err := measureLinkage(t.Context(), linkSource(nil), linkOptions{k: 2})
	if err != nil || none.Points != nil || len(none.Sets) != 3 || !reflect.DeepEqual(none.Sets[0], setRisk{Known: lengthsKnown, Of: "requests", K: 2, Sampled: 1}) {
		t.Errorf("of no rows: %+v, %v", none, err)
	}
}

// What is not there differs from 0, and each column has its own place.
func TestColumnsOfALinkRow(t *testing.T) {
	id := func(n int64) *int64 { return &n }
	none := (&linkRow{}).columns(nil)
	if want := []uint64{0, unknownLength, 0, ofWord(""), ofWord(""), ofWord(""), 0, 0}; !slices.Equal(none, want) {
		t.Errorf("%v, want %v", none, want)
	}
	all := (&linkRow{ArrivalNS: int64(3*time.Minute) - 1, Turn: trace.Ptr(int32(0)), ThinkNS: id(8), Model: "m", Class: trace.Ptr("c"), Category: "k", InputTokens: 5, OutputTokens: trace.Ptr[int32](6)}).columns(none)
	if want := []uint64{5, 6, 2, ofWord("m"), ofWord("c"), ofWord("k"), 1, 9}; !slices.Equal(all, want) || len(all) != len(linkColumns) {
		t.Errorf("%v, want %v", all, want)
	}
}

// Classes of 500 keys at most are kept whole; one more halves them.
func TestClassesAtTheLimit(t *testing.T) {
	count := func(distinct, times, limit int) *classCounter {
		c := newClassCounter(limit)
		for range times {
			for i := range distinct {
				c.add(mixKey(1, uint64(i)))
			}
		}
		return c
	}
	want := setRisk{Known: "x", Of: "y", N: 1500, Classes: 500, K: 3, Smallest: 3, MaxRisk: 1. / 3, Average: 1. / 3, Sampled: 1}
	if got := count(500, 3, 500).risk("x", "y", 3); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want.K, want.BelowK = 4, 1
	if got := count(500, 3, 500).risk("x", "y", 4); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	c := count(501, 3, 500)
	got := c.risk("x", "y", 3)
	low := 0 // keys that begin with a 0
	for i := range 501 {
		if mixKey(1, uint64(i))>>63 == 0 {
			low++
		}
	}
	if got.Sampled != 0.5 || len(c.have) != low || got.N != int64(6*low) || got.Classes != int64(2*low) || got.Error != 0 || got.Average != 1./3 {
		t.Errorf("%+v of %d classes, want %d", got, len(c.have), low)
	}
	// The error of a share of a sample, by its formula: two classes of one row and
	// one of two, of which a half was drawn.
	c = &classCounter{limit: 5, shift: 1, have: []classCount{{1, 1}, {2, 2}, {3, 1}}}
	got = c.risk("x", "y", 2)
	se := math.Sqrt(2*0.5*0.5+1*1) / 4 // (1 - 0.5·1)² twice, (0.5·2)²
	if want := (setRisk{Known: "x", Of: "y", N: 8, Classes: 6, Unique: 0.5, K: 2, BelowK: 0.5, Smallest: 1, MaxRisk: 1, Average: 0.75, Sampled: 0.5, Error: se}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Sessions are drawn among those that have so many rows, and their rows once each.
func TestDrawsOfSessions(t *testing.T) {
	m := linkMeasure{turns: []uint32{1, 4, 2}, o: linkOptions{seed: 3}}
	n := map[int]int{}
	seen := map[[2]uint32]bool{} // session and points
	for _, d := range m.draw() {
		n[d.p]++
		if seen[[2]uint32{d.session, uint32(d.p)}] = true; int(m.turns[d.session]) < d.p || len(d.turns) != d.p {
			t.Fatalf("%+v", d)
		}
		sorted := slices.Sorted(slices.Values(d.turns))
		if len(slices.Compact(sorted)) != d.p || sorted[len(sorted)-1] >= m.turns[d.session] {
			t.Fatalf("%+v", d)
		}
	}
	if !reflect.DeepEqual(n, map[int]int{1: 1000, 2: 1000, 3: 1000, 4: 1000}) || len(seen) != 3+2+1+1 {
		t.Errorf("%v draws of %v", n, seen)
	}
	m.turns = []uint32{1, 1}
	if got := m.draw(); len(got) != 1000 {
		t.Errorf("%d draws of sessions of one row", len(got))
	}
	m.turns = nil
	if got := m.draw(); got != nil {
		t.Errorf("%d draws of no sessions", len(got))
	}
}

// How many sessions have the same rows, as often: by hand.
func TestMatches(t *testing.T) {
	points := []sessionPoint{ // by key, then by session
		{10, 0}, {10, 0}, {10, 1}, {10, 2}, {10, 3}, {10, 3},
		{20, 0}, {20, 1}, {20, 3},
		{30, 0}, {30, 2},
		{40, 0},
	}
	for _, c := range []struct {
		keys []uint64
		want int
	}{
		{[]uint64{10}, 2}, {[]uint64{40}, 1}, {[]uint64{30}, 2}, {[]uint64{30, 20}, 1}, {[]uint64{10, 10, 30}, 1}, {[]uint64{10, 10, 10}, 0},
		{[]uint64{10, 10}, 2}, {[]uint64{10, 20, 10}, 2}, {[]uint64{40, 10}, 1}, {[]uint64{50}, 0}, {[]uint64{40, 40}, 0},
	} {
		if got := matches(points, slices.Clone(c.keys)); got != c.want {
			t.Errorf("%v: %d, want %d", c.keys, got, c.want)
		}
	}
}

// How near rows are is a share of each side with its interval, and both together as
// the harmonic mean.
func TestScoreOfNearness(t *testing.T) {
	b := bothWays{rows: []float64{0, 1, 2, 3}, real: []float64{0.5, 1, 1, 5, 9}}
	pLow, pHigh := sample.ClopperPearson(float64(2)/4, 4, 0.95)
	rLow, rHigh := sample.ClopperPearson(float64(3)/5, 5, 0.95)
	f := func(a, b float64) float64 { return 2 / (1/a + 1/b) }
	got, want := b.score(1), attackScore{0.5, 0.6, f(0.5, 0.6), f(pLow, rLow), f(pHigh, rHigh)}
	for i, d := range []float64{got.Precision - want.Precision, got.Recall - want.Recall, got.F1 - want.F1, got.Low - want.Low, got.High - want.High} {
		if math.Abs(d) > 1e-12 {
			t.Errorf("figure %d of %+v, want %+v", i, got, want)
		}
	}
	if got := b.score(-1); got.Precision != 0 || got.Recall != 0 || got.F1 != 0 || got.Low != 0 {
		t.Errorf("nearer than any: %+v", got)
	}
	for in, want := range map[[2]int32]place{{0, 0}: {0, 0}, {1, 3}: {1, 2}, {-5, 7}: {0, 3}, {7, -1}: {3, 0}} {
		if got := placeOf(in[0], in[1]); got != want {
			t.Errorf("%v is at %v, want %v", in, got, want)
		}
	}
	for _, c := range []struct {
		low, high float64
		want      bool
	}{{0.5, 0.4, true}, {0.4, 0.4, false}, {0.3, 0.4, false}} {
		if a := (attackResult{Synthetic: attackScore{Low: c.low, High: 1}, HeldOut: attackScore{High: c.high}}); a.Beaten() != c.want {
			t.Errorf("%+v", c)
		}
	}
}

// The first half of the rows chooses the distance, and the second half is judged by
// it. Copies are at distance 0; what is off by a fixed step shows at that step.
func TestDistanceOfTheAttack(t *testing.T) {
	const n = 401
	var real, copied, moved, held []place
	for i := range n { // a grid of places that are a step of 4 apart
		p := place{float64(4 * (i % 20)), float64(4 * (i / 20 % 20))}
		real, copied = append(real, p), append(copied, p)
		moved = append(moved, place{p.x + 0.25, p.y})
		held = append(held, place{p.x + 2, p.y + 2})
	}
	all := func(shown int) attackScore {
		lo, _ := sample.ClopperPearson(float64(shown)/201, 201, 0.95)
		return attackScore{1, 1, 1, lo, 1}
	}
	_, hi := sample.ClopperPearson(float64(0)/201, 201, 0.95)
	none := attackScore{High: hi}
	for name, c := range map[string]struct {
		synthetic []place
		distance  float64
	}{"copies": {copied, 0}, "a quarter of an octave off": {moved, 0.25}} {
		got := linkAttack(c.synthetic, real, held)
		want := attackResult{Rows: 201, Distance: c.distance, Synthetic: all(201), HeldOut: none}
		for i, d := range []float64{got.Synthetic.Low - want.Synthetic.Low, got.HeldOut.High - want.HeldOut.High} {
			if math.Abs(d) > 1e-12 {
				t.Errorf("%s: interval %d: %+v, want %+v", name, i, got, want)
			}
		}
		got.Synthetic.Low, got.HeldOut.High = want.Synthetic.Low, want.HeldOut.High
		if got != want || !got.Beaten() {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	// Only late rows are near: the distance of the first half does not fit them.
	late := slices.Clone(held)
	copy(late[200:], real[200:])
	if got := linkAttack(late, real, held); got.Synthetic.F1 != 1 && got.Distance != 0 {
		t.Errorf("copies in the second half alone: %+v", got)
	}
}

// A sample has each row with the same chance, and never more than its bound.
func TestSampleOfRows(t *testing.T) {
	s := sampler{rng: rand.New(rand.NewPCG(1, 1))}
	const rows = 50_000
	for i := range rows {
		if err := s.add(t.Context(), &trace.Request{InputTokens: int32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.kept) != 40_000 || s.seen != rows {
		t.Fatalf("%d of %d rows", len(s.kept), s.seen)
	}
	late := 0
	for _, p := range s.kept {
		if math.Exp2(p.x)-1 >= 39_999.5 {
			late++
		}
	}
	if late < 7800 || late > 8200 { // 8000 of the last 10,000, with a standard error of 36
		t.Errorf("%d of the last 10,000 rows", late)
	}
	few := sampler{rng: rand.New(rand.NewPCG(1, 1)), kept: []place{{1, 0}, {2, 0}, {3, 0}}}
	seen := map[float64]bool{}
	for range 60 {
		got := few.first(2)
		if len(got) != 2 || got[0] == got[1] {
			t.Fatal(got)
		}
		seen[got[0].x] = true
	}
	if len(seen) != 3 || len(few.kept) != 3 {
		t.Errorf("the first of two are %v of %v", seen, few.kept)
	}
}

// Nobody is on both sides of the attack: rows of one user, and those of one session
// where no user is named, are all linked to or all held out.
func TestSidesOfTheAttack(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(i int64) (user, session *int64)
		want string
	}{
		"one user":       {func(i int64) (*int64, *int64) { return trace.Ptr(int64(4)), &i }, "too few requests to tell: it takes 200 on each side"},
		"one session":    {func(i int64) (*int64, *int64) { return nil, trace.Ptr(int64(4)) }, "too few requests to tell: it takes 200 on each side"},
		"nobody":         {func(i int64) (*int64, *int64) { return nil, nil }, ""},
		"a session each": {func(i int64) (*int64, *int64) { return nil, &i }, ""},
		"a user each":    {func(i int64) (*int64, *int64) { return &i, trace.Ptr(int64(4)) }, ""},
	} {
		rng := rand.New(rand.NewPCG(3, 3))
		rows := make([]trace.Request, 1000)
		for i := range rows {
			rows[i].InputTokens, rows[i].OutputTokens = int32(rng.IntN(1000)), trace.Ptr(int32(rng.IntN(1000)))
			rows[i].User, rows[i].Session = c.of(int64(i))
		}
		c2 := &Case{Output: &Output{Trace: linkTrace(t, trace.Meta{}, rows), Meta: map[string]string{"tier": anonymize.Public}}, Internal: linkTrace(t, trace.Meta{}, rows), Seed: 2}
		f := c2.nearRows(t.Context(), sourceOf(c2.Internal), Figures{})
		if c.want != "" {
			if !reflect.DeepEqual(f, inconclusive(Figures{"rows": 0}, "%s", c.want)) {
				t.Errorf("%s: %+v", name, f)
			}
			continue
		}
		a, ok := f.Figures["attack"].(attackResult)
		if f.Status != Fail || !ok || a.Rows < 220 || a.Rows > 250 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// At least 200 are on each side: 400 rows of nobody and 200 synthetic ones, or one less.
	rng := rand.New(rand.NewPCG(4, 4))
	rows := make([]trace.Request, 600)
	for i := range rows {
		rows[i].InputTokens = int32(rng.IntN(1000))
	}
	for n, want := range map[int]Status{199: Inconclusive, 200: Fail} {
		c := &Case{Output: &Output{Trace: linkTrace(t, trace.Meta{}, rows[:n])}, Seed: 2}
		f := c.nearRows(t.Context(), sliceSource(rows), Figures{})
		if (f.Status == Inconclusive) != (want == Inconclusive) || want == Inconclusive && f.Figures["rows"] != 199 {
			t.Errorf("%d synthetic rows: %+v", n, f)
		}
	}
	if f := linkage(t.Context(), &Case{Output: &Output{Meta: map[string]string{"tier": anonymize.Public}}}); !reflect.DeepEqual(f,
		skipped("drawn rows belong to no person: it needs the source log (--source) or a trace of tier internal "+
			"(--internal)")) {
		t.Errorf("without a source: %+v", f)
	}
}
