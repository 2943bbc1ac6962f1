package bench

import (
	"math"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A Flow compares what went in with what came out in the second half of the time in
// which measured requests were due. The first half is left out, since a server that
// was idle takes in more than it gives until it is full. Throughput over a whole run
// says too little: it has the time in it which the last requests took to end.
type Flow struct {
	Seconds      float64  `json:"seconds"` // of the half
	OfferedPerS  *float64 `json:"offered_requests_per_s"`
	AchievedPerS *float64 `json:"achieved_requests_per_s"` // that ended and succeeded
	OutputPerS   *float64 `json:"output_tokens_per_s"`     // of those
	InFlight     *float64 `json:"in_flight_mean"`          // sent and not over, on average over the time
	OpenBefore   int64    `json:"in_flight_at_begin"`
	OpenAfter    int64    `json:"in_flight_at_end"`
}

// Limits of a flow that follows.
const (
	followShare = 0.95
	followSD    = 3
)

// Follows tells whether the server keeps up with an open loop: it does not when less
// than 95 % of what was offered came out, and the requests in flight grew by more
// than three standard deviations of what chance does. In a server without a queue the
// number in flight is Poisson distributed (M/G/∞), so that two of its values, far
// enough apart, differ with a variance of their sum.
func (f *Flow) Follows() bool {
	if f.OfferedPerS == nil || f.AchievedPerS == nil || *f.AchievedPerS >= followShare**f.OfferedPerS {
		return true
	}
	return float64(f.OpenAfter-f.OpenBefore) <= followSD*math.Sqrt(float64(f.OpenAfter+f.OpenBefore))
}

// flowOf reads the results of a run twice: for the time in which requests were due,
// and for what happened in its second half.
func flowOf(run *result.Run, open func() trace.Reader[result.Result]) (Flow, error) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	err := trace.Each(open(), func(_ int64, r *result.Result) error {
		if before, after := run.Window.Holds(r); !before && !after && r.SentNS != nil {
			first, last = min(first, r.DueNS), max(last, r.DueNS)
		}
		return nil
	})
	if err != nil || first >= last {
		return Flow{}, err
	}
	from := first + (last-first)/2
	var f Flow
	var in, out, tokens int64
	var flight time.Duration // of all requests together
	err = trace.Each(open(), func(_ int64, r *result.Result) error {
		if r.SentNS == nil || r.DoneNS == nil {
			return nil
		}
		if r.DueNS > from && r.DueNS <= last {
			in++
		}
		if *r.DoneNS > from && *r.DoneNS <= last && r.Error == "" {
			out++
			if r.Output != nil {
				tokens += int64(*r.Output)
			}
		}
		flight += time.Duration(max(min(*r.DoneNS, last)-max(*r.SentNS, from), 0))
		f.OpenBefore += openAt(r, from)
		f.OpenAfter += openAt(r, last)
		return nil
	})
	f.Seconds = float64(last-from) / 1e9
	f.OfferedPerS, f.AchievedPerS = trace.Ptr(float64(in)/f.Seconds), trace.Ptr(float64(out)/f.Seconds)
	f.OutputPerS, f.InFlight = trace.Ptr(float64(tokens)/f.Seconds), trace.Ptr(flight.Seconds()/f.Seconds)
	return f, err
}

// openAt is 1 for a request that was due by an instant and not over. A request that
// waits in the client counts as well.
func openAt(r *result.Result, at int64) int64 {
	if r.DueNS <= at && *r.DoneNS > at {
		return 1
	}
	return 0
}
