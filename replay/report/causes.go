package report

import (
	"fmt"

	"reprise/trace/page"
)

// causes say what the classes of failure mean, for those who read a verdict.
var causes = map[string]string{
	"connect":      "the server refused connections, or could not be reached",
	"tls":          "the TLS handshake failed",
	"timeout":      "no whole answer came within the time limit",
	"bad_request":  "the server did not take the requests (HTTP 4xx)",
	"auth":         "the server wants another key (HTTP 401 or 403)",
	"not_found":    "the server knows no such path or model (HTTP 404)",
	"rate_limited": "the server had too many requests (HTTP 429)",
	"too_long":     "prompts were too long for the model",
	"server_error": "the server failed (HTTP 5xx)",
	"unavailable":  "the server was overloaded or not there (HTTP 502, 503, 504 or 529)",
	"stream_error": "the server reported an error within an answer, or sent what is no answer",
	"incomplete":   "answers ended before they were finished",
	"reset":        "connections broke",
	"prepare":      "no prompt could be made",
	"other":        "for other reasons",
}

// cause names the most frequent class of failure and what it means, as the end
// of a sentence; "" when none is known.
func cause(s *Summary) string {
	for _, e := range s.Errors {
		if says := causes[e.Class]; says != "" {
			return fmt.Sprintf("; %s as %s: %s", page.Brief(e.Count), e.Class, says)
		}
	}
	return ""
}
