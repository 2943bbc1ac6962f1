package profile_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/textpage"
)

// naiveQuantile is numpy's default: linear interpolation at rank p·(n−1).
func naiveQuantile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := p * float64(len(sorted)-1)
	low := int(math.Floor(rank))
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (rank-float64(low))*(sorted[high]-sorted[low])
}

func naiveMean(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

func naiveVariance(values []float64) (variance float64) {
	mean := naiveMean(values)
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return variance
}

func checkStats(t *testing.T, name string, s *profile.Stats, values []float64) {
	t.Helper()
	if s == nil || s.Count != int64(len(values)) || s.Approximate {
		t.Fatalf("%s: %+v; want %d values", name, s, len(values))
	}
	sd := math.Sqrt(naiveVariance(values))
	near(t, name+" mean", &s.Mean, naiveMean(values))
	near(t, name+" sd", s.SD, sd)
	for _, q := range []struct{ got, p float64 }{{s.Min, 0}, {s.P50, 0.5}, {s.P90, 0.9}, {s.P95, 0.95}, {s.P99, 0.99},
		{s.P999, 0.999}, {s.Max, 1}} {
		near(t, name+" quantile", &q.got, naiveQuantile(values, q.p))
	}
}

// naiveIDC counts every whole window by looking at all arrivals.
func naiveIDC(times []int64, width int64) (windows int64, idc float64) {
	windows = (times[len(times)-1] - times[0]) / width
	var counts []float64
	for k := range windows {
		n := 0.0
		for _, at := range times {
			if at-times[0] >= k*width && at-times[0] < (k+1)*width {
				n++
			}
		}
		counts = append(counts, n)
	}
	return windows, naiveVariance(counts) / naiveMean(counts)
}

// naiveRanks gives every value the mean of the ranks that it and its equals hold.
func naiveRanks(values []float64) []float64 {
	ranks := make([]float64, len(values))
	for i, v := range values {
		for _, o := range values {
			switch {
			case o < v:
				ranks[i]++
			case o == v:
				ranks[i] += 0.5
			}
		}
	}
	return ranks
}

func naivePearson(a, b []float64) float64 {
	ma, mb := naiveMean(a), naiveMean(b)
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - ma) * (b[i] - mb)
		aa += (a[i] - ma) * (a[i] - ma)
		bb += (b[i] - mb) * (b[i] - mb)
	}
	return ab / math.Sqrt(aa*bb)
}

func TestSummaryAgainstNaive(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			rows := generate(61, 500, s)
			for i := range rows {
				if i%3 == 0 {
					rows[i].ThinkNS, rows[i].CachedTokens = trace.Ptr(int64(i)*777), trace.Ptr(int32(i%50))
				}
			}
			sum := profileOf(t, rows, trace.Meta{BlockSize: s.block}, profile.ProfilerOptions{}).Summary()
			if sum.Rows != 500 || sum.Requests+sum.Failed != 500 || (sum.Failed > 0) != s.statuses {
				t.Fatalf("%d rows, %d requests, %d failed", sum.Rows, sum.Requests, sum.Failed)
			}
			var in, out, gaps, think, cached []float64
			var times []int64
			for i, r := range load(rows) {
				in, out = append(in, float64(r.InputTokens)), append(out, float64(*r.OutputTokens))
				times = append(times, r.ArrivalNS)
				if i > 0 {
					gaps = append(gaps, float64(r.ArrivalNS-times[i-1])/1e9)
				}
				if r.ThinkNS != nil {
					think, cached = append(think, float64(*r.ThinkNS)/1e9), append(cached, float64(*r.CachedTokens))
				}
			}
			checkStats(t, "input", sum.Input, in)
			checkStats(t, "output", sum.Output, out)
			checkStats(t, "gaps", sum.Arrivals.InterArrival, gaps)
			checkStats(t, "think", sum.Think, think)
			checkStats(t, "cached", sum.Cached, cached)
			near(t, "CV", sum.Arrivals.CV, math.Sqrt(naiveVariance(gaps))/naiveMean(gaps))
			near(t, "Spearman", sum.InputOutput.Rho, naivePearson(naiveRanks(in), naiveRanks(out)))
			for _, one := range sum.Arrivals.IDC {
				windows, idc := naiveIDC(times, int64(one.WindowS*1e9))
				if one.Windows != windows {
					t.Errorf("%d windows of %v s; want %d", one.Windows, one.WindowS, windows)
				} else if windows >= 2 {
					near(t, "IDC", one.IDC, idc)
				} else if one.IDC != nil {
					t.Errorf("an IDC of %d windows", windows)
				}
			}
		})
	}
}

