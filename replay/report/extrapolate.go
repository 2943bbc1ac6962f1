package report

import (
	"fmt"
	"strings"

	"reprise/replay/result"
	"reprise/trace/page"
)

// Warned is what to know of a simulated engine before any figure: the warning of its preset,
// and how far it extrapolates. It is empty where there is nothing.
func Warned(preset string, beyond []result.Beyond) string {
	parts := []string{}
	for _, part := range []string{preset, Extrapolation(beyond)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// boundWords are the bounds of an engine's file in words.
var boundWords = map[string]string{
	"max_prompt_tokens": "prompts of %s tokens",
	"max_output_tokens": "answers of %s tokens",
	"max_in_flight":     "%s requests in flight",
	"max_decoding":      "%s requests that decode at once",
	"max_kv_tokens":     "%s tokens of KV",
}

// Extrapolation says in words how far a run went beyond what its engine was fitted to; empty
// where it did not.
func Extrapolation(beyond []result.Beyond) string {
	var parts []string
	for _, b := range beyond {
		if word := boundWords[b.Bound]; word != "" && b.Covers > 0 {
			parts = append(parts, fmt.Sprintf(word, page.Count(int64(b.Reached)))+fmt.Sprintf(" (%s × %s)", page.Number(float64(b.Reached)/float64(b.Covers)), page.Count(int64(b.Covers))))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "the engine extrapolates, beyond the records that it was fitted to: " + strings.Join(parts, ", ")
}
