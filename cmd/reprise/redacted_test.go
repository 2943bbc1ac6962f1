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
				if r.InputTokens != int32(5000+i) || r.OutputTokens != int32(200+i) || len(r.Blocks) > 0 || r.OutputBlocks != nil {
					t.Errorf("%s, %q: %d and %d tokens, %d and %d blocks", said.Format, marker, r.InputTokens, r.OutputTokens, len(r.Blocks), len(r.OutputBlocks))
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
	const want = "sha256:1d79dc44560a00ddb43f01846036b1e9a7cb513a9c6b41f0bd8d1af4060abade"
	if meta, _ := publicRows(t, out); meta.Digest != want {
		t.Errorf("digest %s, want %s", meta.Digest, want)
	}
}
