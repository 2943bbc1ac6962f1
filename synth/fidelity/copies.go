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
	const what = "pairs of lengths in the sample"
	all, unique := pairMatch(c.ref, c.cand)
	c.addRepeats(pairMatchName, all, repeats.above, what)
	c.addRepeats(uniquePairMatchName, unique, repeats.above, what)
}

// copies compares which places and chains repeat.
func (c *comparison) copies() {
	far := fmt.Sprintf("%d requests, some of them far from each", leastLinked)
	if min(c.ref.kept.counted(), c.cand.kept.counted()) < leastLinked {
		c.add(linkageName, nil, nil, nil, far)
	} else {
		c.addRepeats(linkageName, []repeats{linked(c.ref.kept, c.cand.kept)}, repeats.above, far)
	}

	const what = "chains of three turns"
	search := newChainSearch(c.ref, c.cand)
	if len(search.ref) == 0 || len(search.cand) == 0 {
		var ref, cand *float64
		if len(search.ref) > 0 {
			ref = trace.Ptr(0.0)
		}
		if len(search.cand) > 0 {
			cand = trace.Ptr(0.0)
		}
		c.add(chainExactName, ref, cand, nil, what)
		c.add(chainNearName, ref, cand, nil, what)
		return
	}
	c.addRepeats(chainExactName, search.repeats(0), repeats.aboveAny, what)
	c.addRepeats(chainNearName, search.repeats(lengthTolerance), repeats.above, what)
}

// addRepeats adds a measure of how much more is found than by chance, of all kinds of rows together.
func (c *comparison) addRepeats(name string, kinds []repeats, above func(repeats) float64, what string) {
	var found, chance, more, of float64
	for _, r := range kinds {
		of += float64(r.of)
	}
	if of == 0 {
		c.add(name, nil, nil, nil, what)
		return
	}
	for _, r := range kinds {
		share, beyond, byChance := float64(r.of)/of, above(r), r.chance
		if r.chanceIsMore() {
			byChance = max(byChance, r.found-beyond)
		}
		found, chance, more = found+share*r.found, chance+share*byChance, more+share*beyond
	}
	c.add(name, &chance, &found, &more, what)
}

// findingDeviations is from how many standard deviations on more than by chance is a finding: chance gives it less
// than once in 100 times.
const findingDeviations = 2.33

// repeats are shares of a candidate's rows that a reference has, and what chance makes of them.
//
// Chance deals the candidate's lengths anew. That is too little where one length goes with another, as the only output
// length of a batch goes with its inputs: all traffic of this kind repeats itself. Two parts of the reference show it.
type repeats struct {
	found, chance float64
	of            int64 // rows of the candidate

	inPart  float64 // share that one of two parts of the reference has, the mean of both
	parts   float64 // share of one part that the other has, the mean of both
	partsOf int64   // rows of both; 0 where parts are not compared
}

// above is how much more is found than by chance, or 0 where that is no finding.
func (r repeats) above() float64 {
	switch {
	case !isMore(r.found, r.of, r.chance):
		return 0
	case !r.chanceIsMore():
		return r.found - r.chance
	}
	return r.aboveParts()
}

// aboveAny is the same, where one row is a finding if dealing repeats nothing, and else what three standard deviations
// of it do not give.
func (r repeats) aboveAny() float64 {
	switch noise := 3 * math.Sqrt(r.chance*(1-r.chance)/float64(max(1, r.of))); {
	case r.chanceIsMore():
		return r.aboveParts()
	case r.found-r.chance > noise:
		return r.found - r.chance
	}
	return 0
}

// aboveParts is how much more is found than by the chance that parts show. A copy of a row is in one part for sure, and
// in the other no more often than rows of this one are.
func (r repeats) aboveParts() float64 {
	of := 1 / (1/float64(max(1, r.of)) + 1/float64(max(1, r.partsOf))) // rows of one share as uncertain as both
	if !isMore(r.inPart, int64(of), r.parts) {
		return 0
	}
	return 2 * (r.inPart - r.parts)
}

