package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Merge puts the rows of several traces into one order of arrival, while it reads them side
// by side. Rows of one instant come in the order of their traces.
//
// Ids of two imports do not relate: block 7 of one is another block than block 7 of the other,
// and so with sessions, users and labels such as model-0. So nothing is shared between two traces, and
// all of these are numbered anew, in the order in which they appear. Names that were kept stay. The shards
// of one import do share, and have a merge of their own.
//
// It takes 8 bytes on disk for each row and each distinct block, session and user, some pages
// of these in memory, and memory for one page of each column of each trace.
type Merge struct {
	traces []*Trace
	dir    string
	meta   Meta
	rows   int64
	shift  []int64 // of each trace: from its arrivals to those of the merge, in ns
	at     []*spilledNumbers
	open   []*spilledNumbers // all private files
}

// mergePages is how many pages of numbers of one kind are in memory, of all traces together: 32 MiB.
const mergePages = 1024

// sideRows is how many rows of a trace are read at once.
const sideRows = 256

// NewMerge looks through traces, which stay open until the rows were read. The private files are in dir,
// or in os.TempDir when it is empty. See [JoinMeta] for what is refused. Traces without a declared capture
// window all begin at once, since nothing tells how far they are apart; those with one stand where it says.
func NewMerge(dir string, traces []*Trace) (m *Merge, err error) {
	names, metas := make([]string, len(traces)), make([]Meta, len(traces))
	for i, t := range traces {
		names[i], metas[i] = t.name, t.Meta
	}
	m = &Merge{traces: traces, dir: dir}
	if m.meta, err = JoinMeta(names, metas); err != nil {
		return nil, err
	}
	for _, t := range traces {
		m.shift = append(m.shift, int64(t.Meta.Capture.after(m.meta.Capture)))
	}
	if m.at, err = m.numbers(); err == nil {
		err = m.place()
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// numbers opens private numbers for each trace.
func (m *Merge) numbers() (list []*spilledNumbers, err error) {
	for range m.traces {
		n, err := newSpilledNumbers(m.dir, mergePages/len(m.traces))
		if err != nil {
			return nil, err
		}
		list, m.open = append(list, n), append(m.open, n)
	}
	return list, nil
}

// place finds where each row goes, since a parent may be anywhere.
func (m *Merge) place() error {
	sources, next := make([]Reader[Arrival], len(m.traces)), make([]uint64, len(m.traces))
	for i, t := range m.traces {
		r, err := Columns[Arrival](t)
		if err != nil {
			return err
		}
		sources[i] = r
	}
	side := NewSideBySide(sources, sideRows, func(i int, a *Arrival, j int, b *Arrival) int {
		return cmp.Compare(a.ArrivalNS+m.shift[i], b.ArrivalNS+m.shift[j])
	})
	for {
		i, _, err := side.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.traces[i].name, err)
		}
		row, err := m.at[i].at(next[i], true)
		if err != nil {
			return err
		}
		*row = uint64(m.rows)
		next[i]++
		m.rows++
	}
}

// Meta is the metadata of the merged trace, without its digest.
func (m *Merge) Meta() Meta { return m.meta }

// Rows is the number of rows of all traces.
func (m *Merge) Rows() int64 { return m.rows }

// Close drops the private files. The traces stay open.
func (m *Merge) Close() (err error) {
	for _, n := range m.open {
		err = errors.Join(err, n.close())
	}
	return err
}

// Reader reads the merged rows. Ids begin anew with each reader.
func (m *Merge) Reader() (Reader[Request], error) {
	sources := make([]Reader[Request], len(m.traces))
	for i, t := range m.traces {
		r, err := t.Reader()
		if err != nil {
			return nil, err
		}
		sources[i] = r
	}
	out := &mergedRows{m: m, labels: make([][4]map[string]string, len(m.traces))}
	out.side = NewSideBySide(sources, sideRows, func(i int, a *Request, j int, b *Request) int {
		return cmp.Compare(a.ArrivalNS+m.shift[i], b.ArrivalNS+m.shift[j])
	})
	for _, ids := range []*mergedIDs{&out.blocks, &out.sessions, &out.users} {
		var err error
		if ids.of, err = m.numbers(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type mergedRows struct {
	m                       *Merge
	side                    *SideBySide[Request]
	blocks, sessions, users mergedIDs
	labels                  [][4]map[string]string // of each trace, new ones by the old
	named                   [4]int                 // new ones of each kind
}

// mergedIDs are ids of one kind by first appearance.
type mergedIDs struct {
	of   []*spilledNumbers // of each trace: new ids by the old, plus one
	next uint64
}

func (ids *mergedIDs) id(i int, old uint64) (uint64, error) {
	at, err := ids.of[i].at(old, false)
	if err != nil {
		return 0, err
	}
	if *at == 0 {
		if at, err = ids.of[i].at(old, true); err != nil {
			return 0, err
		}
		ids.next++
		*at = ids.next
	}
	return *at - 1, nil
}

// Read implements [Reader].
func (r *mergedRows) Read(rows []Request) (int, error) {
	for n := range rows {
		i, q, err := r.side.Next()
		if err != nil {
			return n, err
		}
		rows[n] = *q
		if err := r.place(i, &rows[n]); err != nil {
			return n, fmt.Errorf("%s: %w", r.m.traces[i].name, err)
		}
	}
	return len(rows), nil
}

// place makes a row of a trace one of the merged one.
func (r *mergedRows) place(i int, q *Request) error {
	q.ArrivalNS += r.m.shift[i]
	for k, p := range q.Parents {
		at, err := r.m.at[i].at(uint64(p), false)
		if err != nil {
			return err
		}
		q.Parents[k] = int64(*at)
	}
	for _, people := range []struct {
		id  *int64
		ids *mergedIDs
	}{{q.Session, &r.sessions}, {q.User, &r.users}} {
		if people.id != nil {
			id, err := people.ids.id(i, uint64(*people.id))
			if err != nil {
				return err
			}
			*people.id = int64(id)
		}
	}
	for _, ids := range [][]uint64{q.Blocks, q.OutputBlocks} {
		for k, old := range ids {
			id, err := r.blocks.id(i, old)
			if err != nil {
				return err
			}
			ids[k] = id
		}
	}
	q.Model, q.Adapter = r.label(i, 0, q.Model), r.label(i, 1, q.Adapter)
	if q.Class != nil {
		*q.Class = r.label(i, 2, *q.Class)
	}
	if q.Replica != nil {
		*q.Replica = r.label(i, 3, *q.Replica)
	}
	return nil
}

var labelPrefixes = [4]string{"model-", "adapter-", "class-", "replica-"}

// label is a name in the merged trace. One that an import put in place of another, such as
// model-0, has a new number.
func (r *mergedRows) label(i, kind int, name string) string {
	digits, ok := strings.CutPrefix(name, labelPrefixes[kind])
	if !ok {
		return name
	}
	if to, ok := r.labels[i][kind][name]; ok {
		return to
	}
	if n, err := strconv.ParseUint(digits, 10, 64); err != nil || strconv.FormatUint(n, 10) != digits {
		return name
	}
	if r.labels[i][kind] == nil {
		r.labels[i][kind] = map[string]string{}
	}
	to := labelPrefixes[kind] + strconv.Itoa(r.named[kind])
	r.named[kind]++
	r.labels[i][kind][name] = to
	return to
}
