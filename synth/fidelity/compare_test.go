package fidelity

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/trace"
	"reprise/trace/doc/pagetest"
	"reprise/trace/longtest"
	"reprise/trace/profile"
	"reprise/trace/textpage"
)

// compared compares two traces in memory.
func compared(t testing.TB, meta trace.Meta, ref, cand []trace.Request) Report {
	t.Helper()
	f, err := Compare(signatureOf(t, meta, ref, Options{}), signatureOf(t, meta, cand, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func failedNames(f Report, limits Thresholds) (names []string) {
	for _, c := range Failures(f.Gate(limits)) {
		names = append(names, c.Name)
	}
	return names
}

// burst makes arrivals bursty at every scale, so that their IDC is nowhere 0.
func burst(rows []trace.Request) []trace.Request {
	rng := rand.New(rand.NewPCG(8, 8))
	var at float64
	for i := range rows {
		gap := rng.ExpFloat64() * 3e9
		if rng.IntN(3) > 0 {
			gap = rng.ExpFloat64() * 2e7
		}
		if i%100 < 50 {
			gap *= 6
		}
		at += gap
		rows[i].ArrivalNS = int64(at)
	}
	return rows
}

// A trace is at distance 0 from itself, from its mirror, and from itself
// without sessions of the source; only that it is a copy is held against it.
func TestFidelityOfIdentity(t *testing.T) {
	c := chatTrace{seed: 6, n: 900, size: 8}
	rows := burst(c.rows())
	cands := map[string][]trace.Request{"itself": rows, "mirror": freshIDs(t, rows, 7)}
	for name, cand := range cands {
		f := compared(t, c.meta(), rows, cand)
		for _, m := range f.Measures {
			switch {
			case m.Distance == nil:
				t.Errorf("%s: %s was not measured: %s", name, m.Name, m.Why)
			case slices.Contains(copyMeasures, m.Name):
				if *m.Cand < 0.99 && m.Name != uniquePairMatchName ||
					math.Abs(*m.Distance-(*m.Cand-*m.Ref)) > 1e-12 || *m.Ref > 0.3 {
					t.Errorf("%s: %s %v, chance %v", name, m.Name, *m.Cand, *m.Ref)
				}
			case *m.Distance != 0 || m.Ref != nil && *m.Ref != *m.Cand:
				t.Errorf("%s: %s is %v", name, m.Name, *m.Distance)
			}
		}
		if got := failedNames(f, DefaultThresholds(0)); !slices.Equal(got, copyMeasures) {
			t.Errorf("%s fails %v", name, got)
		}
		limits := DefaultThresholds(0)
		if err := limits.Set("copies=off"); err != nil {
			t.Fatal(err)
		}
		checks := f.Gate(limits)
		if len(Failures(checks)) > 0 || len(checks) != len(DefaultThresholds(0))-len(copyMeasures) {
			t.Errorf("%s: %v", name, checks)
		}
		for _, c := range checks {
			if c.OK == nil {
				t.Errorf("%s: %s was not applied", name, c.Name)
			}
		}
		if f.Sessions != sourceSessions {
			t.Errorf("turns are of %q sessions", f.Sessions)
		}
	}
}

// Each way to spoil a workload is caught by the check that is there for it, and
// leaves alone those that it does not touch.
func TestFidelityCatches(t *testing.T) {
	longtest.Skip(t)
	c := chatTrace{seed: 7, n: 1500, size: 8}
	ref := burst(c.rows())
	shuffled := func(rows []trace.Request, swap func(a, b *trace.Request)) {
		rand.New(rand.NewPCG(9, 9)).Shuffle(len(rows), func(i, j int) { swap(&rows[i], &rows[j]) })
	}
	for name, test := range map[string]struct {
		spoil      func([]trace.Request)
		fails, not []string
	}{
		"order of arrival": {func(rows []trace.Request) {
			shuffled(rows, func(a, b *trace.Request) {
				a.ArrivalNS, b.ArrivalNS = b.ArrivalNS, a.ArrivalNS
				*a, *b = *b, *a
			})
		}, []string{"mrc_mae", "reuse_time_ks", "turn_gap_ks"}, []string{"input_ks", "rho_input_output", "idc_log2"}},
		"lengths": {func(rows []trace.Request) {
			for i := range rows {
				rows[i].OutputTokens = trace.Ptr(*rows[i].OutputTokens * 5 / 4)
			}
		}, []string{"output_ks"}, []string{"mrc_mae", "input_ks", "rho_input_output", "categories"}},
		"outputs swapped": {func(rows []trace.Request) {
			shuffled(rows, func(a, b *trace.Request) { a.OutputTokens, b.OutputTokens = b.OutputTokens, a.OutputTokens })
		}, []string{"rho_input_output", "rho_new_output"}, []string{"output_ks", "mrc_mae"}},
		"no bursts": {func(rows []trace.Request) {
			rng := rand.New(rand.NewPCG(1, 9))
			gap := float64(rows[len(rows)-1].ArrivalNS) / float64(len(rows))
			at := 0.0
			for i := range rows {
				at += gap * rng.ExpFloat64()
				rows[i].ArrivalNS = int64(at)
			}
		}, []string{"idc_log2", "turn_gap_ks"}, []string{"mrc_mae", "categories"}},
		"a metronome": {func(rows []trace.Request) {
			for i := range rows {
				rows[i].Status = "" // with the failed ones, as many in every window: no IDC to compare
				rows[i].ArrivalNS = int64(i) * 100e6
			}
		}, []string{"idc_log2"}, []string{"input_ks"}},
		"no reuse": {func(rows []trace.Request) {
			var next uint64
			for i := range rows {
				rows[i].Blocks = slices.Clone(rows[i].Blocks)
				for j := range rows[i].Blocks {
					rows[i].Blocks[j] = next
					next++
				}
			}
		}, []string{"mrc_mae", "hit_by_block", "hit_by_token", "hit_mean_over_requests", "hit_full_blocks_only", "categories", "reuse_time_ks"}, []string{"input_ks"}},
		"one session": {func(rows []trace.Request) {
			for i := range rows {
				rows[i].Session = trace.Ptr(int64(0))
			}
		}, []string{"turns_ks", "turn_gap_ks", "categories"}, []string{"mrc_mae"}},
	} {
		cand := slices.Clone(ref)
		test.spoil(cand)
		got := failedNames(compared(t, c.meta(), ref, cand), DefaultThresholds(smallRequests))
		for _, want := range test.fails {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %s passes", name, want)
			}
		}
		for _, not := range test.not {
			if slices.Contains(got, not) {
				t.Errorf("%s: %s fails too", name, not)
			}
		}
	}
}

// What the reference lacks does not apply, and what only the candidate lacks
// fails: neither passes in silence.
func TestFidelityOfWhatIsMissing(t *testing.T) {
	c := chatTrace{seed: 8, n: 400, size: 8}
	rows := c.rows()
	bare := slices.Clone(rows)
	for i := range bare {
		bare[i].Blocks, bare[i].Session, bare[i].ThinkNS = nil, nil, nil
	}
	need := []string{"mrc_mae", "hit_by_block", "rho_hit_new", "categories", "turns_ks", "turn_gap_ks", "reuse_time_ks"}
	limits := DefaultThresholds(0)
	if err := limits.Set("think_ks=0.1"); err != nil {
		t.Fatal(err)
	}
	need = append(need, "think_ks")
	check := func(ref, cand *Signature, failed bool, why string) {
		t.Helper()
		f, err := Compare(ref, cand)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, c := range f.Gate(limits) {
			if slices.Contains(need, c.Name) {
				seen++
				if c.Value != nil || c.Failed() != failed || (c.OK == nil) == failed || !strings.HasPrefix(c.Why, why) {
					t.Errorf("%s: %v %v %q", c.Name, c.Value, c.result(), c.Why)
				}
			}
		}
		if seen != len(need) {
			t.Errorf("%d of %d checks are there", seen, len(need))
		}
		if m, _ := f.Measure("mrc_max"); m.Distance != nil || len(f.LRUCurve) != 0 {
			t.Error("a curve was compared with none")
		}
	}
	full := func() *Signature { return signatureOf(t, c.meta(), rows, Options{}) }
	none := func() *Signature { return signatureOf(t, trace.Meta{}, bare, Options{}) }
	check(full(), none(), true, "the candidate has no ")
	check(none(), full(), false, "the reference has no ")
	check(none(), none(), false, "neither has ")
}

// Turns are of the source's sessions only where both traces have them, or where
// there is nothing else to hold the candidate to.
func TestFidelitySessions(t *testing.T) {
	c := chatTrace{seed: 13, n: 300, size: 8}
	rows := c.rows()
	inferred, unknown := c.meta(), c.meta()
	inferred.Sessions, unknown.Sessions = "inferred", ""
	noBlocks, nothing := trace.Meta{Sessions: sourceSessions}, trace.Meta{}
	for _, test := range []struct {
		ref, cand trace.Meta
		want      string
		turns     bool
	}{
		{c.meta(), c.meta(), sourceSessions, true},
		{c.meta(), inferred, "inferred", true},
		{unknown, c.meta(), "inferred", true},
		{noBlocks, c.meta(), sourceSessions, true},
		{noBlocks, inferred, sourceSessions, false},
		{nothing, c.meta(), "", false},
	} {
		f, err := Compare(signatureOf(t, test.ref, rows, Options{}), signatureOf(t, test.cand, rows, Options{}))
		if err != nil {
			t.Fatal(err)
		}
		m, _ := f.Measure("turns_ks")
		if f.Sessions != test.want || (m.Distance != nil) != test.turns || m.Distance != nil && *m.Distance != 0 {
			t.Errorf("%q against %q: turns of %q sessions, %+v", test.ref.Sessions, test.cand.Sessions, f.Sessions, m)
		}
	}
}

// A pair of the reference's history is still one that must not come back.
func TestFidelityPairsOfHistory(t *testing.T) {
	row := func(s int64, in, out int32) trace.Request {
		return trace.Request{ArrivalNS: s * 1e9, InputTokens: in, OutputTokens: trace.Ptr(out)}
	}
	ref := []trace.Request{row(0, 1, 2), row(1, 3, 4), row(8, 5, 6), row(10, 7, 8)}
	cand := []trace.Request{row(0, 5, 6), row(8, 1, 2), row(9, 3, 3), row(10, 4, 4)}
	opts := Options{From: 0.5}
	f, err := Compare(signatureOf(t, trace.Meta{}, ref, opts), signatureOf(t, trace.Meta{}, cand, opts))
	if err != nil {
		t.Fatal(err)
	}
	// Shuffled, one input of 1 has the output 2 one time in three, and one of 3
	// has 4 as often.
	if m, _ := f.Measure("pair_match"); *m.Cand != 1./3 || math.Abs(*m.Ref-2./9) > 1e-15 {
		t.Errorf("match %v, chance %v", *m.Cand, *m.Ref)
	}
}

func TestThresholds(t *testing.T) {
	limits := DefaultThresholds(0)
	for s, want := range map[string]float64{"mrc_mae=0.01": 0.01, "requests=0": 0, "hit_by_block=1e-3": 0.001} {
		if err := limits.Set(s); err != nil || limits[strings.Split(s, "=")[0]] != want {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{"", "mrc", "mrc_mae", "mrc_mae=", "mrc_mae=-1", "mrc_mae=NaN", "mrc_mae=Inf", "mrc_mae=x", "=1", "think_ms=1"} {
		if err := limits.Set(s); err == nil {
			t.Errorf("%q is taken", s)
		} else if i := strings.IndexByte(s, '='); i > 0 && len(s) > i+1 && strings.Contains(err.Error(), s[i:]) {
			t.Errorf("%q is quoted: %v", s, err)
		}
	}
	if err := limits.Set("mrc_mae=off"); err != nil {
		t.Error(err)
	}
	if _, ok := limits["mrc_mae"]; ok {
		t.Error("a check is not off")
	}
	value := 0.5
	f := Report{Measures: []Measure{{Name: "mrc_mae", Ref: &value, Cand: &value, Distance: &value}}}
	for limit, ok := range map[float64]bool{0.5: true, 0.4999: false} {
		if c := f.Gate(Thresholds{"mrc_mae": limit}); len(c) != 1 || c[0].Failed() == ok {
			t.Errorf("%v at most %v: %v", value, limit, c)
		}
	}
	if c := f.Gate(Thresholds{"no_such": 1}); len(c) != 1 || !c[0].Failed() {
		t.Errorf("an unknown check does not fail: %v", c)
	}
}

// The catalogue, the measures and the documentation name the same things.
func TestMeasuresAreListed(t *testing.T) {
	c := chatTrace{seed: 9, n: 200, size: 8}
	rows := c.rows()
	var names []string
	for _, m := range compared(t, c.meta(), rows, rows).Measures {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, MeasureNames()) {
		t.Errorf("measured are %v, listed %v", names, MeasureNames())
	}
	doc, err := os.ReadFile("../../docs/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	limits, small := DefaultThresholds(smallRequests), DefaultThresholds(leastRequests)
	for _, name := range names {
		about := aboutMeasure(name).about
		line := "| `" + name + "` | " + about + " | "
		if limit, ok := limits[name]; ok {
			line += strconv.FormatFloat(limit, 'g', -1, 64)
			if small[name] != limit {
				line += " (" + strconv.FormatFloat(small[name], 'g', -1, 64) + ")"
			}
			line += " |"
		} else {
			line += "– |"
		}
		if !strings.Contains(string(doc), line) {
			t.Errorf("docs/fidelity.md lacks the line\n%s", line)
		}
	}
}

// Everything that is printed is the same each time, and fit to print.
func TestFidelityPrints(t *testing.T) {
	c := chatTrace{seed: 10, n: 500, size: 8}
	ref, cand := burst(c.rows()), burst(chatTrace{seed: 11, n: 450, size: 8}.rows())
	limits := DefaultThresholds(0)
	var texts, jsons, pages []string
	for range 3 {
		f := compared(t, c.meta(), ref, cand)
		checks := f.Gate(limits)
		var text, data, html bytes.Buffer
		for _, err := range []error{f.Page(checks).WriteText(&text, textpage.Options{Details: true}),
			json.NewEncoder(&data).Encode(f.Judged(checks)), f.Page(checks).Write(&html)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		texts, jsons, pages = append(texts, text.String()), append(jsons, data.String()), append(pages, html.String())
	}
	for _, list := range [][]string{texts, jsons, pages} {
		if list[0] != list[1] || list[0] != list[2] {
			t.Error("the same comparison prints otherwise")
		}
	}
	for _, line := range strings.Split(texts[0], "\n") {
		if utf8.RuneCountInString(line) > textpage.MaxWidth || strings.HasSuffix(line, " ") {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
	for _, name := range MeasureNames() {
		if !strings.Contains(texts[0], "│ "+name+" ") || !strings.Contains(pages[0], ">"+name+"<") {
			t.Errorf("%s is not shown", name)
		}
	}
	var answer bytes.Buffer
	f := compared(t, c.meta(), ref, cand)
	if err := f.Page(f.Gate(limits)).WriteText(&answer, textpage.Options{Width: 80, Rest: "All measures: " +
		"--details."}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(answer.String(), "\n"); n > textpage.AnswerLines || !strings.Contains(answer.String(), "FAIL") || strings.Contains(answer.String(), "not applicable") {
		t.Errorf("an answer of %d lines:\n%s", n, answer.String())
	}
	pagetest.FirstScreen(t, "fidelity", f.Page(f.Gate(limits)), " checks do not hold", "Hit ratio of an LRU prefix cache")
	var got struct {
		Schema   string
		OK       *bool
		Checks   []Check
		Measures []Measure
		LRUCurve []CurvePair `json:"lru_curve"`
	}
	if err := json.Unmarshal([]byte(jsons[0]), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != schema || got.OK == nil || *got.OK || len(got.Checks) != len(limits) || len(got.LRUCurve) != 61 ||
		got.LRUCurve[0].CapacityBlocks != 100 || got.LRUCurve[60].CapacityBlocks != curveTo/2 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(texts[0], "checks do not hold") {
		t.Errorf("the verdict is %q", texts[0][:60])
	}
}

// A page of traces without blocks, sessions or spread has nothing to plot of
// them, and still is a page.
func TestFidelityPageOfLittle(t *testing.T) {
	rows := []trace.Request{{InputTokens: 3}, {InputTokens: 3}}
	f := compared(t, trace.Meta{}, rows, rows)
	checks := f.Gate(DefaultThresholds(0))
	var html, text bytes.Buffer
	if err := f.Page(checks).Write(&html); err != nil {
		t.Fatal(err)
	}
	if err := f.Page(checks).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	// Chance finds every pair of constant lengths, and outputs that no row knows have no distribution.
	if !strings.HasPrefix(text.String(), "All 4 checks hold; 34 do not apply, prefix reuse among them.\n") {
		t.Error(text.String())
	}
}

// Traffic at a constant rate, as load generators log it, is as even a millisecond beside its times, and no other
// traffic is as even.
func TestFidelityOfEvenTraffic(t *testing.T) {
	at := func(gap func(*rand.Rand) float64) []trace.Request {
		rng := rand.New(rand.NewPCG(3, 3))
		rows := make([]trace.Request, 20000)
		for i, now := 0, 0.0; i < len(rows); i++ {
			now += gap(rng)
			rows[i] = trace.Request{ArrivalNS: int64(now * 1e9), InputTokens: 550, OutputTokens: trace.Ptr[int32](150)}
		}
		return rows
	}
	const gap = 0.3
	constant := at(func(*rand.Rand) float64 { return gap })
	measures := []string{"idc_log2", "rate_idc_log2", "token_cv_log2"}
	for name, test := range map[string]struct {
		gap  func(*rand.Rand) float64
		even bool
	}{
		"constant":   {func(*rand.Rand) float64 { return gap }, true},
		"jittered":   {func(r *rand.Rand) float64 { return gap * (0.99 + 0.02*r.Float64()) }, true},
		"by chance":  {func(r *rand.Rand) float64 { return gap * r.ExpFloat64() }, false},
		"in couples": {func(r *rand.Rand) float64 { return gap * 2 * float64(r.IntN(2)) }, false},
	} {
		failed := failedNames(compared(t, trace.Meta{}, constant, at(test.gap)), DefaultThresholds(1<<20))
		for _, measure := range measures {
			if slices.Contains(failed, measure) == test.even {
				t.Errorf("%s: %v fail", name, failed)
			}
		}
	}
}

// Where hardly a request finds anything behind a router, a hit more is no other gain of affinity; where sessions are
// kept on a replica and their turns find most of their prompt, losing that is.
func TestStickyGainOfFewHits(t *testing.T) {
	for _, test := range []struct {
		ref, cand [2]float64 // hit ratios of round-robin and sticky
		same      bool
	}{
		{[2]float64{0, 0}, [2]float64{0, 0.001}, true},
		{[2]float64{0.0007, 0.0153}, [2]float64{0.0014, 0.0153}, true},
		{[2]float64{0, 0.6}, [2]float64{0.0007, 0.6}, true},
		{[2]float64{0, 0.6}, [2]float64{0, 0.2}, false},
		{[2]float64{0.1, 0.6}, [2]float64{0.1, 0.2}, false},
		{[2]float64{0.0007, 0.5}, [2]float64{0.03, 0.5}, false},
	} {
		gain := func(hits [2]float64) *float64 {
			var of routeRatios
			of[0][gainReplicas][gainCapacity], of[1][gainReplicas][gainCapacity] = hits[0], hits[1]
			return of.stickyGain()
		}
		far := *relative(gain(test.ref), gain(test.cand))
		if (far < DefaultThresholds(1 << 20)["route_sticky_gain"]) != test.same {
			t.Errorf("%v and %v are %v apart", test.ref, test.cand, far)
		}
	}
}

// Scales that the clock blurs are left out and said.
func TestFidelityOfTicks(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	var rows []trace.Request
	for tick := range 1200 {
		for range rng.IntN(8) {
			rows = append(rows, trace.Request{ArrivalNS: int64(tick) * 3e9, InputTokens: 1 + rng.Int32N(9)})
		}
	}
	f := compared(t, trace.Meta{}, rows, rows)
	var used []float64
	for _, p := range f.IDC {
		if p.LeftOut == "" {
			used = append(used, p.WindowS)
		}
	}
	if !slices.Equal(used, []float64{30, 60, 120, 300}) {
		t.Errorf("scales %v are compared", used)
	}
	if i := slices.IndexFunc(f.Warnings, func(w profile.Warning) bool { return w.Code == "idc_scales" }); i < 0 ||
		!strings.Contains(f.Warnings[i].Message, "0.1, 0.5, 1, 5, 10 s is left out: below 10 ticks") {
		t.Errorf("%v", f.Warnings)
	}
}

// The published conversation trace, its prompts in another order: lengths stay,
// and the mean error of the curve is the 0.04 that says "no temporal locality".
func TestFidelityOfShuffledMooncake(t *testing.T) {
	longtest.Skip(t)
	rows := conversation(t)
	meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail}
	cand := slices.Clone(rows)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(cand), func(i, j int) { cand[i], cand[j] = cand[j], cand[i] })
	for i := range cand {
		cand[i].ArrivalNS = rows[i].ArrivalNS
	}
	f := compared(t, meta, rows, cand)
	for name, want := range map[string]struct{ ref, distance, within float64 }{
		"mrc_mae":                {0.170, 0.043, 0.004},
		"hit_by_block":           {0.3664, 0, 0.00005},
		"hit_by_token":           {0.3736, 0, 0.00005},
		"hit_mean_over_requests": {0.3843, 0.0156, 0.005},
		"hit_full_blocks_only":   {0.3819, 0, 0.00005},
		"rho_input_output":       {0.072, 0, 0.0005},
		"iat_cv":                 {3.034, 0, 0.0005},
		"category_template":      {0.677, 0.054, 0.02},
		"pair_match":             {0.041, 0.959, 0.002}, // what two halves have in common; dealing gives 0.030
	} {
		m, ok := f.Measure(name)
		if !ok || m.Distance == nil || math.Abs(*m.Ref-want.ref) > want.within || math.Abs(*m.Distance-want.distance) > want.within {
			t.Errorf("%s: %+v, want %+v", name, m, want)
		}
	}
	if got := failedNames(f, DefaultThresholds(0)); slices.Contains(got, "input_ks") || !slices.Contains(got, "mrc_mae") {
		t.Errorf("fails %v", got)
	}
}

func BenchmarkSignature(b *testing.B) {
	rows := conversation(b)
	meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail}
	b.ReportAllocs()
	for b.Loop() {
		tallyOf(b, signatureOf(b, meta, rows, Options{}))
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// The text prints a share as every other text and page does.
func TestFiguresOfMeasures(t *testing.T) {
	share := 0.123456
	for form, want := range map[measureForm]string{asPercent: "12.3 %", asNumber: "0.123", asRatio: "0.123"} {
		if got := form.print(&share); got != want {
			t.Errorf("form %v: %s, want %s", form, got, want)
		}
	}
}

// The comparison of the conversation trace with itself, beside BenchmarkSignature.
func BenchmarkCompare(b *testing.B) {
	rows := conversation(b)
	meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail}
	s, other := signatureOf(b, meta, rows, Options{}), signatureOf(b, meta, rows, Options{})
	tallyOf(b, s)
	tallyOf(b, other)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compare(s, other); err != nil {
			b.Fatal(err)
		}
	}
}
