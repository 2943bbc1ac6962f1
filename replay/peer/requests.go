package peer

import (
	"math"
	"slices"

	"reprise/replay/report"
	"reprise/replay/result"
)

// A view is one successful request as a peer sees it. Durations are nanoseconds.
type view struct {
	start, end    int64 // instants: sent, and where the request ends for the peer
	closed        int64 // the end of the stream
	in, out       int64 // tokens; out below 0 is not known
	ttft, latency int64
	streamed      bool    // ttft is one
	content       int64   // to the first content that is not reasoning; 0 is none
	gaps          []int64 // between the peer's chunks
	tokenGaps     []int64 // between tokens, where the recording tells them apart
	lag           int64
}

// base reads what most peers agree on: a request begins when it is sent, its
// first token is the first event with generated content, it ends with its last,
// and tokens are those of the server's usage. Requests without a token are
// not streamed.
func base(r *result.Result, v *view) {
	v.start, v.closed, v.in, v.out = *r.SentNS, *r.DoneNS, int64(report.InputTokens(r)), -1
	if r.Output != nil {
		v.out = int64(*r.Output)
	}
	v.lag = v.start - r.DueNS
	v.end = v.closed
	if r.FirstTokenNS != nil && r.LastTokenNS != nil {
		v.streamed, v.ttft, v.end = true, *r.FirstTokenNS-v.start, *r.LastTokenNS
	}
	if r.FirstContentNS != nil {
		v.content = *r.FirstContentNS - v.start
	}
	v.latency = v.end - v.start
	v.gaps = append(v.gaps, r.GapsNS...)
}

// seeVLLM counts from the first event of any kind, a role-only one included,
// to the last token event. A stream without an event is a failure; an answer
// without a count has one token, as where vLLM has no tokenizer.
func seeVLLM(r *result.Result, v *view) bool {
	base(r, v)
	if r.FirstEventNS == nil {
		return false
	}
	if v.out < 0 {
		v.out = 1
	}
	first := *r.FirstEventNS
	if !v.streamed {
		v.end = first
	} else if *r.FirstTokenNS > first {
		v.gaps = slices.Insert(v.gaps, 0, *r.FirstTokenNS-first)
	}
	v.streamed, v.ttft, v.latency = true, first-v.start, v.end-v.start
	return true
}

// seeContent wants an answer with content.
func seeContent(r *result.Result, v *view) bool {
	base(r, v)
	return v.streamed
}

// seeInferencePerf ends a request with its stream. It gives every token of a
// chunk the chunk's instant, so that gaps of zero stand within chunks, and has
// streaming latencies only of answers with two tokens or more.
func seeInferencePerf(r *result.Result, v *view) bool {
	base(r, v)
	v.latency = v.closed - v.start
	tokens := r.EventTokens
	switch {
	case len(tokens) == int(r.Events):
	case v.out == int64(r.Events): // each carried one
		tokens = nil
	default:
		v.streamed = v.streamed && v.out > 1
		return true
	}
	for i := range int(r.Events) {
		if i > 0 {
			v.tokenGaps = append(v.tokenGaps, r.GapsNS[i-1])
		}
		if tokens == nil {
			continue
		}
		for range tokens[i] - 1 {
			v.tokenGaps = append(v.tokenGaps, 0)
		}
	}
	v.streamed = v.streamed && len(v.tokenGaps) > 0
	return true
}

// What several peers compute from a view, each under a name of its own.

func ttftOf(v *view, emit func(int64)) {
	if v.streamed {
		emit(v.ttft)
	}
}

// contentOf is the time to the first content that is not reasoning.
func contentOf(v *view, emit func(int64)) {
	if v.content > 0 {
		emit(v.content)
	}
}

func latencyOf(v *view, emit func(int64)) { emit(v.latency) }

func gapsOf(v *view, emit func(int64)) {
	for _, gap := range v.gaps {
		emit(gap)
	}
}

// secondOf is the first gap, which AIPerf calls the time to the second token.
func secondOf(v *view, emit func(int64)) {
	if len(v.gaps) > 0 {
		emit(v.gaps[0])
	}
}

// perOutput is (E2E − TTFT)/(out − 1), in nanoseconds.
func perOutput(v *view) (float64, bool) {
	if !v.streamed || v.out <= 1 {
		return 0, false
	}
	return float64(v.latency-v.ttft) / float64(v.out-1), true
}

func perOutputOf(v *view, emit func(int64)) {
	if each, ok := perOutput(v); ok {
		emit(round(each))
	}
}

// decodePerOutput is (last token − first token)/(out − 1), in nanoseconds.
func decodePerOutput(v *view) (float64, bool) {
	if !v.streamed || v.out <= 1 {
		return 0, false
	}
	return float64(v.end-v.start-v.ttft) / float64(v.out-1), true
}

// Values other than durations are millionths of their unit.
const perMillion = 1_000_000

func inputsOf(v *view, emit func(int64)) { emit(v.in * perMillion) }

func outputsOf(v *view, emit func(int64)) {
	if v.out >= 0 {
		emit(v.out * perMillion)
	}
}

// wholeRateOf is tokens per second of the whole request.
func wholeRateOf(v *view, emit func(int64)) {
	if v.out >= 0 && v.latency > 0 {
		emit(round(float64(v.out) / float64(v.latency) * 1e9 * perMillion))
	}
}

func lagOf(v *view, emit func(int64)) { emit(v.lag) }

// round makes a whole number of a float, within what sums of them allow.
func round(v float64) int64 { return int64(math.Round(min(v, report.MaxInstant))) }
