package datasets

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/datasets/internal/row"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// Every format says what is read of it, and which columns that feeds; formats
// whose fields --map names have those of their targets.
func TestReadFields(t *testing.T) {
	columns := map[string]bool{}
	row := reflect.TypeFor[trace.Request]()
	for i := range row.NumField() {
		name, _, _ := strings.Cut(row.Field(i).Tag.Get("parquet"), ",")
		columns[name] = true
	}
	for _, f := range Formats() {
		var mapped []string
		if f.mapped && f.base == nil {
			mapped = []string{"input_tokens", "user"}
		}
		fields, ok := ReadFields(f.Name, mapped)
		if !ok || len(fields) < 2 {
			t.Errorf("%s: %v, %v", f.Name, fields, ok)
		}
		fed := map[string]bool{}
		for _, r := range fields {
			if (len(r.Paths) == 0) != (r.Target != "") || slices.Contains(r.Paths, "") || len(r.Columns) == 0 && r.How == "" {
				t.Errorf("%s: %+v", f.Name, r)
			}
			for _, c := range r.Columns {
				if fed[c] = true; !columns[c] {
					t.Errorf("%s: %v feed %s, which is no column", f.Name, r.Paths, c)
				}
			}
		}
		if !fed["input_tokens"] {
			t.Errorf("%s: nothing feeds the input", f.Name)
		}
	}
	for _, bad := range []struct {
		format string
		mapped []string
	}{{"zebra", nil}, {"sharegpt", []string{"user"}}, {"jsonl", []string{"customer_id"}}} {
		if _, ok := ReadFields(bad.format, bad.mapped); ok {
			t.Errorf("%+v is known", bad)
		}
	}
}

// A target that --map names is read in place of the format's own fields.
func TestReadFieldsOverridden(t *testing.T) {
	own, _ := ReadFields("openai-log", nil)
	over, _ := ReadFields("openai-log", []string{"user"})
	user := func(r SourceField) bool { return slices.Equal(r.Columns, []string{"user"}) }
	if i := slices.IndexFunc(own, user); i < 0 || own[i].Paths[0] != "user" {
		t.Errorf("%+v", own)
	}
	if i := slices.IndexFunc(over, user); i < 0 || over[i].Target != "user" || len(over) != len(own) {
		t.Errorf("%+v", over)
	}
}

// The structs that records are decoded into have the fields of the tables, and
// no others.
func TestTablesOfStructs(t *testing.T) {
	var walk func(s reflect.Type, path string, depth int, out map[string]bool)
	walk = func(s reflect.Type, path string, depth int, out map[string]bool) {
		for i := range s.NumField() {
			f := s.Field(i)
			if !f.IsExported() {
				continue
			}
			name := f.Tag.Get("json")
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			kind := f.Type
			if kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			switch {
			case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct && depth < 2:
				walk(kind.Elem(), path+name+"[].", depth+1, out)
			case kind.Kind() == reflect.Struct && kind != reflect.TypeFor[tokenusage.Counts]():
				walk(kind, path+name+".", depth, out)
			default:
				out[path+name] = true
			}
		}
	}
	for name, c := range map[string]struct {
		decoded reflect.Type
		table   []SourceField
	}{
		"weka":        {reflect.TypeFor[wekaConversation](), wekaFormat().reads},
		"claude-code": {reflect.TypeFor[claudeRecord](), claudeFormat().reads},
		"sharegpt":    {reflect.TypeFor[conversation[spokenTurn]](), shareGPTReads},
	} {
		read, declared := map[string]bool{}, map[string]bool{}
		walk(c.decoded, "", 0, read)
		for _, r := range c.table {
			for _, p := range r.Paths {
				declared[p] = true
			}
		}
		if !maps.Equal(read, declared) {
			t.Errorf("%s reads\n%v and declares\n%v", name, slices.Sorted(maps.Keys(read)), slices.Sorted(maps.Keys(declared)))
		}
	}
}

// A tableField is a field of a format's table, or what stands above one.
type tableField struct {
	below        map[string]*tableField
	named, whole bool
}

