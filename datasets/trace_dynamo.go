package datasets

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/talk"
	"reprise/trace"
)

// The values of Options.Rows.
const (
	rowsFull  = "full"  // a row is the whole context of its request
	rowsDelta = "delta" // a row is what is new since the turn before
)

var dynamoFields = Mapping{
	"time":          {"timestamp", "created_time"},
	"input_tokens":  {"input_length", "input_tokens"},
	"output_tokens": {"output_length", "output_tokens"},
	"blocks":        {"hash_ids"},
	"class":         {"priority"},
}

var aiperfFields = Mapping{
	"time":          {"timestamp"},
	"messages":      {"messages", "payload.messages"},
	"tools":         {"tools", "payload.tools", "payload.functions"},
	"prompt":        {"text_input", "payload.prompt"},
	"input_tokens":  {"input_length"},
	"output_tokens": {"output_length"},
	"model":         {"payload.model"},
	"max_tokens":    {"payload.max_completion_tokens", "payload.max_tokens"},
	"temperature":   {"payload.temperature"},
	"stream":        {"payload.stream"},
}

// agenticFields are those of the agentic rows of Dynamo.
var agenticFields = []string{"wait_for", "branches", "tool_wait_ms", "prefix_reset"}

// dialectReads is what is read of both formats beside their mappings.
var dialectReads = []SourceField{
	fieldAt("session_id", "session turn parents", ""),
	fieldAt("request_id", "parents", ""),
	fieldAt("wait_for", "parents", ""),
	fieldAt("delay|delay_ms", "think_ns arrival_ns", ""),
	fieldAt("tool_wait_ms", "tool_ns arrival_ns", ""),
	fieldAt("context_mode|message_mode|prefix_reset|branches", "", decides),
	fieldAt("output_token_ids|group_id|is_restart|type", "", passed),
}

// dynamoFormat reads the dialects of Mooncake's rows that add sessions, as
// NVIDIA's Dynamo and AIPerf write and replay them: JSON lines with lengths, ids
// of prefix blocks (which AIPerf may leave out), and milliseconds that may have
// a fraction.
//
//   - Rows of a session_id are its turns, in their order; each has the one
//     before it as its parent. A row without one is a request by itself.
//   - A first turn has a time. A later one has a time, or a delay after the end
//     of the turn before, or neither, which is a delay of 0. The delay is the
//     think time. Since no row tells how long its request took, a turn without
//     a time is given the earliest that is possible, the arrival of the turn
//     before and the delay; how many these are is noted.
//   - A source in which no row has a time has none: see [Timed], which keeps the
//     delays.
//   - Agentic rows name the requests that they wait for, which become their
//     parents, and a tool time beside the delay.
//   - The size of the blocks is told as that of mooncakeFormat.
//
// Dynamo's rows hold the whole context of a request. Those that AIPerf makes up
// for coding agents have the same names and hold only what is new in each turn.
// Where the difference shows, it is asked for and never guessed: see [Options] Rows.
func dynamoFormat() Format {
	return Format{
		reads: append(mappedFields(dynamoFields, nil), dialectReads...),
		timed: true, sized: true, rows: true, labels: true,
		// Rows of lengths that have a field of the dialects, or no ids, are told from
		// those of the release.
		detect: sniff.Rows(func(keys []string) bool {
			lengths := sniff.Any(keys, "input_length") || sniff.Any(keys, "input_tokens") && sniff.Any(keys, "hash_ids")
			dialect := sniff.Any(keys, "session_id", "delay", "delay_ms", "created_time", "priority", "input_tokens",
				"output_tokens",
				"output_token_ids", "group_id") || sniff.Any(keys, agenticFields...)
			plain := !sniff.Any(keys, "hash_ids") && sniff.Any(keys, "output_length") && sniff.Any(keys, "timestamp")
			return lengths && (dialect || plain) &&
				!sniff.Any(keys, "chat_id", "parent_chat_id", "text_input", "messages", "payload")
		}),
		open: openLengths,
	}.described("dynamo")
}

