package synth

import (
	"errors"
	"slices"

	"reprise/trace"
)

// A place is what a model keeps of one request, in the order of the trace: what it
// builds on, how much it brought, and what came out. It holds no id of a block and no
// time.
//
// Its parts move among places alike, each for itself, see swap.go: the link with the
// pause, the size, the ending. User and label stay.
type place struct {
	user  int64 // dense; none when the source tells no users
	label int32 // of [Model].labels: cache domain and what kind of request
	// Of opens: the template of [Model].templates that its prompt follows, or none.
	template int32
	link
	seat
	size
	ending
}

// A link says which earlier prompt a request builds on, and how.
type link struct {
	class  class
	parent int32 // the place of the request that last touched the deepest known block; none for opens
	hit    int32 // leading blocks that it has of the parent's
	// Of the parent when it was fitted, where hit lies between: its own blocks begin
	// after parentHit, the last full one is parentFull, all are parentLength.
	parentHit, parentFull, parentLength int32
}

// class is how a request builds on its parent.
type class uint8

const (
	opens     class = iota // on nothing, but a template
	continues              // behind the last full block of its parent
	edits                  // near the end of its parent, of about its length
	branches               // further up
	repeats                // all of its blocks are the parent's
	classes                // how many there are
)

// A seat says how a request finds its session, where the source told sessions.
type seat struct {
	join  join
	after int32  // for byPlace: the place of a request of the session
	waits bool   // it was sent after another was done
	pause *pause // null at the beginning of a session
}

// join says how a request finds its session.
type join uint8

const (
	joinless join = iota // it has none
	begins               // it begins one
	byParent             // the session of its parent
	byPlace              // the session of the request at another place
	joins                // how many there are
)

// A size is how much a request brings.
type size struct {
	trunk  int32 // of opens: leading blocks on the template
	fresh  int32 // of opens and branches: blocks behind those that it shares
	tail   int32 // of opens and branches: tokens in the last block; all of them in a trace without blocks
	growth int32 // of continues and edits: tokens more than the parent has
}

// wholeTemplate tells whether a place opens a prompt that has nothing of its own.
func (p *place) wholeTemplate() bool { return p.class == opens && p.trunk > 0 && p.fresh == 0 }

// tokens is how many tokens a request brings, with blocks of so many.
func (s *size) tokens(block int) int64 {
	return int64(s.growth) + max(0, int64(s.fresh)-1)*int64(block) + int64(s.tail)
}

// A pause is the time between a turn and the one before it.
type pause struct{ think, tool *int64 }

// ending is what came out, and what was asked for.
type ending struct {
	output int32 // tokens; none where the trace does not tell
	end    int32 // of [Model].ends: status and finish reason
	extra  *extra
}

// knownOutput is the output's length in a sum over the known ones.
func (e *ending) knownOutput() int64 { return int64(max(e.output, 0)) }

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

// category is a reuse category by its number in files of models; 0 is that of a request without blocks.
type category uint8

const (
	uncategorised category = iota
	cold
	onTemplate
	duplicate
	continuation
	branch
)

var categoryNames = [...]string{"", trace.Cold, trace.Template, trace.Duplicate, trace.Continuation, trace.Branch}

func (c category) String() string { return categoryNames[c] }

func categoryOf(s string) category { return category(max(0, slices.Index(categoryNames[:], s))) }

// turns tells whether requests of a category may be turns of the session that they build on.
func (c category) turns() bool { return c == duplicate || c == continuation }

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

var errTooManyLabels = errors.New("more than 65535 kinds of requests by model, adapter, class and settings")
