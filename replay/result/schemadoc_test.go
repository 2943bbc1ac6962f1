package result

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var inBackticks = regexp.MustCompile("`([^`]+)`")

// jsonNames calls visit with each name that the JSON of a type has, and those below it.
func jsonNames(of reflect.Type, visit func(name string, of reflect.Type)) {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, of.Kind()) {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" && !f.Anonymous {
			visit(name, f.Type)
		}
	}
}

// docs/schema.md has a row for every field of a Run, which names every field below it,
// and no row for one that is not there.
func TestSchemaNamesTheFieldsOfARun(t *testing.T) {
	doc, err := os.ReadFile("../../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(doc), "## What results say of their run\n")
	if !found {
		t.Fatal("docs/schema.md does not say what results say of their run")
	}
	rows := map[string][]string{} // by field: all names in its row
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		var names []string
		for _, m := range inBackticks.FindAllStringSubmatch(line, -1) {
			names = append(names, m[1])
		}
		for _, m := range inBackticks.FindAllStringSubmatch(cells[1], -1) {
			rows[m[1]] = names
		}
	}
	jsonNames(reflect.TypeFor[Run](), func(field string, of reflect.Type) {
		row := rows[field]
		if row == nil {
			t.Errorf("docs/schema.md does not name %s", field)
		}
		delete(rows, field)
		var below func(name string, of reflect.Type)
		below = func(name string, of reflect.Type) {
			if row != nil && !slices.Contains(row, name) {
				t.Errorf("docs/schema.md does not name %s of %s", name, field)
			}
			jsonNames(of, below)
		}
		jsonNames(of, below)
	})
	for field := range rows {
		t.Errorf("docs/schema.md names %s, which a Run does not have", field)
	}
}