// tableOf is the table of a format as a tree.
func tableOf(f Format) *tableField {
	root := &tableField{below: map[string]*tableField{}}
	for _, field := range f.fields(nil) {
		for _, path := range field.Paths {
			at := root
			for _, key := range strings.Split(strings.ReplaceAll(path, row.ListMembers, "."+row.ListMembers), ".") {
				if at.below[key] == nil {
					at.below[key] = &tableField{below: map[string]*tableField{}}
				}
				at = at.below[key]
			}
			at.named, at.whole = true, at.whole || field.whole
		}
	}
	return root
}

// child is what the table has under a key, which may have dots itself.
func (f *tableField) child(key string) *tableField {
	if n := f.below[key]; n != nil || !strings.Contains(key, ".") {
		return n
	}
	for _, part := range strings.Split(key, ".") {
		if f = f.below[part]; f == nil || f.whole {
			return f
		}
	}
	return f
}

// planted adds a field to every object of a record of which only some fields are
// read, and says how many.
func planted(known *tableField, v any) (out any, paths map[string]bool) {
	paths = map[string]bool{}
	if len(known.below) == 0 || known.whole {
		return v, paths
	}
	below := func(key string, n *tableField, v any) any {
		inner, some := planted(n, v)
		for p := range some {
			paths[key+"."+p] = true
		}
		return inner
	}
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if n := known.child(key); n != nil {
				v[key] = below(key, n, inner)
			}
		}
		v["zebra_crossing"] = "secret"
		paths["zebra"] = true
	case []any:
		for i := range v {
			if n := known.below[row.ListMembers]; n != nil {
				v[i] = below(row.ListMembers, n, v[i])
			}
		}
	case string:
		if inner, _, ok := row.DecodeJSON([]byte(v)); ok && known.named {
			text, _ := json.Marshal(below("", known, inner))
			return string(text), paths
		}
	}
	return v, paths
}

// A field that no table names is counted and does not change what is read, in
// every format and wherever it stands in a record.
func TestPlantedFields(t *testing.T) {
	for _, f := range Formats() {
		if f.mapped && f.base == nil || f.open == nil {
			continue
		}
		table := tableOf(f)
		in, want := f.Example, 0
		switch whole, _, ok := row.DecodeJSON([]byte(in)); {
		case ok:
			list, isList := whole.([]any)
			if !isList {
				list = []any{whole}
			}
			var lines []string
			for _, r := range list {
				r, paths := planted(table, r)
				want += len(paths)
				line, _ := json.Marshal(r)
				lines = append(lines, string(line))
			}
			if in = strings.Join(lines, "\n"); isList {
				in = "[" + strings.Join(lines, ",") + "]"
			}
		case f.Name == "vllm-log":
			in, want = strings.Replace(in, "lora_request: None.", "zebra_crossing: 7, lora_request: None.", 1), 2 // n= is not read either
		default:
			header, row, ok := strings.Cut(in, "\n")
			if !ok {
				header, row = "TIMESTAMP,ContextTokens,GeneratedTokens", in
			}
			for _, name := range strings.Split(header, ",") {
				if n := table.child(name); n == nil || !n.named {
					want++
				}
			}
			in, want = header+",zebra_crossing\n"+row+",secret\n", want+1
			f.Example = header + "\n" + row + "\n"
		}
		plain, before := mustRead(t, f.Example, Options{Format: f.Name})
		got, after := mustRead(t, in, Options{Format: f.Name})
		if len(plain) == 0 || !reflect.DeepEqual(all(plain), all(got)) {
			t.Errorf("%s: %v became %v", f.Name, all(plain), all(got))
		}
		if _, isJSON, ok := row.DecodeJSON([]byte(f.Example)); ok && isJSON == 0 {
			want += before.Fields.Dropped
		}
		if after.Fields.Dropped != want || after.Fields.Format != f.Name {
			t.Errorf("%s: %+v of %s, want %d", f.Name, after.Fields, in, want)
		}
	}
}

func all(entries []trace.Entry) (out []string) {
	for i := range entries {
		out = append(out, summary(&entries[i]))
	}
	return out
}
