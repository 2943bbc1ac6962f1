package token

import (
	"fmt"
	"strings"
	"time"
)

// A Template says how a chat becomes the prompt that a model sees. [Template.Renderer] renders with it.
//
// The special tokens of a template, such as <|im_start|>, are single tokens where the tokenizer has them; where it lacks them
// it is not that of the model, and each counts as one token all the same. The text of a message is never more than text, even
// where it spells a special token. (A server of Hugging Face's makes a special token of that.)
//
// The zero Template is "none".
type Template struct {
	Name string

	style *style
	file  *fileTemplate
	auto  bool
}

// A Chat is what a template renders.
type Chat struct {
	Messages []Message
	Tools    string    // definitions that the request offers: a JSON list, or ""
	Model    string    // as the source spells it; the template "auto" goes by it
	Time     time.Time // of the request: some templates tell the model the date
}

// A Message is one message of a chat.
type Message struct {
	Role    string // system, user, assistant or tool
	Content string
	Calls   string // tool calls of the assistant: a JSON list in the shape of OpenAI's API, or ""
	CallID  string // of the call that a tool's message answers
	Name    string // of its tool
}

// A style is a template that is built in.
type style struct {
	name   string
	about  string
	models []string // what the names of its models have in them, for "auto": see [byModel]
	tools  bool     // it has a format for the definitions of tools
	render func(r *Renderer, c *Chat)
	answer func(r *Renderer)                        // what stands before the assistant's answer
	reply  func(r *Renderer, content, calls string) // the answer itself
}

// styles are the templates that are built in.
func styles() []*style {
	return []*style{noTemplate, chatML, qwen25, qwen3, llama2, llama3, llama31, llama32, mistral1, mistral3, gemma, deepSeek3, phi3, gptOSS}
}

// The names of templates that are no style.
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
//   - "none" adds nothing: contents are taken one after the other, behind the definitions of tools.
//   - "chatml" is "<|im_start|>role\n", the content and "<|im_end|>\n", with "<|im_start|>assistant\n" before the answer. The
//     marks are encoded as the ordinary text they look like, and each content by itself. The simulated endpoint renders the
//     same way, so that its counts can be checked to the token.
//   - "auto" is one of the others for each request, by the name of its model.
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

// For gives the template of a request by the name of its model: of "auto" the one that it chooses, of others themselves.
func (t Template) For(model string) Template {
	if !t.auto {
		return t
	}
	f := byModel(model)
	return Template{Name: f.name, style: f}
}

// byModel gives the style of a model. A name is known by what it has in it, in lower case and with hyphens; of several the
// longest decides, since llama-3.1 has llama-3 in it. A part that ends in a digit is not found before a point and another
// digit: qwen3.5 is no qwen3.
func byModel(model string) *style {
	name := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(model))
	best, length := noTemplate, 0
	for _, f := range styles() {
		for _, part := range f.models {
			if len(part) > length && hasPart(name, part) {
				best, length = f, len(part)
			}
		}
	}
	return best
}

func hasPart(name, part string) bool {
	for {
		_, rest, found := strings.Cut(name, part)
		if !found {
			return false
		}
		if !(len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) || rest != "" && isDigit(rest[0])) {
			return true
		}
		name = rest
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// AppendMessage appends the tokens of one message. It is for templates that render each message by itself: none and chatml.
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

// builtIn is the style of a template, or none.
func (t Template) builtIn() *style {
	if t.style == nil {
		return noTemplate
	}
	return t.style
}
