package profile

import (
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace"
)

// liveRows are prompts over a tree of blocks, in blocks of 10 tokens.
func liveRows(seed uint64, n int) []trace.Request {
	r := rand.New(rand.NewPCG(seed, 3))
	var rows []trace.Request
	next := uint64(0)
	for i := range n {
		q := trace.Request{ArrivalNS: int64(i), OutputTokens: trace.Ptr[int32](50), MaxTokens: trace.Ptr(int32(99)), Session: trace.Ptr(int64(i))}
		if len(rows) > 0 && r.IntN(3) > 0 {
			old := rows[r.IntN(len(rows))]
			if full := int(old.InputTokens) / 10; r.IntN(5) == 0 {
				q.Blocks, q.InputTokens = slices.Clone(old.Blocks), old.InputTokens
			} else {
				k := r.IntN(full + 1)
				q.Blocks, q.InputTokens = slices.Clone(old.Blocks[:k]), int32(k*10)
			}
		}
		if q.InputTokens%10 == 0 {
			q.InputTokens += 1 + r.Int32N(60)
		}
		for len(q.Blocks)*10 < int(q.InputTokens) {
			q.Blocks = append(q.Blocks, next)
			next++
		}
		rows = append(rows, q)
	}
	return rows
}

// liveOracle keeps a list of blocks, the newest last.
func liveOracle(rows []trace.Request, capacity int) (held []uint64) {
	tokens := map[uint64]int{}
	for _, r := range rows {
		for i := len(r.Blocks) - 1; i >= 0; i-- {
			id := r.Blocks[i]
			tokens[id] = min(10, int(r.InputTokens)-10*i)
			if at := slices.Index(held, id); at >= 0 {
				held = slices.Delete(held, at, at+1)
			}
			held = append(held, id)
		}
		for liveSum(held, tokens) > capacity {
			held = held[1:]
		}
	}
	return held
}

func liveSum(held []uint64, tokens map[uint64]int) (n int) {
	for _, id := range held {
		n += tokens[id]
	}
	return n
}

// What is held is what an LRU list holds; the prompts are prefixes of requests,
// cover it once, and in their order leave a new cache with the same blocks.
func TestLive(t *testing.T) {
	for _, capacity := range []int{0, 7, 100, 1000, 1 << 30} {
		rows := liveRows(uint64(capacity), 300)
		l := NewLive(10, int64(capacity))
		for i := range rows {
			l.Touch(&rows[i])
		}
		want := liveOracle(rows, capacity)
		var got []uint64
		for n := l.oldest; n >= 0; n = l.nodes[n].newer {
			got = append(got, l.nodes[n].id)
		}
		if !slices.Equal(got, want) || len(l.at) != len(want) || l.Tokens() > int64(capacity) {
			t.Fatalf("capacity %d: %d blocks are held, want %d", capacity, len(got), len(want))
		}
		liveCheckPrompts(t, rows, l, want)
	}
}

func liveCheckPrompts(t *testing.T, rows []trace.Request, l *Live, want []uint64) {
	t.Helper()
	covered, ends := map[uint64]bool{}, map[uint64]bool{}
	again := NewLive(10, l.capacity)
	last := -1
	for _, p := range l.Prompts() {
		end := p.Blocks[len(p.Blocks)-1]
		if ends[end] || *p.OutputTokens != 1 || p.MaxTokens != nil || len(p.Blocks) != (int(p.InputTokens)+9)/10 {
			t.Fatalf("prompt %+v", p)
		}
		ends[end] = true
		for _, id := range p.Blocks {
			covered[id] = true
		}
		// The row that it says it is must be the last with the block at its end.
		row := *p.Session
		if n := len(p.Blocks); !slices.Equal(rows[row].Blocks[:n], p.Blocks) {
			t.Fatalf("the prompt is not a prefix of row %d", row)
		}
		for i := int(row) + 1; i < len(rows); i++ {
			if slices.Contains(rows[i].Blocks, end) {
				t.Fatalf("row %d touched the block after row %d", i, row)
			}
		}
		if at := slices.Index(want, end); at < last {
			t.Fatal("the prompts are not in LRU order")
		} else {
			last = at
		}
		again.Touch(&p)
	}
	if len(covered) != len(want) || len(again.at) != len(want) || again.Tokens() != l.Tokens() {
		t.Fatalf("the prompts cover %d of %d blocks", len(covered), len(want))
	}
}

// Ids that do not form prefixes, failed rows and rows without blocks do no harm.
func TestLiveOfBrokenRows(t *testing.T) {
	l := NewLive(10, 45)
	for _, r := range []trace.Request{
		{InputTokens: 30, Blocks: []uint64{1, 1, 1}},
		{InputTokens: 30, Blocks: []uint64{2, 1, 3}},
		{InputTokens: 30, Blocks: []uint64{1, 2}},
		{InputTokens: 5, Blocks: []uint64{4, 5, 6}},
		{InputTokens: 50, Blocks: []uint64{7}, Status: trace.StatusFailed},
		{InputTokens: -3, Blocks: []uint64{8}},
		{InputTokens: 10},
	} {
		l.Touch(&r)
	}
	prompts := l.Prompts()
	if l.Tokens() != 25 || len(prompts) != 3 {
		t.Errorf("%d tokens, %v", l.Tokens(), prompts)
	}
}
