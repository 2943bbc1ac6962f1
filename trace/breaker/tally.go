package breaker

import (
	"cmp"
	"math/bits"
	"slices"

	"reprise/trace"
)

// maxBreakerPlaces is how many places are counted at once, at about 400 bytes each.
const maxBreakerPlaces = 1 << 11

// A breakerPlace is where prompts part, at the finest resolution that is kept.
type breakerPlace struct {
	model, adapter string
	begin          uint32 // hash of the first tokens; 0 when they part too early
	message        int
	role           trace.Role
	at             int // position by placeWidth
}

const (
	placeWidth  = 8  // tokens
	beginTokens = 16 // prompts that differ in these first tokens have different templates…
	beginAhead  = 8  // …unless they part within so many tokens after them
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

// count counts a difference from another prompt at a position of p's tokens.
func (t *breakerTally) count(p *Prompt, at, width, lost int, other int64) {
	k := breakerPlace{model: p.Model, adapter: p.Adapter, message: -1}
	for _, token := range p.Tokens[:at+1] {
		if token >= messageMark {
			k.message, k.role = k.message+1, trace.Role(token&^messageMark)
		}
	}
	k.message = max(k.message, 0)
	pos := spoken(p.Tokens[:at])
	k.at = pos / placeWidth
	if at >= beginTokens+beginAhead {
		k.begin = hashTokens(p.Tokens[:beginTokens], 1)
	}
	one := t.places[k]
	if one == nil {
		if len(t.places) >= t.limit { // drop those that the fewest requests show, at least half of all
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

// spoken counts the tokens that are not marks of messages.
func spoken(tokens []uint32) int {
	n := len(tokens)
	for _, t := range tokens {
		n -= int(t >> 31)
	}
	return n
}

// breakers returns what was counted, neighbouring places joined, those that lose most
// first.
func (t *breakerTally) breakers() []Breaker {
	all := make([]*placeTally, 0, len(t.places))
	for _, one := range t.places {
		c := *one
		all = append(all, &c)
	}
	slices.SortFunc(all, func(a, b *placeTally) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.adapter, b.adapter),
			cmp.Compare(a.message, b.message),
			cmp.Compare(a.role, b.role), cmp.Compare(a.begin, b.begin), cmp.Compare(a.from, b.from))
	})
	joined := all[:0]
	for _, one := range all {
		// Two places are one when they are at most placeWidth apart or, deep in a prompt,
		// a 32nd of the way.
		var t *placeTally
		if n := len(joined) - 1; n >= 0 {
			t = joined[n]
		}
		if t == nil || t.model != one.model || t.adapter != one.adapter || t.message != one.message ||
			t.role != one.role ||
			t.begin != one.begin || one.from-t.to > max(placeWidth, t.to/32) {
			joined = append(joined, one)
			continue
		}
		t.to = max(t.to, one.to)
		t.requests += one.requests
		t.lost += one.lost
		for i, n := range one.widths {
			t.widths[i] += n
		}
		if one.example[0] < t.example[0] {
			t.example = one.example
		}
	}
	slices.SortFunc(joined, func(a, b *placeTally) int { // by nothing that a name decides
		return cmp.Or(cmp.Compare(b.lost, a.lost), cmp.Compare(a.example[0], b.example[0]), cmp.Compare(a.from, b.from))
	})
	list := make([]Breaker, 0, len(joined))
	for _, one := range joined {
		list = append(list, Breaker{Model: one.model, Adapter: one.adapter, Message: one.message,
			Role: one.role.String(),
			From: int64(one.from), To: int64(one.to), Width: one.width(), Requests: one.requests, Lost: one.lost,
			Example: one.example})
	}
	return list
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
