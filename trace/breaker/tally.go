package breaker

import (
	"cmp"
	"math/bits"
	"slices"

	"reprise/trace"
)

// maxBreakerPlaces is how many places are counted at once, for some 400 bytes
// each.
const maxBreakerPlaces = 1 << 11

// A breakerPlace is where prompts part, as closely as places are told apart.
type breakerPlace struct {
	model, adapter string
	begin          uint32 // hash of the first tokens; 0 when they part too early
	message        int
	role           trace.Role
	at             int // position by placeWidth
}

const (
	placeWidth  = 8  // tokens
	beginTokens = 16 // prompts that begin with other ones are of another template…
	beginAhead  = 8  // …unless they part less than this behind them
)

// A breakerTally counts by place. When there are too many places, those that the
// fewest requests show are dropped.
type breakerTally struct {
	places map[breakerPlace]*placeTally
	limit  int
}

type placeTally struct {
	breakerPlace
	from, to       int
	requests, lost int64
	widths         [widthBuckets]int32
	example        [2]int64
	last           int64 // request that was counted
}

func newBreakerTally(limit int) breakerTally {
	return breakerTally{map[breakerPlace]*placeTally{}, limit}
}

// add counts a difference at a position of p's tokens from another prompt.
func (t *breakerTally) add(p *Prompt, at, width, lost int, other int64) {
	k := breakerPlace{model: p.Model, adapter: p.Adapter}
	k.message, k.role = messageAt(p.Tokens, at)
	pos := spoken(p.Tokens[:at])
	k.at = pos / placeWidth
	if at >= beginTokens+beginAhead {
		k.begin = hashTokens(p.Tokens[:beginTokens], 1)
	}
	one := t.places[k]
	if one == nil {
		if len(t.places) >= t.limit {
			t.prune()
		}
		one = &placeTally{breakerPlace: k, from: pos, to: pos, example: [2]int64{p.Source, other}, last: -1}
		t.places[k] = one
	}
	one.from, one.to = min(one.from, pos), max(one.to, pos)
	one.lost += int64(lost)
	if one.last != p.Source {
		one.last = p.Source
		one.requests++
		one.widths[widthBucket(width)]++
	}
}

// prune drops the places that the fewest requests show, at least half of all.
func (t *breakerTally) prune() {
	counts := make([]int64, 0, len(t.places))
	for _, one := range t.places {
		counts = append(counts, one.requests)
	}
	slices.Sort(counts)
	most := counts[len(counts)/2]
	for k, one := range t.places {
		if one.requests <= most {
			delete(t.places, k)
		}
	}
}

// messageAt is the message that the token at a position belongs to.
func messageAt(tokens []uint32, at int) (index int, role trace.Role) {
	index = -1
	for _, t := range tokens[:at+1] {
		if t >= messageMark {
			index, role = index+1, trace.Role(t&^messageMark)
		}
	}
	return max(index, 0), role
}

// spoken counts the tokens that are no marks of messages.
func spoken(tokens []uint32) int {
	n := len(tokens)
	for _, t := range tokens {
		n -= int(t >> 31)
	}
	return n
}

// breakers returns what was counted, neighbours taken together, by what is lost.
func (t *breakerTally) breakers() []Breaker {
	all := make([]*placeTally, 0, len(t.places))
	for _, one := range t.places {
		c := *one
		all = append(all, &c)
	}
	slices.SortFunc(all, func(a, b *placeTally) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.adapter, b.adapter), cmp.Compare(a.message, b.message),
			cmp.Compare(a.role, b.role), cmp.Compare(a.begin, b.begin), cmp.Compare(a.from, b.from))
	})
	joined := all[:0]
	for _, one := range all {
		if n := len(joined) - 1; n >= 0 && joined[n].near(one) {
			joined[n].join(one)
		} else {
			joined = append(joined, one)
		}
	}
	slices.SortFunc(joined, func(a, b *placeTally) int { // by nothing that a name decides
		return cmp.Or(cmp.Compare(b.lost, a.lost), cmp.Compare(a.example[0], b.example[0]), cmp.Compare(a.from, b.from))
	})
	list := make([]Breaker, 0, len(joined))
	for _, one := range joined {
		list = append(list, Breaker{Model: one.model, Adapter: one.adapter, Message: one.message, Role: one.role.String(),
			From: int64(one.from), To: int64(one.to), Width: one.width(), Requests: one.requests, Lost: one.lost, Example: one.example})
	}
	return list
}

// near says whether the next place is one with t: no further behind it than
// placeWidth or, deep in a prompt, a part in 32 of the way.
func (t *placeTally) near(next *placeTally) bool {
	return t.model == next.model && t.adapter == next.adapter && t.message == next.message && t.role == next.role &&
		t.begin == next.begin && next.from-t.to <= max(placeWidth, t.to/32)
}

func (t *placeTally) join(o *placeTally) {
	t.to = max(t.to, o.to)
	t.requests += o.requests
	t.lost += o.lost
	for i, n := range o.widths {
		t.widths[i] += n
	}
	if o.example[0] < t.example[0] {
		t.example = o.example
	}
}

// Widths are counted exactly below 32, and in quarters of each power of two
// from there to SearchTokens.
const (
	exactWidths  = 32
	widthBuckets = exactWidths + 4*(14-5) + 1
)

func widthBucket(n int) int {
	if n < exactWidths {
		return n
	}
	e := bits.Len(uint(n)) - 1
	return min(exactWidths+4*(e-5)+n>>(e-2)&3, widthBuckets-1)
}

// width is the median.
func (t *placeTally) width() int64 {
	var n int64
	for i, c := range t.widths {
		if n += int64(c); 2*n >= t.requests {
			if i < exactWidths {
				return int64(i)
			}
			e := (i-exactWidths)/4 + 5
			return int64(4+(i-exactWidths)%4) << (e - 2)
		}
	}
	return 0
}
