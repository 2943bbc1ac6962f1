package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"reprise/replay/client/internal/h1"
	"reprise/replay/openai"
)

// A RowExtra is what one row's request has beyond the others.
type RowExtra struct {
	Header http.Header
	Body   openai.Extra
}

// RowExtras gives further headers and body fields for rows. One goroutine asks, about
// each row at most once, and nearly in their order.
type RowExtras interface {
	At(row int64) (RowExtra, error)
}

// maxExtraLine is the longest line of a file of extras.
const maxExtraLine = 16 << 20

// An ExtraFile reads extras from lines of JSON, each {"row":N,"header":{…},"body":{…}},
// sorted by row, without blank lines. It reads as far as it is asked: what stands
// between, for rows that are asked for later, or never, is held.
//
// Its errors name the file, the line and the column, and quote nothing.
type ExtraFile struct {
	name  string
	lines *bufio.Scanner
	line  int
	last  int64
	held  map[int64]RowExtra
	err   error // io.EOF at the end
}

// NewExtraFile reads from r, which errors call name.
func NewExtraFile(r io.Reader, name string) *ExtraFile {
	f := &ExtraFile{name: name, lines: bufio.NewScanner(r), last: -1, held: map[int64]RowExtra{}}
	f.lines.Buffer(nil, maxExtraLine)
	return f
}

// At implements [RowExtras].
func (f *ExtraFile) At(row int64) (RowExtra, error) {
	for f.last < row && f.err == nil {
		at, extra, err := f.readLine()
		if f.err = err; err == nil {
			f.held[at] = extra
		}
	}
	if f.err != nil && f.err != io.EOF {
		return RowExtra{}, f.err
	}
	extra := f.held[row]
	delete(f.held, row)
	return extra, nil
}

// CheckExtras reads a file of extras to its end and returns how many lines it has. Rows
// must be below rows.
func CheckExtras(r io.Reader, name string, rows int64) (lines int, err error) {
	f := NewExtraFile(r, name)
	for {
		at, _, err := f.readLine()
		switch {
		case err == io.EOF:
			return f.line, nil
		case err != nil:
			return f.line, err
		case at >= rows:
			return f.line, f.fault(0, fmt.Sprintf("the workload has %d rows, counted from 0", rows))
		}
	}
}

func (f *ExtraFile) fault(offset int64, reason string) error {
	return fmt.Errorf("%s:%d:%d: %s", f.name, f.line, offset+1, reason)
}

// readLine reads a line.
func (f *ExtraFile) readLine() (row int64, extra RowExtra, err error) {
	if !f.lines.Scan() {
		f.line++
		switch err := f.lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return 0, extra, f.fault(0, "the line is too long")
		case err != nil:
			return 0, extra, fmt.Errorf("%s: %w", f.name, err)
		}
		f.line--
		return 0, extra, io.EOF
	}
	f.line++
	var v struct {
		Row    *int64            `json:"row"`
		Header map[string]string `json:"header"`
		Body   json.RawMessage   `json:"body"`
	}
	d := json.NewDecoder(bytes.NewReader(f.lines.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		// An error of encoding/json may quote; here it is put into words of our own.
		offset, reason := d.InputOffset(), "want the members row, header and body, and no other"
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset, reason = max(e.Offset-1, 0), "not valid JSON"
		} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			offset, reason = max(e.Offset-1, 0),
				`want {"row": a number, "header": names and strings, "body": an object}`
		} else if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			reason = "the line ends before its value does"
		}
		return 0, extra, f.fault(offset, reason)
	}
	if offset := d.InputOffset(); len(bytes.TrimSpace(f.lines.Bytes()[offset:])) > 0 {
		return 0, extra, f.fault(offset, "more than one value in a line")
	}
	switch {
	case v.Row == nil || *v.Row < 0:
		return 0, extra, f.fault(0, "row must be a row of the workload, counted from 0")
	case *v.Row <= f.last:
		return 0, extra, f.fault(0, "rows must be sorted, and each once")
	}
	f.last = *v.Row
	extra.Header = http.Header{}
	for name, value := range v.Header {
		if !validHeader(name, value) {
			return 0, extra, f.fault(0, "a header that HTTP does not allow")
		}
		extra.Header.Set(name, value)
	}
	if len(v.Body) > 0 && string(v.Body) != "null" {
		if extra.Body, err = openai.ParseExtra(v.Body); err != nil {
			return 0, extra, f.fault(0, err.Error())
		}
	}
	return f.last, extra, nil
}

// validHeader says whether HTTP can carry a header (RFC 9110, section 5): a token for a
// name, and no control characters in the value.
func validHeader(name, value string) bool {
	if name == "" {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0:
		default:
			return false
		}
	}
	return h1.IsValue(value)
}
