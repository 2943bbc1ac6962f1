// Package endingtest has answers of each API with each ending, as servers send them, for the
// tests of everything that reads answers: the replay client, the recorder and the readers of
// logged streams. What is added here, all of them must tell.
package endingtest

import (
	"strings"

	"reprise/trace/ending"
)

// APIs whose answers are here.
const (
	Chat        = "chat"
	Completions = "completions"
	Responses   = "responses"
	Messages    = "messages"
)

// A Case is one answer with HTTP status 200.
type Case struct {
	API, Name string
	Stream    string // as server-sent events; "" where only a body is meant
	Body      string // as one body of JSON; "" where only a stream is meant
	Kind      string // how it failed, "" for a success
	Tokens    int    // token events of the stream
}

// Cases are all answers.
func Cases() (all []Case) {
	for _, api := range []string{Chat, Completions, Responses, Messages} {
		d := dialects[api]
		for _, name := range words {
			all = append(all, d.ended(api, name, 2))
		}
		for name, piece := range d.pieces {
			c := d.whole(api, name, []string{piece, piece}, d.end("stop"))
			c.Tokens = 2
			all = append(all, c)
		}
		nothing := d.whole(api, "nothing", nil, d.end("nothing"))
		nothing.Kind, nothing.Body = ending.Empty, d.body("nothing")
		all = append(all, nothing,
			Case{api, "it stops", d.start + d.pieces["text"], "", ending.Incomplete, 1},
			Case{api, "it stops before the first token", d.start, "", ending.Incomplete, 0},
			Case{api, "nothing at all", "", "", ending.Incomplete, 0},
			Case{api, "an error after a token", d.start + d.pieces["text"] + d.fault, "", ending.InStream, 1},
			Case{api, "an error in its place", d.fault, `{"error":{"message":"the secret","type":"server_error"}}`,
				ending.InStream, 0},
			Case{api, "an error in its place, and the end mark", d.fault + d.done, `{"error":"the secret"}`,
				ending.InStream, 0},
			Case{api, "an error of the kind of SGLang",
				d.start + data(`{"object":"error","message":"the secret","code":500}`), "", ending.InStream, 0},
		)
		for name, stray := range strays {
			if d.done != "" && api != Messages {
				all = append(all, Case{api, name + ", and the end mark", d.start + d.pieces["text"] + stray + d.done, "",
					ending.InStream, 1},
					Case{api, name + " in its place", d.start + stray + d.done, "", ending.InStream, 0})
			}
			answered := d.whole(api, name+" before the end", []string{stray, d.pieces["text"]}, d.end("stop"))
			answered.Tokens = 1
			all = append(all, answered)
		}
		if d.inChoice != "" {
			all = append(all, Case{api, "an error inside the choice", d.start + d.pieces["text"] + d.inChoice + d.done,
				"", ending.InStream, 1})
		}
	}
	return all
}

// strays are events that are none of any API: errors where no finish reason follows.
var strays = map[string]string{
	"a code and a message":  data(`{"code":500,"message":"the secret"}`),
	"a detail":              data(`{"detail":"the secret"}`),
	"an exception":          data(`{"modelStreamErrorException":{"message":"the secret"}}`),
	"a list of errors":      data(`{"success":false,"errors":[{"code":5006,"message":"the secret"}]}`),
	"an error in a list":    data(`[{"error":{"code":503,"message":"the secret"}}]`),
	"a text":                data(`error: the secret`),
	"a text in JSON":        data(`"the secret"`),
	"a message of no reply": data(`{"status":"failed","msg":"the secret"}`),
}

// words are finish reasons in the words of a chat, beside "filtered".
var words = []string{"stop", "length", "abort", "error", "timeout", "engine_error"}

var kinds = map[string]string{"abort": ending.GaveUp, "timeout": ending.GaveUp, "error": ending.InStream,
	"engine_error": ending.InStream}

// A dialect is how an API says things.
type dialect struct {
	start, done string
	pieces      map[string]string          // of an answer, by what is generated
	end         func(finish string) string // the last events before done; "nothing" counts no tokens
	body        func(finish string) string
	fault       string
	inChoice    string
}

// ended is an answer of so many pieces of text.
func (d dialect) ended(api, finish string, n int) Case {
	c := d.whole(api, finish, []string{strings.Repeat(d.pieces["text"], n)}, d.end(finish))
	c.Kind, c.Tokens, c.Body = kinds[finish], n, d.body(finish)
	return c
}

func (d dialect) whole(api, name string, pieces []string, end string) Case {
	return Case{API: api, Name: name, Stream: d.start + strings.Join(pieces, "") + end + d.done}
}

func data(s string) string { return "data: " + s + "\n\n" }

// counted is 2, or 0 of nothing.
func counted(finish string) string {
	if finish == "nothing" {
		return "0"
	}
	return "2"
}

// reasonOf is the finish reason of an answer of nothing, too.
func reasonOf(finish string) string {
	if finish == "nothing" {
		return "stop"
	}
	return finish
}

