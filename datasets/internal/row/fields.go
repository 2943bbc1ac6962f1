package row

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// MaxFields bounds the memory for fields: keys may be made of data.
const MaxFields = 10_000

// A Fields lets the fields through that a format's table names, and counts
// and takes away all others: what a table does not name, no decoder gets to see.
// A nil one lets everything through.
type Fields struct {
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

// ListMembers stands in a path for the members of a list.
const ListMembers = "[]"

// A fieldNode is a field that is not read, or an object of such.
type fieldNode struct {
	below map[string]*fieldNode
	kind  string // of its first value that is no object; empty for none
}

// NewFields makes a table without any fields.
func NewFields() *Fields { return &Fields{columns: map[string]bool{}} }

// Know adds a field to the table: keys down a record, [] for the members of a list, or a column. whole
// is of one that is read with all that is below it.
func (c *Fields) Know(path string, whole bool) {
	k := &c.root
	for key := range strings.SplitSeq(strings.ReplaceAll(path, ListMembers, "."+ListMembers), ".") {
		k = k.ensureKey(key, nil)
	}
	k.named, k.whole = true, k.whole || whole
}

// KnowMapped adds the path of a mapping, see [knownField.addMapped].
func (c *Fields) KnowMapped(path string) { c.root.addMapped(path) }

// KnowPacked makes a field be read that holds, packed as JSON, others of the table.
func (c *Fields) KnowPacked(field string) {
	if n := c.root.child(field); n != nil {
		n.named = true
	}
}

// Knows reports whether the table has a field, or one below it.
func (c *Fields) Knows(field string) bool { return c.root.child(field) != nil }

func (k *knownField) ensureKey(key string, n *knownField) *knownField {
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

// addMapped adds a path of a mapping: a column, or dotted keys, where a number may
// be a place in a list. A path to an object adds all of it.
func (k *knownField) addMapped(path string) {
	if Dotted(path) == "" { // the record itself
		k.whole = true
		return
	}
	n := &knownField{named: true, whole: true}
	k.ensureKey(path, n)
	for key := range strings.SplitSeq(Dotted(path), ".") {
		if strings.Trim(key, "0123456789") != "" {
			k = k.ensureKey(key, nil)
			continue
		}
		member := k.ensureKey(ListMembers, nil)
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
		if k = k.below[part]; k == nil || k.whole {
			return k
		}
	}
	return k
}

// Admit takes from an object what the table does not name, and reports whether
// there was something.
func (c *Fields) Admit(object map[string]any) bool {
	return c != nil && !c.root.whole && c.strip(&c.root, object)
}

// AdmitAt does the same to the value of a path that was packed in a string.
func (c *Fields) AdmitAt(path string, v any) {
	if c == nil {
		return
	}
	if known := c.root.child(path); known != nil {
		c.keeps(known, v)
	}
}

func (c *Fields) strip(known *knownField, object map[string]any) (some bool) {
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
func (c *Fields) keeps(known *knownField, v any) (kept, stripped bool) {
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
		member := known.below[ListMembers]
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
func (c *Fields) note(at *fieldNode, key string, v any) {
	n := c.node(at, key)
	if n == nil {
		return
	}
	kind := "" // of null: it may have a value later
	switch v := v.(type) {
	case map[string]any:
		for key, v := range v {
			c.note(n, key, v)
		}
	case string:
		kind = TextKind
	case json.Number:
		kind = NumberKind
	case bool:
		kind = FlagKind
	case []any:
		kind = ListKind
	}
	n.kind = cmp.Or(n.kind, kind)
}

// node returns the node of a key, nil where there are too many already.
func (c *Fields) node(at *fieldNode, key string) *fieldNode {
	n := at.below[key]
	if n == nil {
		if c.nodes == MaxFields {
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

// AdmitNames takes from named texts those that the table does not name.
func (c *Fields) AdmitNames(fields map[string]string) {
	for name := range fields {
		if c != nil && c.root.below[name] == nil {
			c.note(&c.root.dropped, name, "")
			delete(fields, name)
		}
	}
}

// Parameter counts a parameter below a field, unless the table names it.
func (c *Fields) Parameter(field, name string) {
	if c == nil {
		return
	}
	if known := c.root.below[field]; known.child(name) == nil {
		c.note(&known.dropped, name, "")
	}
}

// Reads says whether a column is of the table, and counts it when it is not.
func (c *Fields) Reads(column string) bool {
	if c == nil {
		return true
	}
	if n := c.root.child(column); n != nil && n.named {
		return true
	}
	c.column(column)
	return false
}

func (c *Fields) column(name string) {
	if c != nil && len(c.columns) == MaxFields {
		c.more = true
	} else if c != nil {
		c.columns[strings.Clone(name)] = true
	}
}

// Kinds of fields by what they hold.
const (
	TextKind   = "text"
	NumberKind = "number"
	FlagKind   = "flag"
	ListKind   = "list"
)

// Dropped counts the fields that were not read: the distinct paths with a value; by kind, where the
// source has kinds; and whether there may be more, since 10,000 were distinguished.
func (c *Fields) Dropped() (paths int, kinds map[string]int, more bool) {
	kinds = map[string]int{}
	c.root.sum(kinds)
	paths = len(c.columns)
	for _, n := range kinds {
		paths += n
	}
	if len(kinds) == 0 {
		kinds = nil
	}
	return paths, kinds, c.more
}

// Names are those of the fields that were not read, sorted: keys down a record with dots between them. A key that
// may be made of data is left out, with all below it.
func (c *Fields) Names() []string {
	names := slices.Collect(maps.Keys(c.columns))
	names = slices.DeleteFunc(names, func(column string) bool { return !namesField(column) })
	c.root.names("", &names)
	slices.Sort(names)
	return slices.Compact(names)
}

// namesField reports whether a key is one that a person would name a field: letters, at most two digits, not long.
func namesField(key string) bool {
	digits := 0
	for _, r := range key {
		if unicode.IsDigit(r) {
			digits++
		} else if !unicode.IsLetter(r) && !strings.ContainsRune("_-. @$/[]()", r) {
			return false
		}
	}
	return digits <= 2 && len(key) <= 48
}

func (k *knownField) names(path string, names *[]string) {
	k.dropped.names(path, names)
	for key, below := range k.below {
		below.names(path+key+".", names) // a key that the format names
	}
}

func (n *fieldNode) names(path string, names *[]string) {
	if n.kind != "" {
		*names = append(*names, strings.ReplaceAll(strings.TrimSuffix(path, "."), "."+ListMembers, ListMembers))
	}
	for key, below := range n.below {
		if namesField(key) {
			below.names(path+key+".", names)
		}
	}
}

func (k *knownField) sum(kinds map[string]int) {
	k.dropped.sum(kinds)
	for _, n := range k.below {
		n.sum(kinds)
	}
}

func (n *fieldNode) sum(kinds map[string]int) {
	if n.kind != "" {
		kinds[n.kind]++
	}
	for _, below := range n.below {
		below.sum(kinds)
	}
}

// Scan counts what the table does not name in a record that a decoder reads into
// structs, and so never gets to see. raw is meant to be valid JSON. It is walked without
// decoding it, since the record may be megabytes of text.
func (c *Fields) Scan(raw []byte) {
	if c != nil {
		s := fieldScan{c: c, rest: raw}
		s.value(&c.root, nil)
	}
}

// A fieldScan walks over JSON; rest is still to come.
type fieldScan struct {
	c    *Fields
	rest []byte
}

// peek returns the next byte that is no white space; 0 at the end.
func (s *fieldScan) peek() byte {
	if s.rest = bytes.TrimLeft(s.rest, " \t\r\n"); len(s.rest) == 0 {
		return 0
	}
	return s.rest[0]
}

// step passes over one byte, after white space.
func (s *fieldScan) step() {
	if s.peek() != 0 {
		s.rest = s.rest[1:]
	}
}

// value passes over a value, which is known or in a node that is not; with
// neither it is not of interest. It returns the kind of what is no object.
func (s *fieldScan) value(known *knownField, node *fieldNode) (kind string) {
	switch s.peek() {
	case '{':
		s.object(known, node)
		return ""
	case '[':
		var member *knownField
		if known != nil {
			member = known.below[ListMembers]
		}
		for s.step(); s.peek() != ']' && s.peek() != 0; {
			if s.value(member, nil); s.peek() == ',' {
				s.step()
			}
		}
		s.step()
		return ListKind
	case '"':
		s.text()
		return TextKind
	}
	end := bytes.IndexAny(s.rest, ",]} \t\r\n")
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	switch {
	case len(word) == 0: // no JSON: go on all the same
		s.step()
		return ""
	case word[0] == 'n':
		return ""
	case word[0] == 't' || word[0] == 'f':
		return FlagKind
	}
	return NumberKind
}

// object passes over an object, and counts the fields in it that are not known.
func (s *fieldScan) object(known *knownField, node *fieldNode) {
	for s.step(); s.peek() == '"'; {
		key := s.key()
		s.step() // the colon
		switch {
		case known == nil && node == nil || known != nil && len(known.below) == 0:
			s.value(nil, nil)
		case known == nil:
			s.count(node, key)
		default:
			// encoding/json takes keys in any case.
			below := cmp.Or(known.child(key), known.child(strings.ToLower(key)))
			if below == nil {
				s.count(&known.dropped, key)
			} else if kind := s.value(below, nil); !below.takes(kind) {
				if n := s.c.node(&known.dropped, key); n != nil {
					n.kind = cmp.Or(n.kind, kind)
				}
			}
		}
		if s.peek() == ',' {
			s.step()
		}
	}
	s.step()
}

// takes reports whether the table names a value of this kind: where it names only what is inside an
// object or a list, a number there is not read.
func (k *knownField) takes(kind string) bool {
	return kind == "" || k.whole || k.named || kind == ListKind && k.below[ListMembers] != nil
}

func (s *fieldScan) count(at *fieldNode, key string) {
	n := s.c.node(at, key)
	if kind := s.value(nil, n); n != nil {
		n.kind = cmp.Or(n.kind, kind)
	}
}

// key passes over a key and returns it. A long one is cut: it is counted, not kept.
func (s *fieldScan) key() string {
	raw := s.text()
	raw = raw[:min(len(raw), MaxKey)]
	if bytes.IndexByte(raw, '\\') < 0 {
		return strings.Trim(string(raw), `"`)
	}
	var key string
	if json.Unmarshal(raw, &key) != nil {
		return string(raw)
	}
	return key
}

// MaxKey bounds what is kept of a key.
const MaxKey = 1 << 10

// text passes over a string and returns it as it is written.
func (s *fieldScan) text() []byte {
	i := 1
	for i < len(s.rest) && s.rest[i] != '"' {
		n := bytes.IndexAny(s.rest[i:], `"\`)
		if n < 0 {
			i = len(s.rest)
			break
		}
		if i += n; s.rest[i] == '\\' {
			i += 2
		}
	}
	raw := s.rest[:min(i+1, len(s.rest))]
	s.rest = s.rest[len(raw):]
	return raw
}
