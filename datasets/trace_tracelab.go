package datasets

import (
	"bufio"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

var traceLabFields = Mapping{
	"input_tokens":     {"input_tokens_total"},
	"output_tokens":    {"output_tokens"},
	"cached_tokens":    {"prefix_tokens"},
	"reasoning_tokens": {"reasoning_output_tokens"},
	"session":          {"session_id"},
	"user":             {"user"},
	"model":            {"model"},
}

// traceLabFormat reads the coding-agent rounds of TraceLab
// (github.com/uw-syfi/TraceLab): a line of JSON for each call of a model, with
// its lengths and the events around it. What the events tell, as TraceLab's own
// analyses read them:
//
//   - A round arrives at the latest message of the user or result of a tool that
//     is not after the first output. Earlier messages of the user may be stale.
//   - It ends at its last output: reasoning, text or a tool call. That is when
//     the agent wrote the event down, so that there is no time to first token.
//   - It follows the round before it in its session, if that had ended; the gap
//     is tool time after a tool's result and think time after a message.
//
// prefix_tokens are what the provider's cache had, and become cached tokens. They
// are no prefix blocks: a cache that was evicted does not make a prompt another.
// Sub-agents are sessions of their own; the trace has no link to who called them.
func traceLabFormat() Format {
	return Format{
		reads: mappedFields(traceLabFields, nil),
		detect: sniff.Lines(func(has func(string) bool) bool {
			return has("session_id") && has("round_index") && has("input_tokens_total") && has("newly_append_tokens")
		}),
		open: func(in *bufio.Reader, _ []byte, o Options, s *Source) (decoder, error) {
			s.info.HasSessions = true
			d := &traceLabDecoder{
				rows: row.JSON{Records: record.NewJSONLines(in), Fields: s.fields}, fields: traceLabFields.fields(),
				times: &mappedDecoder{clock: o.clock(), s: s}, sessions: map[string]lastRound{}, s: s,
			}
			require(d.fields, "input_tokens", "output_tokens", "session")
			return d, nil
		},
	}.described("tracelab")
}

type traceLabDecoder struct {
	rows     row.Reader
	fields   []field
	times    *mappedDecoder // keeps the clock
	sessions map[string]lastRound
	entries  int64
	s        *Source
}

// A lastRound is the latest round of a session.
type lastRound struct {
	entry int64
	done  time.Time // zero when it is not known
}

func (d *traceLabDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *traceLabDecoder) { d.rows = n.rows })
}

func (d *traceLabDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.rows.Next()
	if err != nil {
		return dst, err
	}
	b := builder{}
	if err := fillFields(&b, d.fields, r); err != nil {
		return dst, err
	}
	v, _ := r.Value("round_index")
	turn, ok := countOf(row.Plain(v))
	if !ok {
		return dst, row.BadAt(r, "round_index", "want a whole number that is not negative")
	}
	b.Entry.Turn, b.Entry.Kind = &turn, "chat"
	round, err := d.events(r)
	if err != nil {
		return dst, err
	}
	b.Entry.Time = round.arrival()
	if !round.input.IsZero() && round.last.After(round.input) {
		b.Entry.E2E = trace.Ptr(round.last.Sub(round.input))
	}
	if round.input.IsZero() {
		d.s.notes.Count("rounds without the event that they answer, taken to arrive at their first event")
	}
	d.follow(&b, round)
	d.s.info.HasUsers = d.s.info.HasUsers || b.Entry.User != (trace.Text{})
	d.entries++
	return append(dst, b.Entry), nil
}

// follow puts the round after the one before it in its session.
func (d *traceLabDecoder) follow(b *builder, round roundEvents) {
	before, later := d.sessions[b.session]
	d.sessions[b.session] = lastRound{d.entries, round.last}
	switch {
	case !later:
	case b.Entry.Time.Before(before.done):
		d.s.notes.Count("rounds that arrived before the one before them in their session had ended, which they do " +
			"not wait for")
	default:
		b.Entry.Parents = []int64{before.entry}
		if before.done.IsZero() || round.input.IsZero() {
			break
		}
		gap := trace.Ptr(round.input.Sub(before.done))
		if round.fromTool {
			b.Entry.Tool = gap
		} else {
			b.Entry.Think = gap
		}
	}
}

