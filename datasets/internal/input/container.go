package input

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
)

// A containerReader yields the lines that a program in a container wrote. Its input is what the
// runtime or a shipper of logs made of them: docker's json-file, or the CRI format of containerd,
// CRI-O and podman, or the JSON lines of Loki's logcli. Or it is CloudWatch's copy of a log: the answer of
// filter-log-events or of get-log-events, or the results of Logs Insights. Or a logger, compose or kubectl put a date, a level or a name
// before the JSON of each line: that is taken off, and lines without an object are blank, and counted. Any other
// input it yields as it is.
//
//   - Runtimes split long lines. Pieces are put together again, those of each stream by themselves.
//     Each piece but the last leaves a blank line, so that lines keep their numbers.
//   - The runtime's date stands before a line that has no date with a year of its own. JSON gets it as its
//     timestamp, where none of the first objects has a time.
type containerReader struct {
	in       io.Reader
	lines    *record.Lines // nil until the first read
	events   record.Reader // of CloudWatch; nil for none
	isLog    bool
	prefixed bool              // JSON stands behind something else
	timeless bool              // the first objects have no times
	newlines bool              // pieces that end a line have its end
	begun    map[string]string // lines whose end is still to come, by stream
	without  int64             // lines of a prefixed log that have no object
	out      []byte
	err      error
}

// A containerPiece is a line of the log, or a part of one.
type containerPiece struct {
	text, stream, at string
	more             bool // its line goes on in the next piece
	whole            bool // its line ends here, whatever the text ends in
}

// dockerPiece is the most of a line that docker puts into one piece.
const dockerPiece = 16 << 10

