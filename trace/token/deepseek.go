package token

var deepSeek3 = &style{
	name: "deepseek-v3", about: "DeepSeek V3; definitions of tools have no format there, and their JSON joins the " +
		"system message",
	models: []string{"deepseek-v3", "deepseek-chat"},
	format: deepSeek3Format{},
}

const (
	deepSeekUser, deepSeekAssistant, deepSeekEnd = "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"
	deepSeekCalls, deepSeekCallsEnd              = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
	deepSeekCall, deepSeekSep, deepSeekCallEnd   = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
	deepSeekOuts, deepSeekOutsEnd                = "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"
	deepSeekOut, deepSeekOutEnd                  = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"
)

// A deepSeek3Format puts all messages of the system first. An answer after the results of a tool has no header. A
// message with both a text and calls keeps its text alone, as servers render it with the published template. That
// template closes calls only where there are two; so does this.
type deepSeek3Format struct{ textFormat }

func (deepSeek3Format) render(r *Renderer, c *Chat) {
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
	// The published template carries these from one message to the next, and never resets the first two.
	called, returned := false, false // there was a call, a result
	header := deepSeekAssistant      // the mark before an answer; another after results
	for i := range c.Messages {
		m := &c.Messages[i]
		calls := r.parseCalls(m.Calls)
		switch {
		case m.Role == "user":
			header = deepSeekAssistant
			r.mark(deepSeekUser)
			r.text(m.Content)
		case m.Role == "tool":
			header = deepSeekOutsEnd
			if returned {
				r.text("\n")
			} else {
				r.mark(deepSeekOuts)
			}
			returned = true
			r.mark(deepSeekOut)
			r.text(m.Content)
			r.mark(deepSeekOutEnd)
		case m.Role == "assistant" && len(calls) > 0 && m.Content == "":
			header = deepSeekAssistant
			for _, call := range calls {
				if called {
					r.text("\n")
				} else {
					r.mark(deepSeekAssistant, deepSeekCalls)
				}
				r.deepSeekCall(call)
				if called {
					r.mark(deepSeekCallsEnd, deepSeekEnd)
				}
				called = true
			}
		case m.Role == "assistant":
			r.mark(header)
			header = deepSeekAssistant
			r.text(m.Content)
			r.mark(deepSeekEnd)
		}
	}
	r.mark(header)
}

func (r *Renderer) deepSeekCall(c call) {
	r.mark(deepSeekCall)
	r.text("function")
	r.mark(deepSeekSep)
	r.text(c.name, "\n```json\n", c.text, "\n```")
	r.mark(deepSeekCallEnd)
}

func (deepSeek3Format) reply(r *Renderer, content, calls string) {
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