// aiperfFormat reads AIPerf's mooncake_trace rows that carry text: text_input,
// messages or a whole payload, with the sessions and times of dynamoFormat, and
// its rows of lengths as that does. Messages are the whole conversation unless
// message_mode says delta; texts of one session are asked for like lengths.
func aiperfFormat() Format {
	return Format{
		reads: slices.Concat(mappedFields(aiperfFields, nil), mappedFields(dynamoFields, nil), dialectReads),
		timed: true, sized: true, rows: true, labels: true,
		// Rows of text are told from the logs of gateways, which have messages and
		// payloads as well, by fields that only AIPerf has, or by a payload among no
		// others.
		detect: sniff.Rows(func(keys []string) bool {
			others := slices.ContainsFunc(keys, func(key string) bool {
				return !slices.Contains([]string{"payload", "timestamp", "delay", "session_id", "output_length",
					"extra", "type"}, key)
			})
			return sniff.Any(keys, "text_input") || sniff.Any(keys, "payload") && !others || areAIPerfTurns(keys) ||
				sniff.Any(keys, "messages") && sniff.Any(keys, "output_length", "message_mode", "delay")
		}),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			if !sniff.Rows(func(keys []string) bool {
				return sniff.Any(keys, "text_input", "messages", "payload") || areAIPerfTurns(keys)
			})(sniff.New(head)) {
				return openLengths(in, head, o, s)
			}
			if o.BlockSize != 0 {
				return nil, errNoBlocks
			}
			if sniff.Rows(func(keys []string) bool { return sniff.Any(keys, "turns") })(sniff.New(head)) {
				o.Rows = cmp.Or(o.Rows, rowsDelta)
			}
			return openDialect(in, head, aiperfFields, o, s)
		},
	}.described("aiperf")
}

// areAIPerfTurns tells AIPerf's single_turn and multi_turn by the keys of a record: a text, or turns
// with a text each, among no other fields than AIPerf's.
func areAIPerfTurns(keys []string) bool {
	ours := wordsOf("type text texts turns role timestamp delay session_id output_length extra model image images " +
		"audio audios video videos question_id category reference") // the last are MT-Bench's, whose turns are texts
	return sniff.Any(keys, "text", "texts", "turns") &&
		!slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(ours, key) })
}

// aiperfTurns are rows in which a text is a text_input. A record of several turns is a row for each,
// with its own text; a system prompt before them stands before the first.
type aiperfTurns struct {
	in      row.JSON
	rest    []row.JSONRow
	records int
}

func (a *aiperfTurns) Next() (row.Row, error) {
	for len(a.rest) == 0 {
		r, err := a.in.Next()
		if err != nil {
			return nil, err
		}
		record := r.(row.JSONRow)
		a.records++
		turns, several := record.Root["turns"].([]any)
		if !several {
			aiperfText(record.Root)
			return record, nil
		}
		session := talk.FirstOf(record.Root["session_id"], fmt.Sprint("record ", a.records))
		var system any
		for i, turn := range turns {
			fields, ok := turn.(map[string]any)
			if text, isText := turn.(string); isText {
				fields, ok = map[string]any{"text": text}, true
			}
			if !ok {
				return nil, row.BadAt(record, "turns", "turns: want texts, or objects with a text")
			}
			if aiperfText(fields); i == 0 && fields["role"] == "system" && len(turns) > 1 {
				system = fields["text_input"]
				continue
			}
			if system != nil {
				fields["messages"] = []any{map[string]any{"role": "system", "content": system},
					map[string]any{"role": "user", "content": fields["text_input"]}}
				delete(fields, "text_input")
				system = nil
			}
			fields["session_id"] = session
			a.rest = append(a.rest, row.JSONRow{Root: fields, Raw: record.Raw, Records: record.Records,
				Fields: record.Fields, Unread: record.Unread})
		}
	}
	next := a.rest[0]
	a.rest = a.rest[1:]
	return next, nil
}