// roundEvents are the instants of a round; zero when there is none.
type roundEvents struct {
	begin       time.Time // of any event
	input       time.Time // the message or tool result that it answers
	fromTool    bool
	first, last time.Time // outputs
}

func (e *roundEvents) arrival() time.Time {
	if e.input.IsZero() {
		return e.begin
	}
	return e.input
}

const wantEvents = "want a list of events with event_type and timestamp"

// events reads the events of a round.
func (d *traceLabDecoder) events(r row.Row) (e roundEvents, err error) {
	v, _ := r.Value("timing_events")
	list, ok := v.([]any)
	if !ok {
		return e, row.BadAt(r, "timing_events", wantEvents)
	}
	type event struct {
		kind string
		at   time.Time
	}
	events := make([]event, len(list))
	for i, v := range list {
		fields, _ := v.(map[string]any)
		st, ok := stamp.ReadISO(row.Plain(fields["timestamp"]))
		if !ok {
			return e, row.BadAt(r, "timing_events", wantEvents)
		}
		at, f := d.times.instant(st)
		if f != nil {
			f.Line, f.Col = r.Place("timing_events")
			return e, f
		}
		events[i] = event{row.Plain(fields["event_type"]), at}
		if e.begin.IsZero() || at.Before(e.begin) {
			e.begin = at
		}
		switch events[i].kind {
		case "reasoning", "text", "tool_call":
			if e.first.IsZero() || at.Before(e.first) {
				e.first = at
			}
			if at.After(e.last) {
				e.last = at
			}
		}
	}
	for _, ev := range events {
		isInput := ev.kind == "user_message" || ev.kind == "tool_result"
		if isInput && (e.first.IsZero() || !ev.at.After(e.first)) && !ev.at.Before(e.input) {
			e.input, e.fromTool = ev.at, ev.kind == "tool_result"
		}
	}
	if e.begin.IsZero() {
		return e, row.BadAt(r, "timing_events", "it has no time")
	}
	if f := d.times.clock.InCapture(e.arrival()); f != nil {
		f.Line, f.Col = r.Place("timing_events")
		return e, f
	}
	return e, nil
}

// sessionColumns are those of TraceLab's session workloads, beside the name of
// the session, which is session_id or id.
var sessionColumns = []string{"arrival_time", "round_idx", "prefix_len", "input_len", "output_len",
	"tool_wait_after_ms"}

// traceLabSessionsFormat reads the session workloads that TraceLab makes from its
// rounds (artifacts/trace_facts/csv_export): CSV of rounds. Each round begins
// with the first prefix_len tokens of the session so far and adds input_len.
//
//   - arrival_time, in milliseconds, is that of the session. A later round comes
//     when the one before it has been served and the wait of its tools is over.
//     How long serving took is not recorded, so that the time of a later round is
//     only the earliest that it may be; a replay that keeps sessions in order does
//     not use it.
//   - prefix_len becomes ids of 512-token blocks: those full blocks of the prompt
//     before that lie in it whole keep theirs, and all others are new. The last
//     block of a prompt, when it is partial, is another block than the fuller one
//     in its place in the next, whose rest is the answer: see [trace.PartialTail].
func traceLabSessionsFormat() Format {
	return Format{
		csv: true,
		detect: func(head *sniff.Sample) bool {
			columns := head.Header()
			return (slices.Contains(columns, "session_id") || slices.Contains(columns, "id")) &&
				sniff.Columns(sessionColumns...)(head)
		},
		open: func(in *bufio.Reader, _ []byte, o Options, s *Source) (decoder, error) {
			rows, err := row.NewCSV(in, o.csv())
			if err != nil {
				return nil, err
			}
			for _, name := range sessionColumns {
				if !slices.Contains(rows.Names(), name) {
					return nil, fault.Refuse(1, 1, "the header has no column for "+name)
				}
			}
			rows.Admit(s.fields, nil)
			s.info.HasTimes, s.info.TimeUnit, s.info.HasSessions = true, "ms", true
			s.info.BlockSize, s.info.BlocksHashed = sharedBlock, true
			s.notes.SayOnce("later rounds arrive without the time to serve earlier rounds, which this format " +
				"does not record")
			return &sessionsDecoder{rows: rows, sessions: map[string]*sessionState{}}, nil
		},
	}.described("tracelab-sessions")
}

