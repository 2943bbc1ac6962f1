package anonymize

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"reprise/trace"
)

// Partner is the tier of k-anonymous records for a partner under contract: times
// and lengths in buckets that several users share, block ids across users only
// where several have them.
const Partner = "partner"

// Units of privacy: who is counted, and hidden among others.
const (
	UnitUser    = "user"
	UnitSession = "session" // of the source, never an inferred one
	UnitRequest = "request" // hides a request among others, not a person
)

// PartnerPolicy are the settings of [Release]. Zero values stand for the defaults.
type PartnerPolicy struct {
	// Unit is [UnitUser], [UnitSession] or [UnitRequest]. When empty it is the
	// user where the trace has users, else the session of the source; a trace
	// with neither is [ErrNoUnit].
	Unit string

	KShare     int           // users that must have a block for its id to be the same for all of them: 5
	KClass     int           // users that a pair of lengths, and a name, must have: 11
	LinkK      int           // users that the lengths of a session's turns must have for these to stay linked: KClass; 1 links all
	PerOctave  int           // buckets of lengths in an octave: 2
	Quantum    time.Duration // of times: 1 s
	DropOwn    bool          // blocks that fewer than KShare have link nothing, not even the requests of one of them; see [Release]
	Suppressed float64       // most of the requests that may be left out: 0.05

	SpillDir string
	Confined *Confinement // of this process, for the card; nil where it is not confined
	Progress func(step string, done int64)

	// Noise is nil, for the system's randomness. Only tests and audits set it.
	Noise io.Reader

	limits limits
	watch  func(row, at int64) // of tests: which row came out at what instant
}

// ErrNoUnit says that nothing tells whose requests are whose.
var ErrNoUnit = errors.New("the trace names neither users nor sessions of its source, so nothing says which requests are one person's; " +
	"the unit request would hide one request among others, not a person")

