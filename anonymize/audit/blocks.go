package audit

import (
	"context"
	"math/bits"

	"reprise/trace"
)

// blockBytes is the memory for what is known of blocks. Blocks beyond it are
// looked at in another pass over the rows.
const blockBytes = 256 << 20

// distinctBlocks counts the blocks of rows whose ids are below n, in a bit each.
func distinctBlocks(ctx context.Context, t *trace.Trace, n uint64) (int, error) {
	rows, err := t.Reader()
	if err != nil {
		return 0, err
	}
	seen := make([]uint64, n/64+1)
	rows.Only("blocks", "output_blocks")
	err = eachOf(ctx, rows, func(r *trace.Request) {
		for _, list := range [][]uint64{r.Blocks, r.OutputBlocks} {
			for _, id := range list {
				if id < n {
					seen[id/64] |= 1 << (id % 64)
				}
			}
		}
	})
	distinct := 0
	for _, word := range seen {
		distinct += bits.OnesCount64(word)
	}
	return distinct, err
}

// unchained counts how often a block with an id below n stands at another place,
// or behind another block, than before. A block's id is of all before it, and what
// fills lists up must not be told by standing behind others each time: their number
// is the length. limit is of the memory.
func unchained(ctx context.Context, t *trace.Trace, n uint64, limit uint64) (count int, err error) {
	step := max(limit/8, 1)
	for from := uint64(0); from < n; from += step {
		rows, err := t.Reader()
		if err != nil {
			return 0, err
		}
		rows.Only("blocks")
		at := make([]uint64, min(step, n-from)) // by block: a hash of where it stands
		err = eachOf(ctx, rows, func(r *trace.Request) {
			past := uint64(0)
			for i, b := range r.Blocks {
				if b >= from && b-from < uint64(len(at)) {
					here := keyed(uint64(i), past) | 1 // never 0, which is nowhere
					if was := at[b-from]; was != 0 && was != here {
						count++
					}
					at[b-from] = here
				}
				past = b + 1
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return count, nil
}