// aiperfText makes a text_input of a text, or of several that are sent together.
func aiperfText(fields map[string]any) {
	text := fields["text"]
	if texts, ok := fields["texts"].([]any); ok && text == nil {
		var all []any
		for _, one := range texts {
			if contents, _ := row.Lookup(one, "contents"); contents != nil { // of a text with a name
				one = contents
			}
			several, isList := one.([]any)
			if !isList {
				several = []any{one}
			}
			all = append(all, several...)
		}
		text, _ = (&builder{}).Text(all)
	}
	if text != nil {
		fields["text_input"] = text
	}
}

var errNoBlocks = fault.Usage("the rows have no block ids that --source-block-size could apply to")

// openLengths opens rows of lengths, some of which may lack block ids.
func openLengths(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	m := maps.Clone(dynamoFields)
	if !sniff.Rows(func(keys []string) bool { return sniff.Any(keys, "hash_ids") })(sniff.New(head)) {
		delete(m, "blocks")
		if o.BlockSize != 0 {
			return nil, errNoBlocks
		}
	}
	before := s.info.BlockSize // of the files before
	d, err := openDialect(in, head, m, o, s)
	if err != nil {
		return nil, err
	}
	require(d.fields, "input_tokens")
	if m["blocks"] != nil {
		size := cmp.Or(o.BlockSize, before, mooncakeBlocks(head))
		noteBlocks(size, o, s)
		d.setBlockSize(size)
	}
	// Rows of nothing but times and lengths are Mooncake's, or those of another tool in seconds.
	dialect := func(keys []string) bool { return len(keys) > 3 || sniff.Any(keys, "created_time", "input_tokens") }
	if m["blocks"] == nil && !sniff.Rows(dialect)(sniff.New(head)) {
		seconds, err := inSeconds(head, o, s)
		if err != nil {
			return nil, err
		}
		if seconds {
			d.clock.Told = time.Second
		}
	}
	return d, nil
}

func openDialect(in *bufio.Reader, head []byte, m Mapping, o Options, s *Source) (*dialectDecoder, error) {
	first := row.JSON{Records: record.NewJSONLines(headLines(head))}
	mapped, err := newMappedDecoder(&aiperfTurns{in: row.JSON{Records: record.NewJSONLines(in), Fields: s.fields}},
		&aiperfTurns{in: first}, m.dotted(), o, s)
	if err != nil {
		return nil, err
	}
	if mapped.clock.Told == 0 {
		mapped.clock.Told = time.Millisecond // also with a fraction
	}
	mapped.fields = append(mapped.fields,
		field{target: target{name: "delay",
			set: durationTo(time.Millisecond,
				func(b *builder) **time.Duration { return &b.Entry.Think })}, paths: []string{"delay", "delay_ms"}},
		field{target: target{name: "tool_wait_ms",
			set: durationTo(time.Millisecond,
				func(b *builder) **time.Duration { return &b.Entry.Tool })}, paths: []string{"tool_wait_ms"}})
	mapped.notices = []notice{{"output_token_ids", "records with the tokens of their outputs, which are not read"}}
	d := &dialectDecoder{rows: o.Rows, sessions: map[string]*turnState{}, requests: map[string]served{}}
	d.steppedDecoder = steppedDecoder{mappedDecoder: mapped, step: d, gives: true}
	return d, nil
}

// A dialectDecoder decodes the rows of sessions. It holds the last turn of each
// session and, of agentic rows, the place and time of every request.
type dialectDecoder struct {
	steppedDecoder
	rows     string // what they hold: full, delta or not told
	sessions map[string]*turnState
	requests map[string]served // by request_id
	agentic  bool
	whole    bool  // a turn began with the first block of the one before it, which is no news there
	doubted  error // the first turn that began otherwise, while none did so
	doubts   int   // turns with ids that did not

	key, id string     // session and request of the current row
	next    *turnState // of the current row, if it is one of a session
	early   bool       // the current row was given the earliest time
	unread  bool       // the current row has fields that are not read

	starts, together int64 // sessions, and those of them that start with the first
	first            time.Time
}

// maxNamesBefore is how many requests are kept by name before one waits for others, after
// which all are.
const maxNamesBefore = 100_000

