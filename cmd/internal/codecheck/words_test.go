package main

import (
	"testing"
)

// Each string is one message, at its own place in the file.
func TestNamedThings(t *testing.T) {
	begin := "package a\n\nimport \"strings\"\n\nconst short = \"those that\"\n\n"
	messages := map[string]bool{ // whether the rule refuses it
		`"latencies of those that succeeded"`:                                      true,
		`"Those of one session begin at once"`:                                     true,
		`"%d requests were sent, of which %d failed"`:                              true,
		`"its blocks are larger than those before it"`:                             true,
		`"requests that begin alike are one session"`:                              true,
		`"the API key is that of the other server"`:                                true,
		`"delete the key: nobody needs it"`:                                        true,
		`"the ratio to what was measured"`:                                         true,
		"`Merge joins results: the report is that\nof one run.`":                   true, // broken between the words
		`"the pieces are joined over a line: of " + "which one"`:                   true,
		`"the pieces are joined " + short + "over a name: of which"`:               true,
		`"a call in a sum: " + strings.ToUpper("inside it, it is that of a call")`: true,
		`"latencies of successful requests"`:                                       false,
		`"the gaps of those requests are known"`:                                   false, // it names the thing
		`"What is taken as public, and not protected"`:                             false, // a heading
		`"fields.that of which"`:                                                   false, // too short for a sentence
		`"those-that-have-no-space-between-them"`:                                  false,
	}
	for text, want := range messages {
		faults, err := moduleOf(t, map[string]string{
			"a/a.go": begin + "var _ = " + text + "\n\nvar _ = strings.ToUpper(short)\n",
		}).namedThings()
		if refused := len(faults) > 0; err != nil || refused != want {
			t.Errorf("%s: %v, %v; want it refused: %v", text, faults, err, want)
		}
		if want && faults[0].where != "a/a.go:7" {
			t.Errorf("%s: at %s", text, faults[0].where)
		}
	}

	for comment, want := range map[string]bool{
		"Package a reads what is\n// there.": true, "Package a reads files.": false,
	} {
		faults, err := moduleOf(t, map[string]string{"a/a.go": "// " + comment + "\npackage a\n"}).namedThings()
		if refused := len(faults) > 0; err != nil || refused != want {
			t.Errorf("%q: %v, %v; want it refused: %v", comment, faults, err, want)
		}
	}
}
