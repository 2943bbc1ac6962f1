package row

import (
	"strconv"
	"strings"
)

// Members are the members of lists in records: the spans of an export, the
// observations of a trace. A record without such a list is a row itself.
type Members struct {
	In Reader
	// keys that lead to a list, through lists of objects; the first that is there counts
	Lists  [][]string
	Settle func(all []MemberRow) []MemberRow // what one record's members say of each other; nil for nothing
	rest   []MemberRow                       // of the current record
}

// A MemberRow is one member; in is the path to it in its record.
type MemberRow struct {
	Row
	In     string
	Member any
}

func (m MemberRow) Value(path string) (any, bool) { return Lookup(m.Member, path) }

func (m MemberRow) Place(path string) (line, col int64) {
	return m.Row.Place(strings.Trim(m.In+"."+path, "."))
}

func (m MemberRow) Written(path string) []byte {
	if w, ok := m.Row.(WrittenRow); ok {
		return w.Written(strings.Trim(m.In+"."+path, "."))
	}
	return nil
}

// AdmitAt implements admitter.
func (m MemberRow) AdmitAt(path string, v any) {
	if r, ok := m.Row.(admitter); ok {
		r.AdmitAt(path, v)
	}
}

func (m *Members) Next() (Row, error) {
	for len(m.rest) == 0 {
		r, err := m.In.Next()
		if err != nil {
			return nil, err
		}
		m.rest = nil
		listed := false
		for _, names := range m.Lists {
			if listed = m.gather(r, "", names...); listed {
				break
			}
		}
		if !listed {
			return r, nil
		}
		if m.Settle != nil {
			m.rest = m.Settle(m.rest)
		}
	}
	member := m.rest[0]
	m.rest = m.rest[1:]
	return member, nil
}

// gather collects the members of lists within lists, such as the spans of the
// scopes of the resources; false when the first list is not there. An object in place of
// a last list is its only member.
func (m *Members) gather(r Row, in string, names ...string) bool {
	path := strings.Trim(in+"."+names[0], ".")
	found, _ := r.Value(path)
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
		if whole, ok := r.(JSONRow); ok {
			if object, ok := member.(map[string]any); ok {
				whole.Fields.Admit(object)
			}
		}
		m.rest = append(m.rest, MemberRow{r, at, member})
	}
	return ok
}
