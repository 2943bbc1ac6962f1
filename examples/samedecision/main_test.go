package main

import (
	"io"
	"strings"
	"testing"

	"reprise/replay/contract"
	"reprise/trace"
)

// small is a workload of prompts of 32,768 tokens, half of them shared by all.
func small() *workload {
	w := &workload{meta: trace.Meta{BlockSize: 512}}
	for i := range uint64(60) {
		var blocks []uint64
		for j := range uint64(64) {
			if j >= 32 {
				j += 32 * i
			}
			blocks = append(blocks, j)
		}
		w.rows = append(w.rows, trace.Request{ArrivalNS: int64(i) * 1e8, InputTokens: 32768, OutputTokens: 4, Blocks: blocks})
	}
	return w
}

func TestPrefixesDecide(t *testing.T) {
	c := comparison{rate: 4, rounds: 1}
	c.add("shared", small())
	c.add("apart", small().withoutBlocks())
	var out strings.Builder
	if err := c.changes(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[2], "| no prefix cache | +") || !strings.Contains(lines[2], "| +0.0 % **other sign** |") {
		t.Errorf("without a prefix cache:\n%s", out.String())
	}
}

func TestCapacityOfALoopedWorkload(t *testing.T) {
	terms, err := contract.Parse("", []byte("clauses: [p95 ttft <= 4s]"))
	if err != nil {
		t.Fatal(err)
	}
	// An engine computes such a prompt in 1.15 s, and there are four.
	c := comparison{terms: &terms, rate: 4, rounds: 1}
	if got, err := c.sweep(t.Context(), small().withoutBlocks(), 1); err != nil || got < 2.8 || got > 3.5 {
		t.Errorf("%.2f req/s, %v", got, err)
	}
}

func TestRoundsHavePromptsOfTheirOwn(t *testing.T) {
	w := small()
	rows := make([]trace.Request, 61)
	if n, err := (&again{w: w}).Read(rows); n != 61 || err != nil {
		t.Fatal(n, err)
	}
	if rows[60].Blocks[0] == rows[0].Blocks[0] || rows[60].InputTokens != rows[0].InputTokens {
		t.Errorf("the second round begins with %v", rows[60])
	}
	if n, err := (&again{w: w, once: true}).Read(rows); n != 60 || err != io.EOF {
		t.Errorf("%d rows of 60, %v", n, err)
	}
}
