package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
)

// Without a tokenizer, prompts have the lengths of the workload at servers with others than the usual one, and share
// what they should: each word is one token there. A server that has too few such words is said to have another tokenizer.
func TestTokenizerUnasked(t *testing.T) {
	t.Parallel()
	few := filepath.Join(t.TempDir(), "tokenizer.json")
	writeFiles(t, map[string]string{few: wordTokenizer(t, "the", "was", "from", "give", "look", "much")})
	for _, c := range []struct {
		tokenizer string
		words     bool // are looked for
		exact     bool
	}{
		{"o200k_base", false, true}, {"cl100k_base", true, true}, {"r50k_base", true, true}, {few, false, false},
	} {
		config := engine.DefaultServerConfig()
		config.Engine.Costs, config.Tokenizer = engine.Costs{}, c.tokenizer
		s, err := engine.NewServer(config)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(s.Handler())
		defer server.Close()
		for _, load := range []string{
			"--input-tokens 40±10 --shared-prefix 64 --output-tokens 2 --requests 30 --api completions",
			"--input-tokens 40±10 --shared-prefix 64 --output-tokens 2 --requests 30 --api chat",
			"chat --max-requests 30 --api chat",
		} {
			out, errs, code := reprise(t, strings.Fields("replay "+load+" --concurrency 2 --json --url "+server.URL+" -o "+
				filepath.Join(t.TempDir(), "r.parquet"))...)
			var report struct {
				Run struct {
					Words int `json:"one_token_words"`
				}
				Tokens struct {
					PromptError struct {
						SumAbs int64 `json:"sum_abs_tokens"`
					} `json:"prompt_error"`
				}
				Cache struct {
					Measured float64 `json:"measured_ratio"`
					Expected float64 `json:"expected_ratio"`
				}
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
			what := fmt.Sprintf("%s, %s: off by %d tokens, hits %.4f and %.4f, %d words, code %d", filepath.Base(c.tokenizer), load,
				report.Tokens.PromptError.SumAbs, report.Cache.Measured, report.Cache.Expected, report.Run.Words, code)
			if c.exact != (report.Tokens.PromptError.SumAbs == 0) || c.words != (report.Run.Words > 0) {
				t.Errorf("%s\n%s", what, errs)
			}
			if c.exact && report.Cache.Measured != report.Cache.Expected {
				t.Error(what)
			}
			if !c.exact && (code != cli.Untrusted || !strings.Contains(errs, "name its tokenizer with --tokenizer")) {
				t.Errorf("%s\n%s", what, errs)
			}
		}
	}
}

// The next command knows the words of a server: it counts two texts in place of many. It looks for them again where the
// server counts otherwise by then, and where the file of the words cannot be read.
func TestWordsAreRemembered(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	var serves atomic.Value
	tokenizers := map[string]http.Handler{}
	other := filepath.Join(t.TempDir(), "tokenizer.json")
	writeFiles(t, map[string]string{other: wordTokenizer(t, "the", "was", "from", "give", "look", "much")})
	for _, name := range []string{"cl100k_base", other} {
		config := engine.DefaultServerConfig()
		config.Engine.Costs, config.Tokenizer = engine.Costs{}, name
		s, err := engine.NewServer(config)
		if err != nil {
			t.Fatal(err)
		}
		tokenizers[name] = s.Handler()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		tokenizers[serves.Load().(string)].ServeHTTP(w, r)
	}))
	defer server.Close()

	state := t.TempDir()
	asked := func(tokenizer string) int64 {
		serves.Store(tokenizer)
		requests.Store(0)
		var errs bytes.Buffer
		line := "replay --input-tokens 40 --output-tokens 2 --requests 30 --concurrency 2 --api completions --url " +
			server.URL + " -o " + filepath.Join(t.TempDir(), "r.parquet")
		run(cli.WithState(t.Context(), state), strings.Fields(line), nil, io.Discard, &errs)
		return requests.Load()
	}
	first, second := asked("cl100k_base"), asked("cl100k_base")
	if first < 60 || second > 50 {
		t.Errorf("%d requests, and %d once the words are known", first, second)
	}
	if anew := asked(other); anew < 60 {
		t.Errorf("%d requests to a server that has another tokenizer by now", anew)
	}
	asked("cl100k_base")

	files, err := filepath.Glob(filepath.Join(state, "server-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, broken := range []string{"[", "[1,2,3]", "[" + strings.Repeat("-1,", 99) + "1]",
		"[" + strings.Repeat("99999999,", 99) + "1]"} {
		writeFiles(t, map[string]string{files[0]: broken})
		if again := asked("cl100k_base"); again < 60 {
			t.Errorf("%s: %d requests", broken, again)
		}
	}
	if err := os.Chtimes(files[0], time.Time{}, time.Now().Add(-11*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if again := asked("cl100k_base"); again < 60 {
		t.Errorf("%d requests after eleven minutes", again)
	}
}

// wordTokenizer is a tokenizer.json with these words as tokens, bare and after a space, and else bytes.
func wordTokenizer(t *testing.T, words ...string) string {
	t.Helper()
	vocab, merges := map[string]int{}, [][2]string{}
	has := func(token string) {
		if _, ok := vocab[token]; !ok {
			vocab[token] = len(vocab)
		}
	}
	next := 256
	for b := range 256 { // as GPT-2 writes bytes
		if b > ' ' && b < 127 || b > 160 && b != 173 {
			has(string(rune(b)))
		} else {
			has(string(rune(next)))
			next++
		}
	}
	for _, w := range words {
		for n := 2; n <= len(w); n++ {
			has(w[:n])
			merges = append(merges, [2]string{w[:n-1], w[n-1 : n]})
		}
	}
	for _, w := range words {
		has("Ġ" + w)
		merges = append(merges, [2]string{"Ġ", w})
	}
	doc, err := json.Marshal(map[string]any{"added_tokens": []any{},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		"decoder":       map[string]any{"type": "ByteLevel"},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": merges}})
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// The tokenizer of a served model is taken where it is at hand and nobody named another.
func TestTokenizerOfModel(t *testing.T) {
	hub, folder := filepath.Join(t.TempDir(), "hub"), t.TempDir()
	t.Setenv("HF_HUB_CACHE", hub)
	cached := filepath.Join(hub, "models--me--tiny", "snapshots", "a1", "tokenizer.json")
	if err := os.MkdirAll(filepath.Dir(cached), 0o700); err != nil {
		t.Fatal(err)
	}
	doc := wordTokenizer(t, "the", "was", "from", "give", "look", "much")
	writeFiles(t, map[string]string{cached: doc, filepath.Join(folder, "tokenizer.json"): doc})

	var beside sync.WaitGroup
	for _, c := range []struct {
		model, flags string
		taken        bool
	}{
		{"me/tiny", "", true}, {folder, "", true}, {"me/tiny", " --tokenizer o200k_base", false},
		{"me/other", "", false}, {"tiny", "", false}, {"me/*", "", false}, {"../tiny", "", false}, {folder + "/none", "", false},
	} {
		config := engine.DefaultServerConfig()
		config.Engine.Costs, config.Model, config.Tokenizer = engine.Costs{}, c.model, cached
		s, err := engine.NewServer(config)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(s.Handler())
		defer server.Close()

		beside.Go(func() { // check waits
			line := "replay --input-tokens 40 --output-tokens 2 --requests 10 --concurrency 2 --url " + server.URL + " -o " +
				filepath.Join(t.TempDir(), "r.parquet") + c.flags
			_, errs, code := reprise(t, strings.Fields(line)...)
			taken := strings.Contains(errs, "tokenizer.json, as the server has the model "+c.model)
			if other := strings.Contains(errs,
				"name its tokenizer with --tokenizer"); taken != c.taken || other == c.taken {
				t.Errorf("%s%s: code %d, taken %t\n%s", c.model, c.flags, code, taken, errs)
			}
			says, _, _ := reprise(t, strings.Fields("check --details --url "+server.URL+c.flags)...)
			if strings.Contains(says, " tokens than ") == c.taken ||
				strings.Contains(says, "counts as the server does") != c.taken {
				t.Errorf("%s%s: check says\n%s", c.model, c.flags, says)
			}
		})
	}
	beside.Wait()
}
