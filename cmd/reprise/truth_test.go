package main

import (
	"os"
	"path/filepath"
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

// The published figures of the Mooncake conversation trace, to their digits.
func TestMooncakeTruth(t *testing.T) {
	src := shared(t, "mooncake_conversation.jsonl")
	dir := t.TempDir()
	out := filepath.Join(dir, "t.parquet")
	must(t, "import", src, "-o", out)
	text := must(t, "profile", out, "--details")
	expect(t, text, "12,031", "3,536.999", "12,035.06", "6,909", "27,367", "85,400", "342.62", "1,118.5",
		"0.3664", "0.3736", "0.3843", "0.3819", "0.0445", "0.1118", "0.2116", "0.3546", "0.3637",
		"61.3", "31.9", "5.8", "1.0", "7,373", "ticks")

	// Exported and imported again it is the same, with whole milliseconds.
	back := filepath.Join(dir, "back.jsonl")
	must(t, "export", out, "--to", "mooncake", "-o", back)
	again := filepath.Join(dir, "again.parquet")
	must(t, "import", back, "-o", again)
	if got := must(t, "profile", again, "--details"); got != text {
		t.Error("the exported trace profiles otherwise")
	}
	want, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(back)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("the exported trace is not the published file, byte for byte")
	}
}

// The published figures of the Azure code trace, to their digits.
func TestAzureTruth(t *testing.T) {
	out := filepath.Join(t.TempDir(), "t.parquet")
	must(t, "import", shared(t, "azure_llm_2023_code.csv"), "-o", out)
	expect(t, must(t, "profile", out, "--details"), "8,819", "3,435.948", "2,047.85", "1,469", "5,187.6", "7,436", "27.88", "251.46",
		"13.152", "13.19", "71.85", "166.89")
}
