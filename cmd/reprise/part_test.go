package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/longtest"
)

// modesWorkload imports and mirrors a log of prompts that share prefixes, 20 ms
// apart.
func modesWorkload(t *testing.T, rows int) string {
	t.Helper()
	dir := t.TempDir()
	log, source, workload := filepath.Join(dir, "log.jsonl"), filepath.Join(dir, "t.parquet"), filepath.Join(dir, "w.parquet")
	if err := os.WriteFile(log, []byte(sharingLog(rows)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", log, "-o", source, "--quiet")
	must(t, "synth", "--mirror", source, "-o", workload, "--seed", "3")
	return workload
}

// modesHits adds up what the endpoint had of the prompts of results, and what was
// known.
func modesHits(t *testing.T, results []result.Result) (measured, known float64) {
	t.Helper()
	var input, hit, expected float64
	for _, r := range results {
		if r.Error != "" || r.Input == nil || r.Known == nil {
			t.Fatalf("row %d: %+v", r.RowID, r)
		}
		input += float64(*r.Input)
		expected += float64(*r.Known)
		if r.Cached != nil {
			hit += float64(*r.Cached)
		}
	}
	return hit / input, expected / input
}

// modesOverlap is the share of the prompt tokens that were sent while a request
// before them had no answer.
func modesOverlap(results []result.Result) float64 {
	var input, over float64
	var done int64
	for _, r := range results {
		input += float64(*r.Input)
		if *r.SentNS < done {
			over += float64(*r.Input)
		}
		done = max(done, *r.DoneNS)
	}
	return over / input
}

// A window behind a primed cache hits as its rows do in a replay of the whole, row
// for row; a smaller cache hits less, and none least.
func TestModesPrimedWindow(t *testing.T) {
	long(t)
	workload := modesWorkload(t, 200)
	var whole, primed []result.Result
	var run result.Run
	var said string
	// A busy machine may send requests in another order, and then their hits are
	// others: a measurement in which many may have been is taken again.
	for range 3 {
		_, whole, _ = replayed(t, workload, "--speed", "4")
		whole = whole[120:]
		run, primed, said = replayed(t, workload, "--speed", "4", "--start", "2.4s")
		if modesOverlap(whole)+modesOverlap(primed) < 0.1 {
			break
		}
	}
	want, wantKnown := modesHits(t, whole)
	if len(primed) != 80 || !strings.Contains(said, "a cache of 1000000 tokens (--set prime-tokens)") {
		t.Fatalf("%d results\n%s", len(primed), said)
	}
	for i, r := range primed {
		if r.RowID != whole[i].RowID || r.DueNS != whole[i].DueNS-0.6e9 || *r.Known != *whole[i].Known {
			t.Errorf("row %d due %d knows %d; in the whole, row %d due %d knows %d", r.RowID, r.DueNS, *r.Known, whole[i].RowID, whole[i].DueNS, *whole[i].Known)
		}
	}
	got, known := modesHits(t, primed)
	if math.Abs(got-want) > 0.005 || known != wantKnown || want < 0.2 {
		t.Errorf("hit ratio %.4f of the window, %.4f of its rows in the whole; known %.4f and %.4f", got, want, known, wantKnown)
	}
	s := run.Selection
	if s == nil || s.Rows != 80 || *s.OfRows != 200 || s.FromNS != 2.4e9 || s.Prime == nil || s.Prime.Failed != 0 || s.Prime.Prompts == 0 || s.Prime.CapacityTokens != 1_000_000 {
		t.Fatalf("selection %+v", s)
	}
	less := func(limit float64, args ...string) float64 {
		run, results, _ := replayed(t, workload, append([]string{"--speed", "4", "--start", "2.4s"}, args...)...)
		got, known := modesHits(t, results)
		if got > limit-0.01 || math.Abs(got-known) > 0.03 || len(results) != 80 {
			t.Errorf("%v: hit ratio %.4f, known %.4f, want less than %.4f", args, got, known, limit)
		}
		if s := run.Selection; args[1] == "prime=none" && s.Prime != nil || args[1] != "prime=none" && s.Prime.LiveTokens > 40_000 {
			t.Errorf("%v: %+v", args, s.Prime)
		}
		return got
	}
	less(less(got, "--set", "prime-tokens=40000"), "--set", "prime=none")
}

// A parent before the window is not waited for: the turn is due when it was.
func TestModesWindowCutsSessions(t *testing.T) {
	long(t)
	dir := t.TempDir()
	source, workload := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "w.parquet")
	must(t, "import", shared(t, "sharegpt_sample.json"), "--arrivals", "poisson:20", "-o", source, "--quiet")
	must(t, "synth", "--mirror", source, "-o", workload)
	w, err := trace.Open(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r, err := w.Reader()
	rows := rowsOf(t, r, err)
	run, results, _ := replayed(t, workload, "--speed", "1000", "--start", "60s", "--set", "prime=none")
	if run.Timing != result.Causal || len(results) == 0 || int64(len(results)) != run.Selection.Rows {
		t.Fatalf("%d results, run %+v", len(results), run)
	}
	cut, kept := 0, 0
	for _, r := range results {
		row := &rows[r.RowID]
		inside := false
		for _, p := range row.Parents {
			inside = inside || rows[p].ArrivalNS >= 60e9
		}
		switch {
		case row.ArrivalNS < 60e9:
			t.Fatalf("row %d is before the window", r.RowID)
		case inside:
			kept++
		default:
			if len(row.Parents) > 0 {
				cut++
			}
			if d := r.DueNS - (row.ArrivalNS-60e9)/1000; d > 1 || d < -1 {
				t.Errorf("row %d is due at %d, recorded at %d", r.RowID, r.DueNS, row.ArrivalNS)
			}
		}
	}
	if cut == 0 || kept == 0 {
		t.Errorf("%d turns lost their parents, %d kept them", cut, kept)
	}
}

// A sample has whole sessions and says how it differs from the whole.
func TestModesSample(t *testing.T) {
	dir := t.TempDir()
	source, workload := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "w.parquet")
	must(t, "import", shared(t, "sharegpt_sample.json"), "--arrivals", "poisson:20", "-o", source, "--quiet")
	must(t, "synth", "--mirror", source, "-o", workload)
	w, err := trace.Open(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r, err := w.Reader()
	rows := rowsOf(t, r, err)
	run, results, said := replayed(t, workload, "--speed", "1000", "--sample", "25%")
	whole, part := map[int64]int{}, map[int64]int{}
	for _, r := range rows {
		whole[*r.Session]++
	}
	for _, r := range results {
		part[*rows[r.RowID].Session]++
	}
	for s, n := range part {
		if n != whole[s] {
			t.Errorf("session %d: %d of %d turns", s, n, whole[s])
		}
	}
	s := run.Selection.Sample
	if s == nil || s.Share != 0.25 || s.Sessions != int64(len(part)) || s.OfSessions != int64(len(whole)) || math.Abs(float64(len(part))-0.25*float64(len(whole))) > 0.5 || s.Rows != int64(len(results)) {
		t.Fatalf("%d of %d sessions, %+v", len(part), len(whole), s)
	}
	names := map[string]result.Measure{}
	for _, m := range s.Measures {
		names[m.Name] = m
	}
	rate := names["rate"]
	if rate.Whole == nil || *rate.Sample >= 0.5**rate.Whole || names["input_ks"].Distance == nil || names["turns_ks"].Distance == nil || !strings.Contains(said, "hit ratio by token") {
		t.Errorf("%+v\n%s", s.Measures, said)
	}
	again, _, _ := replayed(t, workload, "--speed", "1000", "--sample", "0.25", "--max-requests", "7")
	if again.Selection.Rows != 7 || again.Requests != 7 || again.Selection.Sample.Rows != s.Rows || again.Selection.MaxRequests != 7 {
		t.Errorf("%+v", again.Selection)
	}
}

// Every round of a loop is as the first: with prompts of its own it knows as much,
// and with the same prompts it finds all of them. Results are told apart by round
// and row.
func TestModesLoop(t *testing.T) {
	long(t)
	workload := modesWorkload(t, 60)
	for _, same := range []bool{false, true} {
		args := []string{"--speed", "4", "--loop", "3"}
		if same {
			args = append(args, "--set", "loop-same")
		}
		run, results, _ := replayed(t, workload, args...)
		if len(results) != 180 || run.Requests != 180 || run.Selection.Loop.Rounds != 3 || run.Selection.Loop.Same != same || run.Selection.Loop.PeriodNS != 1.2e9 {
			t.Fatalf("%d results, %+v", len(results), run.Selection)
		}
		for i, r := range results {
			first := results[i%60]
			if r.RowID != int64(i%60) || r.Round != int32(i/60) || r.DueNS != first.DueNS+int64(i/60)*300e6 {
				t.Fatalf("result %d: row %d of round %d, due %d", i, r.RowID, r.Round, r.DueNS)
			}
			if want := *first.Known; !same && *r.Known != want || same && i >= 60 && *r.Known != r.WantInput {
				t.Errorf("row %d of round %d knows %d of %d, in the first round %d", r.RowID, r.Round, *r.Known, r.WantInput, want)
			}
		}
		one, _ := modesHits(t, results[:60])
		last, known := modesHits(t, results[120:])
		if !same && math.Abs(last-one) > 0.01 || same && (last < 0.95 || known != 1) {
			t.Errorf("same %v: hit ratio %.3f in the first round, %.3f in the last", same, one, last)
		}
	}
	run, results, _ := replayed(t, workload, "--speed", "4", "--loop", "1s")
	if len(results) < 190 || len(results) > 200 || run.EndedEarly != "" || run.Selection.Loop.Rounds != 0 {
		t.Errorf("%d results, %+v", len(results), run)
	}
}

// Later rounds have sessions and shared tails as the first has.
func TestModesLoopOfSessions(t *testing.T) {
	dir := t.TempDir()
	source, workload := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "w.parquet")
	must(t, "import", shared(t, "sharegpt_sample.json"), "--arrivals", "poisson:2", "-o", source, "--quiet")
	must(t, "synth", "--mirror", source, "-o", workload, "--share-tails")
	w, err := trace.Open(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	src, err := w.Reader()
	rows := rowsOf(t, src, err)[:150]
	run, results, said := replayed(t, workload, "--speed", "1000", "--max-requests", "150", "--loop", "2", "--details")
	tails := regexp.MustCompile(`shared tails: [1-9]`)
	if run.Timing != result.Causal || len(results) != 300 || !tails.MatchString(said) {
		t.Fatalf("%d results, run %+v\n%s", len(results), run, said)
	}
	turns := 0
	for i, r := range results {
		row, round := &rows[i%150], results[i/150*150:]
		if *r.Known != *results[i%150].Known {
			t.Errorf("row %d of round %d knows %d, in the first %d", r.RowID, r.Round, *r.Known, *results[i%150].Known)
		}
		if len(row.Parents) == 0 || row.ThinkNS == nil {
			continue
		}
		turns++
		if want := *round[row.Parents[0]].DoneNS + *row.ThinkNS/1000; r.DueNS-want > 1 || want-r.DueNS > 1 {
			t.Errorf("row %d of round %d is due at %d, want %d", r.RowID, r.Round, r.DueNS, want)
		}
	}
	if turns < 20 {
		t.Errorf("only %d turns", turns)
	}
}

// dryOf runs a dry run without an endpoint.
func dryOf(t *testing.T, workload string, args ...string) runs.Plan {
	t.Helper()
	out, errs, code := reprise(t, append([]string{"replay", workload, "--dry-run", "--json", "--url", "http://127.0.0.1:1"}, args...)...)
	if code != cli.Good {
		t.Fatalf("%v: exit code %d: %s", args, code, errs)
	}
	var d runs.Plan
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// A dry run says what a replay then sends: requests, tokens, due times, and the
// hit ratio that is expected.
func TestModesDryRun(t *testing.T) {
	long(t)
	workload := modesWorkload(t, 60)
	ways := [][]string{
		{"--speed", "16", "--start", "400ms", "--end", "1s"}, {"--rate", "gamma:600,cv=2"}, {"--concurrency", "4", "--loop", "2"},
	}
	if longtest.On() {
		ways = append(ways, []string{"--speed", "16"}, []string{"--speed", "16", "--sample", "0.5", "--loop", "2"},
			[]string{"--rate", "ramp:50-400,500ms"}, []string{"--rate", "step:50-200-400,100ms", "--max-requests", "50"},
			[]string{"--rate", "poisson:200", "--duration", "200ms"})
	}
	for _, args := range ways {
		run, results, _ := replayed(t, workload, args...)
		d := dryOf(t, workload, append(args, "--set", "assume=itl=0s")...)
		var input, output, last int64
		for _, r := range results {
			input, output, last = input+int64(r.WantInput), output+int64(*r.WantOutput), max(last, r.DueNS)
		}
		if d.Plan.Requests != run.Requests || d.InputTokens != input || d.OutputTokens != output || d.Timing != run.Timing || (d.Selection == nil) != (run.Selection == nil) {
			t.Errorf("%v: plan %+v of %d and %d tokens, run %+v of %d and %d", args, d.Plan, d.InputTokens, d.OutputTokens, run, input, output)
		}
		if run.Timing != result.ClosedLoop && d.Plan.LastNS != last {
			t.Errorf("%v: the last is planned for %d, due at %d", args, d.Plan.LastNS, last)
		}
		if _, known := modesHits(t, results); d.ExpectedHitRatio == nil || *d.ExpectedHitRatio > known || *d.ExpectedHitRatio < known-0.03 {
			t.Errorf("%v: expected hit ratio %v, known %.4f", args, cli.Figure(d.ExpectedHitRatio, 4), known)
		}
	}
}

// Prices, prompt bytes, requests in flight and the least duration of a causal run.
func TestModesDryRunFigures(t *testing.T) {
	workload := modesWorkload(t, 60)
	d := dryOf(t, workload, "--set", "price-input=2", "--set", "price-cached=0.5", "--set", "price-output=10", "--set", "assume=ttft=100ms,itl=10ms")
	cached := *d.ExpectedHitRatio * float64(d.InputTokens) / 1e6
	want := (float64(d.InputTokens)/1e6-cached)*2 + cached*0.5 + float64(d.OutputTokens)/1e6*10
	if math.Abs(d.Cost.Total-want) > 1e-9 || d.Cost.Prime != nil {
		t.Errorf("cost %+v, want %g", d.Cost, want)
	}
	if n := *d.PromptBytes / float64(d.InputTokens); d.PromptsMade != 60 || n < 3 || n > 9 {
		t.Errorf("%g bytes a token of %d prompts", n, d.PromptsMade)
	}
	if p := d.Plan; p.PeakInFlight == nil || *p.PeakInFlight < *p.MeanInFlight || *p.Peak1S != 50 || *d.Files != int64(math.Ceil(*p.PeakInFlight))+16 { // files of the process itself
		t.Errorf("plan %+v, files %v", p, d.Files)
	}
	if plain := dryOf(t, workload); plain.Cost != nil || plain.Files != nil || plain.Plan.PeakInFlight != nil || plain.Plan.Timed != 0 {
		t.Errorf("%+v", plain)
	}
	if closed := dryOf(t, workload, "--concurrency", "3"); closed.Plan != nil {
		t.Errorf("%+v", closed.Plan)
	}
	until := dryOf(t, workload, "--concurrency", "3", "--loop", "1h")
	if until.Plan != nil || !until.Again || until.UntilNS != int64(3600e9) || until.Requests != 60 {
		t.Errorf("again %v until %d: %+v", until.Again, until.UntilNS, until)
	}
	// Answers of unknown length count with the most that they may have.
	file := filepath.Join(t.TempDir(), "p.txt")
	if err := os.WriteFile(file, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := dryOf(t, file, "--concurrency", "1", "--output-tokens", "server:11", "--set", "assume=ttft=1s,itl=100ms")
	if open.EndedByServer != 2 || open.Plan.LastNS != 2e9 {
		t.Errorf("%+v", open.Plan)
	}
	primed := dryOf(t, workload, "--start", "600ms", "--set", "price-input=1")
	if primed.Selection.Prime == nil || primed.Cost.Prime == nil || *primed.Cost.Prime != float64(primed.Selection.Prime.Tokens)/1e6 {
		t.Errorf("%+v", primed.Selection)
	}
	causal := filepath.Join(t.TempDir(), "w.parquet")
	must(t, "synth", "baseline", "-n", "50", "-o", causal)
	// Each of its requests follows the one before it at once.
	if d := dryOf(t, causal, "--set", "assume=ttft=1s"); d.Timing != result.Causal || d.LeastNS == nil || *d.LeastNS != 0 || *d.RecordedNS <= 0 || d.Plan.LastNS != 49e9 || *d.Plan.PeakInFlight != 1 {
		t.Errorf("%+v", d)
	}
	out, _, code := reprise(t, "replay", causal, "--dry-run", "--set", "price-output=1")
	for _, want := range []string{"nothing was sent", "causal", "at least: the think times alone", "cost"} {
		if code != cli.Good || !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestModesUsage(t *testing.T) {
	workload := filepath.Join(t.TempDir(), "w.parquet")
	must(t, "synth", "baseline", "-n", "5", "-o", workload)
	for _, args := range []string{
		"--start 10s --end 5s", "--start -1s", "--set prime=all --start 1s", "--set prime=none", "--set prime-tokens=5", "--start 1s --set prime-tokens=0",
		"--start 1s --set prime-concurrency=0", "--sample 0", "--sample 110%", "--sample some", "--max-requests -1", "--loop 0", "--loop often",
		"--set loop-same", "--set assume=ttft=1s", "--set price-input=3", "--dry-run --set price-cached=1", "--dry-run --set assume=fast", "--dry-run --set assume=ttft=-1s",
		"--start 1000h", "--loop 9999999999",
	} {
		_, errs, code := reprise(t, append([]string{"replay", workload, "-o", filepath.Join(t.TempDir(), "r.parquet"), "--url", simulate(t)}, strings.Fields(args)...)...)
		if code != cli.Usage {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
}
