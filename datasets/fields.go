package datasets

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"reprise/datasets/internal/row"
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
			known := slices.ContainsFunc(targets, func(t target) bool { return t.name == name })
			if !known || !(Mapping{name: nil}).fits(f) {
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
	if mapped == nil || f.adds || f.labels || f.base != nil && !over.has("output") {
		out = append(out, f.reads...)
	}
	for _, t := range targets {
		if slices.Contains(mapped, t.name) {
			out = append(out, SourceField{Target: t.name, Columns: strings.Fields(fedBy[t.name].columns),
				How: fedBy[t.name].how})
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
		"time": {"arrival_ns", ""}, "session": {"session turn parents", ""}, "response_id": {"session parents", ""},
		"previous_response_id": {"session parents think_ns tool_ns", ""}, "error": {"status", ""},
		"salt":       {"blocks", "part of the keyed block ids; not kept"},
		"prefix_key": {"blocks", "tells which prompts share a beginning, where their text is redacted; not kept"},
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
		for _, path := range m.places(t.name) {
			origins, below := path, "" // the longest part that is made, and what is below it
			for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
				if from, ok := made[p]; ok {
					origins, below = from, path[len(p):]
					break
				}
			}
			for origin := range strings.SplitSeq(origins, "|") {
				p := member.ReplaceAllString(origin+below, row.ListMembers+"$1")
				if origin != "" && !slices.Contains(paths, p) {
					paths = append(paths, p)
				}
			}
		}
		if len(paths) > 0 {
			out = append(out, SourceField{Paths: paths, Columns: strings.Fields(fedBy[t.name].columns),
				How: fedBy[t.name].how})
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

// newFieldCounter makes a counter for a format, in which a mapping may name
// fields in place of others: those of some targets.
func newFieldCounter(f Format, m Mapping) (c *row.Fields, mapped []string) {
	c, mapped = row.NewFields(), slices.Sorted(maps.Keys(m))
	read := f.fields(mapped)
	if f.declared != nil { // a path may be a secret, so the card has the targets
		read, mapped = f.reads, f.declared.targets()
	}
	for _, r := range read {
		for _, path := range r.Paths {
			c.Know(path, r.whole)
		}
	}
	for name := range m {
		for _, path := range m.places(name) {
			c.KnowMapped(path)
		}
	}
	return c, mapped
}

// FieldKinds lists the kinds that [Fields] tell apart.
func FieldKinds() []string { return []string{row.TextKind, row.NumberKind, row.FlagKind, row.ListKind} }
