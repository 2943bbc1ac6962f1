package report

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// serverMetric begins a series of values at −0.5, 0.5, 1.5 … s.
func serverMetric(kind, name, labels string, values ...float64) []result.Metric {
	var out []result.Metric
	for i, v := range values {
		out = append(out, result.Metric{AtNS: int64(i)*1e9 - 5e8, Target: "a", Name: name, Kind: kind,
			Labels: labels, Value: v})
	}
	return out
}

// serverRun summarises ten requests, one a second, beside metrics.
func serverRun(t *testing.T, run result.Run, metrics ...[]result.Metric) Summary {
	t.Helper()
	rows := slices.Concat(metrics...)
	var results []result.Result
	for i := range int64(10) {
		results = append(results, answer(i, i*1000, 0, 100, 200))
	}
	if run.Server == nil {
		run.Server = &result.Server{ToNS: 9.2e9, EveryNS: 1e9}
	}
	opts := Options{Metrics: func() trace.Reader[result.Metric] { return &trace.SliceReader[result.Metric]{Rows: rows} }}
	return summarise(t, run, opts, results...)
}

// Two engines are taken together: requests are summed, shares averaged, counters
// added, and the ranks of one model counted once.
func TestServers(t *testing.T) {
	s := serverRun(t, result.Run{},
		serverMetric("gauge", "vllm:num_requests_running", "engine=0", 90, 1, 2, 3, 0, 0, 0, 0, 0, 0),
		serverMetric("gauge", "vllm:num_requests_running", "engine=1", 90, 4, 0, 0, 0, 0, 0, 0, 0, 5),
		serverMetric("gauge", "vllm:num_requests_running", "engine=1,tp_rank=1", 90, 4, 0, 0, 0, 0, 0, 0, 0, 5),
		serverMetric("gauge", "vllm:kv_cache_usage_perc", "engine=0", 0, .2, .4),
		serverMetric("gauge", "vllm:kv_cache_usage_perc", "engine=1", 0, .6, .8),
		serverMetric("counter", "vllm:prefix_cache_hits_total", "engine=0", 100, 150, 300),
		serverMetric("counter", "vllm:prefix_cache_queries_total", "engine=0", 1000, 1200, 1400),
		serverMetric("counter", "vllm:num_preemptions_total", "engine=0", 3, 4, 1), // started anew
		serverMetric("counter", "vllm:generation_tokens_total", "engine=0", 0, 460, 920),
		serverMetric("gauge", "DCGM_FI_DEV_GPU_UTIL", "gpu=0", 0, 50, 100),
		serverMetric("gauge", "DCGM_FI_DEV_GPU_UTIL", "gpu=1", 0, 0, 10),
		serverMetric("gauge", "DCGM_FI_DEV_POWER_USAGE", "gpu=0", 0, 60, 80),
		serverMetric("gauge", "DCGM_FI_DEV_POWER_USAGE", "gpu=1", 0, 30, 40))
	v := s.Servers
	if v == nil {
		t.Fatal("nothing of the servers")
	}
	near(t, "running", &v.Running.Mean, 6.0/9+9.0/9, 1e-9)
	near(t, "most running", &v.Running.Max, 5, 0) // 1+4 in one second, 0+5 in another
	near(t, "KV", &v.KVUsage.Mean, .5, 1e-9)
	near(t, "most KV", &v.KVUsage.Max, .6, 1e-9)
	near(t, "hit ratio", v.PrefixRatio, .5, 1e-9)
	near(t, "preemptions", v.Preemptions, 2, 0)
	near(t, "generated", v.GeneratedPerS, 100, 1e-9)
	near(t, "GPU", &v.GPUUse.Mean, .4, 1e-9)
	near(t, "power", &v.GPUPowerW.Max, 120, 1e-9)
	if v.Waiting != nil || v.Speculation != nil || v.PromptTokens != nil || v.Restarts != 1 {
		t.Errorf("%+v", v)
	}
	if !serverWarns(&s, warnRestart) || serverWarns(&s, warnSpeculation) {
		t.Errorf("warnings %+v", s.Warnings)
	}
	// On the clock of the run: a sample at 0.5 s stands in the bin of the first second.
	if x, y := s.Series.Running.X, s.Series.Running.Y; x[0] != 0.5 || y[0] != 5 || y[1] != 2 || len(x) != 9 {
		t.Errorf("running over time: %v %v", x, y)
	}
	if x, y := s.Series.ServerHits.X, s.Series.ServerHits.Y; len(x) != 2 || y[0] != .25 || y[1] != .75 {
		t.Errorf("hit ratio over time: %v %v", x, y)
	}
	if y := s.Series.Preempted.Y; len(y) != 2 || y[0] != 1 || y[1] != 1 { // of the new server, which counts from zero
		t.Errorf("preemptions over time: %v", y)
	}
	near(t, "generated over time", &s.Series.Generated.Y[0], 460, 1e-9)
	titles := []string{}
	for _, section := range Page(s).Sections {
		for _, p := range section.Plots {
			titles = append(titles, p.Title)
		}
	}
	for _, want := range []string{"Requests at the servers", "Prefix cache hit ratio",
		"Tokens generated at the servers", "GPU power"} {
		if !slices.Contains(titles, want) {
			t.Errorf("no plot %q in %q", want, titles)
		}
	}
}

