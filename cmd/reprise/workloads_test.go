package main

import (
	"fmt"
	"strings"
	"testing"

	"reprise/datasets"
	"reprise/synth/spec"
	"reprise/trace"
)

// TestBuiltInWorkloads makes every one of them, and holds its name to its file's.
func TestBuiltInWorkloads(t *testing.T) {
	names := datasets.Workloads()
	if len(names) < 15 {
		t.Fatalf("%d workloads only", len(names))
	}
	help := synthCommand().Long
	for _, name := range names {
		text, _ := datasets.Workload(name)
		s, err := spec.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != name || s.About == "" {
			t.Errorf("%s calls itself %q", name, s.Name)
		}
		if !strings.Contains(help, fmt.Sprintf("\n  %-21s %s\n", name, s.About)) {
			t.Errorf("the help of synth does not say what %s is", name)
		}
		src, err := s.Rows(1)
		if err != nil {
			t.Fatal(err)
		}
		var rows, input int64
		err = trace.Each(src, func(_ int64, r *trace.Request) error {
			rows++
			input += int64(r.InputTokens)
			return nil
		})
		if err != nil || s.Requests > 0 && rows != s.Requests || rows < 10 || input < 16*rows {
			t.Errorf("%s: %d rows, %d tokens, %v", name, rows, input, err)
		}
	}
	if _, ok := datasets.Workload("../demo"); ok {
		t.Error("a name outside the workloads is found")
	}
}
