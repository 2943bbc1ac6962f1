package block

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func newTest(t testing.TB, size int) *Hasher {
	t.Helper()
	h, err := NewHasher(Key{1, 2, 3}, "o200k_base", size)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// randomTokens draws from a small vocabulary, so that blocks repeat.
func randomTokens(rnd *rand.Rand, n, vocabulary int) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(rnd.IntN(vocabulary))
	}
	return tokens
}

func cut(h *Hasher, root ID, tokens []uint32) []ID {
	c := h.Cutter(root)
	c.Write(tokens)
	return c.Append(nil)
}

// definition computes an id from a list of fields, as the package comment and the comments of Hasher describe it.
func definition(key Key, fields ...any) ID {
	mac := hmac.New(sha256.New, key[:])
	le32 := func(n uint32) { binary.Write(mac, binary.LittleEndian, n) }
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			le32(uint32(len(f)))
			mac.Write([]byte(f))
		case int:
			le32(uint32(f))
		case ID:
			mac.Write(f[:])
		case uint64:
			binary.Write(mac, binary.LittleEndian, f)
		case []uint32:
			le32(uint32(len(f)))
			for _, t := range f {
				le32(t)
			}
		}
	}
	return ID(mac.Sum(nil)[:16])
}

func TestDefinition(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		key := Key{byte(rnd.Uint32()), byte(rnd.Uint32())}
		size := 1 + rnd.IntN(40)
		h, err := NewHasher(key, "tok", size)
		if err != nil {
			t.Fatal(err)
		}
		root := h.Root("model", "", "salt")
		if want := definition(key, "root", "tok", size, "model", "", "salt"); root != want {
			t.Fatalf("root %x, want %x", root, want)
		}
		tokens := randomTokens(rnd, rnd.IntN(200), math.MaxUint32)
		prev, got := root, cut(h, root, tokens)
		for i := 0; i < len(tokens); i += size {
			prev = definition(key, "blk", "tok", size, prev, tokens[i:min(i+size, len(tokens))])
			if got[i/size] != prev {
				t.Fatalf("block %d: %x, want %x", i/size, got[i/size], prev)
			}
		}
		if len(got) != Count(len(tokens), size) {
			t.Fatalf("%d blocks of %d tokens", len(got), len(tokens))
		}
	}
}

// TestStable holds the ids themselves: parts of one trace that are imported with one key, by two versions, must join.
func TestStable(t *testing.T) {
	ids := cut(newTest(t, 4), newTest(t, 4).Root("m"), []uint32{1, 2, 3, 4, 5, 6})
	if got := hex.EncodeToString(ids[0][:]) + " " + hex.EncodeToString(ids[1][:]); got != stable {
		t.Errorf("the ids are %s", got)
	}
}

const stable = "ddb1a3ee57a5b7c9c5d870c969eac44d f9886bdeeabfd26a7f05866bbb145596"

// TestChain: two sequences share ids exactly as far as they agree.
func TestChain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		size := 1 + rnd.IntN(20)
		h := newTest(t, size)
		root := h.Root()
		a := randomTokens(rnd, 1+rnd.IntN(150), 5)
		b := append([]uint32(nil), a...)
		change := rnd.IntN(len(b))
		b[change]++
		x, y := cut(h, root, a), cut(h, root, b)
		for i := range x {
			if same := x[i] == y[i]; same != (i < change/size) {
				t.Fatalf("size %d, token %d changed: block %d is the same: %t", size, change, i, same)
			}
		}
		longer := cut(h, root, append(a, 1))
		for i := range Full(len(a), size) {
			if x[i] != longer[i] {
				t.Fatalf("full block %d changes when a token is added at the end", i)
			}
		}
	}
}

