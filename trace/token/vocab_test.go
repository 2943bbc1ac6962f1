package token

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// file writes tokens as a tiktoken file: the 256 bytes first, then the rest.
func file(tokens ...string) string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	for i, t := range tokens {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(t)), 256+i)
	}
	return b.String()
}

func TestParseVocab(t *testing.T) {
	good := file("ab", "abc")
	tests := []struct{ name, in, err string }{
		{"good", good, ""},
		{"no last line end", strings.TrimSuffix(good, "\n"), ""},
		{"empty", "", "byte 0x00"},
		{"a byte missing", "YWI= 0\n", "byte 0x00"},
		{"id skipped", good + "eHg= 259\n", "line 259: want"},
		{"id missing", good + "eHg=\n", "line 259: want"},
		{"id not a number", good + "eHg= x\n", "line 259: want"},
		{"blank line", good + "\n\n", "line 259: want"},
		{"not base64", good + "*** 258\n", "line 259: the token"},
		{"empty token", good + " 258\n", "line 259: the token"},
		{"token twice", file("ab", "ab"), "line 258: the token was"},
		{"too many", strings.Repeat("\n", maxTokens+1), "more than"},
	}
	for _, tt := range tests {
		v, err := parseVocab([]byte(tt.in))
		switch {
		case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
		case tt.err == "" && (v.len() != 258 || v.token(257) != "abc" || v.rank("abc") != 257 || v.rank("ac") != none):
			t.Errorf("%s: the vocabulary is wrong", tt.name)
		}
	}
}

// TestParseVocabSpecial: the id of a special token is left out, stands for nothing, and every id behind it is as in the file.
func TestParseVocabSpecial(t *testing.T) {
	in := strings.Replace(file("ab", "abc"), " 257\n", " 258\n", 1)
	v, err := parseVocab([]byte(in), 257)
	if err != nil {
		t.Fatal(err)
	}
	if v.len() != 259 || v.token(257) != "" || v.rank("abc") != 258 {
		t.Error("the vocabulary is wrong")
	}
	if _, err := parseVocab([]byte(in+"eHg= 259\neHg= 260\n"), 257); err == nil || !strings.Contains(err.Error(), "line 260: the token was") {
		t.Errorf("a token twice behind a special one: %v", err)
	}
	e := newEncoding("special", v, splitGPT2)
	if _, err := e.AppendText(nil, []uint32{256, 257}); err == nil || !strings.Contains(err.Error(), "token 2 of 2") {
		t.Errorf("the special token comes back: %v", err)
	}
}

func FuzzParseVocab(f *testing.F) {
	f.Add([]byte(file("ab", "abc", "\xff\xff\xff")))
	f.Add([]byte("YQ== 0\nYg== 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parseVocab(data)
		if err != nil {
			return
		}
		for id := range uint32(v.len()) {
			if got, ok := v.find(v.token(id), v.hash(v.token(id))); !ok || got != id {
				t.Fatalf("token %d is found as %d, %t", id, got, ok)
			}
		}
	})
}
