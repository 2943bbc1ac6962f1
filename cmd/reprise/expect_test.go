package main

import (
	"regexp"
	"strings"
	"testing"
)

// squeeze folds runs of blanks and table borders, so that a figure and its
// label can be looked up as one string.
func squeeze(s string) string {
	return regexp.MustCompile(`[\s│┌┐└┘├┤┬┴┼─]+`).ReplaceAllString(s, " ")
}

func expect(t *testing.T, text string, figures ...string) {
	t.Helper()
	text = squeeze(text)
	for _, f := range figures {
		if !strings.Contains(text, f) {
			t.Errorf("%q is not in the profile", f)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
