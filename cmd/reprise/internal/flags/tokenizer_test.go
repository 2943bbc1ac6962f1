package flags

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/token"
)

// byteTokenizer is a tokenizer.json whose tokens are bytes and spaces.
func byteTokenizer() []byte {
	var vocab []string
	for b := range 256 {
		vocab = append(vocab, fmt.Sprintf(`"<0x%02X>":%d`, b, b+1))
	}
	return fmt.Appendf(nil, `{"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},"decoder":{"type":"Fuse"},"added_tokens":[],
		"model":{"type":"BPE","unk_token":"<unk>","byte_fallback":true,"vocab":{"<unk>":0,%s,"▁":257},"merges":[]}}`, strings.Join(vocab, ","))
}

// A tokenizer.json is found by its digest beside the workload, in the current folder and
// in Hugging Face's cache, and a model of that cache by its name. A plan needs none.
func TestTokenizerIsFound(t *testing.T) {
	dir, hub := t.TempDir(), filepath.Join(t.TempDir(), "hub")
	t.Chdir(t.TempDir())
	t.Setenv("HF_HUB_CACHE", hub)
	workload, doc := filepath.Join(dir, "w.parquet"), byteTokenizer()
	if err := os.WriteFile("any.json", doc, 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := token.OpenAny("any.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("any.json"); err != nil {
		t.Fatal(err)
	}
	err = trace.Create(workload, func(trace.Writer[trace.Request]) (trace.Meta, error) { return trace.Meta{Tokenizer: known.Name()}, nil })
	if err != nil {
		t.Fatal(err)
	}
	w, err := trace.Open(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	open := func(f Prompts) (name, said string, err error) {
		var errs bytes.Buffer
		cmd := new(cobra.Command)
		cmd.SetErr(&errs)
		tok, err := f.openTokenizer(cmd, w)
		if err == nil {
			name = tok.Name()
		}
		return name, errs.String(), err
	}
	digest := strings.TrimPrefix(known.Name(), "tokenizer.json:")
	_, _, err = open(Prompts{})
	if want := "the workload was made with a tokenizer.json whose SHA-256 begins with " + digest + ", and it is neither beside " + workload + ", nor in this folder, nor below " + hub +
		": put it beside the workload, or name it with --tokenizer FILE"; err == nil || err.Error() != want || !errors.As(err, new(*cli.ExitError)) {
		t.Errorf("nowhere: %v\nwant %s", err, want)
	}
	if name, said, err := open(Prompts{PlanOnly: true}); name != "o200k_base" || err != nil ||
		said != "tokenizer: the workload's "+known.Name()+" is not here, so the bytes of prompts are estimated with o200k_base\n" {
		t.Errorf("a plan: %s, %q, %v", name, said, err)
	}
	_, _, err = open(Prompts{Tokenizer: "me/tiny"})
	if want := "--tokenizer: me/tiny is no file, and no model in Hugging Face's cache, " + hub + ": name the path of its tokenizer.json"; err == nil || err.Error() != want {
		t.Errorf("a model: %v\nwant %s", err, want)
	}
	for _, path := range []string{
		filepath.Join(dir, "tokenizer.json"), filepath.Join(dir, "llama-tokenizer.json"), filepath.Join(dir, "llama", "tokenizer.json"), "tokenizer.json",
		filepath.Join(hub, "models--me--tiny", "snapshots", "a1", "tokenizer.json"),
	} {
		// Another of the name is passed over.
		other := filepath.Join(filepath.Dir(path), "a-tokenizer.json")
		for name, text := range map[string][]byte{path: doc, other: []byte("{}")} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if name, said, err := open(Prompts{}); name != known.Name() || err != nil || said != "tokenizer: "+path+", which the workload was made with by its digest\n" {
			t.Errorf("%s: %s, %q, %v", path, name, said, err)
		}
		if strings.HasPrefix(path, hub) {
			if name, said, err := open(Prompts{Tokenizer: "me/tiny"}); name != known.Name() || err != nil || said != "tokenizer: "+path+"\n" {
				t.Errorf("a model: %s, %q, %v", name, said, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if name, _, err := open(Prompts{Tokenizer: "cl100k_base"}); name != "cl100k_base" || err != nil {
		t.Errorf("a name: %s, %v", name, err)
	}
}

// A count that is off by what a template may do to the text is none of another tokenizer.
func TestOffBy(t *testing.T) {
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	m := &PromptMaker{Tok: tok, Words: tok.Words(), Seed: 1, BlockSize: 16}
	for counted, want := range map[int]string{64: "", 62: "", 66: "", 67: "5 % more tokens than o200k_base", 31: "52 % fewer tokens than o200k_base", 145: "127 % more tokens than o200k_base", 1: "", 0: ""} {
		if got := m.OffBy(counted, 64); got != want {
			t.Errorf("%d of 64: %q, want %q", counted, got, want)
		}
	}
	// The sample has the tokens that it is asked for, and is no prompt of the workload.
	text, err := m.Sample(64)
	if err != nil || len(tok.Append(nil, text)) != 64 {
		t.Errorf("%q, %v", text, err)
	}
	p, err := m.Prompter(result.Template{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := p.Prompt(&trace.Request{InputTokens: 16, Blocks: []uint64{0}}, nil)
	if err != nil || strings.HasPrefix(text, string(own)) {
		t.Errorf("the sample is a prompt: %q, %v", own, err)
	}
}
