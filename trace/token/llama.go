package token

import (
	"time"

	"reprise/trace/token/internal/jinja"
)

var (
	llama2 = &style{
		name: "llama2", about: "Llama 2 chat: [INST] and <<SYS>>; no format for tools, whose JSON joins the system message",
		models: []string{"llama-2", "llama2"},
		render: renderLlama2, answer: func(*Renderer) {}, reply: func(r *Renderer, content, calls string) { r.text(" ", content, calls) },
	}
	llama3 = &style{
		name: "llama3", about: "Llama 3; no format for tools, whose JSON joins the system message",
		models: []string{"llama-3", "llama3"},
		render: renderLlama3, answer: answerLlama3, reply: replyLlama3,
	}
	llama31 = &style{
		name: "llama3.1", about: "Llama 3.1 and 3.3, which tell the date of 26 Jul 2024; tools as JSON in the first message of the user",
		tools:  true,
		models: []string{"llama-3.1", "llama3.1", "llama-3-1", "llama-v3p1", "llama-3.3", "llama3.3", "llama-3-3", "llama-v3p3"},
		render: func(r *Renderer, c *Chat) { renderLlama31(r, c, "26 Jul 2024") }, answer: answerLlama3, reply: replyLlama31,
	}
	llama32 = &style{
		name: "llama3.2", about: "Llama 3.2, which tells the date of the request; tools as JSON in the first message of the user",
		tools:  true,
		models: []string{"llama-3.2", "llama3.2", "llama-3-2", "llama-v3p2"},
		render: func(r *Renderer, c *Chat) { renderLlama31(r, c, c.Time.UTC().Format("02 Jan 2006")) }, answer: answerLlama3, reply: replyLlama31,
	}
)

// systemPrefix splits off the messages of the system that begin a chat, and puts the JSON of tools behind them, for families
// without a format for tools.
func (c *Chat) systemPrefix() (system string, rest []Message) {
	rest = c.Messages
	if c.beginsWithSystem() {
		system, rest = rest[0].Content, rest[1:]
	}
	if c.Tools != "" && system != "" {
		system += "\n\n"
	}
	return system + c.Tools, rest
}

// renderLlama2 is a dialogue of turns that each begin anew. What is neither a question nor an answer, which the published
// template refuses, is taken as a question.
func renderLlama2(r *Renderer, c *Chat) {
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

func renderLlama3(r *Renderer, c *Chat) {
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

func answerLlama3(r *Renderer) { r.llama3Header("assistant") }

func replyLlama3(r *Renderer, content, calls string) { r.text(content, calls) }

func replyLlama31(r *Renderer, content, calls string) {
	parsed := r.parseCalls(calls)
	if len(parsed) == 0 {
		r.text(content)
	}
	for _, c := range parsed {
		r.text(llamaCall(c)...)
	}
}

func llamaCall(c call) []string {
	return []string{`{"name": "`, c.name, `", "parameters": `, c.json, "}"}
}

const (
	llamaToolIntro = "Given the following functions, please respond with a JSON for a function call with its proper arguments that best answers the given prompt.\n\n" +
		"Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name and its value}.Do not use variables.\n\n"
)

// renderLlama31 always has a message of the system. A message with calls has these alone; the published template refuses more
// than one.
func renderLlama31(r *Renderer, c *Chat, date string) {
	r.mark("<|begin_of_text|>")
	system, messages := "", c.Messages
	if c.beginsWithSystem() {
		system, messages = strip(messages[0].Content), messages[1:]
	}
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
				r.text(llamaCall(call)...)
			}
			r.mark("<|eot_id|>")
		default:
			r.llama3Message(m.Role, strip(m.Content))
		}
	}
}

// day is the date of a request, in UTC.
func day(t time.Time) string { return t.UTC().Format("2006-01-02") }
