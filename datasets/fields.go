package datasets

import (
	"encoding/json"
	"strings"
)

// Fields say how many fields of a source were seen and taken by no column. Their
// names stay here: a name may tell something. A field is a value of a record by
// its path, or a column; a list is one field, whatever is in it.
type Fields struct {
	Dropped int            // distinct paths with a value that nothing was read of
	Kinds   map[string]int // of them by their first values, see [FieldKinds]; nil for CSV and Parquet
	More    bool           // there may be more: 10,000 were told apart
}

// maxFields bounds the memory for fields: keys may be made of data.
const maxFields = 10_000

// A fieldCounter tells the fields of a source apart.
type fieldCounter struct {
	root    fieldNode
	columns map[string]bool
	header  *csvRows // of CSV: whose columns are counted
	taken   map[string]bool
	nodes   int
	more    bool
}

// A fieldNode is a key of records, or an object under one.
type fieldNode struct {
	below map[string]*fieldNode
	kind  string // of its first value that is no object; empty for none
}

func newFieldCounter() *fieldCounter {
	return &fieldCounter{columns: map[string]bool{}, taken: map[string]bool{}}
}

// take notes that a value was read at a path.
func (c *fieldCounter) take(path string) {
	if !c.taken[path] {
		c.taken[path] = true
	}
}

// see counts the fields of a record.
func (c *fieldCounter) see(r row) {
	switch r := r.(type) {
	case jsonRow:
		c.walk(&c.root, r.root)
	case *csvRows:
		if c.header != r {
			c.header = r
			c.name(r.columns)
		}
	}
}

// name counts columns.
func (c *fieldCounter) name(columns []string) {
	for _, name := range columns {
		if len(c.columns) == maxFields {
			c.more = true
			return
		}
		c.columns[name] = true
	}
}

func (c *fieldCounter) walk(at *fieldNode, object map[string]any) {
	for key, v := range object {
		n := at.below[key]
		if n == nil {
			if c.nodes == maxFields {
				c.more = true
				continue
			}
			if at.below == nil {
				at.below = map[string]*fieldNode{}
			}
			n = &fieldNode{}
			at.below[strings.Clone(key)] = n
			c.nodes++
		}
		if inner, ok := v.(map[string]any); ok {
			c.walk(n, inner)
		} else if n.kind == "" {
			n.kind = kindOf(v)
		}
	}
}

// Kinds of fields by what they hold.
const (
	textKind   = "text"
	numberKind = "number"
	flagKind   = "flag"
	listKind   = "list"
)

// FieldKinds lists the kinds that [Fields] tell apart.
func FieldKinds() []string { return []string{textKind, numberKind, flagKind, listKind} }

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return textKind
	case json.Number:
		return numberKind
	case bool:
		return flagKind
	case []any:
		return listKind
	}
	return "" // null: it may have a value later
}

// count sums up.
func (c *fieldCounter) count() *Fields {
	f := &Fields{More: c.more}
	for name := range c.columns {
		if c.header != nil && !c.taken[name] || c.header == nil && !c.read(name) {
			f.Dropped++
		}
	}
	c.sum(&c.root, "", f)
	return f
}

func (c *fieldCounter) sum(at *fieldNode, path string, f *Fields) {
	for key, n := range at.below {
		inner := path + key
		if n.kind != "" && !c.read(inner) {
			f.Dropped++
			if f.Kinds == nil {
				f.Kinds = map[string]int{}
			}
			f.Kinds[n.kind]++
		}
		c.sum(n, inner+".", f)
	}
}

// read says whether something was read at a path, above or below it.
func (c *fieldCounter) read(path string) bool {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		if c.taken[p] {
			return true
		}
	}
	for p := range c.taken {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}
