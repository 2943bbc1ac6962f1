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
	"reprise/synth/prompt"
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
	hub := hubCache()
	if !byDigest {
		if _, err := objectstore.Stat(name); err != nil && filepath.Ext(name) != ".json" && isOfHub(name) {
			path := cachedTokenizer(name)
			if path == "" {
				return nil, cli.Usagef("--tokenizer: %s is no file, and no model in Hugging Face's cache, %s: name "+
					"the path of its tokenizer.json", name, hub)
			}
			name = path
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
		cli.Warnf(cmd, "tokenizer: the workload's %s is not here, so the bytes of prompts are estimated with %s",
			name, usualTokenizer)
		return token.Open(usualTokenizer)
	}
	return nil, cli.Usagef("the workload was made with a tokenizer.json whose SHA-256 begins with %s, and it is "+
		"neither beside %s, nor in this folder, nor below %s: put it beside the workload, or name it with "+
		"--tokenizer FILE", digest, t.Name(), hub)
}

// hubCache is where Hugging Face keeps the models that it has brought here.
func hubCache() string {
	if hub := os.Getenv("HF_HUB_CACHE"); hub != "" {
		return hub
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(cmp.Or(os.Getenv("HF_HOME"), filepath.Join(home, ".cache", "huggingface")), "hub")
}

// isOfHub says whether a name may be that of a model of Hugging Face's hub, such as Qwen/Qwen3-8B.
func isOfHub(name string) bool {
	owner, model, ok := strings.Cut(name, "/")
	return ok && strings.Trim(owner, ".") != "" && model != "" && !strings.ContainsAny(name, `*?[\`) &&
		!strings.Contains(model, "/")
}

// cachedTokenizer is the path of the tokenizer.json of a model of the hub, "" where it is not in the cache.
func cachedTokenizer(name string) string {
	paths, _ := objectstore.Glob(filepath.Join(hubCache(), "models--"+strings.ReplaceAll(name, "/", "--"),
		"snapshots", "*", "tokenizer.json")) // a pattern of ours is never bad
	if len(paths) == 0 {
		return ""
	}
	return paths[len(paths)-1]
}

// TakeModels takes the tokenizer of a served model in place of one that nobody named, where it is at hand: in the
// model's folder, if one of its names is that, or in Hugging Face's cache.
func (m *PromptMaker) TakeModels(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		m.takeModel(cmd, name)
	}
}

func (m *PromptMaker) takeModel(cmd *cobra.Command, model string) {
	if !m.Guessed || m.kind == trace.TextCorpus {
		return
	}
	path := ""
	if isOfHub(model) {
		path = cachedTokenizer(model)
	} else if filepath.IsAbs(model) {
		path = filepath.Join(model, "tokenizer.json")
	}
	if path == "" {
		return
	}

	tok, err := token.OpenAny(path)
	if err != nil || len(tok.Words().Text) == 0 {
		return // its words can still be counted by the server
	}
	text := m.text
	if m.kind == trace.TextWords {
		if text, err = prompt.English(tok); err != nil {
			return
		}
	}
	m.Tok, m.Words, m.text, m.Guessed = tok, tok.Words(), text, false
	cli.Oncef(cmd, "tokenizer: %s, as the server has the model %s", path, model)
}

// Prompts for an unknown tokenizer are made of servedWords words, and of largeWords if the workload has more than
// largeRows rows. Three words spell the id of a block: 256 words tell 16.7 million blocks apart, 1,024 a billion, and
// the leastWords 262,144.
const (
	servedWords = 256
	largeWords  = 1024
	largeRows   = 20_000
	leastWords  = 64
)

// OfServer makes prompts of words that oneToken finds to be one token each for a server whose tokenizer is not known,
// and says whether it found enough. No other prompts have the lengths of the workload there. Those of a server are
// looked for once in a command that makes several runs.
func (m *PromptMaker) OfServer(server string,
	oneToken func(words []string, least, want int) ([]int, error)) (bool, error) {
	if !m.Guessed || m.kind == trace.TextCorpus {
		return false, nil
	}
	common := prompt.Common(m.Tok.Words())
	numbers := m.learnt.recall(m.asked(server), len(common.Text))
	if numbers == nil {
		var err error
		numbers, err = oneToken(common.Text, leastWords, m.wanted())
		if err != nil || len(numbers) < leastWords {
			return false, err
		}
		m.learnt.keep(m.asked(server), numbers)
	}
	if m.Words = common.Only(numbers); m.kind == trace.TextWords {
		m.text = prompt.PlainEnglish(m.Words)
	}
	return true, nil
}

// Forget drops the words of a server that counts them otherwise by now, and says whether an earlier command had found
// them, so that it is worth to look again.
func (m *PromptMaker) Forget(server string) bool { return m.learnt.forget(m.asked(server)) }

// wanted is how many words prompts are made of, if a server has so many.
func (m *PromptMaker) wanted() int {
	if m.Rows > largeRows {
		return largeWords
	}
	return servedWords
}

// asked is under which name the words of a server are remembered, by how many were looked for.
func (m *PromptMaker) asked(server string) string {
	return fmt.Sprint(server, " ", m.Tok.Name(), " ", m.wanted())
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
