package record

import (
	"strings"
	"testing"
	"time"

	"reprise/trace/ending/endingtest"
)

// The recorder fails the answers that the replay client fails, streamed or whole.
func TestEndings(t *testing.T) {
	apis := map[string]api{endingtest.Chat: chatAPI, endingtest.Completions: completionsAPI, endingtest.Responses: responsesAPI, endingtest.Messages: messagesAPI}
	for _, c := range endingtest.Cases() {
		for how, body := range map[string]string{"stream": c.Stream, "body": c.Body, "stream as JSON": c.Stream, "body as a stream": c.Body} {
			if body == "" && !strings.HasPrefix(how, "stream") {
				continue
			}
			label := "application/json"
			if how == "stream" || how == "body as a stream" {
				label = "text/event-stream"
			}
			var a answer
			a.begin(apis[c.API], label, "")
			at := time.Millisecond
			for piece := range strings.SplitAfterSeq(body, "\n\n") {
				a.write([]byte(piece), at)
				at += time.Millisecond
			}
			r := a.reply(apis[c.API], 200, at, true)
			if r.failed != (c.Kind != "") {
				t.Errorf("%s, %s, %s: failed is %v, want %q", c.API, c.Name, how, r.failed, c.Kind)
			}
			if strings.HasPrefix(how, "stream") && (r.first > 0) != (c.Tokens > 0) {
				t.Errorf("%s, %s: the first token is at %v, of %d", c.API, c.Name, r.first, c.Tokens)
			}
		}
	}
}
