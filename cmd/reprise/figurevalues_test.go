package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"reprise/replay/compare"
	"reprise/replay/contract"
	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/doc"
)

// judgedRun is a run of 300 sessions of four turns whose servers were scraped each second.
func judgedRun() (run result.Run, rows []result.Result, metrics []result.Metric) {
	rng := rand.New(rand.NewPCG(5, 8))
	run.Started, run.Model, run.Load = "2026-05-01T12:00:00Z", "m", result.Load{Speed: 1, Timing: result.Causal}
	for i := range int64(1200) {
		r := resulttest.Failure(i, 10*i, "server_error")
		if rng.IntN(50) > 0 {
			at, events := 20+rng.Int64N(200), []int64{}
			for range 6 + rng.IntN(6) {
				events, at = append(events, at), at+5+rng.Int64N(60)
			}
			r = resulttest.Answer(i, 10*i, rng.Int64N(3), events...)
			r.EventTokens, r.Cached = make([]int32, len(events)), trace.Ptr(16*rng.Int32N(7))
			for k := range r.EventTokens {
				r.EventTokens[k] = 1 + rng.Int32N(3)
				*r.Output += r.EventTokens[k] - 1
			}
			r.WantOutput = r.Output
			r.FirstContentNS = trace.Ptr(*r.FirstTokenNS + r.GapsNS[0]) // the first event was reasoning
			r.PrefillNS = trace.Ptr(1 + rng.Int64N(2e7))
		}
		r.Session, r.Turn, r.Parents = trace.Ptr(i%300), trace.Ptr(int32(i/300)), nil
		if i >= 300 {
			r.Parents = []int64{i - 300}
		}
		r.ArrivalNS, r.RecordedE2ENS = trace.Ptr(r.DueNS), trace.Ptr(rng.Int64N(3e8))
		rows = append(rows, r)
	}
	for at := range int64(12) {
		for name, scale := range map[string]float64{"vllm:num_requests_running": 40, "vllm:num_requests_waiting": 9, "vllm:kv_cache_usage_perc": 1,
			"DCGM_FI_DEV_GPU_UTIL": 100, "DCGM_FI_DEV_FB_USED": 80_000} {
			metrics = append(metrics, result.Metric{AtNS: at * 1e9, Target: "s", Name: name, Kind: "gauge", Value: math.Round(scale*100*rng.Float64()) / 100})
		}
	}
	for i, name := range []string{"vllm:request_queue_time_seconds", "sglang:queue_time_seconds"} {
		for at, counts := range map[int64][]float64{-1e9: {3, 5, 9, 9}, 13e9: {403, 905, 1109, 1109 + float64(i)}} {
			target := "engine" + strconv.Itoa(i)
			metrics = append(metrics, result.Metric{AtNS: at, Target: target, Name: name + "_sum", Kind: "counter", Value: counts[2] / 2})
			for k, bound := range []string{"0.3", "0.5", "2.5", "+Inf"} {
				metrics = append(metrics, result.Metric{AtNS: at, Target: target, Name: name + "_bucket", Kind: "counter", Labels: "le=" + bound, Value: counts[k]})
			}
		}
	}
	slices.SortStableFunc(metrics, func(a, b result.Metric) int { return cmp.Compare(a.AtNS, b.AtNS) })
	return run, rows, metrics
}

// judgedBy computes figures from the rows as their definitions say, with nothing of the packages that the commands use.
type judgedBy struct {
	single map[*figure.Subject]float64
	spread map[*figure.Subject][]float64
}

