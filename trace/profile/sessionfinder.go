package profile

import (
	"fmt"
	"slices"
	"time"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/doc"
)

// A SessionFinder finds out which requests are turns of one conversation, where the source does
// not tell. It asks for evidence:
//
//   - A next turn holds the whole earlier prompt and its answer. It begins with the full blocks
//     of that prompt, and its length says that the answer is in it too, less the reasoning, which
//     is often dropped from the history.
//   - It comes after a pause that a person or a tool takes: not while the earlier answer is
//     plainly still being written, and not days later.
//   - The last full block of the earlier prompt is of its own conversation: nobody else brought it.
//
// Requests that share a template or a document can look like that by chance: the first of them
// brought its blocks, and the second is longer. But as many look like the opposite: they follow
// the same blocks and are too short to hold the answer. So the finder counts both, for each prompt
// that others follow, and for all whose own part begins behind the same block. A prompt which too
// many follow that are no next turns is a template. Where such templates are common among prompts
// with as many followers, what looks like a next turn is no evidence. Then there is no session.
//
// A prompt that is sent again goes with the one that it repeats, where that has a next turn.
//
// [SessionFinder.See] takes all rows in their order, then [SessionFinder.Finish] decides, and
// [SessionFinder.Session] tells. Memory is 80 bytes for each of the last 1,048,576 rows, 12 for
// each row and 20 for each that others follow.
type SessionFinder struct {
	window    []seenTurn // of the latest rows, a ring
	rows      int64
	links     []uint32 // by row: the row that it follows plus one, above a bit for a repetition; 0 for none
	tallyOf   []int32  // by row: its place in tallies plus one
	tallies   []followers
	groups    *block.IDs // by the block behind which prompts begin their own part: place in classes
	classes   []groupClasses
	templates float64 // share of templates among all that are followed
	found     []int32 // by row, once it has decided: see [SessionFinder.Session]
	said      InferredSessions
}

// A Sighting is what shows of a request when it arrives.
type Sighting struct {
	ArrivalNS int64
	BusyNS    int64  // how long its answer was plainly still being written
	Input     int32  // tokens of the prompt
	Answer    int32  // tokens of the answer, without reasoning
	Full      int32  // full blocks of the prompt
	Hit       int32  // leading blocks that were known
	Last      uint64 // the last of these
	Touched   int64  // the row that had this block last; below 0 for none
}

// InferredSessions says how many requests were put into inferred sessions, and how sure that is.
type InferredSessions struct {
	Requests, Sessions int64
	Turns              int64   // that follow another
	Doubt              float64 // share of these that may be chance, estimated
}

// A seenTurn is a request that later ones may follow.
type seenTurn struct {
	arrival, free int64 // free: when its answer may have been there
	// keys of the blocks before its own part, before that of its chain, and before that of the owner
	fork, root, brought uint64
	input, answer       int32
	full, hit, base     int32 // base: blocks that its chain did not bring
	touched             int32 // row, or -1
	chain               int32 // the first row of what may be its session
	owner               int32 // the row of its chain that brought its last full block; -1 when that is not its own
	forked              int32 // the row that brought the last block it found; -1 when that is not known
}

// followers counts what follows a prompt's last full block.
type followers struct {
	owner       int32
	group, root int32 // places in classes of the owner, and of the first row of the chain
	next, other uint8 // requests that look like a next turn, and others
}

// groupClasses count prompts that are followed, by how many follow: once, twice, more often.
type groupClasses [3]struct{ chats, templates int32 }

const (
	finderWindow = 1 << 20
	lookBack     = 8 // rows that had the same blocks, for one that it may follow
	longestPause = 24 * time.Hour
	mostNext     = 16 // different next turns of a prompt; with more it is a template
	fewOthers    = 4  // a prompt is a template when more than one in so many does not look like a next turn
	rare         = 4  // templates are rare when there are so many times more chats
	maxRows      = 1<<31 - 2
)

// SightingOf is that of a row of which hit leading blocks were known, with blocks of size tokens.
func SightingOf(r *trace.Request, size, hit int, touched int64) Sighting {
	s := Sighting{ArrivalNS: r.ArrivalNS, Input: r.InputTokens, Answer: max(0, r.OutputOr(0)),
		Full: int32(block.Full(int(r.InputTokens), size)),
		Hit:  int32(hit), Touched: -1}
	if r.ReasoningTokens != nil {
		s.Answer = max(0, s.Answer-max(0, *r.ReasoningTokens))
	}
	if hit > 0 {
		s.Last, s.Touched = r.Blocks[hit-1], touched
	}
	// No server writes more than a few thousand tokens per second for one request.
	s.BusyNS = int64(max(0, r.OutputOr(0))) * int64(time.Second) / 4000
	if r.E2ENS != nil {
		s.BusyNS = max(0, *r.E2ENS-int64(time.Second)) // clocks have ticks
	}
	return s
}

