package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// expectFigures looks in JSON for numbers that round to figures, to their digits.
func expectFigures(t *testing.T, text string, figures ...string) {
	t.Helper()
	round := map[string]bool{}
	for _, number := range regexp.MustCompile(`-?\d+(\.\d+)?(e-?\d+)?`).FindAllString(text, -1) {
		v, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatal(err)
		}
		for digits := range 5 {
			round[strconv.FormatFloat(v, 'f', digits, 64)] = true
		}
	}
	for _, f := range figures {
		if !round[f] {
			t.Errorf("%s is not in the profile", f)
		}
	}
}

// The published figures of the Mooncake conversation trace, to their digits.
func TestMooncakeTruth(t *testing.T) {
	src := shared(t, "mooncake_conversation.jsonl")
	dir := t.TempDir()
	out := filepath.Join(dir, "t.parquet")
	must(t, "import", src, "-o", out)
	text := must(t, "profile", out, "--details")
	expect(t, text, "12,031", "6,909", "27,367", "85,400", "1,895", "ticks")
	expectFigures(t, must(t, "profile", out, "--json"), "3536.999", "12035.06", "342.62", "1118.5",
		"0.3664", "0.3736", "0.3843", "0.3819", "0.0445", "0.1118", "0.2116", "0.3546", "0.3637",
		"0.625", "0.303", "0.062", "0.010") // of the categories, by the rule of today

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
	expect(t, must(t, "profile", out, "--details"), "8,819", "1,469", "7,436")
	expectFigures(t, must(t, "profile", out, "--json"), "3435.948", "2047.85", "5187.6", "27.88", "251.46",
		"13.152", "13.19", "71.85", "166.89")
}
