package datasets

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

// A vllmRequest is a request whose end has not been seen yet.
type vllmRequest struct {
	heldRow
	id    string
	at    stamp.Stamp
	bytes int
	done  bool
	err   *fault.Fault
}

// Requests wait for their end in these numbers at the most, so that a log without
// ends is read in bounded memory.
const (
	maxOpenRequests = 4096
	maxOpenBytes    = 256 << 20
)

// vllmRows are the requests of a log in the order of their arrival.
type vllmRows struct {
	in      *record.Lines
	limit   int // of characters and ids logged; 0 for none
	dates   vllmDates
	details map[string]map[string]string // fields of requests that are about to be received
	open    map[string]*vllmRequest
	queue   []*vllmRequest
	bytes   int // of the queue
	eof     bool
	tell    *fault.Notes
	known   *row.Fields // through which fields go; nil for lines that are looked at ahead
}

func newVLLMRows(in *bufio.Reader, limit int, tell *fault.Notes) *vllmRows {
	return &vllmRows{in: record.NewLines(in), limit: limit, details: map[string]map[string]string{},
		open: map[string]*vllmRequest{}, tell: tell}
}

func (v *vllmRows) Next() (row.Row, error) {
	for {
		if len(v.queue) > 0 && (v.eof || v.queue[0].done || len(v.queue) > maxOpenRequests || v.bytes > maxOpenBytes) {
			q := v.queue[0]
			v.queue[0] = nil
			v.queue = v.queue[1:]
			v.bytes -= q.bytes
			if v.open[q.id] == q {
				delete(v.open, q.id)
			}
			if q.err != nil {
				return nil, q.err
			}
			return q, nil
		}
		if v.eof {
			return nil, io.EOF
		}
		raw, err := v.in.Next()
		if err == io.EOF {
			v.eof = true
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := v.readLine(string(raw)); err != nil {
			return nil, err
		}
	}
}

var ansiColour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// readLine takes what one line tells.
func (v *vllmRows) readLine(line string) error {
	if strings.Contains(line, "\x1b[") {
		line = ansiColour.ReplaceAllString(line, "")
	}
	e := vllmEventOf(line)
	switch e.verb {
	case vllmDetails:
		if len(v.details) == maxOpenRequests {
			clear(v.details)
		}
		v.details[e.id] = pyFields(e.rest)
		return nil
	case vllmReceived:
		return v.openRequest(e, len(line))
	case vllmOther:
	default:
		if q := v.open[e.id]; q != nil && !strings.HasPrefix(e.rest, "(streaming delta)") {
			v.closeRequest(q, e)
			return nil
		}
	}
	v.tell.Count("lines that tell of no request were passed over")
	return nil
}

var (
	vllmMaxTokens   = regexp.MustCompile(`\bmax_tokens=(\d+)`)
	vllmTemperature = regexp.MustCompile(`\btemperature=([0-9.e+-]+)`)
	vllmParam       = regexp.MustCompile(`[(,] ?([a-z_]+)=`) // also in a string of stop=, which is counted with them
	vllmAdapter     = regexp.MustCompile(`\blora_name='([^']*)'`)
)

// openRequest opens a request that was received. One at fault keeps its place in the queue.
func (v *vllmRows) openRequest(e vllmEvent, size int) error {
	fields := pyFields(e.rest)
	for name, value := range v.details[e.id] {
		fields[name] = value
		size += len(value)
	}
	delete(v.details, e.id)
	v.known.AdmitNames(fields)
	for _, m := range vllmParam.FindAllStringSubmatch(fields["params"]+fields["sampling_params"], -1) {
		v.known.Parameter("params", m[1])
	}
	q := &vllmRequest{heldRow: heldRow{values: map[string]any{}}, id: e.id, bytes: size}
	q.line, q.col = v.in.Place(len(e.prefix))
	if v.in.Last() && !strings.HasSuffix(e.rest, ".") {
		return fault.CutOff(q.line, q.col, "the last line is not whole")
	}
	if at, text, ok := v.dates.find(e.prefix); ok {
		q.at, q.values["time"] = at, text
		if !v.dates.last.IsZero() {
			v.tell.SayOnce(noteNoYear)
		}
	}
	for name, pattern := range map[string]*regexp.Regexp{"max_tokens": vllmMaxTokens, "temperature": vllmTemperature} {
		if m := pattern.FindStringSubmatch(fields["params"] + fields["sampling_params"]); m != nil {
			q.values[name] = row.Number(m[1])
		}
	}
	if m := vllmAdapter.FindStringSubmatch(fields["lora_request"]); m != nil {
		q.values["adapter"] = m[1]
	}
	endpoint, _, _ := strings.Cut(e.id, "-")
	if kind, ok := vllmKinds[endpoint]; ok {
		q.values["kind"] = kind
	}
	if why := v.setPrompt(q, fields); why != "" {
		q.err, q.done = fault.Bad(q.line, q.col, why), true
	}
	if earlier := v.open[e.id]; earlier != nil {
		earlier.done = true // its end can no longer be told from this one's
	}
	v.queue = append(v.queue, q)
	v.bytes += q.bytes
	v.open[e.id] = q
	return nil
}

// vllmKinds are the kinds of requests by the prefix that their endpoint gives to ids.
var vllmKinds = map[string]string{"chatcmpl": "chat", "cmpl": "completion", "embd": "embedding", "resp": "responses"}

const noteNoYear = "the dates of the log have no year: it was taken to begin in 1972, or in 1971 if in July or later"

const (
	whyNoPrompt  = "its prompt was not logged: let the server run with VLLM_LOGGING_LEVEL=DEBUG, whose lines hold it"
	whyCutPrompt = "its prompt was cut by --max-log-len, so that its length is not known: log without this limit"
	whyCutLine   = "its prompt is not whole: what wrote the log cut the line"
)

// setPrompt takes the text and the number of its token ids, unless they were cut.
func (v *vllmRows) setPrompt(q *vllmRequest, fields map[string]string) string {
	literal, logged := fields["prompt"]
	text, rest, isText := pyString(literal)
	ids, haveIDs := vllmIDs(fields["prompt_token_ids"])
	runes := len([]rune(text))
	if isText && haveIDs && runes == ids && ids >= minLogLimit {
		v.limit = ids
	}
	if max(runes, ids) > v.limit {
		v.limit = 0 // what was taken for a limit was none
	}
	cut := func(n int) bool { return v.limit > 0 && n >= v.limit }
	if haveIDs && !cut(ids) {
		q.values["input_tokens"] = row.Number(strconv.Itoa(ids))
	}
	switch {
	case isText && rest == "" && !cut(runes):
		q.values["prompt"] = text
		return ""
	case q.values["input_tokens"] != nil:
		return ""
	case !logged && !haveIDs && fields["lora_request"] == "":
		return whyCutLine
	case isText || haveIDs:
		return whyCutPrompt
	}
	return whyNoPrompt
}

// vllmIDs counts the ids of a list; ok is false for None and for nothing.
func vllmIDs(s string) (n int, ok bool) {
	inner, isList := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !isList || !closed {
		return 0, false
	}
	if inner == "" {
		return 0, true
	}
	return strings.Count(inner, ",") + 1, true
}

// closeRequest adds what a later line tells about a request.
func (v *vllmRows) closeRequest(q *vllmRequest, e vllmEvent) {
	said := strings.TrimLeft(strings.TrimPrefix(e.rest, "(streaming complete)"), ": ")
	if details, ok := strings.CutPrefix(said, "details: "); ok && e.verb == vllmGenerated {
		// A debug line before the one with the text has the ids.
		fields := pyFields(details)
		v.known.AdmitNames(fields)
		if n, ok := vllmIDs(fields["output_token_ids"]); ok && (v.limit == 0 || n < v.limit) {
			q.values["output_tokens"] = row.Number(strconv.Itoa(n))
		}
		return
	}
	q.done = true
	at, text, ok := v.dates.find(e.prefix)
	// Whole seconds would make a latency of zero of most.
	if ok && at.Style == q.at.Style && strings.ContainsAny(text, ".,") && !at.Time.Before(q.at.Time) {
		q.values["e2e"] = row.Number(strconv.FormatInt(int64(at.Time.Sub(q.at.Time)), 10))
	}
	switch e.verb {
	case vllmAborted:
		q.values["status"] = trace.StatusCancelled
	case vllmFailed:
		q.values["status"] = trace.StatusFailed
	case vllmGenerated:
		fields := pyFields(said)
		v.known.AdmitNames(fields)
		// The output is bounded as the prompt is.
		text, _, ok := pyString(fields["output"])
		if ok && (v.limit == 0 || len([]rune(text)) < v.limit) {
			q.values["output"] = text
		}
		if n, ok := vllmIDs(fields["output_token_ids"]); ok && (v.limit == 0 || n < v.limit) {
			q.values["output_tokens"] = row.Number(strconv.Itoa(n))
		}
		// That field is the same for all ends of streams.
		if reason := strings.Trim(fields["finish_reason"], "'"); reason != "None" &&
			!strings.HasPrefix(reason, "stream") {
			q.values["finish_reason"] = reason
		}
	}
}

// pyString decodes the Python string literal that s begins with, as repr writes
// it, and returns what follows; ok is false when it does not end. A lone
// surrogate, which UTF-8 cannot hold, becomes U+FFFD.
func pyString(s string) (text, rest string, ok bool) {
	end := pyStringEnd(s)
	if end < 0 {
		return "", s, false
	}
	inner, rest := s[1:end-1], s[end:]
	var b strings.Builder
	b.Grow(len(inner))
	for {
		i := strings.IndexByte(inner, '\\')
		if i < 0 {
			b.WriteString(inner)
			return strings.ToValidUTF8(b.String(), string(utf8.RuneError)), rest, true
		}
		b.WriteString(inner[:i])
		inner = inner[i+1:]
		inner = inner[pyEscape(&b, inner):]
	}
}

// pyStringEnd returns the length of the string literal that s begins with;
// negative when there is none or it does not end.
func pyStringEnd(s string) int {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return -1
	}
	stops := s[:1] + `\`
	for i := 1; ; i += 2 { // after a backslash and what it escapes
		n := strings.IndexAny(s[min(i, len(s)):], stops)
		if n < 0 {
			return -1
		}
		if i += n; s[i] == s[0] {
			return i + 1
		}
	}
}

// pyEscape writes what an escape stands for and returns its length without the
// backslash.
func pyEscape(b *strings.Builder, s string) int {
	digits := 0
	switch s[0] {
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case '\\', '\'', '"':
		b.WriteByte(s[0])
	default: // none that repr writes
		b.WriteByte('\\')
		return 0
	}
	if digits == 0 {
		return 1
	}
	if len(s) <= digits {
		b.WriteByte('\\')
		return 0
	}
	n, err := strconv.ParseUint(s[1:1+digits], 16, 32)
	if err != nil {
		b.WriteByte('\\')
		return 0
	}
	b.WriteRune(rune(min(n, utf8.MaxRune+1))) // what is no rune becomes U+FFFD
	return 1 + digits
}

// pyFields splits "prompt: 'x', params: P(a=1, b=[2]), ids: None." into its
// fields, as far as they go. Values are as they stand; commas and colons within
// brackets and strings belong to them.
func pyFields(s string) map[string]string {
	fields := map[string]string{}
	for s != "" {
		name, rest, ok := strings.Cut(s, ": ")
		if !ok {
			break
		}
		end := pyValue(rest)
		if end < 0 {
			break // cut within a string or a bracket
		}
		fields[name] = strings.TrimSuffix(rest[:end], ".")
		s = strings.TrimLeft(rest[end:], ", ")
	}
	return fields
}

// pyNext is what stands between a value and the next; one version of vLLM left
// out the space.
var pyNext = regexp.MustCompile(`^, ?[a-z][a-z_ ]*: `)

// pyValue returns the length of the value that s begins with; negative when it
// does not end.
func pyValue(s string) int {
	depth := 0
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\'' || c == '"':
			n := pyStringEnd(s[i:])
			if n < 0 {
				return -1
			}
			i += n
			continue
		case c == '(' || c == '[' || c == '{' || c == '<':
			depth++
		case c == ')' || c == ']' || c == '}' || c == '>':
			depth--
		case c == ',' && depth <= 0 && pyNext.MatchString(s[i:min(len(s), i+50)]):
			return i
		}
		i++
	}
	if depth > 0 {
		return -1
	}
	return len(s)
}
