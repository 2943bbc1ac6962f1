package datasets

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Fields say what a source was read as, and how many fields it has beside those
// that [ReadFields] lists for that. The names of these stay here: a name may tell
// something. A field is a value of a record by its path, or a column; a list of
// what are no objects is one field.
type Fields struct {
	Format  string         // whose fields were read
	Mapped  []string       // targets whose fields a mapping named
	Dropped int            // distinct paths beside them with a value
	Kinds   map[string]int // of them by their first values, see [FieldKinds]; nil for CSV and Parquet
	More    bool           // there may be more: 10,000 were told apart
}

// maxFields bounds the memory for fields: keys may be made of data.
const maxFields = 10_000

// A fieldCounter lets the fields through that a format's table names, and counts
// and takes away all others: what a table does not name, no decoder gets to see.
// A nil one lets everything through.
type fieldCounter struct {
	format  string
	mapped  []string
	root    knownField
	columns map[string]bool // of CSV and Parquet, that are not read
	nodes   int
	more    bool
}

// A knownField is a field of a table, or what stands above one.
type knownField struct {
	below   map[string]*knownField // by key; members of a list under listMembers
	named   bool                   // the table has it
	whole   bool                   // with all that is below
	dropped fieldNode              // what stands beside those below
}

const listMembers = "[]"

// A fieldNode is a field that is not read, or an object of such.
type fieldNode struct {
	below map[string]*fieldNode
	kind  string // of its first value that is no object; empty for none
}

// newFieldCounter makes a counter for a format, in which a mapping may name
// fields in place of others.
func newFieldCounter(f Format, m Mapping) *fieldCounter {
	c := &fieldCounter{format: f.Name, columns: map[string]bool{}, mapped: slices.Sorted(maps.Keys(m))}
	for _, r := range f.fields(c.mapped) {
		for _, path := range r.Paths {
			c.root.at(path).named = true
		}
	}
	for _, paths := range m {
		for _, path := range paths {
			c.root.mapped(path)
		}
	}
	return c
}

// at returns the field at a path, as tables write it, and makes it.
func (k *knownField) at(path string) *knownField {
	for key := range strings.SplitSeq(strings.ReplaceAll(path, listMembers, "."+listMembers), ".") {
		k = k.key(key, nil)
	}
	return k
}

func (k *knownField) key(key string, n *knownField) *knownField {
	if k.below == nil {
		k.below = map[string]*knownField{}
	}
	if k.below[key] == nil {
		if n == nil {
			n = &knownField{}
		}
		k.below[key] = n
	}
	return k.below[key]
}

// mapped adds a path of a mapping: a column, or dotted keys of which numbers may
// be places in a list. Of an object it takes all.
func (k *knownField) mapped(path string) {
	n := &knownField{named: true, whole: true}
	k.key(path, n)
	for key := range strings.SplitSeq(dotted(path), ".") {
		if strings.Trim(key, "0123456789") != "" {
			k = k.key(key, nil)
			continue
		}
		member := k.key(listMembers, nil)
		k.below[key] = member
		k = member
	}
	k.named, k.whole = true, true
}

// child returns what is known under a key, which may have dots itself.
func (k *knownField) child(key string) *knownField {
	if n := k.below[key]; n != nil || !strings.Contains(key, ".") {
		return n
	}
	for part := range strings.SplitSeq(key, ".") {
		if k = k.below[part]; k == nil {
			return nil
		}
	}
	return k
}

// admit takes from an object what the table does not name, and reports whether
// there was something.
func (c *fieldCounter) admit(object map[string]any) bool {
	return c != nil && c.strip(&c.root, object)
}

// admitAt does the same to the value of a path that was packed in a string.
func (c *fieldCounter) admitAt(path string, v any) {
	if c == nil {
		return
	}
	if known := c.root.find(path); known != nil {
		c.keeps(known, v)
	}
}

// find returns what is at a path as tables write it; nil for nothing.
func (k *knownField) find(path string) *knownField {
	for key := range strings.SplitSeq(path, ".") {
		if k = k.below[key]; k == nil {
			return nil
		}
	}
	return k
}

func (c *fieldCounter) strip(known *knownField, object map[string]any) (some bool) {
	for key, v := range object {
		kept, inner := c.keeps(known.child(key), v)
		if !kept {
			c.note(&known.dropped, key, v)
			delete(object, key)
		}
		some = some || !kept || inner
	}
	return some
}

// keeps says whether a value is of the table, and strips what is below it.
func (c *fieldCounter) keeps(known *knownField, v any) (kept, stripped bool) {
	if known == nil {
		return false, false
	}
	if known.whole || v == nil {
		return true, false
	}
	switch v := v.(type) {
	case map[string]any:
		if len(known.below) == 0 {
			return known.named, false
		}
		return true, c.strip(known, v)
	case []any:
		member := known.below[listMembers]
		if member == nil {
			return known.named, false
		}
		for _, m := range v {
			if object, ok := m.(map[string]any); ok && !member.whole && len(member.below) > 0 {
				stripped = c.strip(member, object) || stripped
			}
		}
		return true, stripped
	}
	return known.named, false
}

// note counts a field that is not read, with all that is below it.
func (c *fieldCounter) note(at *fieldNode, key string, v any) {
	n := c.node(at, key)
	if n == nil {
		return
	}
	if inner, ok := v.(map[string]any); ok {
		for key, v := range inner {
			c.note(n, key, v)
		}
	} else if n.kind == "" {
		n.kind = kindOf(v)
	}
}

// node returns the node of a key, nil where there are too many already.
func (c *fieldCounter) node(at *fieldNode, key string) *fieldNode {
	n := at.below[key]
	if n == nil {
		if c.nodes == maxFields {
			c.more = true
			return nil
		}
		if at.below == nil {
			at.below = map[string]*fieldNode{}
		}
		n = &fieldNode{}
		at.below[strings.Clone(key)] = n
		c.nodes++
	}
	return n
}

// admitNames takes from named texts those that the table does not name.
func (c *fieldCounter) admitNames(fields map[string]string) {
	for name := range fields {
		if c != nil && c.root.below[name] == nil {
			c.note(&c.root.dropped, name, "")
			delete(fields, name)
		}
	}
}

// parameter counts a parameter below a field, unless the table names it.
func (c *fieldCounter) parameter(field, name string) {
	if c == nil {
		return
	}
	if known := c.root.below[field]; known.child(name) == nil {
		c.note(&known.dropped, name, "")
	}
}

// reads says whether a column is of the table, and counts it when it is not.
func (c *fieldCounter) reads(column string) bool {
	if c == nil {
		return true
	}
	if n := c.root.child(column); n != nil && n.named {
		return true
	}
	c.column(column)
	return false
}

func (c *fieldCounter) column(name string) {
	if c != nil && len(c.columns) == maxFields {
		c.more = true
	} else if c != nil {
		c.columns[strings.Clone(name)] = true
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
	f := &Fields{Format: c.format, Mapped: c.mapped, Dropped: len(c.columns), More: c.more}
	c.root.sum(f)
	return f
}

func (k *knownField) sum(f *Fields) {
	k.dropped.sum(f)
	for _, n := range k.below {
		n.sum(f)
	}
}

func (n *fieldNode) sum(f *Fields) {
	if n.kind != "" {
		f.Dropped++
		if f.Kinds == nil {
			f.Kinds = map[string]int{}
		}
		f.Kinds[n.kind]++
	}
	for _, below := range n.below {
		below.sum(f)
	}
}
