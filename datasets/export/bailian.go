package export

import (
	"slices"
	"strconv"

	"reprise/datasets"
	"reprise/trace"
)

// bailianFormat writes the format of the Qwen-Bailian usage traces
// (github.com/alibaba-edu/qwen-bailian-usagetraces-anon): seconds, ids of
// 16-token prefix blocks with one for the rest, and requests that name the one
// before in their conversation. Blocks of another size are regrouped.
//
// chat_id is the number of the row. parent_chat_id is its latest parent; for a
// row of a session without parents the row before in the session, unless its
// turn is the first; else -1. turn counts from 1.
func bailianFormat() Format {
	return Format{
		Name: "bailian",
		About: "JSON lines of the Qwen-Bailian traces: seconds, lengths, conversations, ids of 16-token " +
			"prefix blocks",
		Example: `{"chat_id":0,"parent_chat_id":-1,"timestamp":1.5002,"input_length":40,"output_length":21,"type":"text","turn":1,"hash_ids":[0,1,2]}`,
		Loses: []string{
			"think and tool times", "all parents but the latest",
			"all columns but arrival, lengths, conversations and blocks",
			"the remainder of shared prefixes, if the block size is not a multiple of 16",
		},
		Use: aiperfCommand + " --custom-dataset-type bailian_trace",
		Tried: "AIPerf 0.13.0, 23 November 2026: right for first turns; it puts the turns before a later one " +
			"in front of that once more",
		NeedsBlocks: true,
		says:        []string{"session", "turn", "parents", "blocks"},
		open: func(o Options, l *losses) (encoder, error) {
			e := &bailianEncoder{losses: l, size: o.BlockSize, regrouping: regroup(o.BlockSize, datasets.BailianBlock),
				sessions: placer{}}
			l.addSentence(e.regrouping.loss)
			return e.encode, nil
		},
	}
}

type bailianEncoder struct {
	losses     *losses
	size       int
	regrouping *regrouping
	sessions   placer
}

func (e *bailianEncoder) encode(b []byte, row int64, r *trace.Request) ([]byte, error) {
	if err := wantBlocks(r, e.size, "Bailian"); err != nil {
		return b, err
	}
	ids, err := e.regrouping.blocks(r)
	if err != nil {
		return b, err
	}
	parent, turn, previous := int64(-1), int64(1), int64(-1) // -1 for none
	if r.Session != nil {
		at := e.sessions.place(row, r)
		previous, turn = at.previous, int64(at.turn)+1
	}
	if r.Turn != nil {
		turn = int64(*r.Turn) + 1
	}
	switch {
	case len(r.Parents) > 0:
		parent = slices.Max(r.Parents)
	case turn > 1:
		parent = previous
	}
	e.losses.count("%d of %d rows have several parents: only the latest is kept", len(r.Parents) > 1)
	e.losses.count("%d of %d rows are a first turn of a session that had begun before, and look like another session",
		parent < 0 && previous >= 0)
	b = append(b, `{"chat_id":`...)
	b = strconv.AppendInt(b, row, 10)
	b = append(b, `,"parent_chat_id":`...)
	b = strconv.AppendInt(b, parent, 10)
	b = append(b, `,"timestamp":`...)
	b = appendSeconds(b, r.ArrivalNS)
	b = append(b, `,"input_length":`...)
	b = strconv.AppendInt(b, int64(r.InputTokens), 10)
	if r.OutputTokens != nil {
		b = append(b, `,"output_length":`...)
		b = strconv.AppendInt(b, int64(*r.OutputTokens), 10)
	}
	kind := `,"type":"text","turn":`
	if r.Images != nil && *r.Images > 0 || r.ImageTokens != nil && *r.ImageTokens > 0 {
		kind = `,"type":"image","turn":`
	}
	b = append(b, kind...)
	b = strconv.AppendInt(b, turn, 10)
	b = append(b, `,"hash_ids":`...)
	b = appendIDs(b, ids, ",")
	return append(b, "}\n"...), nil
}

// A place is that of a row in its session, by the order of the rows.
type place struct {
	turn     int32 // from 0
	previous int64 // the row before in the session, -1 for none
}

// A placer finds the places of rows. Its memory is some 50 bytes a session.
type placer map[int64]place

// place returns the place of a row that belongs to a session. It is called once for
// each such row, in order.
func (p placer) place(row int64, r *trace.Request) place {
	last, ok := p[*r.Session]
	at := place{previous: -1}
	if ok {
		at = place{turn: last.turn + 1, previous: last.previous}
	}
	p[*r.Session] = place{turn: at.turn, previous: row}
	return at
}
