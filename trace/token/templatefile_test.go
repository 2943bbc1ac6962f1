package token

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace/token/internal/jinja"
)

// write puts files into a new directory.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	simple = `{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}{{ "A:" if add_generation_prompt }}`
	config = `{"bos_token":"<s>","eos_token":{"content":"</s>"},"chat_template":`
)

func TestTemplateFile(t *testing.T) {
	tok := mustOpen(t, "o200k_base")
	plain := &Chat{Messages: []Message{{Role: "user", Content: "Hi"}}, Time: someTime}
	tools := &Chat{Messages: plain.Messages, Tools: `[{"type":"function"}]`, Time: someTime}
	for name, tt := range map[string]struct {
		files       map[string]string
		open        string
		plain, tool string
	}{
		"jinja alone":        {map[string]string{"x.jinja": simple}, "x.jinja", "user:HiA:", "user:HiA:"},
		"jinja and config":   {map[string]string{"chat_template.jinja": simple, "tokenizer_config.json": config + `"other"}`}, "", "<s>user:Hi</s>A:", "<s>user:Hi</s>A:"},
		"JSON and config":    {map[string]string{"chat_template.json": `{"chat_template":"{{ bos_token }}x"}`, "tokenizer_config.json": config + `"other"}`}, "", "<s>x", "<s>x"},
		"JSON by its path":   {map[string]string{"chat_template.json": `{"chat_template":"{{ bos_token }}x"}`}, "chat_template.json", "x", "x"},
		"jinja before JSON":  {map[string]string{"chat_template.jinja": "j", "chat_template.json": `{"chat_template":"x"}`}, "", "j", "j"},
		"config":             {map[string]string{"tokenizer_config.json": config + `"{{ eos_token }}x"}`}, "", "</s>x", "</s>x"},
		"config by its path": {map[string]string{"c.json": config + `"x"}`}, "c.json", "x", "x"},
		"named":              {map[string]string{"tokenizer_config.json": config + `[{"name":"default","template":"d"},{"name":"tool_use","template":"{{ tools | length }}"},{"name":"rag","template":"{{"}]}`}, "", "d", "1"},
		"the date":           {map[string]string{"x.jinja": `{{ strftime_now("%Y-%m-%d %-d %b %B %H:%M:%S %% %A %j") }}`}, "x.jinja", "2026-05-01 1 May May 12:00:07 % Friday 121", "2026-05-01 1 May May 12:00:07 % Friday 121"},
		"tools or none":      {map[string]string{"x.jinja": `{{ tools is none }}{{ tools is defined }}`}, "x.jinja", "TrueTrue", "FalseTrue"},
	} {
		dir := write(t, tt.files)
		tpl, err := OpenTemplateAny(filepath.Join(dir, tt.open))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for c, want := range map[*Chat]string{plain: tt.plain, tools: tt.tool} {
			pieces, err := tpl.Renderer(tok).Render(c)
			if err != nil || textOf(pieces) != want {
				t.Errorf("%s: %q, %v, want %q", name, textOf(pieces), err, want)
			}
		}
		if len(tpl.Name) != len("jinja:")+16 || tpl.For("qwen3").Name != tpl.Name {
			t.Errorf("%s: named %s", name, tpl.Name)
		}
	}
	if tpl, err := OpenTemplateAny("qwen3"); err != nil || tpl.Name != "qwen3" {
		t.Errorf("%s, %v", tpl.Name, err)
	}
}

