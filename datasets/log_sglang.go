package datasets

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
)

// sglangLines are the requests of SGLang's text log (--log-requests), each as the record
// of its JSON log: what a line "Finish: obj=GenerateReqInput(…), out={…}" tells. Text that
// the log cuts is left out. Other lines are passed over.
type sglangLines struct {
	*record.Lines
	tell *fault.Notes
}

// sglangFinish is before the request of a line.
var sglangFinish = regexp.MustCompile(
	`^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,\d]*)[^\]]*\] (?:Finish|Receive): obj=[A-Za-z]+\(`)

// isSGLangLog tells a text log by its first lines.
func isSGLangLog(head []byte) bool {
	return slices.ContainsFunc(record.HeadLines(head), func(line []byte) bool {
		return sglangFinish.Match(line[:min(len(line), 200)])
	})
}

const noteSGLangSeconds = "SGLang's text log has whole seconds: arrivals are known to a second; " +
	"--log-requests-format json has more"

// Place is that of the line.
func (l sglangLines) Place(int) (line, col int64) { return l.Lines.Place(0) }

func (l sglangLines) Next() ([]byte, error) {
	for {
		raw, err := l.Lines.Next()
		if err != nil {
			return nil, err
		}
		m := sglangFinish.FindSubmatchIndex(raw[:min(len(raw), 200)])
		if m == nil || !bytes.Contains(raw[:m[1]], []byte("] Finish")) {
			l.tell.Count("lines that tell of no end of a request were passed over")
			continue
		}
		request, rest, ok := pyArguments(string(raw[m[1]:]))
		answer, _, ok2 := pyJSON(strings.TrimPrefix(rest, ", out="), 0)
		if !ok || !ok2 {
			line, col := l.Place(0)
			if l.Last() {
				return nil, fault.CutOff(line, col, "the last line is not whole")
			}
			return nil, fault.Bad(line, col, "it is not a whole line of SGLang's log")
		}
		if !bytes.ContainsAny(raw[m[2]:m[3]], ".,") {
			l.tell.SayOnce(noteSGLangSeconds)
		}
		at, _ := json.Marshal(string(raw[m[2]:m[3]]))
		return []byte(`{"timestamp":` + string(at) + `,"event":"request.finished","obj":` + request + `,"out":` +
			answer + `}`), nil
	}
}

// pyArguments reads the arguments of a call as Python writes an object, up to its closing
// bracket, and returns those that are whole as a JSON object.
func pyArguments(s string) (object, rest string, ok bool) {
	var b strings.Builder
	for s != "" && s[0] != ')' {
		name, value, found := strings.Cut(strings.TrimLeft(s, ", "), "=")
		isName := name != "" && len(name) < 100 &&
			strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
		if !found || !isName {
			return "", s, false
		}
		written, after, ok := pyJSON(value, 0)
		if ok && after != "" && after[0] != ',' && after[0] != ')' {
			ok = false // such as a text that the log cut: 'its begin' ... 'its end'
		}
		if !ok {
			if after = value[pyEnd(value):]; after == "" {
				return "", s, false
			}
		} else {
			key, _ := json.Marshal(name)
			b.WriteString("," + string(key) + ":" + written)
		}
		s = after
	}
	if s == "" {
		return "", s, false
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}", s[1:], true
}

// pyEnd is the length of a value up to the comma or the bracket behind it.
func pyEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '"':
			n := pyStringEnd(s[i:])
			if n < 0 {
				return len(s)
			}
			i += n - 1
		case c == '(' || c == '[' || c == '{' || c == '<':
			depth++
		case depth == 0 && (c == ',' || c == ')' || c == '}' || c == ']'):
			return i
		case c == ')' || c == ']' || c == '}' || c == '>':
			depth--
		}
	}
	return len(s)
}

// pyConstants are Python's, as JSON.
var pyConstants = map[string]string{"None": "null", "True": "true", "False": "false", "nan": "null",
	"inf": "null", "-inf": "null"}

// maxPyDepth bounds how deep the values of a log are nested.
const maxPyDepth = 50

// pyJSON writes the Python literal that s begins with as JSON, and returns what follows; of
// lists and objects those values that are none are null.
func pyJSON(s string, depth int) (written, rest string, ok bool) {
	switch {
	case s == "" || depth > maxPyDepth:
		return "", s, false
	case s[0] == '\'' || s[0] == '"':
		text, rest, ok := pyString(s)
		quoted, err := json.Marshal(text)
		return string(quoted), rest, ok && err == nil
	case s[0] == '{' || s[0] == '[' || s[0] == '(':
		return pyMembers(s, depth)
	}
	end := pyEnd(s)
	if constant, ok := pyConstants[s[:end]]; ok {
		return constant, s[end:], true
	}
	n := json.Number(s[:end])
	if _, err := n.Float64(); err != nil || !json.Valid([]byte(s[:end])) {
		return "", s, false
	}
	return s[:end], s[end:], true
}

// pyMembers is pyJSON of an object, a list or a tuple.
func pyMembers(s string, depth int) (written, rest string, ok bool) {
	object, closing := s[0] == '{', map[byte]byte{'{': '}', '[': ']', '(': ')'}[s[0]]
	var b strings.Builder
	for s = strings.TrimLeft(s[1:], " "); s != "" && s[0] != closing; s = strings.TrimLeft(s, ", ") {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if object {
			key, after, ok := pyString(s)
			if after, ok2 := strings.CutPrefix(after, ": "); ok && ok2 {
				name, _ := json.Marshal(key)
				b.Write(name)
				b.WriteByte(':')
				s = after
			} else {
				return "", s, false
			}
		}
		member, after, ok := pyJSON(s, depth+1)
		if after != "" && ok && after[0] != ',' && after[0] != closing {
			ok = false
		}
		if !ok {
			member, after = "null", s[pyEnd(s):]
		}
		if len(after) == len(s) {
			return "", s, false
		}
		b.WriteString(member)
		s = after
	}
	if s == "" {
		return "", s, false
	}
	if object {
		return "{" + b.String() + "}", s[1:], true
	}
	return "[" + b.String() + "]", s[1:], true
}
