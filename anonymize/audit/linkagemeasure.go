package audit

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"reprise/trace"
)

// A linkageRisks says how far an output lets somebody who knows a little of a request,
// or of a session, find it. Classes are counted by hashes of 64 bits, which take
// two for one in a trace of ten million requests with a chance of 1 in 400,000.
type linkageRisks struct {
	Sets    []setRisk    `json:"sets"`
	Points  []pointRisk  `json:"points,omitempty"` // without sessions there are none
	Columns []columnRisk `json:"columns"`
}

// A columnRisk says what a column contributes to singling out: how many requests
// are alone by all the columns together, and how many still are without it.
type columnRisk struct {
	Column  string  `json:"column"` // empty for all together
	Unique  float64 `json:"unique_share_without_it"`
	Sampled float64 `json:"sampled_share"`
}

// A linkRow holds the part of a row that somebody else may know.
type linkRow struct {
	trace.Row `parquet:"-"`

	ArrivalNS    int64   `parquet:"arrival_ns"`
	Session      *int64  `parquet:"session,optional"`
	Turn         *int32  `parquet:"turn,optional"`
	ThinkNS      *int64  `parquet:"think_ns,optional"`
	Model        string  `parquet:"model,optional"`
	Class        *string `parquet:"class,optional"`
	Category     string  `parquet:"category,optional"`
	InputTokens  int32   `parquet:"input_tokens"`
	OutputTokens *int32  `parquet:"output_tokens,optional"`
}

// linkOptions are the settings of a measurement.
type linkOptions struct {
	k     int    // of the share below k
	seed  uint64 // of the draws
	limit int    // of classes, and of points of sessions; 0 for the default
}

// measureLinkage reads the rows that open gives a few times. Memory is bounded by
// the limits: some 700 MB at the most, and 20 bytes for each session.
func measureLinkage(ctx context.Context, open func() (trace.Reader[linkRow], error),
	o linkOptions) (linkageRisks, error) {
	limit := o.limit
	if limit == 0 {
		limit = mostClasses
	}
	m := linkMeasure{open: open, o: o, limit: limit}
	if err := m.classes(ctx); err != nil {
		return linkageRisks{}, err
	}
	if err := m.points(ctx); err != nil {
		return linkageRisks{}, err
	}
	return m.out, nil
}

// A linkMeasure is the state of one call of [measureLinkage].
type linkMeasure struct {
	open     func() (trace.Reader[linkRow], error)
	o        linkOptions
	limit    int
	sessions trace.Renumber
	turns    []uint32 // by session
	shapes   []uint64 // by session: hash of the lengths so far
	out      linkageRisks
}

func (m *linkMeasure) each(ctx context.Context, f func(r *linkRow)) error {
	rows, err := m.open()
	if err != nil {
		return err
	}
	return trace.Each(rows, func(row int64, r *linkRow) error {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		f(r)
		return nil
	})
}

// Columns by which requests are singled out together.
var linkColumns = []string{"input_tokens", "output_tokens", "arrival_ns, by the minute", "model", "class", "category",
	"turn", "think_ns"}

// columns are the values of linkColumns.
func (r *linkRow) columns(dst []uint64) []uint64 {
	turn, think := uint64(0), uint64(0)
	if r.Turn != nil {
		turn = 1 + uint64(*r.Turn)
	}
	if r.ThinkNS != nil {
		think = 1 + uint64(*r.ThinkNS)
	}
	class := ""
	if r.Class != nil {
		class = *r.Class
	}
	return append(dst[:0], uint64(r.InputTokens), r.output(), uint64(r.ArrivalNS/int64(time.Minute)),
		ofWord(r.Model), ofWord(class), ofWord(r.Category), turn, think)
}

func ofWord(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// unknownLength stands for a length that the source does not tell, in keys.
const unknownLength = math.MaxUint64

func (r *linkRow) output() uint64 {
	if r.OutputTokens == nil {
		return unknownLength
	}
	return uint64(*r.OutputTokens)
}

// lengths is the key of a pair of lengths, and of the time beside it.
func (r *linkRow) lengths() uint64 {
	return mixKey(mixKey(1, uint64(r.InputTokens)), r.output())
}

func (r *linkRow) at(bin time.Duration) uint64 {
	return mixKey(r.lengths(), uint64(r.ArrivalNS/int64(bin)))
}

// A knowledge is what somebody knows of a request.
type knowledge struct {
	words string
	key   func(r *linkRow) uint64
}

// leastClass is the class that hides its members well: 1/11 is the risk of 9 % that
// regulators of clinical data accept (EMA policy 0070).
const leastClass = 11

const lengthsKnown = "input and output tokens"

func (m *linkMeasure) knowledge() []knowledge {
	return []knowledge{
		{lengthsKnown, (*linkRow).lengths},
		{lengthsKnown + ", minute", func(r *linkRow) uint64 { return r.at(time.Minute) }},
		{lengthsKnown + ", second", func(r *linkRow) uint64 { return r.at(time.Second) }},
	}
}

// classes counts all that takes one pass.
func (m *linkMeasure) classes(ctx context.Context) error {
	all := m.knowledge()
	var sets []*classCounter
	for range all {
		sets = append(sets, newClassCounter(m.limit))
	}
	without := make([]*classCounter, len(linkColumns)+1) // the last is without none
	for i := range without {
		without[i] = newClassCounter(max(m.limit/8, 1))
	}
	var values []uint64
	err := m.each(ctx, func(r *linkRow) {
		for i, k := range all {
			sets[i].add(k.key(r))
		}
		values = r.columns(values)
		for i, c := range without {
			h := uint64(7)
			for j, v := range values {
				if j != i {
					h = mixKey(h, v)
				}
			}
			c.add(h)
		}
		m.turn(r)
	})
	if err != nil {
		return err
	}
	for i, k := range all {
		m.out.Sets = append(m.out.Sets, sets[i].risk(k.words, "requests", m.o.k))
	}
	for i := len(without) - 1; i >= 0; i-- {
		name, r := "", without[i].risk("", "", m.o.k)
		if i < len(linkColumns) {
			name = linkColumns[i]
		}
		m.out.Columns = append(m.out.Columns, columnRisk{name, r.Unique, r.Sampled})
	}
	if len(m.shapes) > 0 {
		c := newClassCounter(m.limit)
		for _, h := range m.shapes {
			c.add(h)
		}
		m.out.Sets = append(m.out.Sets, c.risk("the lengths of all turns", "sessions", m.o.k))
	}
	m.shapes = nil
	return nil
}

// turn adds a row to its session.
func (m *linkMeasure) turn(r *linkRow) {
	if r.Session == nil {
		return
	}
	s := m.sessions.ID(uint64(*r.Session))
	if s == uint64(len(m.turns)) {
		m.turns, m.shapes = append(m.turns, 0), append(m.shapes, 3)
	}
	m.turns[s]++
	m.shapes[s] = mixKey(m.shapes[s], r.lengths())
}

// words are the figures that matter most, in a sentence.
func (l *linkageRisks) words() string {
	s := fmt.Sprintf("by input and output tokens %.2f %% of the requests are unique, and the rarest pair has %d",
		100*l.Sets[0].Unique, l.Sets[0].Smallest)
	i := slices.IndexFunc(l.Points, func(p pointRisk) bool { return p.Known == lengthsKnown && p.Points == mostPoints })
	if i >= 0 {
		s += fmt.Sprintf("; the lengths of %d requests single out %.1f %% of the sessions that have so many",
			mostPoints, 100*l.Points[i].Unique)
	}
	return s
}