func serverWarns(s *Summary, code string) bool {
	return slices.ContainsFunc(s.Warnings, func(w Warning) bool { return w.Code == code })
}

// Every engine's names are known.
func TestServersOfOtherEngines(t *testing.T) {
	for _, c := range []struct{ running, waiting, generated string }{
		{"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:generation_tokens_total"},
		{"llamacpp:requests_processing", "llamacpp:requests_deferred", "llamacpp:tokens_predicted_total"},
		{"dynamo_frontend_inflight_requests", "dynamo_frontend_queued_requests", "dynamo_frontend_output_tokens_total"},
		{"trtllm_num_requests_running", "trtllm_num_requests_waiting", "trtllm_generation_tokens_total"},
	} {
		v := serverRun(t, result.Run{}, serverMetric("gauge", c.running, "", 0, 2),
			serverMetric("gauge", c.waiting, "", 0, 3), serverMetric("counter", c.generated, "", 1, 9)).Servers
		if v == nil || v.Running.Mean != 2 || v.Waiting.Mean != 3 || *v.Generated != 8 {
			t.Errorf("%s: %+v", c.running, v)
		}
	}
	v := serverRun(t, result.Run{}, serverMetric("counter", "sglang:prompt_tokens_total", "", 0, 1000),
		serverMetric("counter", "sglang:cached_tokens_total", "cache_source=device", 0, 200),
		serverMetric("counter", "sglang:cached_tokens_total", "cache_source=host", 0, 100)).Servers
	if *v.PrefixRatio != .3 || *v.PromptTokens != 1000 {
		t.Errorf("SGLang's hits: %+v", v)
	}
	v = serverRun(t, result.Run{}, serverMetric("counter", "llamacpp:prompt_tokens_total", "", 500, 800),
		serverMetric("counter", "llamacpp:prompt_tokens_cached_total", "", 0, 100)).Servers
	if *v.PrefixRatio != .25 || *v.PromptTokens != 400 {
		t.Errorf("llama.cpp's prompt tokens are without those that were cached: %+v", v)
	}
	if v = serverRun(t, result.Run{}, serverMetric("counter", "llamacpp:prompt_tokens_total", "", 500,
		800)).Servers; v.PrefixQueries != nil || *v.PromptTokens != 300 {
		t.Errorf("an older llama.cpp: %+v", v)
	}
	v = serverRun(t, result.Run{}, serverMetric("counter", "dynamo_frontend_cached_tokens_sum", "", 0, 40),
		serverMetric("counter", "dynamo_frontend_input_sequence_tokens_sum", "", 7, 107),
		serverMetric("counter", "dynamo_frontend_output_tokens_total", "", 0, 9),
		serverMetric("counter", "dynamo_frontend_output_sequence_tokens_sum", "", 0, 9)).Servers
	if *v.PrefixRatio != .4 || *v.PromptTokens != 100 || *v.Generated != 9 {
		t.Errorf("of two names for one thing the first counts: %+v", v)
	}
	v = serverRun(t, result.Run{}, serverMetric("counter", "trtllm_prompt_cached_tokens_total", "", 0, 40),
		serverMetric("counter", "trtllm_prompt_tokens_total", "", 0, 80),
		serverMetric("counter", "trtllm_spec_decode_num_draft_tokens_total", "", 0, 90),
		serverMetric("counter", "trtllm_spec_decode_num_accepted_tokens_total", "", 0, 30)).Servers
	if p := v.Speculation; *v.PrefixRatio != .5 || p == nil || math.Abs(*p.Acceptance-1.0/3) > 1e-6 || p.Length != nil {
		t.Errorf("TensorRT-LLM: %+v", v)
	}
	v = serverRun(t, result.Run{}, serverMetric("counter", "llamacpp:spec_decode_num_drafts_total", "", 0, 10),
		serverMetric("counter", "llamacpp:spec_decode_num_draft_tokens_total", "", 0, 40),
		serverMetric("counter", "llamacpp:spec_decode_num_accepted_tokens_total", "", 0, 20)).Servers
	if p := v.Speculation; p == nil || *p.Acceptance != .5 || *p.Length != 3 {
		t.Errorf("llama.cpp's drafts: %+v", p)
	}
}

