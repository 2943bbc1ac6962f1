package token

// "none" and "chatml" take every content by itself, as they did before there were others: the tokens of a content do not depend
// on what surrounds it. Calls stand behind their content as JSON.
var (
	noTemplate = &style{
		name: "none", about: "nothing: the contents one after the other",
		render: func(r *Renderer, c *Chat) {
			r.alone(c.Tools)
			for i := range c.Messages {
				plainAnswer(r, c.Messages[i].Content, c.Messages[i].Calls)
			}
		},
		answer: func(*Renderer) {},
		reply:  plainAnswer,
	}
	chatML = &style{
		name: "chatml", about: "ChatML with its marks as ordinary text, as reprise serve counts; tools as JSON in a system message",
		render: func(r *Renderer, c *Chat) {
			if c.Tools != "" {
				chatMLMessage(r, "system", c.Tools, "")
			}
			for i := range c.Messages {
				m := &c.Messages[i]
				chatMLMessage(r, m.Role, m.Content, m.Calls)
			}
		},
		answer: func(r *Renderer) { r.alone(chatMLHeader("assistant")) },
		reply:  plainAnswer,
	}
)

func chatMLMessage(r *Renderer, role, content, calls string) {
	r.alone(chatMLHeader(role))
	plainAnswer(r, content, calls)
	r.alone("<|im_end|>\n")
}

// chatMLHeader is what stands before a content. The usual ones are not put together anew.
func chatMLHeader(role string) string {
	switch role {
	case "system":
		return "<|im_start|>system\n"
	case "user":
		return "<|im_start|>user\n"
	case "assistant":
		return "<|im_start|>assistant\n"
	case "tool":
		return "<|im_start|>tool\n"
	}
	return "<|im_start|>" + role + "\n"
}
