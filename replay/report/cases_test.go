package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
)

// TTFT is to the first event with content, not to the first event.
func TestTTFTSkipsRoleOnlyEvents(t *testing.T) {
	r := answer(0, 0, 0, 200, 230)
	r.FirstEventNS = trace.Ptr(5 * msNS)
	s := summarise(t, result.Run{}, Options{}, r)
	is(t, "ttft", s.Latency.FromSent.TTFT.Mean, 200)
	is(t, "headers", s.Latency.FromSent.Headers.Mean, 1)
	is(t, "e2e", s.Latency.FromSent.E2E.Mean, 230)
}

// One token has a TTFT and an E2E, but neither a TPOT nor a gap, and meets
// objectives for those.
func TestOneToken(t *testing.T) {
	slo, err := ParseSLO("ttft:1s,tpot:1ms,itl:1ms")
	if err != nil {
		t.Fatal(err)
	}
	s := summarise(t, result.Run{}, Options{SLO: slo}, answer(0, 0, 0, 20))
	if l := s.Latency; l.TPOT.Count+l.ITLChunk.Count+l.ITLToken.Count != 0 || l.FromSent.TTFT.Count != 1 {
		t.Errorf("%+v", l)
	}
	null(t, "tpot mean", s.Latency.TPOT.Mean)
	null(t, "tpot max", s.Latency.TPOT.Max)
	is(t, "ttft", s.Latency.FromSent.TTFT.Max, 20)
	null(t, "sd of one", s.Latency.FromSent.TTFT.SD)
	if s.Goodput.FromSent.Requests != 1 {
		t.Error("one token does not meet tpot and itl")
	}
}

// A request without tokens has no TTFT, and cannot meet an objective for it.
func TestNoToken(t *testing.T) {
	slo := SLO{TTFT: trace.Ptr(time.Second)}
	s := summarise(t, result.Run{}, Options{SLO: slo}, answer(0, 0, 0))
	if s.Latency.FromSent.TTFT.Count != 0 || s.Goodput.FromSent.Requests != 0 || s.Requests.Succeeded != 1 {
		t.Errorf("%+v", s.Requests)
	}
}

// Two events with three tokens each: chunk ITL is the gap, token ITL a third.
func TestMultiTokenEvents(t *testing.T) {
	r := answer(0, 0, 0, 10, 70)
	r.Output = trace.Ptr(int32(6))
	s := summarise(t, result.Run{}, Options{}, r)
	is(t, "chunk", s.Latency.ITLChunk.Mean, 60)
	is(t, "token", s.Latency.ITLToken.Mean, 20)
	is(t, "tpot", s.Latency.TPOT.Mean, 12)
	is(t, "per event", s.Tokens.PerEvent, 3)

	// The server says that the second event, which ends the gap, had five.
	r.EventTokens = []int32{1, 5}
	s = summarise(t, result.Run{}, Options{}, r)
	is(t, "token", s.Latency.ITLToken.Mean, 12)

	// An event without tokens cannot divide: the mean again.
	r.EventTokens = []int32{6, 0}
	s = summarise(t, result.Run{}, Options{}, r)
	is(t, "token", s.Latency.ITLToken.Mean, 20)

	// Without any count, only the gap is known.
	r.EventTokens, r.Output = nil, nil
	s = summarise(t, result.Run{}, Options{}, r)
	is(t, "chunk", s.Latency.ITLChunk.Mean, 60)
	null(t, "token", s.Latency.ITLToken.Mean)
	null(t, "tpot", s.Latency.TPOT.Mean)
}