// A turnState is the last turn of a session.
type turnState struct {
	session       trace.Text
	turn          int32
	served        served
	input, output int32           // of the whole context
	blocks        []uint64        // ids of the full blocks of the context; without deltas only the first
	unhashed      bool            // no ids are known
	messages      []trace.Message // of the whole context, for deltas
}

// served is a request that others may follow.
type served struct {
	position int64
	at       time.Time
}

func (d *dialectDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	dst, err := d.steppedDecoder.decode(dst)
	if f, ok := err.(*fault.Fault); ok && !f.Stop && d.rows == rowsDelta {
		f.Stop, f.Reason = true, f.Reason+"; rows of new parts cannot be read past one at fault"
	}
	if err == io.EOF && d.doubted != nil && !d.whole {
		return dst, d.doubted
	}
	if err == io.EOF && d.starts > 1 && d.together == d.starts {
		d.s.notes.SayOnce("all sessions start at the same instant: this is seldom how they arrived")
	}
	return dst, err
}

func (d *dialectDecoder) set(b *builder, r row.Row) error {
	d.key, d.id = "", ""
	for _, name := range []struct {
		path string
		to   *string
	}{{"session_id", &d.key}, {"request_id", &d.id}} {
		v, ok := r.Value(name.path)
		if !ok {
			continue
		}
		if *name.to, ok = word(v); !ok {
			return row.BadAt(r, name.path, name.path+": "+wantWord)
		}
	}
	for _, f := range agenticFields {
		if _, ok := r.Value(f); ok {
			d.agentic = true
		}
	}
	d.unread = r.(row.JSONRow).Unread
	var before *turnState
	d.next = nil
	if d.key != "" {
		before = d.sessions[d.key]
		d.next = &turnState{session: trace.NewText(d.key)}
		if before != nil {
			d.next.session, d.next.turn = before.session, before.turn+1
		}
		b.Entry.Session, b.Entry.Turn = d.next.session, trace.Ptr(d.next.turn)
	}
	delta, err := d.delta(b, r, before)
	if err != nil {
		return err
	}
	if err := d.follow(b, r, before); err != nil || !delta {
		return err
	}
	return d.accumulate(b, r, before)
}

// follow sets what the request waits for and, without a time, when it arrives
// at the earliest.
func (d *dialectDecoder) follow(b *builder, r row.Row, before *turnState) error {
	e := &b.Entry
	after, err := d.parents(e, r, before)
	if err != nil {
		return err
	}
	wait := time.Duration(0)
	for _, t := range []*time.Duration{e.Think, e.Tool} {
		if t != nil {
			wait += *t
		}
	}
	d.early = false
	_, delay, _ := row.Find(r, []string{"delay", "delay_ms", "tool_wait_ms"})
	switch {
	case len(e.Parents) == 0 && wait > 0:
		return row.BadAt(r, delay, "it has a delay, and nothing before it that the delay could follow")
	case len(e.Parents) == 0:
		e.Think, e.Tool = nil, nil
	}
	switch {
	case d.timing != withTimes:
	case !e.Time.IsZero():
		if before != nil && e.Time.Before(before.served.at) {
			return row.BadAt(r, "timestamp", "it arrives before the turn that it follows")
		}
	case len(e.Parents) == 0:
		return row.BadAt(r, "", "it has no time, and follows no other request")
	case wait < 0 || wait > maxWait || after.Add(wait).Year() > 2200:
		return row.BadAt(r, delay, "its delay is too long")
	default:
		e.Time, d.early = after.Add(wait), true
		if why := d.clock.TrackSpan(e.Time); why != "" {
			line, col := r.Place("")
			return fault.Refuse(line, col, why)
		}
	}
	return nil
}

// maxWait is a delay beyond doubt in any trace.
const maxWait = 100 * 365 * 24 * time.Hour

