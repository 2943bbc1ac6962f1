package row

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/datasets/internal/record"
)

// A csvDialect is how a CSV file is written.
type csvDialect struct {
	delimiter rune
	quote     byte          // around fields: ' or "
	escaped   bool          // a backslash stands before a quote in a field, in place of a second quote
	returns   bool          // lines end in a carriage return alone
	latin1    bool          // texts are not UTF-8
	above     int           // lines before the header: sep=;, comments, a title
	skip      int           // bytes of these lines
	titles    int           // of these lines, but for sep=;
	marks     []decimalMark // of the numbers in each column
}

// A decimalMark is what stands before the decimals in the numbers of a column.
type decimalMark byte

const (
	asWritten  decimalMark = iota // the column holds more than numbers, or whole numbers alone
	unresolved                    // three digits are behind each mark: it is of decimals or of thousands
	point
	comma
)

// csvDelimiters are those that are recognised, in order of preference.
var csvDelimiters = []rune{',', ';', '\t', '|'}

// DelimiterNamed returns the delimiter that --delimiter names, or 0.
func DelimiterNamed(name string) rune {
	switch name {
	case "tab", `\t`:
		return '\t'
	}
	if d := []rune(name); len(d) == 1 && d[0] != '"' && d[0] != '\'' && d[0] != '\n' && d[0] != '\r' &&
		d[0] != '\uFFFD' {
		return d[0]
	}
	return 0
}

// titleLines bounds the lines that may stand before the header.
const titleLines = 10

// sniffCSV finds the dialect of a file by its beginning: the delimiter and the quotes
// under which most rows have as many fields as the header. Options may name the
// delimiter and the decimal mark.
func sniffCSV(head []byte, o CSVOptions) csvDialect {
	d := csvDialect{delimiter: ',', quote: '"'}
	d.returns = bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(head, "\r"), '\r') >= 0
	candidates := csvDelimiters
	if told := DelimiterNamed(o.Delimiter); told != 0 {
		d.delimiter, candidates = told, []rune{told}
	}
	if d.returns {
		head = bytes.ReplaceAll(head, []byte("\r"), []byte("\n"))
	}
	d.latin1 = !utf8.Valid(head[:len(head)-cutRune(head)])
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	if line := bytes.TrimRight(first, "\r"); bytes.HasPrefix(line, []byte("sep=")) && len(line) == len("sep=;") {
		d.above, d.skip = 1, len(head)-len(rest)
		if o.Delimiter == "" {
			candidates = []rune{rune(line[4])}
		}
	}
	best, rows := d.bestFit(head[d.skip:], candidates)
	for title := d; title.above < titleLines && title.skip < len(head); {
		line, rest, more := bytes.Cut(head[title.skip:], []byte("\n"))
		comment := line[:min(1, len(line))]
		if !more || best.fitted.columns > 1 && !best.fitted.title &&
			(string(comment) != "#" || best.isHeader(line, rest)) {
			break
		}
		title.above, title.titles, title.skip = title.above+1, title.titles+1, len(head)-len(rest)
		if next, of := title.bestFit(rest, candidates); string(comment) == "#" ||
			next.fitted.columns > 2 && next.fitted.share > 0.9 && !next.fitted.title && isTitle(line, next.delimiter) {
			best, rows = next, of
		}
	}
	best.marks = decimalMarks(rows, o.Decimal)
	return best.csvDialect
}

// cutRune is how many bytes at the end of b may be of a character that is cut.
func cutRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			break
		}
	}
	return 0
}

// A fittedDialect is a dialect with how well it fits a sample.
type fittedDialect struct {
	csvDialect
	fitted csvFit
}

// A csvFit says how well a dialect fits a sample.
type csvFit struct {
	columns int
	share   float64 // of the rows that have as many fields as the header
	title   bool    // one field of the first row alone is not empty
}

// bestFit finds the delimiter and the quotes that fit best, and the rows by them.
func (d csvDialect) bestFit(head []byte, delimiters []rune) (best fittedDialect, rows [][]string) {
	sample := bytes.Join(record.HeadLines(head), []byte("\n"))
	best.csvDialect = d
	header, _, _ := bytes.Cut(sample, []byte("\n"))
	for _, quote := range []byte{'"', '\''} {
		if quote == '\'' && bytes.IndexByte(sample, quote) < 0 {
			break
		}
		for _, escaped := range []bool{false, true} {
			if escaped && !bytes.Contains(sample, []byte{'\\', quote}) {
				break
			}
			for _, delimiter := range delimiters {
				if !bytes.ContainsRune(header, delimiter) && bytes.IndexByte(header, quote) < 0 {
					continue // there is one column
				}
				d.delimiter, d.quote, d.escaped = delimiter, quote, escaped
				fit, read := d.fit(sample)
				most := best.fitted
				better := fit.columns > 1 && (fit.share > most.share ||
					fit.share == most.share && fit.columns > most.columns)
				if better || quote == '\'' && fit == most && fit.columns > 1 && !escaped {
					best, rows = fittedDialect{d, fit}, read
				}
			}
		}
	}
	return best, rows
}

