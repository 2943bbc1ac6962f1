package fidelity

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"reprise/synth"
	"reprise/trace"
)

// copied yields copies of rows, as a file would.
func copied(rows []trace.Request) trace.Reader[trace.Request] {
	out := slices.Clone(rows)
	for i := range out {
		out[i].Blocks = slices.Clone(out[i].Blocks)
		out[i].OutputBlocks = slices.Clone(out[i].OutputBlocks)
	}
	return &trace.SliceReader[trace.Request]{Rows: out}
}

// freshIDs yields the rows under fresh ids.
func freshIDs(t testing.TB, rows []trace.Request, seed uint64) []trace.Request {
	t.Helper()
	n, err := synth.Count(copied(rows))
	if err != nil {
		t.Fatal(err)
	}
	var w trace.SliceWriter[trace.Request]
	if _, err := trace.Copy(&w, synth.NewMirror(seed, n).Reader(copied(rows))); err != nil {
		t.Fatal(err)
	}
	return w.Rows
}

// conversation reads the published conversation trace of Mooncake.
func conversation(t testing.TB) []trace.Request {
	t.Helper()
	f, err := os.Open("../../../shared/data/mooncake_conversation.jsonl")
	if err != nil {
		t.Skip("the published Mooncake trace is not here")
	}
	defer f.Close()
	var rows []trace.Request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Timestamp int64    `json:"timestamp"`
			Input     int32    `json:"input_length"`
			Output    int32    `json:"output_length"`
			IDs       []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, trace.Request{ArrivalNS: l.Timestamp * 1e6, InputTokens: l.Input, OutputTokens: trace.Ptr(l.Output), Blocks: l.IDs})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}
