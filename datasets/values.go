package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"
)

// newJSONReader reads JSON objects as head shows them to stand: in an array, one
// a line, or each over as many lines as it likes.
func newJSONReader(in *bufio.Reader, head []byte) records {
	switch head = bytes.TrimSpace(head); {
	case len(head) > 0 && head[0] == '[':
		return newArrayReader(in)
	case spreads(head):
		return &valueReader{*newArrayReader(in)}
	}
	return newLineReader(in)
}

// spreads reports whether head begins with an object over several lines, unlike
// a line that is at fault in a file of one object a line.
func spreads(head []byte) bool {
	first, rest, several := bytes.Cut(head, []byte("\n"))
	rest = bytes.TrimSpace(rest)
	return several && len(first) > 0 && first[0] == '{' && len(rest) > 0 && rest[0] != '{' && !json.Valid(first)
}

// A valueReader yields JSON objects that follow one another, such as files that
// were put end to end.
type valueReader struct{ arrayReader }

func (v *valueReader) next() ([]byte, error) {
	for {
		c, err := v.peek()
		switch {
		case err == io.EOF:
			return nil, io.EOF
		case err != nil:
			return nil, broken(v.pos.line, v.pos.col, err)
		case c == '{':
			raw, err := v.element(c)
			if f, ok := err.(*fault); ok && f.err == io.ErrUnexpectedEOF {
				return nil, cutOff(f.line, f.col, "the last record is not whole")
			}
			return raw, err
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return nil, refuse(v.pos.line, v.pos.col, "want a JSON object")
		}
		if err := v.take(1); err != nil {
			return nil, v.fail(err)
		}
	}
}

// detectObject makes a detector of JSON objects by their keys, however they
// stand: see [newJSONReader].
func detectObject(match func(has func(key string) bool) bool) func(head []byte) bool {
	lines := detectKeys(match)
	return func(head []byte) bool {
		whole := bytes.TrimSpace(head)
		keys := objectKeys(bytes.TrimSpace(bytes.TrimPrefix(whole, []byte("["))))
		return match(func(key string) bool { return slices.Contains(keys, key) }) || lines(head)
	}
}

// fileRecords are the records of several files, one file after the other.
type fileRecords struct {
	rest []File
	in   records // of the current file
	s    *Source // which closes the current file, and whose errors name it
}

func (f *fileRecords) next() ([]byte, error) {
	for {
		if f.in == nil {
			if err := f.advance(); err != nil {
				return nil, err
			}
		}
		raw, err := f.in.next()
		if err != io.EOF {
			return raw, err
		}
		f.in = nil
	}
}

// advance opens the next file; io.EOF behind the last.
func (f *fileRecords) advance() error {
	if err := f.s.Close(); err != nil {
		return broken(1, 1, err)
	}
	if len(f.rest) == 0 {
		return io.EOF
	}
	file := f.rest[0]
	f.rest = f.rest[1:]
	f.s.file = file.Name
	r, err := file.Open()
	if err != nil {
		return broken(1, 1, err)
	}
	f.s.closer = r
	in, head, err := begin(r)
	if err != nil && len(head) == 0 {
		return broken(1, 1, err)
	}
	f.in = newJSONReader(in, head)
	return nil
}

func (f *fileRecords) place(offset int) (line, col int64) { return f.in.place(offset) }

func (f *fileRecords) last() bool { return f.in.last() }

// begin returns what r begins with, without a mark.
func begin(r io.Reader) (in *bufio.Reader, head []byte, err error) {
	in = bufio.NewReaderSize(r, detectBytes)
	if mark, _ := in.Peek(3); string(mark) == byteOrderMark {
		if _, err := in.Discard(3); err != nil {
			return nil, nil, err
		}
	}
	if head, err = in.Peek(detectBytes); err == io.EOF {
		err = nil
	}
	return in, head, err
}

// eachFile makes a detector of several files, all of which must be detected but
// for empty ones.
func eachFile(detect func(head []byte) bool) func(files []File) bool {
	return func(files []File) bool {
		some := false
		for _, file := range files {
			head, err := file.head()
			empty := len(bytes.TrimSpace(head)) == 0
			if empty && err != nil || !empty && !detect(head) {
				return false
			}
			some = some || !empty
		}
		return some
	}
}

func (f File) head() ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	_, head, err := begin(r)
	return head, err
}
