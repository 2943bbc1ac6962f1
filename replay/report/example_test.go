package report_test

import (
	"fmt"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// Two requests were due at once, but the client sent the second half a second
// late. From sent, the server looks equally fast to both.
func Example() {
	at := func(d time.Duration) *int64 { return trace.Ptr(int64(d)) }
	results := []result.Result{
		{RowID: 0, SentNS: at(0), FirstTokenNS: at(80 * time.Millisecond), LastTokenNS: at(180 * time.Millisecond), DoneNS: at(181 * time.Millisecond),
			Events: 2, GapsNS: []int64{int64(100 * time.Millisecond)}, Output: trace.Ptr(int32(2)), OutputFrom: "usage"},
		{RowID: 1, SentNS: at(500 * time.Millisecond), FirstTokenNS: at(580 * time.Millisecond), LastTokenNS: at(680 * time.Millisecond), DoneNS: at(681 * time.Millisecond),
			Events: 2, GapsNS: []int64{int64(100 * time.Millisecond)}, Output: trace.Ptr(int32(2)), OutputFrom: "usage"},
	}
	slo, err := report.ParseSLO("ttft:200ms,tpot:150ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := report.Summarise(result.Run{}, &trace.SliceReader[result.Result]{Rows: results}, report.Options{SLO: slo})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("TTFT p50: %v ms from sent, %v ms from schedule\n", *s.Latency.FromSent.TTFT.P50, *s.Latency.FromDue.TTFT.P50)
	fmt.Printf("goodput:  %v from sent, %v from schedule\n", *s.Goodput.FromSent.Share, *s.Goodput.FromDue.Share)
	fmt.Println("p99 known:", s.Latency.FromSent.TTFT.P99 != nil)
	for _, r := range s.Verdict.Reasons {
		fmt.Println(r.Text)
	}
	// Output:
	// TTFT p50: 80 ms from sent, 330 ms from schedule
	// goodput:  1 from sent, 0.5 from schedule
	// p99 known: false
	// the p50 of the send lag is 250 ms; the limit is 10 ms
	// the largest send lag of 2 requests, too few for a p99, is 500 ms; the limit is 100 ms
}