func (p *PartnerPolicy) settle() error {
	for _, d := range []struct{ v, to *int }{{&p.KShare, ptr(5)}, {&p.KClass, ptr(11)}, {&p.PerOctave, ptr(2)}} {
		if *d.v == 0 {
			*d.v = *d.to
		}
	}
	if p.LinkK == 0 {
		p.LinkK = p.KClass
	}
	if p.Quantum == 0 {
		p.Quantum = time.Second
	}
	if p.Suppressed == 0 {
		p.Suppressed = 0.05
	}
	if p.Noise == nil {
		p.Noise = rand.Reader
	}
	p.limits.settle()
	switch {
	case p.KShare < 1 || p.KShare > 1000 || p.KClass < 1 || p.KClass > 1_000_000:
		return errors.New("k_share is from 1 to 1,000 and k_class from 1 to 1,000,000")
	case p.LinkK < 1 || p.LinkK > 1_000_000:
		return errors.New("k_link is from 1 to 1,000,000")
	case p.PerOctave < 1 || p.PerOctave > 16:
		return errors.New("there are 1 to 16 buckets in an octave")
	case p.Quantum < time.Millisecond || p.Quantum > time.Hour:
		return errors.New("the quantum of times is from a millisecond to an hour")
	case !(p.Suppressed > 0 && p.Suppressed < 1):
		return errors.New("the share of requests that may be left out is between 0 and 1")
	case p.Unit != "" && p.Unit != UnitUser && p.Unit != UnitSession && p.Unit != UnitRequest:
		return errors.New("the unit is user, session or request")
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

// dropsOwn tells whether there are blocks to drop: with KShare of 1 all are shared.
func (p *PartnerPolicy) dropsOwn() bool { return p.DropOwn && p.KShare > 1 }

// A Source is a trace of tier internal that can be read several times.
type Source struct {
	Meta trace.Meta
	Open func() (trace.Reader[trace.Request], error)
}

// Release writes the rows of tier partner of a trace of tier internal to dst,
// in their final order:
//
//  1. The units (users) of each pair of buckets of lengths, of each name and of
//     each block are counted.
//  2. Pairs with fewer than KClass units are merged with their neighbours, or
//     left out; a name with fewer is other.
//  3. Turns of a session stay linked as long as LinkK units have sessions of the
//     same lengths, turn by turn; then another session begins.
//  4. A block that at least KShare units have keeps one id; that of fewer is
//     another one for each of them. So reuse of what few have stays within each,
//     and nobody can find out by prompts of their own what another one sent. With
//     DropOwn it is gone as well, and with it what links the requests of each.
//     Where the unit is the request, a conversation of KShare requests would
//     share its own beginning: DropOwn counts sessions then, inferred ones too,
//     and no rows of none, so that blocks are shared by never more requests than
//     without. The list is cut, or filled with ids that come once, to the length
//     of the bucket.
//  5. Arrivals are drawn anew within the bin of the quantum that they were in, and
//     count from the begin of the declared capture, or else from the first of them.
//  6. Rows are sorted, annotated and numbered as at an import: categories and
//     inferred sessions are those of what is released. With DropOwn no sessions
//     are inferred: what several have in common is nobody's conversation.
//
// What becomes of each column is in the rules of the [Card]. Memory is bounded as
// in [Run], with two bits for each distinct block beside, 20 bytes for each row
// while links are decided, and 256 MB while units of blocks are counted, which
// takes more passes over the rows for more blocks.
func Release(ctx context.Context, p PartnerPolicy, src Source, dst trace.Writer[trace.Request]) (Card, error) {
	if err := p.settle(); err != nil {
		return Card{}, err
	}
	if src.Meta.Tier != Internal {
		return Card{}, fmt.Errorf("a trace of tier %s cannot be released to a partner: want one of tier %s", orNone(src.Meta.Tier), Internal)
	}
	r := &release{p: &p, src: src, buckets: newBuckets(p.PerOctave)}
	if err := r.survey(ctx); err != nil {
		return Card{}, err
	}
	if err := r.decide(ctx); err != nil {
		return Card{}, err
	}
	return r.write(ctx, dst)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// A release is one under way.
type release struct {
	p       *PartnerPolicy
	src     Source
	buckets *buckets

	counts  survey
	sharing *sharing
	merging mergedCells
	links   *links // nil when all are kept
	before  Reuse
}

// survey is what the first pass over the rows counts.
type survey struct {
	rows, blocks, refs int64
	withUnit           int64 // rows that name their unit
	units              map[uint64]struct{}
	classes            *classes
	names              [nameColumns]namesOf
	input, output      int64
	turns              sessionTurns // where links are cut
}

// unitOf returns whom a row counts for. All rows that do not say count as one.
func (r *release) unitOf(row int64, q *trace.Request) (unit uint64, named bool) {
	id := q.User
	switch r.p.Unit {
	case UnitRequest:
		return uint64(row) + 1, true
	case UnitSession:
		id = q.Session
	}
	if id == nil {
		return 0, false
	}
	return uint64(*id) + 1, true
}

// sharerOf returns whom a row counts for where it is asked who has a block. Rows of
// no session are those that failed, which are no conversation of their own.
func (r *release) sharerOf(row int64, q *trace.Request) uint64 {
	switch {
	case !r.p.DropOwn || r.p.Unit != UnitRequest:
		unit, _ := r.unitOf(row, q)
		return unit
	case q.Session == nil:
		return Nobody
	}
	return uint64(*q.Session)
}

// sourced tells whether sessions are those of the source.
func (r *release) sourced() bool { return r.src.Meta.Sessions == "source" }

// each reads all rows.
func (r *release) eachRow(ctx context.Context, step string, f func(row int64, q *trace.Request) error) error {
	rows, err := r.src.Open()
	if err != nil {
		return err
	}
	return trace.Each(rows, func(row int64, q *trace.Request) error {
		if row%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if r.p.Progress != nil {
				r.p.Progress(step, row)
			}
		}
		return f(row, q)
	})
}

// chooseUnit takes the user where there is one, else the session of the source.
func (r *release) chooseUnit(ctx context.Context) error {
	sourced := r.sourced()
	found := errors.New("found")
	err := r.eachRow(ctx, "look for users", func(_ int64, q *trace.Request) error {
		if q.User != nil {
			return found
		}
		return nil
	})
	switch users := errors.Is(err, found); {
	case err != nil && !users:
		return err
	case r.p.Unit == "" && users:
		r.p.Unit = UnitUser
	case r.p.Unit == "" && sourced:
		r.p.Unit = UnitSession
	case r.p.Unit == "", r.p.Unit == UnitUser && !users, r.p.Unit == UnitSession && !sourced:
		return ErrNoUnit
	}
	return nil
}

func (r *release) survey(ctx context.Context) error {
	if err := r.chooseUnit(ctx); err != nil {
		return err
	}
	s := &r.counts
	s.classes, s.units = newClasses(r.p.KClass), map[uint64]struct{}{}
	for c := range s.names {
		s.names[c].all = map[string]*named{}
	}
	return r.eachRow(ctx, "count", func(row int64, q *trace.Request) error {
		unit, named := r.unitOf(row, q)
		if named {
			s.withUnit++
		}
		if r.p.Unit != UnitRequest {
			s.units[unit] = struct{}{}
		}
		s.rows++
		s.input, s.output = s.input+int64(q.InputTokens), s.output+int64(q.OutputTokens)
		at := r.cellOf(q)
		s.classes.add(at, unit)
		if r.cutsLinks() && r.sourced() {
			if err := s.turns.add(q, at, unit); err != nil {
				return err
			}
		}
		s.addNames(q, unit, r.p.KClass)
		s.refs += int64(len(q.Blocks) + len(q.OutputBlocks)) // both are numbered together
		for _, b := range q.Blocks {
			if b > math.MaxInt64-1 {
				return errDense
			}
			s.blocks = max(s.blocks, int64(b)+1)
		}
		r.before.Count(q, r.src.Meta.BlockSize)
		return nil
	})
}

func (r *release) cellOf(q *trace.Request) cell {
	return cell{r.buckets.bucketOf(int64(q.InputTokens)), r.buckets.bucketOf(int64(q.OutputTokens))}
}

// decide makes the classes and looks who has which block.
func (r *release) decide(ctx context.Context) (err error) {
	s := &r.counts
	if s.blocks > s.refs {
		return errDense
	}
	budget := int64(r.p.Suppressed * float64(s.rows))
	if r.merging, err = s.classes.merge(2*r.p.PerOctave, budget); err != nil && s.rows > 0 {
		return err
	}
	r.links = r.link()
	r.sharing, err = countSharing(ctx, r.src.Open, r.sharerOf, s.blocks, r.p.KShare, r.p.limits.sharing)
	return err
}

// write transforms the rows, and brings them in their final order.
func (r *release) write(ctx context.Context, dst trace.Writer[trace.Request]) (Card, error) {
	p := Policy{Tier: Partner, SourceBlock: r.src.Meta.BlockSize, BlockSize: max(r.src.Meta.BlockSize, 1), SpillDir: r.p.SpillDir, Progress: r.p.Progress, limits: r.p.limits}
	c := newCollector(&p)
	sorter := c.sorter
	defer sorter.Close()
	r.counts.label()
	t := &transformer{release: r, c: c, times: newRetimer(int64(r.p.Quantum), int64(r.src.Meta.Capture.Length()), r.p.Noise)}
	if err := r.eachRow(ctx, "release", t.addRow); err != nil {
		return Card{}, err
	}
	if t.times.err != nil {
		return Card{}, fmt.Errorf("no randomness: %w", t.times.err)
	}
	sorted, err := sorter.Sort()
	if err != nil {
		return Card{}, err
	}
	defer sorted.Close()
	f := &finisher{p: &p, sorted: sorted, totals: c.totals, keepSessions: r.sourced() || r.p.dropsOwn(), keepNames: true, noBlocks: r.counts.refs == 0,
		declared: r.src.Meta.Capture.Declared()}
	after := &countingWriter{dst: Enforce(Partner, dst), size: r.src.Meta.BlockSize}
	if c.keyed {
		err = f.finishSpilled(ctx, c.blocks, c.refs, after)
	} else {
		err = f.finishInMemory(ctx, after)
	}
	if err != nil {
		return Card{}, err
	}
	return r.card(t, after, f.totals), nil
}
