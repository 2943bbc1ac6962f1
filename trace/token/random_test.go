package token

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/trace/longtest"
)

// naiveMerge is byte-pair encoding by a list of merges as it is defined: of the neighbouring pairs the first in the list,
// of equals the leftmost, until none is left.
func naiveMerge(symbols []string, merges [][2]string) []string {
	for {
		at, rank := -1, len(merges)
		for i := range len(symbols) - 1 {
			for r := range rank {
				if merges[r] == [2]string{symbols[i], symbols[i+1]} {
					at, rank = i, r
				}
			}
		}
		if at < 0 {
			return symbols
		}
		symbols[at] += symbols[at+1]
		symbols = slices.Delete(symbols, at+1, at+2)
	}
}

// randomMerges joins symbols, and what came out of joining them, at random; some in several ways.
func randomMerges(rnd *rand.Rand, symbols []string, n int) (merges [][2]string) {
	known := slices.Clone(symbols)
	seen := make(map[[2]string]bool)
	for range n {
		m := [2]string{known[rnd.IntN(len(known))], known[rnd.IntN(len(known))]}
		if seen[m] || len(m[0]+m[1]) > 40 {
			continue
		}
		seen[m] = true
		merges = append(merges, m)
		known = append(known, m[0]+m[1])
	}
	return merges
}

func randomText(rnd *rand.Rand, symbols []string, most int) string {
	var b strings.Builder
	for range rnd.IntN(most) {
		b.WriteString(symbols[rnd.IntN(len(symbols))])
	}
	return b.String()
}

// TestRandomByteLevel compares random vocabularies with the definition, piece by piece.
func TestRandomByteLevel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(21, 22))
	symbols := []string{"a", "b", "c", " ", "\xc3", "\xa9"}
	for n := range 60 {
		merges := randomMerges(rnd, symbols, 5+rnd.IntN(50))
		doc := byteLevelDoc(merges...)
		ignore := n%3 == 0
		doc["model"].(object)["ignore_merges"] = ignore
		vocab := doc["model"].(object)["vocab"].(object)
		e := mustParse(t, doc)
		for range 60 {
			text := eachValid(randomText(rnd, []string{"a", "b", "c", " ", "é"}, 40))
			var want []uint32
			for i := 0; i < len(text); {
				end := splitGPT2(e.class, text, i)
				var parts []string
				for _, b := range []byte(text[i:end]) {
					parts = append(parts, string([]byte{b}))
				}
				if _, whole := vocab[levelText(text[i:end])]; ignore && whole {
					parts = []string{text[i:end]}
				}
				for _, p := range naiveMerge(parts, merges) {
					want = append(want, uint32(vocab[levelText(p)].(int)))
				}
				i = end
			}
			if got := e.Append(nil, text); !slices.Equal(got, want) {
				t.Fatalf("merges %q: %q: got %v, want %v", merges, text, got, want)
			}
		}
	}
}

