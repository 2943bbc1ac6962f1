package result

import (
	"testing"

	"reprise/trace"
)

// What an older client or another tool left is held against itself when it is read.
func TestRecheck(t *testing.T) {
	row := func(set func(r *Result)) Result {
		r := Result{WantInput: 20, WantOutput: trace.Ptr[int32](128), SentNS: trace.Ptr[int64](0), FirstTokenNS: trace.Ptr[int64](1e8),
			LastTokenNS: trace.Ptr[int64](2e9), DoneNS: trace.Ptr[int64](2e9), Events: 90, OutputFrom: FromUsage,
			Input: trace.Ptr[int32](20), Cached: trace.Ptr[int32](16), Output: trace.Ptr[int32](90)}
		for range 89 {
			r.GapsNS = append(r.GapsNS, 21_348_314)
		}
		set(&r)
		return r
	}
	for _, test := range []struct {
		name    string
		set     func(r *Result)
		refuted string
	}{
		{"as it should be", func(*Result) {}, ""},
		{"100 M tokens in 90 events", func(r *Result) { *r.Output = 100_000_000 }, "output_above_time"},
		{"the same of a length that nobody asked for", func(r *Result) { *r.Output, r.WantOutput = 100_000_000, nil }, "output_above_time"},
		{"more cached than prompt", func(r *Result) { *r.Cached = 200 }, "cached_above_input"},
		{"a prompt that nobody sent", func(r *Result) { *r.Input, r.Cached = 100_000_000, nil }, "input_above_prompt"},
		{"an embedding with output", func(r *Result) { r.API = APIEmbeddings }, "output_of_none"},
		{"the client's own count", func(r *Result) { *r.Output, r.OutputFrom = 100_000_000, FromTokenizer }, ""},
		{"a longer answer than was asked for", func(r *Result) { *r.Output = 4000 }, ""},
		{"judged by its client", func(r *Result) { *r.Output, r.TextBytes = 100_000_000, trace.Ptr[int64](9e8) }, ""},
		{"nothing told", func(r *Result) { r.Input, r.Cached, r.Output = nil, nil, nil }, ""},
	} {
		r := row(test.set)
		r.recheck()
		if r.Refuted != test.refuted {
			t.Errorf("%s: refuted %q, want %q", test.name, r.Refuted, test.refuted)
		}
		once := r
		if r.recheck(); r.Refuted != once.Refuted || r.Output != once.Output || r.ClaimedOutput != once.ClaimedOutput {
			t.Errorf("%s: the second time it is another", test.name)
		}
	}
}

// Running counts that are more than the whole say nothing of events.
func TestEventTokensAboveTheWhole(t *testing.T) {
	r := Result{Output: trace.Ptr[int32](4), OutputFrom: FromUsage, Events: 2, GapsNS: []int64{1e6}, EventTokens: []int32{2, 900}}
	if r.recheck(); r.EventTokens != nil || r.Output == nil {
		t.Errorf("%+v", r)
	}
}

// Whether the events of an answer tell the times between its tokens.
func TestUntimed(t *testing.T) {
	const ms = 1_000_000
	for _, test := range []struct {
		name   string
		output int32
		gaps   []int64
		events int32 // 0 is one more than gaps
		want   bool
	}{
		{"one token", 1, nil, 0, false},
		{"all in one event", 500, nil, 0, true},
		{"two events at once", 500, []int64{50_000}, 0, true},
		{"two events, faster than any model", 500, []int64{5 * ms}, 0, true},
		{"the first token, and the rest at the end", 500, []int64{2000 * ms}, 0, true},
		{"the first token, and a burst at the end", 12, []int64{2000 * ms, 100, 200, 100, 300, 100, 100, 100, 200, 100, 100}, 0, true},
		{"a burst, and the last token late", 12, []int64{100, 200, 100, 300, 100, 100, 100, 200, 100, 100, 2000 * ms}, 0, true},
		{"a token an event", 4, []int64{10 * ms, 10 * ms, 10 * ms}, 0, false},
		{"two tokens", 2, []int64{10 * ms}, 0, false},
		{"speculative decoding, of a short answer", 8, []int64{10 * ms}, 0, false},
		{"speculative decoding", 40, []int64{10 * ms, 9 * ms, 11 * ms, 10 * ms, 9 * ms, 10 * ms, 10 * ms}, 0, false},
		{"an event each 20 tokens", 100, []int64{200 * ms, 200 * ms, 200 * ms, 200 * ms}, 0, false},
		{"events without a count", 0, []int64{10 * ms, 10 * ms}, 0, false},
		{"a tool that tells no events", 100, nil, -1, false},
	} {
		r := Result{FirstTokenNS: trace.Ptr[int64](0), LastTokenNS: trace.Ptr[int64](0), GapsNS: test.gaps, Events: int32(len(test.gaps)) + 1}
		if test.output > 0 {
			r.Output = &test.output
		}
		for _, gap := range test.gaps {
			*r.LastTokenNS += gap
		}
		if test.events < 0 {
			r.Events, *r.LastTokenNS = 0, 2000*ms
		}
		gaps := 0
		for range r.Gaps {
			gaps++
		}
		if r.Untimed() != test.want || test.want && gaps > 0 || !test.want && gaps != len(test.gaps) {
			t.Errorf("%s: untimed %v with %d gaps, want %v", test.name, r.Untimed(), gaps, test.want)
		}
	}
}
