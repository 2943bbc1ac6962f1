package token

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"reprise/trace/token/internal/jinja"
)

// A Template says how a chat becomes the prompt that a model sees. [Template.Renderer] renders with it.
//
// The special tokens of a template, such as <|im_start|>, are single tokens where the tokenizer has them. A tokenizer
// that lacks them is not that of the model, and each still counts as one token. The text of a message stays text, even
// where it spells a special token. (A server of Hugging Face's makes a special token of that.)
//
// The zero Template is "none".
type Template struct {
	Name string // what trace metadata records, such as "qwen3"

	style *style
	file  *fileTemplate
	auto  bool
}

// A Chat is what a template renders.
type Chat struct {
	Messages []Message
	Tools    string    // definitions that the request offers: a JSON list, or ""
	Model    string    // as the source spells it; the template "auto" chooses by it
	Time     time.Time // of the request: some templates tell the model the date
}

// beginsWithSystem reports whether the first message is one of the system.
func (c *Chat) beginsWithSystem() bool { return len(c.Messages) > 0 && c.Messages[0].Role == "system" }

// bytes is how much text a chat has.
func (c *Chat) bytes() int {
	n := len(c.Tools)
	for i := range c.Messages {
		n += len(c.Messages[i].Content) + len(c.Messages[i].Calls)
	}
	return n
}

// systemPrefix splits off the message of the system that begins a chat and appends the JSON of tools to it, for
// families without a format for tools.
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
	models []string // parts of the names of its models, for "auto": see [byModel]
	tools  bool     // it has a format for the definitions of tools
	format
}

// A format writes a chat as the published template of a family of models does.
type format interface {
	render(r *Renderer, c *Chat)
	answer(r *Renderer)                       // the mark before the assistant's answer
	reply(r *Renderer, content, calls string) // the answer itself
}

// A textFormat is for families to embed that have no mark before the answer and no format for calls.
type textFormat struct{}

func (textFormat) answer(*Renderer) {}

func (textFormat) reply(r *Renderer, content, calls string) { r.text(content, calls) }

// builtIn is the style of a template, or "none".
func (t Template) builtIn() *style {
	if t.style == nil {
		return noTemplate
	}
	return t.style
}

// A Renderer renders chats for one goroutine. It remembers the JSON of recent tools and calls, since the turns of a
// conversation repeat them, and keeps it in memory as long as it lives.
type Renderer struct {
	t      Template
	tok    Tokenizer
	marks  map[string]Piece
	pieces []Piece

	tools map[string][]*jinja.Dict
	calls map[string][]call
	size  int // bytes of JSON in tools and calls
	auto  map[string]*style
	scope *fileScope
}

// maxRemembered bounds the JSON that a Renderer remembers, in bytes.
const maxRemembered = 4 << 20

// Renderer makes a renderer for prompts that tok encodes.
func (t Template) Renderer(tok Tokenizer) *Renderer { return &Renderer{t: t, tok: tok} }

// Render renders a chat up to the beginning of the assistant's answer. The pieces are valid until the next call. Only
// templates from a file fail; the error quotes nothing of the chat.
func (r *Renderer) Render(c *Chat) ([]Piece, error) {
	r.pieces = r.pieces[:0]
	if r.t.file != nil {
		err := r.renderFile(c)
		return r.pieces, err
	}
	f := r.style(c.Model)
	f.render(r, c)
	f.answer(r)
	return r.pieces, nil
}

// Reply renders an answer of the assistant for the model, as it follows the pieces of a chat.
func (r *Renderer) Reply(model, content, calls string) []Piece {
	r.pieces = r.pieces[:0]
	f := noTemplate
	if r.t.file == nil {
		f = r.style(model)
	}
	f.reply(r, content, calls)
	return r.pieces
}

// Name is the name of the template for the chats of a model: of "auto", the one that it chooses.
func (r *Renderer) Name(model string) string {
	if r.t.auto {
		return r.style(model).name
	}
	return cmp.Or(r.t.Name, noTemplate.name)
}

// Foreign reports whether the tokenizer lacks special tokens of the template, and so is not that of its models. It is
// false for "auto" and for templates from a file, where this is unknown.
func (t Template) Foreign(tok Tokenizer) bool {
	if t.style == nil {
		return false
	}
	pieces, err := t.Renderer(tok).Render(&Chat{Messages: []Message{{Role: "user"}, {Role: "assistant"}}})
	return err == nil && slices.ContainsFunc(pieces, func(p Piece) bool { return p.id >= absent })
}

