package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/cmd/reprise/internal/cli"
)

const (
	window   = 20 // characters in a run that must not come out
	distinct = 8  // different ones that it must have, to be no accident
)

// textRuns collects every run of text that must not be in an output.
func textRuns(texts []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range texts {
		for i := 0; i+window <= len(s); i++ {
			var seen [256]bool
			n := 0
			for _, c := range []byte(s[i : i+window]) {
				if !seen[c] {
					seen[c] = true
					n++
				}
			}
			if n >= distinct {
				out[s[i:i+window]] = true
			}
		}
	}
	return out
}

func leaks(b []byte, secret map[string]bool) int {
	n := 0
	for i := 0; i+window <= len(b); i++ {
		if secret[string(b[i:i+window])] {
			n++
		}
	}
	return n
}

// decoded returns every value of a Parquet file, its dictionaries and its
// metadata, as bytes.
func decoded(t *testing.T, file []byte) []byte {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, kv := range f.Metadata().KeyValueMetadata {
		out.WriteString(kv.Key + kv.Value)
	}
	for _, group := range f.RowGroups() {
		for _, column := range group.ColumnChunks() {
			pages := column.Pages()
			for {
				page, err := pages.ReadPage()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if d := page.Dictionary(); d != nil {
					for i := range d.Len() {
						out.Write(d.Index(int32(i)).Bytes())
					}
				}
				values := make([]parquet.Value, page.NumValues())
				n, err := page.Values().ReadValues(values)
				if err != nil && err != io.EOF {
					t.Fatal(err)
				}
				for _, v := range values[:n] {
					out.Write(v.Bytes())
				}
			}
			if err := pages.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out.Bytes()
}

// No text of a chat log is in anything that comes of it: trace, workload,
// profile, histograms, messages.
func TestNoTextComesOut(t *testing.T) {
	long(t)
	src := shared(t, "sharegpt_sample.json")
	raw, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	var chats []struct {
		Conversations []struct{ Value string }
	}
	if err := json.Unmarshal(raw, &chats); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range chats {
		for _, turn := range c.Conversations {
			texts = append(texts, turn.Value)
		}
	}
	secret := textRuns(texts)
	if len(secret) < 1_000_000 || leaks(raw, secret) == 0 {
		t.Fatalf("the scan is blind: %d runs", len(secret))
	}

	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	_, said, code := reprise(t, "import", src, "--arrivals", "poisson:2", "-o", file("t.parquet"))
	if code != cli.Good {
		t.Fatal(said)
	}
	said += must(t, "profile", file("t.parquet"), "--json", "--histograms", file("h.parquet"))
	must(t, "synth", "--mirror", file("t.parquet"), "-o", file("w.parquet"))
	said += must(t, "export", file("t.parquet"), "--to", "mooncake")
	outputs := map[string][]byte{"what was printed": []byte(said)}
	for _, name := range []string{"t.parquet", "h.parquet", "w.parquet"} {
		b, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		outputs[name], outputs[name+", decoded"] = b, decoded(t, b)
	}
	for name, b := range outputs {
		if n := leaks(b, secret); n > 0 {
			t.Errorf("%s: %d runs of text came out", name, n)
		}
	}
}
