package datasets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A SourceField is a field of a format that its reader knows.
type SourceField struct {
	Paths   []string // where it is: keys down a record, [] for the members of a list, or a column; one of several
	Target  string   // of --map, which named the path in place of the format
	Columns []string // of a trace that it feeds
	How     string   // what becomes of it, where the rules of the columns do not say it
	whole   bool     // it is read with all that is below it, whatever else is named there
}

// ReadFields lists the fields that are read of a format. mapped are the targets for
// which a mapping names fields in place of the format's own. ok is false for a
// format or a target that is not known.
func ReadFields(format string, mapped []string) (fields []SourceField, ok bool) {
	for _, f := range append(Formats(), Format{Name: formatFileName, mapped: true}) {
		if f.Name != format {
			continue
		}
		for _, name := range mapped {
			if !f.mapped || !slices.ContainsFunc(targets, func(t target) bool { return t.name == name }) {
				return nil, false
			}
		}
		return f.fields(mapped), true
	}
	return nil, false
}

// fields are those of the format without the targets that a mapping has, and these.
func (f Format) fields(mapped []string) []SourceField {
	over := Mapping{}
	for _, name := range mapped {
		over[name] = nil
	}
	var out []SourceField
	if f.mapped && f.base != nil {
		out = mappedFields(over.over(f.base()), nil)
		out = slices.DeleteFunc(out, func(r SourceField) bool { return len(r.Paths) == 0 })
	}
	if mapped == nil || f.base != nil && !over.has("output") {
		out = append(out, f.reads...)
	}
	for _, t := range targets {
		if slices.Contains(mapped, t.name) {
			out = append(out, SourceField{Target: t.name, Columns: strings.Fields(fedBy[t.name].columns), How: fedBy[t.name].how})
		}
	}
	return out
}

// What becomes of fields that are not kept as they are.
const (
	tokenised = "tokenised: counted into lengths and keyed block ids, the text itself is not in this file"
	packed    = "a string of JSON, whose fields are listed here"
	decides   = "classifies the record; not kept"
	passed    = "known, not read"
)

// fedBy are the columns that the targets of a mapping feed.
var fedBy = func() map[string]struct{ columns, how string } {
	fed := map[string]struct{ columns, how string }{
		"time": {"arrival_ns", ""}, "session": {"session turn parents", ""}, "response_id": {"session parents", ""}, "previous_response_id": {"session parents think_ns tool_ns", ""}, "error": {"status", ""},
		"salt":       {"blocks", "part of the keyed block ids; not kept"},
		"prefix_key": {"blocks", "tells which prompts begin alike, where their text is redacted; not kept"},
		"messages":   {"input_tokens blocks images kind", tokenised}, "prompt": {"input_tokens blocks kind", tokenised},
		"tools": {"input_tokens blocks", tokenised}, "output": {"output_tokens output_blocks", tokenised},
	}
	for _, t := range targets {
		if _, ok := fed[t.name]; ok {
			continue
		}
		column := t.name
		if q := quantity(column); q == "ttft" || q == "e2e" {
			column = q + "_ns"
		}
		fed[t.name] = struct{ columns, how string }{column, ""}
	}
	return fed
}()

// fieldAt declares a field: its paths, separated by "|", and its columns.
func fieldAt(paths, columns, how string) SourceField {
	return SourceField{Paths: strings.Split(paths, "|"), Columns: strings.Fields(columns), How: how}
}

// member is a place in a list on a path.
var member = regexp.MustCompile(`\.[0-9]+(\.|$)`)

// mappedFields are those that a mapping names, in the order of the targets. made
// has, for paths that a view makes, where it takes them from, separated by "|":
// of the path itself or of what is above it.
func mappedFields(m Mapping, made map[string]string) (out []SourceField) {
	m = m.withErrors()
	for _, t := range targets {
		var paths []string
		for _, path := range m[t.name] {
			origins, below := path, "" // the longest part that is made, and what is below it
			for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
				if from, ok := made[p]; ok {
					origins, below = from, path[len(p):]
					break
				}
			}
			for origin := range strings.SplitSeq(origins, "|") {
				p := member.ReplaceAllString(origin+below, listMembers+"$1")
				if origin != "" && !slices.Contains(paths, p) {
					paths = append(paths, p)
				}
			}
		}
		if len(paths) > 0 {
			out = append(out, SourceField{Paths: paths, Columns: strings.Fields(fedBy[t.name].columns), How: fedBy[t.name].how})
		}
	}
	return out
}