// parents sets the parents of the entry: the requests that it says to wait for,
// or else the turn before. It returns when the last of them arrived.
func (d *dialectDecoder) parents(e *trace.Entry, r row.Row, before *turnState) (after time.Time, err error) {
	v, ok := r.Value("wait_for")
	if !ok {
		if before == nil {
			return after, nil
		}
		e.Parents = []int64{before.served.position}
		return before.served.at, nil
	}
	list, ok := v.([]any)
	for _, id := range list {
		name, isWord := id.(string)
		ok = ok && isWord
		p, found := d.requests[name]
		if !found {
			d.s.notes.Count("requests waited for that are not before the one that waits, left out")
		} else if !slices.Contains(e.Parents, p.position) {
			e.Parents = append(e.Parents, p.position)
			if p.at.After(after) {
				after = p.at
			}
		}
	}
	if !ok {
		return after, row.BadAt(r, "wait_for", "wait_for: want a list of request ids")
	}
	return after, nil
}

func (d *dialectDecoder) accepted(e *trace.Entry, position int64) {
	now := served{position, e.Time}
	if d.id != "" && (d.agentic || len(d.requests) < maxNamesBefore) {
		d.requests[d.id] = now
	}
	if d.early {
		d.s.notes.Count("turns without a time, given the earliest possible, since the time that the turn before " +
			"took is not known")
	}
	if d.blockSize > 0 && e.SourceBlocks == nil {
		d.s.notes.Count("requests without block ids")
	}
	if d.unread {
		d.s.notes.Count("records with fields that are not read")
	}
	if d.next == nil {
		return
	}
	d.s.info.HasSessions = true
	n := d.next
	n.served = now
	if e.InputTokens != nil {
		n.input = *e.InputTokens
	}
	if e.OutputTokens != nil {
		n.output = *e.OutputTokens
	}
	if d.blockSize > 0 {
		n.blocks = e.SourceBlocks[:min(int(n.input)/d.blockSize, len(e.SourceBlocks))]
		if d.rows != rowsDelta {
			n.blocks = n.blocks[:min(1, len(n.blocks))]
		}
		n.blocks, n.unhashed = slices.Clone(n.blocks), len(e.SourceBlocks) == 0 && n.input > 0
	}
	if d.rows == rowsDelta {
		n.messages = e.Messages
	}
	if n.turn == 0 {
		if d.starts == 0 {
			d.first = e.Time
		}
		d.starts++
		if !e.Time.IsZero() && e.Time.Equal(d.first) {
			d.together++
		}
	}
	d.sessions[d.key] = n
}

// mostDoubts is how many turns may begin unlike the one before until a source has to say what its rows hold.
const mostDoubts = 1000

// maxContext bounds the context of accumulated rows, in tokens. Rows that are
// whole contexts and are read as deltas get there soon.
const maxContext = 1 << 24

const askRows = "the rows of a session may hold its whole context, as Dynamo's do, or only the new part of each " +
	"turn, as rows of AIPerf for coding agents and of mooncake-delta do: say --rows full or --rows delta"

// ErrDelta is in the error of a source that must say what a row of a session holds, and
// whose rows look like what is new in their turns.
var ErrDelta = errors.New(askRows)

