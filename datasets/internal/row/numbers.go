package row

import (
	"slices"
	"strings"
)

// decimalMarks tells from a sample what stands before the decimals in each column of
// numbers. A column that does not show it is written as the others are, if they agree;
// told is what --decimal says: point, comma or nothing.
func decimalMarks(rows [][]string, told string) []decimalMark {
	if len(rows) == 0 {
		return nil
	}
	marks := make([]decimalMark, len(rows[0]))
	for i := range marks {
		marks[i] = columnMark(rows, i)
	}
	other := unresolved
	switch commas, points := slices.Contains(marks, comma), slices.Contains(marks, point); {
	case told == "comma" || told == "" && commas && !points:
		other = comma
	case told == "point" || told == "" && points && !commas:
		other = point
	}
	for i, m := range marks {
		if m == unresolved || m != asWritten && told != "" {
			marks[i] = other
		}
	}
	return marks
}

// An OpenNumber is one that can be read in two ways: what stands in it is a mark of
// decimals or of thousands.
type OpenNumber struct {
	Text    string
	Decimal bool // a quantity that may have decimals has them: no decimal comma fits the file
}

// WhichDecimal is what is wrong with an [OpenNumber].
const WhichDecimal = "the mark in the number may be of decimals or of thousands, and no number in the file " +
	"decides: say --decimal point if decimals are written as in 1.5, or --decimal comma"

// columnMark tells the mark of a column from its numbers. Whole numbers show none.
func columnMark(rows [][]string, column int) decimalMark {
	mark, numbers := unresolved, false
	for _, fields := range rows {
		field := strings.TrimSpace(fields[column])
		if field == "" {
			continue
		}
		_, byPoint := ungrouped(field, point)
		_, byComma := ungrouped(field, comma)
		shown := unresolved
		switch {
		case !byPoint && !byComma:
			return asWritten
		case !strings.ContainsAny(field, ".,"):
		case !byComma:
			shown = point
		case !byPoint:
			shown = comma
		}
		if shown != unresolved && mark != unresolved && shown != mark {
			return asWritten
		}
		if numbers = true; shown != unresolved {
			mark = shown
		}
	}
	if !numbers {
		return asWritten
	}
	return mark
}

// thousandsSpaces stand between thousands whatever the decimal mark is: spaces that do
// not break lines, and the apostrophe of Switzerland.
const thousandsSpaces = " \u00a0\u202f'\u2019"

// ungrouped writes a number as readers of numbers want it: without marks between
// thousands, and with a decimal point. ok is false for what is no number with that mark.
func ungrouped(number string, mark decimalMark) (plain string, ok bool) {
	thousands, decimal := ",", "."
	if mark == comma {
		thousands, decimal = ".", ","
	}
	digits, minus := strings.CutPrefix(strings.TrimSpace(number), "-")
	whole, fraction, hasFraction := strings.Cut(digits, decimal)
	if at := strings.IndexAny(whole, thousandsSpaces); at >= 0 {
		thousands = whole[at : at+len(string([]rune(whole[at:])[:1]))]
	}
	groups := strings.Split(whole, thousands)
	for i, g := range groups {
		if strings.Trim(g, "0123456789") != "" || g == "" && !(len(groups) == 1 && fraction != "") ||
			len(groups) > 1 && (len(g) > 3 || i > 0 && len(g) != 3 || groups[0][:min(1, len(groups[0]))] == "0") {
			return "", false
		}
	}
	if strings.Trim(fraction, "0123456789") != "" {
		return "", false
	}
	if plain = strings.Join(groups, ""); minus {
		plain = "-" + plain
	}
	if hasFraction {
		plain += "." + fraction
	}
	return plain, true
}

// number is the value of a field in a column with a mark: as readers of numbers want it,
// where it is a number.
func (d *csvDialect) number(field string, mark decimalMark) any {
	if mark == asWritten || strings.Trim(field, "0123456789") == "" ||
		mark == point && strings.Trim(field, "0123456789.") == "" {
		return field
	}
	byPoint, ok := ungrouped(field, point)
	if mark == point && ok {
		return byPoint
	}
	byComma, ok2 := ungrouped(field, comma)
	switch {
	case mark == comma && ok2:
		return byComma
	case mark != unresolved || !ok && !ok2:
		return field
	case ok && ok2 && byPoint != byComma:
		return OpenNumber{field, d.delimiter == ',' && !strings.Contains(field, ",")}
	case ok:
		return byPoint
	}
	return byComma
}
