package datasets

import (
	"bytes"
	"hash/maphash"
	"io"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
)

// A spanCall says of a record where it stands among the spans of its trace.
type spanCall struct {
	trace, id, above string // above is the span around it
	response         string // id of the answer, which two layers may both know
	unsure           bool   // nothing but its usage says that it is the call of a model
}

// spanCalls are the calls among the spans of a source, each of them once. The rules:
//
//   - A span that comes again under its id is the same one.
//   - A span that has calls below it is none, where it has no usage, where its usage is the sum
//     of theirs or that of one of them, and where nothing but the usage says that it is a call:
//     an agent, or a layer around the client below it.
//   - A call below such a one that itself has no usage is the same call, and the one that has
//     usage is kept.
//   - Two calls of a trace with the same answer are the same.
//
// Rows of CSV do not outlive the next one, so that they are not held back: of two layers the
// first is kept.
//
// A span is held back until those around it and below it have come: until heldSpans others
// have, or maxHeldBytes. Of the spans before that the ids and the counts are known.
type spanCalls struct {
	in   row.Reader
	show row.Show // nil for what is no call
	of   func(r, shown row.Row) spanCall
	tell *fault.Notes

	known *knownSpans
	held  []heldSpan
	bytes int
	flat  bool // the rows are of CSV
	eof   bool
}

// A heldSpan waits for the spans around it and below it.
type heldSpan struct {
	shown row.Row
	fact  *spanFact
	size  int
}

const (
	heldSpans    = 2_000
	maxHeldBytes = 4 << 20
	maxSpanFacts = 1 << 14 // that are remembered, once or twice as many; the spans of a trace stand close together
	maxSpansSeen = 1 << 20 // whose ids are remembered
	maxSpanDepth = 64
)

// knownSpans are the spans of a source: what others have to know of the latest, and of the calls
// before them that they came.
type knownSpans struct {
	recent, before map[spanKey]*spanFact // by id
	answers        map[spanKey]*spanFact // by answer
	seen           map[uint64]bool       // hashes of the keys of calls
	seed           maphash.Seed
}

// A spanKey is an id in a trace.
type spanKey struct{ trace, id string }

// A spanFact is what others have to know of a span.
type spanFact struct {
	call          spanCall
	isCall        bool
	counted       bool // it has usage
	input, output int64
	around        *spanFact
	below         []*spanFact
	kept, dropped bool
}

func (k *knownSpans) at(key spanKey) *spanFact {
	if len(k.recent) >= maxSpanFacts || k.recent == nil {
		k.before, k.recent, k.answers = k.recent, map[spanKey]*spanFact{}, map[spanKey]*spanFact{}
	}
	f := k.recent[key]
	if f == nil {
		if f = k.before[key]; f == nil {
			f = &spanFact{}
		}
		k.recent[key] = f
	}
	return f
}

// again reports whether a call came before, and remembers it.
func (k *knownSpans) again(key spanKey) bool {
	if k.seen == nil || len(k.seen) >= maxSpansSeen {
		k.seen, k.seed = map[uint64]bool{}, maphash.MakeSeed()
	}
	hash := maphash.Comparable(k.seed, key)
	if k.seen[hash] {
		return true
	}
	k.seen[hash] = true
	return false
}

const (
	noteSpanTwice  = "spans that were exported more than once were read once"
	noteAnswerSeen = "calls with the answer of another call of their trace were left out, as the same one " +
		"recorded twice"
)

func (c *spanCalls) Next() (row.Row, error) {
	for {
		for !c.eof && len(c.held) < heldSpans && c.bytes < maxHeldBytes && !(c.flat && len(c.held) > 0) {
			err := c.take()
			if c.eof = err == io.EOF; err != nil && !c.eof {
				return nil, err
			}
		}
		if len(c.held) == 0 {
			return nil, io.EOF
		}
		first := c.held[0]
		c.held[0] = heldSpan{}
		c.held, c.bytes = c.held[1:], c.bytes-first.size
		if why := first.fact.settle(); why != "" {
			c.tell.Count(why)
			continue
		}
		return first.shown, nil
	}
}

// take reads a span, and holds it back where it is a call.
func (c *spanCalls) take() error {
	r, err := c.in.Next()
	if err != nil {
		return err
	}
	_, c.flat = r.(*row.CSV)
	shown, err := c.show(r, c.tell)
	if f, ok := err.(*fault.Fault); ok && !f.Stop && r.Cut() {
		return fault.CutOff(f.Line, f.Col, "the last row is not whole")
	}
	if err != nil {
		return err
	}

	fact, call := &spanFact{}, c.of(r, shown)
	key := spanKey{call.trace, call.id}
	if call.id != "" {
		fact = c.known.at(key)
	}
	if shown == nil {
		fact.place(c.known, call)
		return nil
	}
	if call.id != "" && c.known.again(key) {
		c.tell.Count(noteSpanTwice)
		return nil
	}
	fact.isCall = true
	fact.place(c.known, call)
	fact.count(shown)
	if c.known.answered(fact) {
		fact.dropped = true
		c.tell.Count(noteAnswerSeen)
		return nil
	}
	size := rowSize(shown)
	c.held, c.bytes = append(c.held, heldSpan{shown, fact, size}), c.bytes+size
	return nil
}

