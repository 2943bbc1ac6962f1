package token

import (
	"fmt"
	"strings"
)

// A Template renders a chat into the pieces that a chat endpoint tokenises: for each message a header, the content and a
// footer, and at the end the header of the answer that is wanted. Each piece is tokenised by itself, so the tokens of a
// content do not depend on what surrounds it, and an importer that meets the same content again may reuse them; the token
// sequence of a conversation begins with that of each of its earlier turns.
//
// An engine renders with the template of its model, in which the marks between messages are special tokens, and may merge the
// end of a header with the beginning of a content. So its count differs from ours by some tokens for each message.
//
// The zero Template is "none".
type Template struct {
	Name string

	open, close string // around the role
	footer      string
}

var templates = []Template{
	{Name: "none"},
	{Name: "chatml", open: "<|im_start|>", close: "\n", footer: "<|im_end|>\n"},
}

// OpenTemplate gives a template by its name. The error for an unknown name lists the known ones.
//
//   - "none" adds nothing: contents are taken one after the other.
//   - "chatml" is "<|im_start|>role\n", the content and "<|im_end|>\n", with "<|im_start|>assistant\n" before the answer. The
//     marks are encoded as the ordinary text they look like, not as special tokens, which the vocabularies here lack. The
//     simulated endpoint renders the same way, so that its counts can be checked to the token.
func OpenTemplate(name string) (Template, error) {
	names := make([]string, len(templates))
	for i, t := range templates {
		if t.Name == name {
			return t, nil
		}
		names[i] = t.Name
	}
	return Template{}, fmt.Errorf("unknown chat template %q: want one of %s", name, strings.Join(names, ", "))
}

// Header is the text before the content of a message.
func (t Template) Header(role string) string {
	if t.open == "" {
		return ""
	}
	return t.open + role + t.close
}

// Footer is the text behind the content of a message.
func (t Template) Footer() string { return t.footer }

// AppendMessage appends the tokens of one message: header, content and footer, each encoded by itself.
func (t Template) AppendMessage(dst []uint32, tok Tokenizer, role, content string) []uint32 {
	dst = tok.Append(dst, t.Header(role))
	dst = tok.Append(dst, content)
	return tok.Append(dst, t.footer)
}

// AppendGeneration appends the tokens that precede the assistant's answer.
func (t Template) AppendGeneration(dst []uint32, tok Tokenizer) []uint32 {
	return tok.Append(dst, t.Header("assistant"))
}
