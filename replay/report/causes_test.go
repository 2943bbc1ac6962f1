package report

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reprise/replay/openai"
	"reprise/replay/result"
)

// Every class of failure has its words; a cancellation is none.
func TestCauses(t *testing.T) {
	source, err := os.ReadFile("../openai/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	classes := []string{result.KindPrepare}
	for _, kind := range regexp.MustCompile(`(?m)^\tKind\w+ += "(\w+)"`).FindAllSubmatch(source, -1) {
		classes = append(classes, string(kind[1]))
	}
	if !slices.Contains(classes, openai.KindConnect) || !slices.Contains(classes, openai.KindOther) {
		t.Fatalf("the classes of openai's closed list are not found: %q", classes)
	}
	for _, class := range classes {
		if _, ok := causes[class]; ok == (class == openai.KindCancelled) {
			t.Errorf("class %s", class)
		}
	}
}

// A server that refuses every connection is the first thing that the verdict
// speaks of.
func TestVerdictOfRefusingServer(t *testing.T) {
	var rows []result.Result
	for i := range int64(3000) {
		rows = append(rows, failure(i, i, openai.KindConnect))
	}
	s := summarise(t, result.Run{Sending: result.Sending{Requests: 3000}}, Options{}, rows...)
	if s.Verdict.Trustworthy || s.Verdict.Reasons[0].Code != CodeNoSamples ||
		!strings.Contains(s.Verdict.Reasons[0].Text, "3,000 as connect: the server refused connections") {
		t.Errorf("%+v", s.Verdict)
	}
}

// A run that is over before its warm-up is says that, and blames no server.
func TestVerdictOfWarmUpAlone(t *testing.T) {
	var rows []result.Result
	for i := range int64(1000) {
		rows = append(rows, failure(i, i, openai.KindTimeout))
	}
	window := &result.Window{From: &result.Place{DueNS: 1 << 60}}
	s := summarise(t, result.Run{Sending: result.Sending{Requests: 1000, Window: window}}, Options{}, rows...)
	if s.Verdict.Trustworthy || s.Verdict.Reasons[0].Code != CodeNoSamples ||
		!strings.Contains(s.Verdict.Reasons[0].Text, "all 1,000 requests belong to the warm-up:") {
		t.Errorf("%+v", s.Verdict)
	}
}