// The categories, sessions and gaps of a summary follow from the rows.
func TestSummaryOfAnnotatedRows(t *testing.T) {
	for _, origin := range []string{"inferred", "source"} {
		rows := generate(71, 400, shape{block: 4, system: true, statuses: true})
		annotate(rows, 4, profile.Options{})
		p := profileOf(t, rows, trace.Meta{BlockSize: 4, Sessions: origin}, profile.ProfilerOptions{})
		sum := p.Summary()
		rows = load(rows)
		var gaps []float64
		reuseTimes := map[int64]int64{}
		turns := map[int64]float64{}
		last, touched := map[int64]int64{}, map[uint64]int64{}
		requests, hitBlocks, tokens := map[string]int64{}, map[string]int64{}, map[string]int64{}
		for i, hit := range naiveHits(rows, false) {
			r := rows[i]
			requests[r.Category]++
			hitBlocks[r.Category] += int64(hit)
			tokens[r.Category] += int64(r.InputTokens)
			if s := r.Session; s != nil {
				if turns[*s]++; turns[*s] > 1 {
					before := last[*s]
					if origin == "inferred" {
						before = touched[r.Blocks[hit-1]]
					}
					gaps = append(gaps, float64(r.ArrivalNS-before)/1e9)
				}
				last[*s] = r.ArrivalNS
			}
			for j, b := range r.Blocks {
				if j < hit {
					reuseTimes[r.ArrivalNS-touched[b]]++
				}
			}
			for _, b := range r.Blocks {
				touched[b] = r.ArrivalNS
			}
		}
		checkStats(t, origin+" turn gaps", sum.Sessions.TurnGap, gaps)
		var perSession []float64
		for _, n := range turns {
			perSession = append(perSession, n)
		}
		checkStats(t, "turns", sum.Sessions.Turns, perSession)
		for _, c := range sum.Categories {
			if c.Requests != requests[c.Category] || c.HitBlocks != hitBlocks[c.Category] || c.InputTokens != tokens[c.Category] {
				t.Errorf("%s: %d requests of %d tokens with %d hit blocks; want %d, %d and %d", c.Category, c.Requests, c.InputTokens, c.HitBlocks,
					requests[c.Category], tokens[c.Category], hitBlocks[c.Category])
			}
		}
		var want profile.Histogram
		for ns, n := range reuseTimes {
			want.Add(ns, n)
		}
		if got := bucketsOf(p.Histograms(), profile.MetricReuseTime, ""); !slices.Equal(got, want.Buckets()) {
			t.Error("the times of reuse are not those of the rows")
		}
	}
}

func bucketsOf(rows []profile.HistogramRow, metric, category string) (list []profile.Bucket) {
	for _, r := range rows {
		if r.Metric == metric && r.Category == category {
			list = append(list, profile.Bucket{Lo: r.Lo, Hi: r.Hi, Count: r.Count})
		}
	}
	return list
}

// With all depths in buckets of width 1, the histogram is the LRU curve.
func TestReuseDistancesAreTheCurve(t *testing.T) {
	rows := generate(81, 60, shape{block: 4, system: true})
	p := profileOf(t, rows, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{})
	var hits int64
	for _, b := range bucketsOf(p.Histograms(), profile.MetricReuseDistance, "") {
		hits += b.Count
		if b.Hi-b.Lo != 1 {
			break
		}
		if want := simulate(rows, int(b.Lo), false); int64(want) != hits {
			t.Errorf("%d hits at depths up to %d; want %d", hits, b.Lo, want)
		}
	}
	if hits < 50 {
		t.Errorf("only %d hits were looked at", hits)
	}
}

func TestBatchesAndFailedRowsChangeNothing(t *testing.T) {
	s := shapes["everything"]
	rows := generate(91, 300, s)
	annotate(rows, s.block, profile.Options{})
	meta := trace.Meta{BlockSize: s.block, Sessions: "inferred", Categories: trace.CategoryRule}
	whole := profileOf(t, rows, meta, profile.ProfilerOptions{})
	single := profile.NewProfiler(meta, profile.ProfilerOptions{})
	for i := range rows {
		if _, err := single.Write(rows[i : i+1]); err != nil {
			t.Fatal(err)
		}
		if i%70 == 0 { // reading it early must not disturb it
			single.Summary()
			single.Histograms()
		}
	}
	if !reflect.DeepEqual(whole.Summary(), single.Summary()) {
		t.Error("the batches change the summary")
	}
	kept := profileOf(t, load(rows), meta, profile.ProfilerOptions{})
	a, b := whole.Summary(), kept.Summary()
	if a.Failed == 0 || a.Warnings[0].Code != "failed_rows" {
		t.Fatalf("%d failed rows; the first warning is %v", a.Failed, a.Warnings[0])
	}
	a.Rows, a.Failed, a.Warnings = b.Rows, b.Failed, a.Warnings[1:]
	if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(whole.Histograms(), kept.Histograms()) {
		t.Error("failed rows change the summary of the others")
	}
}