// A server that states that it decodes speculatively makes TPOT unrepresentative with
// made-up prompts, also where nothing was scraped.
func TestSpeculationThatIsStated(t *testing.T) {
	run := result.Run{PromptText: result.TextStable,
		Environment: &result.Environment{Servers: []result.ServerModels{{}, {Speculates: true}}}}
	s := summarise(t, run, Options{}, answer(0, 0, 0, 100, 200))
	i := slices.IndexFunc(s.Warnings, func(w Warning) bool { return w.Code == warnSpeculation })
	if i < 0 || s.Warnings[i].Text != "TPOT is not representative: the servers decode speculatively, and how much of a draft is accepted depends on what the text says. These prompts are words without meaning, so that neither the acceptance nor the latencies that rest on it hold for real traffic; synth --corpus, replay --verbatim and record --shadow send text that is real" {
		t.Errorf("%+v", s.Warnings)
	}
	if run.PromptText = ""; serverWarns(trace.Ptr(summarise(t, run, Options{}, answer(0, 0, 0, 100, 200))), warnSpeculation) {
		t.Error("a warning for real text")
	}
}

// Energy is that of the counters, and else of the power; for each token of the servers'
// counters, and else of the answers.
func TestServersEnergy(t *testing.T) {
	power := serverMetric("gauge", "DCGM_FI_DEV_POWER_USAGE", "gpu=0", 100, 100, 300, 200)
	v := serverRun(t, result.Run{}, power, serverMetric("counter", "vllm:generation_tokens_total", "", 0, 460)).Servers
	near(t, "power × time", v.EnergyJ, 200*9.2, 1e-6)
	near(t, "J per token", v.JoulesPerToken, 4, 1e-6)
	near(t, "tokens/s per W", v.TokensPerWatt, .25, 1e-6)

	// 100 W, and a counter that is read before the run and after it, seldom or often: what is
	// used before the first request and after the last is for no token.
	const counter = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
	at := func(gpu string, watts float64, seconds ...float64) (out []result.Metric) {
		for _, second := range seconds {
			out = append(out, result.Metric{AtNS: int64(second * 1e9), Target: "a", Name: counter, Kind: "counter",
				Labels: "gpu=" + gpu, Value: 5e9 + 1000*watts*(second+20)})
		}
		return out
	}
	for name, seconds := range map[string][]float64{"often": {-.5, .5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5},
		"seldom": {-5, 5, 15}, "twice": {-9, 12}, "just so": {0, 9.2}} {
		s := serverRun(t, result.Run{}, power, at("0", 75, seconds...), at("1", 25, seconds...))
		near(t, "counters, in mJ, "+name, s.Servers.EnergyJ, 920, 1e-6)
		near(t, "J per token of the answers, "+name, s.Servers.JoulesPerToken, 920/float64(s.Tokens.Output), 1e-6)
	}
	// A server that starts anew in the middle counts from zero.
	anew := at("0", 100, -1, 4, 6, 11)
	for i := range anew[2:] {
		anew[2+i].Value -= anew[1].Value
	}
	s := serverRun(t, result.Run{}, anew, serverMetric("counter", "vllm:generation_tokens_total", "", 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 460))
	near(t, "a counter that begins again", s.Servers.EnergyJ, 920, 1e-6)
	near(t, "J per token of the server's count", s.Servers.JoulesPerToken, 2, 1e-6)
	// In a window tokens and joules are those between the same scrapes.
	from := &result.Place{DueNS: 3e9}
	windowed := serverRun(t, result.Run{Sending: result.Sending{Window: &result.Window{From: from}},
		Servers: result.Servers{Server: &result.Server{FromNS: 3e9, ToNS: 9.2e9, EveryNS: 1e9}}},
		at("0", 100, -.5, .5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5),
		serverMetric("counter", "vllm:generation_tokens_total", "", 0, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500))
	near(t, "J per token in a window", windowed.Servers.JoulesPerToken, 2, 1e-6)
	s = serverRun(t, result.Run{}, at("0", 100, -.5, 9.5))
	facts := serverFacts(&s).Facts
	if !slices.ContainsFunc(facts, func(f doc.Fact) bool {
		return f.Label == "GPU energy" && f.Value == "46 J per token" && f.Note == "0.0217 tokens/s per W; 920 J in all, of all GPUs together"
	}) {
		t.Errorf("no energy: %q", facts)
	}
}

