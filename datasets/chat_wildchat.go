package datasets

import (
	"bufio"
	"strconv"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/datasets/internal/talk"
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
		timed:  true,
		detect: sniff.Objects(hasWildChat),
		open:   wildChat.openLines,
	}.described("wildchat")
}

// lmsysFormat reads LMSYS-Chat-1M (ICLR'24; lmsys/lmsys-chat-1m), as Parquet or
// as lines of JSON. It has no times. Names that were redacted stand in the
// text as NAME_1, NAME_2…, which changes its length in tokens a little.
func lmsysFormat() Format {
	return Format{
		detect: sniff.Objects(hasLMSYS),
		open:   lmsys.openLines,
	}.described("lmsys")
}

// A dialogueKind is a collection of conversations with one of them in a row, as
// Parquet or as lines of JSON, such as WildChat and LMSYS-Chat.
type dialogueKind struct {
	id    string // field of the conversation's name
	timed bool   // its messages have times
}

// openLines reads the rows as lines of JSON, or as Parquet when they are that.
func (k dialogueKind) openLines(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	if row.IsParquet(head) {
		p, err := row.SpoolParquet(in)
		if err != nil {
			return nil, err
		}
		return k.openParquet(p, o, s)
	}
	all, first := row.JSONInputs(in, head, s.fields)
	return k.open(all, first, o, s), nil
}

// openParquet reads the columns that are needed; who asked, and from where,
// stays on disk.
func (k dialogueKind) openParquet(p *row.Parquet, o Options, s *Source) (decoder, error) {
	all, first, err := p.Read(k.wanted, 100, s.fields)
	if err != nil {
		return nil, err
	}
	return k.open(all, first, o, s), nil
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

func (k dialogueKind) open(in, first row.Reader, o Options, s *Source) decoder {
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
	rows    row.Reader
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
func (d *dialogueDecoder) sampleTimes(first row.Reader) {
	for {
		r, err := first.Next()
		if f, ok := err.(*fault.Fault); ok && !f.Stop {
			continue
		}
		if err != nil {
			return
		}
		for _, path := range []string{"timestamp", "conversation.0.timestamp", "conversation.1.timestamp"} {
			v, _ := r.Value(path)
			if st, ok := stamp.ReadISO(row.Plain(v)); ok {
				d.times.clock.See(st)
			}
		}
	}
}

func (d *dialogueDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.rows.Next()
	if err != nil {
		return dst, err
	}
	position := d.row
	d.row++
	v, _ := r.Value("conversation")
	if s, ok := v.(string); ok {
		v, _, _ = row.DecodeJSON([]byte(s))
	}
	list, ok := v.([]any)
	if !ok {
		return dst, row.BadAt(r, "conversation", errList.Error())
	}
	turns := make([]spokenTurn, len(list))
	for i, m := range list {
		fields, _ := m.(map[string]any)
		role, isRole := fields["role"].(string)
		text, isText := fields["content"].(string)
		if !isRole || !isText && fields["content"] != nil {
			return dst, row.BadAt(r, "conversation", talk.WantMessages)
		}
		turns[i] = spokenTurn{Role: &role, Content: &text, at: row.Plain(fields["timestamp"])}
	}
	messages, last, err := joinTurns(turns)
	if err != nil {
		return dst, row.BadAt(r, "conversation", err.Error())
	}
	base := trace.Entry{Kind: "chat"}
	id, _ := r.Value(d.kind.id)
	base.Session = trace.NewText(strconv.FormatInt(position, 10) + "/" + row.Plain(id))
	if model, ok := r.Value("model"); ok && row.Plain(model) != "" {
		base.Model = trace.NewText(row.Plain(model))
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
func (d *dialogueDecoder) setTimes(entries []trace.Entry, r row.Row, turns []spokenTurn, last []int) error {
	if d.times == nil {
		return nil
	}
	whole, _ := r.Value("timestamp")
	atReply := false
	for i := range entries {
		e := &entries[i]
		reply := len(e.Messages) // the reply is the message after its input
		at := turns[last[reply-1]].at
		if at == "" {
			at, atReply = turns[last[reply]].at, true
		}
		if at == "" && i == len(entries)-1 {
			at = row.Plain(whole)
		}
		if at == "" {
			return row.BadAt(r, "conversation", "a message has no time")
		}
		st, ok := stamp.ReadISO(at)
		if !ok {
			return row.BadAt(r, "conversation", "the time of a message is neither a date nor a number")
		}
		if f := d.times.stampTime(e, st); f != nil {
			f.Line, f.Col = r.Place("conversation")
			return f
		}
	}
	if atReply {
		d.s.notes.SayOnce("arrivals are the times at which the answers were complete, where the times of the " +
			"questions are not recorded")
	}
	return nil
}
