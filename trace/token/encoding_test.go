package token

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go-loader/assets"

	"reprise/trace/longtest"
)

func TestOpen(t *testing.T) {
	for _, name := range Names() {
		a, b := mustOpen(t, name), mustOpen(t, name)
		if a != b || a.Name() != name {
			t.Errorf("Open(%q) gives %q, the same twice: %t", name, a.Name(), a == b)
		}
	}
	_, err := Open("gpt2")
	if err == nil || !strings.Contains(err.Error(), "cl100k_base, o200k_base") {
		t.Errorf("the error for an unknown name is %v", err)
	}
}

// TestEmbeddedFiles holds the vocabularies to the digests that tiktoken itself expects of its downloads.
func TestEmbeddedFiles(t *testing.T) {
	for file, want := range map[string]string{
		"cl100k_base.tiktoken": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
		"o200k_base.tiktoken":  "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
		"p50k_base.tiktoken":   "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
		"r50k_base.tiktoken":   "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
	} {
		data, err := assets.Assets.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has digest %x", file, sum)
		}
	}
}

func TestAppendText(t *testing.T) {
	e := mustOpen(t, "cl100k_base")
	for id := range uint32(e.vocab.len()) {
		if _, err := e.AppendText(nil, []uint32{id}); err != nil {
			t.Fatal(err)
		}
	}
	dst := []byte("kept")
	for _, id := range []uint32{100256, 100257, 1 << 31, 1<<32 - 1} {
		got, err := e.AppendText(dst, []uint32{15339, id})
		if err == nil || string(got) != "kept" || !strings.Contains(err.Error(), "token 2 of 2") {
			t.Errorf("id %d: got %q, %v", id, got, err)
		}
	}
}

// TestHostile would not end in time if any of these texts were taken in quadratic time.
func TestHostile(t *testing.T) {
	longtest.Skip(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = 'a' + byte(rnd.IntN(26))
	}
	texts := map[string]string{"random letters": string(random)}
	for _, unit := range []string{"a", " ", "\n", "!", "\u0301", "中", " \u0301A", "\u0301A", "A\u0301", "\r ", "\x80", "ſ", "'"} {
		texts[unit] = strings.Repeat(unit, 100_000)
	}
	for _, name := range Names() {
		e := mustOpen(t, name)
		for unit, s := range texts {
			back, err := e.AppendText(nil, e.Append(nil, s))
			if err != nil || string(back) != eachValid(s) {
				t.Errorf("%s: %q repeated does not come back", name, unit)
			}
		}
	}
}

// eachValid replaces each invalid byte by U+FFFD.
func eachValid(s string) string { return string([]rune(s)) }

// naive is byte-pair encoding as it is defined.
func naive(v *vocab, p string) (ids []uint32) {
	var parts []string
	for i := range len(p) {
		parts = append(parts, p[i:i+1])
	}
	find := func(s string) uint32 { id, _ := v.find(s, v.hash(s)); return id }
	for {
		low, rank := -1, uint32(none)
		for i := range len(parts) - 1 {
			if r := find(parts[i] + parts[i+1]); r < rank {
				low, rank = i, r
			}
		}
		if low < 0 {
			break
		}
		parts[low] += parts[low+1]
		parts = slices.Delete(parts, low+1, low+2)
	}
	for _, s := range parts {
		ids = append(ids, find(s))
	}
	return ids
}

// TestMerge compares the merging with its definition, on pieces that no splitter would make too.
func TestMerge(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, name := range Names() {
		v, st := mustOpen(t, name).vocab, new(state)
		for n := range 3000 {
			alphabet := []string{"ab", "the and", " =-\n", "的一是", "etaoin shrdlu'."}[n%5]
			p := make([]byte, 2+rnd.IntN(100))
			for i := range p {
				p[i] = alphabet[rnd.IntN(len(alphabet))]
			}
			want := naive(v, string(p))
			if got := st.merge(nil, v, string(p)); !slices.Equal(got, want) {
				t.Fatalf("%s: merge of %q: got %v, want %v", name, p, got, want)
			}
		}
	}
}

// TestCache encodes far more distinct pieces than the cache holds, so that every slot is overwritten, and repeats some.
func TestCache(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	v, st := mustOpen(t, "cl100k_base").vocab, new(state)
	pieces := make([]string, 60_000)
	for i := range pieces {
		p := make([]byte, 4+rnd.IntN(40))
		for j := range p {
			p[j] = 'a' + byte(rnd.IntN(26))
		}
		pieces[i] = string(p)
	}
	fresh := new(state)
	for range 3 * len(pieces) {
		p := pieces[min(rnd.IntN(len(pieces)), rnd.IntN(len(pieces)))]
		want := fresh.merge(nil, v, p)
		if id, ok := v.find(p, v.hash(p)); ok {
			want = []uint32{id}
		}
		if got := st.append(nil, v, p); !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", p, got, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, name := range Names() {
		e, st := mustOpen(t, name), new(state)
		for _, text := range []string{english, chinese, goCode, strings.Repeat("x", 50_000)} {
			var dst []uint32
			encode := func() {
				dst = dst[:0]
				for i := 0; i < len(text); {
					end := e.split(e.class, text, i)
					dst = st.append(dst, e.vocab, text[i:end])
					i = end
				}
			}
			encode()
			if n := testing.AllocsPerRun(5, encode); n != 0 {
				t.Errorf("%s: %v allocations on %.20q", name, n, text)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	e := mustOpen(t, "o200k_base")
	want := e.Append(nil, english+chinese)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := e.Append(nil, english+chinese); !slices.Equal(got, want) {
					t.Error("the ids differ between goroutines")
				}
				e.Words()
			}
		})
	}
	wg.Wait()
}

// TestClasses computes every class from the definition of its sets.
func TestClasses(t *testing.T) {
	table := classes()
	is := func(r rune, tables ...*unicode.RangeTable) bool { return unicode.IsOneOf(tables, r) }
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		var want class
		for c, in := range map[class]bool{
			letter:  unicode.IsLetter(r),
			number:  unicode.IsNumber(r),
			space:   unicode.IsSpace(r),
			newline: r == '\r' || r == '\n',
			upper:   is(r, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M),
			lower:   is(r, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M),
			other:   !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSpace(r),
			mark:    unicode.IsMark(r),
			symbol:  unicode.IsPunct(r) || unicode.IsSymbol(r),
		} {
			if in {
				want |= c
			}
		}
		if got, n := table.at(string(r), 0); got != want || n != utf8.RuneLen(r) {
			t.Fatalf("%U: got class %b, length %d, want %b", r, got, n, want)
		}
	}
}
