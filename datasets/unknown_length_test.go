package datasets

import (
	"fmt"
	"strings"
	"testing"
)

// chatLine is a line of an openai-log: one message of this content, and more
// fields.
func chatLine(content, more string) string {
	return `{"timestamp":"2026-01-02T03:04:05Z","messages":[{"role":"user","content":` + content + `}]` + more + "}\n"
}

// A prompt that is not there has no length but the one that the source counts.
func TestUnknownLength(t *testing.T) {
	const want = "log:1:1: its prompt is empty or redacted, and no token count stands beside it"
	for content, message := range map[string]string{`""`: "", `"[REDACTED]"`: "[REDACTED]", `"***"`: "***", `null`: "", `{"length":9}`: `{"length":9}`, `{"sha256":"0a1b2c3d"}`: `{"sha256":"0a1b2c3d"}`,
		`[{"type":"text","text":"<redacted>"}]`: "<redacted>"} {
		wantBad(t, chatLine(content, ""), Options{}, want)
		wantEntries(t, chatLine(content, `,"usage":{"prompt_tokens":9}`), Options{}, fmt.Sprintf("490923h4m5s user:%q in=9 chat", message))
	}
	wantBad(t, `{"timestamp":"2026-01-02T03:04:05Z","prompt":"REDACTED"}`, Options{}, want)
	// What a masking tool leaves in place of the whole list.
	for masked, message := range map[string]string{`[]`: "", `{}`: "", `""`: "", `"[]"`: "", `"[REDACTED]"`: "[REDACTED]", `["***"]`: "***", `{"length":9}`: `{"length":9}`, `[{}]`: ""} {
		line := `{"timestamp":"2026-01-02T03:04:05Z","messages":` + masked
		wantBad(t, line+"}", Options{}, want)
		wantEntries(t, line+`,"usage":{"prompt_tokens":9}}`, Options{}, fmt.Sprintf("490923h4m5s user:%q in=9 chat", message))
	}
	wantEntries(t, `{"timestamp":"2026-01-02T03:04:05Z","messages":[],"prompt":"p"}`, Options{}, `490923h4m5s user:"p" completion`)
	wantBad(t, `{"timestamp":"2026-01-02T03:04:05Z","messages":"zqx","usage":{"prompt_tokens":9}}`, Options{}, "log:1:48: messages: want a list of objects with role and content")
	for _, more := range []string{`"What?"`, `"[REDACTED] and more"`} {
		if all, info, err := read(strings.NewReader(chatLine(more, "")), Options{}); err != nil || len(all) != 1 || info.Bad != 0 {
			t.Errorf("%s: %d entries, %d bad, %v", more, len(all), info.Bad, err)
		}
	}
	// One message that can be read is a beginning, and an image is content.
	several := `{"timestamp":"2026-01-02T03:04:05Z","messages":[{"role":"system","content":"***"},{"role":"user","content":"Hello"}]}`
	image := chatLine(`[{"type":"image_url","image_url":{"url":"x"}}]`, "")
	for _, line := range []string{several, image} {
		if all, info, err := read(strings.NewReader(line), Options{}); err != nil || len(all) != 1 || info.Bad != 0 {
			t.Errorf("%s: %d entries, %d bad, %v", line, len(all), info.Bad, err)
		}
	}
}

// A call that failed has no usage: it is left out, and no bad record.
func TestFailedWithoutLength(t *testing.T) {
	in := chatLine(`"[REDACTED]"`, `,"status":429`) + chatLine(`"[REDACTED]"`, `,"usage":{"prompt_tokens":9}`) + chatLine(`"Hello"`, `,"status":500`)
	all, info, err := read(strings.NewReader(in), Options{})
	if err != nil || len(all) != 2 || info.Bad != 0 {
		t.Fatalf("%d entries, %d bad, %v", len(all), info.Bad, err)
	}
	wantNote(t, info, noteFailedUnknown+": 1")
}

// A batch counts in its responses.
func TestBatchWithoutLength(t *testing.T) {
	in := ""
	for i, content := range []string{"[REDACTED]", "[REDACTED]", "Hello"} {
		in += fmt.Sprintf(`{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":%q}]}}`+"\n", i, content)
	}
	in += `{"id":"b","custom_id":"r1","response":{"status_code":200,"body":{"usage":{"prompt_tokens":9,"completion_tokens":2}}}}`
	all, info, err := read(strings.NewReader(in), Options{Format: "openai-batch"})
	if err != nil || len(all) != 2 || *all[0].InputTokens != 9 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	wantNote(t, info, noteUnknownInput+": 1")
}

// Only a field that --map names is the length whatever the text says.
func TestInputGiven(t *testing.T) {
	in := chatLine(`"Hello"`, `,"usage":{"prompt_tokens":9},"n":8`) + chatLine(`"Hello"`, `,"usage":{"prompt_tokens":9}`)
	for _, c := range []struct {
		m    Mapping
		want [2]bool
	}{{nil, [2]bool{}}, {Mapping{"user": {"n"}}, [2]bool{}}, {Mapping{"input_tokens": {"n"}}, [2]bool{true, false}}, {Mapping{"input_tokens": {"usage.prompt_tokens"}}, [2]bool{true, true}}} {
		all, _, err := read(strings.NewReader(in), Options{Format: "openai-log", Map: c.m})
		if err != nil || len(all) != 2 {
			t.Fatal(err)
		}
		if got := [2]bool{all[0].InputGiven, all[1].InputGiven}; got != c.want {
			t.Errorf("%v: %v, want %v", c.m, got, c.want)
		}
	}
}