// delta reports whether the row holds only what is new in its turn. Without
// being told it is never assumed: a row that shows a sign of it is refused with
// what to say. The signs are the agentic fields, but for those that name requests to wait
// for in a row with a name and block ids of its own; a mode of deltas; a text by
// itself in a later turn; and a later turn whose prompt does not begin as the
// one before it did, or, without ids, is shorter. Where ids showed once that rows hold whole
// prompts, those of other beginnings are of windows, documents or samples, and no sign.
func (d *dialectDecoder) delta(b *builder, r row.Row, before *turnState) (bool, error) {
	if d.rows != "" {
		return d.rows == rowsDelta, nil
	}
	doubt := func(path string) (bool, error) {
		if d.doubted != nil { // the first row is named
			return false, d.doubted
		}
		line, col := r.Place(path)
		asked := &fault.Fault{Line: line, Col: col, Reason: askRows, Stop: true}
		// A whole context is as long as the one before it and its answer; what is new seldom is.
		if before != nil && b.Entry.InputTokens != nil && *b.Entry.InputTokens < before.input {
			asked.Reason += fmt.Sprintf(". Here a turn of %d tokens follows one of %d, as in rows of new parts: "+
				"--rows delta", *b.Entry.InputTokens, before.input)
			asked.Err = ErrDelta
		}
		return false, asked
	}
	named := d.id != "" && len(b.Entry.SourceBlocks) > 0
	for _, f := range agenticFields {
		// Rows that wait for others by their names are Dynamo's, whose ids are those of the
		// whole prompt.
		if _, ok := r.Value(f); ok && (!named || f != "wait_for" && f != "tool_wait_ms") {
			return doubt(f)
		}
	}
	for _, f := range []string{"context_mode", "message_mode"} {
		v, _ := r.Value(f)
		switch mode := row.Plain(v); {
		case strings.HasPrefix(mode, "delta"):
			return doubt(f)
		case strings.HasPrefix(mode, "message_array"):
			return false, nil
		}
	}
	e := &b.Entry
	switch {
	case before == nil:
		return false, nil
	case e.Messages != nil:
		if _, ok := r.Value("text_input"); ok {
			return doubt("text_input")
		}
	case d.whole:
	case len(before.blocks) > 0 && len(e.SourceBlocks) > 0:
		if d.whole = e.SourceBlocks[0] == before.blocks[0]; !d.whole {
			_, asked := doubt("hash_ids")
			return false, d.postpone(asked)
		}
	case e.InputTokens != nil && *e.InputTokens < before.input:
		_, asked := doubt("input_length")
		if len(e.SourceBlocks) > 0 { // other rows may show it
			asked = d.postpone(asked)
		}
		return false, asked
	}
	return false, nil
}

// postpone keeps the first doubt about what rows hold, until a row shows it or too many do not.
func (d *dialectDecoder) postpone(asked error) error {
	if d.doubted == nil {
		d.doubted = asked
	}
	if d.doubts++; d.doubts > mostDoubts {
		return d.doubted
	}
	return nil
}

// accumulate turns what is new in a turn into its whole context:
//
//	input = input of the turn before + output of the turn before + new input
//
// A first turn, and one with prefix_reset, is its own context. The row's ids
// number the blocks of its new input alone, counted from where that begins, and
// so do not lie on the blocks of the context, nor are there any for outputs. So
// of the context before, the full blocks keep their ids: its tokens are a
// prefix of this one. All blocks after them, up to the end of the new input,
// are new: each reaches into a tail, an output or an input that followed one,
// which no other session shares. Ids of first turns stay as they are, and so does
// what sessions share by them.
//
// Messages are put after those of the turn before. Its reply is not in the
// source, so that later prompts are shorter than they were.
func (d *dialectDecoder) accumulate(b *builder, r row.Row, before *turnState) error {
	e := &b.Entry
	if reserved(e.SourceBlocks) {
		return row.BadAt(r, "hash_ids", reservedID)
	}
	reset, _ := r.Value("prefix_reset")
	if before == nil || reset == true {
		return nil
	}
	if e.Messages != nil {
		e.Messages = slices.Concat(before.messages, e.Messages)
		d.s.notes.Count("turns behind replies that the source does not have: their prompts are shorter than they were")
		return nil
	}
	if e.InputTokens == nil {
		return nil // finish says what is missing
	}
	if why := d.completeBlocks(e); why != "" ||
		e.SourceBlocks != nil && len(e.SourceBlocks) != blocksOf(*e.InputTokens, d.blockSize) {
		return row.BadAt(r, "hash_ids", wrongBlocks)
	}
	whole := int64(before.input) + int64(before.output) + int64(*e.InputTokens)
	if whole > maxContext {
		return row.BadAt(r, "input_length",
			"the context of its session has grown beyond 16777216 tokens: do the rows hold whole contexts (--rows "+
				"full)?")
	}
	e.InputTokens = trace.Ptr(int32(whole))
	if d.blockSize == 0 || before.unhashed {
		e.SourceBlocks = nil
		return nil
	}
	n := blocksOf(int32(whole), d.blockSize)
	e.SourceBlocks = append(make([]uint64, 0, n), before.blocks...)
	for len(e.SourceBlocks) < n {
		e.SourceBlocks = append(e.SourceBlocks, d.s.fresh.next())
	}
	return nil
}
