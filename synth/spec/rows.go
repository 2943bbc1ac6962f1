package spec

import (
	"container/heap"
	"io"
	"strconv"
	"time"

	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/block"
	"reprise/trace/profile"
)

// Rows makes the workload that seed selects, in order of arrival. Categories are those
// that the rows turn out to have, see [profile.Categorizer]. Memory is that of the open sessions and the groups'
// prefixes, whatever the number of rows, and 32 bytes for each session.
func (s *Spec) Rows(seed uint64) (trace.Reader[trace.Request], error) {
	g, err := s.rows(seed)
	return &categorised{g, profile.NewCategorizer(s.Block, true)}, err
}

// Meta describes the workload of [Spec.Rows]. No real request is in it, so it
// is as public as the specification.
func (s *Spec) Meta(seed uint64) trace.Meta {
	m := trace.Meta{Schema: trace.Schema, BlockSize: s.Block, Convention: trace.PartialTail,
		Categories:   trace.CategoryRule,
		SourceFormat: "spec", TimeUnit: "ns", Tier: "public", Seed: strconv.FormatUint(seed, 10)}
	for _, p := range s.parts() {
		if p.Sessions != nil || p.Categories != nil && p.Categories.Continuation > 0 {
			m.Sessions = "source"
		}
	}
	return m
}

// categorised are the rows of a generator with their categories.
type categorised struct {
	*generator
	c *profile.Categorizer
}

// Read implements [trace.Reader]. The generator is ahead of the categories by what one call
// reads, so that blocks are forgotten between calls.
func (s *categorised) Read(rows []trace.Request) (int, error) {
	n, err := s.generator.Read(rows)
	for i := range rows[:n] {
		rows[i].Category = s.c.Category(&rows[i])
	}
	s.c.Forget(s.live)
	return n, err
}

// generator makes rows as they arrive.
type generator struct {
	s         *Spec
	parts     []*partRows
	choose    chooser
	arrivals  arrival.Process
	next      time.Duration // arrival of the next session
	turns     turnHeap      // later turns that are due
	warm      int64         // how many of these are the warm ones of a pair
	rows, seq int64
	sessions  int64
	blocks    uint64 // the next new one
}

func (s *Spec) rows(seed uint64) (*generator, error) {
	p, err := s.process()
	if err != nil {
		return nil, err
	}
	g := &generator{s: s, arrivals: p.New(arrival.Stream(seed, "spec arrivals"))}
	var weights []float64
	for i, p := range s.parts() {
		part, err := newPartRows(g, p, seed, "spec part "+strconv.Itoa(i)+" ")
		if err != nil {
			return nil, err
		}
		g.parts, weights = append(g.parts, part), append(weights, p.Share)
	}
	g.choose = newChooser(weights, arrival.Stream(seed, "spec parts"))
	g.next = g.arrivals.Next()
	return g, nil
}

// Read implements [trace.Reader].
func (g *generator) Read(rows []trace.Request) (int, error) {
	for i := range rows {
		if g.s.Requests > 0 && g.rows == g.s.Requests {
			return i, io.EOF
		}
		var t *turn
		// Pairs are whole: the last rows are the warm ones of cold ones before.
		pairsLeft := g.s.Requests > 0 && g.warm > 0 && g.rows+g.warm >= g.s.Requests
		if len(g.turns) > 0 && (pairsLeft || g.turns[0].at <= g.next) {
			t = heap.Pop(&g.turns).(*turn)
			if t.part.warm != nil {
				g.warm--
			}
		} else {
			t = g.parts[g.choose.draw()].first(g.next)
		}
		if g.s.Duration > 0 && t.at >= g.s.Duration {
			return i, io.EOF // and so are all others
		}
		if t.later == nil { // the next session arrives
			if g.s.Arrivals != sequential {
				g.next = t.at + g.arrivals.Next()
			} else {
				g.next = t.at + t.part.answer.Draw()
				if g.rows > 0 {
					t.row.Parents, t.row.ThinkNS = []int64{g.rows - 1}, trace.Ptr(int64(0))
				}
			}
		}
		rows[i] = t.row
		rows[i].ArrivalNS = int64(t.at)
		for _, next := range t.part.after(t, g.rows) {
			if t.part.warm != nil {
				g.warm++
			}
			next.seq = g.seq
			g.seq++
			heap.Push(&g.turns, next)
		}
		g.rows++
	}
	return len(rows), nil
}

// fresh appends new blocks until there are as many as a prompt of so many
// tokens has. It copies the list, since rows share their beginnings.
func (g *generator) fresh(blocks []uint64, tokens int32) []uint64 {
	n := block.Count(int(tokens), g.s.Block)
	out := make([]uint64, len(blocks), max(n, len(blocks)))
	copy(out, blocks)
	for len(out) < n {
		out = append(out, g.blocks)
		g.blocks++
	}
	return out
}

type turnHeap []*turn

func (h turnHeap) Len() int { return len(h) }
func (h turnHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h turnHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *turnHeap) Push(x any)   { *h = append(*h, x.(*turn)) }
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return t
}

// live calls each with the blocks that later rows can have, in lists.
func (g *generator) live(each func(blocks []uint64)) {
	for _, p := range g.parts {
		each(p.global)
		each(p.agents.sub.global)
		for _, group := range p.groups {
			for _, prefix := range group.alive {
				each(prefix.blocks)
			}
		}
		for _, was := range p.recent {
			each(was.Blocks)
		}
	}
	for _, x := range g.turns {
		for x != nil {
			each(x.row.Blocks) // it begins with x.prefix
			if x.join == nil {
				break
			}
			x = x.join.next
		}
	}
}
