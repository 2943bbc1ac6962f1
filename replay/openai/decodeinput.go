package openai

// asked reads the member that holds what is asked, or keeps it as a further field where
// it means nothing to this kind of request.
func (d *decoder) asked(name string) {
	switch {
	case name == "messages" && d.req.Kind == Completion:
		d.messages(name)
	case name == "prompt" && d.req.Kind == Completion:
		d.prompt(name)
	case name == "input" && d.req.Kind == Embedding:
		d.prompt(name)
	case name == "input" && d.req.Kind == Response:
		d.input()
	case name == "instructions" && d.req.Kind == Response:
		d.instructions = d.text(name)
	default:
		d.other(name)
	}
}

// input reads what a response is to: a text, or messages.
func (d *decoder) input() {
	d.hasPrompt = true
	if d.peek() != '"' {
		d.messages("input")
		return
	}
	d.req.Messages = []Message{{Role: "user", Content: d.text("input")}}
}

// complete checks that something was asked, once all of the body was read.
func (d *decoder) complete() {
	switch {
	case d.req.Kind == Completion && (d.req.Messages != nil) == d.hasPrompt:
		d.refuse("", "must have either messages or a prompt")
	case d.req.Kind != Completion && !d.hasPrompt:
		d.refuse("", "must have an input")
	case d.instructions != nil:
		d.req.Messages = append([]Message{{Role: "system", Content: d.instructions}}, d.req.Messages...)
	}
}
