package datasets

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/datasets/internal/row"
)

// absentFields are the fields that the operator mapped and no record had so far, by
// their targets; parts of a sum stand beside it.
type absentFields map[string]*absentField

type absentField struct {
	target string
	spec   string   // as it was mapped
	by     string   // and where
	paths  []string // as lookup takes them
	near   string   // a field of the source whose name is much like it
}

// mapped adds a target that was mapped to a field.
func (a absentFields) mapped(key, target, spec, by string, paths []string) {
	a[key] = &absentField{target: target, spec: spec, by: by, paths: paths}
}

// see takes out what a record has.
func (a absentFields) see(r row.Row) {
	for name, f := range a {
		if row.HasAny(r, f.paths...) {
			delete(a, name)
		}
	}
}

// check refuses a source whose first records have no field for the time, or none for
// the prompt and its length: each record would be bad.
func (a absentFields) check(o Options) error {
	if len(a) == 0 {
		return nil
	}
	found := o.inspect()
	for _, name := range slices.Sorted(maps.Keys(a)) {
		f := a[name]
		f.near = (&FieldsError{Inspection: found, Absent: f.spec}).Nearest()
		missing := name == "time"
		if name == "messages" || name == "prompt" || name == "input_tokens" {
			missing = true
			for _, other := range []string{"messages", "prompt", "input_tokens"} {
				missing = missing && (o.Map[other] == nil || a[other] != nil)
			}
		}
		if missing {
			return refuseFields(fmt.Sprintf("no record has the field %q (%s)", f.spec, f.by),
				&FieldsError{Inspection: found, Absent: f.spec})
		}
	}
	return nil
}

// notes say what was mapped and never found.
func (a absentFields) notes() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		line := fmt.Sprintf("no record has the field %q (%s)", a[name].spec, a[name].by)
		if a[name].near != "" {
			line += fmt.Sprintf("; did you mean %q?", a[name].near)
		}
		lines = append(lines, line)
	}
	return lines
}

// absentColumn is the fault of a file that lacks a mapped column.
func absentColumn(name string, paths []string, found *Inspection) error {
	spec := strings.Join(paths, "|")
	return refuseFields(fmt.Sprintf("there is no column %q (--map %s=%s)", spec, name, spec),
		&FieldsError{Inspection: found, Absent: spec})
}
