package main

import (
	"strings"
	"testing"

	"reprise/replay/decision"
	"reprise/synth/spec"
)

// small is a workload of prompts of 32,768 tokens, half of them shared by all.
func small(t *testing.T) *decision.Workload {
	s, err := spec.Parse("small", []byte("requests: 60\nblock: 512\narrivals: constant:10\nprefix: {global: 16384}\n"+
		"lengths: {own: 'constant:16384', output: 'constant:4'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Rows(1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := decision.Read(s.Meta(1), rows, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestPrefixesDecide(t *testing.T) {
	c := comparison{rate: 4, rounds: 1}
	c.add("shared", small(t))
	c.add("apart", small(t).WithoutBlocks())
	var out strings.Builder
	if err := c.changes(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[2], "| no prefix cache | +") || !strings.Contains(lines[2], "| +0.0 % **other sign** |") {
		t.Errorf("without a prefix cache:\n%s", out.String())
	}
}
