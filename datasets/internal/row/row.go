// Package row gives the values of records by path, whatever they are written in: JSON, CSV or Parquet.
//
// A [Reader] yields rows. [Fields] take out of them what the table of a format does not name, and count
// it; a [View] shows a row in the words of a mapping.
//
// # Files
//
//   - row.go: rows, views, JSON and its values by dotted path, JSON packed in strings
//   - members.go: rows that are members of lists in a record, such as spans
//   - fields.go: which fields are read, and how many are not, by kind
//   - latency.go: latencies from the times of a record
//   - csv.go: rows of CSV, with a header or columns by position; texts in Latin-1
//   - dialect.go: the delimiter, quotes and decimal marks of CSV, told from its first rows
//   - numbers.go: decimal points and commas, thousands, and numbers that can be read in two ways
//   - parquet.go: rows of any Parquet schema: nested columns, decimals, times; damaged files
package row

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/trace/nonfinite"
)

// A Row gives the values of one record by path. They are those of encoding/json
// with json.Number (string, json.Number, bool, []any, map[string]any), and only
// strings in CSV. A null and an empty CSV field are missing.
type Row interface {
	Value(path string) (any, bool)
	Place(path string) (line, col int64)
	// Cut reports that the row is the last one and nothing marks its end, so that
	// it may be cut off when something is wrong with it.
	Cut() bool
}

// A WrittenRow has its values as the source wrote them too, where it can tell;
// nil where it cannot.
type WrittenRow interface{ Written(path string) []byte }

// Reader yields the rows of a source: io.EOF at the end, a *fault for one at fault.
type Reader interface{ Next() (Row, error) }

// Find returns the value of the first path that has one. An empty text, and "-", is one where no later
// path has another: that is how gateways write none.
func Find(r Row, paths []string) (v any, path string, ok bool) {
	for _, p := range paths {
		found, has := r.Value(p)
		if has && !ok {
			v, path, ok = found, p, true
		}
		if has && found != "" && found != "-" {
			return found, p, true
		}
	}
	return v, path, ok
}

// BadAt is a fault of the record at the place of a path.
func BadAt(r Row, path, why string) *fault.Fault {
	line, col := r.Place(path)
	return fault.Bad(line, col, why)
}

// An admitter takes out of what was packed in a value what is not read.
type admitter interface{ AdmitAt(path string, v any) }

// A View shows a record in the words of a mapping: what a format packs or
// spells in its own way stands unpacked beside what the record has, and first.
type View struct {
	Row
	Made map[string]any
	From map[string]string // the path in the record that a made value came from
}

// NewView shows a record as it is.
func NewView(r Row) View { return View{r, map[string]any{}, map[string]string{}} }

func (v View) Value(path string) (any, bool) {
	if found, ok := Lookup(v.Made, path); ok {
		return found, true
	}
	return v.Row.Value(path)
}

func (v View) Place(path string) (line, col int64) {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		if origin, ok := v.From[p]; ok {
			return v.Row.Place(origin)
		}
	}
	return v.Row.Place(path)
}

// Written finds a value in what it was made of: JSON in a string, or the record.
func (v View) Written(path string) []byte {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		origin, ok := v.From[p]
		if !ok {
			continue
		}
		rest := strings.TrimPrefix(path[len(p):], ".")
		if packed, _ := v.Row.Value(origin); IsString(packed) {
			text := []byte(packed.(string))
			var inner string
			if json.Unmarshal(text, &inner) == nil {
				text = []byte(inner)
			}
			return WrittenAt(text, rest)
		}
		path = strings.Trim(origin+"."+rest, ".")
		break
	}
	if w, ok := v.Row.(WrittenRow); ok {
		return w.Written(path)
	}
	return nil
}

// Put makes a value that came from a path of the record.
func (v View) Put(name string, value any, origin string) {
	v.Made[name] = value
	v.From[name] = origin
}

