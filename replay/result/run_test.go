package result

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// goneOfRuns are fields of earlier versions, which are read without them.
var goneOfRuns = []*regexp.Regexp{
	regexp.MustCompile(`"resumed":\[[^]]*\],`),
	regexp.MustCompile(`"server_profile":\{[^}]*\},`),
	regexp.MustCompile(`,"sent":true,"rule":"s"`), // of images
}

// The JSON of a Run keeps its bytes, whatever struct a field stands in: an empty run's
// and that of one that has every field. The file was written when Run was one struct.
func TestRunKeepsItsJSON(t *testing.T) {
	golden, err := os.ReadFile("testdata/run.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(golden)) {
		lines++
		var run Run
		if err := json.Unmarshal([]byte(line), &run); err != nil {
			t.Fatal(err)
		}
		for _, gone := range goneOfRuns {
			line = gone.ReplaceAllString(line, "")
		}
		if got, err := run.encode(); err != nil || got+"\n" != line {
			t.Errorf("%v\n got %s\nwant %s", err, got, line)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeFor[Run]()) {
			if full := lines == 2; full && reflect.ValueOf(run).FieldByIndex(f.Index).IsZero() {
				t.Errorf("the full run has no %s", f.Name)
			}
		}
	}
	if lines != 2 {
		t.Errorf("%d lines", lines)
	}
}
