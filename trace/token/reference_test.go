package token

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// A family is a small tokenizer.json of one of the kinds that are read, trained by testdata/vectors.py, with the ids that
// Hugging Face's tokenizers 0.23.3 gives to the texts.
type family struct {
	Name      string
	Tokenizer json.RawMessage
	IDs       [][]uint32

	texts []string
}

var families = sync.OnceValues(func() ([]family, error) {
	f, err := os.Open(filepath.Join("testdata", "hf.json.gz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var all struct {
		Texts    []string
		Families []family
	}
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		return nil, err
	}
	for i := range all.Families {
		all.Families[i].texts = all.Texts
	}
	return all.Families, nil
})

func mustFamilies(t testing.TB) []family {
	t.Helper()
	all, err := families()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (f *family) encoding(t testing.TB) *Encoding {
	t.Helper()
	e, err := parseFile(f.Tokenizer)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	return e
}

func TestFamilies(t *testing.T) {
	for _, f := range mustFamilies(t) {
		checkVectors(t, f.Name, f.encoding(t), f.texts, f.IDs)
	}
}

// newer reports a character that Go's tables do not know, and those of the reference may: of those it may say something else.
func newer(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Cn, r) })
}

func checkVectors(t *testing.T, name string, e *Encoding, texts []string, ids [][]uint32) {
	t.Helper()
	wrong, excused := 0, 0
	for i, text := range texts {
		got := e.Append(nil, text)
		if slices.Equal(got, ids[i]) {
			continue
		}
		if newer(text) {
			excused++
		} else if wrong++; wrong <= 5 {
			t.Errorf("%s: %.200q: got %v, want %v", name, text, head(got), head(ids[i]))
		}
	}
	if excused > len(texts)/1000 {
		t.Errorf("%s: %d of %d texts differ where they have characters newer than Go's tables", name, excused, len(texts))
	}
	t.Logf("%s: %d of %d texts as in the reference, %d more but for characters newer than Go's tables", name, len(texts)-wrong-excused, len(texts), excused)
}

// TestPublished holds published files, which are too large to keep here: every directory in REPRISE_TEST_TOKENIZERS has a
// tokenizer.json and the vectors.json that testdata/vectors.py makes of it.
func TestPublished(t *testing.T) {
	root := os.Getenv("REPRISE_TEST_TOKENIZERS")
	if root == "" {
		t.Skip("REPRISE_TEST_TOKENIZERS is unset; see testdata/vectors.py")
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "vectors.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no */vectors.json in %s", root)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var vectors []struct {
				Text string
				IDs  []uint32
			}
			if err := json.Unmarshal(data, &vectors); err != nil {
				t.Fatal(err)
			}
			e, err := OpenAny(dir)
			if err != nil {
				t.Fatal(err)
			}
			texts, ids := make([]string, len(vectors)), make([][]uint32, len(vectors))
			for i, v := range vectors {
				texts[i], ids[i] = v.Text, v.IDs
			}
			checkVectors(t, e.Name(), e, texts, ids)
			checkWords(t, e)
			t.Logf("%d words", len(e.Words().Text))
		})
	}
}
