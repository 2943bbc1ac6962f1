package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// A number keeps the digits of the source: a float64 would lose those of an
// epoch in nanoseconds.
type number = json.Number

// decodeJSON decodes the one JSON value that fills raw, as encoding/json does:
// of duplicate keys the last wins, and invalid UTF-8 becomes U+FFFD. When it is
// not valid, offset says where.
func decodeJSON(raw []byte) (v any, offset int, ok bool) {
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
	records records
	fields  *fieldCounter // through which they go; nil for rows that are looked at ahead
}

func (j jsonRows) next() (row, error) {
	raw, err := j.records.next()
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
func decodeObject(raw []byte, in records) (map[string]any, error) {
	v, offset, ok := decodeJSON(raw)
	if !ok && in.last() {
		line, col := in.place(len(raw))
		return nil, cutOff(line, col, "the last record is not whole")
	}
	object, isObject := v.(map[string]any)
	if !isObject {
		line, col := in.place(offset)
		if !ok {
			return nil, bad(line, col, "it is not valid JSON")
		}
		return nil, bad(line, col, "it is not a JSON object")
	}
	return object, nil
}

// A jsonRow is a decoded JSON object.
type jsonRow struct {
	root    map[string]any
	raw     []byte
	records records
	fields  *fieldCounter
	unread  bool // it had fields that are not read
}

// admitAt implements admitter.
func (r jsonRow) admitAt(path string, v any) { r.fields.admitAt(path, v) }

func (r jsonRow) value(path string) (any, bool) { return lookup(r.root, path) }

func (r jsonRow) place(path string) (line, col int64) {
	return r.records.place(offsetOf(r.raw, path))
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
	return jsonRows{newJSONReader(in, head), s.fields}, jsonRows{records: newJSONReader(bufio.NewReader(bytes.NewReader(head)), head)}
}

// plain returns a scalar as the source spells it, "" for anything else.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case number:
		return string(v)
	}
	return ""
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

func integer(n int64) number { return number(strconv.FormatInt(n, 10)) }