// TestRandomSpaces compares random vocabularies with the definition, over the whole text: cutting it changes nothing. Some
// merges reach across the beginnings of words, and some characters are not in the vocabulary. A Metaspace that splits forbids
// those merges.
func TestRandomSpaces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 24))
	symbols := []string{"▁", "a", "b", "é", "中", "\n", "."}
	for n := range 150 {
		merges := randomMerges(rnd, symbols, 5+rnd.IntN(60))
		doc := spacesDoc("abé中\n.", merges...)
		vocab := doc["model"].(object)["vocab"].(object)
		lead, cut := "", n%3 == 2
		switch {
		case n%3 == 1:
			lead = "▁"
			doc["normalizer"] = object{"type": "Sequence", "normalizers": []any{object{"type": "Prepend", "prepend": "▁"}, doc["normalizer"]}}
		case cut:
			doc["pre_tokenizer"] = object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}
		}
		e := mustParse(t, doc)
		for range 60 {
			text := randomText(rnd, []string{" ", " ", "a", "b", "é", "中", "\n", ".", "x", "ß", "▁"}, 40)
			var parts []string
			if text != "" {
				text := lead + strings.ReplaceAll(text, " ", "▁")
				if cut {
					text = strings.ReplaceAll(text, "▁", "|▁")
				}
				for _, piece := range strings.Split(text, "|") {
					parts = append(parts, naiveMerge(strings.Split(piece, ""), merges)...)
				}
			}
			var want []uint32
			for _, p := range parts {
				if id, ok := vocab[p]; ok {
					want = append(want, uint32(id.(int)))
					continue
				}
				for _, b := range []byte(p) {
					want = append(want, uint32(vocab[fmt.Sprintf("<0x%02X>", b)].(int)))
				}
			}
			got := e.Append(nil, text)
			if !slices.Equal(got, want) {
				t.Fatalf("merges %q: %q: got %v, want %v", merges, text, got, want)
			}
			if back, err := e.AppendText(nil, got); err != nil || string(back) != strings.ReplaceAll(text, "▁", " ") {
				t.Fatalf("%q comes back as %q, %v", text, back, err)
			}
		}
		if w := e.Words(); len(w.Text) > 0 {
			checkWords(t, e)
		}
	}
}

// TestRandomAdded compares the finding of added tokens with its definition.
func TestRandomAdded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(25, 26))
	for range 400 {
		m, tokens := newMatcher(), make(map[string]bool)
		for range 1 + rnd.IntN(6) {
			s := randomText(rnd, []string{"a", "b", "<"}, 5)
			if _, ok := tokens[s]; s == "" || ok {
				continue
			}
			tokens[s] = rnd.IntN(3) == 0
			m.insert(s, uint32(len(s)), tokens[s])
		}
		for range 20 {
			text := randomText(rnd, []string{"a", "b", "<", "x"}, 20)
			for at := 0; at <= len(text); {
				wantStart, wantEnd := naiveFind(text, at, tokens)
				start, end, id, ok := m.find(text, at)
				if !ok {
					start, end = -1, -1
				}
				if start != wantStart || end != wantEnd || ok && int(id) != end-start {
					t.Fatalf("tokens %v: %q from %d: got %d:%d, want %d:%d", tokens, text, at, start, end, wantStart, wantEnd)
				}
				if at = end; !ok {
					break
				}
			}
		}
	}
}

// naiveFind gives the leftmost, longest token at or behind i, passing over those that are special.
func naiveFind(s string, i int, tokens map[string]bool) (start, end int) {
	for i < len(s) {
		longest := ""
		for t := range tokens {
			if strings.HasPrefix(s[i:], t) && len(t) > len(longest) {
				longest = t
			}
		}
		switch {
		case longest == "":
			i++
		case tokens[longest]:
			i += len(longest)
		default:
			return i, i + len(longest)
		}
	}
	return -1, -1
}

// TestTiktokenAsFile writes tiktoken's own vocabularies as a tokenizer.json, in both spellings of the merges, and expects the
// same ids. A token is made by every pair of tokens that it can be cut into, as in published files.
func TestTiktokenAsFile(t *testing.T) {
	longtest.Skip(t)
	patterns := map[string]string{
		"cl100k_base": cl100kHead + `\p{N}{1,3}` + cl100kTail,
		"o200k_base":  o200kLower + o200kSuffix + `|` + o200kUpper + o200kSuffix + `|\p{N}{1,3}` + o200kTail,
		"r50k_base":   gpt2Pattern,
		"p50k_base":   gpt2Pattern,
	}
	for i, name := range Names() {
		want := mustOpen(t, name)
		doc := tiktokenDoc(want.vocab, patterns[name], i%2 == 0)
		got := mustParse(t, doc)
		texts := append([]string{english, chinese, goCode}, invalid...)
		for _, r := range references(t) {
			texts = append(texts, r.Text)
		}
		for _, s := range texts {
			if a, b := got.Append(nil, s), want.Append(nil, s); !slices.Equal(a, b) {
				t.Errorf("%s: %.100q: got %v, want %v", name, s, head(a), head(b))
			}
		}
		if a, b := got.Words(), want.Words(); !slices.Equal(a.Text, b.Text) || !slices.Equal(a.Bare, b.Bare) || !slices.Equal(a.Spaced, b.Spaced) {
			t.Errorf("%s: %d words, want %d", name, len(a.Text), len(b.Text))
		}
	}
}

