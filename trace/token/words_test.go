package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for name, size := range map[string]int{"cl100k_base": 7_294, "o200k_base": 10_483, "p50k_base": 3_901, "r50k_base": 3_901} {
		e := mustOpen(t, name)
		w := e.Words()
		if len(w.Text) != size || len(w.Spaced) != len(w.Text) || len(w.Bare) != len(w.Text) {
			t.Fatalf("%s: %d words, %d spaced, %d bare", name, len(w.Text), len(w.Spaced), len(w.Bare))
		}
		if !slices.IsSorted(w.Spaced) || w != e.Words() {
			t.Errorf("%s: the words are not in id order, or built twice", name)
		}
		// Every such token of the vocabulary is there.
		n := 0
		for id := range uint32(e.vocab.len()) {
			s := e.vocab.token(id)
			if len(s) > 2 && s[0] == ' ' && strings.Trim(s[1:], "abcdefghijklmnopqrstuvwxyz") == "" && len(e.Append(nil, s[1:])) == 1 {
				n++
			}
		}
		if n != len(w.Text) {
			t.Errorf("%s: %d words, want %d", name, len(w.Text), n)
		}
	}
}

func TestWordsRoundTrip(t *testing.T) {
	for _, name := range Names() {
		checkWords(t, mustOpen(t, name))
	}
	for _, f := range mustFamilies(t) {
		t.Run(f.Name, func(t *testing.T) { checkWords(t, f.encoding(t)) })
	}
}

// TestWordsLeftOut: what would not come back is not among the words.
func TestWordsLeftOut(t *testing.T) {
	spaced := [][2]string{{"a", "b"}, {"▁", "ab"}, {"c", "d"}, {"▁", "cd"}}
	level := [][2]string{{"a", "b"}, {" ", "ab"}, {"c", "d"}, {" ", "cd"}}
	added := byteLevelDoc(level...)
	added["added_tokens"] = []any{object{"id": 258, "content": "cd"}}
	cuts := byteLevelDoc(level...)
	cuts["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []any{
		object{"type": "Split", "pattern": object{"Regex": "[a-z]+"}, "behavior": "Isolated"}, cuts["pre_tokenizer"]}}
	bare := byteLevelDoc(level[0], level[1], [2]string{" ", "c"}, [2]string{" c", "d"})
	for name, tt := range map[string]struct {
		doc  object
		want []string
	}{
		"all":                       {spacesDoc("abcd", spaced...), []string{"ab", "cd"}},
		"a merge across a space":    {spacesDoc("abcd", append(spaced, [2]string{"ab", "▁cd"})...), []string{"cd"}},
		"an added token":            {added, []string{"ab"}},
		"no token without a space":  {bare, []string{"ab"}},
		"a cut between space, word": {cuts, nil},
	} {
		if got := mustParse(t, tt.doc).Words().Text; !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// checkWords encodes all words in random order, then random sequences, each with and without the first space. Where a space is
// always put before the text, the first word must have none.
func checkWords(t *testing.T, e *Encoding) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(9, 10))
	name, w := e.Name(), e.Words()
	if len(w.Text) == 0 {
		if !slices.ContainsFunc(e.steps, func(s step) bool { return s.pattern != nil }) {
			t.Errorf("%s: no words", name)
		}
		return // the pattern cuts between a space and a word
	}
	check := func(words []int) {
		t.Helper()
		var want []uint32
		var text strings.Builder
		for _, i := range words {
			want = append(want, w.Spaced[i])
			text.WriteString(" " + w.Text[i])
		}
		if got := e.Append(nil, text.String()); !slices.Equal(got, want) && e.lead != leadAlways {
			t.Errorf("%s: %d words behind spaces give %d tokens", name, len(words), len(got))
		}
		want[0] = w.Bare[words[0]]
		got := e.Append(nil, text.String()[1:])
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d words, the first without its space, give %d tokens", name, len(words), len(got))
		}
		if back, err := e.AppendText(nil, got); err != nil || string(back) != text.String()[1:] {
			t.Errorf("%s: %d words do not come back: %v", name, len(words), err)
		}
	}
	check(rnd.Perm(len(w.Text)))
	for i := range w.Text {
		check([]int{i, rnd.IntN(len(w.Text))})
	}
	for range 50 {
		words := make([]int, 1+rnd.IntN(2000))
		for i := range words {
			words[i] = rnd.IntN(len(w.Text))
		}
		check(words)
	}
}
