package row

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/stamp"
)

// CSV yields the rows of a CSV input whose first row names the columns. Without such
// a row the columns are named by their position, from 1.
type CSV struct {
	in       csvInput
	csv      *csv.Reader
	dialect  csvDialect
	columns  []string
	Nameless bool     // the first row is a record
	fields   []string // of the current row
	first    bool     // the current row is the first one, and comes again
	line     int64    // at which the next row begins
	known    *Fields
}

// A csvInput bounds the length of a row, which encoding/csv does not, tells how the
// input ends, and writes it as encoding/csv reads it, byte for byte.
type csvInput struct {
	r       io.Reader
	dialect csvDialect
	quoted  bool // within a field in quotes, where backslashes are looked for
	held    bool // a backslash at the end of what was read
	max     int64
	total   int64 // bytes read
	between int   // delimiters of a long row, outside of quotes as far as is seen
	row     int64 // offset at which the current row begins
	eof     bool
}

// maxHeader bounds a header in bytes, and the delimiters of a long row: each field takes
// memory, however short it is.
const maxHeader = 1 << 20

var errTooLong = errors.New(record.TooLong)

func (c *csvInput) Read(p []byte) (int, error) {
	if c.total-c.row > c.max || c.between > maxHeader {
		return 0, errTooLong
	}
	from := 0
	if c.held && len(p) > 1 {
		p[0], from, c.held = '\\', 1, false
	}
	n, err := c.r.Read(p[from:])
	n += from
	c.eof = c.eof || err == io.EOF
	if c.dialect.escaped {
		n = c.unescape(p[:n], err != nil)
	}
	c.dialect.swapQuotes(p[:n])
	if c.dialect.returns {
		for i, b := range p[:n] {
			if b == '\r' {
				p[i] = '\n'
			}
		}
	}
	if c.total += int64(n); c.total-c.row > maxHeader && !bytes.ContainsAny(p[:n], "\"\n") {
		c.between += bytes.Count(p[:n], []byte(string(c.dialect.delimiter)))
	} else {
		c.between = 0
	}
	return n, err
}

// unescape doubles a quote in place of the backslash before it. It returns how much of b
// can be given out: the last backslash waits for what comes next.
func (c *csvInput) unescape(b []byte, last bool) int {
	quote := c.dialect.quote
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == quote:
			c.quoted = !c.quoted
		case b[i] != '\\' || !c.quoted:
		case i+1 == len(b) && !last:
			c.held = true
			return i
		case i+1 < len(b) && b[i+1] == quote:
			b[i] = quote
			i++
		case i+1 < len(b) && b[i+1] == '\\':
			i++
		}
	}
	return len(b)
}

// CSVOptions say how CSV is written. The zero csvOptions detect it.
type CSVOptions struct {
	Delimiter string // between the columns: a character or "tab"
	Decimal   string // what stands before the decimals: point or comma
}

// NewCSV reads the header of r.
func NewCSV(r io.Reader, o CSVOptions) (*CSV, error) {
	in := bufio.NewReaderSize(r, record.HeadBytes)
	head, _ := in.Peek(record.HeadBytes) // an error comes again at its place
	return newRowsOf(in, sniffCSV(head, o))
}

// newRowsOf reads the header of an input in a dialect.
func newRowsOf(in *bufio.Reader, dialect csvDialect) (*CSV, error) {
	c := &CSV{line: int64(dialect.above) + 1, dialect: dialect}
	c.in = csvInput{r: in, dialect: dialect, max: maxHeader}
	if _, err := in.Discard(dialect.skip); err != nil {
		return nil, fault.Broken(1, 1, err)
	}
	c.csv = c.dialect.reader(&c.in)
	c.csv.ReuseRecord = true
	fields, err := c.read()
	c.in.max = record.MaxBytes
	if err == io.EOF {
		return nil, fault.Refuse(1, 1, "the input is empty")
	}
	c.columns = slices.Clone(fields)
	if c.Nameless = err == nil && namesNothing(fields); c.Nameless {
		c.fields, c.first = slices.Clone(fields), true
		for i := range c.columns {
			c.columns[i] = strconv.Itoa(i + 1)
		}
	}
	return c, err
}

// namesNothing reports whether some fields are a record and not a header: one of them is
// a date or a number, unless they count the columns.
func namesNothing(fields []string) bool {
	values, counted := false, 0
	for i, field := range fields {
		if field == strconv.Itoa(i) || field == strconv.Itoa(i+1) {
			counted++
		}
		_, ok := stamp.Read(field)
		values = values || ok
	}
	return values && counted < len(fields)
}

