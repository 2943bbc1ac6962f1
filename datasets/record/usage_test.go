package record

import (
	"testing"

	"reprise/trace/usage/usagetest"
)

// The usage of a whole answer is the same in the words of each API, whichever API was called.
func TestUsageDialects(t *testing.T) {
	for _, d := range usagetest.Dialects() {
		for name, r := range map[string]reply{
			"chat":      wholeReply(chatAPI, []byte(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":`+d.Usage+`}`)),
			"responses": wholeReply(responsesAPI, []byte(`{"status":"completed","output":[],"usage":`+d.Usage+`}`)),
		} {
			for _, n := range []struct {
				what string
				got  *int32
				want int
			}{{"input", r.usage.Input, d.Input}, {"cached", r.usage.Cached, d.Cached}, {"output", r.usage.Output, d.Output}, {"reasoning", r.usage.Reasoning, d.Reasoning}} {
				if got := n.got; (got == nil) != (n.want == 0) || got != nil && int(*got) != n.want {
					t.Errorf("%s, %s: %s is %v, want %d", d.Name, name, n.what, got, n.want)
				}
			}
		}
	}
}
