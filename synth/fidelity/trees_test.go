package fidelity

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/profile"
)

// chats are sessions behind a system prompt, some with a document that others have.
func chats(sessions int) []trace.Request {
	r := rand.New(rand.NewPCG(5, 5))
	next := uint64(0)
	fresh := func(blocks []uint64, n int) []uint64 {
		blocks = slices.Clone(blocks)
		for range n {
			blocks = append(blocks, next)
			next++
		}
		return blocks
	}
	system := fresh(nil, 4)
	var documents [][]uint64
	for range sessions / 20 {
		documents = append(documents, fresh(system, 3))
	}
	var rows []trace.Request
	for range sessions {
		blocks, at := system, r.Int64N(3600e9)
		if r.IntN(3) == 0 {
			blocks = documents[r.IntN(len(documents))]
		}
		for range 1 + r.IntN(6) {
			blocks = fresh(blocks, 1+r.IntN(5))
			rows = append(rows, trace.Request{ArrivalNS: at, Blocks: blocks, InputTokens: int32(16 * len(blocks)), OutputTokens: trace.Ptr(int32(1 + r.IntN(100))), Status: trace.StatusOK})
			at += r.Int64N(60e9)
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
	return rows
}

// TestSampledTrees measures a trace by a sample of its trees, against all of them: what is not
// of the sample is the same, and what is differs by little.
func TestSampledTrees(t *testing.T) {
	longtest.Skip(t)
	rows := chats(8000)
	signature := func(blocks int) *Signature {
		s := NewSignature(trace.Meta{BlockSize: 16}, Options{WarmUp: 60e9})
		s.limits.blocks = blocks
		if _, err := s.Write(rows); err != nil {
			t.Fatal(err)
		}
		return s
	}
	f, err := Compare(signature(1<<30), signature(60_000))
	if err != nil {
		t.Fatal(err)
	}
	same, err := Compare(signature(1<<30), signature(1<<30))
	if err != nil {
		t.Fatal(err)
	}
	sampled := map[string]float64{"turns_ks": 0.05, "turn_gap_ks": 0.03, "reuse_time_ks": 0.03}
	seen := 0
	for _, m := range f.Measures {
		most, ok := sampled[m.Name]
		switch {
		case m.Distance == nil:
		case ok:
			seen++
			if *m.Distance > most {
				t.Errorf("%s differs by %.4f, want %.2f at most", m.Name, *m.Distance, most)
			}
		default:
			if want, _ := same.Measure(m.Name); *m.Distance != *want.Distance {
				t.Errorf("%s differs by %g, and is not of the sample", m.Name, *m.Distance)
			}
		}
	}
	if m, _ := f.Measure("turns_max_log2"); m.Distance != nil {
		t.Errorf("the longest sessions of a sample and of all are compared: %g", *m.Distance)
	}
	if seen < len(sampled)-1 {
		t.Errorf("%d measures of the sample, want %d", seen, len(sampled))
	}
	if !slices.ContainsFunc(f.Warnings, func(w profile.Warning) bool { return w.Code == "sampled_trees" }) {
		t.Errorf("no warning of the sample in %v", f.Warnings)
	}
}

// TestSampledTreesFindFaults measures workloads that are wrong by a sample: each is off in a figure of the
// sample by more than the limit, as it is without one, and one that is right is not.
func TestSampledTreesFindFaults(t *testing.T) {
	rows := chats(8000)
	signature := func(rows []trace.Request) *Signature {
		s := NewSignature(trace.Meta{BlockSize: 16}, Options{Brief: true})
		s.limits.blocks, s.limits.curve = 60_000, 20_000
		if _, err := s.Write(rows); err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := rand.New(rand.NewPCG(6, 6))
	for name, c := range map[string]struct {
		wrong string // figure
		row   func(i int, rows []trace.Request)
	}{
		"right": {"", func(int, []trace.Request) {}},
		"turns are a session's no more": {"turns_ks", func(i int, rows []trace.Request) {
			if b := &rows[i].Blocks; i%2 == 0 {
				*b = append(slices.Clone(*b)[:4], 1<<30+uint64(i))
			}
		}},
		"prompts in another order": {"reuse_time_ks", func(i int, rows []trace.Request) {
			j := r.IntN(len(rows))
			rows[i].Blocks, rows[j].Blocks = rows[j].Blocks, rows[i].Blocks
			rows[i].InputTokens, rows[j].InputTokens = rows[j].InputTokens, rows[i].InputTokens
		}},
		"a cache that holds more": {"mrc_mae", func(i int, rows []trace.Request) {
			if i > 0 && i%10 == 0 {
				rows[i].Blocks, rows[i].InputTokens = rows[i-1].Blocks, rows[i-1].InputTokens
			}
		}},
	} {
		cand := slices.Clone(rows)
		for i := range cand {
			c.row(i, cand)
		}
		f, err := Compare(signature(rows), signature(cand))
		if err != nil {
			t.Fatal(err)
		}
		limits := DefaultThresholds(int64(len(rows)))
		if err := limits.Set("copies=off"); err != nil {
			t.Fatal(err)
		}
		failed := slices.DeleteFunc(Failures(f.Gate(limits)), func(c Check) bool { return c.Value == nil }) // left out, for brevity
		if c.wrong == "" && len(failed) > 0 || c.wrong != "" && !slices.ContainsFunc(failed, func(f Check) bool { return f.Name == c.wrong }) {
			t.Errorf("%s: %v fail, want %q", name, failed, c.wrong)
		}
	}
}

// A trace in a file, in REPRISE_TEST_TRACE, measured by one in 8 or 16 of its trees, and its curve by a
// quarter of its blocks, against all of them.
func TestSampledTreesOfATrace(t *testing.T) {
	path := os.Getenv("REPRISE_TEST_TRACE")
	if path == "" {
		t.Skip("REPRISE_TEST_TRACE names no trace")
	}
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sides [2]*Signature
	for i := range sides {
		rows, err := f.Reader()
		if err != nil {
			t.Fatal(err)
		}
		sides[i] = NewSignature(f.Meta, Options{Brief: true})
		if i == 1 {
			sides[i].limits.blocks = int(sides[0].named) - 1
		}
		if _, err := trace.Copy(sides[i], rows); err != nil {
			t.Fatal(err)
		}
	}
	sides[0].limits.curve, sides[1].limits.curve = 1<<30, int(sides[1].named)/4
	r, err := Compare(sides[0], sides[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("one in %d trees, %d blocks, the curve sampled: %v", sides[1].tally.oneIn, sides[1].tally.unique, sides[1].tally.sampledCurve)
	for _, m := range r.Measures {
		if m.Distance != nil && *m.Distance != 0 {
			t.Logf("%s %.4f", m.Name, *m.Distance)
		}
	}
}
