package breaker

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/block"
)

// randomPrompts branch off each other anywhere, go on, repeat and begin anew.
func randomPrompts(r *rand.Rand, n int) [][]uint32 {
	var all [][]uint32
	for range n {
		var p []uint32
		if len(all) > 0 && r.IntN(5) > 0 {
			old := all[r.IntN(len(all))]
			p = append(p, old[:r.IntN(len(old)+1)]...)
		}
		for range r.IntN(40) {
			p = append(p, r.Uint32N(3))
		}
		all = append(all, p)
	}
	return all
}

// check holds what must be true of a tree at all times.
func (t *promptTree) check(test *testing.T) {
	test.Helper()
	cost, kids := 0, map[int32]int32{}
	seen := map[int32]bool{}
	for n := t.nodes[0].newer; n != 0; n = t.nodes[n].newer {
		node := &t.nodes[n]
		if len(seen) == 0 && node.children > 0 {
			test.Fatal("the first to go is no leaf")
		}
		seen[n] = true
		cost += int(node.array) + nodeTokens
		if cap(node.tokens) > int(node.array) {
			test.Fatal("a node holds more than it counts")
		}
		if node.parent == 0 {
			continue
		}
		kids[node.parent]++
		above := &t.nodes[node.parent]
		if seen[node.parent] {
			test.Fatal("a node is older than what stands behind it")
		}
		if t.child[childKey{node.parent, node.tokens[0]}] != n || int(node.start) != int(above.start)+len(above.tokens) || node.domain != above.domain {
			test.Fatal("a node is not where its parent has it")
		}
	}
	for n := range seen {
		if t.nodes[n].children != kids[n] {
			test.Fatal("a node miscounts what stands behind it")
		}
		if r := t.nodes[n].recent; r != 0 && t.nodes[r].parent != n {
			test.Fatal("the child used last is another's")
		}
	}
	if cost != t.cost || len(t.child)+len(t.roots) != len(seen) || len(seen)+len(t.free)+1 != len(t.nodes) {
		test.Fatalf("%d nodes cost %d, counted %d; %d ways to them", len(seen), cost, t.cost, len(t.child)+len(t.roots))
	}
}

// The tree knows of a prompt what the prompts before it tell, as long as nothing
// is forgotten, and no more than that when it must forget.
func TestPromptTree(t *testing.T) {
	r := rand.New(rand.NewPCG(81, 1))
	for _, limit := range []int{1 << 20, 3000} {
		tree := newPromptTree(limit)
		prompts := randomPrompts(r, 400)
		for i, p := range prompts {
			want := 0
			for j, old := range prompts[:i] {
				if j%3 == i%3 {
					want = max(want, agree(old, p))
				}
			}
			known := tree.walk(block.ID{byte(i % 3)}, p)
			if known > want || limit > 3000 && known != want {
				t.Fatalf("limit %d, prompt %d: %d tokens are known, want %d", limit, i, known, want)
			}
			leaf := tree.grow(p, known, int64(i))
			tree.check(t)
			if tree.cost > limit+len(p)*2+nodeTokens*len(p) {
				t.Fatalf("limit %d: %d tokens are held", limit, tree.cost)
			}
			if whole := tree.appendFrom(nil, leaf, 0); len(p) > 0 && !slices.Equal(whole[:len(p)], p) {
				t.Fatalf("prompt %d came back as another", i)
			}
			if again := tree.walk(block.ID{byte(i % 3)}, p); again != len(p) {
				t.Fatalf("prompt %d is not known at once: %d of %d", i, again, len(p))
			}
		}
		if (limit == 3000) != (len(tree.free) > 0 || tree.nodes[1].gen > 0) {
			t.Errorf("limit %d: %d nodes are free", limit, len(tree.free))
		}
	}
}

// plainWinnow is the definition.
func plainWinnow(tokens []uint32, k, w int) []print {
	var out []print
	for from := 0; from+w+k-1 <= len(tokens); from++ {
		best := from
		for i := from; i < from+w; i++ {
			if shingleValue(tokens, i) <= shingleValue(tokens, best) {
				best = i
			}
		}
		if len(out) == 0 || out[len(out)-1].pos != int32(best) {
			out = append(out, print{int32(best), hashTokens(tokens[best:best+k], 7)})
		}
	}
	return out
}

// Two texts that have enough tokens in common have a print of it in common.
func TestWinnow(t *testing.T) {
	r := rand.New(rand.NewPCG(82, 1))
	text := func(n int, of uint32) []uint32 {
		s := make([]uint32, n)
		for i := range s {
			s[i] = r.Uint32N(of)
		}
		return s
	}
	for _, c := range [][2]int{{shingle, window}, {fineShingle, fineWindow}} {
		k, w := c[0], c[1]
		density := 0.0
		for range 300 {
			common := text(k+w-1, 2+r.Uint32N(1000))
			a := slices.Concat(text(r.IntN(200), 50), common, text(r.IntN(200), 50))
			at := r.IntN(200)
			b := slices.Concat(text(at, 50), common, text(r.IntN(200), 50))
			in := map[uint32]bool{}
			for _, p := range winnow(nil, a, k, w, 7) {
				in[p.hash] = true
			}
			found := false
			prints := winnow(nil, b, k, w, 7)
			if !slices.Equal(prints, plainWinnow(b, k, w)) {
				t.Fatal("the prints are not those of the definition")
			}
			for i, p := range prints {
				found = found || in[p.hash]
				if p.hash != hashTokens(b[p.pos:int(p.pos)+k], 7) || i > 0 && p.pos <= prints[i-1].pos {
					t.Fatal("a print is not of its place, or they are out of order")
				}
			}
			if !found {
				t.Fatalf("%d tokens in common have no print in common", len(common))
			}
			density += float64(len(prints)) / float64(len(b)) / 300
		}
		if want := 2 / float64(w+1); density > 1.3*want {
			t.Errorf("one print in %.1f tokens, want %.1f", 1/density, 1/want)
		}
	}
	if winnow(nil, text(shingle+window-2, 50), shingle, window, 0) != nil || winnow(nil, nil, shingle, window, 0) != nil {
		t.Error("a text without a whole window has prints")
	}
}

