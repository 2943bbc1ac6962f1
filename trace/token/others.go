package token

var (
	gemma = &style{
		name: "gemma", about: "Gemma 2 and 3; no messages of the system and no format for tools: both join the first message of the user",
		models: []string{"gemma-2", "gemma2", "gemma-3", "gemma3"},
		render: renderGemma, answer: func(r *Renderer) { r.gemmaHeader("model") }, reply: replyPlainly,
	}
	deepSeek3 = &style{
		name: "deepseek-v3", about: "DeepSeek V3; definitions of tools have no format there, and their JSON joins the system message",
		models: []string{"deepseek-v3", "deepseek-chat"},
		render: renderDeepSeek3, answer: func(*Renderer) {}, reply: replyDeepSeek3,
	}
	phi3 = &style{
		name: "phi3", about: "Phi 3 and 3.5; no format for tools, whose JSON joins the system message",
		models: []string{"phi-3", "phi3", "phi-3.5", "phi3.5"},
		render: renderPhi3, answer: func(r *Renderer) { r.phi3Header("<|assistant|>") }, reply: replyPlainly,
	}
)

func (r *Renderer) gemmaHeader(role string) {
	r.mark("<start_of_turn>")
	r.text(role, "\n")
}

func renderGemma(r *Renderer, c *Chat) {
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

func (r *Renderer) phi3Header(mark string) {
	r.mark(mark)
	r.text("\n")
}

func renderPhi3(r *Renderer, c *Chat) {
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

const (
	deepSeekUser, deepSeekAssistant, deepSeekEnd = "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"
	deepSeekCalls, deepSeekCallsEnd              = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
	deepSeekCall, deepSeekSep, deepSeekCallEnd   = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
	deepSeekOuts, deepSeekOutsEnd                = "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"
	deepSeekOut, deepSeekOutEnd                  = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"
)

// renderDeepSeek3 puts all messages of the system in front. Behind the results of a tool an answer has no header. A message with calls has them, or its text where it has both, as
// servers have it with the published template. That closes calls only where there are two; so does this.
func renderDeepSeek3(r *Renderer, c *Chat) {
	r.mark("<｜begin▁of▁sentence｜>")
	first := true
	for i := range c.Messages {
		if m := &c.Messages[i]; m.Role == "system" {
			if !first {
				r.text("\n\n")
			}
			r.text(m.Content)
			first = false
		}
	}
	if c.Tools != "" {
		if !first {
			r.text("\n\n")
		}
		r.text(c.Tools)
	}
	s := deepSeekState{r: r}
	for i := range c.Messages {
		s.message(&c.Messages[i])
	}
	if s.results {
		r.mark(deepSeekOutsEnd)
	} else {
		r.mark(deepSeekAssistant)
	}
}

// A deepSeekState is what the published template carries from one message to the next, and does not take back.
type deepSeekState struct {
	r                *Renderer
	called, returned bool // there was a call, a result
	results          bool // the last message was one
}

func (s *deepSeekState) message(m *Message) {
	calls := s.r.parseCalls(m.Calls)
	switch {
	case m.Role == "user":
		s.results = false
		s.r.mark(deepSeekUser)
		s.r.text(m.Content)
	case m.Role == "tool":
		s.result(m.Content)
	case m.Role == "assistant" && len(calls) > 0 && m.Content == "":
		s.results = false
		for _, c := range calls {
			s.call(c)
		}
	case m.Role == "assistant":
		if s.results {
			s.r.mark(deepSeekOutsEnd)
		} else {
			s.r.mark(deepSeekAssistant)
		}
		s.results = false
		s.r.text(m.Content)
		s.r.mark(deepSeekEnd)
	}
}

func (s *deepSeekState) call(c call) {
	if s.called {
		s.r.text("\n")
	} else {
		s.r.mark(deepSeekAssistant, deepSeekCalls)
	}
	s.r.deepSeekCall(c)
	if s.called {
		s.r.mark(deepSeekCallsEnd, deepSeekEnd)
	}
	s.called = true
}

func (r *Renderer) deepSeekCall(c call) {
	r.mark(deepSeekCall)
	r.text("function")
	r.mark(deepSeekSep)
	r.text(c.name, "\n```json\n", c.text, "\n```")
	r.mark(deepSeekCallEnd)
}

func (s *deepSeekState) result(content string) {
	s.results = true
	if s.returned {
		s.r.text("\n")
	} else {
		s.r.mark(deepSeekOuts)
	}
	s.returned = true
	s.r.mark(deepSeekOut)
	s.r.text(content)
	s.r.mark(deepSeekOutEnd)
}

func replyDeepSeek3(r *Renderer, content, calls string) {
	r.text(content)
	for i, c := range r.parseCalls(calls) {
		if i == 0 {
			r.mark(deepSeekCalls)
		} else {
			r.text("\n")
		}
		r.deepSeekCall(c)
	}
}