// A client that sends late must not hide it: the server answers in 10 ms, but
// the user waited for a second and ten.
func TestCoordinatedOmission(t *testing.T) {
	slo := SLO{TTFT: trace.Ptr(100 * time.Millisecond)}
	s := summarise(t, result.Run{}, Options{SLO: slo}, answer(0, 0, 1000, 10, 20), answer(1, 10, 1000, 10, 20))
	is(t, "ttft sent", s.Latency.FromSent.TTFT.P50, 10)
	is(t, "ttft due", s.Latency.FromDue.TTFT.P50, 1010)
	is(t, "e2e sent", s.Latency.FromSent.E2E.P50, 20)
	is(t, "e2e due", s.Latency.FromDue.E2E.P50, 1020)
	is(t, "headers due", s.Latency.FromDue.Headers.P50, 1001)
	is(t, "lag", s.Latency.SendLag.P50, 1000)
	is(t, "good sent", s.Goodput.FromSent.Share, 1)
	is(t, "good due", s.Goodput.FromDue.Share, 0)
	// Duration is from the first due time, not from the first sending.
	is(t, "duration", s.DurationS, 1.03)
	is(t, "requests/s", s.Throughput.RequestsPerS, 1.941748)
	is(t, "offered", s.Throughput.OfferedPerS, 100)
}

// Errors are in the denominator of goodput and out of every latency but the
// send lag; what was cancelled on purpose is in neither.
func TestErrorsInTheDenominator(t *testing.T) {
	cut := answer(4, 0, 3, 10, 500)
	cut.Error = "cancelled"
	open := answer(5, 0, 0)
	open.DoneNS = nil
	slo := SLO{E2E: trace.Ptr(time.Second)}
	s := summarise(t, result.Run{}, Options{SLO: slo},
		answer(0, 0, 0, 10, 20), answer(1, 0, 0, 10, 2000), failure(2, 0, "timeout"), failure(3, 1000, "timeout"),
		cut, open, result.Result{RowID: 6, DueNS: 7})
	is(t, "good", s.Goodput.FromSent.Share, 0.2)
	is(t, "good/s", s.Goodput.FromSent.PerS, 0.5)
	is(t, "errors", s.Requests.ErrorShare, 0.6)
	if r := s.Requests; r.Rows != 7 || r.Succeeded != 2 || r.Failed != 3 || r.Cancelled != 1 || r.NotSent != 1 {
		t.Errorf("%+v", r)
	}
	if e := s.Errors; len(e) != 2 || e[0] != (ErrorCount{Class: "timeout", Count: 2, Share: 0.4}) || e[1] != (ErrorCount{Class: "unfinished", Count: 1, Share: 0.2}) {
		t.Errorf("%+v", e)
	}
	if n := s.Latency.FromSent.Headers.Count; n != 2 {
		t.Errorf("headers of %d requests", n)
	}
	if n := s.Latency.SendLag.Count; n != 6 {
		t.Errorf("send lag of %d requests", n)
	}
}

// What a sample cannot give is null, and a warning names it.
func TestFewSamples(t *testing.T) {
	for _, row := range []struct {
		n    int64
		null []string
	}{
		{1, []string{"p50", "p90", "p95", "p99", "p99.9"}},
		{2, []string{"p90", "p95", "p99", "p99.9"}},
		{9, []string{"p90", "p95", "p99", "p99.9"}},
		{10, []string{"p95", "p99", "p99.9"}},
		{20, []string{"p99", "p99.9"}},
		{99, []string{"p99", "p99.9"}},
		{100, []string{"p99.9"}},
		{999, []string{"p99.9"}},
		{1000, nil},
	} {
		var results []result.Result
		for i := range row.n {
			results = append(results, answer(i, i, 0, 10, 20))
		}
		s := summarise(t, result.Run{Source: result.Source{ServerBlock: 16}}, Options{}, results...)
		var missing, warned []string
		for _, p := range percentiles {
			if *p.of(&s.Latency.FromSent.TTFT) == nil {
				missing = append(missing, p.name)
			}
		}
		for _, w := range s.Warnings {
			if w.Code == warnFewSamples {
				warned = append(warned, strings.Fields(w.Text)[1])
				if len(w.Metrics) != 10 {
					t.Errorf("%d: %v", row.n, w.Metrics)
				}
			}
		}
		want := strings.Join(row.null, " ")
		if strings.Join(missing, " ") != want || strings.Join(warned, " ") != want {
			t.Errorf("%d: null %v, warned of %v, want %v", row.n, missing, warned, row.null)
		}
	}
}

