package datasets

import (
	"strings"
	"testing"
)

// Every format of JSON takes records with numbers that are not finite, as Python writes them,
// in fields that are not read.
func TestRecordsWithNaN(t *testing.T) {
	tried := 0
	for _, f := range Formats() {
		start := strings.IndexByte(f.Example, '{')
		if start < 0 || start > 1 || f.Name == "lmcache" || f.Name == "aider" { // whose records have four keys and no other
			continue
		}
		o := Options{Format: f.Name}
		want, _, err := read(strings.NewReader(f.Example), o)
		if err != nil || len(want) == 0 {
			continue // such as one that needs a mapping or a time unit
		}
		tried++
		for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
			end := strings.LastIndexByte(f.Example, '}')
			in := f.Example[:end] + `,"of_no_use":` + word + f.Example[end:]
			for _, told := range []Options{o, {}} {
				got, info, err := read(strings.NewReader(in), told)
				if err != nil || len(got) != len(want) || info.Format != f.Name || summary(&got[0]) != summary(&want[0]) {
					t.Errorf("%s with %s: %v, %d entries of %s", f.Name, word, err, len(got), info.Format)
				}
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d formats were tried", tried)
	}
}

// A number that is read and not finite is not known; and the place of a fault is that in the file.
func TestNaNIsNotKnown(t *testing.T) {
	const usual = `{"timestamp":"2026-01-02T03:04:05Z","messages":[{"role":"user","content":"NaN"}],"usage":{"prompt_tokens":NaN}}`
	all, _ := mustRead(t, usual+"\n"+strings.Replace(usual, "NaN}", "7}", 1), Options{})
	if all[0].InputTokens != nil || all[0].Messages[0].Content.Reveal() != "NaN" || *all[1].InputTokens != 7 {
		t.Errorf("%s, %s", summary(&all[0]), summary(&all[1]))
	}
	for _, cost := range []string{"1.5", "NaN"} {
		wantBad(t, usual+"\n"+`{"cost":`+cost+`,"timestamp":"2026-01-02T03:04:05Z","messages":[{"role":"nobody"}]}`, Options{}, "log:2:59: messages")
		wantBad(t, usual+"\n"+`{"cost":`+cost+`,"timestamp":nan}`+"\n"+usual, Options{}, "log:2:26: it is not valid JSON")
	}
	packed := `{"timestamp":"2026-01-02T03:04:05Z","messages":"[{\"role\":\"user\",\"content\":\"hi\",\"score\":NaN}]"}`
	if all, _ := mustRead(t, packed, Options{}); len(all[0].Messages) != 1 || all[0].Messages[0].Content.Reveal() != "hi" {
		t.Errorf("packed: %s", summary(&all[0]))
	}
}
