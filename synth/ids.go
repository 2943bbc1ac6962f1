package synth

import (
	"fmt"
	"slices"

	"reprise/trace"
	"reprise/trace/block"
)

// IDs says how many sessions, users and blocks a trace names: one more than
// the greatest id of each, since a trace numbers them densely from 0.
type IDs struct{ Sessions, Users, Blocks uint64 }

// maxIDs bounds each of [IDs], far above any trace, so that a broken file is
// noticed before its numbers spread.
const maxIDs = 1 << 40

// Count reads src to its end. A negative id, or one of 2^40 and above, is an
// error that names the row, counted from 0.
func Count(src trace.Reader[trace.Request]) (IDs, error) {
	var n IDs
	err := trace.Each(src, func(row int64, r *trace.Request) error {
		ok := atLeast(&n.Sessions, r.Session) && atLeast(&n.Users, r.User)
		for _, ids := range [...][]uint64{r.Blocks, r.OutputBlocks} {
			for _, id := range ids {
				ok = ok && id < maxIDs
				n.Blocks = max(n.Blocks, id+1)
			}
		}
		if !ok {
			return fmt.Errorf("row %d: a session, user or block id is not between 0 and 2^40", row)
		}
		return nil
	})
	return n, err
}

// atLeast raises n above an optional id and reports whether the id is valid.
func atLeast(n *uint64, id *int64) bool {
	if id == nil {
		return true
	}
	if *id < 0 || *id >= maxIDs {
		return false
	}
	*n = max(*n, uint64(*id)+1)
	return true
}

// Unshared reads the rows of Src and gives each the block ids that it lacks:
// every block after those that a row names gets an id that no other row has.
// Two kinds of trace need it before they are replayed or profiled by block.
// Some have no blocks at all, as sources that tell only lengths. Others keep
// the ids of shared blocks alone, since a block that occurs once tells nothing
// that the length does not.
//
// New ids follow the order of the rows, so that the same trace always gets the
// same ones; a part of a trace gets others than the whole.
type Unshared struct {
	Src       trace.Reader[trace.Request]
	BlockSize int    // tokens in a full block, at least 1
	Next      uint64 // the first new id: [IDs].Blocks of the whole trace
}

// Read implements [trace.Reader]. Lists that grow are copied.
func (u *Unshared) Read(rows []trace.Request) (int, error) {
	n, err := u.Src.Read(rows)
	for i := range rows[:n] {
		r := &rows[i]
		lacking := block.Count(int(r.InputTokens), u.BlockSize) - len(r.Blocks)
		if lacking <= 0 {
			continue
		}
		// The source may keep the lists of several rows in one array.
		r.Blocks = slices.Grow(slices.Clip(r.Blocks), lacking)
		for range lacking {
			r.Blocks = append(r.Blocks, u.Next)
			u.Next++
		}
	}
	return n, err
}
