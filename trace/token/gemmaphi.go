package token

var (
	gemma = &style{
		name: "gemma", about: "Gemma 2 and 3; no messages of the system and no format for tools: both join the first " +
			"message of the user",
		models: []string{"gemma-2", "gemma2", "gemma-3", "gemma3"},
		format: gemmaFormat{},
	}
	phi3 = &style{
		name: "phi3", about: "Phi 3 and 3.5; no format for tools, whose JSON joins the system message",
		models: []string{"phi-3", "phi3", "phi-3.5", "phi3.5"},
		format: phi3Format{},
	}
)

type gemmaFormat struct{ textFormat }

func (gemmaFormat) answer(r *Renderer) { r.gemmaHeader("model") }

func (r *Renderer) gemmaHeader(role string) {
	r.mark("<start_of_turn>")
	r.text(role, "\n")
}

func (gemmaFormat) render(r *Renderer, c *Chat) {
	r.mark("<bos>")
	system, messages := c.systemPrefix()
	for i := range messages {
		m := &messages[i]
		role := m.Role
		switch role {
		case "assistant":
			role = "model"
		case "tool":
			role = "user"
		}
		r.gemmaHeader(role)
		if i == 0 && system != "" {
			r.text(system, "\n\n")
		}
		r.text(strip(m.Content + m.Calls))
		r.mark("<end_of_turn>")
		r.text("\n")
	}
}

type phi3Format struct{ textFormat }

func (phi3Format) answer(r *Renderer) { r.phi3Header("<|assistant|>") }

func (r *Renderer) phi3Header(mark string) {
	r.mark(mark)
	r.text("\n")
}

func (phi3Format) render(r *Renderer, c *Chat) {
	system, messages := c.systemPrefix()
	if system != "" {
		r.phi3Message("<|system|>", system)
	}
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Role == "system" && m.Content != "":
			r.phi3Message("<|system|>", m.Content)
		case m.Role == "user" || m.Role == "tool": // results have no role of their own
			r.phi3Message("<|user|>", m.Content)
		case m.Role == "assistant":
			r.phi3Message("<|assistant|>", m.Content+m.Calls)
		}
	}
}

func (r *Renderer) phi3Message(mark, content string) {
	r.phi3Header(mark)
	r.text(content)
	r.mark("<|end|>")
	r.text("\n")
}
