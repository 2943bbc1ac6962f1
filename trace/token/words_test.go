package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for name, size := range map[string]int{"cl100k_base": 7_294, "o200k_base": 10_483} {
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

// TestWordsRoundTrip: all words in order, then random sequences, each with and without the first space.
func TestWordsRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for _, name := range Names() {
		e := mustOpen(t, name)
		w := e.Words()
		check := func(words []int) {
			t.Helper()
			var want []uint32
			var text strings.Builder
			for _, i := range words {
				want = append(want, w.Spaced[i])
				text.WriteString(" " + w.Text[i])
			}
			if got := e.Append(nil, text.String()); !slices.Equal(got, want) {
				t.Errorf("%s: %d words behind spaces give %d tokens", name, len(words), len(got))
			}
			want[0] = w.Bare[words[0]]
			if got := e.Append(nil, text.String()[1:]); !slices.Equal(got, want) {
				t.Errorf("%s: %d words, the first without its space, give %d tokens", name, len(words), len(got))
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
}
