package audit

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"reprise/synth"
	"reprise/trace"
)

// A model that is swapped among k alike is fitted to half of the sessions of a published
// trace. What it makes is no nearer to these than the other half is.
func TestSwappedModelIsNoNearerThanOthers(t *testing.T) {
	f, err := os.Open(filepath.Join("../../../shared/data", "mooncake_conversation.jsonl"))
	if err != nil {
		t.Skip("the published Mooncake trace is not here")
	}
	defer f.Close()
	var halves [2][]trace.Request
	half := map[uint64]int{} // by block behind the common first one
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	sessions := 0
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
		h := -1
		for _, b := range l.IDs[1:] {
			if of, ok := half[b]; ok {
				h = of
			}
		}
		if h < 0 {
			h = sessions % 2
			sessions++
		}
		for _, b := range l.IDs[1:] {
			half[b] = h
		}
		halves[h] = append(halves[h], trace.Request{ArrivalNS: l.Timestamp * 1e6, InputTokens: l.Input, OutputTokens: l.Output, Blocks: l.IDs})
	}
	m, err := synth.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: halves[0]}, trace.Meta{BlockSize: 512}, synth.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Generate(t.Context(), synth.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var made trace.SliceWriter[trace.Request]
	if _, err := trace.Copy(&made, w.Reader()); err != nil {
		t.Fatal(err)
	}
	n := min(len(made.Rows), len(halves[1]))
	places := func(rows []trace.Request) []place {
		var out []place
		for i := range n { // every one of them would be in order of time: half of them choose the distance
			r := &rows[(i*7919)%n]
			out = append(out, placeOf(r.InputTokens, r.OutputTokens))
		}
		return out
	}
	a := linkAttack(places(made.Rows), places(halves[0]), places(halves[1]))
	t.Log(a)
	if a.Beaten() {
		t.Errorf("the workload is nearer to its trace: %v", a)
	}
}
