package datasets

import (
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/ending"
)

// settleEnding asks package ending what became of an entry's request, where its source has
// no other status than that an answer came. All entries of all readers pass through here.
func settleEnding(e *trace.Entry) {
	if e.Status != "" && e.Status != trace.StatusOK {
		return
	}
	switch ending.OfFinish(e.FinishReason) {
	case ending.Failed:
		e.Status = trace.StatusFailed
	case ending.WasCut:
		e.Status = trace.StatusCancelled
	case ending.OK:
		// A text that was recorded, and is empty, tells an answer of nothing; counts alone do
		// not, since logs without usage have 0.
		textless := e.Reply != nil && e.Reply.Len() == 0 && e.ReplyCalls.Len() == 0
		if a := (ending.Answer{Ended: true, Finish: e.FinishReason, Generated: !textless}); e.OutputTokens != nil &&
			*e.OutputTokens == 0 && a.Failure() != "" {
			e.Status = trace.StatusFailed
		}
	}
}

// firstFinish ends the path of a chat's finish reason in the body of its answer.
const firstFinish = "choices.0.finish_reason"

// withErrors adds to a mapping where a body whose finish reason it reads has its error, be it
// in place of the answer or inside a choice: servers send both with HTTP status 200.
func (m Mapping) withErrors() Mapping {
	errors := slices.Clone(m["error"])
	for _, path := range m["finish_reason"] {
		body, ok := strings.CutSuffix(path, firstFinish)
		if !ok {
			continue
		}
		for _, at := range []string{body + "error", body + "choices.0.error"} {
			if !slices.Contains(errors, at) {
				errors = append(errors, at)
			}
		}
	}
	if len(errors) == 0 {
		return m
	}
	return Mapping{"error": errors}.over(m)
}