// chanceIsMore tells whether the parts of the reference repeat each other more often than dealing does. What dealing
// gives of a part is taken to be as much less as what is found there.
func (r repeats) chanceIsMore() bool {
	return r.found > 0 && isMore(r.parts, r.partsOf, r.chance*r.inPart/r.found)
}

// isMore tells whether a share of so many rows is a finding beside what chance gives. A deviation is that of the
// arcsine of a share's root, which is about the same for small shares and large ones.
func isMore(found float64, of int64, chance float64) bool {
	angle := func(share float64) float64 { return math.Asin(math.Sqrt(min(share, 1))) }
	return of > 0 && angle(found)-angle(chance) > findingDeviations/(2*math.Sqrt(float64(of)))
}

// Outputs are alike by half the bits of their lengths: up to 7 tokens, 8 to 31 and so on by fours. Dealt within a
// class, they still go with requests of their kind, such as verdicts of a few tokens, and no longer with one request.
// Common ones, that one in commonOneIn requests of the reference has, are alike among themselves: a batch has such, and
// its rows are judged apart from the others.
const (
	alikeClasses = 32
	commonOneIn  = 50
)

// outputClasses tells which outputs are alike, by those that are common.
type outputClasses map[int64]bool

// outputsOf counts outputs; -1 is where there is none, as pairs have it.
func outputsOf(t *signatureTally) valueCounts {
	outputs := maps.Clone(t.output)
	outputs[-1] = t.requests
	for _, n := range t.output {
		outputs[-1] -= n
	}
	return outputs
}

func newOutputClasses(ref *signatureTally) outputClasses {
	common := outputClasses{}
	for output, n := range outputsOf(ref) {
		if n*commonOneIn >= ref.requests {
			common[output] = true
		}
	}
	return common
}

// class is that of an output; common ones have the upper half of the numbers.
func (c outputClasses) class(output int64) int {
	class := bits.Len64(uint64(max(output, fewTokens))) / 2
	if c[output] {
		class += alikeClasses
	}
	return class
}

// dealt deals outputs among those alike.
func (c outputClasses) dealt(outputs []int32, r *rand.Rand) []int32 {
	var rows [2 * alikeClasses][]int
	for i, output := range outputs {
		class := c.class(int64(output))
		rows[class] = append(rows[class], i)
	}
	out := slices.Clone(outputs)
	for _, of := range rows {
		r.Shuffle(len(of), func(i, j int) { out[of[i]], out[of[j]] = out[of[j]], out[of[i]] })
	}
	return out
}

// pairMatch finds the candidate's requests whose exact pair of lengths the reference has: all of them, and only those
// whose pair one request of the reference has, each of common outputs and of others. Chance deals the candidate's
// outputs within their classes, see [outputClasses], and is computed exactly: a request with input a and an output of a
// class then has output b with b's share of the class; so over the reference's pairs (a, b) the number of such requests
// and this share multiply and add up.
//
// Where pairs were too many to keep, both sides give up the same ones.
func pairMatch(ref, cand *signatureTally) (all, unique []repeats) {
	shift := max(ref.pairs.shift, cand.pairs.shift)
	classes := newOutputClasses(ref)
	type kind struct {
		input int32
		class int
	}
	kindOf := func(p lengthPair) kind { return kind{p.in, classes.class(int64(p.out))} }
	kinds := map[kind]int64{}
	var anyTimes, once [2]pairTotals // of outputs that are not common, and common ones
	for p, n := range cand.pairs.n {
		if !inSample(p.hash(), shift) {
			continue
		}
		kind, known := kindOf(p), ref.pairs.n[p]
		kinds[kind] += int64(n.counted)
		anyTimes[kind.class/alikeClasses].match(int64(n.counted), known, func(n int64) bool { return n > 0 })
		once[kind.class/alikeClasses].match(int64(n.counted), known, func(n int64) bool { return n == 1 })
	}

	outputs := outputsOf(cand)
	var requests [2 * alikeClasses]int64
	for output, n := range outputs {
		requests[classes.class(output)] += n
	}
	for p, n := range ref.pairs.n {
		if !inSample(p.hash(), shift) {
			continue
		}
		kind, own := kindOf(p), int64(cand.pairs.n[p].counted) // which is there if the reference's is
		dealt := ((kinds[kind]-own)<<shift + own) * outputs[int64(p.out)]
		anyTimes[kind.class/alikeClasses].part(n, kind.class, dealt, func(n int64) bool { return n > 0 })
		once[kind.class/alikeClasses].part(n, kind.class, dealt, func(n int64) bool { return n == 1 })
	}
	for i := range anyTimes {
		all, unique = append(all, anyTimes[i].repeats(&requests)), append(unique, once[i].repeats(&requests))
	}
	return all, unique
}