// Read implements io.Reader. Errors are those of the input.
func (c *containerReader) Read(p []byte) (int, error) {
	if c.lines == nil {
		in := bufio.NewReaderSize(c.in, record.HeadBytes)
		head, _ := in.Peek(record.HeadBytes)
		c.in, c.lines, c.begun = in, record.NewLines(in), map[string]string{}
		c.isLog, c.newlines = isContainerLog(head)
		c.prefixed = !c.isLog && isPrefixed(head)
		if list := cloudWatchList(head); list != "" {
			if bytes.HasPrefix(head, []byte(record.ByteOrderMark)) {
				_, _ = in.Discard(len(record.ByteOrderMark))
			}
			c.events = record.NewEnvelope(in, list)
		}
		c.timeless = (c.isLog || c.prefixed || c.events != nil) && isTimeless(head)
	}
	if !c.isLog && !c.prefixed && c.events == nil {
		return c.in.Read(p)
	}
	for len(c.out) == 0 && c.err == nil {
		c.out = c.out[:0]
		if c.events != nil {
			c.readEvent()
		} else {
			c.readLine()
		}
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	if n > 0 {
		return n, nil
	}
	return 0, c.err
}

// WithoutJSON is how many lines of a log, whose other lines hold JSON behind a prefix, were passed over so far.
func (c *containerReader) WithoutJSON() int64 { return c.without }

// isContainerLog tells a log by its first line, and whether one of the first pieces has the end of
// its line.
func isContainerLog(head []byte) (isLog, newlines bool) {
	if start := bytes.TrimLeft(head, " \t\r\n"); !bytes.HasPrefix(start, []byte("{")) &&
		!criLine.Match(start[:min(len(start), 100)]) {
		return false, false
	}
	for i, line := range record.HeadLines(head) {
		piece, ok := containerPieceOf(line)
		if i == 0 && !ok {
			return false, false
		}
		newlines = newlines || ok && strings.HasSuffix(piece.text, "\n")
	}
	return true, newlines
}

// readLine reads one line of the log and puts out what it ends.
func (c *containerReader) readLine() {
	if c.lines.Last() {
		for stream, text := range c.begun { // without the end, which shows that it is cut off
			c.out = append(c.out, text...)
			delete(c.begun, stream)
		}
		c.err = io.EOF
		return
	}
	raw, err := c.lines.ReadLine()
	if f, ok := err.(*fault.Fault); ok && f.Err != nil {
		err = f.Err
	}
	if c.err = err; err != nil || len(raw) == 0 {
		return
	}
	if before, object, ok := behindPrefix(raw); c.prefixed {
		if ok {
			c.out = append(c.out, c.dated(string(object), stamp.FindDate(string(before)))...)
		} else if bytes.IndexByte(raw, '{') >= 0 {
			c.out = append(c.out, bytes.TrimRight(raw, "\r\n")...)
		} else if len(bytes.TrimSpace(raw)) > 0 {
			c.without++
		}
		c.out = append(c.out, '\n')
		return
	}
	piece, ok := containerPieceOf(raw)
	if !ok {
		c.out = append(c.out, raw...)
		return
	}
	text, ended := strings.CutSuffix(piece.text, "\n")
	c.newlines, ended = c.newlines || ended, ended || piece.whole
	begun, goesOn := c.begun[piece.stream]
	if text = c.dated(text, piece.at); goesOn {
		text = begun + strings.TrimSuffix(piece.text, "\n")
	}
	if (piece.more || !ended && (c.newlines || len(piece.text) >= dockerPiece)) && len(text) < record.MaxBytes {
		c.begun[piece.stream] = text
		c.out = append(c.out, '\n')
		return
	}
	delete(c.begun, piece.stream)
	c.out = append(append(c.out, text...), '\n')
}

// cloudWatchList is the key of the list of events in an answer of CloudWatch; empty for none.
func cloudWatchList(head []byte) string {
	head = bytes.TrimPrefix(head, []byte(record.ByteOrderMark))
	list, events := record.EnvelopeList(head)
	if list != "events" && list != "results" {
		return ""
	}
	first := sniff.New(events).Records()
	if len(first) == 0 {
		return ""
	}
	v, _ := first[0].Value()
	if _, _, ok := cloudWatchEvent(v); !ok {
		return ""
	}
	return list
}

// cloudWatchEvent is the line that an event holds, and its time.
func cloudWatchEvent(v any) (text, at string, ok bool) {
	event, isObject := v.(map[string]any)
	if columns, isList := v.([]any); isList { // of Insights
		event = map[string]any{}
		for _, column := range columns {
			name, _ := row.Lookup(column, "field")
			event[row.Plain(name)], _ = row.Lookup(column, "value")
		}
		text, ok = event["@message"].(string)
		return text, row.Plain(event["@timestamp"]), ok
	}
	text, ok = event["message"].(string)
	if st, isTime := stamp.ReadISO(row.Plain(event["timestamp"])); isTime &&
		stamp.EpochUnit(st.Whole) == time.Millisecond {
		at = time.UnixMilli(st.Whole).UTC().Format("2006-01-02T15:04:05.999Z07:00")
	}
	return text, at, ok && isObject &&
		(event["logStreamName"] != nil || event["ingestionTime"] != nil || event["eventId"] != nil)
}

// readEvent reads one event of CloudWatch and puts out its line.
func (c *containerReader) readEvent() {
	raw, err := c.events.Next()
	if f, ok := err.(*fault.Fault); ok && f.Err != nil {
		err = f.Err
	}
	if c.err = err; err != nil {
		return
	}
	v, _, _ := row.DecodeJSON(raw)
	text, at, _ := cloudWatchEvent(v)
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		var line bytes.Buffer
		if json.Compact(&line, []byte(text)) == nil {
			text = line.String()
		}
	}
	c.out = append(append(c.out, c.dated(text, at)...), '\n')
}

// dated puts the date of a runtime before a line that has none with a year of its own, and into JSON of a log
// whose objects have none.
func (c *containerReader) dated(text, at string) string {
	switch rest, isObject := strings.CutPrefix(text, "{"); {
	case at == "" || isObject && (!c.timeless || len(strings.TrimSpace(rest)) < 2):
		return text
	case isObject:
		return `{"timestamp":"` + at + `",` + rest
	case stamp.FindDate(text[:min(len(text), 100)]) != "":
		return text
	}
	return at + " " + text
}

// longestPrefix is more than what loggers put before a message.
const longestPrefix = 200

