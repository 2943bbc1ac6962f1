package client

import (
	"strings"
	"testing"
	"testing/synctest"

	"reprise/replay/result"
)

// The rows of the table are of chats. Over every other API a quirk has the result that it
// has there, with the prompt of that API, but for the rows that are named here: a quirk
// that the API has no place for shows nothing, and others show something else.
var quirkElsewhere = map[string]map[string]struct{ want, at string }{
	result.APICompletions: {
		"no-ignore-eos": {"200 token 3 events gaps 2 input 6 cached 0 output 3 by usage stop", "headers@20 event@20 first@20 content@20 last@22 done@22"},
		// A completion is text alone.
		"reasoning-only":                      {quirkText, quirkOnTime},
		"reasoning-only=3":                    {quirkText, quirkOnTime},
		"reasoning-field-name,reasoning-only": {quirkText, quirkOnTime},
		"tool-calls":                          {quirkText, quirkOnTime},
	},
	result.APIResponses: {
		"progress-events": {quirkPlain, "headers@0 event@20 first@20 content@20 last@27 done@27"},
		// Usage comes with the end, whatever is asked for.
		"multi-token-events with options":      {quirkUncounted, quirkInFours},
		"multi-token-events,usage-every-chunk": {quirkUncounted, quirkInFours},
		"choices":                              {quirkPlain, quirkOnTime}, // there is one
		"no-finish-reason":                     {quirkPlain, quirkOnTime}, // the last event is the reason
		// It is the end as well: without it nothing says that the answer is whole.
		"no-finish-reason,no-done": {"200 token 8 events gaps 7 ERROR incomplete", quirkOnTime},
		"no-done":                  {"200 token 8 events gaps 7 ERROR incomplete", quirkOnTime},
	},
	result.APIMessages: {
		"progress-events":                      {quirkPlain, "headers@0 event@20 first@20 content@20 last@27 done@27"},
		"multi-token-events with options":      {quirkUncounted, quirkInFours},
		"multi-token-events,usage-every-chunk": {quirkUncounted, quirkInFours},
		"choices":                              {quirkPlain, quirkOnTime},
		// The block of a tool begins with an event that has its name.
		"tool-calls": {"200 token 9 events gaps 8 input 28 cached 0 output 8 by usage tool_calls odd uncounted_events:1", quirkOnTime},
		// The prompt is counted before the answer.
		"error-mid-stream":       {"200 token 4 events gaps 3 input 28 ERROR stream_error", quirkHalf},
		"error-mid-stream=close": {"200 token 4 events gaps 3 input 28 ERROR stream_error", quirkHalf},
		"reset":                  {"200 token 4 events gaps 3 input 28 ERROR reset", quirkHalf},
		"cut":                    {"200 token 4 events gaps 3 input 28 ERROR reset", quirkHalf},
	},
	result.APIEmbeddings: {
		"prompt-cut=5":               {"200 no event input 5 output 0 by usage", quirkAtOnce},
		"not-sse,usage-missing":      {"200 no event odd no_usage:1", quirkAtOnce},
		"usage-missing":              {"200 no event odd no_usage:1", quirkAtOnce},
		"usage-missing with options": {"200 no event odd no_usage:1", quirkAtOnce},
	},
}

const (
	quirkText      = "200 token 8 events gaps 7 input 6 cached 0 output 8 by usage length"
	quirkUncounted = "200 token 2 events gaps 1 input 28 cached 0 output 8 by usage length odd uncounted_events:1"
	quirkInFours   = "headers@23 event@23 first@23 content@23 last@27 done@27"
	quirkHalf      = "headers@20 event@20 first@20 content@20 last@23 done@23"
	quirkAtOnce    = "headers@20 done@20"
)

// quirkPrompt is what the prompt of a chat counts in another API, which has no template.
var quirkPrompt = map[string]string{result.APICompletions: "input 6", result.APIResponses: "input 28", result.APIMessages: "input 28", result.APIEmbeddings: "input 6"}

// quirkOver is what a row must give over an API.
func quirkOver(api string, row quirkRow) (want, at string) {
	key := row.quirk
	if row.opt != nil {
		key += " with options"
	}
	if other, ok := quirkElsewhere[api][key]; ok {
		return other.want, other.at
	}
	streams := strings.Contains(row.want, " token ") || strings.Contains(row.want, "ERROR not_streamed")
	if api == result.APIEmbeddings && streams { // nothing of a stream shows
		return "200 no event input 6 output 0 by usage", quirkAtOnce
	}
	return strings.Replace(row.want, "input 28", quirkPrompt[api], 1), row.at
}

func TestQuirksOverEveryAPI(t *testing.T) {
	for api := range quirkElsewhere {
		for _, row := range quirkRows {
			if row.api != "" && row.api != result.APIChat || strings.HasPrefix(row.quirk, "refuse") { // which takes a port
				continue
			}
			want, at := quirkOver(api, row)
			var got, gotAt string
			synctest.Test(t, func(t *testing.T) {
				c := quirkConfig()
				c.FaultHeader = true
				o := quirkOptions(row, "")
				o.API = api
				h, end := virtualEndpoint(t, c, o)
				defer end()
				r := fire(t, h, quirkRequest, 0)
				got, gotAt = quirkSummary(&r, h.odd.counts()), quirkInstants(&r)
			})
			if got != want || gotAt != at {
				t.Errorf("%s, %s (options: %v):\n got %s | %s\nwant %s | %s", api, row.quirk, row.opt != nil, got, gotAt, want, at)
			}
		}
	}
}
