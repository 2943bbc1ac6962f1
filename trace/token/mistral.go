package token

import (
	"cmp"
	"strings"

	"reprise/trace/token/internal/jinja"
)

var (
	mistral1 = &style{
		name: "mistral-v1", about: "Mistral 7B v0.1 and v0.2, Mixtral 8x7B; no format for tools, whose JSON joins " +
			"the first message",
		models: []string{"mistral-7b-instruct-v0.1", "mistral-7b-instruct-v0.2", "mistral-7b-v0.1",
			"mistral-7b-v0.2", "mixtral-8x7b"},
		format: mistral1Format{},
	}
	mistral3 = &style{
		name: "mistral-v3", about: "Mistral Nemo (V3 Tekken); tools before the last message of the user, which has " +
			"the system's before it when it is the last of all",
		tools:  true,
		models: []string{"mistral-nemo"},
		format: mistral3Format{},
	}
)

// A mistral1Format has no message of the system: it joins the first question.
type mistral1Format struct{ textFormat }

func (mistral1Format) render(r *Renderer, c *Chat) {
	r.mark("<s>")
	system, messages := c.systemPrefix()
	for i := range messages {
		m := &messages[i]
		if m.Role == "assistant" {
			r.text(m.Content, m.Calls)
			r.mark("</s>")
			continue
		}
		r.text("[INST] ")
		if system != "" {
			r.text(system, "\n\n")
			system = ""
		}
		r.text(m.Content, " [/INST]")
	}
}

type mistral3Format struct{ textFormat }

func (mistral3Format) render(r *Renderer, c *Chat) {
	r.mark("<s>")
	system, messages := "", c.Messages
	if c.beginsWithSystem() {
		system, messages = messages[0].Content, messages[1:]
	}
	last := len(messages) - 1
	for last >= 0 && messages[last].Role != "user" {
		last--
	}
	for i := range messages {
		m := &messages[i]
		calls := r.parseCalls(m.Calls)
		switch {
		case len(calls) > 0:
			r.mistralCalls(calls)
			r.mark("</s>")
		case m.Role == "assistant":
			r.text(m.Content)
			r.mark("</s>")
		case m.Role == "tool":
			r.mark("[TOOL_RESULTS]")
			r.text(`{"content": `, m.Content, `, "call_id": "`, m.CallID, `"}`)
			r.mark("[/TOOL_RESULTS]")
		default:
			if c.Tools != "" && i == last {
				r.mistralTools(c.Tools)
			}
			r.mark("[INST]")
			if i == len(messages)-1 && c.beginsWithSystem() {
				r.text(system, "\n\n")
			}
			r.text(m.Content)
			r.mark("[/INST]")
		}
	}
}

// mistralCalls writes calls as JSON, with the id after the function.
func (r *Renderer) mistralCalls(calls []call) {
	r.mark("[TOOL_CALLS]")
	r.text("[")
	for i, c := range calls {
		if i > 0 {
			r.text(", ")
		}
		r.text(strings.TrimSuffix(dumps(c.function), "}"), `, "id": "`, c.id, `"}`)
	}
	r.text("]")
}

// mistralTools writes tools as JSON, except that texts are not escaped.
func (r *Renderer) mistralTools(text string) {
	r.mark("[AVAILABLE_TOOLS]")
	r.text("[")
	tools := r.parseTools(text)
	for i, t := range tools {
		if i > 0 {
			r.text(", ")
		}
		r.text(`{"type": "function", "function": {`)
		function, _ := get(t, "function").(*jinja.Dict)
		function = cmp.Or(function, t)
		first := true
		for _, k := range function.Keys() {
			if k == "return" {
				continue
			}
			if !first {
				r.text(", ")
			}
			first = false
			value := dumps(get(function, k))
			if s, ok := get(function, k).(string); ok {
				value = `"` + s + `"`
			}
			r.text(`"`, k, `": `, value)
		}
		r.text("}}")
	}
	r.text("]")
	r.mark("[/AVAILABLE_TOOLS]")
}

func (mistral3Format) reply(r *Renderer, content, calls string) {
	r.text(content)
	if parsed := r.parseCalls(calls); len(parsed) > 0 {
		r.mistralCalls(parsed)
	}
}
