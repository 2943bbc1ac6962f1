package datasets

import (
	"encoding/json"
	"io"
	"strings"
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

// find returns the value of the first path that has one.
func find(r row, paths []string) (v any, path string, ok bool) {
	for _, p := range paths {
		if v, ok = r.value(p); ok {
			return v, p, true
		}
	}
	return nil, "", false
}

func badAt(r row, path, why string) *fault {
	line, col := r.place(path)
	return bad(line, col, why)
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
	_, _, ok := find(r, paths)
	return ok
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
