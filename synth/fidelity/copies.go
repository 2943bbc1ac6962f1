package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
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
	leastLinked     = 2*(mostLinkAway+linkReach) + 1
)

// The chance of chains is the mean of as many draws as have so many of them.
const (
	drawnChains = 1 << 15
	leastDraws  = 8
	mostDraws   = 64
	fewTokens   = 7 // outputs up to which are alike
)

// pairs compares which pairs of lengths repeat.
func (c *comparison) pairs() {
	match, chance, of := pairMatch(c.ref, c.cand)
	for i, name := range []string{pairMatchName, uniquePairMatchName} {
		c.addAboveChance(name, match[i], chance[i], of, "pairs of lengths in the sample")
	}
}

// copies compares which places and chains repeat.
func (c *comparison) copies() {
	far := fmt.Sprintf("%d requests, some of them far from each", leastLinked)
	if min(c.ref.kept.counted(), c.cand.kept.counted()) < leastLinked {
		c.add(linkageName, nil, nil, nil, far)
	} else {
		found, chance := linked(c.ref.kept, c.cand.kept)
		c.addAboveChance(linkageName, found, chance, int64(c.cand.kept.counted()), far)
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
	draws := max(leastDraws, min(drawnChains/len(chains), mostDraws))
	exact, near := 0.0, 0.0 // by chance
	for draw := range draws {
		out := dealt(c.cand.kept.out, rand.New(rand.NewPCG(uint64(draw), 0)))
		exact += index.share(c.cand.kept, chains, out, 0) / float64(draws)
		near += index.share(c.cand.kept, chains, out, lengthTolerance) / float64(draws)
	}

	// Three standard deviations of what chance repeats of so many chains: nothing where it repeats none.
	noise := 3 * math.Sqrt(exact*(1-exact)/float64(len(chains)))
	c.add(chainExactName, &exact, cand, trace.Ptr(max(0, *cand-exact-noise)), what)
	c.addAboveChance(chainNearName, index.share(c.cand.kept, chains, c.cand.kept.out, lengthTolerance), near,
		int64(len(chains)), what)
}

// addAboveChance adds a measure of how much more is found, of so many, than by chance. What chance gives less than once
// in 100 times, from 2.33 standard deviations on, is a finding, and all else is 0. The deviation is that of the arcsine
// of a share's root, which is about the same for small shares and large ones.
func (c *comparison) addAboveChance(name string, found, chance float64, of int64, what string) {
	if of == 0 {
		c.add(name, nil, nil, nil, what)
		return
	}
	angle := func(share float64) float64 { return math.Asin(math.Sqrt(min(share, 1))) }
	above := 0.0
	if angle(found)-angle(chance) > 2.33/(2*math.Sqrt(float64(of))) {
		above = found - chance
	}
	c.add(name, &chance, &found, &above, what)
}

// alikeClasses is how many classes of outputs there are.
const alikeClasses = 32

// alike is the class of an output, by half the bits of its length: up to 7 tokens, 8 to 31 and so on by fours. Dealt
// within a class, outputs still go with requests of their kind, such as verdicts of a few tokens with long answers, and
// no longer with one request.
func alike(output int64) int { return bits.Len64(uint64(max(output, fewTokens))) / 2 }

// dealt deals outputs among those alike.
func dealt(outputs []int32, r *rand.Rand) []int32 {
	var rows [alikeClasses][]int
	for i, output := range outputs {
		class := alike(int64(output))
		rows[class] = append(rows[class], i)
	}
	out := slices.Clone(outputs)
	for _, of := range rows {
		r.Shuffle(len(of), func(i, j int) { out[of[i]], out[of[j]] = out[of[j]], out[of[i]] })
	}
	return out
}

// pairMatch returns the share of the candidate's requests whose exact pair of lengths the reference has, the share that
// chance alone would give, and how many requests were asked. Chance deals the candidate's outputs within their classes,
// see [alike], and is computed exactly: a request with input a and an output of a class then has output b with b's
// share of the class; so over the reference's pairs (a, b) the number of such requests and this share multiply and add
// up. The first of two shares counts all pairs, the second only pairs that one request of the reference has.
//
// Where pairs were too many to keep, both sides give up the same ones.
func pairMatch(ref, cand *signatureTally) (match, chance [2]float64, of int64) {
	shift := max(ref.pairs.shift, cand.pairs.shift)
	type kind struct{ input, class int32 }
	kindOf := func(p lengthPair) kind { return kind{p.in, int32(alike(int64(p.out)))} }
	kinds := map[kind]int64{}
	var matched [2]int64
	for p, n := range cand.pairs.n {
		if !inSample(p.hash(), shift) {
			continue
		}
		of += n.counted
		kinds[kindOf(p)] += n.counted
		if known := ref.pairs.n[p].all; known > 0 {
			matched[0] += n.counted
			if known == 1 {
				matched[1] += n.counted
			}
		}
	}
	if of == 0 {
		return match, chance, 0
	}

	outputs := maps.Clone(cand.output)
	outputs[-1] = cand.requests // where there is none, as pairs have it
	for _, n := range cand.output {
		outputs[-1] -= n
	}
	var requests [alikeClasses]int64
	for output, n := range outputs {
		requests[alike(output)] += n
	}
	var together [2][alikeClasses]int64 // the order of the map does not show in whole numbers
	for p, n := range ref.pairs.n {
		sameOutput := outputs[int64(p.out)]
		if sameOutput == 0 || !inSample(p.hash(), shift) {
			continue
		}
		kind, own := kindOf(p), cand.pairs.n[p].counted // which is there if the reference's is
		expected := ((kinds[kind]-own)<<shift + own) * sameOutput
		together[0][kind.class] += expected
		if n.all == 1 {
			together[1][kind.class] += expected
		}
	}
	for i := range together {
		match[i] = float64(matched[i]) / float64(of)
		for class, n := range together[i] {
			chance[i] += float64(n) / float64(max(1, requests[class])) / float64(of)
		}
	}
	return match, chance, of
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

// A chainIndex finds chains of three turns with lengths near to given ones. It is a k-d tree (Bentley, 1975): the
// middle one parts those before it from those behind it, by the length that varies most among them, so that a length
// which hardly varies, as outputs that a limit ends, never sends a search both ways.
type chainIndex []chainNode

// A chainNode is the middle one of a part of the index.
type chainNode struct {
	lengths chainLengths
	by      uint8 // which length parts the others
}

// chainLengths are input and output of each turn.
type chainLengths [6]int32

func lengthsOf(k *keptRows, chain [3]int32, out []int32) (l chainLengths) {
	for i, row := range chain {
		l[2*i], l[2*i+1] = k.in[row], out[row]
	}
	return l
}

func newChainIndex(ref *keptRows) chainIndex {
	var x chainIndex
	for _, chain := range ref.chains(true) {
		x = append(x, chainNode{lengths: lengthsOf(ref, chain, ref.out)})
	}
	x.part()
	return x
}

func (x chainIndex) part() {
	if len(x) < 2 {
		return
	}
	by := x.widest()
	slices.SortFunc(x, func(a, b chainNode) int { return cmp.Compare(a.lengths[by], b.lengths[by]) })
	middle := len(x) / 2
	x[middle].by = by
	x[:middle].part()
	x[middle+1:].part()
}

// widest is the length whose greatest value is the most times its least, as tolerances are shares. Unknown
// lengths are -1.
func (x chainIndex) widest() (by uint8) {
	least, most := x[0].lengths, x[0].lengths
	for i := range x {
		for part, length := range x[i].lengths {
			least[part], most[part] = min(least[part], length), max(most[part], length)
		}
	}

	widest := 0.0
	for part := range least {
		if times := float64(most[part]+2) / float64(least[part]+2); times > widest {
			by, widest = uint8(part), times
		}
	}
	return by
}

// share is the share of chains whose six lengths are, within a tolerance, those of one of
// the reference.
func (x chainIndex) share(cand *keptRows, chains [][3]int32, out []int32, tolerance float64) float64 {
	found := 0
	for _, chain := range chains {
		if l := lengthsOf(cand, chain, out); x.has(&l, tolerance) {
			found++
		}
	}
	return float64(found) / float64(len(chains))
}

func (x chainIndex) has(l *chainLengths, tolerance float64) bool {
	if len(x) == 0 {
		return false
	}
	middle, near := &x[len(x)/2], true
	for i := range l {
		near = near && inTolerance(l[i], middle.lengths[i], tolerance)
	}
	of, part := float64(l[middle.by]), float64(middle.lengths[middle.by]) // one more or less is for rounding
	return near || of <= part*(1+tolerance)+1 && x[:len(x)/2].has(l, tolerance) ||
		of >= part*(1-tolerance)-1 && x[len(x)/2+1:].has(l, tolerance)
}
