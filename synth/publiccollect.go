package synth

import (
	"errors"
	"fmt"
	"math"

	"reprise/anonymize/dp"
	"reprise/trace"
	"reprise/trace/block"
)

// A record is what is measured of one request. It is a function of the rows of
// one unit alone: what others sent moves nothing of it.
type record struct {
	at            int64 // ns after the declared begin of the capture
	input, output int64
	length        int32 // blocks
	// Of the unit's own requests before this one:
	hit     int32 // leading blocks that they carried
	extends bool  // the hit ends at the last full block of the one that last touched it
	gap     int64 // ns since that one or, without a hit, since the turn before; none
	turn    int32 // in its session, or how many requests it builds on
	pause   int64 // think and tool time; none
	// The blocks at depths 1, 2, 4, 8…, as far as they are full: it may be that
	// many users share them.
	nodes []uint64
}

// A unit is what is protected: a user, a session or a request.
type unit struct {
	dp.Sample[record]
	user int64 // and 1, of a request that is a unit of its own; else 0
}

// A collector samples the records of each unit. Memory is about 100 bytes for
// each record kept, and 40 for each block of each unit, which finding a unit's
// own reuse takes.
type collector struct {
	key      func(r *trace.Request, row int64) int64
	size     int
	sessions bool  // of the source
	alone    bool  // a unit is one request, which has no past
	end      int64 // of the declared capture; no row is as late
	bound    dp.Contribution
	noise    func(key int64) *dp.Noise // that chooses the sample of a unit

	units []unit
	index map[int64]int32
	known map[ownBlock]int32 // who of the unit last touched a block: its number
	past  []pastRequest      // by number
	last  map[ownSession]pastTurn
	rows  int64
}

type (
	ownBlock struct {
		unit  int32
		block uint64
	}
	ownSession struct {
		unit    int32
		session int64
	}
	pastRequest struct {
		at    int64
		full  int32 // depth of its last full block
		chain int32 // how many requests it builds on
	}
	pastTurn struct {
		at   int64
		turn int32
	}
)

// nobody is the one unit of all rows that name none.
const nobody = -1

// unitKey tells the unit of a row.
func unitKey(name string) (func(r *trace.Request, row int64) int64, error) {
	of := func(id *int64) int64 {
		if id == nil {
			return nobody
		}
		return *id
	}
	switch name {
	case UnitUser:
		return func(r *trace.Request, _ int64) int64 { return of(r.User) }, nil
	case UnitSession:
		return func(r *trace.Request, _ int64) int64 { return of(r.Session) }, nil
	case UnitRequest:
		return func(_ *trace.Request, row int64) int64 { return row }, nil
	}
	return nil, errors.New("the unit of privacy is user, session or request")
}

func (c *collector) addRow(row int64, r *trace.Request) error {
	if r.Status == trace.StatusFailed {
		return nil
	}
	if r.InputTokens < 0 || r.OutputTokens < 0 || r.ArrivalNS < 0 {
		return fmt.Errorf("row %d: a token count or its time is negative", row)
	}
	if r.ArrivalNS >= c.end {
		return fmt.Errorf("row %d: it arrives after the declared end of the capture", row)
	}
	if len(r.Blocks) > 0 && c.size == 0 {
		return fmt.Errorf("row %d: it has blocks, but the trace has no block size", row)
	}
	if c.rows++; c.rows > math.MaxInt32 {
		return fmt.Errorf("row %d: a model holds at most 2^31-1 requests", row)
	}
	key := c.key(r, row)
	u, ok := c.index[key]
	if !ok {
		u = int32(len(c.units))
		c.index[key] = u
		c.units = append(c.units, unit{})
		if c.alone && r.User != nil {
			c.units[u].user = *r.User + 1
		}
	}
	rec := record{at: r.ArrivalNS, input: int64(r.InputTokens), output: int64(r.OutputTokens), gap: none, pause: none}
	c.reuse(u, r, &rec)
	c.session(u, r, &rec)
	n := c.noise(key)
	c.units[u].Offer(n, c.bound, rec)
	return n.Err()
}

// reuse finds what the unit's own requests carried before.
func (c *collector) reuse(u int32, r *trace.Request, rec *record) {
	if c.size == 0 {
		return
	}
	rec.length = int32(block.Count(int(r.InputTokens), c.size))
	full := rec.length
	if int(r.InputTokens)%c.size != 0 {
		full--
	}
	owner := int32(none)
	for i, b := range r.Blocks {
		at, ok := c.known[ownBlock{u, b}]
		if !ok || int(rec.hit) != i {
			break
		}
		rec.hit, owner = rec.hit+1, at
	}
	me := pastRequest{at: r.ArrivalNS, full: full}
	if owner != none {
		o := &c.past[owner]
		rec.gap = max(0, r.ArrivalNS-o.at)
		rec.extends = rec.hit == o.full
		me.chain = o.chain + 1
	}
	rec.turn = me.chain
	for d := int32(1); d <= min(full, int32(len(r.Blocks))); d *= 2 {
		rec.nodes = append(rec.nodes, r.Blocks[d-1])
	}
	if c.alone {
		return
	}
	for _, b := range r.Blocks {
		c.known[ownBlock{u, b}] = int32(len(c.past))
	}
	c.past = append(c.past, me)
}

// session finds the turn of the unit's own session.
func (c *collector) session(u int32, r *trace.Request, rec *record) {
	if !c.sessions {
		return
	}
	rec.turn = 0
	if r.Session == nil {
		return
	}
	s := ownSession{u, *r.Session}
	before, later := c.last[s]
	if later {
		rec.turn = before.turn + 1
		if rec.gap == none {
			rec.gap = max(0, r.ArrivalNS-before.at)
		}
		for _, p := range [...]*int64{r.ThinkNS, r.ToolNS} {
			if p != nil {
				rec.pause = max(0, rec.pause) + max(0, *p)
			}
		}
	}
	c.last[s] = pastTurn{r.ArrivalNS, rec.turn}
}