// Nothing is claimed without results.
func TestEmpty(t *testing.T) {
	s := summarise(t, result.Run{}, Options{SLO: SLO{TTFT: trace.Ptr(time.Second)}})
	for _, m := range s.Latency.metrics() {
		for _, v := range []*float64{m.stat.Mean, m.stat.SD, m.stat.Min, m.stat.Max, m.stat.P50, m.stat.P999} {
			null(t, m.name, v)
		}
	}
	for _, v := range []*float64{s.DurationS, s.Throughput.RequestsPerS, s.Throughput.OfferedPerS, s.Requests.ErrorShare,
		s.Goodput.FromSent.Share, s.Goodput.FromDue.PerS, s.Cache.Measured, s.Cache.Expected, s.Tokens.PerEvent, s.LagDriftMS, s.InFlight.Mean} {
		null(t, "of nothing", v)
	}
	if s.Verdict.Trustworthy || s.Verdict.Reasons[0].Code != CodeNoSamples || len(s.Warnings) != 0 {
		t.Errorf("%+v %+v", s.Verdict, s.Warnings)
	}
	p := Page(s)
	for _, section := range p.Sections {
		if len(section.Plots) > 0 || section.Title != "Figures" && section.Title != "Validity checks" {
			t.Errorf("section %s of an empty page", section.Title)
		}
	}
}

func TestTokenCounts(t *testing.T) {
	long, short, counted, unknown := answer(0, 0, 0, 1, 2), answer(1, 0, 0, 1, 2), answer(2, 0, 0, 1, 2), answer(3, 0, 0, 1, 2)
	long.Input, long.WantOutput = trace.Ptr(int32(107)), trace.Ptr[int32](1)
	short.Input, short.WantOutput = trace.Ptr(int32(98)), trace.Ptr[int32](12)
	counted.OutputFrom = "tokenizer"
	unknown.Output, unknown.OutputFrom, unknown.Input = nil, "", nil
	s := summarise(t, result.Run{}, warningsAlone(), long, short, counted, unknown)
	if want := (Difference{Compared: 3, More: 1, Fewer: 1, SumAbs: 9, MaxAbs: 7, Wanted: 300}); s.Tokens.PromptError != want {
		t.Errorf("prompt: %+v, want %+v", s.Tokens.PromptError, want)
	}
	if want := (Difference{Compared: 3, More: 1, Fewer: 1, SumAbs: 11, MaxAbs: 10, Wanted: 15}); s.Tokens.OutputMiss != want {
		t.Errorf("output: %+v, want %+v", s.Tokens.OutputMiss, want)
	}
	if n := s.Tokens.OutputSources; n["usage"] != 2 || n["tokenizer"] != 1 || n["none"] != 1 {
		t.Errorf("sources: %v", n)
	}
	if s.Tokens.Prompt != 107+98+100+100 || s.Tokens.PromptFromUsage != 3 || s.Tokens.Output != 6 {
		t.Errorf("%+v", s.Tokens)
	}
	var codes []string
	for _, w := range s.Warnings {
		if w.Code != warnFewSamples {
			codes = append(codes, w.Code)
		}
	}
	want := []string{warnPromptLength, warnNoPromptUsage, warnOutputLength, warnOutputCounted, warnNoBlockSize, warnOutputLonger}
	if strings.Join(codes, " ") != strings.Join(want, " ") {
		t.Errorf("warnings %v, want %v", codes, want)
	}
}

func hit(row int64, prompt, known, cached int32) result.Result {
	r := answer(row, 0, 0, 1)
	r.WantInput, r.Input = prompt, &prompt
	if known >= 0 {
		r.Known = &known
	}
	if cached >= 0 {
		r.Cached = &cached
	}
	return r
}

