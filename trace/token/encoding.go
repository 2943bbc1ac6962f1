package token

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// An Encoding is one of tiktoken's encodings, or one that was read from a tokenizer.json. It is immutable and safe for
// concurrent use.
type Encoding struct {
	name   string
	split  splitter // nil where there are several steps, or one that is a regular expression
	steps  []step
	class  *classTable
	vocab  *vocab
	states sync.Pool // of *state
	words  func() *Words

	// What only a tokenizer.json may ask for.
	nfc    bool     // the text is normalised first
	spaces bool     // "▁" in the text is a space
	lead   lead     // when a space is put before the text
	before *matcher // added tokens to find in the text as it is, or nil
	after  *matcher // added tokens to find in the normalised text, or nil

	specials map[string]special // added tokens by their spelling
	marks    *matcher           // those that are special, which only templates make
}

// A lead says when a space is put before a text, or before what is left between added tokens.
type lead uint8

const (
	leadNone   lead = iota
	leadAlways      // the normaliser Prepend
	leadAbsent      // Metaspace "always": unless a space is there
	leadFirst       // Metaspace "first": at the start of the text, unless a space is there
)

func newEncoding(name string, v *vocab, split splitter) *Encoding {
	e := &Encoding{name: name, split: split, class: classes(), vocab: v}
	e.states.New = func() any { return new(state) }
	return e
}

// Name implements [Tokenizer]. For a tokenizer.json it is "tokenizer.json:" and the first 16 digits of the file's SHA-256:
// the same on every machine, whatever the file is called there.
func (e *Encoding) Name() string { return e.name }

// Append implements [Tokenizer]. Each byte that is not part of valid UTF-8 counts as one U+FFFD, as in a range over the
// string; such text is copied first. Nothing else allocates but dst, once the encoder is warm, unless a piece without any
// boundary is longer than some 50,000 bytes; one of 2 GiB is more than it can take. With a tokenizer.json, a text that its
// normaliser changes is copied too, the first word is where a space is put before it, and a split pattern without a splitter
// of its own (see [OpenFile]) allocates for each piece.
func (e *Encoding) Append(dst []uint32, text string) []uint32 { return e.append(dst, text, true) }

// append appends the ids of a text that stands at the beginning, or behind a special token.
func (e *Encoding) append(dst []uint32, text string, begin bool) []uint32 {
	if !utf8.ValidString(text) {
		text = valid(text)
	}
	st := e.states.Get().(*state)
	for at := 0; at < len(text); {
		start, end, id, ok := e.before.find(text, at)
		if !ok {
			dst = e.appendText(dst, st, text[at:], begin && at == 0)
			break
		}
		dst = e.appendText(dst, st, text[at:start], begin && at == 0)
		dst = append(dst, id)
		at = end
	}
	e.states.Put(st)
	return dst
}

// appendText normalises what is between the added tokens of a text, and then looks for others.
func (e *Encoding) appendText(dst []uint32, st *state, text string, first bool) []uint32 {
	if e.nfc {
		text = nfc(text)
	}
	if e.spaces {
		text = strings.ReplaceAll(text, "▁", " ")
	}
	if e.lead == leadAlways && e.after != nil && text != "" {
		text = " " + text
	}
	for at := 0; at < len(text); {
		start, end, id, ok := e.after.find(text, at)
		if !ok {
			return e.appendPlain(dst, st, text[at:], first && at == 0)
		}
		dst = e.appendPlain(dst, st, text[at:start], first && at == 0)
		dst = append(dst, id)
		at = end
	}
	return dst
}

// appendPlain encodes a text without added tokens. Where a space leads it, no more than the first piece is copied.
func (e *Encoding) appendPlain(dst []uint32, st *state, text string, first bool) []uint32 {
	if text != "" && e.leads(text[0], first) {
		end := len(text)
		if e.split != nil {
			end = e.split(e.class, text, 0)
		}
		dst = e.appendPieces(dst, st, " "+text[:end])
		text = text[end:]
	}
	return e.appendPieces(dst, st, text)
}

// leads reports whether a space is put before a text that begins with b.
func (e *Encoding) leads(b byte, first bool) bool {
	switch e.lead {
	case leadAlways:
		return e.after == nil
	case leadAbsent:
		return b != ' '
	case leadFirst:
		return first && b != ' '
	}
	return false
}

func (e *Encoding) appendPieces(dst []uint32, st *state, text string) []uint32 {
	if e.split == nil {
		return e.appendSteps(dst, st, text, e.steps)
	}
	for i := 0; i < len(text); {
		end := e.split(e.class, text, i)
		dst = st.append(dst, e.vocab, text[i:end])
		i = end
	}
	return dst
}

// valid replaces each invalid byte by U+FFFD. strings.ToValidUTF8 would replace a run of them by one.
func valid(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 2*utf8.UTFMax)
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// AppendText implements [Tokenizer]: it takes back what Append did, so that a space that was put before the text is left out.
// The ids of tiktoken's special tokens are unknown, as Append never gives them; those of a tokenizer.json stand for their
// spelling. The error names the position of the unknown id.
func (e *Encoding) AppendText(dst []byte, ids []uint32) ([]byte, error) {
	before := len(dst)
	for i, id := range ids {
		t := ""
		if int64(id) < int64(e.vocab.len()) {
			t = e.vocab.token(id)
		}
		if t == "" {
			return dst[:before], fmt.Errorf("token %d of %d is not in the vocabulary of %s", i+1, len(ids), e.name)
		}
		if i == 0 && e.lead != leadNone && t[0] == ' ' {
			t = t[1:]
		}
		dst = append(dst, t...)
	}
	return dst, nil
}

// Words gives the round-trip-stable vocabulary, built at the first call and shared by all: it must not be changed.
func (e *Encoding) Words() *Words { return e.words() }
