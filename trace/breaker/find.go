package breaker

import (
	"reprise/trace"
	"reprise/trace/block"
)

// SearchTokens is how many leading tokens of a prompt a [Finder] reads.
const SearchTokens = 16 << 10

// messageMark, with a role, stands before each message of a prompt. No vocabulary has
// tokens as high.
const messageMark = 1 << 31

// BeginMessage appends the mark of a new message to a prompt for a [Finder]. Every
// prompt begins with one.
func BeginMessage(prompt []uint32, role trace.Role) []uint32 {
	if len(prompt) >= SearchTokens {
		return prompt
	}
	return append(prompt, messageMark|uint32(role))
}

// AppendMessage appends tokens of the current message to a prompt, up to
// [SearchTokens] in all. Ids of 2^31 and above, which stand for special tokens that the
// vocabulary lacks, lose their highest bit: that bit tells the marks of messages.
func AppendMessage(prompt, tokens []uint32) []uint32 {
	from := len(prompt)
	prompt = append(prompt, tokens[:max(0, min(len(tokens), SearchTokens-from))]...)
	for i := from; i < len(prompt); i++ {
		prompt[i] &^= messageMark
	}
	return prompt
}

// A Prompt is what a [Finder] needs of a request.
type Prompt struct {
	Domain         block.ID // within which prompts can share a cache
	Model, Adapter string
	Tokens         []uint32 // made by [BeginMessage] and [AppendMessage], and numbered by [Numbers]; not kept
	Length         int32    // of the whole prompt in tokens
	ArrivalNS      int64
	Source         int64 // its position in the source
}

// A Finder finds where near-identical prompts part. It reads prompts one by one, in
// the order of the source, and takes that for the order of arrival:
//
//  1. A radix tree of recent prompts says how many leading tokens of the prompt are
//     known. A prompt that continues a whole earlier one is a next turn and breaks
//     nothing: it is not searched, and until a first breaker is found only its first
//     tokens are kept, so that traffic without breakers costs little.
//  2. The tokens after the known ones are fingerprinted by winnowing. A fingerprint
//     that was seen before leads to an earlier prompt with the same text after another
//     beginning. Up to four are compared; the one that agrees furthest is used.
//  3. Both prompts are aligned from where they part, token by token, into stretches
//     that agree and differences between them. Each difference is counted at its
//     place. Tokens are lost if they agree and no other prompt has them as a prefix.
//
// Two chats of one template do not count: they agree in little after the question in
// which they differ.
//
// Memory is bounded by about 12 MB: a tree of 2 Mi tokens, nodes included, that evicts
// its least recently used leaves; 131,072 fingerprints, about one for 24 tokens; and
// 2,048 places. A loss against a prompt of long ago may therefore go unseen. Hashes
// only find candidates, which are then compared; they are not stored.
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
	return &Finder{tree: newPromptTree(treeTokens), places: places{slots: make([]place, 1<<10)},
		tally: breakerTally{map[breakerPlace]*placeTally{}, maxBreakerPlaces}}
}

// A candidate is an earlier prompt that shares a stretch of tokens with this one.
type candidate struct {
	node int32
	from int32 // where they part
	x, y int32 // where they agree again
}

const (
	maxCandidates = 4
	// stubTokens is how many new tokens of a next turn are kept at least: enough to
	// tell it from another prompt with the same beginning.
	stubTokens = 32
)

// Add searches the next prompt and remembers it.
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

// lookUp finds the candidates. When there are too many, the last one replaces the one
// before: the later in the prompt they agree, the more they may have in common.
func (f *Finder) lookUp(known int32, domain uint32) {
	f.candidates = f.candidates[:0]
	seen := int32(0)
	for _, one := range f.prints {
		at := f.places.find(one.hash)
		if at.hash != one.hash || at.node == seen || f.tree.nodes[at.node].gen != at.gen ||
			f.tree.nodes[at.node].domain != domain {
			continue
		}
		// Up to the node at whose end, at the latest, the two prompts part.
		n := at.node
		for f.tree.nodes[n].start > at.pos {
			n = f.tree.nodes[n].parent
		}
		for f.tree.nodes[n].passed != f.tree.now {
			n = f.tree.nodes[n].parent
		}
		from := min(known, f.tree.nodes[n].start+int32(len(f.tree.nodes[n].tokens)))
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
		f.earlier = f.tree.appendFrom(f.earlier[:0], c.node, c.from)
		later, x, y := p.Tokens[from:], int(c.x)-from, int(c.y)-from
		if y >= len(f.earlier) || later[x] != f.earlier[y] {
			continue // another stretch with the same hash
		}
		r := extend(later, f.earlier, x, y)
		end := from + r.x + r.n
		if end > furthest || end == furthest && c.from < with.from {
			// a list that is shuffled begins where the first part
			best, with, furthest = r, c, end
			f.best, f.earlier = f.earlier, f.best
		}
	}
	if best.n < minFine {
		return
	}
	from, other := int(with.from), f.tree.nodes[with.node].source
	for _, d := range f.align.align(p.Tokens[from:], f.best, best, known-from) {
		f.tally.count(p, from+d.at, d.width, d.lost, other)
	}
}

// Report returns what was found so far. Models and adapters have the names of the
// source, see [Set.Rename].
func (f *Finder) Report() *Set {
	b := f.totals
	b.Schema = schema
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
	b.List = b.List[:min(len(b.List), maxListed)]
	return &b
}
