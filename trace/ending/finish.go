package ending

import (
	"slices"
	"strconv"
	"strings"
)

// The closed list of finish reasons.
const (
	Stop          = "stop"
	Length        = "length"
	ToolCalls     = "tool_calls"
	FunctionCall  = "function_call"
	ContentFilter = "content_filter"
	Abort         = "abort"     // the engine gave up, or its client had left
	Cancelled     = "cancelled" // by the client
	Error         = "error"
	Other         = "other" // a reason that is on no list, such as llm-d's cache_threshold
)

// finishes has the words of providers and engines for each finish reason, in the spelling of
// [plainWord].
var finishes = map[string][]string{
	Stop: {
		"stop", "stopped", "end_turn", "stop_sequence", "stop_sequences", "pause_turn", // OpenAI, Anthropic, Gemini
		// TGI, TensorRT-LLM, llama.cpp, AI21
		"eos", "eos_token", "eos_token_id", "end_id", "stop_words", "stop_word", "word", "endoftext",
		"complete", "completed", "finish", "finished", "done", "normal", // Cohere, Bedrock, Ollama, Baidu
		"stop_criteria_met", "stop_str", "repetition", // Titan, LMDeploy, vLLM
	},
	Length: {
		"length", "max_tokens", "max_token", "max_new_tokens", "max_output_tokens", "max_completion_tokens",
		"model_length", "model_context_window_exceeded", "max_len", "max_context", "max_output", "limit", "token_limit",
	},
	ToolCalls:    {"tool_calls", "tool_call", "tool_use", "tools", "tool"},
	FunctionCall: {"function_call", "function_calls"},
	ContentFilter: {
		// Bedrock, Zhipu, Cohere
		"content_filter", "content_filtered", "refusal", "guardrail_intervened", "sensitive", "error_toxic",
		"safety", "recitation", "blocklist", "prohibited_content", "spii", "language", "model_armor", // Gemini
		"image_safety", "image_prohibited_content", "image_recitation",
	},
	Abort: {
		"abort", "aborted", "timeout", "timed_out", "time_limit", "preempted", // engines
		"insufficient_system_resource", "error_limit", // DeepSeek, Cohere
	},
	Cancelled: {"cancelled", "canceled", "cancel", "user_cancel", "client_cancelled", "disconnect",
		"client_disconnect"},
	Error: {"error", "failed", "failure", "network_error", "server_error", "internal_error", "exception"},
	Other: {"other"},
}

// finishOf is finishes the other way round.
var finishOf = func() map[string]string {
	of := map[string]string{}
	for finish, words := range finishes {
		for _, word := range words {
			of[word] = finish
		}
	}
	return of
}()

// Finish maps the finish reason of any provider onto the closed list, or to [Other]; an
// empty one, and one that says that nothing ended, stays empty.
func Finish(word string) string {
	if word == "" {
		return ""
	}
	if finish, ok := finishOf[word]; ok {
		return finish
	}
	word = plainWord(word)
	word = strings.TrimPrefix(strings.TrimPrefix(word, "finish_"), "reason_")
	switch word {
	case "", "null", "none", "unspecified", "not_finished":
		return ""
	}
	if finish, ok := finishOf[word]; ok {
		return finish
	}
	if slices.ContainsFunc(strings.FieldsFunc(word, func(r rune) bool { return r == '_' || r == ':' }),
		func(part string) bool { return finishOf[part] == Error }) {
		return Error // engine_error, error: …
	}
	return Other
}

// Response is the finish reason of an answer of the Responses API, which has a status and, for
// one that is incomplete, a reason. It is "" for an answer that is not over. vLLM says
// incomplete in the status, whatever the last event is called.
func Response(status, reason string) string {
	switch {
	case status == "failed":
		return Error
	case status == "cancelled":
		return Cancelled
	case reason != "":
		return Finish(reason)
	case status == "incomplete":
		return Other
	case status == "in_progress", status == "queued":
		return ""
	}
	return Stop
}

// underscored joins the parts of a word as most servers do.
var underscored = strings.NewReplacer("-", "_", " ", "_")

// plainWord is a word in small letters, with underscores between its parts: providers write
// MAX_TOKENS, max-tokens and StatusCode.ERROR.
func plainWord(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	s = s[strings.LastIndexByte(s, '.')+1:]
	return underscored.Replace(s)
}

// A Fate is what became of a request. It is a status of a trace.
type Fate string

// What becomes of requests.
const (
	OK        Fate = "ok"
	Failed    Fate = "failed"
	WasCut    Fate = "cancelled" // its client left
	NotKnown  Fate = ""
	otherFate Fate = "other"
)

// OfFinish is what a finish reason, of the closed list or of a provider, says of its
// request: one that the engine gave up has failed, however many tokens came before.
func OfFinish(finish string) Fate {
	switch Finish(finish) {
	case "":
		return NotKnown
	case Abort, Error:
		return Failed
	case Cancelled:
		return WasCut
	}
	return OK
}

// statuses has the words that logs have for what became of a request, in the spelling of
// [plainWord]. A request that a log calls aborted was given up by its client; an answer with
// the finish reason abort by its engine.
var statuses = map[Fate][]string{
	OK: {
		"ok", "success", "succeeded", "successful", "complete", "completed", "finished", "done", "status_code_ok",
		"true",
		"included", "included_in_pro", "on_demand", "usage_based", "free", "user_api_key", // how Cursor was paid
	},
	Failed: {"failed", "failure", "fail", "error", "errored", "exception", "timeout", "timed_out", "rejected",
		"status_code_error", "false"},
	WasCut: {"cancelled", "canceled", "cancel", "aborted", "client_disconnected", "client_disconnect", "disconnected"},
}

// Status reads what a log has for the end of a request: an HTTP status, alone or with its reason, of
// which 499 says that the client left, or a word, which maps onto a Fate or to "other". It is not ok for
// a number that is no HTTP status, and for an empty text.
func Status(s string) (fate Fate, ok bool) {
	number, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	if code, err := strconv.ParseFloat(number, 64); err == nil {
		switch {
		case code >= 200 && code < 300:
			return OK, true
		case code == 499:
			return WasCut, true
		case code >= 100 && code < 600:
			return Failed, true
		}
		return NotKnown, false
	}
	word, _, _ := strings.Cut(plainWord(s), ",") // Cursor: "Errored, Not Charged"
	if word == "" {
		return NotKnown, false
	}
	for _, fate := range []Fate{OK, Failed, WasCut} {
		if slices.Contains(statuses[fate], word) {
			return fate, true
		}
	}
	return otherFate, true
}