// Unpack decodes the value at a path when it is JSON in a string, perhaps twice
// over, and says whether it is JSON. A value that is an object or a list already
// is left as it is, and so is one that is missing.
func (v View) Unpack(path string) bool {
	packed, ok := v.Row.Value(path)
	s, isText := packed.(string)
	if !ok || !isText {
		return true
	}
	value, _, ok := DecodeJSON([]byte(s))
	if inner, isText := value.(string); isText {
		if again, _, ok := DecodeJSON([]byte(inner)); ok {
			value = again
		}
	}
	if ok {
		v.AdmitAt(path, value)
		v.Put(path, value, path)
	}
	return ok
}

func (v View) AdmitAt(path string, value any) {
	if r, ok := v.Row.(admitter); ok {
		r.AdmitAt(path, value)
	}
}

// HasAny reports whether one of the paths has a value.
func HasAny(r Row, paths ...string) bool {
	_, _, ok := Find(r, paths)
	return ok
}

// A Show turns a record into the row that a mapping reads, or into nil for a record that
// is skipped.
type Show func(r Row, tell *fault.Notes) (Row, error)

// Views are rows through a view.
type Views struct {
	In   Reader
	Show Show
	Tell *fault.Notes
}

func (v Views) Next() (Row, error) {
	for {
		r, err := v.In.Next()
		if err != nil {
			return nil, err
		}
		shown, err := v.Show(r, v.Tell)
		if f, ok := err.(*fault.Fault); ok && !f.Stop && r.Cut() {
			return nil, fault.CutOff(f.Line, f.Col, "the last row is not whole")
		}
		if shown != nil || err != nil {
			return shown, err
		}
	}
}

// First yields the first rows.
type First struct {
	Reader
	Left int
}

func (l *First) Next() (Row, error) {
	if l.Left--; l.Left < 0 {
		return nil, io.EOF
	}
	return l.Reader.Next()
}

// None is a source without rows.
type None struct{}

func (None) Next() (Row, error) { return nil, io.EOF }

// A Number keeps the digits of the source: a float64 would lose those of an
// epoch in nanoseconds.
type Number = json.Number

// DecodeJSON decodes the one JSON value that fills raw, as encoding/json does:
// of duplicate keys the last wins, and invalid UTF-8 becomes U+FFFD. Numbers that
// are not finite, as Python writes them, are null. When it is not valid, offset says where.
func DecodeJSON(raw []byte) (v any, offset int, ok bool) {
	if v, offset, ok = decodeStrict(raw); !ok {
		if finite, _ := nonfinite.Null(raw); !bytes.Equal(finite, raw) {
			return decodeStrict(finite)
		}
	}
	return v, offset, ok
}

func decodeStrict(raw []byte) (v any, offset int, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, int(max(syntax.Offset-1, 0)), false
		}
		return nil, len(raw), false
	}
	if rest := bytes.TrimLeft(raw[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, len(raw) - len(rest), false
	}
	return v, 0, true
}

// JSON decodes raw records into rows.
type JSON struct {
	Records record.Reader
	Fields  *Fields // through which they go; nil for rows that are looked at ahead
}

func (j JSON) Next() (Row, error) {
	raw, err := j.Records.Next()
	if err != nil {
		return nil, err
	}
	root, err := DecodeObject(raw, j.Records)
	if err != nil {
		return nil, err
	}
	unread := j.Fields.Admit(root)
	return JSONRow{root, raw, j.Records, j.Fields, unread}, nil
}

// DecodeObject decodes the current record of in, which must be a JSON object.
func DecodeObject(raw []byte, in record.Reader) (map[string]any, error) {
	v, offset, ok := DecodeJSON(raw)
	if !ok && in.Last() {
		line, col := in.Place(len(raw))
		return nil, fault.CutOff(line, col, "the last record is not whole")
	}
	object, isObject := v.(map[string]any)
	if !isObject {
		line, col := in.Place(offset)
		if !ok {
			return nil, fault.Bad(line, col, "it is not valid JSON")
		}
		return nil, fault.Bad(line, col, "it is not a JSON object")
	}
	return object, nil
}