// pairTotals are numbers of requests, whole ones, in which the order of a map does not show.
type pairTotals struct {
	of, found, inParts int64
	dealt              [2 * alikeClasses]int64 // times the requests of a class
	rows, inOther      [2]int64                // of either part of the reference, and those whose pair the other has
}

// match takes requests of the candidate, whose pair the reference has as often as is known.
func (t *pairTotals) match(requests int64, known pairCount, counts func(int64) bool) {
	t.of += requests
	if counts(int64(known.all)) {
		t.found += requests
	}
	for _, inPart := range known.parts() {
		if counts(inPart) {
			t.inParts += requests
		}
	}
}

// part takes requests of the reference with one pair, and how often the candidate has it, dealt, times its class.
func (t *pairTotals) part(n pairCount, class int, dealt int64, counts func(int64) bool) {
	if counts(int64(n.all)) {
		t.dealt[class] += dealt
	}
	parts := n.parts()
	for i, requests := range parts {
		t.rows[i] += requests
		if counts(parts[1-i]) {
			t.inOther[i] += requests
		}
	}
}

// repeats are these totals as shares; requests are by class.
func (t *pairTotals) repeats(requests *[2 * alikeClasses]int64) repeats {
	of := float64(max(1, t.of))
	r := repeats{found: float64(t.found) / of, of: t.of, inPart: float64(t.inParts) / 2 / of}
	for class, n := range t.dealt {
		r.chance += float64(n) / float64(max(1, requests[class])) / of
	}
	if min(t.rows[0], t.rows[1]) > 0 {
		r.partsOf = t.rows[0] + t.rows[1]
		for i, rows := range t.rows {
			r.parts += float64(t.inOther[i]) / float64(rows) / 2
		}
	}
	return r
}

// linkAway is how many places from its own a request of n is matched by chance alone: a 25th of them,
// from the next window to 200, since lengths drift while sessions grow, and then few match far away.
func linkAway(n int) int { return max(2*linkReach+1, min(n/25, mostLinkAway)) }

// linked is what an outsider finds who knows when a request came, to 20 places in the
// order, and its lengths to 5 %: the share of the candidate's rows with such a row of the
// reference, and by chance, which is the same away from there, before and after, or inside an end of the trace.
// Parts of the reference take turns, so that where many alike came at a time, as in a burst of one job, each part finds
// the other there.
func linked(ref, cand *keptRows) repeats {
	n, m := cand.counted(), ref.counted()
	first := ref.firstPart(func(row int64) bool { return scatter(uint64(row))&1 == 0 })[ref.from:]
	near := func(in, out int32, place int) (inFirst, inSecond bool) {
		for i := max(0, place-linkReach); i < min(m, place+linkReach+1); i++ {
			if inTolerance(in, ref.in[ref.from+i], lengthTolerance) &&
				inTolerance(out, ref.out[ref.from+i], lengthTolerance) {
				inFirst, inSecond = inFirst || first[i], inSecond || !first[i]
			}
		}
		return inFirst, inSecond
	}
	var found, inParts, away trueCount
	for row := range n {
		in, out, place := cand.in[cand.from+row], cand.out[cand.from+row], row*m/n
		inFirst, inSecond := near(in, out, place)
		found.add(inFirst || inSecond)
		inParts.add(inFirst, inSecond)

		before, after := place-linkAway(m), place+linkAway(m)
		if before < linkReach {
			before = after
		} else if after+linkReach >= m {
			after = before
		}
		for _, elsewhere := range [...]int{before, after} {
			inFirst, inSecond := near(in, out, elsewhere)
			away.add(inFirst || inSecond)
		}
	}

	var firstInSecond, secondInFirst trueCount
	for row := range m {
		inFirst, inSecond := near(ref.in[ref.from+row], ref.out[ref.from+row], row)
		if first[row] {
			firstInSecond.add(inSecond)
		} else {
			secondInFirst.add(inFirst)
		}
	}
	r := repeats{found: found.share(), chance: away.share(), of: int64(n), inPart: inParts.share()}
	if firstInSecond.of > 0 && secondInFirst.of > 0 {
		r.partsOf, r.parts = int64(m), (firstInSecond.share()+secondInFirst.share())/2
	}
	return r
}

