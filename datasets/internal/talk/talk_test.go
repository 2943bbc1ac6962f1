package talk

import (
	"fmt"
	"strings"
	"testing"

	"reprise/datasets/internal/row"
	"reprise/trace"
)

// spelled is what a prompt holds.
func spelled(p *Prompt) string {
	var out []string
	for _, m := range p.Entry.Messages {
		said := fmt.Sprintf("%v:%s", m.Role, m.Content.Reveal())
		if m.Calls != (trace.Text{}) {
			said += " calls " + m.Calls.Reveal()
		}
		out = append(out, said)
	}
	if p.Entry.Tools != (trace.Text{}) {
		out = append(out, "tools "+p.Entry.Tools.Reveal())
	}
	if p.Entry.Reply != nil {
		out = append(out, "reply "+p.Entry.Reply.Reveal())
	}
	if p.Entry.InputTokens != nil {
		out = append(out, fmt.Sprint("input ", *p.Entry.InputTokens))
	}
	if p.Images > 0 {
		out = append(out, fmt.Sprint("images ", p.Images))
	}
	return strings.Join(out, "|")
}

// A request is read alike in the forms of all APIs, and what is none says what it should be.
func TestPrompts(t *testing.T) {
	for _, c := range []struct {
		take     func(*Prompt, any) string
		in, want string
	}{
		{SetConversation, `[{"role":"system","content":"s"},{"role":"user","content":"u"}]`, "system:s|user:u"},
		{SetConversation, `"[{\"role\":\"user\",\"content\":\"u\"}]"`, "user:u"},
		{SetConversation, `{"messages":[{"role":"user","content":"u"}],"tools":[{"name":"f"}]}`,
			`user:u|tools [{"type":"function","function":{"name":"f"}}]`},
		{SetConversation, `{"contents":[{"role":"model","parts":[{"text":"a"},{"text":"b"}]}],"system_instruction":{"parts":[{"text":"s"}]}}`,
			"system:s|assistant:a\nb"},
		{SetConversation, `{"prompt":"p"}`, "user:p"},
		{SetConversation, `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{}},{"type":"text","text":"b"}]}]`,
			"user:a\nb|images 1"},
		{SetConversation, `[{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{"x":1}}]}]`,
			`assistant: calls [{"function":{"arguments":{"x":1},"name":"f"},"id":"i","type":"function"}]`},
		{SetConversation, `"[REDACTED]"`, "user:[REDACTED]"},
		{SetConversation, `[{"role":"nobody","content":"u"}]`, "!"},
		{SetConversation, `7`, "!" + WantMessages},
		{SetPrompt, `"p"`, "user:p"},
		{SetPrompt, `["p"]`, "user:p"},
		{SetPrompt, `[[5,6,7]]`, "input 3"},
		{SetPrompt, `["p","q"]`, "!want a text or a list of token ids: several prompts are not one request"},
		{SetPrompt, `{}`, "!want a text or a list of token ids"},
		{SetOutput, `"o"`, "reply o"},
		{SetOutput, `{"role":"assistant","content":"o"}`, "reply o"},
		{SetOutput, `{"error":"e"}`, ""},
		{SetOutput, `7`, "!want a text or a message"},
		{SetTools, `"[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"`, `tools [{"type":"function","function":{"name":"f"}}]`},
		{SetTools, `[]`, ""},
		{SetTools, `7`, "!" + WantTools},
	} {
		v, _, ok := row.DecodeJSON([]byte(c.in))
		if !ok {
			t.Fatal(c.in)
		}
		var p Prompt
		why := c.take(&p, v)
		got := spelled(&p)
		if why != "" {
			got = "!" + why
		}
		if got != c.want && !(c.want == "!" && strings.HasPrefix(got, "!")) {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}
