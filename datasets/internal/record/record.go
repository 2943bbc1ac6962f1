// Package record cuts the bytes of a source into records: lines, elements of a JSON array, members
// of a list in the answer of an API, or JSON objects one after the other.
//
// A record is at most 64 MiB and 2 million values, and memory holds one of them.
package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"reprise/datasets/internal/fault"
	"reprise/trace/nonfinite"
)

// MaxBytes bounds a record in bytes, and so the memory of a reader. A prompt
// of a million tokens is some 5 MB.
const MaxBytes = 64 << 20

// MaxValues bounds the values of a record of JSON, of which each takes some hundred bytes of memory
// however short it is. A prompt of a million token ids is half of it.
const MaxValues = 2 << 20

const tooMany = "the record has more than 2 million values: is this the right format?"

// TooLong is the reason of the fault of a record that is longer.
const TooLong = "the record is longer than 64 MiB: is this the right format?"

// A Reader yields the raw records of a source one at a time.
type Reader interface {
	// Next returns the next record, valid until the following call, and where
	// it begins; io.EOF at the end. Other errors are faults that stop.
	Next() (raw []byte, err error)
	// Place converts an offset in the current record to a line and a column.
	Place(offset int) (line, col int64)
	// Last reports that the input ends within or directly after the current
	// record, so that a record that does not parse was cut off.
	Last() bool
}

// Lines yields the lines of an input, without blank ones.
type Lines struct {
	in   *bufio.Reader
	max  int
	buf  []byte // a line that is longer than the buffer of in
	line int64
	eof  bool
}

// NewLines reads lines, blank ones left out.
func NewLines(in *bufio.Reader) *Lines { return &Lines{in: in, max: MaxBytes} }

func (l *Lines) Next() ([]byte, error) {
	for !l.eof {
		raw, err := l.ReadLine()
		if err != nil {
			return nil, err
		}
		if raw = bytes.TrimRight(raw, "\r\n"); len(bytes.TrimSpace(raw)) > 0 {
			return raw, nil
		}
	}
	return nil, io.EOF
}

// ReadLine returns the next line with its end.
func (l *Lines) ReadLine() ([]byte, error) {
	l.line++
	l.buf = l.buf[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		switch {
		case err == nil && len(l.buf) == 0:
			return part, nil
		case err == io.EOF:
			l.eof = true
		case err != nil && err != bufio.ErrBufferFull:
			return nil, fault.Broken(l.line, int64(len(l.buf)+len(part))+1, err)
		}
		l.buf = append(l.buf, part...)
		if len(l.buf) > l.max {
			return nil, fault.Refuse(l.line, 1, TooLong)
		}
		if err != bufio.ErrBufferFull {
			return l.buf, nil
		}
	}
}

func (l *Lines) Place(offset int) (line, col int64) { return l.line, int64(offset) + 1 }

func (l *Lines) Last() bool { return l.eof }

// An arrayReader yields the elements of a JSON array that fills its input, in
// memory bounded by the largest element. It finds their ends by counting
// brackets outside strings, much faster than a parser, and leaves the checking
// of what is inside to one.
type arrayReader struct {
	in  *bufio.Reader
	max int

	buf   []byte   // the current element
	start position // of the current element
	pos   position // of the next byte to read
	state arrayState
}

// A position is a place in a text, both from 1; columns count bytes.
type position struct{ line, col int64 }

// advance moves the position after b.
func (p *position) advance(b []byte) {
	if n := bytes.Count(b, []byte("\n")); n > 0 {
		p.line += int64(n)
		p.col = 1
		b = b[bytes.LastIndexByte(b, '\n')+1:]
	}
	p.col += int64(len(b))
}

// PlaceIn is the place of an offset in a text.
func PlaceIn(text []byte, offset int) (line, col int64) {
	at := position{1, 1}
	at.advance(text[:min(offset, len(text))])
	return at.line, at.col
}

type arrayState int

const (
	beforeArray   arrayState = iota
	beforeElement            // after "[" or ","
	afterElement
	afterArray
)

func newArrayReader(in *bufio.Reader) *arrayReader {
	return &arrayReader{in: in, max: MaxBytes, pos: position{1, 1}}
}

