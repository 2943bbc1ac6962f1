package synth

import (
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// documents makes single requests on a system prompt and one of some documents, the first of which
// are asked for most, with versions of an end that half of them have. Some ask the same again.
func documents(seed uint64, n int) []trace.Request {
	const block = 16
	r := rand.New(rand.NewPCG(seed, 3))
	next := uint64(10)
	blocks := func(n int) (ids []uint64) {
		for range n {
			ids = append(ids, next)
			next++
		}
		return ids
	}
	root := blocks(3)
	var papers [][]uint64
	for range 60 {
		paper := append(slices.Clone(root), blocks(2+r.IntN(40))...)
		papers = append(papers, paper, append(slices.Clone(paper), blocks(1+r.IntN(5))...))
	}
	rows := make([]trace.Request, n)
	for i := range rows {
		q := &rows[i]
		*q = trace.Request{ArrivalNS: int64(i)*1e9 + r.Int64N(1e9), Model: "m", Status: trace.StatusOK, OutputTokens: trace.Ptr(1 + r.Int32N(200))}
		paper := papers[int(float64(len(papers))*r.Float64()*r.Float64()*r.Float64())]
		if i > 0 && r.IntN(20) == 0 {
			q.Blocks, q.InputTokens = slices.Clone(rows[i-1].Blocks), rows[i-1].InputTokens
			continue
		}
		q.Blocks = append(slices.Clone(paper), blocks(1+r.IntN(4))...)
		q.InputTokens = int32(len(q.Blocks)*block) - r.Int32N(block)
	}
	return rows
}

// leftAt counts, by how deep they are, the requests on each block after which k sessions or more
// left, counted anew: by all prefixes of all prompts.
func leftAt(rows []trace.Request, k int) map[int][]int {
	known, left, carried := map[uint64]bool{}, map[uint64]map[int64]bool{}, map[uint64]int{}
	depth := map[uint64]int{}
	for i, q := range rows {
		hit := 0
		for hit < len(q.Blocks) && known[q.Blocks[hit]] {
			hit++
		}
		if hit > 0 {
			at, by := q.Blocks[hit-1], -int64(i)-2
			switch {
			case q.Session != nil:
				by = *q.Session
			case hit == len(q.Blocks): // a whole prompt again, by whoever sent it
				by = -1
			}
			if left[at] == nil {
				left[at] = map[int64]bool{}
			}
			left[at][by], depth[at] = true, hit
		}
		for _, b := range q.Blocks {
			known[b] = true
			carried[b]++
		}
	}
	of := map[int][]int{}
	for b, by := range left {
		if len(by) >= k {
			of[depth[b]] = append(of[depth[b]], carried[b])
		}
	}
	for _, n := range of {
		slices.Sort(n)
	}
	return of
}

// Documents are as long in the workload as in the trace, and about as many requests are about each:
// those about rare ones are exchanged.
func TestTemplatesKeepLengthAndPopularity(t *testing.T) {
	seeds := uint64(1)
	if longtest.On() {
		seeds = 3
	}
	for seed := range seeds {
		rows := documents(seed, 1500)
		m := fitted(t, rows, trace.Meta{BlockSize: 16}, 10, seed)
		got := generated(t, m, Options{Seed: seed})
		want, have := leftAt(rows, 20), leftAt(got, 20)
		if len(want) < 10 {
			t.Fatalf("seed %d: only %d lengths of documents", seed, len(want))
		}
		for depth, carried := range want {
			if got := have[depth]; len(got) != len(carried) || slices.Max(got) < slices.Max(carried)*2/3 || slices.Max(got) > slices.Max(carried)*3/2 {
				t.Errorf("seed %d: %d requests carry what ends at block %d, want about %d", seed, got, depth, carried)
			}
		}
	}
}

// Unswapped, places on documents rebuild the trace.
func TestTemplatesRebuildTheTrace(t *testing.T) {
	for seed := range uint64(3) {
		rows := annotated(documents(seed, 1500), 16)
		m := fitted(t, rows, trace.Meta{BlockSize: 16}, 1, seed)
		if len(m.templates) < 20 {
			t.Fatalf("only %d templates", len(m.templates))
		}
		sameRows(t, rows, readAll(t, replayed(m, timesOf(rows)).Reader()))
	}
}

// What is one conversation's is no template, however often it is continued: of a session, since
// only it leaves there, and of requests without one, since each leaves the one before.
func TestOneConversationIsNoTemplate(t *testing.T) {
	for name, session := range map[string]*int64{"a session": trace.Ptr(int64(3)), "none": nil} {
		var rows []trace.Request
		for i := range 200 {
			own := trace.Request{ArrivalNS: int64(2 * i), InputTokens: 16, Blocks: []uint64{uint64(1000 + i)}, OutputTokens: trace.Ptr[int32](1), Status: trace.StatusOK}
			q := own
			q.ArrivalNS, q.Session, q.Blocks = int64(2*i+1), session, nil
			for b := range 2 + i {
				q.Blocks = append(q.Blocks, uint64(b))
			}
			if q.Blocks = append(q.Blocks, uint64(5000+i)); session != nil {
				q.Blocks = append(slices.Clone(q.Blocks[:2]), uint64(5000+i)) // again and again at one place
			}
			q.InputTokens = int32(16 * len(q.Blocks))
			rows = append(rows, own, q)
		}
		if m := fitted(t, rows[:150], trace.Meta{BlockSize: 16}, 10, 1); len(m.templates) > 0 {
			t.Errorf("%s: %d templates", name, len(m.templates))
		}
	}
}

// Samples of one prompt make no template where nobody tells who asked for them. Where sessions do, they do.
func TestSamplesOfOnePromptAreNoTemplate(t *testing.T) {
	for _, told := range []bool{false, true} {
		var rows []trace.Request
		for i := range 40 {
			for sample := range 16 {
				q := trace.Request{ArrivalNS: int64(100*i + sample), Blocks: []uint64{uint64(10 * i), uint64(10*i + 1)}, InputTokens: 20,
					OutputTokens: trace.Ptr[int32](1), Status: trace.StatusOK}
				if told {
					q.Session = trace.Ptr(int64(16*i + sample))
				}
				rows = append(rows, q)
			}
		}
		if n := len(fitted(t, rows, trace.Meta{BlockSize: 16}, 10, 1).templates); told != (n > 0) {
			t.Errorf("sessions told: %v, %d templates", told, n)
		}
	}
}

// A template that fewer than k sessions share has the length of another one of k alike, jittered, and
// all that follow it with it.
func TestRareTemplatesAreDealt(t *testing.T) {
	s, _ := swapperOf(t, documents(4, 1500), trace.Meta{BlockSize: 16}, 10)
	s.prepare()
	rare, own, was, is := 0, 0, 0, 0
	for range 5 {
		x := s.try(s.r)
		for i, m := range s.templates {
			switch now := x.templates[i]; {
			case !m.rare && now != m:
				t.Fatalf("template %d was %+v and is %+v", i, m, now)
			case m.rare && m.blocks > 2*blocksFrom:
				rare++
				was, is = was+int(m.blocks), is+int(now.blocks)
				if now.blocks == m.blocks {
					own++
				}
			}
		}
		for i := range x.places {
			p := &x.places[i]
			if p.template == none {
				continue
			}
			if m := x.templates[p.template]; p.trunk <= m.from || p.trunk > m.from+m.blocks {
				t.Fatalf("place %d follows %d blocks of %+v", i, p.trunk, m)
			}
		}
	}
	if rare < 50 || own > rare/4 || is < was*9/10 || is > was*11/10 {
		t.Errorf("%d of %d rare templates have their length, and all have %d blocks, were %d", own, rare, is, was)
	}
}

// What sessions go on with begins with the system prompt that they began with, where their turns are
// too short for a block to show that they hold the one before.
func TestSessionsGoOnWithTheirTemplate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var rows []trace.Request
	next := uint64(10_000)
	for i := range 1200 {
		q := trace.Request{ArrivalNS: int64(i) * 1e9, Status: trace.StatusOK, OutputTokens: trace.Ptr(1 + r.Int32N(90)), Turn: trace.Ptr(int32(i % 3))}
		session := int64(i/60*20 + i%20) // three turns each, 20 requests apart
		q.Session = &session
		for b := range 3 + uint64(session%40)%7 {
			q.Blocks = append(q.Blocks, uint64(session%40)*20+b)
		}
		q.Blocks = append(q.Blocks, next)
		next++
		q.InputTokens = int32(16*len(q.Blocks)) - 8 + int32(i/20%3)
		rows = append(rows, q)
	}
	m := fitted(t, rows, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource}, 10, 1)
	first, off := map[int64]uint64{}, 0
	for _, q := range generated(t, m, Options{Seed: 1}) {
		if began, ok := first[*q.Session]; !ok {
			first[*q.Session] = q.Blocks[0]
		} else if began != q.Blocks[0] {
			off++
		}
	}
	if len(first) < 350 || len(first) > 450 || off > 40 {
		t.Errorf("of %d sessions %d turns begin with another prompt", len(first), off)
	}
}
