// Package resulttest makes results for the tests of replays, and an endpoint whose parts
// do as little as most tests need.
package resulttest

import (
	"context"
	"math"
	"math/rand/v2"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/usage"
)

// MS is a millisecond in nanoseconds.
const MS = int64(1e6)

// Answer is a successful result that was sent lagMS after it was due. Its token
// events came at the given times after it was sent.
func Answer(row, dueMS, lagMS int64, eventsMS ...int64) result.Result {
	due, sent := dueMS*MS, (dueMS+lagMS)*MS
	r := result.Result{
		RowID: row, DueNS: due, SentNS: &sent, HeadersNS: trace.Ptr(sent + MS), DoneNS: trace.Ptr(sent + MS),
		WantInput: 100, Input: trace.Ptr(int32(100)),
		WantOutput: trace.Ptr(int32(len(eventsMS))), Output: trace.Ptr(int32(len(eventsMS))), OutputFrom: "usage",
		Events: int32(len(eventsMS)),
	}
	for i, at := range eventsMS {
		at := sent + at*MS
		if i == 0 {
			r.FirstEventNS, r.FirstTokenNS, r.FirstContentNS = &at, &at, &at
		} else {
			r.GapsNS = append(r.GapsNS, at-*r.LastTokenNS)
		}
		r.LastTokenNS, r.DoneNS = &at, &at
	}
	return r
}

// Failure is a result that was sent and failed.
func Failure(row, dueMS int64, class string) result.Result {
	r := Answer(row, dueMS, 0)
	r.Error, r.Input, r.Output, r.OutputFrom = class, nil, nil, ""
	return r
}

// Endpoint is a base for a [result.Endpoint] of a test, which embeds it and adds Fire. It
// prepares a call of one byte, never launches and reports nothing.
type Endpoint struct{}

type oneByte struct{}

func (oneByte) Size() int { return 1 }

// Prepare makes the same call for every row.
func (Endpoint) Prepare(int64, int32, *trace.Request, result.Prompter) (result.Call, error) {
	return oneByte{}, nil
}

// Launch leaves every request to Fire.
func (Endpoint) Launch(context.Context, result.Shot, *result.Result) (read func()) { return nil }

// Report is empty.
func (Endpoint) Report() result.EndpointReport { return result.EndpointReport{} }

// Messy makes n results that have, between them, everything that can happen.
func Messy(rng *rand.Rand, n int) []result.Result {
	var out []result.Result
	for row := range int64(n) {
		r := result.Result{
			RowID: row, Category: append(trace.Categories(), "")[rng.IntN(6)],
			DueNS: rng.Int64N(60e9), WantInput: 1 + rng.Int32N(40000), WantOutput: trace.Ptr(1 + rng.Int32N(20)),
		}
		sent := r.DueNS + rng.Int64N(3e6)*rng.Int64N(3)*rng.Int64N(20)
		switch rng.IntN(30) {
		case 0: // never sent
			if rng.IntN(2) == 0 {
				r.Error = "prepare"
			}
			out = append(out, r)
			continue
		case 1:
			r.Error = []string{"reset", "timeout", "cancelled"}[rng.IntN(3)]
		}
		r.SentNS = &sent
		r.HeadersNS = trace.Ptr(sent + rng.Int64N(5e6))
		stream(rng, &r, *r.HeadersNS)
		if rng.IntN(50) == 0 {
			r.DoneNS = nil
		}
		out = append(out, r)
	}
	return out
}

// stream fills in what came back.
func stream(rng *rand.Rand, r *result.Result, at int64) {
	r.FirstEventNS = trace.Ptr(at)
	r.Events = rng.Int32N(*r.WantOutput + 1)
	total := int32(0)
	for i := range r.Events {
		gap := int64(math.Exp(rng.NormFloat64()) * 2e7)
		at += gap
		if i == 0 {
			r.FirstTokenNS = trace.Ptr(at)
		} else {
			r.GapsNS = append(r.GapsNS, gap)
		}
		if i == r.Events/3 { // the answer, after reasoning
			r.FirstContentNS = trace.Ptr(at)
		}
		k := 1 + rng.Int32N(3)
		total += k
		r.EventTokens = append(r.EventTokens, k)
		r.LastTokenNS = trace.Ptr(at)
	}
	if rng.IntN(2) == 0 {
		r.EventTokens = nil
	}
	if rng.IntN(20) > 0 {
		r.Output, r.OutputFrom = &total, []string{"usage", "tokenizer"}[rng.IntN(2)]
	}
	if rng.IntN(10) > 0 {
		r.Input = trace.Ptr(max(r.WantInput+rng.Int32N(3)-1, 1))
	}
	if rng.IntN(5) > 0 {
		r.Known = trace.Ptr(rng.Int32N(r.WantInput + 1))
	}
	if rng.IntN(5) > 0 {
		r.Cached = trace.Ptr(rng.Int32N(2) * rng.Int32N(r.WantInput))
	}
	r.DoneNS = trace.Ptr(at + rng.Int64N(1e6))
}

// Holed draws result i of a run, one each 10 ms, with holes: every field that may be empty is empty
// with the probability lacks. So there are users of whom all failed, answers without a token, embeddings. With 0
// users no result has one.
func Holed(rng *rand.Rand, i int64, users int, lacks float64) result.Result {
	at := func(after int64) *int64 {
		if rng.Float64() < lacks {
			return nil
		}
		return trace.Ptr((i*10 + after) * MS)
	}
	count := func(n int) *int32 {
		if rng.Float64() < lacks {
			return nil
		}
		return trace.Ptr(int32(rng.IntN(n)))
	}
	r := result.Result{
		RowID: i, DueNS: i * 10 * MS, SentNS: at(0), HeadersNS: at(1), FirstEventNS: at(2),
		FirstTokenNS: at(2), LastTokenNS: at(8), DoneNS: at(9),
		WantInput: int32(rng.IntN(100)), WantOutput: count(5), Known: count(50),
		Input: count(100), Cached: count(100), Output: count(4),
		Session: trace.Ptr(rng.Int64N(5)), Turn: count(3), Class: []string{"", "gold"}[rng.IntN(2)],
		Category: []string{"", "cold", "branch"}[rng.IntN(3)], API: []string{"", "embeddings", "chat"}[rng.IntN(3)],
	}
	if users > 0 && rng.Float64() > lacks {
		r.User = trace.Ptr(rng.Int64N(int64(users)))
	}
	if rng.Float64() < lacks {
		r.Error = []string{"timeout", "server_error", "empty"}[rng.IntN(3)]
	}
	if rng.Float64() < lacks { // a count that cannot be is a hole, too
		found := usage.Findings(0).With(
			[]usage.Finding{usage.OutputAboveAsked, usage.CacheOver, usage.NoCount, usage.TotalBelow}[rng.IntN(4)])
		r.Refute(found, &usage.Counts{})
	}
	if r.FirstTokenNS != nil && r.LastTokenNS != nil {
		if r.Events = int32(rng.IntN(3)); r.Events > 1 {
			r.GapsNS = []int64{6 * MS}[:r.Events-1]
		}
	}
	return r
}
