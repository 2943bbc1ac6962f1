package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

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

// An admitter takes out of what was packed in a value what is not read.
type admitter interface{ admitAt(path string, v any) }

func (v viewRow) admitAt(path string, value any) {
	if r, ok := v.row.(admitter); ok {
		r.admitAt(path, value)
	}
}

// A view makes of a record the row that a mapping reads; nil for a record that
// is passed over.
type view func(r row, tell *notes) (row, error)

// viewRows are rows through a view.
type viewRows struct {
	in   rows
	show view
	tell *notes
}

func (v viewRows) next() (row, error) {
	for {
		r, err := v.in.next()
		if err != nil {
			return nil, err
		}
		shown, err := v.show(r, v.tell)
		if f, ok := err.(*fault); ok && !f.stop && r.cut() {
			return nil, cutOff(f.line, f.col, "the last row is not whole")
		}
		if shown != nil || err != nil {
			return shown, err
		}
	}
}

// openView decodes rows through a view. The head is read through one of its own,
// so that nothing is told twice.
func openView(all, first rows, show view, m Mapping, o Options, s *Source) (*mappedDecoder, error) {
	return newMappedDecoder(viewRows{all, show, &s.notes}, viewRows{first, show, new(notes)}, m, o, s)
}

// jsonInput reads JSON objects and their first ones in head.
func jsonInput(in *bufio.Reader, head []byte, s *Source) (all, first jsonRows) {
	return jsonRows{newJSONReader(in, head), s.fields}, jsonRows{records: newJSONReader(bufio.NewReader(bytes.NewReader(head)), head)}
}

// csvInputs reads rows of CSV and their first ones in head.
func csvInputs(in *bufio.Reader, head []byte, s *Source) (all, first *csvRows, err error) {
	if all, err = newCSVRows(in); err != nil {
		return nil, nil, err
	}
	all.admit(s.fields)
	first, err = newCSVRows(bytes.NewReader(bytes.Join(headLines(head), []byte("\n"))))
	return all, first, err
}

// Paths of the times of a record, by which latencies are told.
type latencyPaths struct{ start, first, end []string }

const backwards = "records that end before they start: their latencies are left out"

// latencies makes "e2e" and "ttft", both in nanoseconds, of the times of a
// record. A first token at or behind the end was not seen: several gateways put
// the end there when the answer was not streamed. unit is that of numbers which
// do not tell theirs by their size; 0 leaves them out.
func (v viewRow) latencies(p latencyPaths, unit time.Duration, tell *notes) {
	e2e, ended := since(v, p.start, p.end, unit)
	ttft, seen := since(v, p.start, p.first, unit)
	if ended && e2e < 0 || seen && ttft < 0 {
		tell.count(backwards)
		return
	}
	if ended {
		v.made["e2e"] = number(strconv.FormatInt(int64(e2e), 10))
	}
	if seen && (!ended || ttft < e2e) {
		v.made["ttft"] = number(strconv.FormatInt(int64(ttft), 10))
	}
}

// since returns how long behind one time another is, when both are there and
// written alike.
func since(r row, from, to []string, unit time.Duration) (time.Duration, bool) {
	a, ok := stampAt(r, from)
	b, ok2 := stampAt(r, to)
	if !ok || !ok2 || a.style != b.style {
		return 0, false
	}
	if a.style != numeric {
		return b.t.Sub(a.t), true
	}
	if u := epochUnit(a.whole); u != 0 {
		unit = u
	}
	whole := b.whole - a.whole
	if unit == 0 || whole > int64(maxSpan/unit) || whole < -int64(maxSpan/unit) {
		return 0, false
	}
	return time.Duration(whole)*unit + time.Duration(math.Round(float64(b.nano-a.nano)*float64(unit)/1e9)), true
}

func stampAt(r row, paths []string) (stamp, bool) {
	v, _, ok := find(r, paths)
	if !ok {
		return stamp{}, false
	}
	return readStamp(plain(v))
}

// areMessages reports whether v is a list of messages with known roles.
func areMessages(v any) bool {
	list, _ := v.([]any)
	for _, m := range list {
		fields, _ := m.(map[string]any)
		name, _ := fields["role"].(string)
		if _, ok := roleOf(name); !ok {
			return false
		}
	}
	return len(list) > 0
}
