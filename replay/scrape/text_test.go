package scrape

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Pages as the engines and the exporter write them, shortened.
const (
	vllmPage = `# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 8131.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="meta-llama/Llama-3.2-3B"} 3.0
vllm:num_requests_running{engine="1",model_name="meta-llama/Llama-3.2-3B"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="meta-llama/Llama-3.2-3B"} NaN
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="meta-llama/Llama-3.2-3B"} 1.6e+06
# TYPE vllm:prefix_cache_hits_created gauge
vllm:prefix_cache_hits_created{engine="0",model_name="meta-llama/Llama-3.2-3B"} 1.7549e+09
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="meta-llama/Llama-3.2-3B"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="meta-llama/Llama-3.2-3B"} 9.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="meta-llama/Llama-3.2-3B"} 10.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="meta-llama/Llama-3.2-3B"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="meta-llama/Llama-3.2-3B"} 2.5
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_total counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="meta-llama/Llama-3.2-3B",position="1"} 7.0
`
	sglangPage = `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",pid="4711",pp_rank="0",tp_rank="0"} 5.0
# TYPE sglang:spec_accept_length gauge
sglang:spec_accept_length{engine_type="unified",model_name="m",tp_rank="0"} 2.75
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 64.0
`
	llamaPage = `# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 1234
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 2
`
	dcgmPage = "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\r\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\r\n" +
		`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1c2",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA L4",Hostname="node-17",pod="secret-team"} 87` + "\r\n" +
		`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-9f9",pci_bus_id="00000000:1C:00.0",device="nvidia0",modelName="NVIDIA L4",Hostname="node-18",pod="secret-team"} 12` + "\r\n" +
		"# TYPE DCGM_FI_DEV_POWER_USAGE untyped\r\n" + `DCGM_FI_DEV_POWER_USAGE{gpu="0"} 61.5` + "\r\n"
)

func scrapeTextSeries(t *testing.T, page string, buckets bool) []string {
	t.Helper()
	points, err := decodeText([]byte(page), DefaultPrefixes(), buckets)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range newTable(100).samples("t", at0, points) {
		out = append(out, fmt.Sprintf("%s %s{%s} %g", s.Series.Kind, s.Series.Metric, s.Series.Labels, s.Value))
	}
	return out
}

