package token

import "strings"

var (
	qwen25 = &style{
		name: "qwen2.5", about: "Qwen 2.5, with its default system message; tools in the manner of Hermes",
		tools:  true,
		models: []string{"qwen2.5", "qwen-2.5", "qwen2-5"},
		format: qwen25Format{},
	}
	qwen3 = &style{
		name: "qwen3", about: "Qwen 3, without one, and without the thoughts of earlier turns; tools in the " +
			"manner of Hermes",
		tools:  true,
		models: []string{"qwen3", "qwen-3"},
		format: qwen3Format{},
	}
)

const (
	imStart, imEnd = "<|im_start|>", "<|im_end|>"
	qwenSystem     = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
	qwenTools      = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
		"You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
	qwenToolsEnd = "\n</tools>\n\nFor each function call, return a json object with function name and arguments " +
		"within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": " +
		"<args-json-object>}\n</tool_call>"
)

// A qwenFormat is what the versions of Qwen share.
type qwenFormat struct{}

func (qwenFormat) answer(r *Renderer) {
	r.mark(imStart)
	r.text("assistant\n")
}

func (qwenFormat) reply(r *Renderer, content, calls string) {
	r.text(content)
	r.qwenCalls(content, calls)
}

// qwenCalls writes the calls that follow a content, each on lines of its own.
func (r *Renderer) qwenCalls(content, calls string) {
	for i, c := range r.parseCalls(calls) {
		if i > 0 || content != "" {
			r.text("\n")
		}
		r.qwenCall(c)
	}
}

func (r *Renderer) qwenCall(c call) {
	r.text("<tool_call>\n{\"name\": \"", c.name, "\", \"arguments\": ", c.json, "}\n</tool_call>")
}

func (r *Renderer) qwenTools(c *Chat) {
	r.text(qwenTools)
	for _, t := range r.parseTools(c.Tools) {
		r.text("\n", dumps(t))
	}
	r.text(qwenToolsEnd)
}

func (r *Renderer) qwenMessage(role, content string) {
	r.mark(imStart)
	r.text(role, "\n", content)
	r.mark(imEnd)
	r.text("\n")
}

// qwenToolResult puts results that follow one another into one message of the user.
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

type qwen25Format struct{ qwenFormat }

func (qwen25Format) render(r *Renderer, c *Chat) {
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

type qwen3Format struct{ qwenFormat }

func (qwen3Format) render(r *Renderer, c *Chat) {
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
	last := len(c.Messages) - 1 // the last message of the user that is not the result of a tool
	for i := last; i >= 0; i-- {
		m := &c.Messages[i]
		if m.Role == "user" && !(strings.HasPrefix(m.Content, "<tool_response>") &&
			strings.HasSuffix(m.Content, "</tool_response>")) {
			last = i
			break
		}
	}
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

// qwen3Assistant keeps the thoughts of the current turn and leaves out those of earlier ones.
func (r *Renderer) qwen3Assistant(m *Message, current, last bool) {
	content, thought := m.Content, ""
	if first, rest, found := strings.Cut(content, "</think>"); found {
		thought = strings.TrimRight(first, "\n")
		if i := strings.LastIndex(thought, "<think>"); i >= 0 {
			thought = thought[i+len("<think>"):]
		}
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
	r.qwenCalls(content, m.Calls)
	r.mark(imEnd)
	r.text("\n")
}
