package token

import (
	"fmt"
	"strings"
)

// styles are the templates that are built in.
func styles() []*style {
	return []*style{noTemplate, chatML, qwen25, qwen3, llama2, llama3, llama31, llama32, mistral1, mistral3, gemma,
		deepSeek3, phi3, gptOSS}
}

// autoName is the one name that is of no style.
const autoName = "auto"

// TemplateNames lists the templates that [OpenTemplate] knows.
func TemplateNames() []string {
	var names []string
	for _, f := range styles() {
		names = append(names, f.name)
	}
	return append(names, autoName)
}

// OpenTemplate gives a template by its name. The error for an unknown name lists the known ones.
//
//   - "none" adds nothing: the definitions of tools and the contents follow one another.
//   - "chatml" is "<|im_start|>role\n", the content and "<|im_end|>\n", with "<|im_start|>assistant\n" before the answer. The
//     marks are encoded as the ordinary text they look like, and each content by itself. The simulated endpoint renders the
//     same way, so that its counts can be checked to the token.
//   - "auto" chooses one of the others for each request, by the name of its model.
//   - The others give, token for token, what the published template of their models gives. Chats that
//     a published template refuses, such as two messages of the user in a row, are rendered message by message.
func OpenTemplate(name string) (Template, error) {
	if name == autoName {
		return Template{Name: name, auto: true}, nil
	}
	for _, f := range styles() {
		if f.name == name {
			return Template{Name: name, style: f}, nil
		}
	}
	return Template{}, fmt.Errorf("unknown chat template %q: want one of %s", name, strings.Join(TemplateNames(), ", "))
}

// For gives the template of a request by the name of its model: the one that "auto" chooses, or t itself.
func (t Template) For(model string) Template {
	if !t.auto {
		return t
	}
	f := byModel(model)
	return Template{Name: f.name, style: f}
}

// byModel gives the style of a model: the one with the longest part that the name contains, in lower case and with
// hyphens, since llama-3.1 contains llama-3. A part is not found before another digit, nor before a point and a digit:
// qwen3.5 is no qwen3.
func byModel(model string) *style {
	name := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(model))
	best, length := noTemplate, 0
	for _, f := range styles() {
		for _, part := range f.models {
			if len(part) <= length {
				continue
			}
			for _, rest, found := strings.Cut(name, part); found; _, rest, found = strings.Cut(rest, part) {
				if !(len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) || rest != "" && isDigit(rest[0])) {
					best, length = f, len(part)
					break
				}
			}
		}
	}
	return best
}

// AppendMessage appends the tokens of one message. It is for templates that render each message by itself: none and
// chatml.
func (t Template) AppendMessage(dst []uint32, tok Tokenizer, role, content string) []uint32 {
	r := t.Renderer(tok)
	t.builtIn().render(r, &Chat{Messages: []Message{{Role: role, Content: content}}})
	return AppendPieces(dst, tok, r.pieces, len(dst) == 0)
}

// AppendGeneration appends the tokens that precede the assistant's answer, for the same templates.
func (t Template) AppendGeneration(dst []uint32, tok Tokenizer) []uint32 {
	r := t.Renderer(tok)
	t.builtIn().answer(r)
	return AppendPieces(dst, tok, r.pieces, len(dst) == 0)
}

// Marked is "none" with n tokens before each message and before the answer: for a template of which nothing is known
// but how many tokens a message has beside its content.
func Marked(n int) Template {
	return Template{style: &style{name: noTemplate.name, format: markedFormat{n: n}}}
}

type markedFormat struct {
	plainFormat
	n int
}

func (f markedFormat) render(r *Renderer, c *Chat) {
	r.alone(c.Tools)
	for i := range c.Messages {
		f.answer(r)
		r.plainMessage(c.Messages[i].Content, c.Messages[i].Calls)
	}
}

func (f markedFormat) answer(r *Renderer) {
	for range f.n {
		r.mark("<|mark|>")
	}
}

// "none" and "chatml" encode every content by itself: its tokens do not depend on what surrounds it. Calls follow their
// content as JSON.
var (
	noTemplate = &style{name: "none", about: "nothing: the contents one after the other", format: plainFormat{}}
	chatML     = &style{
		name: "chatml", about: "ChatML with its marks as ordinary text, as reprise serve counts; tools as JSON in a " +
			"system message",
		format: chatMLFormat{},
	}
)

type plainFormat struct{}

func (plainFormat) render(r *Renderer, c *Chat) {
	r.alone(c.Tools)
	for i := range c.Messages {
		r.plainMessage(c.Messages[i].Content, c.Messages[i].Calls)
	}
}

func (plainFormat) answer(*Renderer) {}

func (plainFormat) reply(r *Renderer, content, calls string) { r.plainMessage(content, calls) }

func (r *Renderer) plainMessage(content, calls string) {
	r.alone(content)
	r.text(calls)
}

type chatMLFormat struct{ plainFormat }

func (chatMLFormat) render(r *Renderer, c *Chat) {
	if c.Tools != "" {
		r.chatMLMessage("system", c.Tools, "")
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		r.chatMLMessage(m.Role, m.Content, m.Calls)
	}
}

func (chatMLFormat) answer(r *Renderer) { r.alone(chatMLHeader("assistant")) }

func (r *Renderer) chatMLMessage(role, content, calls string) {
	r.alone(chatMLHeader(role))
	r.plainMessage(content, calls)
	r.alone("<|im_end|>\n")
}

// chatMLHeader is the text before a content. The usual ones allocate nothing.
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
