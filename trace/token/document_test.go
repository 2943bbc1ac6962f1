package token

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/trace/longtest"
)

// levelText spells bytes in the byte-level alphabet.
func levelText(s string) string {
	out := make([]byte, 0, 2*len(s))
	for _, b := range []byte(s) {
		out = append(out, levelOf[b]...)
	}
	return string(out)
}

var levelOf = func() (spell [256]string) {
	for r, b := range level {
		spell[b] = string(r)
	}
	return spell
}()

// object is a JSON object, to be changed and written.
type object = map[string]any

// byteLevelDoc is a tokenizer.json with the 256 bytes, the tokens that the merges make behind them, and GPT-2's pattern.
func byteLevelDoc(merges ...[2]string) object {
	vocab, list := object{}, []any{}
	for b := range 256 {
		vocab[levelText(string([]byte{byte(b)}))] = b
	}
	for _, m := range merges {
		left, right := levelText(m[0]), levelText(m[1])
		if _, ok := vocab[left+right]; !ok {
			vocab[left+right] = len(vocab)
		}
		list = append(list, []string{left, right})
	}
	return object{
		"pre_tokenizer": object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"decoder":       object{"type": "ByteLevel"},
		"added_tokens":  []any{},
		"model":         object{"type": "BPE", "vocab": vocab, "merges": list},
	}
}

// spacesDoc is one in the manner of SentencePiece: tokens of the bytes, then the characters, then what the merges make.
func spacesDoc(characters string, merges ...[2]string) object {
	vocab, list := object{"<unk>": 0}, []any{}
	for b := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", b)] = len(vocab)
	}
	for _, r := range "▁" + characters {
		vocab[string(r)] = len(vocab)
	}
	for _, m := range merges {
		if _, ok := vocab[m[0]+m[1]]; !ok {
			vocab[m[0]+m[1]] = len(vocab)
		}
		list = append(list, []string{m[0], m[1]})
	}
	return object{
		"normalizer":   object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"},
		"decoder":      object{"type": "Fuse"},
		"added_tokens": []any{},
		"model":        object{"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": vocab, "merges": list},
	}
}

