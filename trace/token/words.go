package token

// Words is a round-trip-stable vocabulary: the words (some are only stems or syllables) of two or more letters a–z for which
// both the word and the word behind a space are single tokens: 7,294 in cl100k_base, 10,483 in o200k_base. A text of such words, each behind a space, always encodes to exactly their Spaced ids, whatever
// their number and order: the split patterns cut before every space that a letter follows, and a piece that is a token is
// never cut further. So a prompt can be written with an exact number of tokens, and cut between any two. Sequences of ids
// drawn from a whole vocabulary lack this: decoded and encoded again, few beyond a hundred tokens come back.
//
// The first word of a text may stand without its space, and is then its Bare id, since many chat templates trim.
//
// The slices have one length; the index is the number of the word. Words are in the order of their Spaced ids, which is
// roughly that of their frequency.
type Words struct {
	Spaced []uint32 // id of " " + Text[i]
	Bare   []uint32 // id of Text[i]
	Text   []string
}

func newWords(v *vocab) *Words {
	w := new(Words)
	for id := range uint32(v.len()) {
		t := v.token(id)
		if t[0] != ' ' || !isWord(t[1:]) {
			continue
		}
		if bare := v.rank(t[1:]); bare != none {
			w.Spaced = append(w.Spaced, id)
			w.Bare = append(w.Bare, bare)
			w.Text = append(w.Text, t[1:])
		}
	}
	return w
}

// isWord reports whether s is [a-z]{2,}.
func isWord(s string) bool {
	for _, b := range []byte(s) {
		if b < 'a' || b > 'z' {
			return false
		}
	}
	return len(s) >= 2
}
