package stage

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// encoded gives figures the way that they have between workers.
func encoded(t testing.TB, f *Figures) *Figures {
	t.Helper()
	b, err := Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// near reports whether two values differ by less than a share of them.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Max(math.Abs(a), math.Abs(b)) }

// Sums and distributions of parts, merged in any order, are those of all values.
func TestValuesMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var all []int64
		var merged Figures
		for range 1 + r.IntN(6) {
			var part Figures
			for range r.IntN(80) {
				x := int64(math.Exp(40 * r.Float64()))
				all = append(all, x)
				part.Input.Add(x)
			}
			merged.Merge(encoded(t, &part))
		}
		s := encoded(t, &merged).Input.Stats(1)
		if len(all) == 0 {
			if s != nil {
				t.Fatal("there are stats of nothing")
			}
			continue
		}
		slices.Sort(all)
		mean, squares := 0.0, 0.0
		for _, x := range all {
			mean += float64(x) / float64(len(all))
		}
		for _, x := range all {
			squares += (float64(x) - mean) * (float64(x) - mean)
		}
		if s.Count != int64(len(all)) || s.Min != float64(all[0]) || s.Max != float64(all[len(all)-1]) || !near(s.Mean, mean, 1e-9) {
			t.Fatalf("%+v of %v", s, all)
		}
		if len(all) > 1 && !near(*s.SD, math.Sqrt(squares/float64(len(all)-1)), 1e-9) {
			t.Fatalf("sd %g of %v", *s.SD, all)
		}
		for p, got := range map[float64]float64{0.5: s.P50, 0.99: s.P99} {
			rank := p * float64(len(all)-1)
			low, high := float64(all[int(rank)]), float64(all[min(int(rank)+1, len(all)-1)])
			if want := low + (rank-math.Floor(rank))*(high-low); !near(got, want, 0.01) {
				t.Fatalf("quantile %g is %g, want %g", p, got, want)
			}
		}
	}
}

// Arrivals in groups of any size, in any order, have the gaps of all of them.
func TestGapsAcrossMinutes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var at []int64
		groups := map[int64][][]byte{}
		begin := r.Int64N(1e18) - 5e17
		for range 1 + r.IntN(300) {
			a := begin + r.Int64N(10*minute)
			if r.IntN(4) == 0 && len(at) > 0 {
				a = at[r.IntN(len(at))] // two at one instant
			}
			at = append(at, a)
			w := MinuteOf(a)
			if len(groups[w]) == 0 || r.IntN(3) == 0 {
				groups[w] = append(groups[w], nil)
			}
			g := groups[w]
			i := r.IntN(len(g))
			g[i] = appendArrival(g[i], a)
		}
		var merged Figures
		for w, chunks := range groups { // in no order
			f, err := MeasureMinute(w, slices.Values(chunks))
			if err != nil {
				t.Fatal(err)
			}
			merged.Merge(encoded(t, f))
		}
		gaps, whole := merged.closed()
		slices.Sort(at)
		var want Values
		for i := 1; i < len(at); i++ {
			want.Add(at[i] - at[i-1])
		}
		if !reflect.DeepEqual(gaps, want) || whole != (Span{at[0], at[len(at)-1]}) {
			t.Fatalf("%d arrivals: %+v, want %+v", len(at), gaps.Stats(1), want.Stats(1))
		}
	}
	if _, err := MeasureMinute(0, slices.Values([][]byte{{0xff}})); err == nil {
		t.Error("half a number is no arrival")
	}
}

// A request of a made-up log: chains of blocks that grow, as conversations do.
type request struct {
	at     place
	blocks []uint64 // pairs of words
}

// conversations makes a log whose requests begin with a prompt that many have, and go on from each other.
func conversations(r *rand.Rand, requests int) []request {
	var log []request
	talks := make([][]uint64, 1+requests/20)
	block := func() (hi, lo uint64) { return r.Uint64(), r.Uint64() }
	common := make([][]uint64, 5)
	for i := range common {
		for range 1 + r.IntN(30) {
			hi, lo := block()
			common[i] = append(common[i], hi, lo)
		}
	}
	for i := range requests {
		talk := &talks[r.IntN(len(talks))]
		if len(*talk) == 0 || len(*talk) > 400 {
			*talk = slices.Clone(common[r.IntN(len(common))])
		}
		for range r.IntN(8) {
			hi, lo := block()
			*talk = append(*talk, hi, lo)
		}
		log = append(log, request{place{int64(i/3) * 1e9, int64(r.IntN(4)), int64(i)}, slices.Clone(*talk)})
	}
	return log
}

// figuresOf sends a log on in chunks, as [Job.Read] does, and measures and merges them in random order.
func figuresOf(t testing.TB, r *rand.Rand, log []request, oneIn int) *Figures {
	t.Helper()
	var f Figures
	var chunks [curveParts][]*chunk
	for _, i := range r.Perm(len(log)) {
		q := log[i]
		f.References += int64(len(q.blocks) / 2)
		var of [curveParts][]uint64
		for k := 0; k < len(q.blocks); k += 2 {
			if p, ok := partOf(hashOf(q.blocks[k], q.blocks[k+1]), oneIn); ok {
				of[p] = append(of[p], q.blocks[k], q.blocks[k+1])
			}
		}
		for p, blocks := range of {
			if len(blocks) == 0 {
				continue
			}
			if len(chunks[p]) == 0 || r.IntN(50) == 0 {
				chunks[p] = append(chunks[p], new(chunk))
			}
			chunks[p][len(chunks[p])-1].add(q.at, blocks)
		}
	}
	for _, p := range r.Perm(curveParts) {
		part, err := MeasurePart(p, oneIn, bytesOf(chunks[p]))
		if err != nil {
			t.Fatal(err)
		}
		f.Merge(encoded(t, part))
	}
	return &f
}

