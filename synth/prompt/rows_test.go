package prompt

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/token"
)

// cloned yields copies of rows, as a file would.
func cloned(rows []trace.Request) trace.Reader[trace.Request] {
	out := slices.Clone(rows)
	for i := range out {
		out[i].Blocks = slices.Clone(out[i].Blocks)
	}
	return &trace.SliceReader[trace.Request]{Rows: out}
}

// mooncake reads the published conversation trace.
func mooncake(t testing.TB) (rows []trace.Request) {
	t.Helper()
	f, err := os.Open("../../../shared/data/mooncake_conversation.jsonl")
	if err != nil {
		t.Skip("the published Mooncake trace is not here")
	}
	defer f.Close()
	for lines := json.NewDecoder(f); ; {
		var l struct {
			Timestamp int64    `json:"timestamp"`
			Input     int32    `json:"input_length"`
			Output    int32    `json:"output_length"`
			IDs       []uint64 `json:"hash_ids"`
		}
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			return rows
		} else if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, trace.Request{ArrivalNS: l.Timestamp * 1e6, InputTokens: l.Input, OutputTokens: trace.Ptr(l.Output), Blocks: l.IDs})
	}
}

func newTestPrompter(t testing.TB, encoding string, blockSize int, opts ...Option) *Prompter {
	t.Helper()
	e, err := token.Open(encoding)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(e.Words(), 1, blockSize, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tokensOf(t testing.TB, p *Prompter, r *trace.Request) []uint32 {
	t.Helper()
	ids, err := p.Tokens(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
