package datasets

import (
	"io"
	"strings"
	"testing"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
)

// Of several formats that fit, the one that knows more of an input is taken; where each
// knows keys that the other does not, both are named.
func TestDetectAmong(t *testing.T) {
	for in, want := range map[string]string{
		// Both fit: a dialect knows all of what it extends.
		`{"timestamp":0,"input_length":8,"output_length":1,"hash_ids":[0],"delay":3}`: "dynamo: timestamp input_length output_length hash_ids delay",
		`{"call_type":"acompletion","startTime":1,"messages":[]}`:                     "litellm-log: call_type startTime messages",
		// A generic format is never named beside one that knows more keys.
		`{"custom_id":"r","url":"u","body":{},"messages":[],"usage":{},"latency_ms":5}`: "openai-batch: custom_id url body",
		// Told by the leading keys of a record that is cut.
		`{"captureData":{},"eventMetadata":{"eventId":"` +
			strings.Repeat("x", record.HeadBytes): "sagemaker: captureData eventMetadata",
		// Records of two formats in one file.
		`{"call_type":"acompletion","startTime":1,"endTime":2,"prompt_tokens":5}` + "\n" + `{"id":"o","type":"GENERATION","startTime":"2026-01-02","usageDetails":{}}`: "it may be langfuse, which has id, type and usageDetails, or litellm-log, which has call_type and prompt_tokens: say --format langfuse or --format litellm-log",
		// Near files: that of more known keys is taken, and both are named where each has two or more of its own.
		`{"messages":[],"custom_id":"x","body":{}}`:                                                                                                          "openai-batch: custom_id body",
		`{"conversations":[{"from":"human"}],"messages":[{"role":"user"}]}`:                                                                                  "sharegpt: conversations",
		`{"id":"1","conversation":[{"role":"user"}],"model":"m","conversations":[{"from":"human"}]}`:                                                         "sharegpt: id conversation conversations",
		`{"resourceSpans":[],"captureData":{},"eventMetadata":{}}`:                                                                                           "sagemaker: captureData eventMetadata",
		`{"type":"GENERATION","startTime":"2026-01-02","usageDetails":{},"attributes":{},"name":"x"}`:                                                        "langfuse: type startTime usageDetails name",
		`{"trace_id":"t","run_type":"llm","start_time":"2026-01-02","type":"x","usage_details":{}}`:                                                          "langfuse: trace_id start_time type usage_details",
		`{"text_input":"x","output_length":4}` + "\n" + `{"session_id":"s","input_length":8,"hash_ids":[0]}`:                                                 "aiperf: text_input output_length session_id input_length hash_ids",
		`{"parentUuid":null,"isSidechain":false,"sessionId":"s","timestamp":"x","type":"user"}` + "\n" + `{"timestamp":"x","type":"event_msg","payload":{}}`: "claude-code: parentUuid isSidechain sessionId timestamp type",
		"TIMESTAMP,ContextTokens,GeneratedTokens,Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n": "it may be burstgpt, which has Timestamp, Model, Request tokens and Response tokens, " +
			"or azure-2023, which has TIMESTAMP, ContextTokens and GeneratedTokens: say --format burstgpt or --format azure-2023",
		// At the 50th record, and not behind it.
		strings.Repeat("{}\n", 49) + `{"captureData":{},"eventMetadata":{}}`: "sagemaker: captureData eventMetadata",
		strings.Repeat("{}\n", 50) + `{"captureData":{},"eventMetadata":{}}`: "unrecognised format",
		// Never by what stands below the top, or in a text.
		`{"data":{"messages":[{"role":"user","content":"x"}]}}`:      "unrecognised format",
		`{"note":"\"captureData\":1,\"eventMetadata\":2"}`:           "unrecognised format",
		`{"data":[{"captureData":{},"eventMetadata":{}}],"meta":{}}`: "sagemaker: captureData eventMetadata",
	} {
		d, err := detectKeyed([]byte(in))
		got := d.Name + ": " + strings.Join(d.keys, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.100s\n  %s\n  want %s", in, got, want)
		}
	}
	// The command says so, and with a format told reads it.
	two := `{"call_type":"acompletion","startTime":1767323045.5,"endTime":1767323046.5,"prompt_tokens":5}` + "\n" + `{"id":"o","type":"GENERATION","startTime":"2026-01-02","usageDetails":{"input":5}}`
	if _, _, err := read(strings.NewReader(two), Options{}); err == nil || !strings.HasPrefix(err.Error(), "log:1:1: it may be langfuse, which has ") {
		t.Errorf("%v", err)
	}
	if all, info, err := read(strings.NewReader(two), Options{Format: "litellm-log", MaxBad: 1}); err != nil || len(all) != 1 || info.Bad != 1 {
		t.Errorf("%d entries, %d bad, %v", len(all), info.Bad, err)
	}
}

