package report

import (
	"math"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
)

// Two sessions and a request without one share the price of the run by their work: prompt
// tokens that were not cached, and twice the output tokens.
func TestSessionCost(t *testing.T) {
	var rows []result.Result
	add := func(session *int64, turn, input, cached, output int32) {
		due := int64(len(rows)) * 1e9
		rows = append(rows, result.Result{RowID: int64(len(rows)), Session: session, Turn: &turn, DueNS: due, SentNS: &due, FirstTokenNS: trace.Ptr(due + 5e8),
			LastTokenNS: trace.Ptr(due + 1e9), DoneNS: trace.Ptr(due + 1e9), Input: &input, Cached: &cached, Output: &output, OutputFrom: result.FromUsage, Events: 1})
	}
	a, b := trace.Ptr(int64(0)), trace.Ptr(int64(1))
	add(a, 0, 100, 0, 10)   // 120
	add(a, 1, 200, 100, 40) // 180
	add(b, 0, 400, 0, 50)   // 500
	add(nil, 0, 150, 0, 25) // 200
	run := result.Run{Schema: result.Schema}
	o := Options{GPUs: 8, PricePerGPUHour: 450} // 3,600 an hour: 1 a second, and 4 of the run
	s := summarise(t, run, o, rows...)
	c := s.Sessions.Cost
	if c == nil || c.Count != 2 || math.Abs(*c.Max-4*500./1000) > 1e-9 || math.Abs(*c.Mean-4*800./2000) > 1e-9 {
		t.Errorf("cost %+v", c)
	}
	for _, o := range []Options{{GPUs: 8}, {PricePerGPUHour: 450}} {
		if s := summarise(t, run, o, rows...); s.Sessions.Cost != nil {
			t.Errorf("%+v: cost %+v", o, s.Sessions.Cost)
		}
	}
}
