package datasets

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
)

// chatBody is a whole answer of a chat, whose content, finish reason and counts are those given.
func chatBody(content, finish, counts, more string) string {
	return `{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":` + content + `},"finish_reason":` + finish + more + `}],"usage":` + counts + `}`
}

// readersOfBodies makes a record of each format that logs the bodies of chats. All formats whose
// finish reason stands in the body of an answer are here, see TestEndingsOfReaders.
var readersOfBodies = map[string]func(answer string) string{
	"openai-log": func(answer string) string {
		return `{"timestamp":"2026-01-02T03:04:05Z","model":"m","messages":[{"role":"user","content":"q"}],"response":` + answer + `}`
	},
	"openai-batch": func(answer string) string {
		return batchAsk + `{"custom_id":"a","response":{"status_code":200,"request_id":"r","body":` + strings.Replace(answer, `{`, `{"created":1767323045,`, 1) + `}}`
	},
	"sagemaker": func(answer string) string {
		return capture(`{"messages":[{"role":"user","content":"q"}]}`, answer)
	},
	"litellm-spend": func(answer string) string {
		return spend(map[string]string{"messages": `[{"role":"user","content":"q"}]`, "response": answer, "completion_tokens": countOfBody(answer)})
	},
	"litellm-log": func(answer string) string {
		return `{"id":"r","trace_id":"t","call_type":"acompletion","status":"success","startTime":1767323045.5,"endTime":1767323047.0,"completionStartTime":1767323047.0,"model":"m","prompt_tokens":40,"completion_tokens":` +
			countOfBody(answer) + `,"messages":[{"role":"user","content":"q"}],"response":` + answer + `}`
	},
	"gateway-csv": func(answer string) string {
		return "timestamp,request_json,response_json\n2026-01-02T03:04:05Z," + quoteCSV(`{"messages":[{"role":"user","content":"q"}]}`) + "," + quoteCSV(answer) + "\n"
	},
	"api-log": func(answer string) string {
		return `{"timestamp":"2026-01-02T03:04:05Z","request":{"model":"m","messages":[{"role":"user","content":"q"}]},"response":` + answer + `}`
	},
	"har": func(answer string) string {
		return `{"log":{"entries":[{"startedDateTime":"2026-01-02T03:04:05Z","time":5,"request":{"postData":{"text":"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}"}},"response":{"content":{"text":` +
			quotedJSON(answer) + `}}}]}}`
	},
}

// countOfBody is the count of output tokens in a body, as text.
func countOfBody(body string) string {
	var b struct {
		Usage struct {
			Tokens json.Number `json:"completion_tokens"`
		} `json:"usage"`
	}
	_ = json.Unmarshal([]byte(body), &b)
	if b.Usage.Tokens == "" {
		return "0"
	}
	return b.Usage.Tokens.String()
}