func bytesOf(chunks []*chunk) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, c := range chunks {
			if !yield(c.bytes) {
				return
			}
		}
	}
}

// exactCurve finds the hit ratios by an LRU list of all blocks, walked for each.
func exactCurve(log []request, capacities []int64) (ratios []float64, references, distinct int) {
	slices.SortFunc(log, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.at.arrival, b.at.arrival), cmp.Compare(a.at.file, b.at.file), cmp.Compare(a.at.row, b.at.row))
	})
	var list [][2]uint64 // the block touched last at the end
	hits := make([]int, len(capacities))
	seen := map[[2]uint64]bool{}
	for _, q := range log {
		for k := 0; k < len(q.blocks); k += 2 {
			b := [2]uint64{q.blocks[k], q.blocks[k+1]}
			references++
			if !seen[b] {
				continue
			}
			depth := int64(len(list) - slices.Index(list, b))
			for i, c := range capacities {
				if depth <= c {
					hits[i]++
				}
			}
		}
		for k := len(q.blocks) - 2; k >= 0; k -= 2 {
			b := [2]uint64{q.blocks[k], q.blocks[k+1]}
			if seen[b] {
				i := slices.Index(list, b)
				list = slices.Delete(list, i, i+1)
			}
			seen[b] = true
			list = append(list, b)
		}
	}
	for _, h := range hits {
		ratios = append(ratios, float64(h)/float64(references))
	}
	return ratios, references, len(seen)
}

// The curve of parts is that of one cache, within the error that it states; that of a cache without
// limit is the same, and all of it is the same in whatever order the parts come.
func TestCurveOfParts(t *testing.T) {
	within, points := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(5, seed))
		log := conversations(r, 1200)
		f := figuresOf(t, r, log, 1)
		curve := Curve(f.Parts, 1, f.References)
		again := figuresOf(t, r, log, 1)
		if !reflect.DeepEqual(again.Summary(1), f.Summary(1)) {
			t.Fatal("the order of the chunks changes the curve")
		}
		var at []int64
		for _, p := range curve {
			if p.CapacityBlocks != nil {
				at = append(at, *p.CapacityBlocks)
			}
		}
		want, references, distinct := exactCurve(log, append(at, math.MaxInt64))
		if s := f.Summary(1); int(s.References) != references || int(s.UniqueBlocks) != distinct {
			t.Fatalf("%d references to %d blocks, want %d to %d", s.References, s.UniqueBlocks, references, distinct)
		}
		if last := curve[len(curve)-1]; last.CapacityBlocks != nil || !near(last.HitRatio, want[len(want)-1], 1e-12) || last.Error > 1e-9 {
			t.Fatalf("without limit: %+v, want %g", last, want[len(want)-1])
		}
		for i := range at {
			points++
			if math.Abs(curve[i].HitRatio-want[i]) <= curve[i].Error {
				within++
			}
			if math.Abs(curve[i].HitRatio-want[i]) > 0.05 {
				t.Errorf("seed %d, %d blocks: %.3f ± %.3f, want %.3f", seed, at[i], curve[i].HitRatio, curve[i].Error, want[i])
			}
		}
	}
	if points < 40 || float64(within) < 0.9*float64(points) {
		t.Errorf("%d of %d points are within their error", within, points)
	}
}

// A sample of one block in four estimates the curve within its error.
func TestCurveOfSample(t *testing.T) {
	within, points := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(6, seed))
		log := conversations(r, 1500)
		f := figuresOf(t, r, log, 4)
		var at []int64
		curve := Curve(f.Parts, 4, f.References)
		for _, p := range curve {
			if p.CapacityBlocks != nil {
				at = append(at, *p.CapacityBlocks)
			}
		}
		want, _, distinct := exactCurve(log, append(at, math.MaxInt64))
		if got := float64(f.Summary(4).UniqueBlocks); !near(got, float64(distinct), 0.15) {
			t.Errorf("%g distinct blocks, want %d", got, distinct)
		}
		for i, p := range curve {
			points++
			if math.Abs(p.HitRatio-want[i]) <= p.Error {
				within++
			}
		}
	}
	if points < 30 || float64(within) < 0.9*float64(points) {
		t.Errorf("%d of %d points are within their error", within, points)
	}
}

func FuzzDecode(f *testing.F) {
	var c chunk
	c.add(place{1, 2, 3}, []uint64{4, 5, 6, 7})
	c.add(place{0, 2, 1}, []uint64{4, 5})
	f.Add(c.bytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		refs, err := decode(slices.Values([][]byte{b}))
		if err != nil {
			return
		}
		n := 0
		refs.each(func(_ place, blocks []uint64) { n += len(blocks) })
		if n != len(refs.ids) {
			t.Errorf("%d references of %d", n, len(refs.ids))
		}
	})
}