// Skip takes a row that is of no session that could be inferred.
func (f *SessionFinder) Skip() { f.keep(seenTurn{owner: -1, touched: -1, forked: -1}, 0) }

// See takes the next row.
func (f *SessionFinder) See(s Sighting) {
	row := int32(min(f.rows, maxRows))
	t := seenTurn{arrival: s.ArrivalNS, free: s.ArrivalNS + s.BusyNS, input: s.Input, answer: s.Answer,
		full: s.Full, hit: s.Hit, base: s.Hit, touched: -1, chain: row, owner: -1, forked: -1}
	if s.Hit > 0 {
		t.fork, t.touched = s.Last+1, int32(min(s.Touched, maxRows))
	}
	t.root = t.fork
	t.forked = f.bringer(&t)
	link, before := f.follow(&t)
	if before != nil {
		t.chain, t.base, t.root = before.chain, before.base, before.root
	}
	switch {
	case t.full > t.hit:
		t.owner, t.brought = row, t.fork
	case before != nil:
		if before.full != t.full {
			before = f.at(t.touched)
		}
		if before != nil && before.full == t.full && before.chain == t.chain {
			t.owner, t.brought = before.owner, before.brought
		}
	}
	f.keep(t, link)
}

func (f *SessionFinder) keep(t seenTurn, link uint32) {
	if len(f.window) < finderWindow {
		if len(f.window) == cap(f.window) {
			more := min(max(len(f.window), 64), finderWindow-len(f.window))
			f.window = slices.Grow(f.window, more) // append would copy all again and again
		}
		f.window = append(f.window, t)
	} else {
		f.window[f.rows%finderWindow] = t
	}
	if f.rows < maxRows {
		f.links, f.tallyOf = push(f.links, link), push(f.tallyOf, 0)
	}
	f.rows++
}

// at is a row that later ones may follow, or nil.
func (f *SessionFinder) at(row int32) *seenTurn {
	if row < 0 || f.rows-int64(row) >= finderWindow || f.rows >= maxRows {
		return nil
	}
	return &f.window[row%finderWindow]
}

// follow looks for the row that t seems to be the next turn of, or repeats, among those that had
// its blocks last.
func (f *SessionFinder) follow(t *seenTurn) (link uint32, before *seenTurn) {
	row, shared, counted := t.touched, t.hit, false
	for range lookBack {
		x := f.at(row)
		if x == nil || shared == 0 || t.arrival-x.arrival > int64(longestPause) {
			break
		}
		if x.owner >= 0 && x.full > x.base && x.full <= shared {
			grown := t.input - x.input
			if grown == 0 && t.hit >= t.full {
				return uint32(row+1)<<1 | 1, x
			}
			// An answer may be trimmed or written otherwise when it is sent back.
			slack := min(x.answer/16+4, x.answer/2)
			if next := grown > 0 && grown >= x.answer-slack && t.arrival >= x.free; f.tally(row, x, next) {
				return uint32(row+1) << 1, x
			}
		}
		counted = counted || row == t.forked
		row, shared = x.touched, min(shared, x.hit)
	}
	if x := f.at(t.forked); !counted && x != nil && x.full == t.hit && x.owner == t.forked {
		f.tally(t.forked, x, false)
	}
	return 0, nil
}

// bringer is the row that brought the last block which t found, where that shows.
func (f *SessionFinder) bringer(t *seenTurn) int32 {
	row := t.touched
	for range lookBack {
		x := f.at(row)
		switch {
		case x == nil:
			return -1
		case t.hit > x.hit:
			return row
		case t.hit == x.hit:
			return x.forked
		}
		row = x.touched
	}
	return -1
}

// tally counts what follows a row, and reports whether that looks like a next turn.
func (f *SessionFinder) tally(row int32, x *seenTurn, next bool) bool {
	n := f.tallyOf[row]
	if n == 0 {
		f.tallies = push(f.tallies, followers{owner: x.owner, group: f.group(x.brought), root: f.group(x.root)})
		n = int32(len(f.tallies))
		f.tallyOf[row] = n
	}
	count := &f.tallies[n-1].other
	if next {
		count = &f.tallies[n-1].next
	}
	*count = min(*count, 254) + 1
	return next
}

