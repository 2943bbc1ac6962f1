package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"reprise/trace/longtest"
	"reprise/trace/textpage"
)

// What is asked for in many ways is found, with what defines it.
func TestExplain(t *testing.T) {
	ttft := []string{"latency.from_sent.ttft.p99_ms", "latency.from_due.ttft.p99_ms", "steady.ttft.p99_ms"}
	percentile := "p50, p90, p95, p99, p99_9"
	for name, want := range map[string]struct {
		paths, defined []string
	}{
		"p99_ttft":                      {ttft, []string{"ttft", "latency.from_sent, latency.from_due", percentile, "latencies of the steady state"}},
		"ttft_p99":                      {ttft, nil},
		" TTFT p99 ":                    {ttft, nil},
		"p99-time_to_first_token":       {ttft, nil},
		"ttft_from_due_p99":             {ttft[1:2], []string{"ttft", "latency.from_sent, latency.from_due", percentile}},
		"p99_ttft_from_due":             {ttft[1:2], nil},
		"latency.from_due.ttft.p99_ms":  {ttft[1:2], nil},
		"latency.from_due.ttft.p99":     {ttft[1:2], nil},
		"median_tpot":                   {[]string{"latency.tpot.p50_ms", "steady.tpot.p50_ms"}, nil},
		"p99.9_send_lag":                {[]string{"latency.send_lag.p99_9_ms"}, []string{"send_lag", percentile}},
		"p999_lag":                      {[]string{"latency.send_lag.p99_9_ms"}, nil},
		"hit_ratio":                     {[]string{"cache.measured_ratio", "cache.expected_ratio", "servers.prefix_hit_ratio"}, []string{"measured_ratio", "expected_ratio", "servers.prefix_hit_ratio"}},
		"goodput":                       {[]string{"goodput.from_sent.requests", "goodput.from_sent.requests_per_s", "goodput.from_sent.share", "goodput.from_due.requests", "goodput.from_due.requests_per_s", "goodput.from_due.share"}, []string{"goodput"}},
		"throughput":                    {[]string{"throughput.requests_per_s", "throughput.prompt_tokens_per_s", "throughput.output_tokens_per_s"}, []string{"requests", "prompt_tokens", "output_tokens"}},
		"running_max":                   {[]string{"servers.running.max"}, nil},
		"by_category.3.ttft_p99_ms":     {[]string{"by_category.3.ttft_p99_ms"}, []string{"ttft", percentile}},
		"run.gc_pause_max":              {[]string{"run.gc_pause_max_ns"}, []string{"run.gc_pause_max_ns"}},
		"tokens.output_source_rows.any": {[]string{"tokens.output_source_rows.any"}, nil},
		"p99":                           {[]string{}, []string{percentile}},
		"from_due":                      {[]string{}, []string{"latency.from_sent, latency.from_due"}},
	} {
		e, err := Explain(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(e.Paths, want.paths) {
			t.Errorf("%s: paths %q", name, e.Paths)
		}
		var defined []string
		for _, d := range e.Definitions {
			defined = append(defined, d.Name)
		}
		if want.defined != nil && !slices.Equal(defined, want.defined) {
			t.Errorf("%s: definitions %q", name, defined)
		}
	}
}

func TestExplainUnknown(t *testing.T) {
	for name, near := range map[string]string{"goodputt": "goodput", "p99_tftt": "p99_ttft", "ttft_p98": "p99_ttft", "zzzzzzzz": "", "": "", "p95_goodput": "", "..": ""} {
		_, err := Explain(name)
		var unknown *unknownName
		if !errors.As(err, &unknown) {
			t.Errorf("%q: error %v", name, err)
			continue
		}
		if near != "" && !slices.Contains(unknown.Near, near) || len(unknown.Near) > 5 {
			t.Errorf("%q is near %q", name, unknown.Near)
		}
		for _, n := range unknown.Near {
			if _, err := Explain(n); err != nil {
				t.Errorf("%q is proposed for %q, and unknown too", n, name)
			}
		}
	}
}

// Every name that the list has is found, and every number of a report by its path, at
// the value that the summary has.
func TestExplainAll(t *testing.T) {
	longtest.Skip(t)
	for _, d := range Definitions() {
		for _, n := range d.names() {
			if _, err := Explain(n); err != nil && !strings.Contains(n, " ") {
				t.Errorf("%s: %v", n, err)
			}
		}
	}
	s, paths := fullSummary(t)
	for _, path := range paths {
		e, err := Explain(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := e.Measure(s); err != nil {
			t.Fatal(err)
		}
		if len(e.Values) != 1 || e.Values[0].Path != path || e.Values[0].Value != "1" {
			t.Errorf("%s: %+v", path, e.Values)
		}
	}
}

func TestExplainMeasures(t *testing.T) {
	run, results, opts := smallRun()
	s := summarise(t, run, opts, results...)
	for name, want := range map[string]struct {
		value, unit, method string
		samples             int64
	}{
		"latency.from_due.ttft.p50_ms": {inJSON(s.Latency.FromDue.TTFT.P50), "ms", exact, s.Latency.FromDue.TTFT.Count},
		"goodput.from_due.share":       {inJSON(s.Goodput.FromDue.Share), "share", "", s.Requests.Succeeded + s.Requests.Failed},
		"throughput.requests_per_s":    {inJSON(s.Throughput.RequestsPerS), "1/s", "", s.Requests.Succeeded},
		"cache.measured_ratio":         {inJSON(s.Cache.Measured), "share", "", s.Cache.Rows},
	} {
		e, err := Explain(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Measure(s); err != nil || len(e.Values) != 1 {
			t.Fatalf("%s: %+v, error %v", name, e.Values, err)
		}
		v := e.Values[0]
		if v.Value.String() != want.value || v.Unit != want.unit || v.Method != want.method || v.Samples == nil || *v.Samples != want.samples {
			t.Errorf("%s: %+v", name, v)
		}
	}
	run, results, opts = brokenRun()
	few, err := Explain("latency.from_due.ttft.p99_ms")
	if err != nil || few.Measure(summarise(t, run, opts, results...)) != nil || few.Values[0].Value != "" || *few.Values[0].Samples != 2 {
		t.Errorf("too few values: %+v, error %v", few, err)
	}
	e, err := Explain("steady.ttft.p99_ms")
	if err != nil || e.Measure(s) != nil || len(e.Values) != 0 {
		t.Errorf("a run without a steady state: %+v, error %v", e, err)
	}
	var b bytes.Buffer
	if err := WriteExplanation(&b, e, textpage.Options{}); err != nil || !strings.Contains(b.String(), "do not have it") {
		t.Error(b.String())
	}
}

// inJSON is a number as JSON has it.
func inJSON(v *float64) string {
	if v == nil {
		return ""
	}
	doc, err := json.Marshal(*v)
	if err != nil {
		panic(err)
	}
	return string(doc)
}

// The text keeps within its width, with names from a file in it.
func TestExplanationText(t *testing.T) {
	run, results, opts := smallRun()
	s := summarise(t, run, opts, results...)
	for _, name := range []string{"p99_ttft", "errors", "run", "servers.running", "throughput"} {
		e, err := Explain(name)
		if err != nil {
			continue // no name of its own
		}
		if err := e.Measure(s); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteExplanation(&b, e, textpage.Options{}); err != nil {
			t.Fatal(err)
		}
		holdWidth(t, b.String())
	}
	var b bytes.Buffer
	if err := WriteNames(&b); err != nil || !strings.Contains(b.String(), "ttft [ms]\n") || !strings.Contains(b.String(), "run.wire.dials [connections]\n") {
		t.Errorf("error %v\n%s", err, b.String())
	}
}

// The paths by reflection are those that the JSON has.
func TestNumberPaths(t *testing.T) {
	_, paths := fullSummary(t)
	var missing []string
	for _, path := range paths {
		if !slices.ContainsFunc(numberPaths(), func(p string) bool { return matches(p, path) }) {
			missing = append(missing, path)
		}
	}
	if missing != nil {
		t.Errorf("%q", missing)
	}
	if n := len(numberPaths()); n != len(paths) {
		t.Errorf("%d paths, and %d numbers", n, len(paths))
	}
}