func byHand(rows []result.Result, metrics []result.Metric) judgedBy {
	j := judgedBy{map[*figure.Subject]float64{}, map[*figure.Subject][]float64{}}
	add := func(of *figure.Subject, ns int64) { j.spread[of] = append(j.spread[of], float64(ns)/1e6) }
	var good, failed, open, output, cached, prompt, end float64
	type session struct{ from, to, recordedFrom, recordedTo, server, failed float64 }
	sessions := make([]session, 300)
	for i := range rows {
		r := &rows[i]
		end, open = max(end, float64(*r.DoneNS)), open+float64(*r.DoneNS-*r.SentNS)
		add(figure.SendLag, *r.SentNS-r.DueNS)
		s := &sessions[*r.Session]
		if i < 300 {
			s.from, s.recordedFrom = float64(r.DueNS), float64(*r.ArrivalNS)
		}
		s.to, s.server = max(s.to, float64(*r.DoneNS)), s.server+float64(*r.DoneNS-*r.SentNS)
		s.recordedTo = max(s.recordedTo, float64(*r.ArrivalNS+*r.RecordedE2ENS))
		if r.Error != "" {
			failed++
			s.failed++
			continue
		}
		cached, prompt, output = cached+float64(*r.Cached), prompt+float64(*r.Input), output+float64(*r.Output)
		add(figure.TTFT, *r.FirstTokenNS-r.DueNS)
		add(figure.TTFO, *r.FirstContentNS-r.DueNS)
		add(figure.PrefillTime, *r.PrefillNS)
		add(figure.E2E, *r.LastTokenNS-r.DueNS)
		add(figure.Headers, *r.HeadersNS-r.DueNS)
		tpot := float64(*r.LastTokenNS-*r.FirstTokenNS) / float64(*r.Output-1)
		j.spread[figure.TPOT] = append(j.spread[figure.TPOT], tpot/1e6)
		for k, gap := range r.GapsNS {
			add(figure.ITL, gap)
			j.spread[figure.TokenITL] = append(j.spread[figure.TokenITL], float64(gap)/float64(r.EventTokens[k+1])/1e6)
		}
		if *r.FirstTokenNS-r.DueNS <= 150e6 && tpot <= 20e6 {
			good++
		}
	}
	seconds, n, ended := end/1e9, float64(len(rows)), 0.0
	for _, s := range sessions {
		if s.failed > 0 {
			continue
		}
		ended++
		add(figure.SessionTime, int64(s.to-s.from))
		add(figure.SessionServerTime, int64(s.server))
		j.spread[figure.SessionSlowdown] = append(j.spread[figure.SessionSlowdown], (s.to-s.from)/(s.recordedTo-s.recordedFrom))
	}
	price := 2.5 * 4 * seconds / 3600
	for of, v := range map[*figure.Subject]float64{figure.RequestRate: (n - failed) / seconds, figure.PromptRate: prompt / seconds, figure.OutputRate: output / seconds,
		figure.ErrorRate: failed / n, figure.Goodput: good / n, figure.HitRatio: cached / prompt, figure.InFlight: open / end, figure.TokenCost: price / output * 1e6,
		figure.SessionSuccess: ended / 300, figure.SessionRate: ended / seconds, figure.SessionCost: price / ended} {
		j.single[of] = v
	}
	for i := range metrics {
		m := &metrics[i]
		of := map[string]*figure.Subject{"vllm:num_requests_running": figure.MaxRunning, "vllm:num_requests_waiting": figure.MaxWaiting, "vllm:kv_cache_usage_perc": figure.MaxKVCacheUse,
			"DCGM_FI_DEV_GPU_UTIL": figure.MaxGPUUse, "DCGM_FI_DEV_FB_USED": figure.MaxGPUMemory}[m.Name]
		v := m.Value
		if of == nil {
			continue
		}
		if of == figure.MaxGPUUse {
			v /= 100
		}
		j.single[of] = max(j.single[of], v)
	}
	return j
}

// value is a figure, by linear interpolation between the values in order.
func (j *judgedBy) value(f figure.Figure) float64 {
	if !f.Spread {
		return j.single[f.Subject]
	}
	values := slices.Sorted(slices.Values(j.spread[f.Subject]))
	last := len(values) - 1
	switch {
	case f.Subject == figure.QueueTime && f.Statistic == figure.Mean:
		return 1e3 * (1100 / 2 * 2) / 2201
	case f.Subject == figure.QueueTime: // of 2,201 requests, 800 took up to 300 ms, 1,000 more to 500 ms, 400 more to 2.5 s, and one longer
		share, _ := f.Statistic.Share()
		rank := share * 2201
		if rank <= 800 {
			return rank / 800 * 300
		} else if rank <= 1800 {
			return 300 + (rank-800)/1000*200
		}
		return 500 + (rank-1800)/400*2000
	}
	switch f.Statistic {
	case figure.Mean:
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		return sum / float64(len(values))
	case figure.Max:
		return values[last]
	}
	at := map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}[f.Statistic.String()] * float64(last)
	low := int(at)
	return values[low] + (at-float64(low))*(values[min(low+1, last)]-values[low])
}

