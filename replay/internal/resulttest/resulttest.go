// Package resulttest makes results of replays for the tests of the packages that
// read them.
package resulttest

import (
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
