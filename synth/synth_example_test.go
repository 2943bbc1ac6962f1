package synth_test

import (
	"context"
	"fmt"

	"reprise/synth"
	"reprise/trace"
)

// A chat of two turns, over and over, becomes a workload of twice the users.
func ExampleFit() {
	var rows []trace.Request
	for i := range uint64(50) {
		at := int64(i) * 10e9
		rows = append(rows,
			trace.Request{ArrivalNS: at, InputTokens: 30, OutputTokens: trace.Ptr[int32](8), Blocks: []uint64{0, 3*i + 1}},
			trace.Request{ArrivalNS: at + 4e9, InputTokens: 40, OutputTokens: trace.Ptr[int32](8), Blocks: []uint64{0, 3*i + 2, 3*i + 3}})
	}
	m, err := synth.Fit(context.Background(), &trace.SliceReader[trace.Request]{Rows: rows},
		trace.Meta{BlockSize: 16}, synth.FitOptions{KSwap: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := m.Generate(context.Background(), synth.Options{Seed: 1, Users: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	shared := 0
	err = trace.Each(w.Reader(), func(_ int64, r *trace.Request) error {
		if r.Blocks[0] == 0 {
			shared++
		}
		return nil
	})
	fmt.Println(w.Rows(), "requests,", shared, "with the shared first block", err)
	// Output: 200 requests, 200 with the shared first block <nil>
}