func TestCache(t *testing.T) {
	block := result.Run{Source: result.Source{BlockSize: 512, ServerBlock: 16}}
	for _, row := range []struct {
		name                     string
		opts                     Options
		run                      result.Run
		results                  []result.Result
		measured, expected, lost float64 // of 100 tokens; below 0 is null
		rows, left               int64
	}{
		{"floors to blocks", Options{}, block, []result.Result{hit(0, 100, 50, 40)}, 40, 48, 2, 1, 0},
		{"the option stands above the run", Options{ServerBlock: 32}, block, []result.Result{hit(0, 100, 50, 0)}, 0, 32, 18, 1, 0},
		{"the workload's block is the last resort", Options{}, result.Run{Source: result.Source{BlockSize: 10}}, []result.Result{hit(0, 100, 55, 0)}, 0, 50, 5, 1, 0},
		{"at most all but one token", Options{ServerBlock: 10}, block, []result.Result{hit(0, 100, 100, 90)}, 90, 90, 9, 1, 0},
		{"a known prefix longer than the prompt", Options{ServerBlock: 1}, block, []result.Result{hit(0, 100, 300, 99)}, 99, 99, 0, 1, 0},
		{"only the same rows compare", Options{}, block, []result.Result{hit(0, 100, 64, 32), hit(1, 900, -1, 900), hit(2, 900, 900, -1), hit(3, 100, 0, 0)}, 16, 32, 0, 2, 2},
		{"no cached count", Options{}, block, []result.Result{hit(0, 100, 50, -1)}, -1, 48, 2, 1, 0},
		{"no known count", Options{}, block, []result.Result{hit(0, 100, -1, 7)}, 7, -1, -1, 1, 0},
		{"disjoint counts", Options{}, block, []result.Result{hit(0, 100, 50, -1), hit(1, 100, -1, 7), hit(2, 100, -1, 0)}, 3.5, -1, -1, 2, 1},
		{"no block size", Options{}, result.Run{}, []result.Result{hit(0, 100, 50, 40)}, 40, -1, -1, 1, 0},
		{"neither", Options{}, result.Run{}, []result.Result{hit(0, 100, 50, -1)}, -1, -1, -1, 0, 1},
		// vLLM leaves the count of a request without a hit out.
		{"zeros left out", Options{}, block, []result.Result{hit(0, 100, 64, 64), hit(1, 100, 64, -1)}, 32, 64, 0, 2, 0},
	} {
		s := summarise(t, row.run, row.opts, row.results...)
		for name, v := range map[string][2]any{
			"measured": {s.Cache.Measured, row.measured}, "expected": {s.Cache.Expected, row.expected}, "lost": {s.Cache.RoundingLoss, row.lost},
		} {
			got, want := v[0].(*float64), v[1].(float64)/100
			if want < 0 {
				null(t, row.name+": "+name, got)
			} else {
				is(t, row.name+": "+name, got, want)
			}
		}
		if s.Cache.Rows != row.rows || s.Cache.RowsLeftOut != row.left {
			t.Errorf("%s: %d rows and %d left out, want %d and %d", row.name, s.Cache.Rows, s.Cache.RowsLeftOut, row.rows, row.left)
		}
		if (s.Cache.Difference != nil) != (row.measured >= 0 && row.expected >= 0) {
			t.Errorf("%s: difference %v", row.name, show(s.Cache.Difference))
		}
	}
}

// warningsAlone are options under which no reason of the verdict takes a warning's place.
func warningsAlone() Options {
	o := Options{Limits: DefaultLimits()}
	o.Limits.Prompt, o.Limits.Output, o.Limits.ExtraHits = -1, -1, -1
	return o
}

// A failure whose end nobody recorded lasts until it was sent at least: the rates of a run are over its time.
func TestFailuresWithoutAnEnd(t *testing.T) {
	before := summarise(t, result.Run{}, Options{}, answer(0, 0, 100, 2))
	failed := failure(1, 2000, "timeout")
	failed.DoneNS = nil
	s := summarise(t, result.Run{}, Options{}, answer(0, 0, 100, 2), failed)
	if s.DurationS == nil || before.DurationS == nil || *s.DurationS <= *before.DurationS || *s.DurationS < 2 {
		t.Errorf("%v s with a failure at 2 s, %v s without", show(s.DurationS), show(before.DurationS))
	}
}

// Real text shares the same part of itself by any tokenizer: what earlier prompts had is turned into the server's
// tokens. Prompts that were made to a length share the tokens that they were made of.
func TestExpectedHitsOfRealText(t *testing.T) {
	source := result.Source{BlockSize: 16, ServerBlock: 16}
	half := hit(0, 160, 80, 80)
	half.WantInput = 100
	half.Known = trace.Ptr[int32](50)
	for prompts, want := range map[string]float64{result.PromptsVerbatim: 0.5, "": 0.3} { // 80 and 48 of 160 tokens
		s := summarise(t, result.Run{Load: result.Load{Prompts: prompts}, Source: source}, Options{}, half)
		is(t, "expected hits of prompts "+prompts, s.Cache.Expected, want)
	}
	if *half.Known != 50 {
		t.Errorf("the result was changed: %d", *half.Known)
	}
}

