package datasets

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/talk"
	"reprise/trace"
	"reprise/trace/ending"
	tokenusage "reprise/trace/usage"
)

// The names that proxies give to the two bodies of a call, and to its times.
var (
	askedBodies    = []string{"request", "body", "request_body", "req"}
	answeredBodies = []string{"response", "response_body", "resp"}
)

// apiLog declares the log of a proxy that writes the bodies of requests and responses:
// of OpenAI's Chat and Responses APIs and of Anthropic's Messages. There is no standard for
// it, so that it is told by the response. The rules:
//
//   - A stream that was logged as it came is put together. Its usage is that of its last
//     event.
//   - A request of the Responses API that goes on with an earlier response holds what is
//     new alone: see [responseChains].
func apiLog() declaredFormat { return apiLogOf(askedBodies, answeredBodies) }

// apiLogOf declares a log whose bodies are at some of these paths.
func apiLogOf(asked, answered []string) declaredFormat {
	origins := map[string]string{"asked": strings.Join(asked, "|"), "answer": strings.Join(answered, "|")}
	for to, from := range map[string]string{
		"session_of_user": "asked.metadata.user_id", "user_of_session": "asked.metadata.user_id",
		"kind_of_api":  "answer.object",
		"conversation": "asked", "finish": "answer.stop_reason", "answer_id": "answer.id",
	} {
		name, rest, _ := strings.Cut(from, ".")
		var paths []string
		for path := range strings.SplitSeq(origins[name], "|") {
			paths = append(paths, strings.Trim(path+"."+rest, "."))
		}
		origins[to] = strings.Join(paths, "|")
	}
	return declaredFormat{
		name: "api-log", tried: "45 recorded exchanges of Anthropic's and OpenAI's APIs, 10 of them streams",
		about: "bodies of requests and responses, as proxies log them: Anthropic Messages, OpenAI Responses and " +
			"Chat, also streams",
		example: `{"timestamp":"2026-01-02T03:04:05Z","latency_ms":1900,"request":{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]},"response":{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":20,"cache_read_input_tokens":100,"cache_creation_input_tokens":0,"output_tokens":5}}}`,
		oneOf:   slices.Concat(askedBodies, answeredBodies),
		fields: Mapping{
			"time":  {"timestamp", "ts", "time", "created_at", "request_time", "start_time", "started_at"},
			"model": {"answer.model", "asked.model"}, "user": {"user_of_session", "asked.metadata.user_id",
				"asked.user", "asked.safety_identifier", "user", "user_id", "end_user"},
			"session": {"session_of_user", "headers.x-claude-code-session-id", "asked.conversation.id",
				"asked.conversation", "session_id"},
			"response_id": {"answer_id"}, "previous_response_id": {"asked.previous_response_id"},
			"kind":        {"kind_of_api"},
			"max_tokens":  {"asked.max_completion_tokens", "asked.max_output_tokens", "asked.max_tokens"},
			"temperature": {"asked.temperature"}, "stream": {"asked.stream"},
			"finish_reason": {"finish", "answer.choices.0.finish_reason"}, "status": {"status", "status_code"},
			"error":   {"error", "answer.error.type", "answer.error.message"},
			"ttft_ms": {"ttft_ms", "time_to_first_token_ms"}, "e2e_ms": {"latency_ms", "duration_ms",
				"e2e_ms", "elapsed_ms"},
			"messages": {"conversation"}, "tools": {"asked.tools"}, "output": {"answer"}, bodyAt: {askedChat},
		},
		usage: []string{"answer.usage"}, counts: tokenusage.Body,
		kinds:      [][2]string{{"responses", "responses"}, {"chat", "chat"}, {"embedding", "embedding"}},
		formatCode: formatCode{made: origins, show: showAPICall, match: isAPICall},
	}
}

