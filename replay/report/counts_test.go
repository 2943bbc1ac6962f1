package report

import (
	"strings"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/usage"
)

// impossibleRow is a request of 20 prompt tokens and 90 events, whose counts the client refuted.
func impossibleRow(id int64, found usage.Findings) result.Result {
	due := id * 1e9
	r := result.Result{RowID: id, DueNS: due, SentNS: &due, HeadersNS: trace.Ptr(due + 1e7), FirstEventNS: trace.Ptr(due + 1e8), FirstTokenNS: trace.Ptr(due + 1e8),
		LastTokenNS: trace.Ptr(due + 1e8 + 89e7), DoneNS: trace.Ptr(due + 1e8 + 89e7), WantInput: 20, WantOutput: trace.Ptr[int32](128), Known: trace.Ptr[int32](0),
		Events: 90, TextBytes: trace.Ptr[int64](450), OutputFrom: result.FromUsage,
		Input: trace.Ptr[int32](20), Cached: trace.Ptr[int32](0), Output: trace.Ptr[int32](90)}
	for range 89 {
		r.GapsNS = append(r.GapsNS, 1e7)
	}
	counts := usage.Counts{}.With(usage.Input, 20).With(usage.Cached, 900).With(usage.Output, 100_000_000)
	r.Refute(found, &counts)
	return r
}

// Counts that cannot be are used for no figure, and are a reason with their numbers.
func TestImpossibleCounts(t *testing.T) {
	var none usage.Findings
	output, cached := none.With(usage.OutputAboveAsked), none.With(usage.CacheOver)
	slo := SLO{TPOT: trace.Ptr(time.Second)}

	s := summarise(t, result.Run{}, Options{SLO: slo}, impossibleRow(0, output), impossibleRow(1, none))
	if s.Verdict.Trustworthy || s.Throughput.OutputTokensPerS != nil || s.Efficiency.PerGPU != nil || s.Latency.TPOT.Count != 1 || s.Tokens.Output != 90 {
		t.Errorf("trustworthy %v, output %v, TPOT of %d, tokens %d", s.Verdict.Trustworthy, s.Throughput.OutputTokensPerS, s.Latency.TPOT.Count, s.Tokens.Output)
	}
	if got := s.Goodput.FromSent.Requests; got != 1 {
		t.Errorf("%d requests meet the objective of TPOT", got)
	}
	const want = "such as row 0 with 100,000,000 output tokens counted, 128 output tokens asked for, 90 events, 450 bytes of text"
	if text := reasonOf(&s); !strings.Contains(text, want) {
		t.Errorf("the reason is %q", text)
	}

	s = summarise(t, result.Run{}, Options{}, impossibleRow(0, cached), impossibleRow(1, none))
	if s.Verdict.Trustworthy || s.Cache.Rows != 1 || s.Cache.RowsLeftOut != 1 || deref(s.Cache.Measured) != 0 {
		t.Errorf("trustworthy %v, cache %+v", s.Verdict.Trustworthy, s.Cache)
	}
	if text := reasonOf(&s); !strings.Contains(text, "900 cached, 20 prompt tokens counted, 20 sent") {
		t.Errorf("the reason is %q", text)
	}
	if s.Throughput.OutputTokensPerS == nil {
		t.Error("the output tokens of an answer with a wrong count of cached tokens are left out")
	}

	limits := DefaultLimits()
	limits.Impossible = 0.5
	if s = summarise(t, result.Run{}, Options{Limits: limits}, impossibleRow(0, cached), impossibleRow(1, none)); reasonOf(&s) != "" {
		t.Errorf("the limit does not hold: %q", reasonOf(&s))
	}
	if s = summarise(t, result.Run{}, Options{}, impossibleRow(0, none), impossibleRow(1, none)); reasonOf(&s) != "" || s.Tokens.Impossible != nil {
		t.Errorf("counts that can be are a reason: %q", reasonOf(&s))
	}
}

// reasonOf is the reason about counts that cannot be.
func reasonOf(s *Summary) string {
	for _, r := range s.Verdict.Reasons {
		if r.Code == codeImpossible {
			return r.Text
		}
	}
	return ""
}
