package audit

import (
	"context"

	"reprise/trace"
)

// crowd is how many requests share a block that nobody takes for the beginning of
// one conversation.
const crowd = 100

// A joiner infers sessions as an attacker does who has nothing but blocks: requests
// are of one conversation when they share the first block that no crowd has. The
// sessions of the file itself begin behind what more than half of the requests
// carry, so that several system prompts would hide in them what is below each.
// Memory is a byte for each block.
type joiner struct {
	carriers []uint8 // by block: requests that have it, up to one more than a crowd
}

// newJoiner counts who has which block, of rows whose ids are numbered from 0;
// others are passed over.
func newJoiner(ctx context.Context, t *trace.Trace) (*joiner, error) {
	rows, err := t.Reader()
	if err != nil {
		return nil, err
	}
	rows.Only("blocks")
	j, refs := &joiner{}, 0
	err = eachOf(ctx, rows, func(r *trace.Request) {
		refs += len(r.Blocks)
		for _, b := range r.Blocks {
			if b >= uint64(refs) {
				continue
			}
			if n := int(b) + 1 - len(j.carriers); n > 0 {
				j.carriers = append(j.carriers, make([]uint8, n)...)
			}
			j.carriers[b] = min(j.carriers[b]+1, crowd+1)
		}
	})
	return j, err
}

// session is the first block that no crowd has; nil when there is none.
func (j *joiner) session(blocks []uint64) *int64 {
	for _, b := range blocks {
		if b < uint64(len(j.carriers)) && j.carriers[b] <= crowd {
			return trace.Ptr(int64(b))
		}
	}
	return nil
}

// joinedRows reads the rows of a trace, in sessions that were inferred.
func joinedRows(ctx context.Context, t *trace.Trace) (func() (trace.Reader[linkRow], error), error) {
	j, err := newJoiner(ctx, t)
	if err != nil {
		return nil, err
	}
	return func() (trace.Reader[linkRow], error) {
		rows, err := t.Reader()
		if err != nil {
			return nil, err
		}
		rows.Only("arrival_ns", "turn", "think_ns", "model", "class", "category", "input_tokens", "output_tokens", "blocks")
		return &linkReader{src: rows, joiner: j}, nil
	}, nil
}
