package profile_test

import (
	"fmt"
	"os"

	"reprise/trace"
	"reprise/trace/profile"
)

// Four requests of two chats that share a system prompt of one block, and a
// profile of them.
func Example() {
	second := int64(1e9)
	rows := []trace.Request{
		{ArrivalNS: 0, InputTokens: 40, OutputTokens: trace.Ptr[int32](8), Blocks: []uint64{0, 1, 2}},
		{ArrivalNS: 2 * second, InputTokens: 36, OutputTokens: trace.Ptr[int32](4), Blocks: []uint64{0, 3, 4}},
		{ArrivalNS: 9 * second, InputTokens: 60, OutputTokens: trace.Ptr[int32](8), Blocks: []uint64{0, 1, 5, 6}},
		{ArrivalNS: 9 * second, InputTokens: 60, OutputTokens: trace.Ptr[int32](8), Blocks: []uint64{0, 1, 5, 6}},
	}
	annotator := profile.NewAnnotator(16, profile.Options{})
	for i := range rows {
		annotator.Count(&rows[i])
	}
	for i := range rows {
		annotator.Annotate(int64(i), &rows[i])
		if rows[i].Session == nil {
			fmt.Printf("%s: alone\n", rows[i].Category)
			continue
		}
		fmt.Printf("%s: session %d, turn %d\n", rows[i].Category, *rows[i].Session, *rows[i].Turn)
	}

	p := profile.NewProfiler(trace.Meta{BlockSize: 16, Sessions: "inferred"}, profile.ProfilerOptions{})
	if _, err := p.Write(rows); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	s := p.Summary()
	fmt.Printf("%d requests in %.0f s, %.0f tokens of input on average\n", s.Requests, s.DurationS, s.Input.Mean)
	fmt.Printf("hit ratio by block %.3f, by token %.3f\n", *s.Reuse.HitRatios.ByBlock, *s.Reuse.HitRatios.ByToken)
	// Output:
	// cold: session 0, turn 0
	// branch: alone
	// continuation: session 0, turn 1
	// duplicate: session 0, turn 2
	// 4 requests in 9 s, 49 tokens of input on average
	// hit ratio by block 0.500, by token 0.551
}
