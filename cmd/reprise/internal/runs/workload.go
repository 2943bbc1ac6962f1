package runs

import (
	"fmt"

	"reprise/anonymize"
	"reprise/replay/result"
	"reprise/synth"
	"reprise/trace"
)

// Rows is a reader that knows how many rows it has.
type Rows struct {
	trace.Reader[trace.Request]
	Total int64
}

// OpenRows reads a workload. One without blocks gets blocks that nothing
// shares, so that no two of its prompts are equal.
func OpenRows(t *trace.Trace) (*Rows, int, error) {
	rows, err := t.Reader()
	if err != nil {
		return nil, 0, err
	}
	if t.Meta.BlockSize > 0 {
		return &Rows{rows, rows.Rows()}, t.Meta.BlockSize, nil
	}
	src := &synth.Unshared{Src: rows, BlockSize: UnsharedBlock}
	return &Rows{src, rows.Rows()}, UnsharedBlock, nil
}

// UnsharedBlock is the block size given to a trace without blocks, so that its
// prompts differ.
const UnsharedBlock = 512

// PrivacyOf is what the card of a workload says, for the results made of it.
func PrivacyOf(m *trace.Meta) (*result.Privacy, error) {
	if m.Card == "" {
		return nil, nil
	}
	card, err := anonymize.ParseCard(m.Card, m.CardHash)
	if err != nil {
		return nil, fmt.Errorf("the workload's privacy card: %w", err)
	}
	return &result.Privacy{Card: m.CardHash, Unit: card.Unit, Time: card.Time, Risks: card.Risks}, nil
}
