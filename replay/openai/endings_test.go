package openai

import (
	"strings"
	"testing"
	"time"

	"reprise/trace/ending"
	"reprise/trace/ending/endingtest"
)

// The client tells each ending of each API. A body in place of a stream has no instants, so
// that it fails in any case: as an error where it is one.
func TestEndings(t *testing.T) {
	for _, c := range endingtest.Cases() {
		name := c.API + ", " + c.Name
		w := &wire{reads: strings.SplitAfter(c.Stream, "\n\n")}
		if w.reads[len(w.reads)-1] == "" {
			w.reads = w.reads[:len(w.reads)-1]
		}
		out := collect(NewScanner(w, w.clock, 0), NewCollector(0))
		kind := ""
		if out.Err != nil {
			kind = out.Err.Kind
		}
		// The Responses API says of an abort that it was cancelled, in an event of failure.
		responses := c.API == endingtest.Responses && c.Kind == ending.GaveUp && kind == ending.InStream
		if kind != c.Kind && !responses || out.TokenEvents != c.Tokens {
			t.Errorf("%s: %q with %d token events, want %q with %d", name, kind, out.TokenEvents, c.Kind, c.Tokens)
		}
		if c.Tokens > 0 && out.FirstToken == NoInstant {
			t.Errorf("%s: no first token", name)
		}
		if c.Body == "" {
			continue
		}
		events := NewCollector(0)
		events.AddBody([]byte(c.Body), time.Millisecond)
		whole := events.Finish(time.Millisecond, nil)
		want := KindNotStreamed
		if c.Kind == ending.InStream && !strings.Contains(c.Body, "choices") && !strings.Contains(c.Body, "stop_reason") {
			want = KindStream
		}
		if kind := whole.Err.Kind; kind != want && c.Kind != ending.GaveUp {
			t.Errorf("%s, whole: %q, want %q", name, kind, want)
		}
	}
}

// One token that came in no event is an answer where one was asked for: the end of a text
// has no letters, and a server may hold back half a character.
func TestEndOfOne(t *testing.T) {
	stream := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n"
	for asked, want := range map[int]string{0: "", 1: "", 8: KindEmpty} {
		w := &wire{reads: []string{stream}}
		c := NewCollector(0)
		c.Expect(asked)
		kind := ""
		if out := collect(NewScanner(w, w.clock, 0), c); out.Err != nil {
			kind = out.Err.Kind
		}
		if kind != want {
			t.Errorf("of %d tokens that were asked for: %q, want %q", asked, kind, want)
		}
	}
}

// Of several answers one that failed is enough.
func TestEndingOfChoices(t *testing.T) {
	for _, failed := range []string{"0", "1"} {
		other := map[string]string{"0": "1", "1": "0"}[failed]
		w := &wire{reads: []string{
			`data: {"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"a"}}]}` + "\n\n",
			`data: {"choices":[{"index":` + failed + `,"delta":{},"finish_reason":"abort"}]}` + "\n\n",
			`data: {"choices":[{"index":` + other + `,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		}}
		if out := collect(NewScanner(w, w.clock, 0), NewCollector(0)); out.Err == nil || out.Err.Kind != KindAborted || out.FinishReason != "abort" {
			t.Errorf("choice %s: %v, %q", failed, out.Err, out.FinishReason)
		}
	}
}
