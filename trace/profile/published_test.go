package profile_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/textpage"
)

// The published traces hold the published digits; see the README beside them.
const published = "../../../shared/data"

func openPublished(t testing.TB, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(published, name))
	if err != nil {
		t.Skipf("the published trace %s is not there", name)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// mooncake reads the conversation trace of the Mooncake release (FAST'25).
func mooncake(t testing.TB) []trace.Request {
	t.Helper()
	var rows []trace.Request
	lines := bufio.NewScanner(openPublished(t, "mooncake_conversation.jsonl"))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Timestamp    int64    `json:"timestamp"`
			InputLength  int32    `json:"input_length"`
			OutputLength int32    `json:"output_length"`
			HashIDs      []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("line %d: not the JSON that was expected", len(rows)+1)
		}
		rows = append(rows, trace.Request{ArrivalNS: line.Timestamp * int64(time.Millisecond),
			InputTokens: line.InputLength, OutputTokens: trace.Ptr(line.OutputLength), Blocks: line.HashIDs})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// azureCode reads the 2023 code trace of the Azure Public Dataset.
func azureCode(t testing.TB) []trace.Request {
	t.Helper()
	lines, err := csv.NewReader(openPublished(t, "azure_llm_2023_code.csv")).ReadAll()
	if err != nil {
		t.Fatal("not the CSV that was expected")
	}
	var rows []trace.Request
	var first time.Time
	for i, line := range lines[1:] {
		at, err := time.Parse("2006-01-02 15:04:05.0000000", line[0])
		in, errIn := strconv.Atoi(line[1])
		out, errOut := strconv.Atoi(line[2])
		if err != nil || errIn != nil || errOut != nil {
			t.Fatalf("line %d is not what was expected", i+2)
		}
		if i == 0 {
			first = at
		}
		rows = append(rows, trace.Request{ArrivalNS: int64(at.Sub(first)), InputTokens: int32(in), OutputTokens: trace.Ptr(int32(out))})
	}
	return rows
}

// annotate runs both passes over rows, whatever the ids of their blocks.
func annotate(rows []trace.Request, size int, opts profile.Options) *profile.Annotator {
	a, ids := profile.NewAnnotator(size, opts), trace.Dense{}
	pass := func(do func(r *trace.Request)) {
		for i := range rows {
			r := rows[i]
			r.Blocks, r.OutputBlocks = slices.Clone(r.Blocks), nil
			ids.ApplyBlocks(&r)
			do(&r)
			rows[i].Category, rows[i].Session, rows[i].Turn = r.Category, r.Session, r.Turn
		}
	}
	pass(a.Count)
	pass(func(r *trace.Request) { a.Annotate(0, r) })
	return a
}

func profileOf(t testing.TB, rows []trace.Request, meta trace.Meta, opts profile.ProfilerOptions) *profile.Profiler {
	t.Helper()
	meta.Categories = trace.CategoryRule
	p := profile.NewProfiler(meta, opts)
	if n, err := p.Write(rows); err != nil || n != len(rows) {
		t.Fatalf("Write took %d of %d rows: %v", n, len(rows), err)
	}
	return p
}

// A digits check compares a number as it is printed with its published digits.
type digits struct {
	name   string
	got    float64
	places int
	want   string
}

func checkDigits(t *testing.T, list []digits) {
	t.Helper()
	for _, d := range list {
		if got := strconv.FormatFloat(d.got, 'f', d.places, 64); got != d.want {
			t.Errorf("%s is %s; want %s", d.name, got, d.want)
		}
	}
}

func TestMooncakePublishedFigures(t *testing.T) {
	rows := mooncake(t)
	annotate(rows, 512, profile.Options{})
	s := profileOf(t, rows, trace.Meta{BlockSize: 512, Sessions: "inferred"}, profile.ProfilerOptions{}).Summary()
	h := s.Reuse.HitRatios
	list := []digits{
		{"requests", float64(s.Requests), 0, "12031"},
		{"duration", s.DurationS, 3, "3536.999"},
		{"input mean", s.Input.Mean, 2, "12035.06"},
		{"input p50", s.Input.P50, 0, "6909"}, {"input p90", s.Input.P90, 0, "27367"}, {"input p99", s.Input.P99, 0, "85400"},
		{"output mean", s.Output.Mean, 2, "342.62"},
		{"output p50", s.Output.P50, 0, "350"}, {"output p90", s.Output.P90, 0, "597"}, {"output p99", s.Output.P99, 1, "1118.5"},
		{"Spearman", *s.InputOutput.Rho, 3, "0.072"},
		{"CV", *s.Arrivals.CV, 3, "3.034"},
		{"IDC 1 s", *s.Arrivals.IDC[1].IDC, 3, "7.900"},
		{"IDC 10 s", *s.Arrivals.IDC[2].IDC, 3, "2.105"},
		{"IDC 60 s", *s.Arrivals.IDC[3].IDC, 3, "2.946"},
		{"hit by block", *h.ByBlock, 4, "0.3664"}, {"hit by token", *h.ByToken, 4, "0.3736"},
		{"mean hit", *h.MeanOverRequests, 4, "0.3843"}, {"hit of full blocks", *h.FullBlocksOnly, 4, "0.3819"},
		{"unique blocks", float64(s.Reuse.UniqueBlocks), 0, "182790"},
		{"references", float64(s.Reuse.ReferencesBlocks), 0, "288500"},
		{"touched once", 100 * *s.Reuse.TouchedOnceShare, 0, "76"},
		{"sessions", float64(s.Sessions.Sessions), 0, "1895"},
		{"turns", s.Sessions.Turns.Mean, 2, "2.95"},
		{"turn gap p50", s.Sessions.TurnGap.P50, 0, "126"}, {"turn gap p90", s.Sessions.TurnGap.P90, 0, "480"},
		{"turn gap p99", s.Sessions.TurnGap.P99, 0, "1470"},
	}
	curve := map[int64]string{1000: "0.0445", 2000: "0.0543", 5000: "0.1118", 10_000: "0.2116", 20_000: "0.2878",
		30_000: "0.3257", 50_000: "0.3546", 100_000: "0.3637"}
	for _, p := range s.Reuse.LRUCurve {
		if p.CapacityBlocks != nil && curve[*p.CapacityBlocks] != "" {
			list = append(list, digits{"LRU " + strconv.FormatInt(*p.CapacityBlocks, 10), p.HitRatio, 4, curve[*p.CapacityBlocks]})
			delete(curve, *p.CapacityBlocks)
		}
	}
	if len(curve) > 0 {
		t.Errorf("the curve lacks the capacities %v", curve)
	}
	shares := map[string][2]string{"cold": {"0.0", "0.0"}, "template": {"62.5", "10.3"}, "duplicate": {"1.0", "1.8"},
		"continuation": {"30.3", "79.1"}, "branch": {"6.2", "8.8"}}
	for _, c := range s.Categories {
		list = append(list, digits{c.Category, 100 * *c.RequestShare, 1, shares[c.Category][0]},
			digits{"hits of " + c.Category, 100 * *c.HitShare, 1, shares[c.Category][1]})
	}
	checkDigits(t, list)
}

func TestMooncakeClock(t *testing.T) {
	rows := mooncake(t)
	s := profileOf(t, rows, trace.Meta{BlockSize: 512}, profile.ProfilerOptions{}).Summary()
	c := s.Arrivals.Clock
	if c == nil {
		t.Fatal("the ticks of the clock were not found")
	}
	list := []digits{{"tick", c.TickS, 2, "3.00"}, {"zero gaps", 100 * c.ZeroShare, 1, "90.2"}}
	for i, want := range []string{"1.10", "1.29", "2.31", "2.86", "8.06"} {
		list = append(list, digits{"IDC", *c.IDC[i].IDC, 2, want})
	}
	checkDigits(t, list)
	for i, artefact := range []bool{true, true, true, false, false} {
		if s.Arrivals.IDC[i].TickArtefact != artefact {
			t.Errorf("the IDC of %v s is called an artefact: %v", s.Arrivals.IDC[i].WindowS, !artefact)
		}
	}
	if w := s.Warnings[0]; w.Code != "clock_ticks" || !strings.Contains(w.Message, "3 s") {
		t.Errorf("the first warning is %q: %s", w.Code, w.Message)
	}
}

// What a server with vLLM's blocks of 16 tokens can reach of 0.3736 by token.
func TestMooncakeServerBlock(t *testing.T) {
	rows := mooncake(t)
	known := profile.NewKnownPass(512, false)
	server := profile.NewServerReuse(16)
	for i := range rows {
		server.Add(known.Touch(&rows[i]), rows[i].InputTokens)
	}
	s := server.Summary()
	t.Logf("by token %.6f, lost by rounding %.6f", *s.HitRatio, *s.RoundingLoss)
	p := profileOf(t, rows, trace.Meta{BlockSize: 512}, profile.ProfilerOptions{}).Summary()
	if *p.Server.HitRatio != *s.HitRatio || *p.Server.RoundingLoss != *s.RoundingLoss {
		t.Errorf("the profile has %v, the light pass %v", *p.Server, s)
	}
}

func TestAzurePublishedFigures(t *testing.T) {
	s := profileOf(t, azureCode(t), trace.Meta{}, profile.ProfilerOptions{}).Summary()
	checkDigits(t, []digits{
		{"requests", float64(s.Requests), 0, "8819"},
		{"duration", s.DurationS, 3, "3435.948"},
		{"CV", *s.Arrivals.CV, 3, "13.152"},
		{"IDC 1 s", *s.Arrivals.IDC[1].IDC, 3, "13.190"},
		{"IDC 10 s", *s.Arrivals.IDC[2].IDC, 3, "71.851"},
		{"IDC 60 s", *s.Arrivals.IDC[3].IDC, 3, "166.893"},
		{"input mean", s.Input.Mean, 2, "2047.85"},
		{"input p50", s.Input.P50, 0, "1469"}, {"input p90", s.Input.P90, 0, "5188"}, {"input p99", s.Input.P99, 0, "7436"},
		{"output mean", s.Output.Mean, 2, "27.88"},
		{"output p50", s.Output.P50, 0, "13"}, {"output p90", s.Output.P90, 0, "55"}, {"output p99", s.Output.P99, 1, "251.5"},
		{"Spearman", *s.InputOutput.Rho, 4, "-0.0215"},
	})
	if s.Arrivals.Clock != nil {
		t.Errorf("ticks of %v s were found in a clock of microseconds", s.Arrivals.Clock.TickS)
	}
	if s.Reuse != nil || s.Sessions != nil || s.Categories != nil {
		t.Error("a trace without blocks and sessions has reuse, sessions or categories")
	}
}

func TestPublishedText(t *testing.T) {
	rows := mooncake(t)
	annotate(rows, 512, profile.Options{})
	s := profileOf(t, rows, trace.Meta{BlockSize: 512, Sessions: "inferred"}, profile.ProfilerOptions{}).Summary()
	var b strings.Builder
	if err := profile.Page(s, nil).WriteText(&b, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3,540 s", "12,000", "6,909", "27,367", "85,400", "1,120", "36.6 %", "37.4 %",
		"38.4 %", "38.2 %", "4.45 %", "62.5 %", "79.1 %", "1,895", "182,790", "2.95 turns"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %s", want)
		}
	}
	t.Log("\n" + b.String())
}
