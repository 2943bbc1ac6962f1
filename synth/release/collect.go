package release

import (
	"context"
	"errors"
	"math/bits"

	"reprise/trace"
)

// sessionsOfSource is what [trace.Meta] says where the source named sessions.
const sessionsOfSource = "source"

// nobody is the one unit of all rows that name none.
const nobody = -1

// A collector gathers the sessions of a trace, and the units that they belong to. What
// it keeps of a session depends on that session's rows alone. Memory: some 100 bytes
// for each session, 80 for each of its first turns and 8 for each of their own blocks.
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
}

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
	c.index, c.unit = map[sessionKey]int32{}, map[int64]int32{}
	users := false
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
		k, unit := c.key(r)
		i, ok := c.index[k]
		if !ok {
			i = int32(len(c.sessions))
			c.index[k] = i
			c.sessions = append(c.sessions, session{trunk: none, nodes: c.prefixes(r)})
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
		users = users || r.User != nil
		c.sessions[i].add(r)
		c.rows++
		return nil
	})
	if err == nil && (c.rows == 0 || c.user && !users) {
		err = errors.New("the trace names no user")
		if c.rows == 0 {
			err = errors.New("the trace has no requests")
		}
	}
	return err
}

// add takes the next row of a session. After the turns that count it keeps no more.
func (s *session) add(r *trace.Request) {
	if s.count++; len(s.turns) == turnsSummed {
		return
	}
	t := turn{at: r.ArrivalNS, input: int64(r.InputTokens), output: int64(r.OutputTokens), blocks: len(r.Blocks), parent: none}
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
