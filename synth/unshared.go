package synth

import (
	"slices"

	"reprise/trace"
)

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
		lacking := blockCount(r.InputTokens, u.BlockSize) - len(r.Blocks)
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

// blockCount is how many blocks of size tokens a prompt takes, the last of
// which may be partial.
func blockCount(tokens int32, size int) int {
	return (int(tokens) + size - 1) / size
}
