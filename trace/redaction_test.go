package trace

import (
	"strings"
	"testing"
)

func TestRedacted(t *testing.T) {
	for _, s := range []string{
		"[REDACTED]", "[redacted]", "REDACTED", "Redacted.", "<redacted>", "<REDACTED>", "__REDACTED__", "{{redacted}}", "(redacted)",
		"[REDACTED EMAIL]", "[MASKED]", "MASKED", "[FILTERED]", "[hidden]", "**removed**", "[message omitted]", "[Content removed]",
		"redacted-by-litellm", "redacted for privacy", "***", "*****", "* * *", "████████", "••••",
		"[REDACTED_TEXT len=345 sha=0a1b2c3d]", "[redacted_text len=12 sha256=" + strings.Repeat("ab", 32) + "]",
		"len=345", "len=345 sha=0a1b2c3d", "[len=9]", `{"length":345}`, `{"length": 345, "sha256": "0a1b"}`,
		strings.Repeat("0a", 16), strings.Repeat("0a", 20), strings.Repeat("0A", 32), "sha256:" + strings.Repeat("0a", 32), "md5=0a1b2c3d",
		`{"sha256":"` + strings.Repeat("0a", 32) + `"}`, "[sha1: 0a1b2c3d]", "<hmac-sha256:0a1b2c3d>", "[REDACTED sha256=0a1b2c3d]",
		"content was removed by policy", "Content was removed by our content policy.", "Removed by policy.", "The message has been redacted",
		"This prompt is hidden for privacy reasons", "text omitted", "filtered due to company policy",
		"  [REDACTED]\n", "[REDACTED]\n\n[REDACTED]", "[REDACTED]\n***",
	} {
		m := Message{Role: User, Content: NewText(s)}
		if !m.Redacted() || !m.Content.Redacted() {
			t.Errorf("%q is taken for a text", s)
		}
	}
	for _, s := range []string{
		"", " \n", "Hello", "hidden", "Removed", "filtered", "...", "**", "----", "???", "0", "ok",
		"Hidden costs of a house?", "Hidden Markov models", "Filtered coffee or espresso?", "Removed the file, now what?", "Masked language models",
		"The text is hidden behind the image, how do I show it?", "Text hidden by the menu", "removed by git", "hidden by default",
		"filter this list by policy", "Why was my message removed by policy?", `<div class="hidden">Hi</div>`, "<script hidden>alert(1)</script>",
		"redactedly", "[REDACTED] said that the meeting is on Monday [REDACTED]", "My name is [REDACTED].", "[REDACTED]\nWhat does this mean?",
		"x = range(len=3)", "strings of len=3 are short", `{"width": 3}`, "deadbeef", strings.Repeat("0a", 24),
		"[REDACTED " + strings.Repeat("x", 200) + "]",
	} {
		if m := (&Message{Role: User, Content: NewText(s)}); m.Redacted() {
			t.Errorf("%q is taken for a marker", s)
		}
	}
	for s, want := range map[string]bool{strings.Repeat("0a", 20): false, `{"length": 3}`: false, "[REDACTED]": true, "***": true} {
		if m := (&Message{Role: Tool, Content: NewText(s)}); m.Redacted() != want {
			t.Errorf("%q of a tool: redacted %v", s, !want)
		}
	}
}
