package datasets

import (
	"bufio"
	"time"

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

// traceLabReads is what is read beside the mapping.
var traceLabReads = []SourceField{
	fieldAt("round_index", "turn", ""),
	fieldAt("timing_events[].timestamp", "arrival_ns e2e_ns think_ns tool_ns parents", ""),
	fieldAt("timing_events[].event_type", "", decides),
}

// traceLabFormat reads the coding-agent rounds of TraceLab
// (github.com/uw-syfi/TraceLab): a line of JSON for each call of a model, with
// its lengths and the events around it. What the events tell, as TraceLab's own
// analyses read them:
//
//   - A round arrives at the latest message of the user or result of a tool that
//     is not behind the first output. Earlier messages of the user may be stale.
//   - It ends at its last output: reasoning, text or a tool call. That is when
//     the agent wrote the event down, so that there is no time to first token.
//   - It follows the round before it in its session, if that had ended; the gap
//     is tool time behind a tool's result and think time behind a message.
//
// prefix_tokens are what the provider's cache had, and become cached tokens. They
// are no prefix blocks: a cache that was evicted does not make a prompt another.
// Sub-agents are sessions of their own; the trace has no link to who called them.
func traceLabFormat() Format {
	return Format{
		Name:    "tracelab",
		reads:   append(mappedFields(traceLabFields, nil), traceLabReads...),
		About:   "TraceLab coding-agent rounds: JSON lines of lengths, events and tool calls",
		Example: `{"provider":"claude","session_id":"s1","round_index":0,"model":"m","input_tokens_total":32272,"prefix_tokens":27217,"newly_append_tokens":5055,"output_tokens":931,"timing_events":[{"event_type":"user_message","timestamp":"2026-06-01T05:40:20.151Z"},{"event_type":"text","timestamp":"2026-06-01T05:40:29.887Z"}],"tools":[]}`,
		detect: detectKeys(func(has func(string) bool) bool {
			return has("session_id") && has("round_index") && has("input_tokens_total") && has("newly_append_tokens")
		}),
		open: func(in *bufio.Reader, _ []byte, o Options, s *Source) (decoder, error) {
			s.info.HasSessions = true
			d := &traceLabDecoder{
				rows: jsonRows{newLineReader(in), s.fields}, fields: traceLabFields.fields(),
				times: &mappedDecoder{clock: newClock(o), s: s}, sessions: map[string]lastRound{}, s: s,
			}
			for i := range d.fields {
				name := d.fields[i].name
				d.fields[i].required = name == "input_tokens" || name == "output_tokens" || name == "session"
			}
			return d, nil
		},
	}
}

type traceLabDecoder struct {
	rows     rows
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

func (d *traceLabDecoder) goOn(next decoder) bool {
	n, ok := next.(*traceLabDecoder)
	if ok {
		d.rows = n.rows
	}
	return ok
}

func (d *traceLabDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.rows.next()
	if err != nil {
		return dst, err
	}
	b := builder{}
	if err := fill(&b, d.fields, r); err != nil {
		return dst, err
	}
	v, _ := r.value("round_index")
	turn, ok := countOf(plain(v))
	if !ok {
		return dst, badAt(r, "round_index", "want a whole number that is not negative")
	}
	b.e.Turn, b.e.Kind = &turn, "chat"
	round, err := d.events(r)
	if err != nil {
		return dst, err
	}
	b.e.Time = round.arrival()
	if !round.input.IsZero() && round.last.After(round.input) {
		b.e.E2E = trace.Ptr(round.last.Sub(round.input))
	}
	if round.input.IsZero() {
		d.s.notes.count("rounds without the event that they answer, taken to arrive at their first event")
	}
	d.follow(&b, round)
	d.s.info.HasUsers = d.s.info.HasUsers || b.e.User != (trace.Text{})
	d.entries++
	return append(dst, b.e), nil
}

// follow puts the round behind the one before it in its session.
func (d *traceLabDecoder) follow(b *builder, round roundEvents) {
	before, later := d.sessions[b.session]
	d.sessions[b.session] = lastRound{d.entries, round.last}
	switch {
	case !later:
	case b.e.Time.Before(before.done):
		d.s.notes.count("rounds that arrived before the one before them in their session had ended, which they do not wait for")
	default:
		b.e.Parents = []int64{before.entry}
		if before.done.IsZero() || round.input.IsZero() {
			break
		}
		gap := trace.Ptr(round.input.Sub(before.done))
		if round.fromTool {
			b.e.Tool = gap
		} else {
			b.e.Think = gap
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
func (d *traceLabDecoder) events(r row) (e roundEvents, err error) {
	v, _ := r.value("timing_events")
	list, ok := v.([]any)
	if !ok {
		return e, badAt(r, "timing_events", wantEvents)
	}
	type event struct {
		kind string
		at   time.Time
	}
	events := make([]event, len(list))
	for i, v := range list {
		fields, _ := v.(map[string]any)
		st, ok := readStamp(plain(fields["timestamp"]))
		if !ok {
			return e, badAt(r, "timing_events", wantEvents)
		}
		at, f := d.times.instant(st)
		if f != nil {
			f.line, f.col = r.place("timing_events")
			return e, f
		}
		events[i] = event{plain(fields["event_type"]), at}
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
		return e, badAt(r, "timing_events", "it has no time")
	}
	if f := d.times.inCapture(e.arrival()); f != nil {
		f.line, f.col = r.place("timing_events")
		return e, f
	}
	return e, nil
}
