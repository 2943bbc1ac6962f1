package datasets

import (
	"strconv"
	"strings"
)

// memberRows are the members of lists in records: the spans of an export, the
// observations of a trace. A record without such a list is a row itself.
type memberRows struct {
	in     rows
	lists  [][]string                        // keys that lead to a list, through lists of objects; the first that is there counts
	settle func(all []memberRow) []memberRow // what one record's members say of each other; nil for nothing
	rest   []memberRow                       // of the current record
}

// A memberRow is one member; in is the path to it in its record.
type memberRow struct {
	row
	in     string
	member any
}

func (m memberRow) value(path string) (any, bool) { return lookup(m.member, path) }

func (m memberRow) place(path string) (line, col int64) {
	return m.row.place(strings.Trim(m.in+"."+path, "."))
}

func (m memberRow) written(path string) []byte {
	if w, ok := m.row.(writtenRow); ok {
		return w.written(strings.Trim(m.in+"."+path, "."))
	}
	return nil
}

// admitAt implements admitter.
func (m memberRow) admitAt(path string, v any) {
	if r, ok := m.row.(admitter); ok {
		r.admitAt(path, v)
	}
}

func (m *memberRows) next() (row, error) {
	for len(m.rest) == 0 {
		r, err := m.in.next()
		if err != nil {
			return nil, err
		}
		m.rest = nil
		listed := false
		for _, names := range m.lists {
			if listed = m.gather(r, "", names...); listed {
				break
			}
		}
		if !listed {
			return r, nil
		}
		if m.settle != nil {
			m.rest = m.settle(m.rest)
		}
	}
	member := m.rest[0]
	m.rest = m.rest[1:]
	return member, nil
}

// gather collects the members of lists within lists, such as the spans of the
// scopes of the resources; false when the first list is not there. An object in place of
// a last list is its only member.
func (m *memberRows) gather(r row, in string, names ...string) bool {
	path := strings.Trim(in+"."+names[0], ".")
	found, _ := r.value(path)
	list, ok := found.([]any)
	_, one := found.(map[string]any)
	if one && len(names) == 1 {
		list, ok = []any{found}, true
	}
	for i, member := range list {
		at := path
		if !one {
			at += "." + strconv.Itoa(i)
		}
		if len(names) > 1 {
			m.gather(r, at, names[1:]...)
			continue
		}
		// What is not read is taken from a member, as it is from a record.
		if whole, ok := r.(jsonRow); ok {
			if object, ok := member.(map[string]any); ok {
				whole.fields.admit(object)
			}
		}
		m.rest = append(m.rest, memberRow{r, at, member})
	}
	return ok
}
