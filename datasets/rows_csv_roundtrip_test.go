package datasets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
)

// A written dialect is a way in which programs write CSV.
type writtenDialect struct {
	name                 string
	delimiter            string
	quote                string
	escape               string // before a quote in a field; the quote again where it is empty
	end                  string // of a line
	decimal, thousands   string
	above, behind, blank string // before the header, at the end of each line, between some lines
	headless             bool
	encode               func(string) []byte
}

func utf16Of(order binary.ByteOrder) func(string) []byte {
	return func(s string) []byte {
		out := make([]byte, 2, 2*len(s)+2)
		order.PutUint16(out, 0xfeff)
		for _, unit := range utf16.Encode([]rune(s)) {
			out = append(out, 0, 0)
			order.PutUint16(out[len(out)-2:], unit)
		}
		return out
	}
}

func latin1(s string) []byte {
	b, err := charmap.Windows1252.NewEncoder().String(s)
	if err != nil {
		panic(err)
	}
	return []byte(b)
}

var writtenDialects = []writtenDialect{
	{name: "commas", delimiter: ","},
	{name: "semicolons and decimal commas", delimiter: ";", decimal: ",", thousands: "."},
	{name: "tabs", delimiter: "\t"},
	{name: "bars", delimiter: "|", end: "\r\n"},
	{name: "single quotes", delimiter: ",", quote: "'"},
	{name: "backslashes", delimiter: ",", escape: `\`},
	{name: "single quotes and backslashes", delimiter: ";", quote: "'", escape: `\`},
	{name: "without a header", delimiter: ",", headless: true},
	{name: "CRLF", delimiter: ",", end: "\r\n"},
	{name: "carriage returns alone", delimiter: ";", end: "\r"},
	{name: "UTF-8 with a mark", delimiter: ";", decimal: ",",
		encode: func(s string) []byte { return []byte(record.ByteOrderMark + s) }},
	{name: "UTF-16LE", delimiter: "\t", decimal: ",", end: "\r\n", encode: utf16Of(binary.LittleEndian)},
	{name: "UTF-16BE", delimiter: ",", encode: utf16Of(binary.BigEndian)},
	{name: "Latin-1", delimiter: ";", decimal: ",", thousands: ".", encode: latin1},
	{name: "sep= of Excel", delimiter: ";", above: "sep=;\r\n", end: "\r\n"},
	{name: "comments", delimiter: ",", above: "# exported by hand, \"today\"\n# from here\n"},
	{name: "a title", delimiter: ";", decimal: ",", above: "Anfragen im Mai;;;;\n\n"},
	{name: "blank lines", delimiter: ",", blank: "\n"},
	{name: "a delimiter at the end", delimiter: ";", behind: ";"},
	{name: "rows of delimiters", delimiter: ";", blank: ";;;;\n"},
	{name: "French", delimiter: ";", decimal: ",", thousands: "\u202f"},
	{name: "Swiss", delimiter: ";", decimal: ".", thousands: "’"},
	{name: "English thousands", delimiter: ",", thousands: ","},
}

// A written time is a way to write a time, to a precision.
type writtenTime struct {
	name   string
	step   time.Duration
	layout string // of package time; empty for another way
	write  func(t time.Time) string
	open   bool // the day and the month may be taken for each other
}

func epochIn(unit time.Duration) func(time.Time) string {
	return func(t time.Time) string { return strconv.FormatInt(int64(t.Sub(Epoch)/unit), 10) }
}

var writtenTimes = []writtenTime{
	{name: "RFC 3339", step: 1, layout: time.RFC3339Nano},
	{name: "RFC 3339 with an offset", step: 1, layout: time.RFC3339Nano, write: func(t time.Time) string {
		return t.In(time.FixedZone("", 5*3600+1800)).Format(time.RFC3339Nano)
	}},
	{name: "ISO in minutes", step: time.Minute, layout: "2006-01-02T15:04Z07:00"},
	{name: "ISO basic", step: time.Millisecond, layout: "20060102T150405.000Z0700"},
	{name: "ISO week", step: time.Second, write: func(t time.Time) string {
		y, w := t.ISOWeek()
		return fmt.Sprintf("%d-W%02d-%d%s", y, w, (int(t.Weekday())+6)%7+1, t.Format("T15:04:05Z07:00"))
	}},
	{name: "ISO day of the year", step: time.Second, layout: "2006-002T15:04:05Z"},
	{name: "SQL", step: time.Microsecond, layout: "2006-01-02 15:04:05.000000"},
	{name: "ClickHouse", step: time.Nanosecond, layout: "2006-01-02 15:04:05.000000000"},
	{name: "Postgres", step: time.Microsecond, layout: "2006-01-02 15:04:05.999999-07"},
	{name: "BigQuery", step: time.Microsecond, layout: "2006-01-02 15:04:05.999999 UTC"},
	{name: "Snowflake", step: time.Millisecond, layout: "2006-01-02 15:04:05.000 -0700"},
	{name: "Python logging", step: time.Millisecond, layout: "2006-01-02 15:04:05,000"},
	{name: "Go log", step: time.Microsecond, layout: "2006/01/02 15:04:05.000000"},
	{name: "American", step: time.Second, layout: "1/2/2006 3:04:05 PM", open: true},
	{name: "British", step: time.Minute, layout: "02/01/2006 15:04", open: true},
	{name: "Dutch", step: time.Second, layout: "02-01-2006 15:04:05", open: true},
	{name: "German", step: time.Second, layout: "02.01.2006 15:04:05"},
	{name: "German in minutes", step: time.Minute, layout: "2.1.2006, 15:04"},
	{name: "RFC 1123", step: time.Second, layout: "Mon, 02 Jan 2006 15:04:05 GMT"},
	{name: "RFC 1123 with an offset", step: time.Second, layout: time.RFC1123Z},
	{name: "C", step: time.Second, layout: time.ANSIC},
	{name: "date of Unix", step: time.Second, layout: time.UnixDate},
	{name: "web server", step: time.Second, layout: "[02/Jan/2006:15:04:05 -0700]"},
	{name: "syslog with a year", step: time.Second, layout: "Jan _2 2006 15:04:05"},
	{name: "14 digits", step: time.Second, layout: "20060102150405"},
	{name: "s", step: time.Second, write: epochIn(time.Second)},
	{name: "ms", step: time.Millisecond, write: epochIn(time.Millisecond)},
	{name: "us", step: time.Microsecond, write: epochIn(time.Microsecond)},
	{name: "ns", step: time.Nanosecond, write: epochIn(time.Nanosecond)},
	{name: "s with a fraction", step: time.Nanosecond, write: func(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }},
}

func (w writtenTime) text(t time.Time) string {
	if w.write != nil {
		return w.write(t)
	}
	return t.Format(w.layout)
}

// A tableRow is what a row of a table says.
type tableRow struct {
	time   time.Time
	user   string
	tokens int64
	micros int64 // E2E
}

func (r tableRow) String() string {
	return fmt.Sprintf("%s %q %d %d us", r.time.Format(time.RFC3339Nano), r.user, r.tokens, r.micros)
}

func (d writtenDialect) number(whole int64, fraction string) string {
	text := strconv.FormatInt(whole, 10)
	if d.thousands != "" {
		for at := len(text) - 3; at > 0; at -= 3 {
			text = text[:at] + d.thousands + text[at:]
		}
	}
	if fraction == "" {
		return text
	}
	if d.decimal != "" {
		return text + d.decimal + fraction
	}
	return text + "." + fraction
}

func (d writtenDialect) field(s string) string {
	quote := d.quote
	if quote == "" {
		quote = `"`
	}
	if !strings.ContainsAny(s, d.delimiter+quote+"\n\r") && !(d.escape != "" && strings.Contains(s, d.escape)) && d.quote == "" {
		return s
	}
	escape := d.escape
	if escape == "" {
		escape = quote
	} else {
		s = strings.ReplaceAll(s, escape, escape+escape)
	}
	return quote + strings.ReplaceAll(s, quote, escape+quote) + quote
}