// style is the style of the template, or the one that "auto" chooses for a model.
func (r *Renderer) style(model string) *style {
	if !r.t.auto {
		return r.t.builtIn()
	}
	f, ok := r.auto[model]
	if !ok {
		f = byModel(model)
		if r.auto == nil || len(r.auto) > 1000 {
			r.auto = make(map[string]*style)
		}
		r.auto[model] = f
	}
	return f
}

// mark adds special tokens.
func (r *Renderer) mark(spellings ...string) {
	for _, s := range spellings {
		p, ok := r.marks[s]
		if !ok {
			p = markPiece(r.tok, s)
			if r.marks == nil {
				r.marks = make(map[string]Piece)
			}
			r.marks[s] = p
		}
		r.pieces = append(r.pieces, p)
	}
}

// text adds text that continues the text before it.
func (r *Renderer) text(parts ...string) {
	for _, s := range parts {
		if s != "" {
			r.pieces = append(r.pieces, Piece{Text: s})
		}
	}
}

// alone adds text that is encoded by itself.
func (r *Renderer) alone(s string) {
	if s != "" {
		r.pieces = append(r.pieces, Piece{Text: s, Alone: true})
	}
}

// A call is a call of a tool.
type call struct {
	id, name  string
	function  *jinja.Dict
	arguments any    // a Dict where they are an object
	json      string // of the arguments, in the manner of Python
	text      string // of the arguments as the source has it
}

// parseCalls reads the calls of a message. Arguments in a string of JSON are decoded, as servers do before they render.
// A text that is not a list of calls gives none.
func (r *Renderer) parseCalls(text string) []call {
	if found, ok := r.calls[text]; ok {
		return found
	}
	var calls []call
	v, err := jinja.Decode(text)
	list, _ := v.(*jinja.List)
	if err == nil && list != nil {
		for _, item := range list.Items {
			if d, ok := item.(*jinja.Dict); ok {
				calls = append(calls, newCall(d))
			}
		}
	}
	r.forget(len(text))
	r.calls[text] = calls
	return calls
}

func newCall(d *jinja.Dict) call {
	c := call{function: d}
	c.id = stringAt(d, "id")
	if inner, ok := get(d, "function").(*jinja.Dict); ok {
		c.function = inner
	}
	c.name = stringAt(c.function, "name")
	c.arguments = get(c.function, "arguments")
	if s, ok := c.arguments.(string); ok {
		c.text = s
		if v, err := jinja.Decode(s); err == nil {
			c.arguments = v
		} else if strings.TrimSpace(s) == "" {
			c.arguments = jinja.NewDict()
		}
	}
	// The name comes first, as APIs have it, and the source may not.
	function := jinja.NewDict().Set("name", c.name).Set("arguments", c.arguments)
	for _, k := range c.function.Keys() {
		if k != "name" && k != "arguments" {
			function.Set(k, get(c.function, k))
		}
	}
	c.function = function
	c.json, _ = jinja.JSON(c.arguments)
	c.text = cmp.Or(c.text, c.json)
	return c
}

func get(d *jinja.Dict, key string) any {
	v, _ := d.Get(key)
	return v
}

func stringAt(d *jinja.Dict, key string) string {
	s, _ := get(d, key).(string)
	return s
}

// parseTools reads the definitions of tools.
func (r *Renderer) parseTools(text string) []*jinja.Dict {
	if text == "" {
		return nil
	}
	if found, ok := r.tools[text]; ok {
		return found
	}
	var tools []*jinja.Dict
	v, err := jinja.Decode(text)
	if list, ok := v.(*jinja.List); ok && err == nil {
		for _, item := range list.Items {
			if d, ok := item.(*jinja.Dict); ok {
				tools = append(tools, d)
			}
		}
	}
	r.forget(len(text))
	r.tools[text] = tools
	return tools
}

// forget makes room for a text to be remembered.
func (r *Renderer) forget(size int) {
	if r.size += size; r.size > maxRemembered || r.calls == nil {
		r.calls, r.tools, r.size = make(map[string][]call), make(map[string][]*jinja.Dict), size
	}
}

// dumps is a value as Python writes it as JSON.
func dumps(v any) string {
	s, _ := jinja.JSON(v)
	return s
}

// isSpace is white space to Python.
func isSpace(r rune) bool { return jinja.IsSpace(r) }

// strip takes the white space around a text, as Python's str.strip and Jinja's trim do.
func strip(s string) string { return strings.TrimFunc(s, isSpace) }