// printedAs says where each figure stands: in the JSON, with * for the statistic, and in Prometheus' text. Where both are
// empty, only a clause of a contract prints the figure.
var printedAs = map[string]struct{ path, family string }{
	"ttft":                           {"latency.from_due.ttft.*_ms", `ttft_seconds{origin="due",statistic="*"}`},
	"ttfo":                           {"latency.from_due.ttfo.*_ms", `ttfo_seconds{origin="due",statistic="*"}`},
	"e2e":                            {"latency.from_due.e2e.*_ms", `e2e_seconds{origin="due",statistic="*"}`},
	"headers":                        {"latency.from_due.headers.*_ms", `headers_seconds{origin="due",statistic="*"}`},
	"tpot":                           {"latency.tpot.*_ms", `tpot_seconds{statistic="*"}`},
	"itl":                            {"latency.itl_chunk.*_ms", `itl_chunk_seconds{statistic="*"}`},
	"itl_token":                      {"latency.itl_token.*_ms", `itl_token_seconds{statistic="*"}`},
	"send_lag":                       {"latency.send_lag.*_ms", `send_lag_seconds{statistic="*"}`},
	"requests_per_s":                 {"throughput.requests_per_s", "requests_per_second{}"},
	"prompt_tokens_per_s":            {"throughput.prompt_tokens_per_s", "prompt_tokens_per_second{}"},
	"output_tokens_per_s":            {"throughput.output_tokens_per_s", "output_tokens_per_second{}"},
	"error_rate":                     {"requests.error_share", "error_ratio{}"},
	"goodput":                        {"goodput.from_due.share", `goodput_ratio{origin="due"}`},
	"hit_ratio":                      {"cache.measured_ratio", `prefix_cache_hit_ratio{kind="measured"}`},
	"in_flight":                      {"in_flight.mean", `in_flight_requests{statistic="mean"}`},
	"cost_per_million_output_tokens": {},
	"session_time":                   {"sessions.completion.*_ms", `session_time_seconds{statistic="*"}`},
	"session_server_time":            {"sessions.critical_path.server.*_s", `session_server_time_seconds{statistic="*"}`},
	"session_slowdown":               {"sessions.slowdown.*", `session_slowdown_ratio{statistic="*"}`},
	"session_success":                {"sessions.success_share", "session_success_ratio{}"},
	"sessions_per_s":                 {"sessions.sessions_per_s", "sessions_per_second{}"},
	"cost_per_session":               {},
	"queue_time":                     {"servers.queue_time.*_ms", `queue_time_seconds{statistic="*"}`},
	"prefill_time":                   {"latency.prefill_time.*_ms", `prefill_time_seconds{statistic="*"}`},
	"max_running":                    {"servers.running.max", "max_running{}"},
	"max_waiting":                    {"servers.waiting.max", "max_waiting{}"},
	"max_kv_cache_use":               {"servers.kv_cache_use.max", "max_kv_cache_use_ratio{}"},
	"max_gpu_utilisation":            {"servers.gpu_utilisation.max", "max_gpu_utilisation_ratio{}"},
	"max_gpu_memory_mib":             {"servers.gpu_memory_mib.max", "max_gpu_memory_mib{}"},
}