// write writes rows as the dialect has them.
func (d writtenDialect) write(rows []tableRow, times writtenTime) []byte {
	end := d.end
	if end == "" {
		end = "\n"
	}
	var b strings.Builder
	b.WriteString(d.above)
	line := func(fields ...string) {
		for i, f := range fields {
			if i > 0 {
				b.WriteString(d.delimiter)
			}
			b.WriteString(d.field(f))
		}
		b.WriteString(d.behind + end)
	}
	if !d.headless {
		line("when", "Größe", "tokens", "e2e", "note")
	}
	for i, r := range rows {
		at := times.text(r.time)
		if _, _, isNumber := stamp.Decimal(at); isNumber && d.decimal != "" {
			at = strings.Replace(at, ".", d.decimal, 1)
		}
		note := ""
		if i%3 == 0 {
			note = "it's \"so\"; a, b | c\td" + strings.Repeat("\\", i%2)
		}
		line(at, r.user, d.number(r.tokens, ""), d.number(r.micros/1000, fmt.Sprintf("%03d", r.micros%1000)), note)
		if i%4 == 1 {
			b.WriteString(d.blank)
		}
	}
	if d.encode != nil {
		return d.encode(b.String())
	}
	return []byte(b.String())
}

// randomRows are the rows of a log of some days.
func randomRows(rng *rand.Rand, step time.Duration) []tableRow {
	users := []string{"ann", "Jürgen, Müller", `O'Neill "Pat"`, "x;y|z", `c:\temp\`, "näme"}
	rows := make([]tableRow, 3+rng.IntN(20))
	at := time.Date(2026, time.Month(1+rng.IntN(12)), 1+rng.IntN(28), rng.IntN(24), rng.IntN(60), rng.IntN(60), rng.IntN(1e9), time.UTC)
	for i := range rows {
		at = at.Add(time.Duration(rng.Int64N(int64(12 * time.Hour))))
		tokens := rng.Int64N(900)
		if rng.IntN(2) == 0 {
			tokens = rng.Int64N(2_000_000)
		}
		rows[i] = tableRow{at.Truncate(step), users[rng.IntN(len(users))], tokens, rng.Int64N(4_000_000)}
	}
	return rows
}

// readTable reads what write has written, as rows.
func readTable(in []byte, d writtenDialect, o Options) ([]tableRow, error) {
	o.Map = Mapping{"time": {"when"}, "user": {"Größe"}, "input_tokens": {"tokens"}, "e2e_ms": {"e2e"}}
	if d.headless {
		o.Map = Mapping{"time": {"1"}, "user": {"2"}, "input_tokens": {"3"}, "e2e_ms": {"4"}}
	}
	all, info, err := read(bytes.NewReader(in), o)
	if err != nil {
		return nil, err
	}
	rows := make([]tableRow, len(all))
	for i, e := range all {
		rows[i] = tableRow{e.Time.UTC(), e.User.Reveal(), int64(*e.InputTokens), e.E2E.Microseconds()}
	}
	if info.Bad > 0 {
		return rows, info.FirstBad[0]
	}
	return rows, nil
}

// Each dialect with each layout comes back as it was, every number exact and every time to
// the precision that its layout has. What can be read in two ways is refused, and the flag
// that the refusal names settles it.
func TestTablesComeBack(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	refused := map[string]int{}
	for _, d := range writtenDialects {
		for _, times := range writtenTimes {
			rows := randomRows(rng, times.step)
			in := d.write(rows, times)
			o := Options{}
			got, err := readTable(in, d, o)
			for range 2 { // a table may be refused for both
				switch {
				case err == nil:
					continue
				case strings.Contains(err.Error(), " in two ways") && times.open:
					refused["--time-format"]++
					o.TimeFormat = times.layout
				case strings.HasSuffix(err.Error(), row.WhichDecimal):
					refused["--decimal"]++
					if o.Decimal = "point"; d.decimal == "," {
						o.Decimal = "comma"
					}
				}
				got, err = readTable(in, d, o)
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint(rows) {
				t.Errorf("%s, %s, seed %d: %v\n got %v\nwant %v\n%.300q", d.name, times.name, seed, err, got, rows, in)
			}
		}
	}
	if len(refused) == 0 {
		t.Error("nothing was refused, not even a British date of the first days of a month")
	}
	t.Logf("refused first: %v", refused)
}