// behindPrefix finds an object that a line ends in, behind a space or at its begin.
func behindPrefix(raw []byte) (before, object []byte, ok bool) {
	raw = bytes.TrimRight(raw, " \r\n")
	at := bytes.IndexByte(raw[:min(len(raw), longestPrefix)], '{')
	if at < 0 || at > 0 && raw[at-1] != ' ' || raw[len(raw)-1] != '}' {
		return nil, nil, false
	}
	return raw[:at], raw[at:], bytes.Contains(raw[at:], []byte(`":`))
}

// isPrefixed reports whether JSON stands behind something else in a third of the first lines or more.
func isPrefixed(head []byte) bool {
	lines := record.HeadLines(head)
	objects := 0
	for _, line := range lines {
		if _, object, ok := behindPrefix(line); ok && json.Valid(object) {
			objects++
		}
	}
	return objects > 0 && 3*objects >= len(lines) && !record.LooksLikeJSON(head)
}

// isTimeless reports whether there are objects in the first lines or events of a log, and none has a time.
func isTimeless(head []byte) (timeless bool) {
	_, first := record.First(head, 20)
	lines := record.HeadLines(head)
	for _, line := range append(first, lines[:min(len(lines), 20)]...) {
		piece, isPiece := containerPieceOf(line)
		object := []byte(piece.text)
		if v, _, ok := row.DecodeJSON(line); ok && !isPiece {
			text, _, _ := cloudWatchEvent(v)
			object = []byte(text)
		} else if !isPiece {
			_, object, _ = behindPrefix(line)
		}
		v, _, ok := row.DecodeJSON(object)
		if ok && hasTime(v, 2) {
			return false
		}
		timeless = timeless || ok
	}
	return timeless
}

// hasTime reports whether an object has a time, or one of those in it down to a depth.
func hasTime(v any, depth int) bool {
	object, isObject := v.(map[string]any)
	for _, below := range object {
		if depth > 0 && hasTime(below, depth-1) {
			return true
		}
	}
	st, ok := stamp.Read(row.Plain(v))
	return !isObject && ok && (st.Style != stamp.Numeric || stamp.EpochUnit(st.Whole) != 0)
}

// criLine is what stands before a line in the CRI format: the date, the stream, and F for a full
// line or P for a part.
var criLine = regexp.MustCompile(
	`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP])(?::\S*)? `)

// containerPieceOf takes a line of the log apart.
func containerPieceOf(raw []byte) (piece containerPiece, ok bool) {
	raw = bytes.TrimRight(raw, "\r\n")
	if m := criLine.FindSubmatchIndex(raw[:min(len(raw), 100)]); m != nil {
		piece = containerPiece{text: string(raw[m[1]:]), stream: string(raw[m[4]:m[5]]), at: string(raw[m[2]:m[3]])}
		piece.more = raw[m[6]] == 'P'
		piece.whole = !piece.more
		return piece, true
	}
	if !bytes.HasPrefix(raw, []byte("{")) ||
		!bytes.Contains(raw, []byte(`"log"`)) && !bytes.Contains(raw, []byte(`"line"`)) {
		return piece, false
	}
	var written struct {
		Log, Line      *string
		Stream, Source string
		Time           any
		Labels         map[string]any // of Loki
		Timestamp      string
		Tag            string `json:"logtag"`
		Partial        string `json:"partial_message"`
		Last           string `json:"partial_last"`
	}
	if json.Unmarshal(raw, &written) != nil || written.Log == nil && (written.Line == nil || written.Labels == nil) {
		return piece, false
	}
	if written.Log == nil {
		at := cmp.Or(stamp.FindDate(written.Timestamp), written.Timestamp)
		return containerPiece{text: *written.Line, at: at, whole: true}, true
	}
	if piece.stream = written.Stream; piece.stream == "" {
		piece.stream = written.Source
	}
	piece.text, piece.at = *written.Log, stamp.FindDate(row.Plain(written.Time))
	switch {
	case written.Tag == "P" || written.Partial == "true" && written.Last != "true":
		piece.more = true
	case written.Tag == "F" || written.Last == "true":
		piece.whole = true
	}
	return piece, piece.stream == "stdout" || piece.stream == "stderr"
}