// Acceptance comes from vLLM's counters or from SGLang's means, and is not taken
// for that of real text.
func TestSpeculation(t *testing.T) {
	vllm := [][]result.Metric{
		serverMetric("counter", "vllm:spec_decode_num_drafts_total", "engine=0", 10, 110),
		serverMetric("counter", "vllm:spec_decode_num_draft_tokens_total", "engine=0", 30, 330),
		serverMetric("counter", "vllm:spec_decode_num_accepted_tokens_total", "engine=0", 20, 170),
		serverMetric("counter", "vllm:spec_decode_num_accepted_tokens_per_pos_total", "engine=0,position=10", 0, 5),
		serverMetric("counter", "vllm:spec_decode_num_accepted_tokens_per_pos_total", "engine=0,position=2", 0, 40),
		serverMetric("counter", "vllm:spec_decode_num_accepted_tokens_per_pos_total", "engine=1,position=2", 0, 10),
	}
	for kind, warned := range map[string]bool{"": false, result.TextStable: true, trace.TextWords: true,
		trace.TextCorpus: false} {
		s := serverRun(t, result.Run{PromptText: kind}, vllm...)
		p := s.Servers.Speculation
		if p == nil || *p.Acceptance != .5 || *p.Length != 2.5 || *p.Steps != 100 ||
			!slices.Equal(p.ByPosition, []float64{.5, .05}) {
			t.Fatalf("%+v", p)
		}
		if serverWarns(&s, warnSpeculation) != warned {
			t.Errorf("prompts of %q: %+v", kind, s.Warnings)
		}
	}
	s := serverRun(t, result.Run{PromptText: result.TextStable},
		serverMetric("gauge", "sglang:spec_accept_length", "", 0, 0, 2, 3),
		serverMetric("gauge", "sglang:spec_accept_rate", "", 0, 0, .5, .7))
	p := s.Servers.Speculation
	if p == nil || *p.Length != 2.5 || math.Abs(*p.Acceptance-.6) > 1e-9 || p.Steps != nil ||
		!serverWarns(&s, warnSpeculation) {
		t.Errorf("SGLang: %+v", p)
	}
	// A server that could speculate and did not is no speculating one.
	s = serverRun(t, result.Run{PromptText: result.TextStable},
		serverMetric("counter", "vllm:spec_decode_num_drafts_total", "", 0, 0),
		serverMetric("gauge", "sglang:spec_accept_length", "", 0, 0))
	if s.Servers.Speculation != nil || serverWarns(&s, warnSpeculation) {
		t.Errorf("idle: %+v", s.Servers.Speculation)
	}
}

