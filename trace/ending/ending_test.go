package ending

import (
	"strings"
	"testing"
)

// One word of each provider and engine for each end, in its own spelling.
func TestFinish(t *testing.T) {
	for want, words := range map[string]string{
		"":            " null FINISH_REASON_UNSPECIFIED not_finished",
		Stop:          "stop STOP end_turn stop_sequence pause_turn eos eos_token EndTurn:no COMPLETE FINISH FINISH_REASON_STOP REASON_STOP stop-sequence END_ID",
		Length:        "length max_tokens MAX_TOKENS max_output_tokens model_length model_context_window_exceeded LENGTH REASON_MAX_LEN token_limit max-tokens",
		ToolCalls:     "tool_calls tool_use tool_call tool-calls TOOL_CALL",
		FunctionCall:  "function_call",
		ContentFilter: "content_filter content-filter SAFETY RECITATION PROHIBITED_CONTENT SPII guardrail_intervened content_filtered CONTENT_FILTERED refusal sensitive",
		Abort:         "abort Aborted timeout TIMED_OUT REASON_TIME_LIMIT insufficient_system_resource",
		Cancelled:     "cancelled canceled USER_CANCEL",
		Error:         "error ERROR network_error",
		Other:         "cache_threshold remote_decode OTHER unknown MALFORMED_FUNCTION_CALL",
	} {
		for _, word := range strings.Split(words, " ") {
			word, no := strings.CutSuffix(word, ":no")
			if got := Finish(word); (got == want) == no {
				t.Errorf("%q is %q, want %q", word, got, want)
			}
		}
		if Finish(want) != want {
			t.Errorf("%q is not itself", want)
		}
	}
	for finish, words := range finishes {
		for _, word := range words {
			if plainWord(word) != word || Finish(strings.ToUpper(word)) != finish {
				t.Errorf("%s of %s is not spelled as it is looked up, or stands twice", word, finish)
			}
		}
	}
}

func TestStatus(t *testing.T) {
	for s, want := range map[string]Fate{
		"200": OK, "204.0": OK, "499": WasCut, "404": Failed, "503": Failed, "302": Failed,
		"ok": OK, "Success": OK, "STATUS_CODE_OK": OK, "StatusCode.ERROR": Failed, "failure": Failed, "Errored, Not Charged": Failed, "Aborted, Not Charged": WasCut, "Included": OK, "On-Demand": OK, "Usage-based": OK, "timeout": Failed,
		"aborted": WasCut, "canceled": WasCut, "cancelled": WasCut, "client disconnected": WasCut, "hm": otherFate, "incomplete": otherFate,
		"200 OK": OK, "429 Too Many Requests": Failed, "true": OK, "False": Failed,
	} {
		if got, ok := Status(s); !ok || got != want {
			t.Errorf("%q is %q (%v), want %q", s, got, ok, want)
		}
	}
	for _, s := range []string{"", " ", "7", "7000", "-1"} {
		if got, ok := Status(s); ok {
			t.Errorf("%q is %q", s, got)
		}
	}
}

func TestResponse(t *testing.T) {
	for _, c := range [][3]string{
		{"completed", "", Stop}, {"", "", Stop}, {"incomplete", "", Other}, {"incomplete", "max_output_tokens", Length}, {"completed", "max_tokens", Length},
		{"incomplete", "content_filter", ContentFilter}, {"failed", "", Error}, {"cancelled", "", Cancelled}, {"in_progress", "", ""}, {"queued", "", ""},
	} {
		if got := Response(c[0], c[1]); got != c[2] {
			t.Errorf("%q with the reason %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestFailure(t *testing.T) {
	for name, c := range map[string]struct {
		a    Answer
		want string
	}{
		"stop":                                {Answer{Ended: true, Finish: "stop", Generated: true, Tokens: 8, Asked: 8}, ""},
		"a reason nobody knows":               {Answer{Ended: true, Finish: "cache_threshold", Generated: true}, ""},
		"no reason":                           {Answer{Ended: true, Generated: true}, ""},
		"no counts":                           {Answer{Ended: true, Finish: "stop", Generated: true}, ""},
		"abort after tokens":                  {Answer{Ended: true, Finish: "abort", Generated: true, Tokens: 2, Asked: 8}, GaveUp},
		"timeout":                             {Answer{Ended: true, Finish: "timeout", Generated: true}, GaveUp},
		"cancelled by somebody else":          {Answer{Ended: true, Finish: "cancelled", Generated: true}, GaveUp},
		"finish error":                        {Answer{Ended: true, Finish: "error", Generated: true}, InStream},
		"an error":                            {Answer{Fault: true, Ended: true, Finish: "stop", Generated: true}, InStream},
		"nothing":                             {Answer{Ended: true, Finish: "stop"}, Empty},
		"nothing, of a filter":                {Answer{Ended: true, Finish: "content_filter"}, Empty},
		"its end alone, of many":              {Answer{Ended: true, Finish: "stop", Tokens: 1, Asked: 8}, Empty},
		"its end alone, of one":               {Answer{Ended: true, Finish: "length", Tokens: 1, Asked: 1}, ""},
		"its end alone, of nobody knows what": {Answer{Ended: true, Finish: "stop", Tokens: 1}, ""},
		"counted under another name":          {Answer{Ended: true, Finish: "stop", Tokens: 8, Asked: 8}, ""},
		"it stops":                            {Answer{Generated: true, Tokens: 3}, Incomplete},
	} {
		if got := c.a.Failure(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