// read returns the next row; a row at fault is a *fault.
func (c *CSV) read() ([]string, error) {
	c.in.row = c.csv.InputOffset()
	fields, err := c.csv.Read()
	var parse *csv.ParseError
	switch {
	case err == nil:
		line, _ := c.at(len(fields) - 1)
		c.line = line + int64(strings.Count(fields[len(fields)-1], "\n")) + 1
		for i, field := range fields {
			if c.dialect.quote == '\'' {
				field = string(c.dialect.swapQuotes([]byte(field)))
			}
			if c.dialect.escaped {
				field = strings.ReplaceAll(field, `\\`, `\`)
			}
			if !utf8.ValidString(field) {
				field = validText(field)
			}
			fields[i] = field
		}
		return fields, nil
	case err == io.EOF:
		return nil, err
	case errors.Is(err, errTooLong):
		return nil, fault.Refuse(c.line, 1, record.TooLong)
	case !errors.As(err, &parse):
		return nil, fault.Broken(c.line, 1, err)
	}
	line, col := int64(parse.Line+c.dialect.above), int64(parse.Column)
	c.line = line + 1
	if c.Cut() {
		return nil, fault.CutOff(line, col, "a quoted field is not closed")
	}
	return nil, fault.Bad(line, col, "a quote is out of place")
}

// validText is what a field says that is not UTF-8: text in Windows-1252, of which Latin-1
// is a part, unless some of it is UTF-8. Then each bad byte becomes U+FFFD, as in JSON.
func validText(field string) string {
	for _, c := range field {
		if c >= 0x80 && c != utf8.RuneError {
			return string([]rune(field))
		}
	}
	text, err := charmap.Windows1252.NewDecoder().String(field)
	if err != nil {
		return string([]rune(field))
	}
	return text
}

// at returns where a field of the current row begins.
func (c *CSV) at(field int) (line, col int64) {
	l, k := c.csv.FieldPos(field)
	return int64(l + c.dialect.above), int64(k)
}

func (c *CSV) Next() (Row, error) {
	if c.first {
		c.first = false
		return c, nil
	}
	for {
		fields, err := c.read()
		if err != nil {
			return nil, err
		}
		if len(c.columns) > 1 && blankFields(fields) {
			continue
		}
		whole := false
		if c.fields, whole = evenFields(fields, c.columns); whole {
			return c, nil
		}
		line, col := c.Place("")
		if len(fields) > len(c.columns) {
			return nil, fault.Bad(line, col, "the row has more fields than the header")
		}
		if c.Cut() {
			last := len(fields) - 1
			line, column := c.at(last)
			return nil, fault.CutOff(line, column+int64(len(fields[last])), "the last row is not whole")
		}
		return nil, fault.Bad(line, col, "the row has fewer fields than the header")
	}
}

// Cut reports that the current row is the last and has no line end. A file
// that is cut inside its last number looks whole: that cannot be told. The end
// of the input is met only in search of a line end that is not there.
func (c *CSV) Cut() bool {
	return c.in.eof && c.csv.InputOffset() == c.in.total
}

func (c *CSV) Value(column string) (any, bool) {
	i := slices.Index(c.columns, column)
	// Databases write NULL and \N for what is not there.
	if i < 0 || c.fields[i] == "" || c.fields[i] == "NULL" || c.fields[i] == `\N` {
		return nil, false
	}
	if i < len(c.dialect.marks) {
		return c.dialect.number(c.fields[i], c.dialect.marks[i]), true
	}
	return c.fields[i], true
}

// Place returns where a field begins, or the row when it has no such field.
func (c *CSV) Place(column string) (line, col int64) {
	i := slices.Index(c.columns, column)
	if column == "" || i < 0 || i >= len(c.fields) {
		i = 0
	}
	return c.at(i)
}

// Admit takes the names from columns that are not read, so that nothing finds them. Of
// those that hold JSON a part is read.
func (c *CSV) Admit(known *Fields, packed []string) {
	c.known = known
	for i, name := range c.columns {
		if !slices.Contains(packed, name) && !known.Reads(name) {
			c.columns[i] = ""
		}
	}
}

// AdmitAt implements admitter.
func (c *CSV) AdmitAt(path string, v any) { c.known.AdmitAt(path, v) }

// CSVInputs reads rows of CSV and their first ones in head. how says what is unlike CSV as most write
// it, or "".
func CSVInputs(in *bufio.Reader, head []byte, o CSVOptions) (all, first *CSV, how string, err error) {
	dialect := sniffCSV(head, o)
	if all, err = newRowsOf(in, dialect); err != nil {
		return nil, nil, "", err
	}
	whole := head
	if at := bytes.LastIndexAny(head, "\r\n"); len(head) == record.HeadBytes && at > 0 {
		whole = head[:at+1]
	}
	first, err = newRowsOf(bufio.NewReader(bytes.NewReader(whole)), dialect)
	return all, first, dialect.describe(), err
}

// Again reads the first rows of the input once more, by what it begins with.
func (c *CSV) Again(head []byte) (*CSV, error) {
	return newRowsOf(bufio.NewReader(bytes.NewReader(head)), c.dialect)
}

// Names are those of the columns, from 1 where no row names them.
func (c *CSV) Names() []string { return c.columns }