// What a run delivered is held against what was asked for, each kind by its own limit, and only
// where something was asked.
func TestDeliveredAgainstAsked(t *testing.T) {
	forced := map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")}
	base := result.Run{Load: result.Load{Tokenizer: "o200k_base"}, Source: result.Source{BlockSize: 16, ServerBlock: 16}, Sending: result.Sending{Requests: 40}}
	base.Sampling = forced
	ended, verbatim, simulated := base, base, base
	ended.Sampling, verbatim.Prompts, simulated.Simulated = nil, result.PromptsVerbatim, "an engine"
	short := func(api string, from int64) func(*result.Result) { // 16 of 24 tokens are cached, within a block
		return func(r *result.Result) {
			if *r.Input, r.WantInput, *r.Cached, r.API = 24, 24, 0, api; r.RowID >= from {
				*r.Cached = 16
			}
		}
	}
	for name, c := range map[string]struct {
		run  result.Run
		edit func(r *result.Result)
		want string // the code of the one reason, or none
	}{
		"as asked":                   {base, func(*result.Result) {}, ""},
		"a token in a hundred":       {base, func(r *result.Result) { *r.Input++ }, ""},
		"other prompts":              {base, func(r *result.Result) { *r.Input = 233 }, codePrompts},
		"short prompts":              {base, func(r *result.Result) { *r.Input = 12; *r.Cached = 0 }, codePrompts},
		"other prompts, with hits":   {base, func(r *result.Result) { *r.Input, *r.Cached = 233, 200 }, codePrompts}, // what was expected is of other tokens
		"other prompts, verbatim":    {verbatim, func(r *result.Result) { *r.Input = 233 }, ""},
		"short answers":              {base, func(r *result.Result) { r.WantOutput = trace.Ptr[int32](65) }, codeOutputs},
		"short answers, not forced":  {ended, func(r *result.Result) { r.WantOutput = trace.Ptr[int32](65) }, ""},
		"answers of no asked length": {base, func(r *result.Result) { r.WantOutput = nil }, ""},
		"a warm cache":               {base, func(r *result.Result) { *r.Cached = 96 }, codeExtraHits},
		"a warm cache, verbatim":     {verbatim, func(r *result.Result) { *r.Cached = 96 }, codeExtraHits},
		"short prompts, verbatim, of which the first was cached": {verbatim, short(result.APICompletions, 0), codeExtraHits},
		"short chats, verbatim":                                  {verbatim, short(result.APIChat, 0), ""},
		"short prompts, verbatim, from the second on":            {verbatim, short(result.APICompletions, 1), ""},

		"parts of blocks, verbatim": {verbatim, func(r *result.Result) { *r.Cached = 14 }, ""},
		"a template, verbatim":      {verbatim, func(r *result.Result) { *r.Input, *r.Cached = 130, 44 }, ""},
		"a later turn, verbatim": {verbatim, func(r *result.Result) {
			*r.Cached, r.Category = 96, trace.Continuation
		}, ""},
		"tried again, verbatim":     {verbatim, func(r *result.Result) { *r.Cached, r.Attempts = 96, 2 }, ""},
		"fewer hits":                {base, func(r *result.Result) { r.Known, *r.Cached = trace.Ptr[int32](64), 0 }, ""},
		"generated hits, simulated": {simulated, func(r *result.Result) { *r.Cached = 96 }, ""},
	} {
		var rows []result.Result
		for i := range int64(40) {
			r := hit(i, 100, 0, 0)
			at := i * 100 * msNS
			r.DueNS, r.SentNS, r.FirstTokenNS, r.LastTokenNS = at, trace.Ptr(at), trace.Ptr(at+msNS), trace.Ptr(at+2*msNS)
			r.FirstEventNS, r.HeadersNS, r.FirstContentNS, r.DoneNS = nil, nil, r.FirstTokenNS, r.LastTokenNS
			r.WantOutput = trace.Ptr(*r.Output)
			c.edit(&r)
			rows = append(rows, r)
		}
		limits := DefaultLimits()
		limits.LagP50, limits.LagP99, limits.LagDrift = -1, -1, -1
		s := summarise(t, c.run, Options{Limits: limits}, rows...)
		var got []string
		for _, r := range s.Verdict.Reasons {
			got = append(got, r.Code)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q: %+v", name, got, c.want, s.Verdict.Reasons)
		}
		// A reason about hits has both figures of the table, so that whoever reads one finds it in the other.
		table := fmt.Sprintf("(hits: %s, expected: %s)", doc.OrDash(s.Cache.Measured, doc.Percent),
			doc.OrDash(s.Cache.Expected, doc.Percent))
		if c.want == codeExtraHits && !strings.Contains(s.Verdict.Reasons[0].Text, table) {
			t.Errorf("%s: %q does not say %q", name, s.Verdict.Reasons[0].Text, table)
		}
	}
}

