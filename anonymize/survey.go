package anonymize

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"

	"reprise/trace"
)

// ErrNoUnit is the error of a trace that names neither users nor sessions of its
// source, when the policy asks for one or leaves the choice open.
var ErrNoUnit = errors.New("the trace names neither users nor sessions of its source, so requests cannot be assigned to people; " +
	"the unit request would hide single requests, not people")

// A release is the state of one call of [Release].
type release struct {
	p       *PartnerPolicy
	src     Source
	buckets *buckets

	counts  survey
	sharing *sharing
	merging mergedCells
	links   *links // nil when all are kept
	users   bool   // some row names one
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

// sharerOf returns whom a row counts for where it is asked who has a block. Where the unit
// is the request, who sends a guess several times would confirm it alone: users count, or
// else sessions of the source, or inferred ones with DropOwn. Rows of no user are one's
// together; those of no session failed, and are no conversation of their own.
func (r *release) sharerOf(row int64, q *trace.Request) uint64 {
	id := q.User
	switch {
	case r.p.Unit != UnitRequest || !r.users && !r.sourced() && !r.p.DropOwn:
		unit, _ := r.unitOf(row, q)
		return unit
	case !r.users:
		id = q.Session
	}
	switch {
	case id != nil:
		return uint64(*id) + 1
	case r.users:
		return 0
	}
	return Nobody
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
	users := errors.Is(err, found)
	switch r.users = users; {
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
	s.classes, s.units = &classes{k: r.p.KClass, cells: map[cell]*class{}}, map[uint64]struct{}{}
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

func (r *release) cutsLinks() bool { return r.p.LinkK > 1 }

// A column of names.
type column int

const (
	columnModel column = iota
	columnAdapter
	columnClass
	columnKind
	columnStatus
	nameColumns
)

func (c column) String() string {
	return [nameColumns]string{"model", "adapter", "class", "kind", "status"}[c]
}

// otherName stands for every name that too few units use.
const otherName = "other"

// A named counts who uses a name.
type named struct {
	rows  int64
	units unitSet
	label string
}

// namesOf are the names of a column. Most rows have that of the row before.
type namesOf struct {
	all  map[string]*named
	last string
	of   *named // the last one
}

// look finds a name, or nil.
func (n *namesOf) look(name string) *named {
	if n.of == nil || name != n.last {
		n.last, n.of = name, n.all[name]
	}
	return n.of
}

// addNames counts the names of a row. Kind and status are from closed lists and
// keep their words.
func (s *survey) addNames(q *trace.Request, unit uint64, k int) {
	add := func(c column, name string) {
		if name == "" {
			return
		}
		n := s.names[c].look(name)
		if n == nil {
			n = &named{}
			s.names[c].all[name] = n
		}
		n.rows++
		n.units.add(unit, k)
	}
	add(columnModel, q.Model)
	add(columnAdapter, q.Adapter)
	add(columnKind, q.Kind)
	add(columnStatus, q.Status)
	if q.Class != nil {
		add(columnClass, *q.Class)
	}
}

// label gives the names that enough units use their labels: closed words as they
// are, others by how often they come.
func (s *survey) label() {
	for c := range s.names {
		names := s.names[c].all
		order := make([]string, 0, len(names))
		for name := range names {
			order = append(order, name)
		}
		slices.SortFunc(order, func(a, b string) int { return cmp.Or(cmp.Compare(names[b].rows, names[a].rows), cmp.Compare(a, b)) })
		rank := 0
		for _, name := range order {
			switch n := names[name]; {
			case !n.units.full:
				n.label = otherName
			case column(c) == columnKind || column(c) == columnStatus:
				n.label = name
			default:
				n.label = column(c).String() + "-" + strconv.Itoa(rank)
				rank++
			}
		}
	}
}

func (s *survey) labelOf(c column, name string) string {
	if name == "" {
		return ""
	}
	return s.names[c].look(name).label // all were counted
}
