package synth

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"reprise/trace"
)

func aSwapper(k, size int) *swapper {
	return &swapper{r: rand.New(rand.NewPCG(1, 2)), k: k, size: size}
}

// swapperOf is a swapper of the places of a trace, and these.
func swapperOf(t testing.TB, rows []trace.Request, meta trace.Meta, k int) (*swapper, []place) {
	t.Helper()
	e := extractor{size: meta.BlockSize}
	for i := range rows {
		if err := e.addRow(int64(i), &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	e.finish(k)
	s := aSwapper(k, meta.BlockSize)
	s.templates, s.labels, s.ends, s.domains, s.shapes, s.times = e.templates, e.labels.values, e.ends.values, domainsOf(e.labels.values), e.shapes, e.times
	s.places = slices.Clone(e.places)
	s.findNear()
	return s, e.places
}

// talks are traces with links of all kinds.
func talks() map[string]talk {
	return map[string]talk{"inferred": {block: 8, models: 2, users: 4}, "sessions": {block: 8, models: 2, users: 4, sessions: true}}
}

// A swap keeps what a place is, and every link leads back in time, within its domain. What begins a session, and
// what has none, stays so.
func TestSwapIsValid(t *testing.T) {
	for name, k := range talks() {
		s, old := swapperOf(t, k.rows(1, 3000), trace.Meta{BlockSize: k.block}, 10)
		s.prepare()
		x := s.try(s.r)
		users := map[int64]int{}
		joins := [2][joins]int{}
		for i := range old {
			users[old[i].user]++
			users[x.places[i].user]--
			joins[0][old[i].join]++
			joins[1][x.places[i].join]++
			p := &x.places[i]
			for _, up := range [...]int32{p.parent, p.after} {
				if up != none && up >= int32(i) {
					t.Fatalf("%s: place %d builds on place %d", name, i, up)
				}
			}
			if p.parent != none && s.domains[x.places[p.parent].label] != s.domains[p.label] {
				t.Fatalf("%s: place %d builds on another domain", name, i)
			}
			if (p.class == opens) != (p.parent == none) || (p.join == byPlace) != (p.after != none) || p.join == byParent && p.parent == none {
				t.Fatalf("%s: place %d is %+v", name, i, p)
			}
		}
		for u, n := range users {
			if n != 0 {
				t.Errorf("%s: user %d has %d places less", name, u, n)
			}
		}
		if joins[0][joinless] != joins[1][joinless] || joins[0][begins] != joins[1][begins] {
			t.Errorf("%s: joins were %v and are %v", name, joins[0], joins[1])
		}
	}
}

// Every cell has at least k points, and all are in one; those of a pairing are about
// where its targets are.
func TestCellsHaveK(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{3, 40, 1500} {
		for _, k := range []int{2, 10, 100} {
			var from, to []point
			for i := range int32(n) {
				from = append(from, point{i, []float64{float64(i), r.Float64(), float64(r.IntN(3))}})
				to = append(to, point{i, []float64{float64(i), r.Float64() * 9, float64(r.IntN(5))}})
			}
			seen := 0
			for _, c := range mondrian(slices.Clone(from), k) {
				if len(c) < min(n, k) {
					t.Errorf("%d points, k %d: a cell of %d", n, k, len(c))
				}
				seen += len(c)
			}
			if seen != n {
				t.Errorf("%d points, k %d: %d in cells", n, k, seen)
			}
			seen = 0
			whole := widths(slices.Clone(from))
			for _, c := range paired(slices.Clone(from), slices.Clone(to), k, []float64{1, 1, 1}) {
				if len(c.from) != len(c.to) || len(c.from) < min(n, k) || len(c.from) >= 2*k && n >= 2*k {
					t.Errorf("%d points, k %d: a pairing of %d and %d", n, k, len(c.from), len(c.to))
				}
				seen += len(c.from)
				if n == 1500 && k == 10 { // both are in the same part of their places in the order
					if a, b := widths(c.from)[0], widths(c.to)[0]; a > whole[0]/2 || b > whole[0]/2 {
						t.Errorf("a pairing is %g and %g of %g wide", a, b, whole[0])
					}
				}
			}
			if seen != n {
				t.Errorf("%d points, k %d: %d in pairings", n, k, seen)
			}
		}
	}
}

// The cells of a long trace hold sizes as far apart as those of a short one, from so much shorter a part of the order:
// who knows about when a request came learns no more of its size.
func TestCellsOfLongTraces(t *testing.T) {
	const k = 40
	wide := func(n int) (order, size float64) {
		r := rand.New(rand.NewPCG(7, 7))
		points := make([]point, n)
		for i := range points {
			points[i] = point{int32(i), []float64{float64(i), r.Float64()}}
		}
		cells := mondrian(points, k)
		for _, c := range cells {
			of := widths(c)
			order, size = order+of[0]/float64(len(cells)), size+of[1]/float64(len(cells))
		}
		return order, size
	}
	shortOrder, shortSize := wide(alikeOrder)
	longOrder, longSize := wide(64 * alikeOrder)
	if longSize < shortSize/1.5 || longOrder > shortOrder*1.5 {
		t.Errorf("cells are %g requests and %g wide, and %g and %g of 64 times as many", shortOrder, shortSize, longOrder,
			longSize)
	}
}

// Groups that are too small join others, by the next key.
func TestGroups(t *testing.T) {
	label := []string{"a", "a", "a", "b", "b", "c", "d", "a"}
	got := grouped(len(label), 3, func(i int32) string { return label[i] }, func(i int32) string { return map[bool]string{true: "x", false: "y"}[label[i] < "d"] })
	if want := [][]int32{{0, 1, 2, 7}, {3, 4, 5}, {6}}; !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// Sizes are those of places of the class, but for the jitter, in any parts; each comes from
// some other place more often than not.
func TestSizesArePermuted(t *testing.T) {
	s, old := swapperOf(t, talk{block: 64, models: 2}.rows(1, 3000), trace.Meta{BlockSize: 64}, 10)
	x := s.unswapped()
	x.swapSizes()
	own, n := 0, 0
	sum := map[class][2]float64{}
	for i := range old {
		p, q := &old[i], &x.places[i]
		if p.class != q.class || (p.fresh > 0) != (q.fresh > 0) || p.class == repeats && p.size != q.size {
			t.Fatalf("place %d was %+v and is %+v", i, p.size, q.size)
		}
		if q.fresh > 0 && (q.tail < 1 || q.tail > 64) {
			t.Fatalf("place %d has %d tokens in its last block", i, q.tail)
		}
		v := sum[p.class]
		sum[p.class] = [2]float64{v[0] + float64(p.fresh) + float64(p.growth), v[1] + float64(q.fresh) + float64(q.growth)}
		for _, from := range x.from[i] {
			if n++; from == int32(i) {
				own++
			}
			if old[from].class != p.class || (old[from].fresh > 0) != (p.fresh > 0) {
				t.Fatalf("place %d, of class %d, has the size of one of %d", i, p.class, old[from].class)
			}
		}
	}
	if own > n/8 {
		t.Errorf("%d of %d sizes are at their place", own, n)
	}
	for c, v := range sum {
		if math.Abs(v[1]/max(1, v[0])-1) > .03 && v[0] > 1000 {
			t.Errorf("class %d has %.0f in all, want %.0f", c, v[1], v[0])
		}
	}
}

// Lengths that many have are limits: documents cut at 3,760 tokens, answers at 400. They stay limits, and
// what few have is jittered.
func TestCommonLengthsStay(t *testing.T) {
	const n, block, cut, most = 1000, 512, 3760, 400
	rng := rand.New(rand.NewPCG(4, 4))
	rows := make([]trace.Request, n)
	for i := range rows {
		in, id := int32(min(cut, 1500*math.Exp(rng.NormFloat64()+1))), uint64(i)*100
		rows[i] = trace.Request{ArrivalNS: int64(i) * 1e9, InputTokens: in, OutputTokens: trace.Ptr(int32(min(most, 250*math.Exp(rng.NormFloat64()))))}
		for b := range (in + block - 1) / block {
			rows[i].Blocks = append(rows[i].Blocks, id+uint64(b))
		}
	}
	s, old := swapperOf(t, rows, trace.Meta{BlockSize: block}, 10)
	s.prepare()
	x := s.try(s.r)

	var prompts, outputs [2]int
	others := 0
	for i := range old {
		for side, p := range []*place{&old[i], &x.places[i]} {
			if p.tokens(block) == cut {
				prompts[side]++
			}
			if p.output == most {
				outputs[side]++
			}
		}
		if x.places[i].output > most {
			t.Fatalf("an answer has %d tokens, more than the limit", x.places[i].output)
		}
		if old[i].tokens(block) != cut && x.places[i].tokens(block) != old[i].tokens(block) {
			others++
		}
	}
	if prompts[0] < n/4 || prompts[1] < prompts[0] || prompts[1] > prompts[0]*21/20 {
		t.Errorf("%d prompts are cut, want %d", prompts[1], prompts[0])
	}
	if outputs[0] < n/10 || outputs[1] < outputs[0] || outputs[1] > outputs[0]*5/4 {
		t.Errorf("%d answers are cut, want %d", outputs[1], outputs[0])
	}
	if others < n/3 {
		t.Errorf("%d prompts of other lengths changed", others)
	}
}

// Windows of 3,800 tokens behind prefixes of several lengths are about as full as they were, and none is longer.
func TestFullWindowsStayFull(t *testing.T) {
	const n, block, window = 1000, 256, 3800
	rng := rand.New(rand.NewPCG(5, 5))
	rows, next := make([]trace.Request, n), uint64(1000)
	for i := range rows {
		card, in := rng.IntN(40), int32(window-rng.IntN(120))
		if i%4 == 0 {
			in = 2600 + int32(rng.IntN(1000))
		}
		rows[i] = trace.Request{ArrivalNS: int64(i) * 1e9, InputTokens: in, OutputTokens: trace.Ptr(int32(50 + rng.IntN(200)))}
		for b := range int(in+block-1) / block {
			if b <= card%8 {
				rows[i].Blocks = append(rows[i].Blocks, uint64(card*20+b))
			} else {
				rows[i].Blocks = append(rows[i].Blocks, next)
				next++
			}
		}
	}
	s, _ := swapperOf(t, rows, trace.Meta{BlockSize: block}, 10)
	s.prepare()
	const swaps = 8
	full, beyond := 0, 0
	for range swaps {
		x := s.try(s.r)
		p := &replayed(&Model{places: x.places, templates: x.templates, labels: s.labels, ends: s.ends, meta: trace.Meta{BlockSize: block}}, make([]int64, n)).populations[0]
		for i := range x.places {
			switch in := p.tokens(int32(i)); {
			case in > window+20:
				beyond++
			case in > window-120:
				full++
			}
		}
	}
	if full < swaps*(n*3/4-n/16) || beyond > swaps*n*3/200 {
		t.Errorf("%d windows are full and %d longer, of %d that were full", full, beyond, swaps*n*3/4)
	}
}

// A window that moves with each key is as long as the one before, wherever the burst has its length from.
func TestBurstsOfOneLengthStayAlike(t *testing.T) {
	const block = 256
	rng := rand.New(rand.NewPCG(6, 6))
	var rows []trace.Request
	next := uint64(1)
	for burst := range 150 {
		in := int32(600 + rng.IntN(4000))
		for range 10 {
			in += int32(rng.IntN(4))
			r := trace.Request{ArrivalNS: int64(len(rows)) * 1e9, InputTokens: in, OutputTokens: trace.Ptr(int32(1 + rng.IntN(60))), Session: trace.Ptr(int64(burst))}
			for range int(in+block-1) / block {
				r.Blocks = append(r.Blocks, next)
				next++
			}
			rows = append(rows, r)
		}
	}
	s, old := swapperOf(t, rows, trace.Meta{BlockSize: block}, 10)
	s.prepare()
	x := s.try(s.r)
	alike, other := 0, 0
	for i, up := range x.near {
		if up == none {
			continue
		}
		if by := x.places[i].tokens(block) - x.places[up].tokens(block); by >= 0 && by <= 3 {
			alike++
		}
		if was := int64(x.shapes[i].tokens); math.Abs(float64(x.places[i].tokens(block)-was)) > .05*float64(was) {
			other++
		}
	}
	if alike < 1300 || other < 600 || len(old) != 1500 {
		t.Errorf("of 1,350 that follow %d are as long as the one before, and %d have another length than they had", alike, other)
	}
}

// An output never stays with a part of the size that it came with, nor in its place.
func TestEndingsLeaveTheirSizes(t *testing.T) {
	s, _ := swapperOf(t, talk{block: 8, models: 1}.rows(1, 600), trace.Meta{BlockSize: 8}, 8)
	for i := range s.places {
		s.places[i].output = 1 // nothing to jitter
		s.places[i].end = int32(i)
	}
	s.ends = make([]end, len(s.places))
	for range 20 {
		x := s.unswapped()
		x.swapSizes()
		x.swapEndings()
		var all []int32
		for i := range x.places {
			from := x.places[i].end
			all = append(all, from)
			if from == int32(i) || slices.Contains(x.from[i], from) {
				t.Fatalf("place %d, with the size of %v, has the output of %d", i, x.from[i], from)
			}
		}
		slices.Sort(all)
		if len(slices.Compact(all)) != len(x.places) {
			t.Fatal("some outputs are lost")
		}
	}
}

// Labels that fewer than k places have move among k of their domain; all others stay.
func TestRareLabelsMove(t *testing.T) {
	s := aSwapper(10, 16)
	s.labels = []label{{model: "a"}, {model: "a", kind: "odd"}, {model: "b"}}
	s.domains = domainsOf(s.labels)
	at := map[int]int{}
	for range 500 {
		x := &swapping{swapper: s, places: make([]place, 100)}
		x.places[50].label = 1
		for i := range 100 {
			if i%3 == 1 {
				x.places[i].label = 2
			}
		}
		x.swapLabels()
		for i := range x.places {
			switch l := x.places[i].label; {
			case l == 1:
				at[i]++
			case (l == 2) != (i%3 == 1):
				t.Fatalf("place %d has label %d", i, l)
			}
		}
	}
	if len(at) < 10 || at[50] > 100 {
		t.Errorf("the rare label was at %v", at)
	}
}

// Each place moves among about so many neighbours, and stays behind what it builds on.
func TestOrderIsShuffled(t *testing.T) {
	s, _ := swapperOf(t, talk{block: 8, models: 1, sessions: true}.rows(1, 1000), trace.Meta{BlockSize: 8}, 8)
	for i := range s.places {
		s.places[i].user = int64(i)
	}
	got := s.shuffled(20).places
	moved := 0
	for i := range got {
		was := &s.places[got[i].user]
		if d := int(got[i].user) - i; d != 0 {
			moved++
			if d > 40 || d < -80 { // with the first of its session, and later for what waits for others
				t.Errorf("place %d came from %d", i, got[i].user)
			}
		}
		for _, up := range [...][2]int32{{was.parent, got[i].parent}, {was.after, got[i].after}} {
			if up[0] == none != (up[1] == none) || up[0] != none && (got[up[1]].user != int64(up[0]) || up[1] >= int32(i)) {
				t.Fatalf("place %d builds on %d, which was %d", i, up[1], up[0])
			}
		}
	}
	if moved < 800 {
		t.Errorf("only %d moved", moved)
	}
}

// What is long is jittered by 5 %, the last block by 0.5 % and 2 tokens at least. What is
// short stays.
func TestJitterDeviates(t *testing.T) {
	s := aSwapper(2, 16)
	for _, c := range []struct {
		n, from         int32
		share, least    float64
		want, tolerance float64
	}{
		{100_000, jitterFrom, swapJitter, outputLeast, 5000, 300}, {10, jitterFrom, swapJitter, outputLeast, 1, .15}, {3, jitterFrom, swapJitter, outputLeast, 0, 0},
		{4, blocksFrom, swapJitter, 0, 0, 0}, {-100_000, growthFrom, swapJitter, 0, 5000, 300}, {-8, growthFrom, swapJitter, 0, 0, 0}, {200, jitterFrom, tailJitter, tailLeast, 2, .2},
	} {
		mean, square := 0.0, 0.0
		for range 4000 {
			x := float64(s.jitter(c.n, c.from, c.share, c.least))
			if x*float64(c.n) <= 0 {
				t.Fatalf("%d becomes %g", c.n, x)
			}
			mean += x / 4000
			square += (x - float64(c.n)) * (x - float64(c.n)) / 4000
		}
		if d := math.Sqrt(square); math.Abs(d-c.want) > c.tolerance {
			t.Errorf("%d deviates by %.3f, want %.3f", c.n, d, c.want)
		}
		if math.Abs(mean-float64(c.n)) > c.want/10+1e-6 {
			t.Errorf("%d is %.2f on average", c.n, mean)
		}
	}
}

func TestSwapNeedsItsRandomness(t *testing.T) {
	rows := talk{block: 8, models: 1}.rows(3, 300)
	meta := trace.Meta{BlockSize: 8}
	want := errors.New("no randomness")
	_, err := Fit(t.Context(), cloned(rows), meta, FitOptions{Entropy: iotest.ErrReader(want)})
	if !errors.Is(err, want) {
		t.Errorf("the error is %v", err)
	}
	if _, err = Fit(t.Context(), cloned(rows), meta, FitOptions{Entropy: bytes.NewReader(make([]byte, 100))}); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		t.Errorf("the error is %v", err)
	}
	if _, err = Fit(t.Context(), cloned(rows), meta, FitOptions{KSwap: -1}); err == nil {
		t.Error("a negative k is no error")
	}
	// By default each fit swaps otherwise: nothing that can be repeated drives it.
	a, err := Fit(t.Context(), cloned(rows), meta, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Fit(t.Context(), cloned(rows), meta, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a.KSwap() != DefaultKSwap || a.Meta().Digest == b.Meta().Digest {
		t.Errorf("k is %d, and two fits have digests %s and %s", a.KSwap(), a.Meta().Digest, b.Meta().Digest)
	}
}

// The limit that was asked for holds after jitter, and reasoning is a part of
// the output still.
func TestJitterKeepsLimits(t *testing.T) {
	s := swapping{swapper: &swapper{r: rand.New(rand.NewPCG(1, 2)), k: 10, size: 16}}
	for range 2000 {
		out := int32(1 + s.r.IntN(400))
		limit := out + int32(s.r.IntN(10))
		reasoning := int32(s.r.IntN(int(out) + 1))
		e := s.jitterEnding(ending{output: out, extra: &extra{maxTokens: &limit, reasoning: &reasoning}})
		if e.output > limit || e.output < 1 || *e.extra.reasoning > e.output || out == limit && e.output != out {
			t.Fatalf("%d of at most %d tokens with %d of reasoning became %d with %d", out, limit, reasoning, e.output, *e.extra.reasoning)
		}
	}
}

// Swaps are made side by side, and which of them counts does not depend on how many are.
func TestSwapsSideBySide(t *testing.T) {
	rows := talk{block: 8, models: 1, sessions: true}.rows(1, 400)
	digests := map[string]bool{}
	for _, cores := range []int{1, 2, 5} {
		before := runtime.GOMAXPROCS(cores)
		digests[fitted(t, rows, trace.Meta{BlockSize: 8}, 8, 3).Meta().Digest] = true
		runtime.GOMAXPROCS(before)
	}
	if len(digests) != 1 {
		t.Errorf("models of one trace and one entropy have %d digests", len(digests))
	}
	if other := fitted(t, rows, trace.Meta{BlockSize: 8}, 8, 4).Meta().Digest; digests[other] {
		t.Error("other entropy makes the same swap")
	}
}