// Differences are counted once, in front of what agrees, in order.
func TestAlign(t *testing.T) {
	r := rand.New(rand.NewPCG(83, 1))
	text := func(n int) []uint32 {
		s := make([]uint32, n)
		for i := range s {
			s[i] = r.Uint32N(1 << 17)
		}
		return s
	}
	a, b, c := text(200), text(300), text(100)
	for name, one := range map[string]struct {
		later, earlier [][]uint32
		known          int
		want           []difference
	}{
		"replaced":         {[][]uint32{text(3), a, text(50)}, [][]uint32{text(5), a, text(70)}, 0, []difference{{0, 3, 5, 200, 200}}},
		"inserted":         {[][]uint32{text(40), a}, [][]uint32{a}, 0, []difference{{0, 40, 40, 200, 200}}},
		"dropped":          {[][]uint32{a}, [][]uint32{text(500), a}, 0, []difference{{0, 0, 500, 200, 200}}},
		"two":              {[][]uint32{text(3), a, text(20), b}, [][]uint32{text(3), a, text(20), b}, 0, []difference{{0, 3, 3, 200, 200}, {203, 20, 20, 300, 300}}},
		"turned round":     {[][]uint32{b, a, c}, [][]uint32{a, b, c}, 0, []difference{{0, 0, 200, 600, 600}}},
		"too little":       {[][]uint32{text(3), a[:63], text(90)}, [][]uint32{text(3), a[:63], text(90)}, 0, nil},
		"too wide":         {[][]uint32{text(201), a}, [][]uint32{text(9), a}, 0, nil},
		"behind a wide":    {[][]uint32{text(3), a, text(301), b}, [][]uint32{text(3), a, text(9), b}, 0, []difference{{0, 3, 3, 200, 200}}},
		"known in part":    {[][]uint32{text(3), a}, [][]uint32{text(3), a}, 103, []difference{{0, 3, 3, 200, 100}}},
		"mended elsewhere": {[][]uint32{text(3), a, text(2), b}, [][]uint32{text(3), a, text(2), b}, 203, []difference{{203, 2, 2, 300, 300}}},
	} {
		later, earlier := slices.Concat(one.later...), slices.Concat(one.earlier...)
		var al aligner
		var seed run
		for x := range later {
			for y := range earlier {
				if later[x] == earlier[y] && seed.n < minFine {
					seed = extend(later, earlier, x, y)
				}
			}
		}
		if got := al.align(later, earlier, seed, one.known); !slices.Equal(got, one.want) {
			t.Errorf("%s: %+v, want %+v", name, got, one.want)
		}
	}
}

// With more places than are counted at once, the rare ones go.
func TestBreakerTallyIsBounded(t *testing.T) {
	tally := breakerTally{map[breakerPlace]*placeTally{}, 100}
	tokens := make([]uint32, SearchTokens)
	r := rand.New(rand.NewPCG(84, 1))
	for i := range 20_000 {
		at := 4000
		if i%20 > 0 {
			at = r.IntN(SearchTokens)
		}
		tally.count(&Prompt{Tokens: tokens, Source: int64(i)}, at, 5, 100, 0)
		if len(tally.places) > 100 {
			t.Fatal("too many places")
		}
	}
	var most Breaker
	for _, one := range tally.breakers() {
		if one.From <= 4000 && one.To >= 4000 {
			most = one
		}
	}
	if most.Requests < 990 {
		t.Errorf("of 1,000 requests at one place %d are left", most.Requests)
	}
}

func TestWidths(t *testing.T) {
	for n, want := range map[int]int64{0: 0, 1: 1, 31: 31, 32: 32, 39: 32, 40: 40, 63: 56, 64: 64, 1000: 896, 16384: 16384, 16 << 20: 16384} {
		one := placeTally{requests: 1}
		one.widths[widthBucket(n)]++
		if got := one.width(); got != want {
			t.Errorf("a width of %d reads %d, want %d", n, got, want)
		}
	}
}

// Memory does not follow the source.
func TestBreakerFinderMemory(t *testing.T) {
	f := NewFinder()
	r := rand.New(rand.NewPCG(85, 1))
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	var tokens []uint32
	system := make([]uint32, 300)
	for i := range 12_000 { // half of them break somewhere, all are new
		content := make([]uint32, 200+r.IntN(900))
		for j := range content {
			content[j] = r.Uint32()>>1 | 1
		}
		tokens = appendPrompt(tokens[:0], trace.System, system[:r.IntN(300)])
		tokens = appendPrompt(tokens, trace.User, content)
		f.Add(&Prompt{Tokens: tokens, Length: int32(len(tokens)), Source: int64(i), Domain: block.ID{byte(i / 4000)}})
	}
	if f.tree.cost > treeTokens || len(f.places.slots) > maxPlaces {
		t.Errorf("%d tokens and %d fingerprints are held", f.tree.cost, len(f.places.slots))
	}
	if mb := (used() - before) >> 20; mb > 16 {
		t.Errorf("%d MiB are held", mb)
	}
	runtime.KeepAlive(f)
}

func appendPrompt(prompt []uint32, role trace.Role, tokens []uint32) []uint32 {
	return AppendMessage(BeginMessage(prompt, role), tokens)
}
