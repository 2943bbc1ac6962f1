package prompt

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"reprise/trace"
	"reprise/trace/block"
)

func TestReadCorpus(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	src := "Dropped. One two,\nthree <|endoftext|> four  five" + strings.Repeat(" 七", 3) + " " + strings.Repeat("x", 2000) + " six\n"
	text, info, err := ReadCorpus(e, strings.NewReader(src))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, from := range text.corpus.starts {
		to := text.corpus.tokens
		if i+1 < len(text.corpus.starts) {
			to = int(text.corpus.starts[i+1])
		}
		got = append(got, text.lex.text[text.lex.ends[int(text.words)+int(from)]:text.lex.ends[int(text.words)+to]])
	}
	// Left out are what precedes the first space before a letter, the pieces with
	// a special token, with a long word, and with a line end at their end.
	want := []string{" One", " four  five", " 七", " 七", " 七"}
	if !slices.Equal(got, want) {
		t.Errorf("got pieces %q, want %q", got, want)
	}
	digest, err := CorpusDigest(strings.NewReader(src))
	if err != nil || info.Digest != digest || info.Bytes != int64(len(src)) || info.Pieces != len(want) ||
		info.Kept != int64(len(strings.Join(want, ""))) || info.Tokens != int64(text.corpus.tokens) {
		t.Errorf("%+v, %s, %v", info, digest, err)
	}
}

func TestReadCorpusRefuses(t *testing.T) {
	e := mustEncoding(t, "cl100k_base")
	for name, c := range map[string]struct {
		src  io.Reader
		want string
	}{
		"empty":         {strings.NewReader(""), "no words"},
		"no words":      {strings.NewReader("1234 5678\n\n90"), "no words"},
		"not UTF-8":     {strings.NewReader(" a \xff b"), "not UTF-8"},
		"broken medium": {iotest.ErrReader(errors.New("broken medium")), "broken medium"},
	} {
		if _, _, err := ReadCorpus(e, c.src); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
	for n, want := range map[int64]string{9: "", 8: "more than 8 bytes"} {
		_, _, err := readCorpus(strings.NewReader(" one two "), n)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("9 bytes of %d: got %v, want %q", n, err, want)
		}
	}
}

// Slices of whatever a corpus holds come back, at every length, and behind the
// three words of its head a block is a slice and a few words at its end.
func TestCorpusIsExactWhateverItHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	alphabet := []rune("aaeinst        ETÀß東ñ'’.,;:!?-–_/\\\"()[]{}<>|#@&%$€01239\t\n\r\u00a0\u2003\u0301е́ж😀ק\x00\x7f")
	for _, e := range encodings(t) {
		if len(e.Words().Text) == 0 {
			continue
		}
		for range 10 {
			src := make([]rune, 6000)
			for i := range src {
				src[i] = alphabet[rng.IntN(len(alphabet))]
			}
			text, info, err := ReadCorpus(e, strings.NewReader(string(src)))
			if err != nil {
				t.Fatalf("%s: %v", e.Name(), err)
			}
			if info.Pieces < 20 {
				t.Errorf("%s: %d pieces only", e.Name(), info.Pieces)
			}
			p, err := New(e.Words(), rng.Uint64(), 64, WithText(text))
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; n < 300; n++ {
				r := &trace.Request{InputTokens: int32(n), Blocks: []uint64{rng.Uint64N(1 << 30), 1, 2, 3, 4}[:block.Count(int(n), 64)]}
				checkEncodes(t, e, p, r, n)
			}
		}
	}
}

func TestCorpusFillsUp(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	// Pieces of one token, and a few of four.
	text, _, err := ReadCorpus(e, strings.NewReader(strings.Repeat(" time and tide; and and !?!?=> and", 50)))
	if err != nil {
		t.Fatal(err)
	}
	p := newTestPrompter(t, "o200k_base", 32, WithText(text))
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		before := p.Filled()
		prompt, err := p.Prompt(rowOf(rng, 32, 32), nil)
		if err != nil {
			t.Fatal(err)
		}
		// The last words of the prompt that are not of the corpus are the fill.
		words := strings.Fields(string(prompt))
		own := func(w string) bool {
			return slices.Contains([]string{"time", "and", "tide;", "!?!?=>"}, w)
		}
		fill := 0
		for !own(words[len(words)-1-fill]) {
			fill++
		}
		if got := p.Filled() - before; got != int64(fill) || fill > 5 {
			t.Fatalf("%d tokens are said to be filled, %d are", got, fill)
		}
	}
	if p.Filled() == 0 {
		t.Error("nothing was filled")
	}
}

// Two blocks may be slices of one place, and are still told apart at once.
func TestCorpusOfOneWord(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	text, _, err := ReadCorpus(e, strings.NewReader(" word"))
	if err != nil {
		t.Fatal(err)
	}
	p := newTestPrompter(t, "o200k_base", 16, WithText(text))
	for id := range uint64(100) {
		a := tokensOf(t, p, &trace.Request{InputTokens: 16, Blocks: []uint64{id}})
		b := tokensOf(t, p, &trace.Request{InputTokens: 16, Blocks: []uint64{id + 1}})
		c := tokensOf(t, p, &trace.Request{InputTokens: 16, ArrivalNS: int64(id)})
		if sharedPrefix(a, b) > 2 || sharedPrefix(a, c) > 2 || !slices.Equal(a[3:], b[3:]) {
			t.Fatalf("blocks %d and the next share %d tokens", id, sharedPrefix(a, b))
		}
	}
}

func FuzzReadCorpus(f *testing.F) {
	e := mustEncoding(f, "o200k_base")
	f.Add(" one two", uint16(20))
	f.Add(sampleText(f)[:600], uint16(50))
	f.Add(" a\u0301 b’s  c\n d\r\n\t e", uint16(90))
	f.Fuzz(func(t *testing.T, src string, n uint16) {
		text, _, err := ReadCorpus(e, bytes.NewReader([]byte(src)))
		if err != nil {
			return
		}
		p, err := New(e.Words(), 1, 16, WithText(text))
		if err != nil {
			t.Fatal(err)
		}
		tokens := 1 + int(n)%500
		checkEncodes(t, e, p, rowOf(rand.New(rand.NewPCG(1, 1)), tokens, 16), tokens)
	})
}
