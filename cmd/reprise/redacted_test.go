package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/datasets"
)

// redactedLogs writes 20 calls of about 5,000 and 200 tokens in each of three
// formats, with a marker in place of every message, and returns their names.
func redactedLogs(t *testing.T, marker string) []string {
	t.Helper()
	var logs [3]strings.Builder
	for i := range 20 {
		input, output := 5000+i, 200+i
		var messages, parts []map[string]any
		for _, role := range []string{"system", "user", "assistant", "user"} {
			messages = append(messages, map[string]any{"role": role, "content": marker})
			parts = append(parts, map[string]any{"role": role, "parts": []any{map[string]any{"type": "text", "content": marker}}})
		}
		begin, end := fmt.Sprintf("2026-01-02T03:04:%02dZ", i), fmt.Sprintf("2026-01-02T03:05:%02dZ", i)
		for at, record := range []map[string]any{
			{"timestamp": begin, "messages": messages, "response": map[string]any{"choices": []any{map[string]any{"message": messages[2]}}},
				"usage": map[string]any{"prompt_tokens": input, "completion_tokens": output}},
			{"name": "chat m", "start_time": begin, "end_time": end, "attributes": map[string]any{"gen_ai.operation.name": "chat",
				"gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": output, "gen_ai.input.messages": parts, "gen_ai.output.messages": parts[2:3]}},
			{"id": fmt.Sprint(i), "trace_id": fmt.Sprint("t", i), "type": "GENERATION", "start_time": begin, "end_time": end,
				"input": messages, "output": messages[2], "usage_details": map[string]any{"input": input, "output": output}},
		} {
			line, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			logs[at].Write(append(line, '\n'))
		}
	}
	var names []string
	for i, format := range []string{"openai-log", "otel-genai", "langfuse"} {
		names = append(names, filepath.Join(t.TempDir(), format+".jsonl"))
		if err := os.WriteFile(names[i], []byte(logs[i].String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// A log whose text was redacted has the lengths that its usage says, and no
// prefix that its prompts share.
func TestImportRedacted(t *testing.T) {
	for marker, reason := range map[string]string{
		"[REDACTED]": "redaction_marker", "<redacted>": "redaction_marker", "***": "redaction_marker", "[MASKED]": "redaction_marker",
		"": "empty", strings.Repeat("0a1b", 16): "redaction_marker", "content was removed by policy": "redaction_marker",
		"This part of the log is for auditors.": "below_half",
	} {
		for _, log := range redactedLogs(t, marker) {
			out := filepath.Join(t.TempDir(), "t.parquet")
			var said struct {
				Format string                      `json:"format"`
				Notes  []string                    `json:"notes"`
				Gaps   map[string]map[string]int64 `json:"lengths_of_source"`
			}
			if err := json.Unmarshal([]byte(must(t, "import", log, "-o", out, "--json")), &said); err != nil {
				t.Fatal(err)
			}
			if filepath.Base(log) != said.Format+".jsonl" {
				t.Errorf("%s was read as %s", log, said.Format)
			}
			_, rows := publicRows(t, out)
			for i, r := range rows {
				if r.InputTokens != int32(5000+i) || *r.OutputTokens != int32(200+i) || len(r.Blocks) > 0 || r.OutputBlocks != nil {
					t.Errorf("%s, %q: %d and %d tokens, %d and %d blocks", said.Format, marker, r.InputTokens, *r.OutputTokens, len(r.Blocks), len(r.OutputBlocks))
					break
				}
			}
			for _, side := range []string{"input", "output"} {
				if g := said.Gaps[side]; len(rows) != 20 || g["requests"] != 20 || g[reason] != 20 {
					t.Errorf("%s, %q: %s of %d rows: %v", said.Format, marker, side, len(rows), g)
				}
			}
			if !slices.ContainsFunc(said.Notes, func(n string) bool { return strings.Contains(n, "hit ratios are unknown, not 0") }) {
				t.Errorf("%s, %q: %q", said.Format, marker, said.Notes)
			}
		}
	}
}

// The log of the demo, whose usage agrees with its text, is imported as ever.
func TestDemoDigest(t *testing.T) {
	log, err := datasets.Demo()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	name, out := filepath.Join(t.TempDir(), "demo.jsonl"), filepath.Join(t.TempDir(), "t.parquet")
	b, err := io.ReadAll(log)
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	must(t, "import", name, "--template", "chatml", "--block-size", "64", "-o", out)
	const want = "sha256:b6ed974a8cf9ab96b93cb77165212ecd51e03e82e29a765df61957639a59ec5d"
	if meta, _ := publicRows(t, out); meta.Digest != want {
		t.Errorf("digest %s, want %s", meta.Digest, want)
	}
}

// The demo's workload is the mirror that synth makes, tails of turns included.
func TestDemoMirrors(t *testing.T) {
	cmd := demoCommand()
	cmd.SetContext(t.Context())
	cmd.SetErr(io.Discard)
	d := demo{cmd: cmd, dir: t.TempDir()}
	for _, stage := range []func() (string, error){d.importLog, d.synth} {
		if _, err := stage(); err != nil {
			t.Fatal(err)
		}
	}
	mirror := filepath.Join(t.TempDir(), "w.parquet")
	must(t, "synth", d.path("trace.parquet"), "--mirror", "-o", mirror)
	want, _ := publicRows(t, mirror)
	if got, _ := publicRows(t, d.path("workload.parquet")); got != want {
		t.Errorf("the metadata are\n%+v, want\n%+v", got, want)
	}
}

// What import says of logs with hashes in place of messages, and with no messages at all,
// and what profile then prints of reuse.
func TestImportHashedAndCounted(t *testing.T) {
	const calls = 12
	for name, c := range map[string]struct {
		messages func(i int) string
		notes    []string
		profile  string // a part of what it prints
	}{
		"hashes": {func(i int) string {
			return fmt.Sprintf(`[{"role":"system","content":"%064x"},{"role":"user","content":"%064x"}]`, 7, 100+i)
		}, []string{"12 of 12 requests have hashes in place of messages: which prompts share a beginning is exact, " +
			"and for how many tokens is an estimate"}, "Hit ratio, steady"},
		"counts": {func(int) string { return "[]" }, []string{
			"12 of 12 requests have the input length that the source counts, since their text differs from the " +
				"text that was sent (empty: 12): no prefix blocks are made of it",
			"12 of 12 requests have prefix blocks that are inferred from cached tokens, sessions and tools: hit ratios are estimates, and profile prints beside them what the server measured, if it did",
		}, "34.7 % of prompt tokens in 12 requests; the server found 34.7 %\n"},
	} {
		var log strings.Builder
		for i := range calls {
			fmt.Fprintf(&log, `{"timestamp":"2026-01-02T03:%02d:05Z","messages":%s,"usage":{"prompt_tokens":%d,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":%d}}}`+"\n",
				i, c.messages(i), 2700+i, min(i, 1)*1024)
		}
		path, out := filepath.Join(t.TempDir(), "log.jsonl"), filepath.Join(t.TempDir(), "t.parquet")
		if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		var said struct {
			Notes  []string `json:"notes"`
			Input  int64    `json:"input_tokens"`
			Hashed int64    `json:"messages_by_hash"`
		}
		if err := json.Unmarshal([]byte(must(t, "import", path, "-o", out, "--block-size", "64", "--json")), &said); err != nil {
			t.Fatal(err)
		}
		if said.Input != 12*2700+66 || said.Hashed != map[string]int64{"hashes": calls}[name] {
			t.Errorf("%s: %d tokens, %d by hash", name, said.Input, said.Hashed)
		}
		for _, want := range c.notes {
			if !slices.Contains(said.Notes, want) {
				t.Errorf("%s: %q is not among %q", name, want, said.Notes)
			}
		}
		if got := must(t, "profile", out); !strings.Contains(got, c.profile) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
