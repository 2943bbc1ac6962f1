package release

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"reprise/trace"
	"reprise/trace/sample"
)

// sessionsOfSource is what [trace.Meta] says where the source named sessions.
const sessionsOfSource = "source"

// nobody is the one unit of all rows that name none.
const nobody = -1

// A collector gathers the sessions of a trace, and the units that they belong to. What
// it keeps of a session depends on that session's rows alone. Memory: some 100 bytes
// for each session, 80 for each of its first turns and 8 for each of their own blocks;
// beyond a bound all rows are in private files, by unit, and each file is gathered alone.
type collector struct {
	size    int
	depth   int // of what a session's rows share at least, where the source names none
	user    bool
	request bool // each row by itself
	sourced bool

	index    map[sessionKey]int32
	sessions []session
	units    [][]int32 // sessions of each unit
	unit     map[int64]int32
	rows     int64
	bytes    int // of all this, about

	most  int // bytes before all is in files; 0 is without bound
	files []*trace.Shelf
}

const (
	mostGathered = 256 << 20
	shelves      = 64
)

// A sessionKey tells sessions apart. It is a function of a row alone.
type sessionKey struct {
	unit int64
	kind uint8 // what id is
	id   uint64
}

const (
	bySource uint8 = iota
	byBlock
	byRow
)

// key tells the session of a row, and its unit.
func (c *collector) key(r *trace.Request) (k sessionKey, unit int64) {
	switch {
	case c.request:
		k = sessionKey{kind: byRow, id: uint64(c.rows)}
	case c.sourced:
		session := int64(nobody)
		if r.Session != nil {
			session = *r.Session
		}
		k = sessionKey{kind: bySource, id: uint64(session)}
	case len(r.Blocks) > c.depth:
		k = sessionKey{kind: byBlock, id: r.Blocks[c.depth]}
	default:
		k = sessionKey{kind: byRow, id: uint64(c.rows)}
	}
	unit = nobody
	if c.user {
		if r.User != nil {
			unit = *r.User
		}
		k.unit = unit
	}
	return k, unit
}

// read takes all rows. Failed ones are no load.
func (c *collector) read(ctx context.Context, src trace.Reader[trace.Request], progress func(int64)) error {
	users, rows := false, int64(0)
	err := trace.Each(src, func(row int64, r *trace.Request) error {
		if row%(1<<14) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(row)
			}
		}
		if r.Status == trace.StatusFailed {
			return nil
		}
		if r.OutputTokens == nil {
			return fmt.Errorf("row %d has no output length, which the model is fitted to: name its field at import, "+
				"with --map output_tokens=FIELD", row)
		}
		users = users || r.User != nil
		rows++
		if c.files != nil {
			return c.file(r)
		}
		c.gather(r)
		if c.most > 0 && c.bytes > c.most {
			return c.spill()
		}
		return nil
	})
	if err == nil && (rows == 0 || c.user && !users) {
		err = errors.New("the trace names no user")
		if rows == 0 {
			err = errors.New("the trace has no requests")
		}
	}
	return err
}

// gather takes a row into its session.
func (c *collector) gather(r *trace.Request) {
	if c.index == nil {
		c.index, c.unit = map[sessionKey]int32{}, map[int64]int32{}
	}
	k, unit := c.key(r)
	i, ok := c.index[k]
	if !ok {
		i = int32(len(c.sessions))
		c.index[k] = i
		c.sessions = append(c.sessions, session{trunk: none, nodes: c.prefixes(r)})
		c.bytes += 150 + 8*len(c.sessions[i].nodes)
		u := i
		if c.user {
			if u, ok = c.unit[unit]; !ok {
				u = int32(len(c.units))
				c.unit[unit] = u
			}
		}
		if int(u) == len(c.units) {
			c.units = append(c.units, nil)
		}
		c.units[u] = append(c.units[u], i)
	}
	c.bytes += c.sessions[i].add(r)
	c.rows++
}

