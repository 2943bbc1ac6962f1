package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// filled sets everything that a value can hold, one element to a list.
func filled(v reflect.Value) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes([]byte(`"text"`))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		of := reflect.New(v.Type().Elem()).Elem()
		filled(of)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), of)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				filled(v.Field(i))
			}
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	}
}

// fullSummary has every number that a summary can have.
func fullSummary(t *testing.T) (Summary, []string) {
	t.Helper()
	var s Summary
	filled(reflect.ValueOf(&s).Elem())
	var doc bytes.Buffer
	if err := writeJSON(&doc, s); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(doc.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return s, numbersIn(v, "")
}

func numbersIn(v any, path string) (out []string) {
	at := func(name string, v any) { out = append(out, numbersIn(v, strings.TrimPrefix(path+"."+name, "."))...) }
	switch v := v.(type) {
	case float64:
		return []string{path}
	case map[string]any:
		for k, x := range v {
			at(k, x)
		}
	case []any:
		for i, x := range v {
			at(strconv.Itoa(i), x)
		}
	}
	return out
}

// Every number of a summary has a definition, and every definition a number.
func TestEveryNumberIsDefined(t *testing.T) {
	_, paths := fullSummary(t)
	if len(paths) < 300 {
		t.Fatalf("%d numbers only", len(paths))
	}
	all := Definitions()
	for _, path := range paths {
		d, ok := definitionOf(all, path)
		if !ok {
			t.Errorf("%s has no definition", path)
		}
		last := path[strings.LastIndex(path, ".")+1:]
		if strings.HasPrefix(last, "p9") && statisticOf(path) == "" {
			t.Errorf("%s is a percentile that is not told as one", path)
		}
		if strings.HasSuffix(last, "_ms") && d.Unit != "ms" || strings.HasSuffix(last, "_per_s") && !strings.Contains(d.Unit, "1/s") {
			t.Errorf("%s has the unit %s", path, d.Unit)
		}
	}
	for _, d := range all {
		for _, pattern := range d.Paths() {
			used := false
			for _, path := range paths {
				used = used || matches(pattern, path)
			}
			if !used {
				t.Errorf("%s: no number is at %s", d.Name, pattern)
			}
		}
	}
}
