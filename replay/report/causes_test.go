package report

import (
	"strings"
	"testing"

	"reprise/replay"
	"reprise/replay/openai"
)

// Every class of failure has its words; a cancellation is none.
func TestCauses(t *testing.T) {
	for _, class := range append(openai.ErrorKinds(), replay.KindPrepare) {
		if _, ok := causes[class]; ok == (class == openai.KindCancelled) {
			t.Errorf("class %s", class)
		}
	}
}

// A server that refuses every connection is the first thing that the verdict
// speaks of.
func TestVerdictOfRefusingServer(t *testing.T) {
	var rows []replay.Result
	for i := range int64(3000) {
		rows = append(rows, failure(i, i, openai.KindConnect))
	}
	s := summarise(t, replay.Run{Requests: 3000}, Options{}, rows...)
	if s.Verdict.Trustworthy || s.Verdict.Reasons[0].Code != CodeNoSamples ||
		!strings.Contains(s.Verdict.Reasons[0].Text, "3,000 as connect: the server refused connections") {
		t.Errorf("%+v", s.Verdict)
	}
}
