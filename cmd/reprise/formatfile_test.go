package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// Shards of one import have one format file, compared by its digest: nothing of the file is in a shard, since its
// sample may be somebody's text. Another file is refused, and neither the file's name nor its text is in the trace.
func TestFormatFileOfShards(t *testing.T) {
	t.Chdir(t.TempDir())
	const format = "keys: [at]\nmap: {time: at, input_tokens: in, output_tokens: out, user: who}\nsample: |\n  a sample of somebody's words\n"
	line := `{"at":"2026-05-01T12:00:00Z","in":10,"out":3,"who":"u"}` + "\n"
	writeFiles(t, map[string]string{"a.jsonl": line, "b.jsonl": line, "acme.yaml": format, "other.yaml": format + "about: ours\n"})
	if err := os.WriteFile("key", []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	shard := func(index, format string) {
		t.Helper()
		must(t, "import", "a.jsonl", "b.jsonl", "--format", format, "--shard", index, "--key-file", "key", "--overwrite", "-o", "shards")
	}
	if err := os.Mkdir("shards", 0o700); err != nil {
		t.Fatal(err)
	}
	shard("0/2", "acme.yaml")
	shard("1/2", "other.yaml")
	if _, errs, code := reprise(t, "merge", "--finish", "shards", "-o", "t.parquet"); code == 0 {
		t.Errorf("shards of two formats were joined: %s", errs)
	}

	shard("1/2", "acme.yaml")
	must(t, "merge", "--finish", "shards", "-o", "t.parquet")
	written := [][]byte{read(t, "t.parquet")}
	entries, err := os.ReadDir("shards")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		written = append(written, read(t, "shards/"+e.Name()))
	}
	for _, b := range written {
		if bytes.Contains(b, []byte("somebody's words")) || bytes.Contains(b, []byte("acme")) {
			t.Error("a shard or the trace has the format file's text or name")
		}
	}
}
