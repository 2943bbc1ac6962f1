package fidelity

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"reprise/trace"
)

// The measures of copies: whether the candidate repeats the reference more often than
// chance does is a question of privacy.
const (
	pairMatchName       = "pair_match"
	uniquePairMatchName = "unique_pair_match"
	linkageName         = "linkage"
	chainExactName      = "chain3_exact"
	chainNearName       = "chain3_near"
)

// copyMeasures are the measures of copies. A mirror and a slice fail them by design.
var copyMeasures = []string{pairMatchName, uniquePairMatchName, linkageName, chainExactName, chainNearName}

// Links of a request that an outsider may know: its place in the order, and its lengths.
const (
	lengthTolerance = 0.05
	linkReach       = 20  // places around its own
	mostLinkAway    = 200 // places from its own, where a match is chance
	chanceDraws     = 8   // shuffles that the chance of a chain is the mean of
	leastLinked     = 2*(mostLinkAway+linkReach) + 1
)

// pairs compares which pairs of lengths repeat.
func (c *comparison) pairs() {
	for _, pairs := range []struct {
		name   string
		unique bool
	}{{pairMatchName, false}, {uniquePairMatchName, true}} {
		match, chance, ok := pairMatch(c.ref, c.cand, pairs.unique)
		c.addAboveChance(pairs.name, match, chance, ok, "pairs of lengths in the sample")
	}
}

// copies compares which places and chains repeat.
func (c *comparison) copies() {
	far := fmt.Sprintf("%d requests, of which some are far from each", leastLinked)
	if min(c.ref.kept.counted(), c.cand.kept.counted()) < leastLinked {
		c.add(linkageName, nil, nil, nil, far)
	} else {
		found, chance := linked(c.ref.kept, c.cand.kept)
		c.addAboveChance(linkageName, found, chance, true, far)
	}

	const what = "chains of three turns"
	index := newChainIndex(c.ref.kept)
	chains := c.cand.kept.chains(false)
	var ref, cand *float64
	if len(index) > 0 {
		ref = trace.Ptr(0.0)
	}
	if len(chains) > 0 {
		cand = trace.Ptr(index.share(c.cand.kept, chains, c.cand.kept.out, 0))
	}
	if ref == nil || cand == nil {
		c.add(chainExactName, ref, cand, nil, what)
		c.add(chainNearName, ref, cand, nil, what)
		return
	}
	exact, near := 0.0, 0.0 // by chance
	for draw := range uint64(chanceDraws) {
		out := append([]int32(nil), c.cand.kept.out...)
		rng := rand.New(rand.NewPCG(draw, 0))
		rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		exact += index.share(c.cand.kept, chains, out, 0) / chanceDraws
		near += index.share(c.cand.kept, chains, out, lengthTolerance) / chanceDraws
	}

	// Three standard deviations of what chance repeats of so many chains: nothing where it repeats none.
	noise := 3 * math.Sqrt(exact*(1-exact)/float64(len(chains)))
	c.add(chainExactName, &exact, cand, trace.Ptr(max(0, *cand-exact-noise)), what)
	c.addAboveChance(chainNearName, index.share(c.cand.kept, chains, c.cand.kept.out, lengthTolerance), near, true,
		what)
}

// addAboveChance adds a measure of how much more is found than by chance.
func (c *comparison) addAboveChance(name string, found, chance float64, ok bool, what string) {
	if !ok {
		c.add(name, nil, nil, nil, what)
		return
	}
	c.add(name, &chance, &found, trace.Ptr(max(found-chance, 0)), what)
}

// pairMatch returns the share of the candidate's requests whose exact pair of
// lengths the reference has, and the share that chance alone would give: what
// is expected when the candidate's outputs are shuffled among its requests,
// computed exactly. A request with input a then has output b with the share of
// b among all outputs; so over the reference's pairs (a, b) the shares of a and
// of b in the candidate multiply and add up. With unique, pairs that several
// requests of the reference have do not count.
//
// Where pairs were too many to keep, both sides give up the same ones.
func pairMatch(ref, cand *signatureTally, unique bool) (match, chance float64, ok bool) {
	shift := max(ref.pairs.shift, cand.pairs.shift)
	has := func(p lengthPair) bool {
		n, known := ref.pairs.n[p]
		return known && (!unique || n.all == 1)
	}
	var matched, asked int64
	for p, n := range cand.pairs.n {
		if !inSample(p.hash(), shift) {
			continue
		}
		asked += n.counted
		if has(p) {
			matched += n.counted
		}
	}
	if asked == 0 {
		return 0, 0, false
	}
	unknown := cand.requests // outputs, which pairs have as -1
	for _, n := range cand.output {
		unknown -= n
	}
	var together uint64 // the order of the map does not show in whole numbers
	for p := range ref.pairs.n {
		if !inSample(p.hash(), shift) || !has(p) {
			continue
		}
		outputs := unknown
		if p.out >= 0 {
			outputs = cand.output[int64(p.out)]
		}
		together += uint64(cand.input[int64(p.in)] * outputs)
	}
	n := float64(cand.requests)
	return float64(matched) / float64(asked), float64(together) * float64(uint64(1)<<shift) / n / n, true
}

