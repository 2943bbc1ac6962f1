package replay

import (
	"reprise/trace"
)

// A share is what is known of a threaded prompt: what was sent for the turn
// before, the reply to it but for the last token, which has no KV, and what
// another turn that goes on from the same reply has sent already. It is counted
// as prompts are sent.
type share struct {
	seen    int        // tokens, if no other has gone on from the reply
	whole   int        // tokens, with all of the reply
	turn    int        // of the template behind the reply
	size    int        // of blocks; 0 where they tell nothing
	aligned bool       // its own part begins where the reply is recorded to end
	beside  *followers // nil where there is no other
}

// followers are the turns that have gone on from one reply.
type followers struct {
	any    bool
	blocks [][]uint64 // of those whose own parts begin where the reply ends
}

// known counts the known tokens of a row's prompt, and has it known to those
// that follow.
func (s *share) known(row *trace.Request) int32 {
	known, f := s.seen, s.beside
	if f == nil {
		return int32(known)
	}
	if f.any {
		known = max(known, s.whole)
	}
	f.any = true
	if s.aligned && s.size > 0 {
		for _, blocks := range f.blocks {
			known = max(known, common(blocks, row, s.size)-s.turn)
		}
		f.blocks = append(f.blocks, row.Blocks)
	}
	return int32(known)
}

// common is the leading tokens that a row has in common with one of other
// blocks.
func common(blocks []uint64, row *trace.Request, size int) int {
	n := 0
	for n < len(blocks) && n < len(row.Blocks) && blocks[n] == row.Blocks[n] {
		n++
	}
	return min(n*size, int(row.InputTokens))
}
