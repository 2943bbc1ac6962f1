package row

import (
	"encoding/json"
	"reflect"
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
