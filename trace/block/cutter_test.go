package block

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCutter writes sequences in random pieces, looking at the ids in between, and compares with one write of the same.
func TestCutter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		size := 1 + rnd.IntN(20)
		h := newTest(t, size)
		roots := []ID{h.Root("a"), h.Root("b")}
		c, other := h.Cutter(roots[0]), h.Cutter(roots[1]) // two cutters of one hasher do not disturb each other
		for _, root := range roots {
			c.Reset(root)
			tokens := randomTokens(rnd, rnd.IntN(300), 1000)
			for at := 0; ; {
				if c.Len() != at {
					t.Fatalf("Len is %d after %d tokens", c.Len(), at)
				}
				other.Write(tokens[:at])
				want := cut(h, root, tokens[:at])
				if got := c.Append([]ID{{9}}); !slices.Equal(got[1:], want) || got[0] != (ID{9}) {
					t.Fatalf("size %d, %d tokens: the ids depend on how they were written", size, at)
				}
				if got := c.AppendFull(nil); !slices.Equal(got, want[:Full(at, size)]) {
					t.Fatalf("size %d, %d tokens: AppendFull gives %d blocks", size, at, len(got))
				}
				if at == len(tokens) {
					break
				}
				n := rnd.IntN(min(len(tokens)-at, 3*size) + 1)
				c.Write(tokens[at : at+n])
				at += n
			}
		}
	}
}

// TestPartial: a partial block is not the full block that begins with it, nor that of a smaller size.
func TestPartial(t *testing.T) {
	tokens := []uint32{5, 6, 7, 0}
	h := newTest(t, 4)
	seen := make(map[ID]int)
	for n := range 5 {
		for _, id := range cut(h, h.Root(), tokens[:n]) {
			if other, ok := seen[id]; ok {
				t.Errorf("the first %d tokens have the id of the first %d", n, other)
			}
			seen[id] = n
		}
	}
	if small := newTest(t, 3); cut(small, small.Root(), tokens[:3])[0] == cut(h, h.Root(), tokens[:3])[0] {
		t.Error("a full block of 3 has the id of a partial block of 4")
	}
}

func TestCutterAllocates(t *testing.T) {
	h := newTest(t, 16)
	root, tokens := h.Root(), make([]uint32, 1000)
	c := h.Cutter(root)
	var dst []ID
	work := func() {
		c.Reset(root)
		c.Write(tokens[:501])
		c.Write(tokens[501:])
		dst = c.Append(dst[:0])
	}
	work()
	if n := testing.AllocsPerRun(20, work); n != 0 {
		t.Errorf("%v allocations for a sequence, want none once warm", n)
	}
}

func BenchmarkCutter(b *testing.B) {
	tokens := randomTokens(rand.New(rand.NewPCG(4, 4)), 8192, 200_000)
	for _, bm := range []struct {
		name string
		size int
	}{{"block16", 16}, {"block64", 64}, {"block512", 512}} {
		b.Run(bm.name, func(b *testing.B) {
			h := newTest(b, bm.size)
			root := h.Root("m")
			c := h.Cutter(root)
			var ids []ID
			b.ReportAllocs()
			for b.Loop() {
				c.Reset(root)
				c.Write(tokens)
				ids = c.Append(ids[:0])
			}
			n := float64(b.N) * float64(len(tokens))
			b.ReportMetric(n/b.Elapsed().Seconds()/1e6, "Mtok/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/tok")
		})
	}
}
