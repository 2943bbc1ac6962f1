package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"reprise/trace"
	"reprise/trace/token"
)

// kinds are the texts that prompts can be written in.
var kinds = []string{"stable", "words", "corpus"}

// textOf makes a text of a kind; a corpus is the sample beside the tests, three
// times over.
func textOf(t testing.TB, e *token.Encoding, kind string) *Text {
	t.Helper()
	var text *Text
	var err error
	switch kind {
	case "stable":
		text = stableText(e.Words())
	case "words":
		text, err = English(e)
	case "corpus":
		text, _, err = ReadCorpus(e, strings.NewReader(sampleText(t)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var sampleOnce = sync.OnceValues(func() ([]byte, error) { return os.ReadFile(filepath.Join("testdata", "corpus.txt")) })

func sampleText(t testing.TB) string {
	t.Helper()
	b, err := sampleOnce()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// encodings are those that come with the program, or with REPRISE_TEST_TOKENIZERS
// those of the tokenizer.json files in its directories.
func encodings(t testing.TB) []*token.Encoding {
	t.Helper()
	var all []*token.Encoding
	for _, name := range []string{"cl100k_base", "o200k_base"} {
		all = append(all, mustEncoding(t, name))
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("REPRISE_TEST_TOKENIZERS"), "*", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, mustEncoding(t, f))
	}
	return all
}

func mustEncoding(t testing.TB, name string) *token.Encoding {
	t.Helper()
	e, err := token.OpenAny(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// logUniform makes rows of 1 to most tokens, as many from each octave.
func logUniform(rng *rand.Rand, rows, most, size int) []trace.Request {
	out := make([]trace.Request, rows)
	for i := range out {
		n := int(math.Exp(rng.Float64() * math.Log(float64(most+1))))
		out[i] = *rowOf(rng, min(max(n, 1), most), size)
		for k := range out[i].Blocks {
			out[i].Blocks[k] = rng.Uint64N(1 << 30)
		}
	}
	return out
}

// Every prompt has exactly the tokens asked for, from 1 to 100,000 of them, in
// every kind of text, under every encoding.
func TestVerifyAll(t *testing.T) {
	prompts := 500
	if s := os.Getenv("REPRISE_TEST_PROMPTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		prompts = n
	}
	for _, e := range encodings(t) {
		for _, kind := range kinds {
			t.Run(e.Name()+"/"+kind, func(t *testing.T) {
				t.Parallel()
				if len(e.Words().Text) == 0 {
					t.Skip("this tokenizer has no words")
				}
				rows := logUniform(rand.New(rand.NewPCG(21, 22)), prompts, 100_000, 512)
				p, err := New(e.Words(), 1, 512, WithText(textOf(t, e, kind)))
				if err != nil {
					t.Fatal(err)
				}
				v, err := verify(&trace.SliceReader[trace.Request]{Rows: rows}, p, e)
				if err != nil || v.Mismatches != 0 || v.Prompts != int64(prompts) {
					t.Errorf("%+v, %v", v, err)
				}
				t.Logf("%+v, %d filled", v, p.Filled())
			})
		}
	}
}

// The digests hold the prompts of a seed in every kind of text, with shared
// tails, on every machine and for good.
func TestTextsGolden(t *testing.T) {
	rows := conversations(rand.New(rand.NewPCG(1, 1)), 60, 64)
	rows = append(rows, trace.Request{InputTokens: 90, ArrivalNS: 7}, trace.Request{InputTokens: 2, ArrivalNS: 8})
	tails := readTails(t, rows, 64)
	for _, c := range []struct{ name, kind, want string }{
		{"cl100k_base", "stable", "9ddcabd165a79044982d8fdc5441cad8bb175744178fcd33f8bab96f932f8e78"},
		{"o200k_base", "stable", "e50ac760f08c8c2e0420755ef636abf50a6e51b47f631c45a680924839d6a0b0"},
		{"cl100k_base", "words", "4834ba07faac2f4dedaecf354b2f751a0651add266f0c10bcc9b1e9afe775fd2"},
		{"o200k_base", "words", "c2ac0874af10ea05e65bc0f558ceb2c88c64c510eb8cc5b1d8f01fd81eb973b9"},
		{"cl100k_base", "corpus", "20e399bed6c315d23eb225cac4ec85a9356d4287aa0ffcfd50893cc0185c38e9"},
		{"o200k_base", "corpus", "23630c0578e3ac2f78c7622f0073729cdc180957bf7b08197597edff7f61f464"},
	} {
		e := mustEncoding(t, c.name)
		h := sha256.New()
		for _, overhead := range []int{0, 9} {
			p := newTestPrompter(t, c.name, 64, WithText(textOf(t, e, c.kind)), WithTails(tails), WithTemplate(overhead, 0))
			for i := range rows {
				h.Write([]byte(checkEncodes(t, e, p, &rows[i], p.Count(&rows[i]))))
				h.Write([]byte{0})
			}
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != c.want {
			t.Errorf("%s, %s: got %s, want %s", c.name, c.kind, got, c.want)
		}
	}
}

// The list is words of two letters and more, each once, and no larger than it
// says; the encodings know most of it.
func TestEnglishList(t *testing.T) {
	words := strings.Fields(englishList)
	seen := map[string]bool{}
	for _, w := range words {
		if seen[w] || len(w) < 2 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is there twice, or no word", w)
		}
		seen[w] = true
	}
	if len(englishList) > 30_000 {
		t.Errorf("the list has %d bytes", len(englishList))
	}
	for _, name := range []string{"cl100k_base", "o200k_base"} {
		text := textOf(t, mustEncoding(t, name), "words")
		if text.words < 2200 || !text.english.marks || len(text.lex.ids) < int(text.words)*19/10 {
			t.Errorf("%s: %d words and %d entries, marks: %v", name, text.words, len(text.lex.ids), text.english.marks)
		}
	}
}

// The words are as frequent as the law says, and all that is not a word is a mark
// behind a word, or a capital behind a full stop.
func TestEnglishReadsLikeEnglish(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	p := newTestPrompter(t, "o200k_base", 1<<17, WithText(textOf(t, e, "words")))
	text, err := p.Prompt(&trace.Request{InputTokens: 1 << 17, Blocks: []uint64{5}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	sentences := strings.Split(string(text), ". ")
	for i, s := range sentences {
		first := s[:1]
		if i > 0 && strings.ToUpper(first) != first {
			count["no capital"]++
		}
		for _, w := range strings.Fields(s) {
			count[strings.ToLower(strings.Trim(w, ",."))]++
		}
	}
	if n := float64(len(strings.Fields(string(text)))) / float64(len(sentences)); n < 10 || n > 30 {
		t.Errorf("%.1f words in a sentence", n)
	}
	if n := count["no capital"]; n > len(sentences)/20 {
		t.Errorf("%d of %d sentences begin without a capital", n, len(sentences))
	}
	// Rank 1 is twice as frequent as rank 3, five times as rank 9.
	words := strings.Fields(englishList)
	for rank, times := range map[int]float64{2: 2, 8: 5} {
		if r := float64(count[words[0]]) / float64(count[words[rank]]); r < 0.8*times || r > 1.2*times {
			t.Errorf("the first word is %.2f times as frequent as word %d, want about %.0f times", r, rank+1, times)
		}
	}
	if strings.Contains(string(text), ",,") || strings.Contains(string(text), "..") || strings.Contains(string(text), ",.") {
		t.Error("a mark follows a mark")
	}
}
