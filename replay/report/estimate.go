package report

import (
	"fmt"

	"reprise/replay/result"
	"reprise/trace/page"
)

// A server that sends no usage leaves the counts of tokens to estimates: an output is
// what a tokenizer makes of the text, and a prompt as long as the workload asks.

// PromptEstimates is how many successful requests have a prompt that the server did
// not count.
func (s *Summary) PromptEstimates() int64 { return s.Requests.Succeeded - s.Tokens.PromptFromUsage }

// OutputEstimates is how many successful requests have an output that a tokenizer
// counted from the text, and not the server.
func (s *Summary) OutputEstimates() int64 { return s.Tokens.OutputSources[result.FromTokenizer] }

// estimateNote marks a figure that rests on n estimates among the counts of so many
// requests.
func estimateNote(n, of int64) string {
	switch {
	case n == 0:
		return ""
	case n == of:
		return ", estimated"
	}
	return fmt.Sprintf(", estimated for %s of %s", page.Brief(n), page.Many(of, "request"))
}
