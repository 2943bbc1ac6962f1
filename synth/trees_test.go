package synth

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// treeRows are chats behind three system prompts, some with a document that others have.
func treeRows(sessions int) []trace.Request {
	r := rand.New(rand.NewPCG(7, 7))
	next := uint64(1000)
	fresh := func(blocks []uint64, n int) []uint64 {
		blocks = slices.Clone(blocks)
		for range n {
			blocks = append(blocks, next)
			next++
		}
		return blocks
	}
	var systems, documents [][]uint64
	for range 3 {
		systems = append(systems, fresh(nil, 4))
	}
	for i := range sessions / 20 {
		documents = append(documents, fresh(systems[i%3], 3))
	}
	var rows []trace.Request
	for s := range int64(sessions) {
		blocks, at := systems[r.IntN(3)], r.Int64N(3600e9)
		if r.IntN(3) == 0 {
			blocks = documents[r.IntN(len(documents))]
		}
		for turn := range int32(1 + r.IntN(6)) {
			blocks = fresh(blocks, 1+r.IntN(5))
			rows = append(rows, trace.Request{ArrivalNS: at, Session: trace.Ptr(s), Turn: trace.Ptr(turn), Blocks: blocks, InputTokens: int32(16 * len(blocks)),
				OutputTokens: trace.Ptr(int32(1 + r.IntN(100))), Status: trace.StatusOK})
			at += r.Int64N(60e9)
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
	return rows
}

func surveyed(t testing.TB, rows []trace.Request, meta trace.Meta, most float64) *TreeSample {
	t.Helper()
	s, err := surveyTrees(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, FitOptions{}, most)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTreeSample holds the sample to whole trees and whole sessions, and to about its share.
func TestTreeSample(t *testing.T) {
	rows := treeRows(8000)
	whole := perSwapped*float64(len(rows)) + perBlock*100_000
	for _, sessions := range []string{sessionsOfSource, sessionsInferred} {
		meta := trace.Meta{BlockSize: 16, Sessions: sessions}
		if surveyed(t, rows, meta, 2*whole) != nil {
			t.Error("a trace that fits is sampled")
		}
		s := surveyed(t, rows, meta, whole/5)
		if s == nil || s.shift != 3 {
			t.Fatalf("a trace that takes five times what there is: %+v", s)
		}
		// What rows share behind the system prompts, and their sessions, are taken or left
		// together.
		taken, n := map[[2]uint64]bool{}, 0
		for i := range rows {
			r := &rows[i]
			took := s.Takes(r)
			if took {
				n++
			}
			key := [2]uint64{0, r.Blocks[4]}
			if sessions == sessionsOfSource {
				key = [2]uint64{1, uint64(*r.Session)}
			}
			if was, ok := taken[key]; ok && was != took {
				t.Fatalf("%s: row %d is in the sample: %v, and others of its tree: %v", sessions, i, took, was)
			}
			taken[key] = took
		}
		if share := float64(n) / float64(len(rows)); share < 0.09 || share > 0.16 {
			t.Errorf("%s: the sample has %.3f of the requests, want about 0.125", sessions, share)
		}
		if d := s.all.distinct; d < 0.999*float64(distinctOf(rows)) || d > 1.001*float64(distinctOf(rows)) {
			t.Errorf("%.0f distinct blocks, want %d", d, distinctOf(rows))
		}
	}
}

func distinctOf(rows []trace.Request) int {
	seen := map[uint64]bool{}
	for i := range rows {
		for _, b := range rows[i].Blocks {
			seen[b] = true
		}
	}
	return len(seen)
}

// sampledModel fits a sample, or all.
func sampledModel(t testing.TB, rows []trace.Request, meta trace.Meta, k int, s *TreeSample) *Model {
	t.Helper()
	m, err := Fit(context.Background(), &trace.SliceReader[trace.Request]{Rows: slices.Clone(rows)}, meta, FitOptions{KSwap: k, Trees: s, Entropy: rand.NewChaCha8([32]byte{1})})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSampledModel fits a sample: the workload has the requests, the rate and the reuse of
// the whole trace, and the model says how far the sample is off.
func TestSampledModel(t *testing.T) {
	rows := treeRows(8000)
	meta := trace.Meta{BlockSize: 16, Sessions: sessionsOfSource}
	m := sampledModel(t, rows, meta, 1, surveyed(t, rows, meta, perSwapped*float64(len(rows))/3))
	s := m.sampled
	if s == nil || s.OneIn != 4 || s.Requests != int64(len(rows)) || s.Fitted != int64(len(m.places)) {
		t.Fatalf("%+v", s)
	}
	b := written(t, m)
	back, err := ReadModel(bytes.NewReader(b), int64(len(b)))
	if err != nil || *back.sampled != *s || back.meta.Digest != m.meta.Digest {
		t.Fatalf("read back: %v", err)
	}
	got := generated(t, back, Options{Seed: 3})
	if len(got) != len(rows) || got[len(got)-1].ArrivalNS < 3500e9 {
		t.Fatalf("%d requests until %d ns, want %d in an hour", len(got), got[len(got)-1].ArrivalNS, len(rows))
	}
	hits := func(rows []trace.Request) float64 {
		refs := 0
		for i := range rows {
			refs += len(rows[i].Blocks)
		}
		return 1 - float64(distinctOf(rows))/float64(refs)
	}
	if off := hits(got) - hits(rows); off < -0.01 || off > 0.01 {
		t.Errorf("blocks hit %.3f, in the trace %.3f", hits(got), hits(rows))
	}
	if n := len(generated(t, back, Options{Seed: 3, Users: 2, Requests: 1001})); n != 1001 {
		t.Errorf("%d requests of two users, want 1001", n)
	}
	if _, err := parseSampled(`{"one_in":3}`, 0); err == nil {
		t.Error("one in three trees is no sample")
	}
}

// TestSampledTemplates fits a sample of questions on documents, all behind one prompt, which are replaced half way, and of
// a job of some hundred requests every hour: the workload has the documents, as often and as long used, and the jobs whole.
func TestSampledTemplates(t *testing.T) {
	longtest.Skip(t)
	const documents, hours, job = 40, 10, 480
	r := rand.New(rand.NewPCG(5, 5))
	root := []uint64{1, 2, 3}
	next := uint64(1000)
	var rows []trace.Request
	ask := func(at int64, template int) {
		blocks := slices.Clone(root)
		for i := range 2 + template%3 {
			blocks = append(blocks, uint64(10+10*template+i))
		}
		next++
		rows = append(rows, trace.Request{ArrivalNS: at, Blocks: append(blocks, next), InputTokens: int32(16*(len(blocks)+1) - r.IntN(15)),
			OutputTokens: trace.Ptr(int32(1 + r.IntN(100))), Status: trace.StatusOK})
	}
	for range 36_000 {
		at := r.Int64N(hours * 3600e9)
		late := int(at / (hours * 1800e9))
		ask(at, late*documents/2+r.IntN(documents/2))
	}
	for hour := range int64(hours) {
		for range job {
			ask(hour*3600e9+r.Int64N(1e9), documents)
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })

	meta := trace.Meta{BlockSize: 16}
	m := sampledModel(t, rows, meta, DefaultKSwap, surveyed(t, rows, meta, perSwapped*float64(len(rows))/5))
	if m.copies() != 8 {
		t.Fatalf("one in %d trees is fitted, want one in 8", m.copies())
	}
	type usage struct{ requests, first, last, near int }
	used := func(rows []trace.Request) []usage { // by template, the most used first
		of := map[uint64]usage{}
		for i := range rows {
			id := rows[i].Blocks[len(root)]
			u, known := of[id]
			if !known {
				u.first = i
			} else if i-u.last < 20 {
				u.near++
			}
			u.requests, u.last = u.requests+1, i
			of[id] = u
		}
		return slices.SortedFunc(maps.Values(of), func(a, b usage) int { return b.requests - a.requests })
	}
	was, is := used(rows), used(generated(t, m, Options{Seed: 1}))
	if len(was) != documents+1 || len(is) != len(was) {
		t.Fatalf("%d templates, want %d", len(is), len(was))
	}
	if n := is[0].requests; n < hours*job*9/10 || n > hours*job*11/10 || is[0].near < n*9/10 {
		t.Errorf("of %d requests of jobs %d come soon after another, want nearly %d", n, is[0].near, hours*job)
	}
	for i, u := range is[1:] {
		if n := was[i+1].requests; u.requests < n*7/10 || u.requests > n*13/10 {
			t.Errorf("a document has %d requests, want about %d", u.requests, n)
		}
		if span := float64(u.last-u.first) / float64(len(rows)); span < .4 || span > .56 {
			t.Errorf("a document is used for %.2f of the time, want half", span)
		}
	}
}

// Models of a whole trace, in REPRISE_TEST_TRACE, and of one in 2, 4, 8 and 16 of its trees.
func TestSampledModelOfATrace(t *testing.T) {
	path := os.Getenv("REPRISE_TEST_TRACE")
	if path == "" {
		t.Skip("REPRISE_TEST_TRACE names no trace")
	}
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := f.Reader()
	if err != nil {
		t.Fatal(err)
	}
	rows := readAll(t, src)
	takes := perSwapped*float64(len(rows)) + perBlock*float64(distinctOf(rows))
	for _, of := range []float64{1, 2, 4, 8, 16} {
		var s *TreeSample
		if of > 1 {
			s = surveyed(t, rows, f.Meta, takes/of*1.05)
		}
		m := sampledModel(t, rows, f.Meta, DefaultKSwap, s)
		c := Compared(t, f.Meta, rows, m.Meta(), generated(t, m, Options{Seed: 1}))
		t.Logf("one in %g, %d requests", of, len(m.places))
		for _, name := range slices.Sorted(maps.Keys(c.Distance)) {
			if d := c.Distance[name]; d != nil {
				t.Logf("%30s %.4f", name, *d)
			}
		}
		if s != nil {
			t.Logf("the sample is off the whole by %+.2g of input and %+.2g of output tokens, and by %+.2g in hits without limit",
				m.sampled.Input, m.sampled.Output, m.sampled.Hits)
		}
	}
}