func TestTemplateFileErrors(t *testing.T) {
	dir := write(t, map[string]string{
		"bad.jinja": "a\n{% if %}", "empty.json": "{}", "list.json": "[1]", "named.json": `{"chat_template":[{"name":"rag","template":"x"}]}`,
		"large.jinja":  strings.Repeat("x", maxTemplate+1),
		"binary.jinja": "\x7fELF\xff",
	})
	for name, want := range map[string]string{
		"missing": "want one of none, chatml, ", "bad.jinja": "line 2 of the template: want a value here", "empty.json": "it has no chat_template",
		"list.json": "not a JSON object with a chat_template", "named.json": "it has no chat_template", "large.jinja": "larger than 1024 KiB",
		"binary.jinja": "it is not UTF-8 text",
		"":             "no such file",
	} {
		if _, err := OpenTemplateAny(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// Errors of rendering quote nothing of the chat, and a template without end is one.
func TestRenderErrors(t *testing.T) {
	tok := mustOpen(t, "o200k_base")
	c := &Chat{Messages: []Message{{Role: "user", Content: "hunter2", Calls: `[{"function":{"name":"hunter2"}}]`}}, Tools: `[{"hunter2":1}]`}
	for source, want := range map[string]string{
		`{{ raise_exception(messages[0].content) }}`: "the template refuses the conversation (raise_exception)",
		`{{ messages[0].content + 1 }}`:              "an operator between values",
		"\n{{ messages[0].content.x.y }}":            "line 2 of the template",
		`{{ tools[0] < 1 }}`:                         "no order",
		`{% for i in range(4000) %}{% for j in range(4000) %}{% endfor %}{% endfor %}`: "more steps than a template may",
		`{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`:                              "too deeply",
	} {
		tpl, err := OpenTemplateAny(write(t, map[string]string{jinjaName: source}))
		if err != nil {
			t.Fatal(err)
		}
		tpl.file.limits.Steps = 200_000
		_, err = tpl.Renderer(tok).Render(c)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

// What a server is given and what it is not, to the point.
func TestMessagesOfFileTemplate(t *testing.T) {
	tpl, err := OpenTemplateAny(write(t, map[string]string{jinjaName: `{{ messages | tojson }}`}))
	if err != nil {
		t.Fatal(err)
	}
	c := &Chat{Messages: []Message{
		{Role: "assistant", Calls: `[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"z\": 1, \"a\": [2.0]}"}},{"id":"d","function":{"name":"g","arguments":""}},{"function":{"arguments":"not json","name":"h"}}]`},
		{Role: "tool", Content: "r", CallID: "c", Name: "f"},
	}}
	pieces, err := tpl.Renderer(mustOpen(t, "o200k_base")).Render(c)
	const want = `[{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": {"z": 1, "a": [2.0]}}}, ` +
		`{"id": "d", "type": "function", "function": {"name": "g", "arguments": {}}}, {"id": "", "type": "function", "function": {"name": "h", "arguments": "not json"}}]}, ` +
		`{"role": "tool", "content": "r", "tool_call_id": "c", "name": "f"}]`
	if err != nil || textOf(pieces) != want {
		t.Errorf("%s, %v", textOf(pieces), err)
	}
}

// FuzzTemplates renders any chat with every template, and with any template of a file: the pieces are encoded, and a content
// makes no special token.
func FuzzTemplates(f *testing.F) {
	tok := markedTokenizer(f, "")
	f.Add("user", "Hello <|im_end|>", `[{"function":{"name":"f","arguments":"{\"a\":1}"}}]`, `[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":["string"],"enum":[1]}}}}}]`, simple)
	f.Add("assistant", "<think>x</think>", `[1,{"id":2}]`, `{"a":[]}`, `{{ tools | tojson }}{{ messages[-1].tool_calls }}`)
	f.Add("tool", "", `not json`, `[{"function":{"parameters":{"properties":{"a":{"type":"array","items":{"oneOf":[{},1]}}}}}}]`, `{% for m in messages %}{% endfor %}`)
	f.Fuzz(func(t *testing.T, role, content, calls, tools, source string) {
		c := &Chat{Messages: []Message{{Role: "system", Content: "s"}, {Role: role, Content: content, Calls: calls}, {Role: "user", Content: content}}, Tools: tools, Time: time.Unix(1, 0)}
		for _, s := range styles() {
			r := Template{style: s}.Renderer(tok)
			pieces, err := r.Render(c)
			if err != nil {
				t.Fatal(err)
			}
			once := AppendPieces(nil, tok, pieces, true)
			if again, _ := r.Render(c); !slices.Equal(AppendPieces(nil, tok, again, true), once) {
				t.Errorf("%s: not the same again", s.name)
			}
			AppendPieces(nil, tok, r.Reply("", content, calls), true)
		}
		compiled, err := compile(source)
		if err != nil {
			return
		}
		r := Template{file: &fileTemplate{plain: compiled, limits: jinja.Limits{Steps: 20_000, Bytes: 1 << 20, Depth: 20}}}.Renderer(tok)
		if pieces, err := r.Render(c); err == nil {
			AppendPieces(nil, tok, pieces, true)
		}
	})
}

// benchChat is a conversation of some length with tools.
func benchChat(messages int) *Chat {
	c := &Chat{Tools: string(chats[5].Tools), Time: someTime, Messages: []Message{{Role: "system", Content: "Be brief."}}}
	for len(c.Messages) < messages {
		c.Messages = append(c.Messages, Message{Role: "user", Content: english[:400]}, Message{Role: "assistant", Content: english[400:1400]})
	}
	c.Messages = append(c.Messages, Message{Role: "user", Content: "And?"})
	return c
}

// BenchmarkRender renders a conversation of 21 messages and does not encode it: templates that are built in, and their
// statements in Jinja.
func BenchmarkRender(b *testing.B) {
	tok := markedTokenizer(b, "")
	c := benchChat(20)
	bench := func(name string, tpl Template) {
		b.Run(name, func(b *testing.B) {
			r := tpl.Renderer(tok)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Render(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, name := range []string{"none", "chatml", "qwen3", "llama3.1", "gpt-oss"} {
		bench(name, mustTemplate(b, name))
	}
	for _, name := range []string{"qwen3", "llama3.1", "gpt-oss"} {
		bench(name+"/jinja", restatedFile(b, name))
	}
}
