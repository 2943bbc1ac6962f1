package token

import (
	"cmp"
	"reprise/trace/token/internal/jinja"
)

var (
	llama2 = &style{
		name: "llama2", about: "Llama 2 chat: [INST] and <<SYS>>; no format for tools, whose JSON joins the " +
			"system message",
		models: []string{"llama-2", "llama2"},
		format: llama2Format{},
	}
	llama3 = &style{
		name: "llama3", about: "Llama 3; no format for tools, whose JSON joins the system message",
		models: []string{"llama-3", "llama3"},
		format: llama3Format{},
	}
	llama31 = &style{
		name: "llama3.1", about: "Llama 3.1 and 3.3, which tell the date of 26 Jul 2024; tools as JSON in the first " +
			"message of the user",
		tools: true,
		models: []string{"llama-3.1", "llama3.1", "llama-3-1", "llama-v3p1", "llama-3.3", "llama3.3",
			"llama-3-3", "llama-v3p3"},
		format: llama31Format{date: "26 Jul 2024"},
	}
	llama32 = &style{
		name: "llama3.2", about: "Llama 3.2, which tells the date of the request; tools as JSON in the first message " +
			"of the user",
		tools:  true,
		models: []string{"llama-3.2", "llama3.2", "llama-3-2", "llama-v3p2"},
		format: llama31Format{},
	}
)

// A llama2Format is a dialogue of turns that each begin anew. What is neither a question nor an answer, which the
// published template refuses, is taken as a question.
type llama2Format struct{ textFormat }

func (llama2Format) reply(r *Renderer, content, calls string) { r.text(" ", content, calls) }

func (llama2Format) render(r *Renderer, c *Chat) {
	system, messages := c.systemPrefix()
	for i := range messages {
		m := &messages[i]
		if m.Role == "assistant" {
			r.text(" ", strip(m.Content+m.Calls), " ")
			r.mark("</s>")
			continue
		}
		content := m.Content
		if system != "" {
			content = "<<SYS>>\n" + system + "\n<</SYS>>\n\n" + content
			system = ""
		}
		r.mark("<s>")
		r.text("[INST] ", strip(content), " [/INST]")
	}
}

type llama3Format struct{ textFormat }

func (llama3Format) answer(r *Renderer) { r.llama3Header("assistant") }

func (llama3Format) render(r *Renderer, c *Chat) {
	r.mark("<|begin_of_text|>")
	system, messages := c.systemPrefix()
	if system != "" || c.beginsWithSystem() {
		r.llama3Message("system", strip(system))
	}
	for i := range messages {
		m := &messages[i]
		r.llama3Message(m.Role, strip(m.Content+m.Calls))
	}
}

func (r *Renderer) llama3Header(role string) {
	r.mark("<|start_header_id|>")
	r.text(role)
	r.mark("<|end_header_id|>")
	r.text("\n\n")
}

func (r *Renderer) llama3Message(role string, parts ...string) {
	r.llama3Header(role)
	r.text(parts...)
	r.mark("<|eot_id|>")
}

const llamaToolIntro = "Given the following functions, please respond with a JSON for a function call with its " +
	"proper arguments that best answers the given prompt.\n\n" +
	"Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name and its value}.Do " +
	"not use variables.\n\n"

// A llama31Format always has a message of the system. A message with calls has these alone; the published template
// refuses more than one.
type llama31Format struct {
	llama3Format
	date string // that it tells the model; "" for the date of the request
}

func (llama31Format) reply(r *Renderer, content, calls string) {
	parsed := r.parseCalls(calls)
	if len(parsed) == 0 {
		r.text(content)
	}
	for _, c := range parsed {
		r.llamaCall(c)
	}
}

func (r *Renderer) llamaCall(c call) {
	r.text(`{"name": "`, c.name, `", "parameters": `, c.json, "}")
}

func (f llama31Format) render(r *Renderer, c *Chat) {
	r.mark("<|begin_of_text|>")
	system, messages := "", c.Messages
	if c.beginsWithSystem() {
		system, messages = strip(messages[0].Content), messages[1:]
	}
	date := cmp.Or(f.date, c.Time.UTC().Format("02 Jan 2006"))
	head := ""
	if c.Tools != "" {
		head = "Environment: ipython\n"
	}
	r.llama3Message("system", head, "Cutting Knowledge Date: December 2023\nToday Date: ", date, "\n\n", system)
	if c.Tools != "" && len(messages) > 0 {
		r.llama3Header("user")
		r.text(llamaToolIntro)
		for _, t := range r.parseTools(c.Tools) {
			text, _ := jinja.JSONIndented(t, 4)
			r.text(text, "\n\n")
		}
		r.text(strip(messages[0].Content))
		r.mark("<|eot_id|>")
		messages = messages[1:]
	}
	for i := range messages {
		m := &messages[i]
		calls := r.parseCalls(m.Calls)
		switch {
		case m.Role == "tool":
			r.llama3Message("ipython", dumps(m.Content))
		case len(calls) > 0:
			r.llama3Header("assistant")
			for _, call := range calls {
				r.llamaCall(call)
			}
			r.mark("<|eot_id|>")
		default:
			r.llama3Message(m.Role, strip(m.Content))
		}
	}
}
