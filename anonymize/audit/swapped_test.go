package audit

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/datasets"
	"reprise/synth"
	"reprise/trace"
	"reprise/trace/longtest"
)

// A model that is swapped among k alike is fitted to half of the sessions of a published
// trace. What it makes is no nearer to these than the other half is.
func TestSwappedModelIsNoNearerThanOthers(t *testing.T) {
	longtest.Skip(t)
	path := filepath.Join("../../../shared/data", "mooncake_conversation.jsonl")
	if _, err := os.Stat(path); err != nil {
		t.Skip("the published Mooncake trace is not here")
	}
	files, err := datasets.Expand(path)
	if err != nil {
		t.Fatal(err)
	}
	src, err := datasets.OpenFiles(files, datasets.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var halves [2][]trace.Request
	half := map[uint64]int{} // by block behind the common first one
	var first time.Time
	batch, sessions := make([]trace.Entry, 256), 0
	for n := 0; err == nil; {
		n, err = src.Read(batch)
		for i := range batch[:n] {
			e := &batch[i]
			if first.IsZero() {
				first = e.Time
			}
			own, h := e.SourceBlocks[1:], -1
			for _, b := range own {
				if of, ok := half[b]; ok {
					h = of
				}
			}
			if h < 0 {
				h = sessions % 2
				sessions++
			}
			for _, b := range own {
				half[b] = h
			}
			halves[h] = append(halves[h], trace.Request{ArrivalNS: e.Time.Sub(first).Nanoseconds(), InputTokens: *e.InputTokens, OutputTokens: trace.Ptr(*e.OutputTokens), Blocks: e.SourceBlocks})
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	beaten := 0
	for seed := range byte(fits) {
		a := attackSwapped(t, halves, seed)
		t.Log(a)
		if a.Beaten() {
			beaten++
		}
	}
	if beaten > 1 { // one may be by chance: the distance is chosen
		t.Errorf("%d of %d workloads are nearer to their trace", beaten, fits)
	}
}

const fits = 4

// attackSwapped fits a model to the first of two halves, and links what it makes and the
// second to the first.
func attackSwapped(t *testing.T, halves [2][]trace.Request, seed byte) attackResult {
	opts := synth.FitOptions{Entropy: rand.NewChaCha8([32]byte{seed})}
	m, err := synth.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: halves[0]}, trace.Meta{BlockSize: 512}, opts)
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Generate(t.Context(), synth.Options{Seed: uint64(seed)})
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
			out = append(out, placeOf(r.InputTokens, *r.OutputTokens))
		}
		return out
	}
	return linkAttack(places(made.Rows), places(halves[0]), places(halves[1]))
}