// spill moves the rows so far to files, session by session.
func (c *collector) spill() error {
	for range shelves {
		f, err := trace.NewShelf("")
		if err != nil {
			return err
		}
		c.files = append(c.files, f)
	}
	keys := make([]sessionKey, len(c.sessions))
	for k, i := range c.index {
		keys[i] = k
	}
	for i, k := range keys {
		for _, r := range c.sessions[i].requests() {
			if k.kind == bySource && k.id != nobodyID {
				r.Session = trace.Ptr(int64(k.id))
			}
			if c.user && k.unit != nobody {
				r.User = trace.Ptr(k.unit)
			}
			if err := c.file(&r); err != nil {
				return err
			}
		}
	}
	c.index, c.unit, c.sessions, c.units, c.bytes = nil, nil, nil, nil, 0
	return nil
}

// nobodyID is nobody as an id.
const nobodyID = math.MaxUint64

// file puts a row with what counts of it into the file of its unit.
func (c *collector) file(r *trace.Request) error {
	k, _ := c.key(r)
	c.rows++
	in := k.id
	if c.user {
		in = uint64(k.unit)
	}
	_, err := c.files[sample.Key(in, 0)%shelves].Write(
		[]trace.Request{{ArrivalNS: r.ArrivalNS, Session: r.Session, User: r.User,
			InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Blocks: r.Blocks}})
	return err
}

// each calls f with collectors that have each unit in one of them, in memory.
func (c *collector) each(f func(c *collector) error) error {
	if c.files == nil {
		return f(c)
	}
	for _, file := range c.files {
		part := &collector{size: c.size, depth: c.depth, user: c.user, request: c.request, sourced: c.sourced}
		err := trace.Each(file.Reader(), func(_ int64, r *trace.Request) error {
			part.gather(r)
			return nil
		})
		if err == nil {
			err = f(part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// close drops the files.
func (c *collector) close() (err error) {
	for _, f := range c.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// votes counts the units, and lists the prefixes of the first session of each, by level
// and in ascending order.
func (c *collector) votes() (units int64, levels [][]uint64, err error) {
	levels = make([][]uint64, perUnit(c.depth))
	err = c.each(func(c *collector) error {
		units += int64(len(c.units))
		for _, unit := range c.units {
			for level, block := range c.sessions[unit[0]].nodes {
				levels[level] = append(levels[level], block)
			}
		}
		return nil
	})
	for _, level := range levels {
		slices.Sort(level)
	}
	return units, levels, err
}

// add takes the next row of a session, and tells how many bytes it kept, about. After the
// turns that count it keeps no more.
func (s *session) add(r *trace.Request) (bytes int) {
	if s.count++; len(s.turns) == turnsSummed {
		return 0
	}
	t := turn{at: r.ArrivalNS, input: int64(r.InputTokens), output: int64(r.OutputOr(0)),
		blocks: len(r.Blocks), parent: none}
	var common [turnsSummed]int // leading blocks that turns have in common with this one
	for i := range s.turns {
		b, n := &s.turns[i], 0
		if b.parent != none {
			n = min(b.hit, common[b.parent])
		}
		for n >= b.hit && n < len(r.Blocks) && n-b.hit < len(b.own) && r.Blocks[n] == b.own[n-b.hit] {
			n++
		}
		if common[i] = n; n > 0 && n >= t.hit {
			t.hit, t.parent = n, i
		}
	}
	t.own = append(t.own, r.Blocks[t.hit:]...)
	s.turns = append(s.turns, t)
	return 80 + 8*len(t.own)
}

// requests are rows that make the session again, as far as turns count.
func (s *session) requests() (rows []trace.Request) {
	for _, t := range s.turns {
		r := trace.Request{ArrivalNS: t.at, InputTokens: int32(t.input), OutputTokens: trace.Ptr(int32(t.output))}
		if t.parent != none {
			r.Blocks = append(r.Blocks, rows[t.parent].Blocks[:t.hit]...)
		}
		r.Blocks = append(r.Blocks, t.own...)
		rows = append(rows, r)
	}
	return rows
}

// prefixes are the blocks of a row at depths 1, 2, 4… up to the declared depth.
func (c *collector) prefixes(r *trace.Request) (list []uint64) {
	for d := 1; d <= min(c.depth, len(r.Blocks)); d *= 2 {
		list = append(list, r.Blocks[d-1])
	}
	return list
}

// perUnit is in how many counts of prefixes a unit can be.
func perUnit(depth int) int { return bits.Len(uint(depth)) }
