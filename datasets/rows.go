package datasets

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

// A row gives the values of one record by path. They are those of encoding/json
// with json.Number (string, json.Number, bool, []any, map[string]any), and only
// strings in CSV. A null and an empty CSV field are missing.
type row interface {
	value(path string) (any, bool)
	place(path string) (line, col int64)
	// cut reports that the row is the last one and nothing marks its end, so that
	// it may be cut off when something is wrong with it.
	cut() bool
}

// A writtenRow has its values as the source wrote them too, where it can tell;
// nil where it cannot.
type writtenRow interface{ written(path string) []byte }

// rows yields the rows of a source: io.EOF at the end, a *fault for one at fault.
type rows interface{ next() (row, error) }

// findFirst returns the value of the first path that has one.
func findFirst(r row, paths []string) (v any, path string, ok bool) {
	for _, p := range paths {
		if v, ok = r.value(p); ok {
			return v, p, true
		}
	}
	return nil, "", false
}

func badAt(r row, path, why string) *fault.Fault {
	line, col := r.place(path)
	return fault.Bad(line, col, why)
}

// An admitter takes out of what was packed in a value what is not read.
type admitter interface{ admitAt(path string, v any) }

// A viewRow shows a record in the words of a mapping: what a format packs or
// spells in its own way stands unpacked beside what the record has, and first.
type viewRow struct {
	row
	made map[string]any
	from map[string]string // the path in the record that a made value came from
}

func newView(r row) viewRow { return viewRow{r, map[string]any{}, map[string]string{}} }

func (v viewRow) value(path string) (any, bool) {
	if found, ok := lookup(v.made, path); ok {
		return found, true
	}
	return v.row.value(path)
}

func (v viewRow) place(path string) (line, col int64) {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		if origin, ok := v.from[p]; ok {
			return v.row.place(origin)
		}
	}
	return v.row.place(path)
}

// written finds a value in what it was made of: JSON in a string, or the record.
func (v viewRow) written(path string) []byte {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		origin, ok := v.from[p]
		if !ok {
			continue
		}
		rest := strings.TrimPrefix(path[len(p):], ".")
		if packed, _ := v.row.value(origin); isString(packed) {
			text := []byte(packed.(string))
			var inner string
			if json.Unmarshal(text, &inner) == nil {
				text = []byte(inner)
			}
			return writtenAt(text, rest)
		}
		path = strings.Trim(origin+"."+rest, ".")
		break
	}
	if w, ok := v.row.(writtenRow); ok {
		return w.written(path)
	}
	return nil
}

// put makes a value that came from a path of the record.
func (v viewRow) put(name string, value any, origin string) {
	v.made[name] = value
	v.from[name] = origin
}

// unpack decodes the value at a path when it is JSON in a string, perhaps twice
// over, and says whether it is JSON. A value that is an object or a list already
// is left as it is, and so is one that is missing.
func (v viewRow) unpack(path string) bool {
	packed, ok := v.row.value(path)
	s, isText := packed.(string)
	if !ok || !isText {
		return true
	}
	value, _, ok := decodeJSON([]byte(s))
	if inner, isText := value.(string); isText {
		if again, _, ok := decodeJSON([]byte(inner)); ok {
			value = again
		}
	}
	if ok {
		v.admitAt(path, value)
		v.put(path, value, path)
	}
	return ok
}

func (v viewRow) admitAt(path string, value any) {
	if r, ok := v.row.(admitter); ok {
		r.admitAt(path, value)
	}
}

func hasAny(r row, paths ...string) bool {
	_, _, ok := findFirst(r, paths)
	return ok
}

// A view turns a record into the row that a mapping reads, or into nil for a record that
// is skipped.
type view func(r row, tell *fault.Notes) (row, error)

// viewRows are rows through a view.
type viewRows struct {
	in   rows
	show view
	tell *fault.Notes
}

func (v viewRows) next() (row, error) {
	for {
		r, err := v.in.next()
		if err != nil {
			return nil, err
		}
		shown, err := v.show(r, v.tell)
		if f, ok := err.(*fault.Fault); ok && !f.Stop && r.cut() {
			return nil, fault.CutOff(f.Line, f.Col, "the last row is not whole")
		}
		if shown != nil || err != nil {
			return shown, err
		}
	}
}

