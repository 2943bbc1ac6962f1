package flags

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/token"
)

// usualTokenizer is taken where nobody names one.
const usualTokenizer = "o200k_base"

// openTokenizer opens the tokenizer of a workload's prompts: that of --tokenizer, else the
// workload's own. A workload knows only the digest of a tokenizer.json: the file is looked
// for beside the workload, in the current folder and in Hugging Face's cache. A plan that
// does not find it estimates with o200k_base.
func (f *Prompts) openTokenizer(cmd *cobra.Command, t *trace.Trace) (*token.Encoding, error) {
	name := cmp.Or(f.Tokenizer, t.Meta.Tokenizer, usualTokenizer)
	digest, byDigest := strings.CutPrefix(name, "tokenizer.json:")
	hub := os.Getenv("HF_HUB_CACHE")
	if hub == "" {
		home, _ := os.UserHomeDir()
		hub = filepath.Join(cmp.Or(os.Getenv("HF_HOME"), filepath.Join(home, ".cache", "huggingface")), "hub")
	}
	if !byDigest {
		// A model of Hugging Face's hub, such as Qwen/Qwen3-8B, is looked for in its cache.
		owner, model, ofHub := strings.Cut(name, "/")
		if _, err := objectstore.Stat(name); err != nil && ofHub && owner != "" && owner != "." && owner != ".." &&
			model != "" && !strings.Contains(model, "/") && filepath.Ext(model) != ".json" {
			paths, _ := objectstore.Glob(filepath.Join(hub, "models--"+owner+"--"+model, "snapshots", "*",
				"tokenizer.json"))
			if len(paths) == 0 {
				return nil, cli.Usagef("--tokenizer: %s is no file, and no model in Hugging Face's cache, %s: name "+
					"the path of its tokenizer.json", name, hub)
			}
			name = paths[len(paths)-1]
			cli.Notef(cmd, "tokenizer: %s", name)
		}
		tok, err := token.OpenAny(name)
		if err != nil {
			err = cli.Exit(cli.Usage, err)
		}
		return tok, err
	}
	beside := objectstore.Dir(t.Name())
	for _, pattern := range []string{
		filepath.Join(beside, "*tokenizer*.json"), filepath.Join(beside, "*", "tokenizer.json"),
		"*tokenizer*.json", filepath.Join(hub, "models--*", "snapshots", "*", "tokenizer.json"),
	} {
		paths, _ := objectstore.Glob(pattern) // a pattern of ours is never bad
		for _, path := range paths {
			if hasDigest(path, digest) {
				cli.Notef(cmd, "tokenizer: %s, which the workload was made with by its digest", path)
				return token.OpenAny(path)
			}
		}
	}
	if f.PlanOnly {
		cli.Notef(cmd, "tokenizer: the workload's %s is not here, so the bytes of prompts are estimated with %s",
			name, usualTokenizer)
		return token.Open(usualTokenizer)
	}
	return nil, cli.Usagef("the workload was made with a tokenizer.json whose SHA-256 begins with %s, and it is "+
		"neither beside %s, nor in this folder, nor below %s: put it beside the workload, or name it with "+
		"--tokenizer FILE", digest, t.Name(), hub)
}

// hasDigest says whether the SHA-256 of a file begins with these digits.
func hasDigest(path, digits string) bool {
	f, err := objectstore.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return err == nil && strings.HasPrefix(hex.EncodeToString(h.Sum(nil)), digits)
}

// Sample is a text of so many tokens like the prompts of the workload, but with another
// seed, so that it warms no cache for them.
func (m *PromptMaker) Sample(tokens int) (string, error) {
	other := *m
	other.Seed, other.Tails, other.BlockSize = ^m.Seed, nil, tokens
	p, err := other.Prompter(result.Template{})
	if err != nil {
		return "", err
	}
	text, err := p.Prompt(&trace.Request{InputTokens: int32(tokens), Blocks: []uint64{0}}, nil)
	return string(text), err
}

// OffBy says how a server's count of a text's tokens differs from the tokenizer's, such as
// "52 % fewer tokens than o200k_base", or "" where it does not, by more than a template may
// change where it meets the text.
func (m *PromptMaker) OffBy(counted, tokens int) string {
	if counted <= 1 || max(counted-tokens, tokens-counted) <= max(2, tokens/32) {
		return ""
	}
	than := "more"
	if counted < tokens {
		than = "fewer"
	}
	share := float64(max(counted-tokens, tokens-counted)) / float64(tokens)
	return fmt.Sprintf("%.0f %% %s tokens than %s", 100*share, than, m.Tok.Name())
}