// Hits beyond those of earlier prompts come from earlier runs; an engine that is
// simulated has none, and found what it generated.
func TestMoreHitsThanExpected(t *testing.T) {
	run := result.Run{Source: result.Source{BlockSize: 512, ServerBlock: 16}}
	for simulated, want := range map[string]string{"": warnForeignHits, "a model": warnGeneratedHits} {
		run.Simulated = simulated
		for hits, warned := range map[int32]bool{48: false, 64: true} {
			s := summarise(t, run, warningsAlone(), hit(0, 100, 50, hits))
			var codes []string
			for _, w := range s.Warnings {
				if w.Code == warnForeignHits || w.Code == warnGeneratedHits {
					codes = append(codes, w.Code)
				}
			}
			if len(codes) > 1 || (len(codes) == 1) != warned || warned && codes[0] != want {
				t.Errorf("%d hits, simulated %q: warnings %q, want %q: %v", hits, simulated, codes, want, warned)
			}
		}
	}
}

// A server that counts in proportion otherwise has another tokenizer. It is named in place
// of lengths that differ, and of hits that earlier runs would have left.
func TestOtherTokenizer(t *testing.T) {
	run := result.Run{Load: result.Load{Tokenizer: "o200k_base"}, Source: result.Source{BlockSize: 512, ServerBlock: 16}}
	counted := func(wanted, got, hits int32) result.Result {
		r := hit(0, got, 0, hits)
		r.WantInput = wanted
		return r
	}
	for name, c := range map[string]struct {
		rows []result.Result
		want string // the code of the warning
		text string
	}{
		"fewer":                  {[]result.Result{counted(100, 48, 2), counted(1000, 480, 2)}, warnTokenizer, "the server counted 52 % fewer tokens than o200k_base, in 2 requests: name its tokenizer with --tokenizer, by name or as the path of its tokenizer.json. Prompts had other lengths than the workload's, and shared other prefixes"},
		"more":                   {[]result.Result{counted(100, 227, 9), counted(1000, 2270, 9)}, warnTokenizer, "the server counted 127 % more tokens than o200k_base, in 2 requests: name its tokenizer with --tokenizer, by name or as the path of its tokenizer.json. Prompts had other lengths than the workload's, and shared other prefixes"},
		"a template":             {[]result.Result{counted(100, 112, 0), counted(1000, 1012, 0)}, warnPromptLength, ""},
		"hardly":                 {[]result.Result{counted(100, 102, 0), counted(1000, 1020, 0)}, warnPromptLength, ""},
		"one of them":            {[]result.Result{counted(100, 100, 0), counted(1000, 480, 0)}, warnPromptLength, ""},
		"some more, some fewer":  {[]result.Result{counted(100, 50, 0), counted(1000, 1800, 0)}, warnPromptLength, ""},
		"and caches left warm":   {[]result.Result{counted(100, 48, 40), counted(1000, 480, 400)}, warnTokenizer, ""},
		"warm, and no other one": {[]result.Result{counted(100, 100, 2), counted(1000, 1000, 20)}, warnForeignHits, ""},
	} {
		s := summarise(t, run, warningsAlone(), c.rows...)
		var codes []string
		for _, w := range s.Warnings {
			if w.Code == warnTokenizer || w.Code == warnPromptLength || w.Code == warnForeignHits {
				codes = append(codes, w.Code)
			}
			if w.Code == warnTokenizer && c.text != "" && w.Text != c.text {
				t.Errorf("%s: %s", name, w.Text)
			}
		}
		if got := strings.Join(codes, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}

	// Of prompts that are sent as they are, lengths were not wanted.
	run.Prompts = result.PromptsVerbatim
	for off, rows := range map[string][]result.Result{
		"127 % more tokens than o200k_base in 2 requests": {counted(100, 227, 9), counted(1000, 2270, 9)},
		"other prompt lengths, by 12 tokens in all and at most 12 in a prompt, in 1 request": {
			counted(100, 112, 0), counted(1000, 1000, 0)},
	} {
		s := summarise(t, run, warningsAlone(), rows...)
		i := slices.IndexFunc(s.Warnings, func(w Warning) bool { return w.Code == warnPromptLength })
		says := "the server counted " + off + ". The prompts went out as they are"
		if i < 0 || !strings.HasPrefix(s.Warnings[i].Text, says) {
			t.Errorf("%s: %+v", off, s.Warnings)
		}
	}
}

func TestCategoriesAndLengths(t *testing.T) {
	var results []result.Result
	for i, c := range []string{"odd", trace.Branch, trace.Cold, "", trace.Cold} {
		r := hit(int64(i), int32(64<<i), 32, 16)
		r.Category = c
		results = append(results, r)
	}
	results[4].Error = "timeout"
	s := summarise(t, result.Run{Source: result.Source{ServerBlock: 16}}, Options{}, results...)
	var names []string
	for _, c := range s.ByCategory {
		names = append(names, c.Category)
	}
	if got := strings.Join(names, ","); got != "cold,branch,odd," {
		t.Errorf("order of the categories: %s", got)
	}
	if c := s.ByCategory[0]; c.Rows != 2 || c.Succeeded != 1 || c.Cache.Rows != 1 || c.TTFTP50 != nil {
		t.Errorf("cold: %+v", c)
	}
	is(t, "cold", s.ByCategory[0].Cache.Measured, 16.0/256)
	is(t, "branch", s.ByCategory[1].Cache.Expected, 32.0/128)
	var lengths []int64
	for _, b := range s.ByInputLength {
		lengths = append(lengths, b.Lo, *b.Hi, b.Rows)
	}
	want := []int64{0, 128, 1, 128, 512, 2, 512, 2048, 2}
	for i := range want {
		if len(lengths) != len(want) || lengths[i] != want[i] {
			t.Fatalf("length buckets %v, want %v", lengths, want)
		}
	}
	last := summarise(t, result.Run{}, Options{}, hit(0, 1<<30, 0, 0)).ByInputLength[0]
	if last.Lo != 131072 || last.Hi != nil {
		t.Errorf("the last bucket is %+v", last)
	}
}

func TestLagDrift(t *testing.T) {
	var late []result.Result
	for i := range int64(400) {
		late = append(late, answer(i, i*10, i/10, 5)) // 1 ms later every tenth request
	}
	s := summarise(t, result.Run{}, Options{}, late...)
	is(t, "drift", s.LagDriftMS, 30)
	late[399].SentNS = trace.Ptr(int64(60e9)) // one stall does not tilt it
	*late[399].SentNS += 60e9
	late[399] = answer(399, 3990, 100000, 5)
	s = summarise(t, result.Run{}, Options{}, late...)
	is(t, "drift with a stall", s.LagDriftMS, 30)
	null(t, "drift of few", summarise(t, result.Run{}, Options{}, late[:39]...).LagDriftMS)
}

func TestContradictions(t *testing.T) {
	for reason, spoil := range map[string]func(*result.Result){
		"due time":       func(r *result.Result) { r.DueNS = -1 },
		"first":          func(r *result.Result) { r.FirstTokenNS = trace.Ptr(*r.LastTokenNS + 1) },
		"answer began":   func(r *result.Result) { r.FirstContentNS = trace.Ptr(*r.FirstTokenNS - 1) },
		"before":         func(r *result.Result) { r.HeadersNS = trace.Ptr(*r.SentNS - 1) },
		"outside":        func(r *result.Result) { r.DoneNS = trace.Ptr(int64(1) << 60) },
		"number of gaps": func(r *result.Result) { r.Events = 3 },
		"gap":            func(r *result.Result) { r.GapsNS[0] = -5 },
		"count":          func(r *result.Result) { r.Cached = trace.Ptr(int32(-1)) },
		"negative":       func(r *result.Result) { r.EventTokens = []int32{1, -1} },
	} {
		bad := answer(77, 0, 0, 10, 20)
		bad.SentNS = trace.Ptr(int64(5))
		spoil(&bad)
		_, err := Summarise(result.Run{}, &trace.SliceReader[result.Result]{Rows: []result.Result{answer(1, 0, 0, 1), bad}}, Options{})
		if err == nil || !strings.Contains(err.Error(), "row 77") || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	empty := func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{} }
	for _, opts := range []Options{{ServerBlock: -1}, {Exact: -1}, {SLO: SLO{E2E: trace.Ptr(-time.Second)}}} {
		if _, err := Summarise(result.Run{}, empty(), opts); err == nil {
			t.Errorf("%+v is taken", opts)
		}
	}
	broken := errors.New("broken")
	if _, err := Summarise(result.Run{}, &failing{err: broken}, Options{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	var many []result.Result
	for i := range int64(100) {
		r := answer(i, 0, 0, 1)
		r.Category = strings.Repeat("x", int(i))
		many = append(many, r)
	}
	if _, err := Summarise(result.Run{}, &trace.SliceReader[result.Result]{Rows: many}, Options{}); !errors.Is(err, errNames) {
		t.Errorf("got %v", err)
	}
}

// Output that nobody counted but a tokenizer that nobody named is not to be trusted.
func TestGuessedTokenizer(t *testing.T) {
	for _, c := range []struct {
		guessed bool
		from    string
		want    string
	}{
		{true, result.FromTokenizer, "the server sent no usage for 2 requests, whose output was counted by " +
			"o200k_base, which may not be the server's tokenizer, so TPOT and output tokens per second are guesses. " +
			"Name it with --tokenizer"},
		{true, result.FromUsage, ""}, {false, result.FromTokenizer, ""},
	} {
		rows := []result.Result{hit(0, 100, 50, 48), hit(1, 100, 50, 48)}
		for i := range rows {
			rows[i].Output, rows[i].OutputFrom = trace.Ptr(int32(3)), c.from
		}
		s := summarise(t, result.Run{Load: result.Load{Tokenizer: "o200k_base", Guessed: c.guessed}}, Options{}, rows...)
		got := ""
		for _, r := range s.Verdict.Reasons {
			if r.Code == codeGuessed {
				got = r.Text
			}
		}
		if got != c.want || s.Verdict.Trustworthy != (c.want == "") {
			t.Errorf("%+v: %q, %+v", c, got, s.Verdict.Reasons)
		}
	}
}

// Where the answer begins with the first token, that instant is known or uncertain with it; where reasoning comes first,
// one uncertain instant leaves the beginning of the answer unknown. A result without a first token has neither.
func TestAnswerBegins(t *testing.T) {
	for _, c := range []struct {
		content   int64
		uncertain []bool
		want      bool
	}{
		{10, nil, true}, {10, []bool{false, true}, true}, {10, []bool{true, false}, false}, {20, nil, true},
		{20, []bool{false, true}, false}, {20, []bool{false, false}, true},
	} {
		r := answer(1, 0, 0, 10, 20)
		r.FirstContentNS, r.Uncertain = trace.Ptr(c.content*msNS), c.uncertain
		d := Derive(&r)
		if got := d.TTFO[FromSent]; got.OK != c.want || c.want && got.NS != c.content*msNS {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	none := answer(1, 0, 0)
	if d := Derive(&none); d.TTFO[FromSent].OK {
		t.Errorf("of no token: %+v", d.TTFO)
	}
}
