package datasets

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// csvRows yields the rows of a CSV input whose first row names the columns.
type csvRows struct {
	in      csvInput
	csv     *csv.Reader
	dialect csvDialect
	columns []string
	fields  []string // of the current row
	line    int64    // at which the next row begins
	known   *fieldCounter
}

// A csvInput bounds the length of a row, which encoding/csv does not, and tells
// how the input ends.
type csvInput struct {
	r     io.Reader
	swap  func([]byte) []byte // quotes
	max   int64
	total int64 // bytes read
	row   int64 // offset at which the current row begins
	eof   bool
}

var errTooLong = errors.New(tooLong)

func (c *csvInput) Read(p []byte) (int, error) {
	if c.total-c.row > c.max {
		return 0, errTooLong
	}
	n, err := c.r.Read(p)
	c.swap(p[:n])
	c.total += int64(n)
	c.eof = c.eof || err == io.EOF
	return n, err
}

// newCSVRows reads the header of r, which the delimiter separates; 0 looks for it.
func newCSVRows(r io.Reader, delimiter rune) (*csvRows, error) {
	in := bufio.NewReaderSize(r, detectBytes)
	head, _ := in.Peek(detectBytes) // an error comes again at its place
	c := &csvRows{line: 1, dialect: sniffCSV(head, delimiter)}
	c.in = csvInput{r: in, swap: c.dialect.swapQuotes, max: maxRecord}
	c.csv = c.dialect.reader(&c.in)
	c.csv.ReuseRecord = true
	fields, err := c.read()
	if err == nil && c.dialect.preamble {
		fields, err = c.read()
	}
	if err == io.EOF {
		return nil, refuse(1, 1, "the input is empty")
	}
	c.columns = slices.Clone(fields)
	return c, err
}

// read returns the next row; a row at fault is a *fault.
func (c *csvRows) read() ([]string, error) {
	c.in.row = c.csv.InputOffset()
	fields, err := c.csv.Read()
	var parse *csv.ParseError
	switch {
	case err == nil:
		line, _ := c.csv.FieldPos(len(fields) - 1)
		c.line = int64(line + strings.Count(fields[len(fields)-1], "\n") + 1)
		if c.dialect.quote == '\'' {
			for i := range fields {
				fields[i] = string(c.dialect.swapQuotes([]byte(fields[i])))
			}
		}
		return fields, nil
	case err == io.EOF:
		return nil, err
	case errors.Is(err, errTooLong):
		return nil, refuse(c.line, 1, tooLong)
	case !errors.As(err, &parse):
		return nil, broken(c.line, 1, err)
	}
	line, col := int64(parse.Line), int64(parse.Column)
	c.line = line + 1
	if c.cut() {
		return nil, cutOff(line, col, "a quoted field is not closed")
	}
	return nil, bad(line, col, "a quote is out of place")
}

func (c *csvRows) next() (row, error) {
	fields, err := c.read()
	if err != nil {
		return nil, err
	}
	c.fields = fields
	if len(fields) == len(c.columns) {
		return c, nil
	}
	line, col := c.place("")
	if len(fields) > len(c.columns) {
		return nil, bad(line, col, "the row has more fields than the header")
	}
	if c.cut() {
		last := len(fields) - 1
		line, column := c.csv.FieldPos(last)
		return nil, cutOff(int64(line), int64(column+len(fields[last])), "the last row is not whole")
	}
	return nil, bad(line, col, "the row has fewer fields than the header")
}

// cut reports that the current row is the last and has no line end. A file
// that is cut inside its last number looks whole: that cannot be told. The end
// of the input is met only in search of a line end that is not there.
func (c *csvRows) cut() bool {
	return c.in.eof && c.csv.InputOffset() == c.in.total
}

func (c *csvRows) value(column string) (any, bool) {
	i := slices.Index(c.columns, column)
	if i < 0 || c.fields[i] == "" {
		return nil, false
	}
	if s := c.fields[i]; !utf8.ValidString(s) {
		return string([]rune(s)), true // each bad byte becomes U+FFFD, as in JSON
	}
	if i < len(c.dialect.marks) {
		return plainNumber(c.fields[i], c.dialect.marks[i]), true
	}
	return c.fields[i], true
}

// place returns where a field begins, or the row when it has no such field.
func (c *csvRows) place(column string) (line, col int64) {
	i := slices.Index(c.columns, column)
	if column == "" || i < 0 || i >= len(c.fields) {
		i = 0
	}
	l, k := c.csv.FieldPos(i)
	return int64(l), int64(k)
}

// need checks that a column is there for each mapped target, and only once.
func (c *csvRows) need(m Mapping, o Options) error {
	for _, t := range targets {
		name, n := t.name, 0
		paths, ok := m[name]
		if !ok {
			continue
		}
		for _, column := range c.columns {
			if slices.Contains(paths, column) {
				n++
			}
		}
		if n == 0 && o.Map[name] != nil && o.inspect != nil {
			return absentColumn(name, paths, o.inspect())
		}
		if n == 0 {
			return refuse(1, 1, "the header has no column for "+name)
		}
		if n > len(paths) {
			return refuse(1, 1, "the header has several columns for "+name)
		}
	}
	return nil
}

// admit takes the names from columns that are not read, so that nothing finds them.
func (c *csvRows) admit(known *fieldCounter) {
	c.known = known
	for i, name := range c.columns {
		if !known.reads(name) {
			c.columns[i] = ""
		}
	}
}

// admitAt implements admitter.
func (c *csvRows) admitAt(path string, v any) { c.known.admitAt(path, v) }

// csvInputs reads rows of CSV and their first ones in head.
func csvInputs(in *bufio.Reader, head []byte, o Options, s *Source) (all, first *csvRows, err error) {
	if all, err = newCSVRows(in, delimiterNamed(o.Delimiter)); err != nil {
		return nil, nil, err
	}
	if how := all.dialect.describe(); how != "" {
		s.notes.sayOnce("read as CSV with " + how)
	}
	first, err = newCSVRows(bytes.NewReader(bytes.Join(headLines(head), []byte("\n"))), all.dialect.delimiter)
	return all, first, err
}