// Files of a folder are recognised each by itself.
func TestDetectFiles(t *testing.T) {
	one := `{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}` + "\n"
	chat := `{"messages":[{"role":"user","content":"hi"}]}` + "\n"
	claude, codex := claudeFormat().Example+"\n", codexFormat().Example+"\n"
	file := func(name, content string) File {
		return File{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
	}
	for name, c := range map[string]struct {
		files []File
		o     Options
		want  string // entries and notes, or an error
	}{
		"a README among logs": {[]File{file("README.md", "# logs"), file("a.jsonl", one),
			file("b.jsonl.gz", one)}, Options{}, "2 mooncake without README.md"},
		"settings": {[]File{file("settings.json", `{"theme":"dark"}`), file("a.json", one),
			file("b.json", one), file("x.png",
				"\x89PNG\r\n\x1a\n\x00")}, Options{}, "2 mooncake without settings.json x.png"},
		"settings, with the format told": {[]File{file("a.json", one), file("settings.json", `{"theme":"dark"}`)},
			Options{Format: "mooncake"}, "1 mooncake without settings.json"},
		"requests of no format":              {[]File{file("a.jsonl", one), file("b.json", `{"ts":"2026-05-01T12:00:00Z","prompt_tokens":5,"completion_tokens":2}`)}, Options{}, "b.json:1:1: it is not mooncake as the files before it are: import each format by itself"},
		"a table that lacks its header":      {[]File{file("a.csv", azureHeader+"2023-11-16 18:17:03,1,2\n"), file("b.csv", "2023-11-16 18:17:04,1,2\n")}, Options{}, "b.csv:1:1: it is not azure-2023 as the files before it are: import each format by itself"},
		"agents of two kinds":                {[]File{file("a.jsonl", claude), file("b.jsonl", codex), file("c.json", "{}")}, Options{}, "the files are of several formats: 1 of claude-code, such as a.jsonl; 1 of codex, such as b.jsonl. Import each format by itself"},
		"agents of two kinds, the second":    {[]File{file("a.jsonl", claude), file("b.jsonl", codex), file("d.jsonl", codex), file("c.json", "{}")}, Options{Format: "codex"}, "1 codex without c.json files of another format were left out: 1 calls that are in two files, kept once: 1"},
		"a session of an agent and settings": {[]File{file("a.jsonl", claude), file("b.jsonl", `{"type":"dark"}`+"\n"), file("c.json", "{}")}, Options{}, "1 claude-code without b.jsonl c.json"},
		// One that is named as they are is at fault.
		"a broken shard": {[]File{file("a.jsonl", one), file("b.jsonl", "# logs")}, Options{},
			"b.jsonl:1:1: it is not mooncake as the files before it are: import each format by itself"},
		"of two formats": {[]File{file("a.jsonl", one), file("b.jsonl", chat), file("c.jsonl", one)}, Options{},
			"the files are of several formats: 2 of mooncake, such as a.jsonl; 1 of openai-log, such as b.jsonl. " +
				"Import each format by itself"},
		"with one told": {[]File{file("a.jsonl", one), file("b.jsonl", chat), file("c.jsonl", one)},
			Options{Format: "mooncake"}, "2 mooncake files of another format were left out: 1"},
		"told, and found": {[]File{file("a.jsonl", chat), file("b.jsonl", one)}, Options{Format: "openai-log"},
			"1 openai-log files of another format were left out: 1"},
		"of three": {[]File{file("a.jsonl", one), file("b.jsonl", chat),
			file("c.csv", azureHeader+"2023-11-16 18:17:03,1,2\n")}, Options{}, "the files are of several formats: " +
			"1 of mooncake, such as a.jsonl; 1 of openai-log, such as b.jsonl; 1 of azure-2023, such as c.csv. " +
			"Import each format by itself"},
		"with an empty": {[]File{file("a.jsonl", ""), file("b.jsonl", one)}, Options{},
			"1 mooncake files that are empty: 1"},
		"told, and none": {[]File{file("a.jsonl", one), file("b.jsonl", one)},
			Options{Format: "langfuse", MaxBad: 1}, "0 langfuse observations that are no calls of a model were left " +
				"out: 2"},
	} {
		all, info, err := readTogether(c.files, c.o)
		got := string(row.Integer(int64(len(all)))) + " " + info.Format
		if len(info.LeftOut) > 0 {
			got += " without " + strings.Join(info.LeftOut, " ")
		}
		for _, note := range info.Notes {
			if strings.Contains(note, "file") || !strings.HasPrefix(name, "a") {
				got += " " + note
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n  %s\n  want %s", name, got, c.want)
		}
	}
}
