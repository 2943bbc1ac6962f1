package export

import (
	"strconv"

	"reprise/trace"
)

// aiperfCommand sends the rows of a file at their times, and lets no answer end before its
// length. It is of chat, AIPerf's default, since its completions have no later turns. Without
// --streaming AIPerf has no time to the first token.
const aiperfCommand = "aiperf profile --model MODEL --url URL --streaming --extra-inputs ignore_eos:true " +
	"--input-file FILE --fixed-schedule"

// aiperfFormat writes AIPerf's dialect of the Mooncake lines
// (--custom-dataset-type mooncake_trace). AIPerf sends the first turn of a
// session at its timestamp and a later one its delay after the answer to the
// turn before; a later turn whose think time is not known gets its timestamp,
// before which AIPerf does not send it, nor before that answer.
//
// Each row holds its whole context. AIPerf would put the turns before it in
// front once more, but for context_mode, which version 0.13 ignores in rows
// without text.
func aiperfFormat() Format {
	return Format{
		Name:    "aiperf",
		About:   "AIPerf's mooncake_trace: Mooncake lines with sessions and delays before later turns",
		Example: `{"session_id": "0", "context_mode": "message_array_with_responses", "timestamp": 1500, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}`,
		Loses: []string{
			"times below the millisecond", "the arrivals of later turns whose think time is known",
			"parents other than the turn before",
			"which part of a delay was tool time", "all columns but arrival, lengths, sessions, think times and blocks",
			"the lengths of later turns: AIPerf 0.13 puts earlier turns in front of them once more, since it does " +
				"not read context_mode here; --to mooncake has no sessions, and keeps lengths",
		},
		Use:          aiperfCommand + " --custom-dataset-type mooncake_trace --isl-block-size BLOCK",
		UseBlockless: aiperfCommand + " --custom-dataset-type mooncake_trace",
		Tried:        "AIPerf 0.13.0, 23 November 2026",
		says:         []string{"session", "turn", "parents", "think_ns", "tool_ns", "blocks"},
		open: func(o Options, l *losses) (encoder, error) {
			e := &aiperfEncoder{losses: l, size: o.BlockSize, sessions: placer{}}
			l.addSentence(func() string {
				if s := otherBlockSize(o.BlockSize); s != "" {
					return s + ": say --isl-block-size " + strconv.Itoa(o.BlockSize)
				}
				return ""
			})
			return e.encode, nil
		},
	}
}

type aiperfEncoder struct {
	losses   *losses
	size     int
	sessions placer
}

func (e *aiperfEncoder) encode(b []byte, row int64, r *trace.Request) ([]byte, error) {
	b = append(b, '{')
	at := place{previous: -1}
	if r.Session != nil {
		at = e.sessions.place(row, r)
		b = append(b, `"session_id": "`...)
		b = strconv.AppendInt(b, *r.Session, 10)
		b = append(b, `", "context_mode": "message_array_with_responses", `...)
	}
	if delay, ok := delayOf(r); ok && at.previous >= 0 {
		b = append(b, `"delay": `...)
		b = strconv.AppendInt(b, milliseconds(delay), 10)
	} else {
		b = append(b, `"timestamp": `...)
		b = strconv.AppendInt(b, milliseconds(r.ArrivalNS), 10)
	}
	e.count(r, at)
	b = appendLengths(b, r)
	if e.size > 0 && len(r.Blocks) > 0 {
		if err := wantBlocks(r, e.size, "AIPerf"); err != nil {
			return b, err
		}
		b = append(b, `, "hash_ids": `...)
		b = appendIDs(b, r.Blocks, ", ")
	}
	return append(b, "}\n"...), nil
}

// delayOf returns the time from the last parent's end to the row, when known.
func delayOf(r *trace.Request) (ns int64, ok bool) {
	for _, part := range []*int64{r.ThinkNS, r.ToolNS} {
		if part != nil {
			ns, ok = ns+max(*part, 0), true
		}
	}
	return ns, ok
}

// count counts what the line at that place leaves out of a row.
func (e *aiperfEncoder) count(r *trace.Request, at place) {
	later := at.previous >= 0
	delay, known := delayOf(r)
	e.losses.count(roundedToMS, r.ArrivalNS%1e6 != 0 && !(later && known))
	e.losses.count("%d of %d rows are later turns, with a delay in place of their arrival", later && known)
	e.losses.count("%d of %d rows are later turns, to which AIPerf 0.13 adds the turns before them once more: --to "+
		"mooncake has no sessions, and keeps lengths", later)
	e.losses.count("%d of %d delays were rounded to the millisecond", later && known && delay%1e6 != 0)
	e.losses.count("%d of %d rows have a think or tool time but no turn before them in the file", known && !later)
	e.losses.count("%d of %d delays do not tell tool time from think time", later && r.ToolNS != nil)
	e.losses.count("%d of %d rows have a number of their turn that is not their place in the session", r.Turn != nil &&
		*r.Turn != at.turn)
	// A reader that has only sessions takes a row to wait for the one before in its session.
	asRead := len(r.Parents) == 0
	if later {
		asRead = len(r.Parents) == 1 && r.Parents[0] == at.previous
	}
	e.losses.count("%d of %d rows: parent links become \"wait for the previous turn\", or are lost", !asRead)
}
