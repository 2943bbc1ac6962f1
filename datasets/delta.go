package datasets

import (
	"slices"
	"strings"

	"reprise/trace"
)

// maxContext bounds the context of accumulated rows, in tokens. Rows that are
// whole contexts and are read as deltas get there soon.
const maxContext = 1 << 24

const askRows = "the rows of a session may hold its whole context, as Dynamo's do, or only what is new in each turn, as AIPerf's for coding agents: say --rows full or --rows delta"

// delta reports whether the row holds only what is new in its turn. Without
// being told it is never assumed: a row that shows a sign of it is refused with
// what to say. The signs are the agentic fields, a mode of deltas, a text by
// itself in a later turn, and a later turn whose prompt does not begin as the
// one before it did, or, without ids, is shorter.
func (d *dialectDecoder) delta(b *builder, r row, before *turnState) (bool, error) {
	if d.rows != "" {
		return d.rows == rowsDelta, nil
	}
	doubt := func(path string) (bool, error) {
		line, col := r.place(path)
		return false, refuse(line, col, askRows)
	}
	for _, f := range agenticFields {
		if _, ok := r.value(f); ok {
			return doubt(f)
		}
	}
	for _, f := range []string{"context_mode", "message_mode"} {
		v, _ := r.value(f)
		switch mode := plain(v); {
		case strings.HasPrefix(mode, "delta"):
			return doubt(f)
		case strings.HasPrefix(mode, "message_array"):
			return false, nil
		}
	}
	e := &b.e
	switch {
	case before == nil:
		return false, nil
	case e.Messages != nil:
		if _, ok := r.value("text_input"); ok {
			return doubt("text_input")
		}
	case len(before.blocks) > 0 && len(e.SourceBlocks) > 0:
		if e.SourceBlocks[0] != before.blocks[0] {
			return doubt("hash_ids")
		}
	case e.InputTokens != nil && *e.InputTokens < before.input:
		return doubt("input_length")
	}
	return false, nil
}

// accumulate makes of what is new in a turn its whole context:
//
//	input = input of the turn before + output of the turn before + new input
//
// A first turn, and one with prefix_reset, is its own context. The row's ids
// number the blocks of its new input alone, counted from where that begins, and
// so do not lie on the blocks of the context, nor are there any for outputs. So
// of the context before, the full blocks keep their ids: its tokens are a
// prefix of this one. All blocks behind them, up to the end of the new input,
// are new: each reaches into a tail, an output or an input that followed one,
// which no other session shares. Ids of first turns stay as they are, and so does
// what sessions share by them.
//
// Messages are put behind those of the turn before. Its reply is not in the
// source, so that later prompts are shorter than they were.
func (d *dialectDecoder) accumulate(b *builder, r row, before *turnState) error {
	e := &b.e
	if reserved(e.SourceBlocks) {
		return badAt(r, "hash_ids", reservedID)
	}
	reset, _ := r.value("prefix_reset")
	if before == nil || reset == true {
		return nil
	}
	if e.Messages != nil {
		e.Messages = slices.Concat(before.messages, e.Messages)
		d.s.notes.count("turns behind replies that the source does not have: their prompts are shorter than they were")
		return nil
	}
	if e.InputTokens == nil {
		return nil // finish says what is missing
	}
	if e.SourceBlocks != nil && len(e.SourceBlocks) != blocksOf(*e.InputTokens, d.blockSize) {
		return badAt(r, "hash_ids", wrongBlocks)
	}
	whole := int64(before.input) + int64(before.output) + int64(*e.InputTokens)
	if whole > maxContext {
		return badAt(r, "input_length", "the context of its session has grown beyond 16777216 tokens: do the rows hold whole contexts (--rows full)?")
	}
	e.InputTokens = trace.Ptr(int32(whole))
	if d.blockSize == 0 || before.unhashed {
		e.SourceBlocks = nil
		return nil
	}
	n := blocksOf(int32(whole), d.blockSize)
	e.SourceBlocks = append(make([]uint64, 0, n), before.blocks...)
	for len(e.SourceBlocks) < n {
		e.SourceBlocks = append(e.SourceBlocks, d.fresh.next())
	}
	return nil
}
