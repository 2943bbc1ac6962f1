package main

import (
	"strings"
	"testing"

	"reprise/replay/decision"
	"reprise/trace"
)

// small is a workload of prompts of 32,768 tokens, half of them shared by all.
func small() *decision.Workload {
	w := &decision.Workload{Meta: trace.Meta{BlockSize: 512}}
	for i := range uint64(60) {
		var blocks []uint64
		for j := range uint64(64) {
			if j >= 32 {
				j += 32 * i
			}
			blocks = append(blocks, j)
		}
		w.Rows = append(w.Rows, trace.Request{ArrivalNS: int64(i) * 1e8, InputTokens: 32768, OutputTokens: 4, Blocks: blocks})
	}
	return w
}

func TestPrefixesDecide(t *testing.T) {
	c := comparison{rate: 4, rounds: 1}
	c.add("shared", small())
	c.add("apart", withoutBlocks(small()))
	var out strings.Builder
	if err := c.changes(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[2], "| no prefix cache | +") || !strings.Contains(lines[2], "| +0.0 % **other sign** |") {
		t.Errorf("without a prefix cache:\n%s", out.String())
	}
}