// What was done before a run, and what failed in measuring it, is said.
func TestServerWords(t *testing.T) {
	run := result.Run{
		Note: "after\x1b the fix",
		Servers: result.Servers{Server: &result.Server{ToNS: 9.2e9},
			Cache: &result.CacheDiscipline{Asked: "cold", Done: result.CacheReset, Call: "/flush_cache",
				Servers: 2}, ServerVersion: "0.11.0", MaxModelLen: 8192},
	}
	s := serverRun(t, run, serverMetric("gauge", "vllm:num_requests_running", "", 0, 2))
	var text bytes.Buffer
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Of this run: after? the fix", "by POST /flush_cache, at 2 servers", "Running",
		"2 on average"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	for done, want := range map[string]string{result.CacheNothing: "not controlled",
		result.CacheNewSeed: "not matched", result.CacheWarmPass: "warmed", result.CacheReset: "emptied"} {
		if did, note := cacheBefore(&result.CacheDiscipline{Done: done}); did != want || note == "" {
			t.Errorf("%s: %s, %s", done, did, note)
		}
	}
	labels := map[string]string{}
	for _, g := range provenanceGroups(&s) {
		for _, f := range g.Facts {
			labels[f.Label] = f.Value
		}
	}
	if labels["Server"] != "0.11.0" || labels["Context length"] != "8,192 tokens" ||
		labels["Cache state at start"] != "emptied" {
		t.Errorf("facts %v", labels)
	}
}

// However many samples a series has, what is drawn of it stays short and true.
func TestServerLinesAreBounded(t *testing.T) {
	lines := newServerLines(&result.Run{}, 0, math.MaxInt64, rolesOf([]result.ServerMetric{
		{Target: "a", Metric: "vllm:num_requests_running"}, {Target: "a", Metric: "vllm:generation_tokens_total"}}))
	const n = 20_000
	for i := range int64(n) {
		lines.add(&result.Metric{AtNS: i * 1e9, Target: "a", Name: "vllm:num_requests_running", Kind: "gauge",
			Value: float64(i % 10)})
		lines.add(&result.Metric{AtNS: i * 1e9, Target: "a", Name: "vllm:generation_tokens_total", Kind: "counter",
			Value: float64(i) * 7})
	}
	running, generated := lines.series("running", ""), lines.series("generate", "")
	if len(running.X) > maxSlots || len(running.X) < maxSlots/4 {
		t.Fatalf("%d points", len(running.X))
	}
	for i, y := range running.Y {
		if y < 3 || y > 6 { // 4.5 on average
			t.Fatalf("point %d is %v", i, y)
		}
	}
	for i, y := range generated.Y {
		if math.Abs(y-7) > 1e-9 {
			t.Fatalf("rate %d is %v", i, y)
		}
	}
	if l := lines.level("running"); l.Mean != 4.5 || l.Max != 9 {
		t.Errorf("level %+v", l)
	}
}

// A run that did not finish has no record of its server: the metrics up to the
// last count.
func TestServersOfUnfinishedRun(t *testing.T) {
	rows := serverMetric("counter", "vllm:generation_tokens_total", "", 0, 100, 200, 300, 400)
	opts := Options{Metrics: func() trace.Reader[result.Metric] { return &trace.SliceReader[result.Metric]{Rows: rows} }}
	s := summarise(t, result.Run{EndedEarly: "killed"}, opts, answer(0, 0, 0, 100))
	if v := s.Servers; v == nil || *v.Generated != 400 || v.ToS != 3.5 {
		t.Errorf("%+v", v)
	}
}