// answered reports whether another call of the trace has the same answer, and is no layer of this
// one.
func (k *knownSpans) answered(f *spanFact) bool {
	if f.call.response == "" || f.call.trace == "" || k.answers == nil {
		return false
	}
	key := spanKey{f.call.trace, f.call.response}
	if other := k.answers[key]; other != nil && !other.isAbove(f) && !f.isAbove(other) && other.same(f) {
		return true
	}
	k.answers[key] = f
	return false
}

// place puts a span below the one around it.
func (f *spanFact) place(known *knownSpans, call spanCall) {
	f.call = call
	if call.id == "" || call.above == "" || call.above == call.id || f.around != nil {
		return
	}
	f.around = known.at(spanKey{call.trace, call.above})
	f.around.below = append(f.around.below, f)
}

// count takes the lengths of a call.
func (f *spanFact) count(shown row.Row) {
	for _, n := range []struct {
		path string
		to   *int64
	}{{"tokens.input", &f.input}, {"tokens.output", &f.output}} {
		if found, ok := shown.Value(n.path); ok {
			if count, ok := countOf(row.Plain(found)); ok {
				*n.to, f.counted = int64(count), f.counted || count > 0
			}
		}
	}
}

// isAbove reports whether other is somewhere below f.
func (f *spanFact) isAbove(other *spanFact) bool {
	for range maxSpanDepth {
		if other = other.around; other == nil || other == f {
			return other == f
		}
	}
	return false
}

// calls adds the calls that are next below a span, those that were not left out.
func (f *spanFact) calls(to []*spanFact, depth int) []*spanFact {
	for _, b := range f.below {
		switch {
		case b.isCall && !b.dropped:
			to = append(to, b)
		case depth < maxSpanDepth:
			to = b.calls(to, depth+1)
		}
	}
	return to
}

// same reports whether two spans have the same usage.
func (f *spanFact) same(other *spanFact) bool {
	return f.counted && other.counted && f.input == other.input && f.output == other.output
}

// settle decides on a call, and returns why it is left out; "" where it is kept.
func (f *spanFact) settle() (why string) {
	defer func() { f.dropped, f.kept = why != "", why == "" }()
	up := f.around
	for range maxSpanDepth {
		if up == nil {
			break
		}
		// One that was handed out before this one came, or that has what this one lacks.
		if up.isCall && !up.dropped &&
			(up.kept && up.same(f) || up.counted && !up.call.unsure && !f.counted && len(up.calls(nil, 0)) == 1) {
			return noteOuterCalls
		}
		up = up.around
	}

	below := f.calls(nil, 0)
	if len(below) == 0 {
		return ""
	}
	var input, output int64
	one, counted := false, 0
	for _, b := range below {
		input, output = input+b.input, output+b.output
		one = one || f.same(b)
		if b.counted {
			counted++
		}
	}
	switch {
	case f.counted && counted == 0 && len(below) == 1 && !f.call.unsure:
		return "" // the call below is this one, and tells less
	case f.call.unsure, one, !f.counted, len(below) > 1 &&
		(input == f.input && input > 0 || output == f.output && output > 0):
		return noteOuterCalls
	}
	return ""
}

// spanPaths is where a record says which span it is, and which one is around it.
type spanPaths struct{ trace, id, above string }

// of implements [spanCalls.of]. What a record says of its members is said of each.
func (p spanPaths) of(r, _ row.Row) (c spanCall) {
	trace, ok := r.Value(p.trace)
	if in, isMember := r.(row.MemberRow); isMember && !ok {
		trace, _ = in.Row.Value(p.trace)
	}
	id, _ := r.Value(p.id)
	above, _ := r.Value(p.above)
	if list, ok := above.([]any); ok && len(list) > 0 {
		above = list[0]
	}
	return spanCall{trace: row.Plain(trace), id: row.Plain(id), above: row.Plain(above)}
}

// keptRows are rows that outlive the reading of the next one, where they are of JSON or of
// Parquet.
type keptRows struct{ in row.Reader }

func (k keptRows) Next() (row.Row, error) {
	r, err := k.in.Next()
	if whole, ok := r.(row.JSONRow); ok {
		whole.Raw = bytes.Clone(whole.Raw)
		line, col := whole.Records.Place(0)
		whole.Records = keptRecord{whole.Raw, line, col}
		return whole, err
	}
	return r, err
}

// A keptRecord knows the place of one record.
type keptRecord struct {
	raw       []byte
	line, col int64
}

func (k keptRecord) Next() ([]byte, error) { return nil, io.EOF }

func (k keptRecord) Last() bool { return false }

func (k keptRecord) Place(offset int) (line, col int64) {
	before := k.raw[:min(offset, len(k.raw))]
	if lines := bytes.Count(before, []byte("\n")); lines > 0 {
		return k.line + int64(lines), int64(len(before) - bytes.LastIndexByte(before, '\n'))
	}
	return k.line, k.col + int64(len(before))
}

// rowSize is about how many bytes a row holds that is kept. The members of a record share it,
// and the first of them stands for all.
func rowSize(r row.Row) int {
	const least = 1 << 10
	switch r := r.(type) {
	case row.View:
		return rowSize(r.Row)
	case row.MemberRow:
		if strings.HasSuffix(r.In, ".0") {
			return rowSize(r.Row)
		}
	case row.JSONRow:
		return least + 3*len(r.Raw)
	}
	return least
}
