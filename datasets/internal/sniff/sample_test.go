package sniff

import (
	"testing"

	"reprise/datasets/internal/row"
)

// A record that is cut anywhere is completed to JSON that has what was before the cut.
func TestClosed(t *testing.T) {
	const record = `{"a":{"b":"x\\\"\u00e9y","c":[1,{"d":true}]},"e":-1.5}`
	for k := 1; k <= len(record); k++ {
		whole := Closed([]byte(record[:k]))
		v, _, ok := row.DecodeJSON(whole)
		if _, isObject := v.(map[string]any); !isObject && whole != nil || !ok && whole != nil {
			t.Errorf("%s becomes %s", record[:k], whole)
		}
		if b, _ := row.Lookup(v, "a.b"); k > 25 && b != "x\\\"éy" && whole != nil {
			t.Errorf("%s becomes %s", record[:k], whole)
		}
	}
	if Closed([]byte(`{"a" "b"`)) != nil {
		t.Error("what is no JSON is completed")
	}
}
