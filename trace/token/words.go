package token

import (
	"slices"
	"strings"
)

// Words is a round-trip-stable vocabulary: the words (some are only stems or syllables) of two or more letters a–z for
// which both the word and the word after a space are single tokens: 7,294 in cl100k_base, 10,483 in o200k_base, 3,901
// in p50k_base and r50k_base. A text of such words, each after a space, always encodes to exactly their Spaced ids,
// whatever their number and order: the split patterns cut before every space that a letter follows, and a piece that is
// a token is never cut further. So a prompt can be written with an exact number of tokens, and cut between any two.
// Sequences of ids drawn from a whole vocabulary lack this: decoded and encoded again, few beyond a hundred tokens come
// back.
//
// The first word of a text may stand without its space, and is then its Bare id, since many chat templates trim.
//
// For a tokenizer.json the same holds, with these differences:
//
//   - Where a space is put before every text (Llama 2, Mistral), the word without its space is the same token as after one:
//     Bare equals Spaced, and more words qualify. The first word must then stand without its space, as a space more is a
//     token more, unless the file adds one only where there is none (Metaspace).
//   - Where merges reach across the beginning of words, or added tokens are made of letters, the words concerned are left
//     out.
//   - With a split pattern that has no splitter of its own the words are tried, all in one text; there are none if its pieces
//     do not keep a space with the word after it.
//
// The slices have one length, which may be 0 for a tokenizer.json; the index is the number of the word. Words are in
// the order of their Spaced ids, which is roughly that of their frequency.
type Words struct {
	Spaced []uint32 // id of " " + Text[i]
	Bare   []uint32 // id of Text[i]
	Text   []string
}

// Only are the words of these numbers, in their order.
func (w *Words) Only(numbers []int) *Words {
	some := new(Words)
	for _, i := range numbers {
		some.Spaced, some.Bare = append(some.Spaced, w.Spaced[i]), append(some.Bare, w.Bare[i])
		some.Text = append(some.Text, w.Text[i])
	}
	return some
}

// findWords finds the words of an encoding; j is nil for tiktoken's. Words that something else in a tokenizer.json
// interferes with are left out: merges across a space, an added token, a pattern that cuts words. The rest is tried in
// one text; if that does not come back, there are no words.
func findWords(e *Encoding, j *joints) *Words {
	v, w := e.vocab, new(Words)
	for id := range uint32(v.len()) {
		t := v.token(id)
		if t == "" || t[0] != ' ' || len(t) < 3 || !isLower(t[1:]) || v.chars && j[t[len(t)-1]][' '] {
			continue
		}
		if j == nil { // a piece that is a token is never cut
			if bare, ok := v.find(t[1:], v.hash(t[1:])); ok {
				w.Spaced, w.Bare, w.Text = append(w.Spaced, id), append(w.Bare, bare), append(w.Text, t[1:])
			}
			continue
		}
		ids := e.Append(nil, t[1:]+t+t)
		if len(ids) == 3 && ids[1] == id && ids[2] == id {
			w.Spaced, w.Bare, w.Text = append(w.Spaced, id), append(w.Bare, ids[0]), append(w.Text, t[1:])
		}
	}
	if len(w.Text) == 0 {
		return w
	}
	all := append([]uint32{w.Bare[0]}, w.Spaced[1:]...)
	if !slices.Equal(e.Append(nil, strings.Join(w.Text, " ")), all) {
		return new(Words)
	}
	return w
}