// wholeTexts makes fields of text be read with all that is below them: the bodies of
// requests and answers, of whatever form.
func wholeTexts(fields []SourceField) []SourceField {
	for i := range fields {
		fields[i].whole = fields[i].How == tokenised
	}
	return fields
}

// Fields say which fields of a source were read, and how many were not. The names
// of the latter are not kept: a name may tell something. A field is a value of a
// record by its path, or a column; a list without objects is one field.
type Fields struct {
	Format  string         // whose fields were read
	Mapped  []string       // targets whose fields a mapping named
	Dropped int            // distinct paths beside them with a value
	Kinds   map[string]int // of them by their first values, see [FieldKinds]; nil for CSV and Parquet
	More    bool           // there may be more: 10,000 were distinguished
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
	read := f.fields(c.mapped)
	if f.declared != nil { // a path may be a secret, so the card has the targets
		read, c.mapped = f.reads, f.declared.targets()
	}
	for _, r := range read {
		for _, path := range r.Paths {
			k := &c.root
			for key := range strings.SplitSeq(strings.ReplaceAll(path, listMembers, "."+listMembers), ".") {
				k = k.ensureKey(key, nil)
			}
			k.named, k.whole = true, k.whole || r.whole
		}
	}
	for name := range m {
		for _, path := range m.places(name) {
			c.root.addMapped(path)
		}
	}
	return c
}

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
	if dotted(path) == "" { // the record itself
		k.whole = true
		return
	}
	n := &knownField{named: true, whole: true}
	k.ensureKey(path, n)
	for key := range strings.SplitSeq(dotted(path), ".") {
		if strings.Trim(key, "0123456789") != "" {
			k = k.ensureKey(key, nil)
			continue
		}
		member := k.ensureKey(listMembers, nil)
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

// admit takes from an object what the table does not name, and reports whether
// there was something.
func (c *fieldCounter) admit(object map[string]any) bool {
	return c != nil && !c.root.whole && c.strip(&c.root, object)
}

// admitAt does the same to the value of a path that was packed in a string.
func (c *fieldCounter) admitAt(path string, v any) {
	if c == nil {
		return
	}
	if known := c.root.child(path); known != nil {
		c.keeps(known, v)
	}
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
	kind := "" // of null: it may have a value later
	switch v := v.(type) {
	case map[string]any:
		for key, v := range v {
			c.note(n, key, v)
		}
	case string:
		kind = textKind
	case json.Number:
		kind = numberKind
	case bool:
		kind = flagKind
	case []any:
		kind = listKind
	}
	n.kind = cmp.Or(n.kind, kind)
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

// scan counts what the table does not name in a record that a decoder reads into
// structs, and so never gets to see. raw is meant to be valid JSON. It is walked without
// decoding it, since the record may be megabytes of text.
func (c *fieldCounter) scan(raw []byte) {
	if c != nil {
		s := fieldScan{c: c, rest: raw}
		s.value(&c.root, nil)
	}
}

// A fieldScan walks over JSON; rest is still to come.
type fieldScan struct {
	c    *fieldCounter
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
			member = known.below[listMembers]
		}
		for s.step(); s.peek() != ']' && s.peek() != 0; {
			if s.value(member, nil); s.peek() == ',' {
				s.step()
			}
		}
		s.step()
		return listKind
	case '"':
		s.text()
		return textKind
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
		return flagKind
	}
	return numberKind
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
	return kind == "" || k.whole || k.named || kind == listKind && k.below[listMembers] != nil
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
	raw = raw[:min(len(raw), maxKey)]
	if bytes.IndexByte(raw, '\\') < 0 {
		return strings.Trim(string(raw), `"`)
	}
	var key string
	if json.Unmarshal(raw, &key) != nil {
		return string(raw)
	}
	return key
}

// maxKey bounds what is kept of a key.
const maxKey = 1 << 10

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
