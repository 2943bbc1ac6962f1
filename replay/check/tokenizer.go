package check

import (
	"context"
	"strings"

	"reprise/replay/client"
	"reprise/trace/token"
)

// Tokens says how a tokenizer and the server count the same texts.
type Tokens struct {
	Name    string `json:"name"`
	Guessed bool   `json:"guessed"` // nobody named it
	Texts   []Text `json:"texts,omitempty"`
	Family  string `json:"likely,omitempty"` // built-in one that counts as the server, where this differs
}

// A Text is what was counted on both sides.
type Text struct {
	Kind     string   `json:"text"`
	Tokens   int      `json:"tokens"`  // by the tokenizer
	Counted  *int     `json:"counted"` // by the server, without its template; null where it refused the text
	OffShare *float64 `json:"off_by"`  // counted ÷ tokens − 1
	content  string
}

// texts are what tokenizers cut into different numbers of tokens.
func texts() []Text {
	return []Text{
		{Kind: "English", content: "The committee had not expected the results to arrive before Thursday, yet " +
			"everyone agreed that the measurements were trustworthy, unusually precise and surprisingly inexpensive."},
		{Kind: "code", content: "func (s *Server) handle(w http.ResponseWriter, r *http.Request) {\n\tif err := " +
			"json.NewDecoder(r.Body).Decode(&req); err != nil {\n\t\treturn fmt.Errorf(\"line %d: %w\", i+1, " +
			"err)\n\t}\n}"},
		{Kind: "Chinese and Japanese", content: "人工智能正在改变我们的工作方式，但是测量必须可靠。東京の図書館では、毎日多くの人が静かに本を読んでいます。"},
		{Kind: "digits", content: "3141592653589793238462643383279502884197169399375105820974944592"},
		{Kind: "white space", content: "a" + strings.Repeat(" ", 24) + "b\n\n\n\n" + strings.Repeat("\t", 6) + "c" +
			strings.Repeat("\n    ", 6) + "d"},
	}
}

// exactWithin is how far two counts of a text may be apart where it meets the template.
const exactWithin = 1

// compareTokenizer has the server count the texts.
func (r *Report) compareTokenizer(ctx context.Context, h *client.HTTP, api string, tok *token.Encoding, guessed bool) {
	t := Tokens{Name: tok.Name(), Guessed: guessed, Texts: texts()}
	for i := range t.Texts {
		text := &t.Texts[i]
		text.Tokens = len(tok.Append(nil, text.content))
		if n, err := h.Count(ctx, api, text.content); err == nil {
			off := float64(n)/float64(text.Tokens) - 1
			text.Counted, text.OffShare = &n, &off
		}
	}
	if t.differs(tokens) {
		t.Family = t.family()
	}
	r.Tokenizer = t
}

// differs says that the server counts some text otherwise than this.
func (t *Tokens) differs(count func(*Text) int) bool {
	for i := range t.Texts {
		n := count(&t.Texts[i])
		if counted := t.Texts[i].Counted; counted != nil && max(*counted-n, n-*counted) > exactWithin {
			return true
		}
	}
	return false
}

// tokens is how a text is counted by the tokenizer that is checked.
func tokens(t *Text) int { return t.Tokens }

// family is the built-in tokenizer that counts every text as the server does, or "".
func (t *Tokens) family() string {
	for _, name := range token.Names() {
		if tok, err := token.Open(name); err == nil &&
			!t.differs(func(text *Text) int { return len(tok.Append(nil, text.content)) }) {
			return name
		}
	}
	return ""
}
