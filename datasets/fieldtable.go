package datasets

import (
	"regexp"
	"slices"
	"strings"
)

// A SourceField is a field of a format that its reader knows.
type SourceField struct {
	Paths   []string // where it is: keys down a record, [] for the members of a list, or a column; one of several
	Target  string   // of --map, which named the path in place of the format
	Columns []string // of trace/1 that it feeds
	How     string   // what becomes of it, where the rules of the columns do not say it
}

// ReadFields lists what is read of a format whose mapping, if it takes one, names
// fields for some targets. ok is false for a format or a target that is not known.
func ReadFields(format string, mapped []string) (fields []SourceField, ok bool) {
	for _, f := range Formats() {
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
	packed    = "JSON in a string, of which the fields below are read"
	decides   = "read to decide what a record is, and not kept"
	passed    = "known, and not read"
)

// fedBy are the columns that the targets of a mapping feed.
var fedBy = func() map[string]struct{ columns, how string } {
	fed := map[string]struct{ columns, how string }{
		"time": {"arrival_ns", ""}, "session": {"session turn parents", ""}, "error": {"status", ""},
		"salt":     {"blocks", "goes into the keyed block ids, and is not kept"},
		"messages": {"input_tokens blocks images kind", tokenised}, "prompt": {"input_tokens blocks kind", tokenised},
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
	for _, t := range targets {
		var paths []string
		for _, path := range m[t.name] {
			for _, p := range unmade(path, made) {
				p = member.ReplaceAllString(p, listMembers+"$1")
				if !slices.Contains(paths, p) {
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

func unmade(path string, made map[string]string) (paths []string) {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		origins, ok := made[p]
		if !ok {
			continue
		}
		for origin := range strings.SplitSeq(origins, "|") {
			if origin != "" {
				paths = append(paths, origin+path[len(p):])
			}
		}
		return paths
	}
	return []string{path}
}