// sharedBlock is the size of the blocks that are made of lengths of prefixes:
// that of this project's own traces.
const sharedBlock = 512

type sessionsDecoder struct {
	rows     *row.CSV
	sessions map[string]*sessionState
	entries  int64
	blocks   blockIDs // so far
}

// A sessionState is a session as far as it has been read.
type sessionState struct {
	entry  int64         // its latest round
	round  int32         // of that
	next   time.Duration // earliest arrival of the round to come
	wait   time.Duration // of the tools after the latest round
	blocks []uint64      // the full ones of its prompt
	name   trace.Text
}

func (d *sessionsDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *sessionsDecoder) { d.rows = n.rows })
}

func (d *sessionsDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.rows.Next()
	if err != nil {
		return dst, err
	}
	e, why := d.readRound(r)
	if why == "" {
		d.entries++
		return append(dst, e), nil
	}
	line, col := r.Place("")
	if r.Cut() {
		return dst, fault.CutOff(line, col, "the last row is not whole")
	}
	return dst, fault.Bad(line, col, why)
}

func (d *sessionsDecoder) readRound(r row.Row) (e trace.Entry, why string) {
	var n [4]int32 // round_idx, prefix_len, input_len, output_len
	for i, name := range sessionColumns[1:5] {
		v, _ := r.Value(name)
		var ok bool
		if n[i], ok = countOf(row.Plain(v)); !ok {
			return e, name + ": want a whole number from 0 to 2147483647"
		}
	}
	arrival, ok := readMillis(r, "arrival_time")
	wait, ok2 := readMillis(r, "tool_wait_after_ms")
	if !ok || !ok2 {
		return e, "want arrival_time and tool_wait_after_ms in milliseconds, up to ten years"
	}
	v, _, ok := row.Find(r, []string{"session_id", "id"})
	id := row.Plain(v)
	if !ok || id == "" || int64(n[1])+int64(n[2]) > math.MaxInt32 {
		return e, "want a session, and no more than 2147483647 tokens of input"
	}
	s := d.sessions[id]
	if s == nil {
		s = &sessionState{next: arrival, name: trace.NewText(strings.Clone(id))}
		d.sessions[strings.Clone(id)] = s
	} else {
		if n[0] <= s.round {
			return e, "the rounds of its session are not in order"
		}
		e.Parents = []int64{s.entry}
		e.Tool = trace.Ptr(s.wait)
	}
	e.Time, e.Session, e.Turn, e.Kind = Epoch.Add(s.next), s.name, &n[0], "chat"
	e.InputTokens, e.OutputTokens = trace.Ptr(n[1]+n[2]), &n[3]
	// The full blocks of the prompt before that lie in the prefix are kept; all others
	// are new.
	kept := s.blocks[:min(len(s.blocks), int(n[1]/sharedBlock))]
	e.SourceBlocks = d.blocks.fill(append([]uint64{}, kept...), blocksOf(n[1]+n[2], sharedBlock))
	s.entry, s.round, s.wait, s.blocks = d.entries, n[0], wait, e.SourceBlocks[:(n[1]+n[2])/sharedBlock]
	s.next = min(s.next+wait, maxPool)
	return e, ""
}

// readMillis reads a time of at most ten years.
func readMillis(r row.Row, column string) (time.Duration, bool) {
	v, _ := r.Value(column)
	return lengthOf(strings.TrimSpace(row.Plain(v)), time.Millisecond, int64(maxPool/time.Millisecond)+1)
}