// TestSeparation collects ids that must all differ, though the bytes that go into them look alike.
func TestSeparation(t *testing.T) {
	seen := make(map[ID]string)
	add := func(what string, id ID) {
		t.Helper()
		if other, ok := seen[id]; ok {
			t.Errorf("%s has the id of %s", what, other)
		}
		seen[id] = what
	}
	var root ID
	for _, key := range []Key{{}, {1}} {
		for _, tokenizer := range []string{"", "a", "ab", "a\x02\x00\x00\x00"} {
			for _, size := range []int{1, 2, 3} {
				h, err := NewHasher(key, tokenizer, size)
				if err != nil {
					t.Fatal(err)
				}
				at := fmt.Sprintf("%x/%q/%d/", key[:1], tokenizer, size)
				for _, d := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"c", "ab"}, {"a", "b", "c"}, {"ab\x01\x00\x00\x00c"}} {
					add(fmt.Sprintf("%sroot%q", at, d), h.Root(d...))
				}
				for _, tokens := range [][]uint32{{0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}} {
					if len(tokens) <= size {
						add(fmt.Sprintf("%sblock%d", at, tokens), h.next(root, tokens))
						add(fmt.Sprintf("%sblock%d in m", at, tokens), h.next(h.Root("m"), tokens))
					}
				}
			}
		}
	}
}

// TestCollisions enumerates every sequence of up to 8 tokens of a vocabulary of 3: all prefixes that differ have ids that differ.
func TestCollisions(t *testing.T) {
	h := newTest(t, 3)
	root := h.Root()
	owner := make(map[ID]string)
	var walk func(tokens []uint32)
	walk = func(tokens []uint32) {
		for i, id := range cut(h, root, tokens) {
			prefix := fmt.Sprint(tokens[:min(3*(i+1), len(tokens))])
			if other, ok := owner[id]; ok && other != prefix {
				t.Fatalf("%s and %s have one id", prefix, other)
			}
			owner[id] = prefix
		}
		if len(tokens) < 8 {
			for token := range uint32(3) {
				walk(append(tokens[:len(tokens):len(tokens)], token))
			}
		}
	}
	walk(nil)
	if want := (6561*3 - 3) / 2; len(owner) != want { // 3 + 3² + … + 3⁸
		t.Errorf("%d ids, want %d", len(owner), want)
	}
}

func TestClone(t *testing.T) {
	h := newTest(t, 4)
	root := h.Root("m")
	c := h.Clone()
	if c.Root("m") != root || cut(c, root, []uint32{1, 2, 3, 4, 5})[1] != cut(h, root, []uint32{1, 2, 3, 4, 5})[1] {
		t.Error("a clone gives other ids")
	}
}

func TestBlockSize(t *testing.T) {
	for _, size := range []int{-1, 0, math.MaxInt32 + 1} {
		if _, err := NewHasher(Key{}, "", size); err == nil {
			t.Errorf("block size %d is accepted", size)
		}
	}
}

func TestNewKey(t *testing.T) {
	a, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := NewKey(); a == b || a == (Key{}) {
		t.Error("keys are not random")
	}
}

func TestKeyIsRedacted(t *testing.T) {
	var key Key
	for i := range key {
		key[i] = 0xA7
	}
	h, err := NewHasher(key, "tok", 16)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "key", key, "hasher", h)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "key", key)
	text, err := json.Marshal(struct{ K Key }{key})
	if err != nil || string(text) != `{"K":"block.Key(redacted)"}` {
		t.Errorf("json gives %s, %v", text, err)
	}
	out := []string{log.String(), key.String(), key.GoString(), string(text)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%#x", "%d", "%b", "%c", "%o", "%z"} {
		for _, v := range []any{key, &key, []Key{key}, map[Key]bool{key: true}, struct{ K Key }{key}, h, *h, h.Cutter(ID{}), struct{ h *Hasher }{h}} {
			out = append(out, fmt.Sprintf(verb, v))
		}
	}
	for _, s := range out {
		for _, form := range []string{"a7a7a7", "a7 a7 a7", "0xa7, 0xa7", "0xa7 0xa7", "167 167 167", "167,167,167", "247 247 247", "10100111 10100111", "p6enp6en", "§§§", "\\xa7\\xa7", "\xa7\xa7"} {
			if strings.Contains(strings.ToLower(s), form) {
				t.Errorf("%.200q holds the key as %q", s, form)
			}
		}
	}
}
