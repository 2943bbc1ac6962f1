package datasets

import (
	"slices"
	"strings"
	"testing"
)

// A format that has a meaning of its own for all other fields takes a user, and what else says whose a request is, from
// a field that it does not read; and one that is not there is said to be missing.
func TestLabelsAreAdded(t *testing.T) {
	labelled := 0
	for _, f := range Formats() {
		if !f.labels {
			continue
		}
		labelled++
		text := strings.TrimSuffix(f.Example, "}") + `,"zz":{"team":"t1"}}` + "\n"
		path := "zz.team"
		if header, row, ok := strings.Cut(f.Example, "\n"); ok && !strings.HasPrefix(f.Example, "{") {
			text, path = header+",zz\n"+row+",t1\n", "zz"
		}
		open := func(path string) ([]string, []string, error) {
			all, info, err := readOpened(Open(strings.NewReader(text), Options{Map: Mapping{"user": {path}}}))
			if err == nil && info.Format != f.Name {
				t.Errorf("%s: read as %s", f.Name, info.Format)
			}
			var users []string
			for i := range all {
				users = append(users, all[i].User.Reveal())
			}
			return users, info.Notes, err
		}
		if users, _, err := open(path); err != nil || !slices.Equal(users, []string{"t1"}) {
			t.Errorf("%s: users %q, %v", f.Name, users, err)
		}
		_, notes, err := open("nowhere")
		if err != nil || !slices.Contains(notes, `no record has the field "nowhere" (--map user=nowhere)`) {
			t.Errorf("%s: of a field that is not there: %q, %v", f.Name, notes, err)
		}
	}
	if labelled < 9 {
		t.Errorf("%d formats take labels", labelled)
	}
	_, err := Open(strings.NewReader(dynamoFormat().Example), Options{Map: Mapping{"session": {"zz"}}})
	if err == nil || !strings.Contains(err.Error(), "for all but user, model, adapter, class, replica") {
		t.Errorf("a session of rows that have their own: %v", err)
	}
}
