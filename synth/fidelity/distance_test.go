package fidelity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"reprise/trace/profile"
)

// values draws a small sample with many ties, and as sorted counts.
func values(rng *rand.Rand) ([]float64, valueList) {
	list := make([]float64, 1+rng.IntN(40))
	c := valueCounts{}
	for i := range list {
		v := rng.Int64N(30) * rng.Int64N(3)
		list[i] = float64(v)
		c[v]++
	}
	slices.Sort(list)
	return list, c.sorted()
}

func TestDistancesOfLists(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		xs, a := values(rng)
		ys, b := values(rng)
		near(t, "KS", ksDistance(a, b), stat.KolmogorovSmirnov(xs, nil, ys, nil))
		if ksDistance(a, a) != 0 || wassersteinDistance(a, a) != 0 {
			t.Fatal("a list is apart from itself")
		}
		// The area between the inverses is that between the functions; with as
		// many points of each, values at equal ranks are compared.
		var area float64
		n := len(xs) * len(ys)
		for i := range n {
			area += math.Abs(xs[i/len(ys)]-ys[i/len(xs)]) / float64(n)
		}
		near(t, "Wasserstein", wassersteinDistance(a, b), area)
		near(t, "mean", a.mean(), stat.Mean(xs, nil))
		near(t, "median", a.median(), xs[(len(xs)-1)/2])
	}
}

// In buckets, a distance falls short by the share of one bucket at most.
func TestKSDistanceOfBuckets(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	short := 0
	for range 100 {
		var exact, coarse [2]valueList
		for side := range exact {
			c, h := valueCounts{}, profile.Histogram{}
			for range 300 {
				v := int64(1e6 * (1 + float64(side)/50 + rng.Float64()/20)) // some three buckets wide
				c[v]++
				h.Add(v, 1)
			}
			exact[side], coarse[side] = c.sorted(), bucketList(&h)
		}
		var most int64
		for _, b := range slices.Concat(coarse[0], coarse[1]) {
			most = max(most, b.n)
		}
		want, got := ksDistance(exact[0], exact[1]), ksDistance(coarse[0], coarse[1])
		if got > want || want-got > float64(most)/300 {
			t.Fatalf("%v in buckets, %v exactly, with %d of 300 in one", got, want, most)
		}
		if got < want {
			short++
		}
	}
	if short == 0 {
		t.Error("buckets never matter")
	}
}

func somePairs(rng *rand.Rand) []lengthPair {
	list := make([]lengthPair, 2+rng.IntN(80))
	for i := range list {
		list[i].in = rng.Int32N(12)
		list[i].out = rng.Int32N(8) + list[i].in*rng.Int32N(2)*rng.Int32N(9)
	}
	return list
}

func TestRankCorrelation(t *testing.T) {
	rank := func(values []float64, v float64) float64 {
		var below, equal float64
		for _, o := range values {
			if o < v {
				below++
			} else if o == v {
				equal++
			}
		}
		return below + (equal+1)/2
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		pairs := somePairs(rng)
		var xs, ys, rx, ry []float64
		for _, p := range pairs {
			xs, ys = append(xs, float64(p.in)), append(ys, float64(p.out))
		}
		for i := range pairs {
			rx, ry = append(rx, rank(xs, xs[i])), append(ry, rank(ys, ys[i]))
		}
		want := stat.Correlation(rx, ry, nil)
		got := rankCorrelation(len(pairs), func(i int) (x, y int32) { return pairs[i].in, pairs[i].out })
		if math.IsNaN(want) || math.IsInf(want, 0) {
			if got != nil {
				t.Errorf("a constant side has the correlation %v", *got)
			}
			continue
		}
		near(t, "rho", *got, want)
	}
}