// Each figure has one value wherever it is printed, and it is the one that its definition gives by hand.
func TestEveryFigureByItsRows(t *testing.T) {
	long(t)
	dir := t.TempDir()
	run, rows, metrics := judgedRun()
	hand := byHand(rows, metrics)
	one, other, terms := filepath.Join(dir, "one.parquet"), filepath.Join(dir, "other.parquet"), filepath.Join(dir, "terms.yaml")
	for _, path := range []string{one, other} {
		if err := result.Write(path, run, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
			t.Fatal(err)
		}
		if err := result.WriteMetrics(result.MetricsName(path), &run, &trace.SliceReader[result.Metric]{Rows: metrics}); err != nil {
			t.Fatal(err)
		}
	}
	var figures []figure.Figure
	clauses := "gpus: 4\nprice_per_gpu_hour: 2.5\nclauses:\n"
	for _, of := range figure.All() {
		statistics := []figure.Statistic{0}
		if of.Spread {
			statistics = []figure.Statistic{figure.Mean, figure.P50, figure.P90, figure.P95, figure.P99, figure.Max}
		}
		for _, s := range statistics {
			f := figure.Of(s, of)
			figures = append(figures, f)
			operator := map[bool]string{true: ">=", false: "<="}[of.Better == figure.Higher]
			if clause := fmt.Sprintf("  - %s %s %s\n", f.Words(), operator, f.Example()); judgedAlone(clause) {
				clauses += clause
			}
		}
	}
	writeFiles(t, map[string]string{terms: clauses})
	common := []string{"--slo", "ttft:150ms,tpot:20ms", "--trust", "max-errors=off", "--contract", terms}
	read := func(args ...string) string {
		t.Helper()
		out, errs, _ := reprise(t, append(append([]string{"report"}, args...), common...)...)
		if out == "" {
			t.Fatalf("%q: %s", args, errs)
		}
		return out
	}

	var s report.Summary
	var document any
	for _, into := range []any{&s, &document} {
		if err := json.Unmarshal([]byte(read(one, "--json")), into); err != nil {
			t.Fatal(err)
		}
	}
	table, err := csv.NewReader(strings.NewReader(read(one, "--format", "csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(read(one, "--format", "prometheus")))
	if err != nil {
		t.Fatal(err)
	}
	exposed := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "model" && l.GetName() != "run" && l.GetName() != "slo" {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			exposed[strings.TrimPrefix(name, "reprise_")+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue()
		}
	}
	beside := read(one, other, "--details")

	for _, f := range figures {
		want, told := hand.value(f), 0
		is := func(where string, got float64) {
			t.Helper()
			if told++; !(math.Abs(got-want) <= 2e-6*math.Abs(want)+1e-6) {
				t.Errorf("%s is %v by its definition, and %v in %s", f, want, got, where)
			}
		}
		for _, c := range s.Contract.Clauses {
			if strings.HasPrefix(c.Clause, f.Words()+" ") && c.Measured != nil {
				is("the contract", *c.Measured*map[bool]float64{true: 1000, false: 1}[c.Unit == "s"])
			}
		}
		at, ok := printedAs[f.Name]
		if !ok {
			t.Errorf("say where %s is printed", f)
		}
		scale, statistic := 1.0, f.Statistic.String()
		if strings.HasSuffix(at.path, "_s") && f.Unit == figure.Milliseconds {
			scale = 1000
		}
		if report.Summarised(f) {
			path := strings.Replace(at.path, "*", statistic, 1)
			v, ok := numberAt(document, path)
			if !ok {
				t.Errorf("%s is not at %s", f, path)
			}
			is("the JSON", v*scale)
			is("the CSV", csvValue(t, table, path)*scale)
			in := 1.0
			if f.Unit == figure.Milliseconds {
				in = 1000
			}
			v, ok = exposed[strings.Replace(at.family, "*", statistic, 1)]
			if !ok {
				t.Errorf("%s is not in %s", f, at.family)
			}
			is("Prometheus", v*in)
			e, err := report.Explain(f.String())
			if err == nil {
				err = e.Measure(s)
			}
			if err != nil {
				t.Fatalf("%s is not explained: %v", f, err)
			}
			i := slices.IndexFunc(e.Values, func(v report.Explained) bool { return v.Path == path })
			if i < 0 {
				t.Errorf("%s is explained as %v, without %s", f, e.Paths, path)
				continue
			}
			v, _ = e.Values[i].Value.Float64()
			is("--explain", v*scale)
		}
		if f.Servers && (f.Statistic == 0 || f.Statistic == figure.P95) {
			shown := doc.Number(want)
			if f.Unit == figure.Share {
				shown = doc.Percent(want)
			}
			if !strings.Contains(beside, shown) || !strings.Contains(beside, "Servers: "+f.Label) {
				t.Errorf("%s, %s, is not beside that of another run:\n%s", f, shown, beside)
			}
			told++
		}
		if _, err := compare.ParsePrimary(f.String()); err == nil {
			arms := []compare.Arm{{Name: "a", Runs: []report.Summary{s}}, {Name: "b", Runs: []report.Summary{s}}}
			c, err := compare.Arms(arms, compare.Options{Primary: f.String()})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.Versus[0].Metrics {
				if m.Metric == f.String() && m.A != nil {
					is("a comparison", *m.A)
				}
			}
		}
		if told == 0 && (!f.Spread || report.Summarised(f)) {
			t.Errorf("nothing tells %s", f)
		}
	}
}

// judgedAlone tells whether a contract takes a clause.
func judgedAlone(clause string) bool {
	_, err := contract.Parse("c", []byte("gpus: 1\nprice_per_gpu_hour: 1\nclauses:\n"+clause))
	return err == nil
}

// numberAt is the number at a path of a document.
func numberAt(document any, path string) (float64, bool) {
	for _, name := range strings.Split(path, ".") {
		m, _ := document.(map[string]any)
		document = m[name]
	}
	v, ok := document.(float64)
	return v, ok
}

// csvValue is the number of a row whose name is a path without its unit and its statistic.
func csvValue(t *testing.T, table [][]string, path string) float64 {
	t.Helper()
	for _, row := range table {
		name, statistic := row[0], row[3]
		for _, written := range []string{name, name + "_ms", name + "_s", name + "." + statistic, name + "." + statistic + "_ms"} {
			if row[1] == "" && written == path {
				var v float64
				if _, err := fmt.Fscan(bytes.NewReader([]byte(row[4])), &v); err != nil {
					t.Errorf("%s: %v", path, err)
				}
				return v
			}
		}
	}
	t.Errorf("%s is not in the CSV", path)
	return 0
}