// group is the place in classes of the prompts whose own part begins behind a block. The first
// is that of prompts which go on from a turn that is certain.
func (f *SessionFinder) group(fork uint64) int32 {
	if f.groups == nil {
		f.groups, f.classes = block.NewIDs(0, 0), make([]groupClasses, 1)
	}
	n, _ := f.groups.ID(0, fork)
	if n+1 == len(f.classes) {
		f.classes = append(f.classes, groupClasses{})
	}
	return int32(n + 1)
}

// template reports whether too many follow a prompt that are no next turns, or too many do.
func (t *followers) template() bool {
	return t.next > mostNext || t.other > 0 && fewOthers*int(t.other) >= int(t.next)
}

// Finish decides, when all rows were seen.
func (f *SessionFinder) Finish() {
	chats := 0.0
	for row, n := range f.tallyOf {
		if n == 0 || int(f.tallies[n-1].owner) != row {
			continue
		}
		t := &f.tallies[n-1]
		group := t.group
		if f.links[row] != 0 {
			group = 0
		}
		if t.template() {
			f.classes[group][min(3, int(t.next)+int(t.other))-1].templates++
			f.templates++
		} else {
			f.classes[group][min(3, t.next)-1].chats++
			chats++
		}
	}
	f.templates /= max(1, f.templates+chats)
	doubt := 0.0
	root, sure, several := make([]int32, len(f.links)), bitset{}, bitset{}
	for i, link := range f.links {
		row, x := int32(i), int32(link>>1)-1
		root[row] = row
		if link&1 != 0 {
			if t := f.of(x); t == nil || !t.template() {
				root[row] = root[x]
			}
			continue
		}
		for range lookBack {
			if x < 0 {
				break
			}
			if chance, certain := f.certain(x, sure); certain {
				root[row] = root[x]
				sure.put(uint32(row))
				several.put(uint32(root[x]))
				f.said.Turns++
				doubt += chance
				break
			}
			x = int32(f.links[x]>>1) - 1
		}
	}
	if f.said.Turns > 0 {
		f.said.Doubt = doubt / float64(f.said.Turns)
	}
	for i, of := range root { // a first row comes before the others of its session
		switch {
		case of != int32(i):
			root[i] = root[of]
		case several.has(uint32(of)):
			root[i] = -2 - int32(f.said.Sessions)
			f.said.Sessions++
		default:
			root[i] = -1
		}
		if root[i] < -1 {
			f.said.Requests++
		}
	}
	*f = SessionFinder{found: root, said: f.said}
}

// certain reports whether what follows a row is of its session, and the chance that it is not. sure
// has the rows that are next turns themselves.
func (f *SessionFinder) certain(row int32, sure bitset) (chance float64, certain bool) {
	t := f.of(row)
	if t == nil || t.template() {
		return 0, false
	}
	several := 1
	if o := f.of(t.owner); o != nil {
		if o.template() {
			return 0, false
		}
		several = min(3, max(1, int(o.next)))
	}
	group := t.root
	switch {
	case sure.has(uint32(t.owner)):
		group = 0
	case f.classes[t.group] != (groupClasses{}):
		group = t.group
	}
	chance = f.chance(group, several)
	return chance, rare*chance < 1
}

// chance is that of a prompt which looks like a turn of a chat, with so many next turns, to be a
// template. Where few were counted it is nearer to the share of templates among all prompts.
func (f *SessionFinder) chance(group int32, several int) float64 {
	g := &f.classes[group]
	c, templates := g[several-1], int32(0)
	for _, of := range g {
		templates += of.templates
	}
	if templates > rare*c.chats {
		return 1
	}
	return (float64(c.templates) + f.templates) / float64(c.chats+1)
}

// of is what was counted of a row, or nil.
func (f *SessionFinder) of(row int32) *followers {
	if n := f.tallyOf[row]; n > 0 {
		return &f.tallies[n-1]
	}
	return nil
}

// Session is that of a row, numbered from 0 in order of appearance; false for none.
func (f *SessionFinder) Session(row int64) (session int64, found bool) {
	if row >= int64(len(f.found)) || f.found[row] > -2 {
		return 0, false
	}
	return -2 - int64(f.found[row]), true
}

// Words say what was found among so many requests, without an end.
func (i InferredSessions) Words(requests int64) string {
	return fmt.Sprintf("%s of %s are in %s, inferred from prompts that hold an earlier one and its answer; about %s "+
		"of their turns may be there by chance",
		doc.Count(i.Requests), doc.Many(requests, "request"), doc.Many(i.Sessions, "session"), doc.Percent(i.Doubt))
}

// Inferred is what was found.
func (f *SessionFinder) Inferred() InferredSessions { return f.said }