// Chance is what dealing the candidate's outputs among those alike gives in the mean: every
// input meets every output of them equally often.
func TestPairMatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	tally := func(pairs []lengthPair) *signatureTally {
		s := &signatureTally{requests: int64(len(pairs)), input: valueCounts{}, output: valueCounts{},
			pairs: pairTally{limit: 1000, n: map[lengthPair]pairCount{}}}
		for row, p := range pairs {
			s.pairs.add(p, int64(row), true)
			s.input[int64(p.in)]++
			s.output[int64(p.out)]++
		}
		return s
	}
	several := 0
	for range 200 {
		ref, cand := somePairs(rng), somePairs(rng)
		classes := newOutputClasses(tally(ref))
		classOf := func(p lengthPair) int { return classes.class(int64(p.out)) }
		var match, chance float64
		var requests [2 * alikeClasses]float64
		for _, p := range cand {
			requests[classOf(p)]++
		}
		several += min(1, int(requests[classes.class(fewTokens+1)]))
		for _, p := range cand {
			if slices.Contains(ref, p) {
				match += 1 / float64(len(cand))
			}
			for _, q := range cand {
				if classOf(p) == classOf(q) && slices.Contains(ref, lengthPair{p.in, q.out}) {
					chance += 1 / float64(len(cand)) / requests[classOf(p)]
				}
			}
		}
		bothAll, bothUnique := pairMatch(tally(ref), tally(cand))
		all, unique := together(bothAll), together(bothUnique)
		if all.of != int64(len(cand)) || unique.of != all.of {
			t.Fatal(all.of, "pairs, unique ones of", unique.of)
		}
		near(t, "match", all.found, match)
		near(t, "chance", all.chance, chance)
		match, chance = 0, 0
		once := func(p lengthPair) bool {
			n := 0
			for _, r := range ref {
				if r == p {
					n++
				}
			}
			return n == 1
		}
		for _, p := range cand {
			if once(p) {
				match += 1 / float64(len(cand))
			}
			for _, q := range cand {
				if classOf(p) == classOf(q) && once(lengthPair{p.in, q.out}) {
					chance += 1 / float64(len(cand)) / requests[classOf(p)]
				}
			}
		}
		near(t, "unique match", unique.found, match)
		near(t, "unique chance", unique.chance, chance)
	}
	if several < 20 {
		t.Errorf("%d of the lists have outputs that are not alike", several)
	}
}

// together are rows of all kinds.
func together(kinds []repeats) (all repeats) {
	for _, r := range kinds {
		all.of, all.partsOf = all.of+r.of, all.partsOf+r.partsOf
	}
	for _, r := range kinds {
		share, partShare := float64(r.of)/float64(all.of), float64(r.partsOf)/float64(max(1, all.partsOf))
		all.found, all.chance = all.found+share*r.found, all.chance+share*r.chance
		all.inPart, all.parts = all.inPart+share*r.inPart, all.parts+partShare*r.parts
	}
	return all
}

// Samples are even: with a fraction of the pairs and of the rows, the match,
// the chance and the correlation are near those of all.
func TestSamplesAreNear(t *testing.T) {
	tally := func(seed uint64, limits signatureLimits) *signatureTally {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := NewSignature(chatTrace{size: 8}.meta(), Options{})
		s.limits = limits
		out := &signatureTally{input: valueCounts{}, output: valueCounts{},
			pairs: pairTally{limit: s.limits.pairs, n: map[lengthPair]pairCount{}}, sample: tupleSample{limit: s.limits.rows}}
		for row := range int64(40_000) {
			p := lengthPair{rng.Int32N(200), rng.Int32N(100)}
			p.out += p.in / 2
			out.requests++
			out.input[int64(p.in)]++
			out.output[int64(p.out)]++
			out.pairs.add(p, row, true)
			out.sample.add(sampledTuple{row: row, in: p.in, out: p.out})
		}
		return out
	}
	all, some := signatureLimits{rows: sampleLimit, pairs: sampleLimit}, signatureLimits{rows: 5000, pairs: 4000}
	ref, cand := tally(1, all), tally(2, all)
	few, half := tally(1, some), tally(2, some)
	if len(few.pairs.n) > 4000 || len(few.pairs.n) < 2000 || len(few.sample.rows) > 5000 || len(few.sample.rows) < 2500 {
		t.Fatalf("%d pairs and %d rows are kept", len(few.pairs.n), len(few.sample.rows))
	}
	kinds, _ := pairMatch(ref, cand)
	whole := together(kinds)
	for name, pair := range map[string][2]*signatureTally{"both": {few, half}, "reference": {few, cand}, "candidate": {ref, half}} {
		kinds, _ := pairMatch(pair[0], pair[1])
		got := together(kinds)
		for what, values := range map[string][2]float64{"match": {got.found, whole.found},
			"chance": {got.chance, whole.chance}, "match in a part": {got.inPart, whole.inPart},
			"what parts share": {got.parts, whole.parts}} {
			if got.of == 0 || math.Abs(values[0]-values[1]) > 0.03 || got.found == whole.found {
				t.Errorf("%s sampled: %s %v, of all %v", name, what, values[0], values[1])
			}
		}
	}
	rho := func(s *signatureTally) float64 {
		return *rankCorrelation(len(s.sample.rows), func(i int) (x, y int32) { return s.sample.rows[i].in, s.sample.rows[i].out })
	}
	if a, b := rho(ref), rho(few); math.Abs(a-b) > 0.03 || a == b {
		t.Errorf("the correlation of a sample is %v, of all %v", b, a)
	}
}
