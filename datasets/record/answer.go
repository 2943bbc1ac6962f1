package record

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"reprise/replay/openai"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// An answer takes what a server sends, as it comes. Events of a stream are decoded and
// dropped, and their text stays; anything else is kept whole.
type answer struct {
	encoding string // of the body, empty for none
	api      api
	stream   bool
	told     bool   // by its content whether it is a stream
	kept     []byte // a body that is no stream, or is compressed
	marks    []mark // when its bytes came, of a compressed stream
	lines    eventLines
	openai   *openai.Collector
	claude   *messageEvents
	unread   int    // bytes of events that the collector has not decoded
	texts    int    // bytes of events, of which a part is text that stays
	final    []byte // the last event of a response, which has all of it
}

// A mark says when the bytes up to end came.
type mark struct {
	at  time.Duration
	end int
}

// A reply is what an answer says.
type reply struct {
	failed  bool // it is an error, or has one, or ends too early
	usage   tokenusage.Tokens
	found   tokenusage.Findings // in the counts of that usage
	finish  string
	text    string
	unknown bool // the text is not all that was generated
	calls   string
	first   time.Duration   // the first token; 0 is unknown
	done    time.Duration   // the end; 0 is unknown
	gaps    []time.Duration // between token events, of a stream
	id      string          // of the answer, for requests that go on from it
}

// count takes what the counts of a server say. What it counts beyond all bounds it does not count.
func (r *reply) count(c *tokenusage.Counts, d tokenusage.Dialect) {
	t, found, err := c.Settle(d)
	if err != nil {
		t, found = tokenusage.Tokens{}, 0
	}
	r.usage, r.found = t, found
}

const (
	maxReply  = 32 << 20 // bytes of text of a streamed answer
	settled   = 4 << 10  // bytes of events after which they are decoded
	maxSymbol = 1 << 20  // bytes of a single event
)

// begin takes what the head of the answer says. Whether it is a stream, its content tells, see
// tell; until then the label does.
func (a *answer) begin(is api, contentType, encoding string) {
	a.encoding, a.api = normalEncoding(encoding), is
	a.setStream(strings.HasPrefix(strings.ToLower(strings.TrimSpace(contentType)), "text/event-stream"))
}

// tell looks at the first bytes that are no space: servers and gateways label streams as JSON,
// and errors as streams.
func (a *answer) tell(b []byte) {
	text := bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(text) == 0 {
		return
	}
	a.told = true
	switch isBody, isEvent := text[0] == '{' || text[0] == '[', eventStart.Match(text); {
	case isBody && a.stream:
		a.setStream(false)
	case isEvent && !a.stream:
		a.setStream(true)
	}
}

// eventStart matches the beginning of a server-sent event, or of a comment.
var eventStart = regexp.MustCompile(`^(data|event|id|retry)?:`)

func (a *answer) setStream(stream bool) {
	is := a.api
	if a.stream = stream; !stream {
		a.claude, a.openai, a.lines.event = nil, nil, nil
		return
	}
	if is == messagesAPI {
		a.claude = new(messageEvents)
	} else {
		a.openai = openai.NewCollector(maxReply)
	}
	a.lines.event = a.event
}

// size is about how many bytes the answer holds.
func (a *answer) size() int { return cap(a.kept) + 16*cap(a.marks) + a.texts }

// write takes the bytes that came with a read.
func (a *answer) write(b []byte, at time.Duration) {
	if !a.told && a.encoding == "" {
		a.tell(b)
	}
	switch {
	case a.stream && a.encoding == "":
		a.texts += len(b) / 4 // most of an event is not text
		a.lines.write(b, at)
	default:
		a.kept = append(a.kept, b...)
		if a.stream {
			a.marks = append(a.marks, mark{at, len(a.kept)})
		}
	}
}

// event takes an event of a stream.
func (a *answer) event(ev openai.Event) {
	if a.claude != nil {
		a.claude.take(ev)
		return
	}
	if bytes.HasPrefix(ev.Name, []byte("response.")) && (bytes.HasSuffix(ev.Name, []byte(".completed")) ||
		bytes.HasSuffix(ev.Name, []byte(".incomplete"))) && bytes.Count(ev.Name, []byte{'.'}) == 1 {
		a.final = bytes.Clone(ev.Data)
	}
	a.openai.Add(ev)
	if a.unread += len(ev.Data); a.unread > settled {
		a.openai.Settle()
		a.unread = 0
	}
}

// reply settles what the answer says. ended is the instant of its last byte.
func (a *answer) reply(is api, status int, ended time.Duration, whole bool) reply {
	if a.encoding != "" && !a.unpack() {
		return reply{failed: status >= 400 || !whole, unknown: true, done: ended}
	}
	var r reply
	switch {
	case !a.stream:
		r = wholeReply(is, a.kept)
	case a.claude != nil:
		a.lines.end(ended)
		r = a.claude.reply()
	default:
		a.lines.end(ended)
		r = collected(a.openai, ended, whole)
		r.completed(a.final)
		r.finish = trace.ClosedFinish(r.finish)
	}
	if r.done == 0 {
		r.done = ended
	}
	r.failed = r.failed || status >= 400 || !a.stream && !whole
	return r
}

