package token

import "strings"

var (
	qwen25 = &style{
		name: "qwen2.5", about: "Qwen 2.5, with its default system message; tools in the manner of Hermes",
		tools:  true,
		models: []string{"qwen2.5", "qwen-2.5", "qwen2-5"},
		render: renderQwen25, answer: answerQwen, reply: replyQwen,
	}
	qwen3 = &style{
		name: "qwen3", about: "Qwen 3, without one, and without the thoughts of earlier turns; tools in the manner of Hermes",
		tools:  true,
		models: []string{"qwen3", "qwen-3"},
		render: renderQwen3, answer: answerQwen, reply: replyQwen,
	}
)

const (
	imStart, imEnd = "<|im_start|>", "<|im_end|>"
	qwenSystem     = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
	qwenTools      = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
		"You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
	qwenToolsEnd = "\n</tools>\n\nFor each function call, return a json object with function name and arguments " +
		"within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"
)

// beginsWithSystem tells a chat whose first message is one of the system.
func (c *Chat) beginsWithSystem() bool { return len(c.Messages) > 0 && c.Messages[0].Role == "system" }

func (r *Renderer) qwenTools(c *Chat) {
	r.text(qwenTools)
	for _, t := range r.parseTools(c.Tools) {
		r.text("\n", dumps(t))
	}
	r.text(qwenToolsEnd)
}

func renderQwen25(r *Renderer, c *Chat) {
	r.mark(imStart)
	r.text("system\n")
	if c.beginsWithSystem() {
		r.text(c.Messages[0].Content)
	} else {
		r.text(qwenSystem)
	}
	if c.Tools != "" {
		r.text("\n\n")
		r.qwenTools(c)
	}
	r.mark(imEnd)
	r.text("\n")
	for i := range c.Messages {
		m := &c.Messages[i]
		switch calls := r.parseCalls(m.Calls); {
		case m.Role == "system" && i == 0:
		case m.Role == "tool":
			r.qwenToolResult(c, i)
		case m.Role == "assistant" && len(calls) > 0:
			r.mark(imStart)
			r.text("assistant")
			if m.Content != "" {
				r.text("\n", m.Content)
			}
			for _, call := range calls {
				r.text("\n")
				r.qwenCall(call)
			}
			r.mark(imEnd)
			r.text("\n")
		default:
			r.qwenMessage(m.Role, m.Content)
		}
	}
}

func (r *Renderer) qwenMessage(role, content string) {
	r.mark(imStart)
	r.text(role, "\n", content)
	r.mark(imEnd)
	r.text("\n")
}

func (r *Renderer) qwenCall(c call) {
	r.text("<tool_call>\n{\"name\": \"", c.name, "\", \"arguments\": ", c.json, "}\n</tool_call>")
}

// qwenToolResult puts the results that follow one another into one message of the user.
func (r *Renderer) qwenToolResult(c *Chat, i int) {
	if i == 0 || c.Messages[i-1].Role != "tool" {
		r.mark(imStart)
		r.text("user")
	}
	r.text("\n<tool_response>\n", c.Messages[i].Content, "\n</tool_response>")
	if i == len(c.Messages)-1 || c.Messages[i+1].Role != "tool" {
		r.mark(imEnd)
		r.text("\n")
	}
}

func answerQwen(r *Renderer) {
	r.mark(imStart)
	r.text("assistant\n")
}

func replyQwen(r *Renderer, content, calls string) {
	r.text(content)
	for i, c := range r.parseCalls(calls) {
		if i > 0 || content != "" {
			r.text("\n")
		}
		r.qwenCall(c)
	}
}

func renderQwen3(r *Renderer, c *Chat) {
	switch system := c.beginsWithSystem(); {
	case c.Tools != "":
		r.mark(imStart)
		r.text("system\n")
		if system {
			r.text(c.Messages[0].Content, "\n\n")
		}
		r.qwenTools(c)
		r.mark(imEnd)
		r.text("\n")
	case system:
		r.qwenMessage("system", c.Messages[0].Content)
	}
	last := lastQuery(c)
	for i := range c.Messages {
		m := &c.Messages[i]
		switch {
		case m.Role == "system" && i == 0:
		case m.Role == "tool":
			r.qwenToolResult(c, i)
		case m.Role == "assistant":
			r.qwen3Assistant(m, i > last, i == len(c.Messages)-1)
		default:
			r.qwenMessage(m.Role, m.Content)
		}
	}
}

// lastQuery is the last message of the user that is not the result of a tool.
func lastQuery(c *Chat) int {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		m := &c.Messages[i]
		if m.Role == "user" && !(strings.HasPrefix(m.Content, "<tool_response>") && strings.HasSuffix(m.Content, "</tool_response>")) {
			return i
		}
	}
	return len(c.Messages) - 1
}

// qwen3Assistant keeps the thoughts of the turn that is under way and leaves out the others.
func (r *Renderer) qwen3Assistant(m *Message, current, last bool) {
	content, thought := m.Content, ""
	if first, rest, found := strings.Cut(content, "</think>"); found {
		thought = strings.TrimRight(first, "\n")
		thought = strings.TrimLeft(thought[strings.LastIndex(thought, "<think>")+thinkWidth(thought):], "\n")
		if i := strings.LastIndex(rest, "</think>"); i >= 0 {
			rest = rest[i+len("</think>"):]
		}
		content = strings.TrimLeft(rest, "\n")
	}
	r.mark(imStart)
	r.text("assistant\n")
	if current && (last || thought != "") {
		r.text("<think>\n", strings.Trim(thought, "\n"), "\n</think>\n\n", strings.TrimLeft(content, "\n"))
	} else {
		r.text(content)
	}
	for i, c := range r.parseCalls(m.Calls) {
		if i > 0 || content != "" {
			r.text("\n")
		}
		r.qwenCall(c)
	}
	r.mark(imEnd)
	r.text("\n")
}

// thinkWidth is how far behind the last "<think>" a thought begins; 1 undoes the -1 of a search that finds none.
func thinkWidth(s string) int {
	if strings.Contains(s, "<think>") {
		return len("<think>")
	}
	return 1
}