// Every reader of bodies tells an answer that failed, though HTTP called it 200, from one that
// succeeded, and all in the same way.
func TestEndingsOfReaders(t *testing.T) {
	const some, none = `{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}`, `{"prompt_tokens":9,"completion_tokens":0,"total_tokens":9}`
	for name, ending := range map[string]struct{ answer, status, finish string }{
		"stop":                       {chatBody(`"a"`, `"stop"`, some, ""), "", "stop"},
		"length, as Gemini spells":   {chatBody(`"a"`, `"MAX_TOKENS"`, some, ""), "", "length"},
		"a filter":                   {chatBody(`"a"`, `"SAFETY"`, some, ""), "", "content_filter"},
		"abort":                      {chatBody(`"a"`, `"abort"`, some, ""), trace.StatusFailed, "abort"},
		"error":                      {chatBody(`"a"`, `"error"`, some, ""), trace.StatusFailed, "error"},
		"a client that left":         {chatBody(`"a"`, `"cancelled"`, some, ""), trace.StatusCancelled, "cancelled"},
		"an error inside the choice": {chatBody(`"a"`, `"stop"`, some, `,"error":{"message":"x","code":502}`), trace.StatusFailed, "stop"},
		"no error inside the choice": {chatBody(`"a"`, `"stop"`, some, `,"error":null`), "", "stop"},
		"nothing":                    {chatBody(`""`, `"stop"`, none, ""), trace.StatusFailed, "stop"},
		"an error in its place":      {`{"object":"chat.completion","error":{"message":"x"},"usage":` + none + `}`, trace.StatusFailed, ""},
	} {
		for format, record := range readersOfBodies {
			all, _ := mustRead(t, record(ending.answer), Options{Format: format})
			if len(all) == 0 && ending.finish == "" {
				continue // of a failure without its length nothing is left to tell
			}
			if len(all) != 1 {
				t.Errorf("%s, %s: %d entries", format, name, len(all))
				continue
			}
			status := strings.TrimSuffix(all[0].Status, trace.StatusOK)
			if status != ending.status || all[0].FinishReason != ending.finish {
				t.Errorf("%s, %s: status %q and finish reason %q, want %q and %q", format, name, status, all[0].FinishReason, ending.status, ending.finish)
			}
		}
	}
	for _, f := range Formats() {
		for _, field := range f.reads {
			inBody := slices.ContainsFunc(field.Paths, func(p string) bool { return strings.HasSuffix(p, "choices[].finish_reason") })
			if inBody && readersOfBodies[f.Name] == nil {
				t.Errorf("%s reads the finish reason of a body, and is not in the table", f.Name)
			}
		}
	}
}

// A stream as it was logged has failed where it holds an error or stops before its end.
func TestEndingsOfLoggedStreams(t *testing.T) {
	const begin = `{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"y"}}]}`
	const end = `{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`
	const start = `{"type":"message_start","message":{"type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`
	const block = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"y"}}`
	const last = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`
	for name, c := range map[string]struct {
		events []string
		failed bool
	}{
		"chat":                           {[]string{begin, end, "[DONE]"}, false},
		"chat without its mark":          {[]string{begin, end}, false},
		"chat that stops":                {[]string{begin, strings.Replace(end, `"stop"`, "null", 1)}, true},
		"chat with an error":             {[]string{begin, `{"error":"gone"}`, end, "[DONE]"}, true},
		"chat with an error in a choice": {[]string{begin, strings.Replace(end, `"delta"`, `"error":{"code":502},"delta"`, 1), "[DONE]"}, true},
		"chat that was aborted":          {[]string{begin, strings.Replace(end, `"stop"`, `"abort"`, 1), "[DONE]"}, true},
		"messages":                       {[]string{start, block, last, `{"type":"message_stop"}`}, false},
		"messages that stop":             {[]string{start, block}, true},
		"messages with an error":         {[]string{start, block, `{"type":"error","error":{"type":"overloaded_error"}}`}, true},
	} {
		stream := ""
		for _, e := range c.events {
			stream += "data: " + e + "\n\n"
		}
		quoted, _ := json.Marshal(stream)
		all, _ := mustRead(t, `{"timestamp":"2026-01-02T03:04:05Z","request":{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}]},"response":`+string(quoted)+`}`, Options{Format: "api-log"})
		if len(all) != 1 || (all[0].Status == trace.StatusFailed) != c.failed {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// Of the Responses API the status tells.
func TestEndingsOfLoggedResponses(t *testing.T) {
	for status, want := range map[string]string{
		`"completed"`: "stop ", `"failed"`: "error failed", `"cancelled"`: "cancelled cancelled",
		`"incomplete","incomplete_details":{"reason":"max_output_tokens"}`: "length ", `"incomplete","incomplete_details":{"reason":"content_filter"}`: "content_filter ",
	} {
		all, _ := mustRead(t, `{"timestamp":"2026-01-02T03:04:05Z","request":{"model":"m","input":"q"},"response":{"object":"response","status":`+status+
			`,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":9,"output_tokens":3}}}`, Options{Format: "api-log"})
		if len(all) != 1 || all[0].FinishReason+" "+strings.TrimSuffix(all[0].Status, trace.StatusOK) != want {
			t.Errorf("%s: %+v, want %s", status, all, want)
		}
	}
}

// quoteCSV is a value as one column of CSV.
func quoteCSV(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
