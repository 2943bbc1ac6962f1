package datasets

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/datasets/internal/row"
	tokenusage "reprise/trace/usage"
)

// altered makes of a record one of somebody else, under other ids: with more cached tokens than input, without a total
// that tells how its counts add up, and with one short text for its prompts.
func altered(object map[string]any, above string) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var is tokenusage.Counts
		switch v := object[key].(type) {
		case map[string]any:
			altered(v, above+key+".")
		case []any:
			for _, m := range v {
				if o, ok := m.(map[string]any); ok {
					altered(o, above+key+".")
				}
			}
		case string:
			switch name := strings.ToLower(key); {
			case key == "content" || key == "prompt" || key == "text":
				object[key] = "(withheld)"
			case v != "" && (strings.HasSuffix(name, "id") || strings.Contains(name, "session")):
				last := map[bool]string{true: "1", false: "0"}[strings.HasSuffix(v, "0")]
				object[key] = v[:len(v)-1] + last
			}
		case json.Number:
			if !is.Take([]byte(above+key), 1) {
				is.Take([]byte(key), 1)
			}
			switch {
			case is.Has(tokenusage.Cached):
				object[key] = json.Number("250000")
			case is.Has(tokenusage.Total):
				delete(object, key)
			}
		}
	}
}

// What a reader says of the lengths of a record does not depend on a record before it, however strange that is: one
// user would show in the rows of all others.
func TestOtherRecordsDecideNothing(t *testing.T) {
	tried := 0
	for _, f := range streams(t) {
		v, _, ok := row.DecodeJSON([]byte(f.Example))
		object, is := v.(map[string]any)
		if !ok || !is || strings.Contains(strings.TrimSpace(f.Example), "\n") {
			continue // its records are no lines
		}
		altered(object, "")
		other, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		lengths := func(text string) (out [][4]*int32) {
			all, _, err := read(strings.NewReader(text), corpusOptions(f))
			if err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
			for i := range all {
				out = append(out, [4]*int32{all[i].InputTokens, all[i].OutputTokens, all[i].Cached, all[i].Reasoning})
			}
			return out
		}
		alone, behind := lengths(f.Example+"\n"), lengths(string(other)+"\n"+f.Example+"\n")
		if n := len(behind) - len(alone); n < 0 || !reflect.DeepEqual(behind[n:], alone) {
			t.Errorf("%s: behind an altered record a record has other lengths", f.Name)
		}
		tried++
	}
	if tried < 30 {
		t.Errorf("%d formats only", tried)
	}
}