// Where answers say how long they waited at the server, that is the queue time, and not the histograms, which a
// warm-up is in and which know buckets alone.
func TestQueueTimeOfAnswers(t *testing.T) {
	rows := []result.Metric{}
	for at, below := range map[int64]float64{-1: 0, 1e9: 30} {
		for suffix, labels := range map[string]string{"_sum": "", "_bucket": "le=1"} {
			rows = append(rows, result.Metric{AtNS: at, Target: "a", Name: "vllm:request_queue_time_seconds" + suffix,
				Kind: result.Counter, Labels: labels, Value: below})
		}
		rows = append(rows, result.Metric{AtNS: at, Target: "a", Name: "vllm:request_queue_time_seconds_bucket",
			Kind: result.Counter, Labels: "le=+Inf", Value: below})
	}
	slices.SortStableFunc(rows, func(a, b result.Metric) int { return cmp.Compare(a.AtNS, b.AtNS) })
	opts := Options{Metrics: func() trace.Reader[result.Metric] { return &trace.SliceReader[result.Metric]{Rows: rows} }}

	quiet, said := answer(0, 0, 0, 100), answer(1, 0, 0, 100)
	said.QueueNS, said.PrefillNS = trace.Ptr(int64(3e6)), trace.Ptr(int64(40e6))
	for _, c := range []struct {
		of       result.Result
		mean     float64
		answered bool
	}{{quiet, 1000, false}, {said, 3, true}} {
		s := summarise(t, result.Run{}, opts, c.of)
		got := s.Figure(figure.Of(figure.Mean, figure.QueueTime))
		prefill := s.Figure(figure.Of(figure.Mean, figure.PrefillTime))
		if got == nil || *got != c.mean || (s.Servers.QueueTime == nil) != c.answered || (prefill != nil) != c.answered {
			t.Errorf("queue time %v, histograms %+v, prefill %v", got, s.Servers.QueueTime, prefill)
		}
	}
}

// The queue time is what the histograms grew by: from zero where a target that was scraped before the run did not have
// one yet, and where its server started anew. Beyond the last bound it is that bound.
func TestServerQueueTime(t *testing.T) {
	scraped := func(target string, at int64, sum float64, below ...float64) (all []result.Metric) {
		name := "vllm:request_queue_time_seconds"
		all = append(all, result.Metric{AtNS: at, Target: target, Name: name + "_sum", Kind: result.Counter, Value: sum})
		for i, bound := range []string{"1", "2", "+Inf"} {
			all = append(all, result.Metric{AtNS: at, Target: target, Name: name + "_bucket", Kind: result.Counter, Labels: "le=" + bound, Value: below[i]})
		}
		return all
	}
	before := result.Metric{AtNS: -1, Target: "a", Name: "vllm:num_requests_running", Kind: "gauge"}
	for name, c := range map[string]struct {
		metrics        []result.Metric
		count          int64
		mean, p50, p90 float64
	}{
		"of both":           {append(scraped("a", -1, 5, 10, 10, 10), scraped("a", 1e9, 25, 20, 30, 30)...), 20, 1000, 1000, 1800},
		"none before":       {append([]result.Metric{before}, scraped("a", 1e9, 20, 10, 20, 20)...), 20, 1000, 1000, 1800},
		"started anew":      {append(scraped("a", -1, 900, 800, 800, 800), scraped("a", 1e9, 20, 10, 20, 20)...), 20, 1000, 1000, 1800},
		"beyond all bounds": {append(scraped("a", -1, 0, 0, 0, 0), scraped("a", 1e9, 100, 0, 0, 20)...), 20, 5000, 2000, 2000},
		"unknown before":    {scraped("a", 1e9, 20, 10, 20, 20), 0, 0, 0, 0},
		"nobody came":       {append(scraped("a", -1, 5, 10, 10, 10), scraped("a", 1e9, 5, 10, 10, 10)...), 0, 0, 0, 0},
	} {
		h := serverHistogram{known: map[string]bool{}, last: map[lineKey]float64{}, buckets: map[float64]float64{}}
		for i := range c.metrics {
			h.add(queueTimes, &c.metrics[i])
		}
		got := h.stat()
		if c.count == 0 {
			if got != nil && (got.Count != 0 || got.Mean != nil || got.P50 != nil) {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if got == nil || got.Count != c.count || *got.Mean != c.mean || *got.P50 != c.p50 || *got.P90 != c.p90 || got.P99 != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
