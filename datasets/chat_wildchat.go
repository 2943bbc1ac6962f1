package datasets

import (
	"bufio"
	"strconv"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

var (
	wildChat = dialogueKind{id: "conversation_hash", timed: true}
	lmsys    = dialogueKind{id: "conversation_id"}
)

func hasWildChat(has func(string) bool) bool { return has("conversation_hash") && has("conversation") }

func hasLMSYS(has func(string) bool) bool {
	return has("conversation_id") && has("conversation") && has("model") && !has("conversation_hash")
}

// wildChatFormat reads WildChat (ICLR'24; allenai/WildChat-1M), as Parquet or
// as lines of JSON. Each reply becomes an entry, as in ShareGPT. Of a message
// only role, content and timestamp are read, never address, place and header.
//
// The release has times with the replies alone, the instants at which the
// server had received them whole, so that an arrival is late by the time to
// answer; a note says so. A conversation_hash names a content, not a
// conversation, and repeats: a session is known by its row and its hash.
func wildChatFormat() Format {
	return Format{
		Name:    "wildchat",
		reads:   wildChat.reads(),
		About:   "WildChat conversations: Parquet, JSON lines or a JSON array, with a time for each reply",
		Example: `{"conversation_hash":"c0","model":"gpt-4-0314","timestamp":"2023-04-09T00:02:53Z","turn":1,"conversation":[{"role":"user","content":"Hello","timestamp":null},{"role":"assistant","content":"Hi!","timestamp":"2023-04-09T00:02:53Z"}]}`,
		timed:   true,
		detect:  detectObject(hasWildChat),
		open:    wildChat.openLines,
	}
}

// lmsysFormat reads LMSYS-Chat-1M (ICLR'24; lmsys/lmsys-chat-1m), as Parquet or
// as lines of JSON. It has no times. Names that were redacted stand in the
// text as NAME_1, NAME_2…, which changes its length in tokens a little.
func lmsysFormat() Format {
	return Format{
		Name:    "lmsys",
		reads:   lmsys.reads(),
		About:   "LMSYS-Chat conversations: Parquet, JSON lines or a JSON array, without times",
		Example: `{"conversation_id":"c0","model":"vicuna-13b","conversation":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi!"}],"turn":1,"language":"English","redacted":false}`,
		detect:  detectObject(hasLMSYS),
		open:    lmsys.openLines,
	}
}

// A dialogueKind is a collection of conversations with one of them in a row, as
// Parquet or as lines of JSON, such as WildChat and LMSYS-Chat.
type dialogueKind struct {
	id    string // field of the conversation's name
	timed bool   // its messages have times
}

// reads are the fields of a row.
func (k dialogueKind) reads() []SourceField {
	out := []SourceField{
		fieldAt(k.id, "session turn parents", ""),
		fieldAt("model", "model", ""),
		fieldAt("conversation", "", packed),
		fieldAt("conversation[].role", "", decides),
		fieldAt("conversation[].content", "input_tokens blocks output_tokens output_blocks", tokenised),
	}
	if k.timed {
		out = append(out, fieldAt("timestamp|conversation[].timestamp", "arrival_ns", ""))
	}
	return out
}

// openLines reads the rows as lines of JSON, or as Parquet when they are that.
func (k dialogueKind) openLines(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	if isParquet(head) {
		p, err := spoolParquet(in)
		if err != nil {
			return nil, err
		}
		return k.openParquet(p, o, s)
	}
	all, first := jsonInput(in, head, s)
	return k.open(all, first, o, s), nil
}

// openParquet reads the columns that are needed; who asked, and from where,
// stays on disk.
func (k dialogueKind) openParquet(p *parquetFile, o Options, s *Source) (decoder, error) {
	in, err := p.rows(k.wanted)
	if err != nil {
		return nil, p.close(err)
	}
	first, err := p.rows(k.wanted)
	if err != nil {
		return nil, p.close(err)
	}
	in.owner = true
	p.count(k.wanted, s.fields)
	return k.open(in, &limitedRows{first, 100}, o, s), nil
}

func (k dialogueKind) wanted(leaf []string) bool {
	switch last := leaf[len(leaf)-1]; leaf[0] {
	case k.id, "model":
		return true
	case "timestamp":
		return k.timed
	case "conversation":
		return last == "role" || last == "content" || last == "timestamp" && k.timed
	}
	return false
}

func (k dialogueKind) open(in, first rows, o Options, s *Source) decoder {
	s.info.HasText, s.info.HasSessions = true, true
	d := &dialogueDecoder{kind: k, rows: in, s: s}
	if k.timed {
		d.times = &mappedDecoder{clock: o.clock(), s: s}
		d.sampleTimes(first)
	}
	return d
}

type dialogueDecoder struct {
	kind    dialogueKind
	rows    rows
	times   *mappedDecoder // keeps the clock; nil without times
	row     int64          // from 0
	entries int64          // handed out so far
	s       *Source
}

func (d *dialogueDecoder) continueWith(next decoder) bool {
	n, ok := next.(*dialogueDecoder)
	if ok = ok && n.kind == d.kind; ok {
		d.rows = n.rows
	}
	return ok
}

// sampleTimes takes the times of the first rows.
func (d *dialogueDecoder) sampleTimes(first rows) {
	for {
		r, err := first.next()
		if f, ok := err.(*fault.Fault); ok && !f.Stop {
			continue
		}
		if err != nil {
			return
		}
		for _, path := range []string{"timestamp", "conversation.0.timestamp", "conversation.1.timestamp"} {
			v, _ := r.value(path)
			if st, ok := stamp.ReadISO(plain(v)); ok {
				d.times.clock.See(st)
			}
		}
	}
}

func (d *dialogueDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.rows.next()
	if err != nil {
		return dst, err
	}
	position := d.row
	d.row++
	v, _ := r.value("conversation")
	if s, ok := v.(string); ok {
		v, _, _ = decodeJSON([]byte(s))
	}
	list, ok := v.([]any)
	if !ok {
		return dst, badAt(r, "conversation", errList.Error())
	}
	turns := make([]spokenTurn, len(list))
	for i, m := range list {
		fields, _ := m.(map[string]any)
		role, isRole := fields["role"].(string)
		text, isText := fields["content"].(string)
		if !isRole || !isText && fields["content"] != nil {
			return dst, badAt(r, "conversation", wantMessages)
		}
		turns[i] = spokenTurn{Role: &role, Content: &text, at: plain(fields["timestamp"])}
	}
	messages, last, err := joinTurns(turns)
	if err != nil {
		return dst, badAt(r, "conversation", err.Error())
	}
	base := trace.Entry{Kind: "chat"}
	id, _ := r.value(d.kind.id)
	base.Session = trace.NewText(strconv.FormatInt(position, 10) + "/" + plain(id))
	if model, ok := r.value("model"); ok && plain(model) != "" {
		base.Model = trace.NewText(plain(model))
	}
	before := len(dst)
	dst = replies(dst, messages, base, d.entries)
	if err := d.setTimes(dst[before:], r, turns, last); err != nil {
		return dst[:before], err
	}
	d.entries += int64(len(dst) - before)
	if len(dst) == before {
		d.s.notes.Count(withoutReply)
	}
	return dst, nil
}

// setTimes sets the times of the entries of one conversation: that of the
// user's last message when it has one, else that of the reply, else, for the
// last entry, that of the conversation.
func (d *dialogueDecoder) setTimes(entries []trace.Entry, r row, turns []spokenTurn, last []int) error {
	if d.times == nil {
		return nil
	}
	whole, _ := r.value("timestamp")
	atReply := false
	for i := range entries {
		e := &entries[i]
		reply := len(e.Messages) // the reply is the message after its input
		at := turns[last[reply-1]].at
		if at == "" {
			at, atReply = turns[last[reply]].at, true
		}
		if at == "" && i == len(entries)-1 {
			at = plain(whole)
		}
		if at == "" {
			return badAt(r, "conversation", "a message has no time")
		}
		st, ok := stamp.ReadISO(at)
		if !ok {
			return badAt(r, "conversation", "the time of a message is neither a date nor a number")
		}
		if f := d.times.stampTime(e, st); f != nil {
			f.Line, f.Col = r.place("conversation")
			return f
		}
	}
	if atReply {
		d.s.notes.SayOnce("arrivals are the times at which the answers were complete, where those of the questions " +
			"are not recorded")
	}
	return nil
}