// A JSONRow is a decoded JSON object.
type JSONRow struct {
	Root    map[string]any
	Raw     []byte
	Records record.Reader
	Fields  *Fields
	Unread  bool // it had fields that are not read
}

// AdmitAt implements admitter.
func (r JSONRow) AdmitAt(path string, v any) { r.Fields.AdmitAt(path, v) }

func (r JSONRow) Value(path string) (any, bool) { return Lookup(r.Root, path) }

func (r JSONRow) Place(path string) (line, col int64) {
	return r.Records.Place(OffsetOf(r.Raw, path))
}

// Written finds a value in the record. It parses again.
func (r JSONRow) Written(path string) []byte { return WrittenAt(r.Raw, path) }

// WrittenAt returns the JSON of the value at a path in raw.
func WrittenAt(raw []byte, path string) []byte {
	at := OffsetOf(raw, path)
	var value json.RawMessage
	rest := bytes.TrimLeft(raw[min(at, len(raw)):], " \t\r\n:,")
	if json.NewDecoder(bytes.NewReader(rest)).Decode(&value) != nil {
		return nil
	}
	return value
}

// Cut is false: an object that was cut off is not decoded at all.
func (r JSONRow) Cut() bool { return false }

// Lookup follows a dotted path. A key may have dots itself, as those of
// OpenTelemetry do, so that longer keys are tried first.
func Lookup(v any, path string) (any, bool) {
	if path == "" {
		return v, v != nil
	}
	switch v := v.(type) {
	case map[string]any:
		for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '.') {
			child, ok := v[path[:end]]
			if !ok {
				continue
			}
			if found, ok := Lookup(child, strings.TrimPrefix(path[end:], ".")); ok {
				return found, true
			}
		}
	case []any:
		index, rest, _ := strings.Cut(path, ".")
		if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(v) {
			return Lookup(v[i], rest)
		}
	}
	return nil, false
}

// OffsetOf returns where in raw the value at a path begins, as far as the path
// leads. It is for errors only, and parses again.
func OffsetOf(raw []byte, path string) int {
	start := len(raw) - len(bytes.TrimLeft(raw, " \t\r\n:,"))
	at := start
	dec := json.NewDecoder(bytes.NewReader(raw[start:]))
	open, err := dec.Token()
	if err != nil || path == "" {
		return at
	}
	for i := 0; dec.More(); i++ {
		key := strconv.Itoa(i)
		if open == json.Delim('{') {
			t, err := dec.Token()
			if err != nil {
				break
			}
			key, _ = t.(string)
		}
		from := start + int(dec.InputOffset())
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
		if rest, ok := strings.CutPrefix(path, key); ok && (rest == "" || rest[0] == '.') {
			at = from + OffsetOf(raw[from:start+int(dec.InputOffset())], strings.TrimPrefix(rest, "."))
		}
	}
	return at
}

// Dotted writes array indices as keys: a[0].b becomes a.0.b.
func Dotted(path string) string {
	return strings.TrimPrefix(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
}

// JSONInputs reads JSON objects and their first ones in head.
func JSONInputs(in *bufio.Reader, head []byte, fields *Fields) (all, first JSON) {
	return JSON{record.NewJSON(in, head),
		fields}, JSON{Records: record.NewJSON(bufio.NewReader(bytes.NewReader(head)), head)}
}

// Plain returns a scalar as the source spells it, "" for anything else.
func Plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case Number:
		return string(v)
	case OpenNumber:
		return v.Text
	case interface{ Plain() string }: // of a type that formats make
		return v.Plain()
	}
	return ""
}

// IsString reports whether a value is a text.
func IsString(v any) bool {
	_, ok := v.(string)
	return ok
}

// Integer is a number as a source spells it.
func Integer(n int64) Number { return Number(strconv.FormatInt(n, 10)) }