// SniffedRows bounds the rows that a dialect is told from.
const SniffedRows = 1000

// fit reads a sample in the dialect. Single quotes count only where every row is whole
// and half of them have some, since texts have apostrophes.
func (d csvDialect) fit(sample []byte) (csvFit, [][]string) {
	in := d.reader(&csvInput{r: bytes.NewReader(sample), dialect: d, max: record.MaxBytes})
	var rows [][]string
	var header []string
	all := 0
	for all < SniffedRows {
		fields, err := in.Read()
		if err == io.EOF {
			break
		}
		if header == nil {
			if err != nil {
				return csvFit{}, nil
			}
			header = fields
			continue
		}
		if err != nil || !blankFields(fields) {
			all++
		}
		if fields, ok := evenFields(fields, header); ok && err == nil && !blankFields(fields) {
			rows = append(rows, fields)
		}
	}
	if d.quote == '\'' && (len(rows) < all || 2*d.opened(sample) < max(all, 1)) {
		return csvFit{}, nil
	}
	named := 0
	for _, name := range header {
		if strings.TrimSpace(name) != "" {
			named++
		}
	}
	return csvFit{len(header), float64(len(rows)) / float64(max(all, 1)), named < 2 && len(header) > 2}, rows
}

// isTitle reports whether a line has one field at the most that is not empty.
func isTitle(line []byte, delimiter rune) bool {
	filled := 0
	for field := range bytes.SplitSeq(line, []byte(string(delimiter))) {
		if len(bytes.TrimSpace(field)) > 0 {
			filled++
		}
	}
	return filled < 2
}

// isHeader reports whether a comment is a header behind a mark: the line after it has as
// many fields, of which it has two or more.
func (d fittedDialect) isHeader(comment, rest []byte) bool {
	next, _, _ := bytes.Cut(rest, []byte("\n"))
	count := func(line []byte) int {
		fields, err := d.reader(&csvInput{r: bytes.NewReader(line), dialect: d.csvDialect, max: record.MaxBytes}).Read()
		if err != nil {
			return 0
		}
		return len(fields)
	}
	n := count(comment)
	return n > 1 && n == count(next)
}

func blankFields(fields []string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return strings.TrimSpace(f) != "" })
}

// evenFields makes a row as long as the header. Empty fields behind the last column, and
// columns without a name that a row lacks, are no fault.
func evenFields(fields, header []string) ([]string, bool) {
	if n := len(header); len(fields) > n && blankFields(fields[n:]) {
		fields = fields[:n]
	} else if len(fields) < n && len(fields) > 0 && blankFields(header[len(fields):]) {
		fields = append(slices.Clone(fields), make([]string, n-len(fields))...)
	}
	return fields, len(fields) == len(header)
}

// opened counts the fields that begin with the quote.
func (d csvDialect) opened(sample []byte) (n int) {
	for i, c := range sample {
		if c == d.quote && (i == 0 || sample[i-1] == '\n' || rune(sample[i-1]) == d.delimiter) {
			n++
		}
	}
	return n
}

// reader reads fields of what a csvInput of the dialect returns.
func (d csvDialect) reader(r io.Reader) *csv.Reader {
	in := csv.NewReader(r)
	in.Comma, in.FieldsPerRecord = d.delimiter, -1
	return in
}

// swapQuotes makes the quotes of the dialect those that encoding/csv knows, in place,
// and the other way round: it is done once to the input and once to each field.
func (d csvDialect) swapQuotes(b []byte) []byte {
	if d.quote == '\'' {
		for i, c := range b {
			switch c {
			case '"':
				b[i] = '\''
			case '\'':
				b[i] = '"'
			}
		}
	}
	return b
}

// describe says what is unlike CSV as most write it, or "".
func (d csvDialect) describe() string {
	var parts []string
	switch d.delimiter {
	case ',':
	case '\t':
		parts = append(parts, "tabs between the columns")
	default:
		parts = append(parts, string(d.delimiter)+" between the columns")
	}
	if d.quote == '\'' {
		parts = append(parts, "single quotes")
	}
	if d.escaped {
		parts = append(parts, "backslashes before quotes")
	}
	if slices.Contains(d.marks, comma) {
		parts = append(parts, "decimal commas")
	}
	if d.latin1 {
		parts = append(parts, "text in Latin-1 (Windows-1252)")
	}
	if d.titles == 1 {
		parts = append(parts, "1 line above the header")
	} else if d.titles > 0 {
		parts = append(parts, fmt.Sprintf("%d lines above the header", d.titles))
	}
	return strings.Join(parts, ", ")
}