// harLog declares what browsers and proxies save of their traffic, HTTP archives: one object with all
// entries. Those that are no calls of a known API are left out.
func harLog() declaredFormat {
	const asked, answered = "request.postData.text", "response.content.text"
	d := apiLogOf([]string{asked}, []string{answered})
	d.name, d.tried = "har", fromDocumentation
	d.about = "HTTP archives (HAR), as browsers and proxies save them: the calls of the APIs of api-log"
	d.example = `{"log":{"version":"1.2","entries":[{"startedDateTime":"2026-01-02T03:04:05.100Z","time":900.5,"request":{"method":"POST","postData":{"text":"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}"}},` +
		`"response":{"status":200,"content":{"text":"{\"object\":\"chat.completion\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":2}}"}}}]}}`
	d.keys, d.oneOf, d.members = []string{"log"}, nil, [][]string{{"log.entries"}}
	d.whole = []string{asked, answered, "response.content.encoding"}
	d.fields = maps.Clone(d.fields)
	d.fields["time"], d.fields["e2e_ms"], d.fields["status"] = []string{"startedDateTime"}, []string{"time"},
		[]string{"response.status"}
	delete(d.fields, "ttft_ms")
	d.match = func(r row.Row) bool {
		entries, _ := r.Value("log.entries")
		_, isList := entries.([]any)
		return isList
	}
	d.show = func(v row.View) {
		for _, body := range [][2]string{{"request", asked}, {"response", answered}} {
			text, _ := v.Row.Value(body[1])
			encoding, _ := v.Row.Value("response.content.encoding")
			if packed, err := base64.StdEncoding.DecodeString(row.Plain(text)); err == nil && body[0] == "response" &&
				encoding == "base64" {
				text = string(packed)
			}
			v.Put(body[0], text, body[1])
		}
		showAPICall(v)
	}
	return d
}

// apiBodies puts the bodies at "asked" and "answer", and returns which API they are of.
func apiBodies(v row.View) string {
	for to, names := range map[string][]string{"asked": askedBodies, "answer": answeredBodies} {
		found, path, ok := row.Find(v, names)
		if text, isText := found.(string); isText {
			body, _, isJSON := row.DecodeJSON([]byte(text))
			if found = body; !isJSON {
				found = streamedAnswer(eventsOf(text))
			}
		}
		if list, isList := found.([]any); isList {
			found = streamedAnswer(list)
		}
		if body, isBody := found.(map[string]any); ok && isBody {
			v.Put(to, body, path)
		}
	}
	kind, _ := v.Value("answer.type")
	object, _ := v.Value("answer.object")
	items, _ := v.Value("asked.messages")
	switch {
	case kind == "message" && row.HasAny(v, "answer.usage.input_tokens"):
		return "messages"
	case object == "response" && row.HasAny(v, "answer.output", "answer.usage"):
		return "responses"
	case row.HasAny(v, "asked.messages", "asked.prompt") && row.HasAny(v, "answer.choices"):
		return "chat"
	case row.HasAny(v, "answer.choices", "answer.usage") || !row.HasAny(v, "asked"):
		return ""
	case talk.AreMessages(items) && (row.HasAny(v, "asked.anthropic_version") || row.HasAny(v, "asked.system") &&
		row.HasAny(v, "asked.max_tokens")):
		return "messages"
	case row.HasAny(v, "asked.input") && row.HasAny(v, "asked.instructions", "asked.previous_response_id"):
		return "responses"
	case talk.AreMessages(items) && row.HasAny(v, "asked.model"):
		return "chat"
	}
	return ""
}

// isAPICall tells a call by its response, or by a request that only one API takes.
func isAPICall(r row.Row) bool { return apiBodies(row.NewView(r)) != "" }

