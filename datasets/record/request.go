package record

import (
	"encoding/json"
	"strconv"
	"strings"

	"reprise/trace"
)

// entry makes the entry of an exchange that is over, and the key by which its session is
// in the sample or not. ok is false where the body is not a request of its API.
func (x *exchange) entry() (e *trace.Entry, key string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	body, err := plain(x.body, x.request)
	var f fields
	if err != nil || json.Unmarshal(body, &f) != nil || f == nil {
		return nil, "", false
	}
	e = &trace.Entry{Time: x.w.o.Begin.Add(x.begin.Sub(x.w.o.Begin)), Model: text(f.string("model")),
		Salt: text(f.string("cache_salt")), Replica: text(x.server)}
	var images int32
	messages, ok := x.prompt(f, e, &images)
	if !ok {
		return nil, "", false
	}
	var from *chained
	known := true
	if x.api == responsesAPI {
		from, messages, known = x.goesOn(f, messages, e)
	}
	for _, m := range messages {
		e.Messages = append(e.Messages, trace.Message{Role: m.role, Content: trace.NewText(m.text),
			Calls: text(m.calls), CallID: text(m.callID), Name: text(m.name)})
	}
	if images > 0 {
		e.Images = &images
	}
	e.Tools = text(f.tools())
	e.MaxTokens = f.count("max_completion_tokens", "max_tokens", "max_output_tokens")
	e.Temperature = f.float("temperature")
	if e.Kind != "embedding" {
		e.Stream = trace.Ptr(f.bool("stream"))
	}
	user, session := f.who(x.session)
	e.User, e.Session = text(user), text(session)
	key = sampleKey(session, user, messages, x.begin.UnixNano())
	switch {
	case from != nil && session == "":
		key = from.sample
	case !known && session == "":
		key = "r" + f.string("previous_response_id")
	}
	if r := x.outcome(e); x.api == responsesAPI {
		e.Response = text(r.id)
		x.remember(f, messages, r, key)
	}
	if !known && e.InputTokens != nil && e.OutputTokens != nil { // the text is a part of what the server saw
		e.Messages, e.Tools, e.Reply, e.ReplyCalls = nil, trace.Text{}, nil, trace.Text{}
	}
	return e, key, true
}

// outcome adds what the answer says, which it returns.
func (x *exchange) outcome(e *trace.Entry) reply {
	r := x.answer.reply(x.api, x.status, x.last, x.ended)
	x.found = r.found
	if r.usage.Input != nil {
		e.InputTokens = r.usage.Input
	}
	e.OutputTokens, e.Cached, e.Reasoning = r.usage.Output, r.usage.Cached, r.usage.Reasoning
	e.FinishReason = r.finish
	switch {
	case x.status == 0 || r.failed && !x.gone:
		e.Status = trace.StatusFailed
	case r.failed:
		e.Status = trace.StatusCancelled
		r.done = x.last
	}
	if x.pair != nil && !x.gone {
		x.pair.add(&x.pair.pair.Primary, said(r, x.begin.Add(x.sent).Sub(x.w.o.Begin), x.sent, x.status))
	}
	if r.done == 0 {
		r.done = x.last
	}
	e.E2E = &r.done
	if x.answer.stream && r.first > 0 {
		e.TTFT = &r.first
	}
	// A text that is not all of the output is good for a count, where there is no other.
	if e.Status == trace.StatusFailed || e.Kind == "embedding" || r.unknown && (e.OutputTokens != nil || r.text == "") {
		return r
	}
	e.Reply, e.ReplyCalls = trace.Ptr(trace.NewText(r.text)), text(r.calls)
	return r
}

// prompt reads the messages of a request. Where the prompt is token ids, or several
// prompts, there are none, and its length is in e.
func (x *exchange) prompt(f fields, e *trace.Entry, images *int32) (messages []message, ok bool) {
	switch x.api {
	case chatAPI:
		e.Kind = "chat"
		return chatMessages(f["messages"], images)
	case messagesAPI:
		e.Kind = "chat"
		return anthropicMessages(f["system"], f["messages"], images)
	case responsesAPI:
		e.Kind = "responses"
		messages, _, ok = inputItems(f["input"], images)
		if instructions := f.string("instructions"); instructions != "" {
			messages = append([]message{{role: trace.System, text: instructions}}, messages...)
		}
		return messages, ok && len(messages) > 0
	}
	field := "prompt"
	e.Kind = "completion"
	if x.api == embeddingsAPI {
		field, e.Kind = "input", "embedding"
	}
	return plainPrompt(f[field], e)
}