func tiktokenDoc(v *vocab, pattern string, old bool) object {
	vocab, merges := make(map[string]uint32, v.len()), []any{}
	for id := range uint32(v.len()) {
		s := v.token(id)
		if s == "" {
			continue
		}
		vocab[levelText(s)] = id
		for i := 1; i < len(s); i++ {
			if v.rank(s[:i]) == none && i > 1 || v.rank(s[i:]) == none && len(s)-i > 1 {
				continue
			}
			left, right := levelText(s[:i]), levelText(s[i:])
			if old {
				merges = append(merges, left+" "+right)
			} else {
				merges = append(merges, []string{left, right})
			}
		}
	}
	return object{
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []any{
			object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated"},
			object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		}},
		"model": object{"type": "BPE", "ignore_merges": old, "vocab": vocab, "merges": merges},
	}
}

// TestHostileFiles is TestHostile for the kinds of tokenizer.json: none of them takes quadratic time.
func TestHostileFiles(t *testing.T) {
	longtest.Skip(t)
	rnd := rand.New(rand.NewPCG(27, 28))
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = 'a' + byte(rnd.IntN(26))
	}
	texts := []string{string(random[:1<<17])}
	for _, unit := range []string{"a", " ", "\n", "!", "\u0301", "中", "e\u0301", "<", "<tool_call", "\x80", "'", "1", "\u0378", "ひ中"} {
		texts = append(texts, strings.Repeat(unit, 100_000/len(unit)))
	}
	for _, f := range mustFamilies(t) {
		e := f.encoding(t)
		check := func(s string) {
			want := eachValid(s)
			if e.nfc {
				want = nfc(want)
			}
			if e.lead == leadAbsent || e.lead == leadFirst {
				want = strings.TrimPrefix(want, " ")
			}
			back, err := e.AppendText(nil, e.Append(nil, s))
			if err != nil || string(back) != want {
				t.Errorf("%s: %.10q repeated does not come back", f.Name, s)
			}
		}
		for _, s := range texts {
			check(s)
		}
		if f.Name == "llama2" || f.Name == "qwen" {
			check(string(random))
		}
	}
}

func TestNoAllocationFiles(t *testing.T) {
	for _, f := range mustFamilies(t) {
		e, st := f.encoding(t), new(state)
		most := 0.0
		switch {
		case e.lead != leadNone:
			most = 1 // the first word behind its space
		case slices.ContainsFunc(e.steps, func(s step) bool { return s.pattern != nil }):
			continue
		}
		for _, text := range []string{english, chinese, goCode, strings.Repeat("x", 30_000)} {
			var dst []uint32
			encode := func() { dst = e.appendText(dst[:0], st, text, true) }
			encode()
			if n := testing.AllocsPerRun(5, encode); n > most {
				t.Errorf("%s: %v allocations on %.20q", f.Name, n, text)
			}
		}
	}
}

func TestLevelAlphabet(t *testing.T) {
	seen := make(map[byte]bool)
	for r, b := range level {
		if !utf8.ValidRune(r) || r < 0x100 && r != rune(b) {
			t.Errorf("%q stands for %#x", r, b)
		}
		seen[b] = true
	}
	if len(level) != 256 || len(seen) != 256 || level['Ġ'] != ' ' || level['Ċ'] != '\n' {
		t.Error("the alphabet is not one")
	}
}
