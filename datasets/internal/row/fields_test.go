package row

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Walking over the bytes of a record counts what walking over its values does.
func FuzzFieldScan(f *testing.F) {
	table := func() *Fields {
		c := NewFields()
		for _, path := range []string{"id", "model", "conversations[].from", "conversations[].value",
			"conversation[].role"} {
			c.Know(path, false)
		}
		return c
	}
	for _, seed := range []string{
		`{"id":1,"tags":["a",{"b":[]}],"conversations":[{"from":"x","y":{"z":null,"w":-1e5}},[{"q":1}],"t"]}`,
		`{"a":{"b":{"c":true},"d":"\"}"},"conversation" : [ { "role" : "r" , "x" : "" } ] , "\u0061" : 2}`, `{"a":{},"b":[{}]}`, `{"conversations":0,"id":{"x":1}}`, `{"conversations":[0,{"from":[1]}]}`, `[}`, `{"a`, `{"a":[,]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		table().Scan(raw) // whatever it is, it ends
		v, _, _ := DecodeJSON(raw)
		object, ok := v.(map[string]any)
		once, err := json.Marshal(object) // each key once
		if !ok || err != nil || strings.ToLower(string(once)) != string(once) {
			return // keys of structs are taken in any case, and others are not
		}
		scanned := table()
		scanned.Scan(once)
		walked := table()
		walked.Admit(object)
		got, gotKinds, _ := scanned.Dropped()
		want, wantKinds, _ := walked.Dropped()
		if got != want || !reflect.DeepEqual(gotKinds, wantKinds) {
			t.Errorf("%q: %d, %v, want %d, %v", raw, got, gotKinds, want, wantKinds)
		}
	})
}

// Fields that were not read are named by their paths, but for keys that may be made of data.
func TestNamesOfFields(t *testing.T) {
	c := NewFields()
	c.Know("request.model", false)
	object := map[string]any{
		"request": map[string]any{"model": "m", "team": "a", "extra": map[string]any{"x-trace": "b"}},
		"région":  "c", "items": []any{map[string]any{"n": "d"}},
		"by_user":                        map[string]any{"u-8812345": "e", "someone@example.com of the long name that nobody gives a field": "f"},
		"5f0c2d2e-9f1b-4a64-8a39-9d4c2f": "g", "line\nbreak": "h",
	}
	c.Admit(object)
	c.Reads("Cost Centre")
	c.Reads("sk-0123456789abcdef")
	want := []string{"Cost Centre", "items", "request.extra.x-trace", "request.team", "région"}
	if got := c.Names(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n, _, _ := c.Dropped(); n != len(want)+5 {
		t.Errorf("%d were dropped", n)
	}
}