// A trueCount counts what is true of how many.
type trueCount struct{ n, of int }

func (c *trueCount) add(list ...bool) {
	for _, is := range list {
		if c.of++; is {
			c.n++
		}
	}
}

func (c *trueCount) share() float64 { return float64(c.n) / float64(max(1, c.of)) }

// A chainSearch finds chains of three turns of a candidate in a reference.
type chainSearch struct {
	refRows, candRows *keptRows
	classes           outputClasses
	ref, cand         [][3]int32
	index             chainIndex
	parts             [2][][3]int32 // of the reference's
	partIndex         [2]chainIndex
}

func newChainSearch(ref, cand *signatureTally) *chainSearch {
	s := &chainSearch{refRows: ref.kept, candRows: cand.kept, classes: newOutputClasses(ref),
		ref: ref.kept.chains(true), cand: cand.kept.chains(false)}
	s.index = newChainIndex(ref.kept, s.ref)
	first := ref.kept.firstPart(inFirstPart)
	for _, chain := range s.ref {
		part := 1
		if first[chain[2]] {
			part = 0
		}
		s.parts[part] = append(s.parts[part], chain)
	}
	for i, chains := range s.parts {
		s.partIndex[i] = newChainIndex(ref.kept, chains)
	}
	return s
}

// common are chains with nothing but common outputs, or the others.
func (s *chainSearch) common(rows *keptRows, chains [][3]int32, common bool) (of [][3]int32) {
	for _, chain := range chains {
		all := true
		for _, row := range chain {
			all = all && s.classes[int64(rows.out[row])]
		}
		if all == common {
			of = append(of, chain)
		}
	}
	return of
}

// repeats finds chains whose six lengths are, within a tolerance, one's of the reference. Chance deals outputs.
func (s *chainSearch) repeats(tolerance float64) (kinds []repeats) {
	draws := max(leastDraws, min(drawnChains/len(s.cand), mostDraws))
	outputs := make([][]int32, draws)
	for draw := range outputs {
		outputs[draw] = s.classes.dealt(s.candRows.out, rand.New(rand.NewPCG(uint64(draw), 0)))
	}
	for _, common := range []bool{false, true} {
		chains := s.common(s.candRows, s.cand, common)
		r := repeats{found: s.index.share(s.candRows, chains, s.candRows.out, tolerance), of: int64(len(chains))}
		for _, out := range outputs {
			r.chance += s.index.share(s.candRows, chains, out, tolerance) / float64(draws)
		}
		if r.found > r.chance {
			for i, index := range s.partIndex {
				others := s.common(s.refRows, s.parts[1-i], common)
				r.partsOf += int64(len(others))
				r.parts += index.share(s.refRows, others, s.refRows.out, tolerance) / 2
				r.inPart += index.share(s.candRows, chains, s.candRows.out, tolerance) / 2
			}
		}
		kinds = append(kinds, r)
	}
	return kinds
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

// newChainIndex indexes chains of the reference.
func newChainIndex(ref *keptRows, chains [][3]int32) chainIndex {
	var x chainIndex
	for _, chain := range chains {
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
	return float64(found) / float64(max(1, len(chains)))
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