var dialects = map[string]dialect{
	Chat: {
		start: data(`{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`),
		done:  data("[DONE]"),
		pieces: map[string]string{
			"text": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" a"}}]}`),
			"a refusal": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"refusal":" no"}}]}`),
			"reasoning in details": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"","reasoning_details":[{"type":"reasoning.text","index":0,"text":" hm"}]}}]}`),
			"a summary of reasoning": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":" hm"}]}}]}`),
			"reasoning in blocks": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"thinking_blocks":[{"type":"thinking","thinking":" hm"}]}}]}`),
			"an image": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}}]}`),
			"reasoning": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":null,"reasoning_content":" hm"}}]}`),
			"reasoning under its new name": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"reasoning":" hm"}}]}`),
			"reasoning in parts": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":" hm"}]}]}}]}`),
			"text in parts": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":[{"type":"text","text":" a"}]}}]}`),
			"a call of a tool": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}`),
			"a call of a function": data(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"function_call":{"arguments":"{}"}}}]}`),
		},
		end: func(finish string) string {
			return data(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"`+
				reasonOf(finish)+`"}]}`) +
				data(`{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":`+
					counted(finish)+`,"total_tokens":11}}`)
		},
		body: func(finish string) string {
			text := map[bool]string{true: "", false: " a a"}[finish == "nothing"]
			return `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"` + reasonOf(finish) +
				`"}],"usage":{"prompt_tokens":9,"completion_tokens":` + counted(finish) + `,"total_tokens":11}}`
		},
		fault:    data(`{"error":{"message":"the secret","type":"server_error","code":500}}`),
		inChoice: data(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","error":{"code":502,"message":"the secret"}}]}`),
	},
	Completions: {
		done: data("[DONE]"),
		pieces: map[string]string{
			"text": data(`{"id":"c","object":"text_completion","model":"m","choices":[{"index":0,"text":" a","finish_reason":null}]}`),
		},
		end: func(finish string) string {
			return data(`{"object":"text_completion","choices":[{"index":0,"text":"","finish_reason":"` +
				reasonOf(finish) + `"}],"usage":{"prompt_tokens":9,"completion_tokens":` + counted(finish) +
				`,"total_tokens":11}}`)
		},
		body: func(finish string) string {
			text := map[bool]string{true: "", false: " a a"}[finish == "nothing"]
			return `{"id":"c","object":"text_completion","model":"m","choices":[{"index":0,"text":"` + text +
				`","finish_reason":"` + reasonOf(finish) +
				`"}],"usage":{"prompt_tokens":9,"completion_tokens":` + counted(finish) + `,"total_tokens":11}}`
		},
		fault:    data(`{"error":"the secret","error_type":"generation"}`),
		inChoice: data(`{"object":"text_completion","choices":[{"index":0,"text":"","error":{"message":"the secret"}}]}`),
	},
	Responses: {
		start: data(`{"type":"response.created","response":{"id":"r","object":"response","status":"in_progress","model":"m","output":[]}}`),
		pieces: map[string]string{
			"text":             data(`{"type":"response.output_text.delta","delta":" a"}`),
			"a refusal":        data(`{"type":"response.refusal.delta","delta":" no"}`),
			"reasoning":        data(`{"type":"response.reasoning_text.delta","delta":" hm"}`),
			"a call of a tool": data(`{"type":"response.function_call_arguments.delta","delta":"{}"}`),
		},
		end: func(finish string) string {
			kind := map[string]string{"length": "incomplete", "abort": "cancelled", "timeout": "cancelled",
				"error": "failed", "engine_error": "failed"}[finish]
			if kind == "" {
				kind = "completed"
			}
			return data(`{"type":"response.` + kind + `","response":` + responseBody(finish) + `}`)
		},
		body:  responseBody,
		fault: data(`{"type":"error","code":"server_error","message":"the secret"}`),
	},
	Messages: {
		start: data(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":0}}}`),
		done:  data(`{"type":"message_stop"}`),
		pieces: map[string]string{
			"text": data(
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" a"}}`),
			"reasoning": data(
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" hm"}}`),
			"a call of a tool": data(
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`),
		},
		end: func(finish string) string {
			return data(`{"type":"message_delta","delta":{"stop_reason":"` + stopReason(finish) +
				`"},"usage":{"output_tokens":` + counted(finish) + `}}`)
		},
		body: func(finish string) string {
			content := map[bool]string{true: "[]", false: `[{"type":"text","text":" a a"}]`}[finish == "nothing"]
			return `{"id":"m","type":"message","role":"assistant","model":"m","content":` + content +
				`,"stop_reason":"` + stopReason(finish) +
				`","usage":{"input_tokens":9,"output_tokens":` + counted(finish) + `}}`
		},
		fault: data(`{"type":"error","error":{"type":"overloaded_error","message":"the secret"}}`),
	},
}

// stopReason is a finish reason in the words of the Messages API.
func stopReason(finish string) string {
	if word := map[string]string{"stop": "end_turn", "nothing": "end_turn",
		"length": "max_tokens"}[finish]; word != "" {
		return word
	}
	return finish
}

// responseBody is an answer of the Responses API.
func responseBody(finish string) string {
	status, more := "completed", ""
	switch finish {
	case "length":
		status, more = "incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`
	case "error", "engine_error":
		status, more = "failed", `"error":{"code":"server_error","message":"the secret"},`
	case "abort", "timeout":
		status = "cancelled"
	}
	output := map[bool]string{true: "[]",
		false: `[{"type":"message","role":"assistant","content":[{"type":"output_text","text":" a a"}]}]`}[finish == "nothing"]
	return `{"id":"r","object":"response","status":"` + status + `",` + more + `"model":"m","output":` + output +
		`,"usage":{"input_tokens":9,"output_tokens":` + counted(finish) + `,"total_tokens":11}}`
}