func showAPICall(v row.View) {
	api := apiBodies(v)
	if vectors, _ := v.Value("answer.object"); api == "" && vectors == "list" {
		api = "embeddings"
	}
	v.Put("kind_of_api", map[string]string{"messages": "chat", "chat": "chat", "responses": "responses",
		"embeddings": "embedding"}[api], "")
	if why, _ := v.Value("answer.stop_reason"); row.Plain(why) != "" {
		v.Put("finish", trace.ClosedFinish(row.Plain(why)), v.From["answer"]+".stop_reason")
	} else if status, _ := v.Value("answer.status"); api == "responses" && row.Plain(status) != "" {
		reason, _ := v.Value("answer.incomplete_details.reason")
		if finish := ending.Response(row.Plain(status), row.Plain(reason)); finish != "" {
			v.Put("finish", finish, v.From["answer"]+".status")
		}
	}
	// Claude Code puts its session behind the user.
	user, _ := v.Value("asked.metadata.user_id")
	if before, session, ok := strings.Cut(row.Plain(user), "_session_"); ok {
		v.Put("user_of_session", before, v.From["asked"]+".metadata.user_id")
		v.Put("session_of_user", session, v.From["asked"]+".metadata.user_id")
	}
	if id, _ := v.Value("answer.id"); api == "responses" && id != nil {
		v.Put("answer_id", id, v.From["answer"]+".id")
	}
	if body, ok := v.Value("asked"); ok {
		v.Put("conversation", body, v.From["asked"])
		if api == "chat" {
			v.Put(askedChat, body, v.From["asked"])
		}
	}
	if api == "responses" && row.HasAny(v, "asked.instructions") {
		v.Put(ownSystem, true, v.From["asked"]+".instructions")
	}
}

// eventsOf are the data of the events of a stream as it was sent, those that are JSON.
func eventsOf(stream string) (events []any) {
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			if event, _, ok := row.DecodeJSON([]byte(strings.TrimSpace(data))); ok {
				events = append(events, event)
			}
		}
	}
	return events
}

// streamedAnswer puts an answer together of the events of its stream; nil where they are
// none of a known API. A stream that has an error, or stops before its end, has the member
// "error".
func streamedAnswer(events []any) any {
	var answer map[string]any
	var text strings.Builder
	var failed any
	ended := false
	usage := map[string]any{}
	merge := func(more any) {
		counts, _ := more.(map[string]any)
		for name, n := range counts {
			if n != nil {
				usage[name] = n
			}
		}
	}
	for _, event := range events {
		fields, _ := event.(map[string]any)
		kind, _ := fields["type"].(string)
		inChoice, _ := row.Lookup(event, "choices.0.error")
		failed = talk.FirstOf(failed, talk.FirstOf(fields["error"], inChoice))

		switch {
		case kind == "message_start":
			answer, _ = fields["message"].(map[string]any)
			merge(answer["usage"])
		case kind == "content_block_delta":
			piece, _ := row.Lookup(event, "delta.text")
			text.WriteString(row.Plain(piece))
		case kind == "message_delta":
			merge(fields["usage"])
			if why, ok := row.Lookup(event, "delta.stop_reason"); ok && answer != nil {
				answer["stop_reason"], ended = why, true
			}
		case slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, kind):
			return fields["response"]
		case fields["object"] == "chat.completion.chunk":
			if answer == nil {
				answer = map[string]any{"object": "chat.completion", "model": fields["model"]}
			}
			merge(fields["usage"])
			piece, _ := row.Lookup(event, "choices.0.delta.content")
			text.WriteString(row.Plain(piece))
			why, _ := row.Lookup(event, "choices.0.finish_reason")
			ended = ended || why != nil
			before, _ := row.Lookup(answer, "choices.0.finish_reason")
			answer["choices"] = []any{map[string]any{"message": map[string]any{"role": "assistant",
				"content": text.String()}, "finish_reason": talk.FirstOf(why, before)}}
		}
	}
	if answer == nil {
		return nil
	}
	if failed == nil && !ended {
		failed = ending.Incomplete
	}
	if failed != nil {
		answer["error"] = failed
	}
	if len(usage) > 0 {
		answer["usage"] = usage
	}
	if answer["choices"] == nil && text.Len() > 0 {
		answer["content"] = []any{map[string]any{"type": "text", "text": text.String()}}
	}
	return answer
}
