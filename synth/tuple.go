package synth

import (
	"errors"
	"slices"

	"reprise/trace"
)

// A tuple is what a model keeps of one request: how it reused what came before
// it, and how much it brought. It holds no id of a block and no time.
//
// The fields fall into units. Reuse belongs together, since a depth without its
// distance says nothing about a cache; so does ending. Swapping moves whole
// units among tuples that are alike; user and join stay where they are in the
// order of requests.
type tuple struct {
	user int64 // dense; none when the source tells no users
	reuse
	fresh int32 // blocks that the prompt adds
	tail  int32 // tokens in the last block; all of them in a trace without blocks
	ending
}

// reuse tells which part of a prompt was known, and where in the LRU stack it was.
type reuse struct {
	label    int32    // of [Model].labels: cache domain and what kind of request
	category category // as in the trace
	hit      int32    // leading blocks that were known
	trunk    int32    // leading blocks on the trunk of the domain, see population
	distance int64    // LRU stack distance of the deepest of them
	profile  [3]int64 // distances at a quarter, a half and three quarters of hit
	chain    int32    // requests that it builds on, one on the other; with sessions, turns up to the one that it extends
	join     join     // how the request finds its session
	back     int64    // for byRecency: how many sessions were active since
	turn     int32    // of the source's session, counted from 0
	waits    bool     // it was sent after another was done
	pause    *pause   // null at the beginning of a session
}

// quarter is the depth at q quarters of hit blocks, the point of profile[q-1].
func quarter(hit int32, q int) int32 { return max(1, int32((int64(hit)*int64(q)+3)/4)) }

// A pause is the time between a turn and the one before it.
type pause struct{ think, tool *int64 }

// ending is what came out, and what was asked for.
type ending struct {
	output int32
	end    int32 // of [Model].ends: status and finish reason
	extra  *extra
}

// extra holds what few sources tell.
type extra struct {
	reasoning, imageTokens, images, maxTokens *int32
	cancelledAt                               *int64 // ns from arrival to the end of a cancelled request
}

// A label is what requests have in common who differ in lengths only.
type label struct {
	model, adapter, kind string
	class                string
	hasClass             bool
	stream               int8 // none, 0 or 1
	temperature          float32
	hasTemperature       bool
}

// An end is how requests end.
type end struct{ status, finish string }

// category is the place of a reuse category in [trace.Categories], from 1; 0 is
// that of a request without blocks.
type category uint8

const (
	uncategorised category = iota
	cold
	global
	duplicate
	continuation
	branch
)

func (c category) String() string {
	if c == uncategorised {
		return ""
	}
	return trace.Categories()[c-1]
}

// join says how a request finds its session.
type join uint8

const (
	joinless  join = iota // it has none
	opens                 // it begins one
	byTree                // the session of the request that last touched its deepest known block
	byRecency             // the session that was active a number of sessions ago
	joins                 // how many there are
)

// A numbering numbers distinct values by first appearance.
type numbering[T comparable] struct {
	values []T
	index  map[T]int32
}

func (t *numbering[T]) numberOf(v T) int32 {
	i, ok := t.index[v]
	if !ok {
		if t.index == nil {
			t.index = map[T]int32{}
		}
		i = int32(len(t.values))
		t.index[v] = i
		t.values = append(t.values, v)
	}
	return i
}

// domainsOf returns the cache domain of each label.
func domainsOf(labels []label) []uint16 {
	var known numbering[[2]string]
	out := make([]uint16, len(labels))
	for i, l := range labels {
		out[i] = uint16(known.numberOf([2]string{l.model, l.adapter}))
	}
	return out
}

// domainCount is how many domains the labels have.
func domainCount(labels []uint16) int {
	n := 0
	for _, d := range labels {
		n = max(n, int(d)+1)
	}
	return n
}

// maxBlocks bounds the prompts of a model: a damaged file must not claim all
// memory for one.
const maxBlocks = 1 << 24

func categoryOf(s string) category { return category(slices.Index(trace.Categories(), s) + 1) }

var errTooManyLabels = errors.New("more than 65535 kinds of requests by model, adapter, class and settings")

// categorise applies the rules of profile.Annotator.
func categorise(hit, length, prefix int32, extends bool) category {
	switch {
	case length == 0:
		return uncategorised
	case hit == 0:
		return cold
	case hit <= prefix:
		return global
	case hit == length:
		return duplicate
	case extends:
		return continuation
	}
	return branch
}
