package token

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A wireMessage is a message as chats.json has it.
type wireMessage struct {
	Role    string          `json:"role"`
	Content string          `json:"content"`
	Calls   json.RawMessage `json:"tool_calls"`
	CallID  string          `json:"tool_call_id"`
}

type wireChat struct {
	Messages []wireMessage   `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
	Prompt   string          `json:"prompt"`
	IDs      []uint32        `json:"ids"`
}

func (w *wireChat) chat() *Chat {
	c := &Chat{Time: someTime}
	if string(w.Tools) != "null" {
		c.Tools = string(w.Tools)
	}
	for _, m := range w.Messages {
		c.Messages = append(c.Messages, Message{Role: m.Role, Content: m.Content, Calls: string(m.Calls), CallID: m.CallID})
	}
	return c
}

// chats are small ones for templates that are restated here; those that a template does not take are left out by name.
var chats = func() (all []wireChat) {
	for _, text := range []string{
		`{"messages":[{"role":"user","content":"Hello"}]}`,
		`{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}]}`,
		`{"messages":[{"role":"system","content":" Be brief.\n"},{"role":"user","content":" Hello \n"},{"role":"assistant","content":"Hi there!  "},{"role":"user","content":"\n\né 12"}]}`,
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"<think>\nhm\n</think>\n\nb"},{"role":"user","content":"c"}]}`,
		`{"messages":[{"role":"user","content":"W?"}],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"z":{"type":"string","description":"e"},"a":{"type":"integer"}},"required":["z"]}}}]}`,
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"W?"},{"role":"assistant","content":"","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{\"z\":\"é\",\"a\":[1.0]}"}}]},` +
			`{"role":"tool","content":"{\"t\": 1}","tool_call_id":"abcdefghi"},{"role":"assistant","content":"One."},{"role":"user","content":"And?"}],"tools":[{"type":"function","function":{"name":"f","description":"d"}},{"type":"function","function":{"name":"g","description":"h"}}]}`,
	} {
		w := wireChat{Tools: json.RawMessage("null")}
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			panic(err)
		}
		all = append(all, w)
	}
	return all
}()

// restated lists the templates that testdata/templates states again, in Jinja and in short.
func restated(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "templates", "*.jinja"))
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".jinja"))
	}
	return names
}

// templateOf opens a template by name; "file" is one in Jinja.
func templateOf(t testing.TB, name string) Template {
	t.Helper()
	if name == "file" {
		return restatedFile(t, "qwen3")
	}
	return mustTemplate(t, name)
}

// tokensOf are the marks of beginning and end in the restated templates.
var tokensOf = map[string][2]string{
	"llama2": {"<s>", "</s>"}, "mistral-v1": {"<s>", "</s>"}, "mistral-v3": {"<s>", "</s>"}, "gemma": {"<bos>", ""},
	"llama3": {"<|begin_of_text|>", ""}, "llama3.1": {"<|begin_of_text|>", ""}, "llama3.2": {"<|begin_of_text|>", ""},
	"deepseek-v3": {"<｜begin▁of▁sentence｜>", ""},
}

func restatedFile(t testing.TB, name string) Template {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata", "templates", name+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	config, _ := json.Marshal(map[string]any{"bos_token": tokensOf[name][0], "eos_token": map[string]string{"content": tokensOf[name][1]}, "chat_template": string(text)})
	if err := os.WriteFile(filepath.Join(dir, configName), config, 0o600); err != nil {
		t.Fatal(err)
	}
	tpl, err := OpenTemplateAny(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// markedTokenizer is a small trained tokenizer with the special tokens of a template, or of all.
func markedTokenizer(t testing.TB, name string) *Encoding {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(mustFamilies(t)[0].Tokenizer, &doc); err != nil {
		t.Fatal(err)
	}
	r := &Renderer{tok: mustOpen(t, "o200k_base")}
	for _, s := range styles() {
		if name != "" && name != s.name {
			continue
		}
		for _, w := range chats {
			s.render(r, w.chat())
			s.answer(r)
		}
	}
	added, _ := doc["added_tokens"].([]any)
	seen := map[string]bool{}
	for _, p := range r.pieces {
		if p.Special && !seen[p.Text] {
			seen[p.Text] = true
			added = append(added, map[string]any{"id": 100_000 + len(seen), "content": p.Text, "special": true})
		}
	}
	doc["added_tokens"] = added
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	e, err := parseFile(data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestBuiltInIsJinja holds that a template that is built in gives, token for token, what its statement in Jinja gives. The
// statements are short ones, written after the published templates; [TestPublishedTemplates] holds these.
func TestBuiltInIsJinja(t *testing.T) {
	for _, name := range restated(t) {
		t.Run(name, func(t *testing.T) {
			tok := markedTokenizer(t, name)
			inGo, inJinja := mustTemplate(t, name), restatedFile(t, name)
			taken := 0
			for i, w := range chats {
				c := w.chat()
				want, err := inJinja.Renderer(tok).Render(c)
				if err != nil && strings.Contains(err.Error(), "raise_exception") {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := inGo.Renderer(tok).Render(c)
				if err != nil {
					t.Fatal(err)
				}
				taken++
				if textOf(got) != textOf(want) {
					t.Errorf("chat %d:\n%q, want\n%q", i, textOf(got), textOf(want))
				} else if a, b := AppendPieces(nil, tok, got, true), AppendPieces(nil, tok, want, true); !slices.Equal(a, b) {
					t.Errorf("chat %d: %v, want %v", i, a, b)
				}
			}
			if taken < 2 {
				t.Errorf("the statement takes %d chats only", taken)
			}
		})
	}
}

// TestPublishedTemplates holds published templates, which are too large to keep here, against Hugging Face: the directories of
// REPRISE_TEST_TOKENIZERS that have a chats.json (of testdata/chats.py). The template of the file gives its prompts and ids,
// and so does the one that is built in, if the directory is named like one.
func TestPublishedTemplates(t *testing.T) {
	root := os.Getenv("REPRISE_TEST_TOKENIZERS")
	files, err := filepath.Glob(filepath.Join(root, "*", "chats.json"))
	if root == "" || err != nil || len(files) == 0 {
		t.Skip("no */chats.json in REPRISE_TEST_TOKENIZERS; see testdata/chats.py")
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var all []wireChat
			if err := json.Unmarshal(text, &all); err != nil {
				t.Fatal(err)
			}
			tok, err := OpenAny(dir)
			if err != nil {
				t.Fatal(err)
			}
			inFile, err := OpenTemplateAny(dir)
			if err != nil {
				t.Fatal(err)
			}
			checkPublished(t, inFile, tok, all)
			if built, err := OpenTemplate(filepath.Base(dir)); err == nil {
				checkPublished(t, built, tok, all)
			}
			t.Logf("%d chats", len(all))
		})
	}
}

func checkPublished(t *testing.T, tpl Template, tok *Encoding, all []wireChat) {
	t.Helper()
	for i := range all {
		c := all[i].chat()
		calls := slices.ContainsFunc(c.Messages, func(m Message) bool { return m.Calls != "" })
		deepSeek := strings.Contains(all[i].Prompt, "<｜User｜>")
		switch {
		case tpl.style == nil && deepSeek && calls:
			continue // it wants no content where there are calls, and gets an empty one, as from vLLM
		case tpl.style != nil && !tpl.style.tools && calls && !deepSeek:
			continue // the published template passes over calls, which are counted here
		case tpl.style != nil && !tpl.style.tools:
			c.Tools = "" // and over definitions
		}
		pieces, err := tpl.Renderer(tok).Render(c)
		if err != nil {
			t.Errorf("%s, chat %d: %v", tpl.Name, i, err)
			continue
		}
		if got, want := textOf(pieces), all[i].Prompt; got != want {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("%s, chat %d, at %d:\n%.300q, want\n%.300q", tpl.Name, i, at, got[max(0, at-40):], want[max(0, at-40):])
			continue
		}
		if got := AppendPieces(nil, tok, pieces, true); !slices.Equal(got, all[i].IDs) {
			t.Errorf("%s, chat %d: %v, want %v", tpl.Name, i, got, all[i].IDs)
		}
	}
}
