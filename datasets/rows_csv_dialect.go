package datasets

import (
	"bytes"
	"encoding/csv"
	"io"
	"slices"
	"strings"
)

// A csvDialect is how a CSV file is written.
type csvDialect struct {
	delimiter rune
	quote     byte          // around fields: ' or "
	marks     []decimalMark // of the numbers in each column
	preamble  bool          // a line such as sep=; stands before the header
}

// A decimalMark is what stands before the decimals in the numbers of a column.
type decimalMark byte

const (
	asWritten  decimalMark = iota // the column holds more than numbers, or nothing that shows the mark
	unresolved                    // numbers, none of which shows the mark
	point
	comma
)

// csvDelimiters are those that are recognised, in order of preference.
var csvDelimiters = []rune{',', ';', '\t', '|'}

// delimiterNamed returns the delimiter that --delimiter names, or 0.
func delimiterNamed(name string) rune {
	switch name {
	case "tab", `\t`:
		return '\t'
	}
	if d := []rune(name); len(d) == 1 && d[0] != '"' && d[0] != '\'' && d[0] != '\n' && d[0] != '\r' && d[0] != '\uFFFD' {
		return d[0]
	}
	return 0
}

// sniffCSV finds the dialect of a file by its beginning: the delimiter and the quotes
// under which most rows have as many fields as the header. told is a delimiter, or 0.
func sniffCSV(head []byte, told rune) csvDialect {
	best := csvDialect{delimiter: ',', quote: '"'}
	candidates := csvDelimiters
	if told != 0 {
		best.delimiter, candidates = told, []rune{told}
	}
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	if first = bytes.TrimRight(first, "\r"); bytes.HasPrefix(first, []byte("sep=")) && len(first) == len("sep=;") {
		best.preamble, head = true, rest
		if told == 0 {
			candidates = []rune{rune(first[4])}
		}
	}
	sample := bytes.Join(headLines(head), []byte("\n"))
	var rows [][]string
	most := csvFit{}
	header, _, _ := bytes.Cut(sample, []byte("\n"))
	for _, quote := range []byte{'"', '\''} {
		if quote == '\'' && bytes.IndexByte(sample, '\'') < 0 {
			break
		}
		for _, delimiter := range candidates {
			if told == 0 && !bytes.ContainsRune(header, delimiter) && bytes.IndexByte(header, quote) < 0 {
				continue // there is one column
			}
			d := csvDialect{delimiter: delimiter, quote: quote, preamble: best.preamble}
			fit, read := d.fit(sample)
			better := fit.columns > 1 && (fit.share > most.share || fit.share == most.share && fit.columns > most.columns)
			if better || quote == '\'' && fit == most && fit.columns > 1 {
				most, best, rows = fit, d, read
			}
		}
	}
	best.marks = decimalMarks(rows)
	return best
}

// A csvFit says how well a dialect fits a sample.
type csvFit struct {
	columns int
	share   float64 // of the rows that have as many fields as the header
}

// sniffedRows bounds the rows that a dialect is told from.
const sniffedRows = 1000

// fit reads a sample in the dialect. Single quotes count only where every row is whole
// and half of them have some, since texts have apostrophes.
func (d csvDialect) fit(sample []byte) (csvFit, [][]string) {
	in := d.reader(bytes.NewReader(d.swapQuotes(slices.Clone(sample))))
	var rows [][]string
	header, all := 0, 0
	for all < sniffedRows {
		fields, err := in.Read()
		if err == io.EOF {
			break
		}
		if header == 0 {
			if err != nil {
				return csvFit{}, nil
			}
			header = len(fields)
			continue
		}
		if all++; err == nil && len(fields) == header {
			rows = append(rows, fields)
		}
	}
	if d.quote == '\'' && (len(rows) < all || 2*d.opened(sample) < max(all, 1)) {
		return csvFit{}, nil
	}
	return csvFit{header, float64(len(rows)) / float64(max(all, 1))}, rows
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

// reader reads fields of what swapQuotes returns.
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
	if slices.Contains(d.marks, comma) {
		parts = append(parts, "decimal commas")
	}
	return strings.Join(parts, ", ")
}

// decimalMarks tells from a sample what stands before the decimals in each column of
// numbers. A column that does not show it is written as the others are.
func decimalMarks(rows [][]string) []decimalMark {
	if len(rows) == 0 {
		return nil
	}
	marks := make([]decimalMark, len(rows[0]))
	for i := range marks {
		marks[i] = columnMark(rows, i)
	}
	other := asWritten
	if slices.Contains(marks, comma) != slices.Contains(marks, point) {
		other = point
		if slices.Contains(marks, comma) {
			other = comma
		}
	}
	for i, m := range marks {
		if m == unresolved {
			marks[i] = other
		}
	}
	return marks
}

func columnMark(rows [][]string, column int) decimalMark {
	mark, numbers := unresolved, false
	for _, fields := range rows {
		field := strings.TrimPrefix(strings.TrimSpace(fields[column]), "-")
		if field == "" {
			continue
		}
		if strings.Trim(field, "0123456789.,") != "" || strings.Trim(field, ".,") == "" {
			return asWritten
		}
		numbers = true
		shown := markOf(field)
		if shown != unresolved && mark != unresolved && shown != mark {
			return asWritten
		}
		if shown != unresolved {
			mark = shown
		}
	}
	if !numbers {
		return asWritten
	}
	return mark
}

// markOf tells the decimal mark of one number. Three digits behind a single mark may be
// thousands, unless no thousands could stand before it.
func markOf(number string) decimalMark {
	points, commas := strings.Count(number, "."), strings.Count(number, ",")
	at := strings.LastIndexAny(number, ".,")
	switch {
	case at < 0:
		return unresolved
	case points > 0 && commas > 0, points+commas == 1 && (len(number)-at-1 != 3 || at == 0 || at > 3 || number[0] == '0'):
		if number[at] == ',' {
			return comma
		}
		return point
	case commas > 1:
		return point
	case points > 1:
		return comma
	}
	return unresolved
}

// plainNumber writes a number of a column as readers of numbers want it: without marks
// between thousands, and with a decimal point. What is no such number stays.
func plainNumber(s string, mark decimalMark) string {
	thousands, decimal := ",", "."
	if mark == comma {
		thousands, decimal = ".", ","
	}
	if mark != point && mark != comma || !strings.Contains(s, thousands) && (mark == point || !strings.Contains(s, decimal)) {
		return s
	}
	number := strings.TrimSpace(s)
	digits, minus := strings.CutPrefix(number, "-")
	whole, rest, fraction := strings.Cut(digits, decimal)
	groups := strings.Split(whole, thousands)
	for i, g := range groups {
		if strings.Trim(g, "0123456789") != "" || g == "" || len(groups) > 1 && (len(g) > 3 || i > 0 && len(g) != 3) {
			return s
		}
	}
	if strings.Trim(rest, "0123456789") != "" {
		return s
	}
	whole = strings.Join(groups, "")
	if minus {
		whole = "-" + whole
	}
	if fraction {
		whole += "." + rest
	}
	return whole
}
