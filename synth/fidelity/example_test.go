package fidelity_test

import (
	"fmt"

	"reprise/synth/fidelity"
	"reprise/trace"
)

// A candidate whose second request no longer shares its first block.
func ExampleCompare() {
	meta := trace.Meta{BlockSize: 4, Convention: trace.PartialTail}
	signature := func(second ...uint64) *fidelity.Signature {
		s := fidelity.NewSignature(meta, fidelity.Options{})
		_, err := s.Write([]trace.Request{
			{InputTokens: 8, OutputTokens: trace.Ptr[int32](5), Blocks: []uint64{0, 1}},
			{ArrivalNS: 1e9, InputTokens: 8, OutputTokens: trace.Ptr[int32](9), Blocks: second},
		})
		if err != nil {
			fmt.Println(err)
		}
		return s
	}
	f, err := fidelity.Compare(signature(0, 2), signature(3, 4))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range f.Gate(fidelity.Thresholds{"hit_by_block": 0.005, "input_ks": 0.035, "turn_gap_ks": 0.05}) {
		switch {
		case c.OK == nil:
			fmt.Println(c.Name, "does not apply:", c.Why)
		default:
			fmt.Println(c.Name, *c.Value, *c.OK)
		}
	}
	// Output:
	// hit_by_block 0.25 false
	// input_ks 0 true
	// turn_gap_ks does not apply: neither has sessions of several turns
}