// limitedRows yields the first rows.
type limitedRows struct {
	rows
	left int
}

func (l *limitedRows) next() (row, error) {
	if l.left--; l.left < 0 {
		return nil, io.EOF
	}
	return l.rows.next()
}

// noRows is a source without rows.
type noRows struct{}

func (noRows) next() (row, error) { return nil, io.EOF }

// A number keeps the digits of the source: a float64 would lose those of an
// epoch in nanoseconds.
type number = json.Number

// decodeJSON decodes the one JSON value that fills raw, as encoding/json does:
// of duplicate keys the last wins, and invalid UTF-8 becomes U+FFFD. Numbers that
// are not finite, as Python writes them, are null. When it is not valid, offset says where.
func decodeJSON(raw []byte) (v any, offset int, ok bool) {
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

// jsonRows decodes raw records into rows.
type jsonRows struct {
	records record.Reader
	fields  *fieldCounter // through which they go; nil for rows that are looked at ahead
}

func (j jsonRows) next() (row, error) {
	raw, err := j.records.Next()
	if err != nil {
		return nil, err
	}
	root, err := decodeObject(raw, j.records)
	if err != nil {
		return nil, err
	}
	unread := j.fields.admit(root)
	return jsonRow{root, raw, j.records, j.fields, unread}, nil
}

// decodeObject decodes the current record of in, which must be a JSON object.
func decodeObject(raw []byte, in record.Reader) (map[string]any, error) {
	v, offset, ok := decodeJSON(raw)
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

// A jsonRow is a decoded JSON object.
type jsonRow struct {
	root    map[string]any
	raw     []byte
	records record.Reader
	fields  *fieldCounter
	unread  bool // it had fields that are not read
}

// admitAt implements admitter.
func (r jsonRow) admitAt(path string, v any) { r.fields.admitAt(path, v) }

func (r jsonRow) value(path string) (any, bool) { return lookup(r.root, path) }

func (r jsonRow) place(path string) (line, col int64) {
	return r.records.Place(offsetOf(r.raw, path))
}

// written finds a value in the record. It parses again.
func (r jsonRow) written(path string) []byte { return writtenAt(r.raw, path) }

// writtenAt returns the JSON of the value at a path in raw.
func writtenAt(raw []byte, path string) []byte {
	at := offsetOf(raw, path)
	var value json.RawMessage
	rest := bytes.TrimLeft(raw[min(at, len(raw)):], " \t\r\n:,")
	if json.NewDecoder(bytes.NewReader(rest)).Decode(&value) != nil {
		return nil
	}
	return value
}

// cut is false: an object that was cut off is not decoded at all.
func (r jsonRow) cut() bool { return false }

// lookup follows a dotted path. A key may have dots itself, as those of
// OpenTelemetry do, so that longer keys are tried first.
func lookup(v any, path string) (any, bool) {
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
			if found, ok := lookup(child, strings.TrimPrefix(path[end:], ".")); ok {
				return found, true
			}
		}
	case []any:
		index, rest, _ := strings.Cut(path, ".")
		if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(v) {
			return lookup(v[i], rest)
		}
	}
	return nil, false
}

// offsetOf returns where in raw the value at a path begins, as far as the path
// leads. It is for errors only, and parses again.
func offsetOf(raw []byte, path string) int {
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
			at = from + offsetOf(raw[from:start+int(dec.InputOffset())], strings.TrimPrefix(rest, "."))
		}
	}
	return at
}

// dotted writes array indices as keys: a[0].b becomes a.0.b.
func dotted(path string) string {
	return strings.TrimPrefix(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
}

// jsonInput reads JSON objects and their first ones in head.
func jsonInput(in *bufio.Reader, head []byte, s *Source) (all, first jsonRows) {
	return jsonRows{record.NewJSON(in, head),
		s.fields}, jsonRows{records: record.NewJSON(bufio.NewReader(bytes.NewReader(head)), head)}
}

// plain returns a scalar as the source spells it, "" for anything else.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case number:
		return string(v)
	case openNumber:
		return v.text
	case settledCount:
		return strconv.FormatInt(int64(v), 10)
	}
	return ""
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

func integer(n int64) number { return number(strconv.FormatInt(n, 10)) }
