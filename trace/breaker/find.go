package breaker

import (
	"reprise/trace"
	"reprise/trace/block"
)

// SearchTokens is how many leading tokens of a prompt a [Finder] looks
// at.
const SearchTokens = 16 << 10

// messageMark and a role stand in a prompt in front of each message. No
// vocabulary has tokens this great.
const messageMark = 1 << 31

// BeginMessage appends to a prompt that a [Finder] is given the mark of a
// message that begins there. A prompt begins with one.
func BeginMessage(prompt []uint32, role trace.Role) []uint32 {
	if len(prompt) >= SearchTokens {
		return prompt
	}
	return append(prompt, messageMark|uint32(role))
}

// AppendMessage appends tokens of the message at hand, as far as the finder looks
// at them. Ids that a vocabulary has not got, of 2^31 and above, stand for special
// tokens that it lacks: they lose their highest bit, by which marks are told.
func AppendMessage(prompt, tokens []uint32) []uint32 {
	from := len(prompt)
	prompt = append(prompt, tokens[:max(0, min(len(tokens), SearchTokens-from))]...)
	for i := from; i < len(prompt); i++ {
		prompt[i] &^= messageMark
	}
	return prompt
}

// A Prompt is what a [Finder] is told of a request.
type Prompt struct {
	Domain         block.ID // within which prompts can share a cache
	Model, Adapter string
	Tokens         []uint32 // made by [BeginMessage] and [AppendMessage]; not kept
	Length         int32    // of the whole prompt in tokens
	ArrivalNS      int64
	Source         int64 // its position in the source
}

// A Finder finds where near-identical prompts part. It takes the prompts
// one by one, in the order of the source, which is taken for that in which they
// arrived:
//
//  1. The prompt goes down a radix tree of the prompts of late, which says to the
//     token how much of it is known. One that goes on where an earlier prompt ends
//     is a next turn: it breaks nothing. Nothing is searched in it, and while
//     nothing was found at all only its first tokens are kept, so that traffic
//     without breakers costs little.
//  2. What stands behind is fingerprinted by winnowing. A fingerprint that was
//     seen before leads to an earlier prompt that has the same text behind
//     another beginning. Up to four are compared, and the one is taken whose
//     agreement reaches furthest.
//  3. Both are aligned from where they part, token by token, into stretches that
//     agree and differences between them, which are judged and counted by place.
//     What is lost is what agrees and is not known by any other prompt.
//
// Two chats of one template are not counted: they agree in nothing, or in little,
// behind the question in which they differ.
//
// Memory is bounded, to some 12 MB: 2 Mi tokens for the tree with what its nodes
// cost, the least recently used leaves of which are forgotten, 131,072
// fingerprints, one in some 24 tokens, and 2,048 places. So what is lost against
// a prompt of long ago may go unseen. All hashes are for looking up only: they
// stay here, and what they find is compared.
type Finder struct {
	tree   *promptTree
	places places
	prints []print
	align  aligner
	tally  breakerTally
	totals Set

	candidates  []candidate
	earlier     []uint32
	best        []uint32
	first, last int64
}

// NewFinder returns a finder that has seen nothing.
func NewFinder() *Finder {
	return &Finder{tree: newPromptTree(treeTokens), places: newPlaces(), tally: newBreakerTally(maxBreakerPlaces)}
}

// A candidate is an earlier prompt that has a stretch of the one at hand.
type candidate struct {
	node int32
	from int32 // where they part
	x, y int32 // where they agree again
}

const (
	maxCandidates = 4
	// stubTokens are kept of a next turn at the least: enough to tell it from
	// another prompt that only begins with the same one.
	stubTokens = 32
)

// Add takes the next prompt.
func (f *Finder) Add(p *Prompt) {
	t := &f.totals
	if t.Requests == 0 {
		f.first, f.last = p.ArrivalNS, p.ArrivalNS
	}
	f.first, f.last = min(f.first, p.ArrivalNS), max(f.last, p.ArrivalNS)
	t.Requests++
	t.PromptTokens += int64(p.Length)
	t.Searched += min(int64(p.Length), SearchTokens)

	known := f.tree.walk(p.Domain, p.Tokens)
	if known == len(p.Tokens) || f.tree.extends(known) {
		tokens := p.Tokens
		if len(f.tally.places) == 0 {
			tokens = tokens[:min(known+stubTokens, len(tokens))]
		}
		f.tree.grow(tokens, known, p.Source)
		return
	}
	domain := f.tree.nodes[f.tree.path[0]].domain
	f.prints = winnow(f.prints[:0], p.Tokens[known:], shingle, window, domain)
	f.lookUp(int32(known), domain)
	f.compare(p, known)
	leaf := f.tree.grow(p.Tokens, known, p.Source)
	gen := f.tree.nodes[leaf].gen
	for _, one := range f.prints {
		f.places.put(place{one.hash, leaf, gen, one.pos + int32(known)})
	}
}

// lookUp finds the candidates. When there are too many the last counts: the
// later in the prompt they agree, the more they may have in common.
func (f *Finder) lookUp(known int32, domain uint32) {
	f.candidates = f.candidates[:0]
	seen := int32(0)
	for _, one := range f.prints {
		at := f.places.find(one.hash)
		if at.hash != one.hash || at.node == seen || !f.tree.alive(at.node, at.gen) || f.tree.nodes[at.node].domain != domain {
			continue
		}
		from := f.tree.parting(at.node, at.pos, known)
		if from > at.pos {
			continue // it is the prompt's own beginning
		}
		seen = at.node
		c := candidate{at.node, from, one.pos + known, at.pos}
		if len(f.candidates) == maxCandidates {
			f.candidates[maxCandidates-1] = c
		} else {
			f.candidates = append(f.candidates, c)
		}
	}
}

// compare aligns the prompt with the best candidate and counts the differences.
func (f *Finder) compare(p *Prompt, known int) {
	var best run
	var with candidate
	furthest := 0
	for _, c := range f.candidates {
		from := int(c.from)
		f.earlier = f.tree.behind(f.earlier[:0], c.node, c.from)
		later, x, y := p.Tokens[from:], int(c.x)-from, int(c.y)-from
		if y >= len(f.earlier) || later[x] != f.earlier[y] {
			continue // another stretch with the same hash
		}
		r := extend(later, f.earlier, x, y)
		end := from + r.x + r.n
		if end > furthest || end == furthest && c.from < with.from { // a list that is shuffled begins where the first part
			best, with, furthest = r, c, end
			f.best, f.earlier = f.earlier, f.best
		}
	}
	if best.n < minFine {
		return
	}
	from, other := int(with.from), f.tree.nodes[with.node].source
	for _, d := range f.align.align(p.Tokens[from:], f.best, best, known-from) {
		f.tally.add(p, from+d.at, d.width, d.lost, other)
	}
}

// Report says what was found so far. Models and adapters have the source's
// names: see [Set.Rename].
func (f *Finder) Report() *Set {
	b := f.totals
	b.Schema = Schema
	b.DurationS = float64(f.last-f.first) / 1e9
	b.List = []Breaker{}
	for _, one := range f.tally.breakers() {
		if one.Requests < MinRequests {
			continue
		}
		one.Requests = min(one.Requests, b.Requests) // of places taken together, one may have had several
		b.Found++
		b.LostTokens += one.Lost
		b.List = append(b.List, one)
	}
	b.List = b.List[:min(len(b.List), MaxListed)]
	return &b
}