func marshal(t testing.TB, doc any) []byte {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustParse(t testing.TB, doc any) *Encoding {
	t.Helper()
	e, err := parseFile(marshal(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestRefused changes one thing at a time.
func TestRefused(t *testing.T) {
	sequence := func(parts ...any) object { return object{"type": "Sequence", "pretokenizers": parts} }
	normalizers := func(parts ...any) object { return object{"type": "Sequence", "normalizers": parts} }
	level := object{"type": "ByteLevel", "add_prefix_space": false}
	split := func(pattern any) object {
		return sequence(object{"type": "Split", "pattern": pattern, "behavior": "Isolated"}, level)
	}
	prepend := object{"type": "Prepend", "prepend": "▁"}
	metaspace := func(key string, value any) object {
		return object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", key: value}
	}
	added := func(key string, value any) []any {
		return []any{object{"id": 300, "content": "<x>"}, object{"id": 301, "content": "<y>", key: value}}
	}
	tests := []struct {
		kind  string
		path  string // of what is changed
		value any
		err   string
	}{
		{"bytes", "model", nil, "model: missing"},
		{"bytes", "model.type", "Unigram", `model.type: "Unigram" is not supported`},
		{"bytes", "model.type", strings.Repeat("x", 99), `model.type: "` + strings.Repeat("x", 40) + `" is not`},
		{"bytes", "model.dropout", 0.1, "model.dropout"},
		{"bytes", "model.continuing_subword_prefix", "##", "model.continuing_subword_prefix"},
		{"bytes", "model.end_of_word_suffix", "</w>", "model.end_of_word_suffix"},
		{"bytes", "model.vocab", []int{1}, "model.vocab: not of the type"},
		{"bytes", "model.vocab", object{"a": -1}, "model.vocab: not of the type"},
		{"bytes", "model.vocab", object{"a": 1 << 20}, "model.vocab: an id is above"},
		{"bytes", "model.vocab", object{"a": 1, "b": 1}, "model.vocab: id 1 is given to two"},
		{"bytes", "model.vocab", object{"": 1}, "model.vocab: id 1 is given to two tokens, or to none"},
		{"bytes", "model.vocab", object{strings.Repeat("a", maxSpelling+1): 1}, "model.vocab: a token is longer"},
		{"bytes", "model.vocab", object{"a": 1}, "no token stands for the byte"},
		{"bytes", "model.merges", 7, "model.merges: not of the type"},
		{"bytes", "model.merges", []any{"a b", "a"}, "model.merges[1]: want two"},
		{"bytes", "model.merges", []any{"a b c"}, "model.merges[0]: want two"},
		{"bytes", "model.merges", []any{[]string{"a"}}, "model.merges[0]: want two"},
		{"bytes", "model.merges", []any{[]string{"", "a"}}, "model.merges[0]: want two"},
		{"bytes", "model.merges", []any{"x y"}, "model.merges[0]: one of the tokens"},
		{"bytes", "normalizer", object{"type": "NFKC"}, `normalizer.type: "NFKC"`},
		{"bytes", "normalizer", normalizers(object{"type": "NFC"}, prepend), `normalizer.normalizers[1].type: "Prepend"`},
		{"bytes", "pre_tokenizer", sequence(object{"type": "Whitespace"}, level), `pre_tokenizer.pretokenizers[0].type: "Whitespace"`},
		{"bytes", "pre_tokenizer", sequence(level, object{"type": "Digits"}), "pre_tokenizer.pretokenizers[0]: only the last"},
		{"bytes", "pre_tokenizer", object{"type": "ByteLevel", "add_prefix_space": true}, "pre_tokenizer.add_prefix_space"},
		{"bytes", "pre_tokenizer", object{"type": "ByteLevel"}, "pre_tokenizer.add_prefix_space"},
		{"bytes", "pre_tokenizer", split(object{"String": " "}), "pretokenizers[0].pattern: only Regex"},
		{"bytes", "pre_tokenizer", split(object{"Regex": "["}), "pretokenizers[0].pattern.Regex: "},
		{"bytes", "pre_tokenizer", split(object{"Regex": "a++"}), "pretokenizers[0].pattern.Regex: "},
		{"bytes", "pre_tokenizer", split(7), "pre_tokenizer.pretokenizers.pattern: not of the type"},
		{"bytes", "pre_tokenizer", sequence(object{"type": "Split", "pattern": object{"Regex": "a"}, "behavior": "Removed"}, level), "[0].behavior"},
		{"bytes", "pre_tokenizer", sequence(object{"type": "Split", "pattern": object{"Regex": "a"}, "behavior": "Isolated", "invert": true}, level), "[0].behavior"},
		{"bytes", "decoder", object{"type": "WordPiece"}, `decoder.type: "WordPiece"`},
		{"bytes", "post_processor", object{"type": "Other"}, `post_processor.type: "Other"`},
		{"bytes", "added_tokens", []any{object{"content": "x"}}, "added_tokens[0].id"},
		{"bytes", "added_tokens", added("id", 1<<20), "added_tokens[1].id"},
		{"bytes", "added_tokens", added("id", 300), "added_tokens[1].id: 300 contradicts"},
		{"bytes", "added_tokens", added("id", 0), "added_tokens[1].id: 0 contradicts"},
		{"bytes", "added_tokens", added("content", "a"), "added_tokens[1].id: 301 contradicts"},
		{"bytes", "added_tokens", added("content", strings.Repeat("x", 2000)), "added_tokens[1].content: too long"},
		{"bytes", "added_tokens", added("lstrip", true), "added_tokens[1]: single_word, lstrip"},
		{"bytes", "added_tokens", added("rstrip", true), "added_tokens[1]: single_word, lstrip"},
		{"bytes", "added_tokens", added("single_word", true), "added_tokens[1]: single_word, lstrip"},
		{"spaces", "pre_tokenizer", object{"type": "Whitespace"}, `pre_tokenizer.type: "Whitespace"`},
		{"spaces", "normalizer", object{"type": "Precompiled"}, `normalizer.type: "Precompiled"`},
		{"spaces", "normalizer", nil, "pre_tokenizer: neither"},
		{"spaces", "normalizer", normalizers(prepend, prepend), "normalizer.normalizers[1].prepend"},
		{"spaces", "normalizer", object{"type": "Prepend", "prepend": "_"}, "normalizer.prepend"},
		{"spaces", "normalizer", object{"type": "Replace", "pattern": object{"Regex": " +"}, "content": "▁"}, "normalizer: only"},
		{"spaces", "normalizer", object{"type": "Replace", "pattern": object{"String": "a"}, "content": "▁"}, "normalizer: only"},
		{"spaces", "normalizer", object{"type": "Replace", "pattern": object{"String": " "}, "content": "_"}, "normalizer: only"},
		{"spaces", "pre_tokenizer", metaspace("replacement", "_"), "pre_tokenizer.replacement"},
		{"spaces", "pre_tokenizer", metaspace("prepend_scheme", "x"), "pre_tokenizer.prepend_scheme"},
		{"spaces", "pre_tokenizer", metaspace("add_prefix_space", false), "pre_tokenizer.add_prefix_space"},
		{"spaces", "decoder", object{"type": "CTC"}, `decoder.type: "CTC"`},
		{"spaces", "model.byte_fallback", false, "model.byte_fallback"},
		{"spaces", "model.ignore_merges", true, "model.ignore_merges"},
		{"spaces", "model.vocab", object{"a": 1}, `no token stands for "▁"`},
		{"spaces", "model.vocab", object{"▁": 1}, "no token stands for the byte 0x00"},
		{"spaces", "model.merges", []any{"a <0x41>"}, "model.merges[0]: "},
	}
	for _, tt := range tests {
		doc := byteLevelDoc([2]string{"a", "b"})
		if tt.kind == "spaces" {
			doc = spacesDoc("abc", [2]string{"a", "b"})
			doc["model"].(object)["vocab"].(object)["a<0x41>"] = 999
		}
		if _, err := parseFile(marshal(t, doc)); err != nil {
			t.Fatalf("%s: %v", tt.kind, err)
		}
		at, key := doc, tt.path
		if rest, ok := strings.CutPrefix(tt.path, "model."); ok {
			at, key = doc["model"].(object), rest
		}
		at[key] = tt.value
		if _, err := parseFile(marshal(t, doc)); err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s with another %s: error %v, want %q", tt.kind, tt.path, err, tt.err)
		}
	}
}

// TestAccepted: what differs from the reference's own spelling of a file, but not in what it means.
func TestAccepted(t *testing.T) {
	old := byteLevelDoc([2]string{"a", "b"}, [2]string{"ab", "c"})
	delete(old["model"].(object), "type") // as in GPT-2's own file
	old["model"].(object)["merges"] = []string{"a b", "ab c"}
	last := byteLevelDoc([2]string{"a", "b"}, [2]string{"b", "c"}, [2]string{"a", "b"}) // the later of two stands
	foreign := byteLevelDoc()                                                           // the token is not spelled as a piece is, so that no piece is the token
	foreign["model"].(object)["ignore_merges"] = true
	foreign["model"].(object)["vocab"].(object)["｜"] = 256
	gap := byteLevelDoc()
	gap["added_tokens"] = []any{object{"id": 300, "content": "<x>", "special": true}, object{"id": 299, "content": ""}}
	for name, tt := range map[string]struct {
		doc  object
		text string
		want []uint32
	}{
		"strings":       {old, "abc", []uint32{257}},
		"merge twice":   {last, "abc", []uint32{'a', 257}},
		"foreign token": {foreign, "｜", []uint32{0xef, 0xbd, 0x9c}},
		"special token": {gap, "<x>", []uint32{'<', 'x', '>'}},
	} {
		if got := mustParse(t, tt.doc).Append(nil, tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	e := mustParse(t, gap)
	if back, err := e.AppendText(nil, []uint32{'a', 300}); err != nil || string(back) != "a<x>" {
		t.Errorf("a special token comes back as %q, %v", back, err)
	}
	for _, id := range []uint32{256, 299, 301, 1 << 31} {
		if _, err := e.AppendText(nil, []uint32{id}); err == nil {
			t.Errorf("id %d stands for something", id)
		}
	}
}

func TestNotJSON(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "line 1, byte 0: not JSON",
		"{\n\"secret\": x}":   "line 2, byte 11: not JSON",
		"[]":                  "not a JSON object",
		`"secret"`:            "not a JSON object",
		`{"model": "secret"}`: "model: not of the type that is expected there",
		`{"model": {"type": "BPE", "vocab": {}}}`:  "model.merges: missing",
		`{"model": {"type": "BPE", "merges": []}}`: "model.vocab: missing",
		"null": "model: missing",
	} {
		if _, err := parseFile([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", in, err, want)
		}
	}
}

func TestOpenAny(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	if err := os.WriteFile(path, marshal(t, byteLevelDoc([2]string{"a", "b"})), 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := OpenAny("r50k_base"); err != nil || e != mustOpen(t, "r50k_base") {
		t.Errorf("a name: %v", err)
	}
	var name string
	for _, p := range []string{path, dir} {
		e, err := OpenAny(p)
		if err != nil {
			t.Fatal(err)
		}
		if name = e.Name(); !strings.HasPrefix(name, "tokenizer.json:") || len(name) != len("tokenizer.json:")+16 {
			t.Errorf("%s is called %s", p, name)
		}
	}
	if _, err := OpenAny(name); err == nil || !strings.Contains(err.Error(), "want its path") {
		t.Errorf("a recorded name: %v", err)
	}
	if _, err := OpenAny("gpt2"); err == nil || !strings.Contains(err.Error(), "r50k_base, or the path of a tokenizer.json") {
		t.Errorf("an unknown name: %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, dir} {
		if _, err := OpenAny(p); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("the error for a bad file is %v", err)
		}
	}
	if _, err := openFile(filepath.Join(dir, "absent")); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("the error for an absent file is %v", err)
	}
}

// TestLargeFile writes nothing: the file is a hole.
func TestLargeFile(t *testing.T) {
	longtest.Skip(t)
	path := filepath.Join(t.TempDir(), fileName)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(maxFile + 1); err != nil {
		t.Skip("no room: ", err)
	}
	if _, err := openFile(path); err == nil || !strings.Contains(err.Error(), "larger than 256 MiB") {
		t.Errorf("the error for a large file is %v", err)
	}
}

// FuzzParseTokenizerJSON wants -fuzzminimizetime 5x: the coverage of maps and seeded hashes varies, and minimising goes on for long.
func FuzzParseTokenizerJSON(f *testing.F) {
	bytes := byteLevelDoc([2]string{"a", "b"}, [2]string{" ", "ab"})
	spaces := spacesDoc("abé", [2]string{"a", "b"}, [2]string{"▁", "ab"})
	steps := byteLevelDoc([2]string{"a", "b"})
	steps["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []any{
		object{"type": "Digits", "individual_digits": true},
		object{"type": "Split", "pattern": object{"Regex": "a+|b(?!c)"}, "behavior": "Isolated"},
		object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
	}}
	steps["added_tokens"] = []any{object{"id": 300, "content": "<x>"}, object{"id": 301, "content": "<x", "normalized": true}}
	for _, doc := range []object{bytes, spaces, steps} {
		f.Add(marshal(f, doc))
	}
	f.Add([]byte(`{"model":{"merges":["a b"],"vocab":{"a":0}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseFile(data)
		if err != nil {
			return
		}
		for _, s := range []string{"ab ab  é\x80\n1", "<x> <xa", "", " ▁"} {
			if _, err := e.AppendText(nil, e.Append(nil, s)); err != nil {
				t.Error(err)
			}
		}
		e.Words()
	})
}
