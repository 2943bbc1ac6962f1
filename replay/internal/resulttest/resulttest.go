// Package resulttest serves the tests of replays: it makes results, and the parts of an
// endpoint that most tests do not care for.
package resulttest

import (
	"context"

	"reprise/replay/result"
	"reprise/trace"
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
		WantOutput: int32(len(eventsMS)), Output: trace.Ptr(int32(len(eventsMS))), OutputFrom: "usage",
		Events: int32(len(eventsMS)),
	}
	for i, at := range eventsMS {
		at := sent + at*MS
		if i == 0 {
			r.FirstEventNS, r.FirstTokenNS = &at, &at
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
func (Endpoint) Prepare(int64, *trace.Request, result.Prompter) (result.Call, error) {
	return oneByte{}, nil
}

// Launch leaves every request to Fire.
func (Endpoint) Launch(context.Context, result.Shot, *result.Result) (read func()) { return nil }

// Report is empty.
func (Endpoint) Report() result.EndpointReport { return result.EndpointReport{} }