func TestProfilerRefusesImpossibleRows(t *testing.T) {
	tests := map[string][]trace.Request{
		"row 2 arrives before row 1": {{}, {ArrivalNS: 5}, {ArrivalNS: 4}},
		"row 1: a token count":       {{}, {OutputTokens: trace.Ptr[int32](-1)}},
	}
	for want, rows := range tests {
		p := profile.NewProfiler(trace.Meta{}, profile.ProfilerOptions{})
		n, err := p.Write(rows)
		if err == nil || !strings.Contains(err.Error(), want) || n != len(rows)-1 {
			t.Errorf("Write took %d rows: %v; want %s", n, err, want)
		}
	}
}

// Traces of few rows have nulls where there is nothing to say, valid JSON and
// readable text.
func TestSmallTraces(t *testing.T) {
	one := trace.Request{InputTokens: 3, OutputTokens: trace.Ptr[int32](1), Blocks: []uint64{7}}
	tests := []struct {
		name  string
		rows  []trace.Request
		codes []string
	}{
		{"empty", nil, []string{"no_requests"}},
		{"only failed", []trace.Request{{Status: trace.StatusFailed}}, []string{"no_requests"}},
		{"one", []trace.Request{one}, []string{"no_category"}},
		{"one instant", []trace.Request{one, one}, []string{"one_instant", "no_category"}},
		{"no tokens", []trace.Request{{OutputTokens: new(int32)}, {ArrivalNS: 9, OutputTokens: new(int32)}}, []string{"no_blocks"}},
		{"unknown outputs", []trace.Request{{InputTokens: 3}, {ArrivalNS: 9, InputTokens: 3}}, []string{"unknown_outputs", "no_blocks"}},
		{"mixed", []trace.Request{one, {InputTokens: 9, ArrivalNS: 4, ThinkNS: trace.Ptr(int64(-1))},
			{ArrivalNS: 6, InputTokens: 9, Blocks: []uint64{7}}},
			[]string{"unknown_outputs", "negative_values", "rows_without_blocks", "block_count", "no_category"}},
	}
	for _, test := range tests {
		sum := profileOf(t, test.rows, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{}).Summary()
		var codes []string
		for _, w := range sum.Warnings {
			codes = append(codes, w.Code)
		}
		if !slices.Equal(codes, test.codes) {
			t.Errorf("%s: the warnings are %v; want %v", test.name, codes, test.codes)
		}
		encoded, err := json.Marshal(sum)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		var back profile.Summary
		if err := json.Unmarshal(encoded, &back); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		again, _ := json.Marshal(back)
		if string(again) != string(encoded) {
			t.Errorf("%s: JSON does not come back as it was", test.name)
		}
		if err := profile.Page(sum, nil).WriteText(&strings.Builder{}, textpage.Options{Details: true}); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestMadeUpTimesAreSaid(t *testing.T) {
	sum := profileOf(t, []trace.Request{{}, {}}, trace.Meta{Timing: "poisson"}, profile.ProfilerOptions{}).Summary()
	if sum.Warnings[0].Code != "made_up_times" {
		t.Errorf("the warnings are %v", sum.Warnings)
	}
}

// The names of the fields are a contract.
func TestFieldNames(t *testing.T) {
	s := shapes["everything"]
	rows := generate(95, 200, s)
	annotate(rows, s.block, profile.Options{})
	sum := profileOf(t, rows, trace.Meta{BlockSize: s.block}, profile.ProfilerOptions{}).Summary()
	encoded, err := json.Marshal(sum)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"schema", "rows", "requests", "failed", "duration_s", "requests_per_s", "block_size_tokens",
		"input_tokens_total", "output_tokens_total", "input_tokens.mean", "input_tokens.sd", "output_tokens.p99_9",
		"input_output_spearman.rho", "arrivals.inter_arrival_cv", "arrivals.zero_gap_share", "arrivals.idc",
		"sessions.turn_gap_s.p90", "sessions.origin", "categories", "reuse.hit_ratios.by_block", "reuse.hit_ratios.by_token",
		"reuse.hit_ratios.mean_over_requests", "reuse.hit_ratios.full_blocks_only", "reuse.lru_curve", "reuse.lru_curve_dense",
		"reuse.unique_blocks", "reuse.references_blocks", "reuse.touched_once_share",
		"reuse.steady_state.warm_up_s", "reuse.steady_state.hit_ratios.by_block", "reuse.steady_state.hit_ratios.by_token",
		"reuse.steady_state.hit_ratios.mean_over_requests", "reuse.steady_state.hit_ratios.full_blocks_only",
		"reuse.steady_state.requests", "reuse.steady_state.lru_curve",
		"reuse_with_generated_kv.hit_ratios.by_block", "server_reuse.hit_ratio_by_token", "server_reuse.rounding_loss_by_token",
		"server_reuse.block_size_tokens", "warnings"} {
		var at any
		if err := json.Unmarshal(encoded, &at); err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Split(path, ".") {
			fields, _ := at.(map[string]any)
			at = fields[name]
		}
		if at == nil {
			t.Errorf("the summary has no %s", path)
		}
	}
}