// plainPrompt reads a prompt that is a text, token ids, or a list of these.
func plainPrompt(raw json.RawMessage, e *trace.Entry) ([]message, bool) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []message{{role: trace.User, text: one}}, len(raw) > 0
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, false
	}
	if len(list) == 1 && list[0][0] != '{' && (list[0][0] == '"' || list[0][0] == '[') {
		return plainPrompt(list[0], e)
	}
	if json.Unmarshal(raw, &e.PromptIDs) == nil {
		e.InputTokens = trace.Ptr(int32(len(e.PromptIDs)))
		return nil, true
	}
	e.PromptIDs = nil
	tokens := 0
	for _, each := range list {
		var ids []json.Number
		if json.Unmarshal(each, &ids) != nil { // several texts: the usage says how long they are together
			return nil, true
		}
		tokens += len(ids)
	}
	e.InputTokens = trace.Ptr(int32(tokens))
	return nil, true
}

// fields are the members of a request's body.
type fields map[string]json.RawMessage

func (f fields) string(name string) (s string) {
	json.Unmarshal(f[name], &s)
	return s
}

func (f fields) bool(name string) (b bool) {
	json.Unmarshal(f[name], &b)
	return b
}

func (f fields) count(names ...string) *int32 {
	for _, name := range names {
		var n *int32
		if json.Unmarshal(f[name], &n) == nil && n != nil && *n >= 0 {
			return n
		}
	}
	return nil
}

func (f fields) float(name string) *float32 {
	var x *float32
	json.Unmarshal(f[name], &x)
	return x
}

// tools are the definitions that a request offers, in the shape of OpenAI's chats.
func (f fields) tools() string {
	raw := f["tools"]
	if !isSet(raw) {
		raw = f["functions"]
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return ""
	}
	var out strings.Builder
	separator := "["
	for _, definition := range list {
		out.WriteString(separator)
		separator = ","
		var d struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"input_schema"`
			Parameters  json.RawMessage `json:"parameters"`
			Function    json.RawMessage `json:"function"`
		}
		if json.Unmarshal(definition, &d) != nil || d.Name == "" || isSet(d.Function) {
			out.WriteString(compact(definition))
			continue
		}
		if d.Schema == nil {
			d.Schema = d.Parameters
		}
		whole, _ := json.Marshal(map[string]any{"type": "function", "function": struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters,omitempty"`
		}{d.Name, d.Description, d.Schema}})
		out.Write(whole)
	}
	return out.String() + "]"
}

// who sent a request: its user and its session, by what clients say of them. header is
// the session that a header names.
func (f fields) who(header string) (user, session string) {
	var metadata struct {
		UserID    string `json:"user_id"`
		SessionID string `json:"session_id"`
	}
	json.Unmarshal(f["metadata"], &metadata)
	user, session = metadata.UserID, metadata.SessionID
	// Claude Code writes user_HASH_account_UUID_session_UUID, or the same as JSON.
	if before, after, ok := strings.Cut(user, "_session_"); ok && session == "" {
		user, session = before, after
	}
	var packed struct {
		Device  string `json:"device_id"`
		Account string `json:"account_uuid"`
		Session string `json:"session_id"`
	}
	if strings.HasPrefix(user, "{") && json.Unmarshal([]byte(user), &packed) == nil && packed.Session != "" {
		user, session = packed.Device+packed.Account, packed.Session
	}
	for _, name := range []string{"user", "safety_identifier"} {
		if user == "" {
			user = f.string(name)
		}
	}
	for _, s := range []string{header, session, f.string("session_id"), f.conversation(),
		f.string("prompt_cache_key")} {
		if s != "" {
			return user, s
		}
	}
	return user, ""
}

// sampleKey is what requests of a session have in common: its name, or else the chat up
// to the first message of the user. What tells neither is a session of its own.
func sampleKey(session, user string, messages []message, unique int64) string {
	if session != "" {
		return "s" + session
	}
	var key strings.Builder
	for _, m := range messages {
		key.WriteString(m.text)
		key.WriteByte(0)
		if m.role == trace.User && len(messages) > 1 {
			return "m" + user + "\x00" + key.String()
		}
	}
	if len(messages) > 0 && messages[0].role == trace.User {
		return "m" + user + "\x00" + key.String()
	}
	return "n" + strconv.FormatInt(unique, 10)
}

// text is a string that may not be there.
func text(s string) trace.Text {
	if s == "" {
		return trace.Text{}
	}
	return trace.NewText(s)
}