// unpack decompresses what was kept, and takes it as if it had come so.
func (a *answer) unpack() bool {
	src := &markedReader{data: a.kept, marks: a.marks}
	plain, err := decoder(a.encoding, src)
	if err != nil {
		return false
	}
	defer plain.Close()
	a.encoding, a.kept = "", nil
	buf := make([]byte, 16<<10)
	for total := 0; total < maxExchange; {
		n, err := plain.Read(buf)
		a.write(buf[:n], src.at)
		total += n
		if err != nil {
			return true // a stream that was cut off is read as far as it goes
		}
	}
	return false
}

// A markedReader reads what was kept as it came, and knows when.
type markedReader struct {
	data  []byte
	marks []mark
	next  int
	from  int
	at    time.Duration
}

// Read implements [io.Reader].
func (r *markedReader) Read(p []byte) (int, error) {
	if r.from == len(r.data) {
		return 0, io.EOF
	}
	end := len(r.data)
	if r.next < len(r.marks) {
		r.at, end = r.marks[r.next].at, r.marks[r.next].end
	}
	n := copy(p, r.data[r.from:end])
	if r.from += n; r.from == end {
		r.next++
	}
	return n, nil
}

// collected is what the events of OpenAI's APIs said.
func collected(c *openai.Collector, ended time.Duration, whole bool) reply {
	var err error
	if !whole {
		err = io.ErrUnexpectedEOF
	}
	o := c.Finish(ended, err)
	r := reply{failed: o.Err != nil, finish: o.FinishReason, id: o.ID, text: string(o.Text.Content),
		gaps: slices.Clone(o.Gaps)}
	if o.FirstToken != openai.NoInstant {
		r.first = o.FirstToken
	}
	if o.LastToken != openai.NoInstant {
		r.done = o.LastToken
	}
	if u := o.Usage; u != nil {
		r.found = o.Found
		r.usage = tokenusage.Tokens{Input: count(u.PromptTokens), Output: count(u.CompletionTokens)}
		if u.PromptTokensDetails != nil {
			r.usage.Cached = trace.Ptr(int32(u.PromptTokensDetails.CachedTokens))
		}
		if u.CompletionTokensDetails != nil {
			r.usage.Reasoning = trace.Ptr(int32(u.CompletionTokensDetails.ReasoningTokens))
		}
	}
	// Calls come in pieces without their form, and reasoning is not in the next prompt:
	// where there are any, the text is good for a count at most.
	if len(o.Text.Tools)+len(o.Text.Reasoning) > 0 || o.Text.Truncated || o.Choices > 1 {
		r.unknown = true
		r.text = string(bytes.Join([][]byte{o.Text.Reasoning, o.Text.Content, o.Text.Tools}, nil))
	}
	return r
}

// count is a count that was sent: 0 is none.
func count(n int) *int32 {
	if n <= 0 || n > 1<<30 {
		return nil
	}
	return trace.Ptr(int32(n))
}

// eventLines cuts a stream into server-sent events, pushed to it read by read. A
// [openai.Scanner] reads by itself, which would take a goroutine for each stream.
type eventLines struct {
	event func(openai.Event)
	line  []byte // that is not whole
	name  []byte
	data  []byte
	any   bool
	cr    bool // a carriage return came last
	long  bool // the line is longer than any event should be
}

func (l *eventLines) write(b []byte, at time.Duration) {
	for len(b) > 0 {
		if l.cr && b[0] == '\n' {
			b, l.cr = b[1:], false
			continue
		}
		l.cr = false
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			l.keep(b)
			return
		}
		l.cr = b[i] == '\r'
		line := b[:i]
		if len(l.line) > 0 || l.long {
			l.keep(line)
			line = l.line
		}
		if !l.long {
			l.take(line, at)
		}
		l.line, l.long, b = l.line[:0], false, b[i+1:]
	}
}

func (l *eventLines) keep(b []byte) {
	if len(l.line)+len(b) > maxEventLine {
		l.line, l.long = l.line[:0], true
		return
	}
	l.line = append(l.line, b...)
}

// maxEventLine is longer than the last event of a response, which has all of it.
const maxEventLine = 16 << 20

func (l *eventLines) take(line []byte, at time.Duration) {
	if len(line) == 0 {
		l.deliver(at)
		return
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "data":
		if l.any {
			l.data = append(l.data, '\n')
		}
		l.data, l.any = append(l.data, value...), true
	case "event":
		l.name = append(l.name[:0], value...)
	case "error": // llama-server, before September 2025
		l.name = append(l.name[:0], "error"...)
		l.data, l.any = append(l.data, value...), true
	}
}

func (l *eventLines) deliver(at time.Duration) {
	if l.any {
		l.event(openai.Event{At: at, Name: l.name, Data: l.data})
	}
	l.name, l.data, l.any = l.name[:0], l.data[:0], false
	if cap(l.data) > maxSymbol {
		l.data = nil
	}
}

// end delivers what the stream's end left without its blank line.
func (l *eventLines) end(at time.Duration) {
	if len(l.line) > 0 && !l.long {
		l.take(l.line, at)
	}
	if l.event != nil {
		l.deliver(at)
	}
}
