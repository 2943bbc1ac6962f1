package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
	"reprise/trace/token"
)

// prose is a corpus of some hundred words.
func prose() string {
	return strings.Repeat("The queue grows, slowly at first, then \"all at once\": 42 requests in 1.5 s. Who waits? Everyone\tdoes.\n\n"+
		"- It's the tail that hurts; the mean doesn't say so.\n- Élan, naïveté, Größe, 東京 and so on (see p. 7).\n", 20)
}

// With shared tails, in every kind of text and as token ids, prompts are as
// exact, and the endpoint's cache hits as often as the workload says it must,
// which is more often than without them.
func TestReplayOfPrompts(t *testing.T) {
	long(t)
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"log.jsonl": sharingLog(200), "corpus.txt": prose()} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "import", file("log.jsonl"), "-o", file("t.parquet"))
	must(t, "synth", "--mirror", file("t.parquet"), "-o", file("plain.parquet"), "--share-tails=false")
	plain := checkExact(t, file("plain.parquet"), file("r.parquet"), "--api", "completions")
	for _, c := range []struct{ synth, replay []string }{
		{nil, []string{"--api", "completions"}},
		{nil, []string{"--api", "completions", "--token-ids", "--set", "verify"}},
		{[]string{"--text", "words"}, []string{"--api", "completions", "--set", "verify"}},
		{[]string{"--text", "words"}, []string{"--api", "chat"}},
		{[]string{"--corpus", file("corpus.txt")}, []string{"--api", "completions", "--set", "verify", "--corpus", file("corpus.txt")}},
		{[]string{"--corpus", file("corpus.txt")}, []string{"--api", "chat", "--corpus", file("corpus.txt")}},
	} {
		must(t, append([]string{"synth", "--mirror", file("t.parquet"), "-o", file("w.parquet")}, c.synth...)...)
		if got := checkExact(t, file("w.parquet"), file("r.parquet"), c.replay...); got < plain+0.005 {
			t.Errorf("%v: with shared tails the hit ratio is %.4f, without %.4f", c.synth, got, plain)
		}
	}
}

// Export obeys what the workload says of its prompts.
func TestExportOfPrompts(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	log := `{"session_id": "s", "timestamp": 0, "input_length": 700, "output_length": 1, "hash_ids": [0, 1]}
{"session_id": "s", "timestamp": 1000, "input_length": 900, "output_length": 1, "hash_ids": [0, 2]}
`
	for name, content := range map[string]string{"log.jsonl": log, "corpus.txt": prose()} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "import", file("log.jsonl"), "-o", file("t.parquet"))
	e, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		synth  []string
		export []string
		want   int // leading tokens in common
	}{
		{nil, nil, 700},
		{[]string{"--share-tails=false"}, nil, 512},
		{[]string{"--text", "words"}, nil, 700},
		{[]string{"--corpus", file("corpus.txt")}, []string{"--corpus", file("corpus.txt")}, 700},
		{[]string{"--share-tails=false", "--text", "stable"}, nil, 512},
	} {
		must(t, append([]string{"synth", "--mirror", file("t.parquet"), "-o", file("w.parquet")}, c.synth...)...)
		out := must(t, append([]string{"export", file("w.parquet"), "--to", "vllm-custom"}, c.export...)...)
		var prompts [2][]uint32
		for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var row struct{ Prompt string }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			prompts[i] = e.Append(nil, row.Prompt)
		}
		shared := 0
		for shared < len(prompts[0]) && prompts[0][shared] == prompts[1][shared] {
			shared++
		}
		if len(prompts[0]) != 700 || len(prompts[1]) != 900 || shared < c.want || shared > c.want+2 {
			t.Errorf("%v: prompts of %d and %d tokens share %d, want %d", c.synth, len(prompts[0]), len(prompts[1]), shared, c.want)
		}
	}
}

// A workload names its corpus by digest alone, and no command takes another.
func TestCorpusIsNotRecorded(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"log.jsonl": sharingLog(5), "mine.txt": prose(), "other.txt": prose() + "."} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "import", file("log.jsonl"), "-o", file("t.parquet"))
	must(t, "synth", "--mirror", file("t.parquet"), "-o", file("w.parquet"), "--corpus", file("mine.txt"))
	w, err := trace.Open(file("w.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.Meta.Text != trace.TextCorpus || len(w.Meta.Corpus) != len("sha256:")+64 {
		t.Errorf("the workload says %q, %q", w.Meta.Text, w.Meta.Corpus)
	}
	b, err := os.ReadFile(file("w.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"mine.txt", dir, "queue grows", "tail that hurts"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("the workload holds %q", secret)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"export", file("w.parquet"), "--to", "vllm-custom"}, "give it with --corpus"},
		{[]string{"export", file("w.parquet"), "--to", "vllm-custom", "--corpus", file("other.txt")}, "not the file that the workload was made with"},
		{[]string{"export", file("t.parquet"), "--to", "vllm-custom", "--corpus", file("mine.txt")}, "was not made with a corpus"},
		{[]string{"export", file("w.parquet"), "--to", "mooncake", "--corpus", file("mine.txt")}, "has none"},
		{[]string{"replay", file("w.parquet"), "-o", file("r.parquet"), "--corpus", file("other.txt")}, "not the file that the workload was made with"},
		{[]string{"synth", "--mirror", file("t.parquet"), "-o", file("x.parquet"), "--text", "words", "--corpus", file("mine.txt")}, "one of --text and --corpus"},
		{[]string{"synth", "--mirror", file("t.parquet"), "-o", file("x.parquet"), "--text", "poems"}, "--text: want"},
	} {
		_, errs, code := reprise(t, c.args...)
		if code != cli.Usage || !strings.Contains(errs, c.want) || strings.Contains(errs, "queue grows") {
			t.Errorf("%v: exit code %d, want %d with %q: %s", c.args, code, cli.Usage, c.want, errs)
		}
	}
}
