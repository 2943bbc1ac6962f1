package anonymize

import (
	"encoding/binary"
	"errors"

	"reprise/trace"
)

// A rawRow is the text of a request: one row of a raw file. It is no row of a
// [trace.Writer], which takes none with text; only this package writes it.
type rawRow struct {
	Row        int64        `parquet:"row,delta"` // of the trace
	Messages   []rawMessage `parquet:"messages,list"`
	Tools      string       `parquet:"tools"`
	Reply      *string      `parquet:"reply,optional"`
	ReplyCalls string       `parquet:"reply_calls"`
}

type rawMessage struct {
	Role    string `parquet:"role,dict"`
	Content string `parquet:"content"`
	Calls   string `parquet:"tool_calls"`
	CallID  string `parquet:"tool_call_id"`
	Name    string `parquet:"name"`
}

// appendText appends the text of an entry as rawRow.decode reads it: each string
// behind its length. It is the form that waits in a private spill, and the one
// that the digest is of.
func appendText(b []byte, en *trace.Entry) []byte {
	row := rawRow{Tools: en.Tools.Reveal(), ReplyCalls: en.ReplyCalls.Reveal()}
	for i := range en.Messages {
		m := &en.Messages[i]
		row.Messages = append(row.Messages, rawMessage{m.Role.String(), m.Content.Reveal(), m.Calls.Reveal(), m.CallID.Reveal(), m.Name.Reveal()})
	}
	if en.Reply != nil {
		row.Reply = trace.Ptr(en.Reply.Reveal())
	}
	return row.append(b)
}

// append encodes all but the number.
func (r *rawRow) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Messages)))
	for _, m := range r.Messages {
		for _, s := range []string{m.Role, m.Content, m.Calls, m.CallID, m.Name} {
			b = appendField(b, s)
		}
	}
	b = appendField(appendField(b, r.Tools), r.ReplyCalls)
	if r.Reply == nil {
		return append(b, 0)
	}
	return appendField(append(b, 1), *r.Reply)
}

func appendField(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errRawCode = errors.New("a private file with text is broken")

// decode reads what append wrote.
func (r *rawRow) decode(b []byte) error {
	f := rawFields{rest: b}
	n := f.length()
	r.Messages = make([]rawMessage, 0, n)
	for range n {
		r.Messages = append(r.Messages, rawMessage{f.field(), f.field(), f.field(), f.field(), f.field()})
	}
	r.Tools, r.ReplyCalls, r.Reply = f.field(), f.field(), nil
	if len(f.rest) > 0 && f.rest[0] == 1 {
		f.rest = f.rest[1:]
		r.Reply = trace.Ptr(f.field())
	} else if len(f.rest) > 0 && f.rest[0] == 0 {
		f.rest = f.rest[1:]
	} else {
		f.short = true
	}
	if f.short || len(f.rest) > 0 {
		return errRawCode
	}
	return nil
}

// rawFields reads fields one after the other.
type rawFields struct {
	rest  []byte
	short bool
}

// length reads a number of things that take a byte or more each.
func (f *rawFields) length() int {
	n, size := binary.Uvarint(f.rest)
	if size <= 0 || n > uint64(len(f.rest)-size) {
		f.rest, f.short = nil, true
		return 0
	}
	f.rest = f.rest[size:]
	return int(n)
}

func (f *rawFields) field() string {
	n := f.length()
	s := string(f.rest[:n])
	f.rest = f.rest[n:]
	return s
}
