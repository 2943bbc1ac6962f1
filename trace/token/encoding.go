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

// Name implements [Tokenizer]. For a tokenizer.json it is "tokenizer.json:" and the first 16 digits of the file's
// SHA-256: the same on every machine, whatever the file is called there.
func (e *Encoding) Name() string { return e.name }

// Append implements [Tokenizer]. Each byte that is not part of valid UTF-8 counts as one U+FFFD, as in a range over the
// string; such text is copied first. Nothing else allocates but dst, once the encoder is warm, unless a piece without
// any boundary is longer than some 50,000 bytes; one of 2 GiB is more than it can take. With a tokenizer.json, a text
// that its normaliser changes is copied too, the first word is where a space is put before it, and a split pattern
// without a splitter of its own (see [OpenAny]) allocates for each piece.
func (e *Encoding) Append(dst []uint32, text string) []uint32 { return e.append(dst, text, true) }

// append appends the ids of a text; begin says that nothing but special tokens stands before it.
func (e *Encoding) append(dst []uint32, text string, begin bool) []uint32 {
	if !utf8.ValidString(text) {
		// Each invalid byte becomes U+FFFD. strings.ToValidUTF8 would replace a run of them by one.
		var b strings.Builder
		b.Grow(len(text) + 2*utf8.UTFMax)
		for _, r := range text {
			b.WriteRune(r)
		}
		text = b.String()
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
	text = e.normalise(text)
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

// normalise does what the normaliser of a tokenizer.json does, except for a space before the text.
func (e *Encoding) normalise(text string) string {
	if e.nfc {
		text = nfc(text)
	}
	if e.spaces {
		text = strings.ReplaceAll(text, "▁", " ")
	}
	return text
}

// appendPlain encodes a text without added tokens. Where a space leads it, no more than the first piece is copied.
func (e *Encoding) appendPlain(dst []uint32, st *state, text string, first bool) []uint32 {
	space := false // one is put before the text
	switch e.lead {
	case leadAlways:
		space = e.after == nil
	case leadAbsent:
		space = !strings.HasPrefix(text, " ")
	case leadFirst:
		space = first && !strings.HasPrefix(text, " ")
	}
	if space && text != "" {
		end := len(text)
		if e.split != nil {
			end = e.split(e.class, text, 0)
		}
		dst = e.appendPieces(dst, st, " "+text[:end])
		text = text[end:]
	}
	return e.appendPieces(dst, st, text)
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

// AppendText implements [Tokenizer]: it takes back what Append did, so that a space that was put before the text is
// left out. The ids of tiktoken's special tokens are unknown, as Append never gives them; those of a tokenizer.json
// stand for their spelling. The error names the position of the unknown id.
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

// appendSteps cuts s by the first of the steps, the pieces by the others, and encodes what comes out.
func (e *Encoding) appendSteps(dst []uint32, st *state, s string, steps []step) []uint32 {
	switch {
	case s == "":
		return dst
	case len(steps) == 0:
		return st.append(dst, e.vocab, s)
	case steps[0].split != nil:
		for i := 0; i < len(s); {
			end := steps[0].split(e.class, s, i)
			dst = e.appendSteps(dst, st, s[i:end], steps[1:])
			i = end
		}
		return dst
	}
	// The engine counts in characters. It fails only if a time limit was set.
	at, seen := 0, 0 // bytes and characters so far
	m, err := steps[0].pattern.FindStringMatch(s)
	for ; err == nil && m != nil; m, err = steps[0].pattern.FindNextMatch(m) {
		start := at + skip(s[at:], m.Index-seen)
		end := start + skip(s[start:], m.Length)
		dst = e.appendSteps(dst, st, s[at:start], steps[1:])
		dst = e.appendSteps(dst, st, s[start:end], steps[1:])
		at, seen = end, m.Index+m.Length
	}
	return e.appendSteps(dst, st, s[at:], steps[1:])
}

// skip is the length in bytes of the first n characters of s.
func skip(s string, n int) (size int) {
	for ; n > 0; n-- {
		_, w := utf8.DecodeRuneInString(s[size:])
		size += w
	}
	return size
}