// linkAway is how many places from its own a request of n is matched by chance alone: a 25th of them,
// from the next window to 200, since lengths drift while sessions grow, and then few match far away.
func linkAway(n int) int { return max(2*linkReach+1, min(n/25, mostLinkAway)) }

// linked is what an outsider finds who knows when a request came, to 20 places in the
// order, and its lengths to 5 %: the share of the candidate's rows with such a row of the
// reference, and by chance, which is the same away from there, before and after, or inside an end of the trace.
func linked(ref, cand *keptRows) (found, chance float64) {
	n, m := cand.counted(), ref.counted()
	hit := func(row, place int) float64 {
		in, out := cand.in[cand.from+row], cand.out[cand.from+row]
		for i := max(0, place-linkReach); i < min(m, place+linkReach+1); i++ {
			if inTolerance(in, ref.in[ref.from+i], lengthTolerance) &&
				inTolerance(out, ref.out[ref.from+i], lengthTolerance) {
				return 1
			}
		}
		return 0
	}
	for row := range n {
		place := row * m / n
		found += hit(row, place)
		before, after := place-linkAway(m), place+linkAway(m)
		switch {
		case before < linkReach:
			chance += 2 * hit(row, after)
		case after+linkReach >= m:
			chance += 2 * hit(row, before)
		default:
			chance += hit(row, before) + hit(row, after)
		}
	}
	return found / float64(n), chance / float64(2*n)
}

// A chainIndex finds chains of three turns with lengths near to given ones: input and output of each turn. It is a k-d
// tree (Bentley, 1975): the middle one parts those before it from those behind it, by one length after the other. Among
// thousands of questions on one document, which are about as long, outputs tell more.
type chainIndex []chainLengths

type chainLengths [6]int32

var chainParts = [...]int{1, 3, 5, 0, 2, 4} // outputs first

func lengthsOf(k *keptRows, chain [3]int32, out []int32) (l chainLengths) {
	for i, row := range chain {
		l[2*i], l[2*i+1] = k.in[row], out[row]
	}
	return l
}

func newChainIndex(ref *keptRows) chainIndex {
	var x chainIndex
	for _, chain := range ref.chains(true) {
		x = append(x, lengthsOf(ref, chain, ref.out))
	}
	x.part(0)
	return x
}

func (x chainIndex) part(depth int) {
	if len(x) < 2 {
		return
	}
	by := chainParts[depth%len(chainParts)]
	slices.SortFunc(x, func(a, b chainLengths) int { return cmp.Compare(a[by], b[by]) })
	x[:len(x)/2].part(depth + 1)
	x[len(x)/2+1:].part(depth + 1)
}

// share is the share of chains whose six lengths are, within a tolerance, those of one of
// the reference.
func (x chainIndex) share(cand *keptRows, chains [][3]int32, out []int32, tolerance float64) float64 {
	found := 0
	for _, chain := range chains {
		if l := lengthsOf(cand, chain, out); x.has(0, &l, tolerance) {
			found++
		}
	}
	return float64(found) / float64(len(chains))
}

func (x chainIndex) has(depth int, l *chainLengths, tolerance float64) bool {
	if len(x) == 0 {
		return false
	}
	middle, near := &x[len(x)/2], true
	for i := range l {
		near = near && inTolerance(l[i], middle[i], tolerance)
	}
	by := chainParts[depth%len(chainParts)]
	of, part := float64(l[by]), float64(middle[by]) // one more or less is for rounding
	return near || of <= part*(1+tolerance)+1 && x[:len(x)/2].has(depth+1, l, tolerance) ||
		of >= part*(1-tolerance)-1 && x[len(x)/2+1:].has(depth+1, l, tolerance)
}
