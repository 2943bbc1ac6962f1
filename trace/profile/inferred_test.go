package profile_test

import (
	"math"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
)

// Reuse of inferred blocks is a range, beside what the server found: from what it found of
// the trace's own prompts and outputs to what a cache without limit finds.
func TestInferredReuseRange(t *testing.T) {
	row := func(second int64, cached int32, blocks, output []uint64) trace.Request {
		return trace.Request{ArrivalNS: second * 1e9, InputTokens: int32(100 * len(blocks)), OutputTokens: trace.Ptr(int32(100 * len(output))), CachedTokens: trace.Ptr(cached),
			Blocks: blocks, OutputBlocks: output, Status: trace.StatusOK, ReuseSource: trace.ReuseInferred}
	}
	rows := []trace.Request{
		row(0, 200, []uint64{0, 1, 2, 3}, []uint64{4}),              // found two blocks of what came before the trace
		row(1, 490, []uint64{0, 1, 2, 3, 4, 5}, nil),                // all but the end of a block
		row(2, 0, []uint64{0, 1, 2, 3, 4, 5, 6, 7}, []uint64{8}),    // evicted
		row(3, -1, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, nil), // not said
	}
	rows[3].CachedTokens = nil
	s := profileOf(t, rows, trace.Meta{BlockSize: 100}, profile.ProfilerOptions{}).Summary()
	i := s.InferredReuse
	if i == nil || i.Requests != 4 {
		t.Fatalf("%+v", i)
	}
	for name, v := range map[string][2]float64{
		"least": {*i.Least, 490. / 1800}, "most": {*i.Inferred, 1100. / 1800}, "measured": {*i.Measured, 690. / 1800}, "before": {*i.Before, 200. / 1800},
	} {
		if math.Abs(v[0]-v[1]) > 1e-12 {
			t.Errorf("%s %v, want %v", name, v[0], v[1])
		}
	}
	const want = "27.2 % to 61.1 % of prompt tokens in 4 requests; the server found 38.3 %, 11.1 % of it from before the trace"
	if got := i.String(); got != want {
		t.Errorf("%s", got)
	}
	rows[0].CachedTokens = trace.Ptr[int32](0)
	if s := profileOf(t, rows, trace.Meta{BlockSize: 100}, profile.ProfilerOptions{}).Summary(); strings.Contains(s.InferredReuse.String(), "before the trace") {
		t.Error(s.InferredReuse)
	}
	for k := range rows {
		rows[k].CachedTokens = nil
	}
	if s := profileOf(t, rows, trace.Meta{BlockSize: 100}, profile.ProfilerOptions{}).Summary(); s.InferredReuse.String() != "inferred for 4 requests" {
		t.Error(s.InferredReuse)
	}
}