func (a *arrayReader) Next() ([]byte, error) {
	first := a.state == beforeArray
	for {
		c, err := a.peek()
		if err == io.EOF && a.state == afterArray {
			return nil, io.EOF
		}
		if err != nil {
			return nil, a.fail(err)
		}
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case a.state == beforeArray && c == '[':
			a.state = beforeElement
		case a.state == afterElement && c == ',':
			a.state = beforeElement
		case c == ']' && (a.state == afterElement || a.state == beforeElement && first):
			a.state = afterArray
		case a.state == beforeElement && c != ',' && c != ']' && c != '}':
			a.state = afterElement
			return a.element(c)
		case a.state == beforeArray:
			return nil, fault.Refuse(a.pos.line, a.pos.col, "want a JSON array")
		case a.state == afterArray:
			return nil, fault.Refuse(a.pos.line, a.pos.col, "something follows the end of the JSON array")
		default:
			return nil, fault.Refuse(a.pos.line, a.pos.col, "want an element, a comma or the end of the JSON array")
		}
		if err := a.consume(1); err != nil {
			return nil, a.fail(err)
		}
	}
}

func (a *arrayReader) peek() (byte, error) {
	b, err := a.in.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// consume consumes n buffered bytes outside elements.
func (a *arrayReader) consume(n int) error {
	b, err := a.in.Peek(n)
	if err != nil {
		return err
	}
	a.pos.advance(b)
	_, err = a.in.Discard(n)
	return err
}

func (a *arrayReader) fail(err error) error {
	if err == io.EOF {
		return fault.CutOff(a.pos.line, a.pos.col, "the JSON array is not closed")
	}
	return fault.Broken(a.pos.line, a.pos.col, err)
}

// element reads the element that begins with c, which is not consumed yet.
func (a *arrayReader) element(c byte) ([]byte, error) {
	a.buf, a.start = a.buf[:0], a.pos
	var s valueScanner
	s.scalar = c != '{' && c != '[' && c != '"'
	for {
		if _, err := a.in.Peek(1); err != nil {
			return nil, a.fail(err)
		}
		b, err := a.in.Peek(a.in.Buffered())
		if err != nil {
			return nil, a.fail(err)
		}
		n, done := s.valueEnd(b)
		a.buf = append(a.buf, b[:n]...)
		a.pos.advance(b[:n])
		if _, err := a.in.Discard(n); err != nil {
			return nil, a.fail(err)
		}
		if done {
			return a.buf, nil
		}
		if len(a.buf) > a.max {
			return nil, fault.Refuse(a.start.line, a.start.col, TooLong)
		}
	}
}

func (a *arrayReader) Place(offset int) (line, col int64) {
	at := a.start
	at.advance(a.buf[:min(offset, len(a.buf))])
	return at.line, at.col
}

// Last is false: an element that was cut off is not returned at all.
func (a *arrayReader) Last() bool { return false }

// A valueScanner finds the end of a JSON value across chunks.
type valueScanner struct {
	scalar   bool // a number or a word, which ends before a comma, a bracket or a space
	depth    int
	inString bool
	escaped  bool // the chunk before ended after a backslash
}

// valueLen is how many bytes of b belong to the value that it begins with, as far as b goes.
func valueLen(b []byte) int {
	var s valueScanner
	n, _ := s.valueEnd(b)
	return n
}

// valueEnd returns how many bytes of b belong to the value, and whether it ends there.
func (s *valueScanner) valueEnd(b []byte) (n int, done bool) {
	if s.scalar {
		if i := bytes.IndexAny(b, ",]} \t\r\n"); i >= 0 {
			return i, true
		}
		return len(b), false
	}
	for i := 0; i < len(b); {
		if s.inString {
			i += s.skipString(b[i:])
			if !s.inString && s.depth == 0 {
				return i, true
			}
			continue
		}
		switch b[i] {
		case '"':
			s.inString = true
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth--; s.depth == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return len(b), false
}

// skipString returns how many bytes of b belong to the string that b is inside.
func (s *valueScanner) skipString(b []byte) int {
	i := 0
	if s.escaped {
		s.escaped = false
		i = 1
	}
	for i < len(b) {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			quote = len(b) - i
		}
		// An escape before the quote decides whether it ends the string; only the
		// run of backslashes directly before it matters.
		run := 0
		for run < quote && b[i+quote-1-run] == '\\' {
			run++
		}
		odd := run%2 == 1
		if i+quote == len(b) {
			s.escaped = odd
			return len(b)
		}
		i += quote + 1
		if !odd {
			s.inString = false
			return i
		}
	}
	return i
}

// Finite are records of JSON in which numbers that are not finite are null: Python writes
// them as NaN and Infinity.
type Finite struct {
	Reader
	grown []int // see [nonfinite.Null], in the current record
}

func (f *Finite) Next() (raw []byte, err error) {
	if raw, err = f.Reader.Next(); err == nil {
		raw, err = f.Null(raw)
	}
	return raw, err
}

// Null does that to the current record, which its Reader has read.
func (f *Finite) Null(raw []byte) ([]byte, error) {
	if hasTooMany(raw) {
		line, col := f.Reader.Place(0)
		return nil, fault.Refuse(line, col, tooMany)
	}
	raw, f.grown = nonfinite.Null(raw)
	return raw, nil
}

// hasTooMany reports whether a record has more than maxValues values.
func hasTooMany(raw []byte) bool {
	if bytes.Count(raw, []byte(",")) < MaxValues {
		return false
	}
	var s valueScanner
	values, inString := 0, false
	for i := 0; i < len(raw); {
		switch {
		case inString:
			s.inString = true
			i += s.skipString(raw[i:])
			inString = s.inString
			continue
		case raw[i] == '"':
			inString = true
		case raw[i] == ',':
			values++
		}
		i++
	}
	return values >= MaxValues
}

func (f *Finite) Place(offset int) (line, col int64) {
	before, _ := slices.BinarySearch(f.grown, offset+1)
	return f.Reader.Place(offset - before)
}

// NewJSONLines reads JSON, one value a line.
func NewJSONLines(in *bufio.Reader) *Finite { return &Finite{Reader: NewLines(in)} }

// NewJSON reads JSON objects as head shows them to stand: in an array, in a list
// of an object around them, one a line, or each over as many lines as it likes.
func NewJSON(in *bufio.Reader, head []byte) Reader {
	return &Finite{Reader: recordsAs(in, head)}
}

func recordsAs(in *bufio.Reader, head []byte) Reader {
	head = bytes.TrimSpace(head)
	if list, _ := EnvelopeList(head); list != "" {
		return NewEnvelope(in, list)
	}
	if len(head) > 0 && head[0] == '[' && !listsByLine(head) {
		return newArrayReader(in)
	}
	// An object over several lines is not a line that is at fault in a file of one
	// object a line.
	first, rest, several := bytes.Cut(head, []byte("\n"))
	rest = bytes.TrimSpace(rest)
	if several && len(first) > 0 && first[0] == '{' && len(rest) > 0 && !json.Valid(first) &&
		(rest[0] != '{' || spansLines(head)) {
		return &valueReader{*newArrayReader(in)}
	}
	return NewLines(in)
}

// listsByLine reports whether the first lines are lists, each by itself.
func listsByLine(head []byte) bool {
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	rest = bytes.TrimSpace(rest)
	return len(rest) > 0 && rest[0] == '[' && json.Valid(first)
}

// spansLines reports whether head begins with one value, as far as head goes.
func spansLines(head []byte) bool {
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(head)).Decode(&value)
	return err == nil || err == io.ErrUnexpectedEOF
}

// A valueReader yields JSON objects that follow one another, such as files that
// were put end to end.
type valueReader struct{ arrayReader }

func (v *valueReader) Next() ([]byte, error) {
	for {
		c, err := v.peek()
		switch {
		case err == io.EOF:
			return nil, io.EOF
		case err != nil:
			return nil, fault.Broken(v.pos.line, v.pos.col, err)
		case c == '{':
			raw, err := v.element(c)
			if f, ok := err.(*fault.Fault); ok && f.Err == io.ErrUnexpectedEOF {
				return nil, fault.CutOff(f.Line, f.Col, "the last record is not whole")
			}
			return raw, err
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return nil, fault.Refuse(v.pos.line, v.pos.col, "want a JSON object")
		}
		if err := v.consume(1); err != nil {
			return nil, v.fail(err)
		}
	}
}