func TestDecodeText(t *testing.T) {
	const model = "model_name=meta-llama/Llama-3.2-3B"
	plain := []string{
		"gauge vllm:num_requests_running{engine=0," + model + "} 3",
		"gauge vllm:num_requests_running{engine=1," + model + "} 4",
		"counter vllm:prefix_cache_hits_total{engine=0," + model + "} 1.6e+06",
		"counter vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=0," + model + ",position=1} 7",
		"counter vllm:time_to_first_token_seconds_count{engine=0," + model + "} 10",
		"counter vllm:time_to_first_token_seconds_sum{engine=0," + model + "} 2.5",
	}
	buckets := []string{
		"counter vllm:time_to_first_token_seconds_bucket{engine=0,le=0.001," + model + "} 0",
		"counter vllm:time_to_first_token_seconds_bucket{engine=0,le=0.5," + model + "} 9",
		"counter vllm:time_to_first_token_seconds_bucket{engine=0,le=+Inf," + model + "} 10",
	}
	for _, c := range []struct {
		name, page string
		buckets    bool
		want       []string
	}{
		{"vLLM", vllmPage, false, plain},
		{"vLLM with buckets", vllmPage, true, append(slices.Clone(plain), buckets...)},
		{"SGLang", sglangPage, true, []string{
			"counter sglang:cached_tokens_total{cache_source=device,model_name=m} 64",
			"gauge sglang:num_running_reqs{engine_type=unified,model_name=m,pp_rank=0,tp_rank=0} 5",
			"gauge sglang:spec_accept_length{engine_type=unified,model_name=m,tp_rank=0} 2.75",
		}},
		{"llama.cpp", llamaPage, true, []string{"counter llamacpp:prompt_tokens_total{} 1234", "gauge llamacpp:requests_deferred{} 2"}},
		// Two GPUs that only dropped labels tell apart stay two.
		{"DCGM", dcgmPage, true, []string{
			"gauge DCGM_FI_DEV_GPU_UTIL{device=nvidia0,gpu=0,modelName=NVIDIA L4} 87",
			"gauge DCGM_FI_DEV_GPU_UTIL{device=nvidia0,gpu=0,modelName=NVIDIA L4,series=2} 12",
			"gauge DCGM_FI_DEV_POWER_USAGE{gpu=0} 61.5",
		}},
		{"empty", "", true, nil},
		{"nothing wanted, and none of it valid", "a page of another kind\n", true, nil},
	} {
		if got := scrapeTextSeries(t, c.page, c.buckets); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// A summary gives its quantiles, and a histogram of floats its floats.
func TestDecodeOtherKinds(t *testing.T) {
	got := scrapeTextSeries(t, `# TYPE vllm:a summary
vllm:a{quantile="0.5"} 3
vllm:a_sum 10
vllm:a_count 4
# TYPE vllm:b histogram
vllm:b_bucket{le="1"} 1.5
vllm:b_count 2.5
vllm:b_sum 3
`, true)
	want := []string{"counter vllm:a_count{} 4", "counter vllm:a_sum{} 10", "gauge vllm:a{quantile=0.5} 3",
		"counter vllm:b_count{} 2.5", "counter vllm:b_sum{} 3", "counter vllm:b_bucket{le=1} 1.5"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What an answer holds is never in an error.
func TestDecodeErrorsDoNotQuote(t *testing.T) {
	for _, page := range []string{
		`vllm:x{a="SECRET} 1`, "vllm:x SECRET\n", `vllm:SECRET{`, "# TYPE vllm:x SECRET\nvllm:x 1\n", "vllm:x 1 SECRET\n",
	} {
		if _, err := decodeText([]byte(page), DefaultPrefixes(), true); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: error %v", page, err)
		}
	}
	for _, body := range []string{`SECRET`, `{"status":"error","error":"SECRET"}`, `{"status":"success","data":{"resultType":"matrix","result":[{"values":[["SECRET","1"]]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"SECRET"]]}]}}`} {
		if _, err := decodeMatrix([]byte(body)); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: error %v", body, err)
		}
	}
}

// Labels hold what their form has a place for, and no more of it than a bound.
func TestLabelsOfSeries(t *testing.T) {
	got := newTable(1).series("t", &point{labels: []label{{"model_name", "a,b=c\n\x1b[31m" + strings.Repeat("x", 200)}, {"engine", "0"}, {"Hostname", "h"}, {"gpu", ""}}}).Labels
	if !strings.HasPrefix(got, "engine=0,model_name=a_b_c__") || len(got) > maxLabel+len("engine=0,model_name=") || strings.ContainsAny(got, "\n\x1b") {
		t.Errorf("%q", got)
	}
}

func FuzzText(f *testing.F) {
	for _, page := range []string{vllmPage, sglangPage, llamaPage, dcgmPage, "vllm:x 1", "vllm:x{le=\"", "# TYPE vllm:x histogram\nvllm:x_bucket 3\n"} {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		points, err := decodeText(page, DefaultPrefixes(), true)
		if err != nil {
			if err.Error() != errText.Error() {
				t.Fatalf("error %v", err)
			}
			return
		}
		table := newTable(50)
		for _, s := range table.samples("t", at0, points) {
			if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Series.ID >= 50 || s.Series.Kind == "" || len(s.Series.Metric) > 128 {
				t.Fatalf("sample %+v of %+v", s, s.Series)
			}
			if strings.ContainsAny(s.Series.Labels+s.Series.Metric, "\n\x00\x1b\"") {
				t.Fatalf("series %q", s.Series.Labels)
			}
		}
	})
}
