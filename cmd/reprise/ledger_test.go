package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"reprise/trace"
)

// captureOf is the capture id in the metadata of a Parquet file.
func captureOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	p, err := trace.OpenParquet(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	id, _ := p.Lookup("reprise.capture_ids")
	return id
}

// Each import has an id of its own, which whatever is made of it inherits, and which the
// digest of its rows does not depend on. What is made of no capture has none.
func TestCaptureIDs(t *testing.T) {
	log, err := filepath.Abs("../../datasets/demo.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	must(t, "import", log, "-o", "t.parquet", "--quiet")
	must(t, "import", log, "-o", "again.parquet", "--quiet")
	must(t, "slice", "t.parquet", "--start", "10s", "-o", "slice.parquet")
	must(t, "slice", "slice.parquet", "--end", "200s", "-o", "deep.parquet")
	must(t, "anonymize", "deep.parquet", "--unit", "request", "--k-class", "2", "--max-suppressed", "0.9", "-o", "partner.parquet")
	must(t, "synth", "fit", "t.parquet", "-o", "model.parquet")
	must(t, "synth", "model.parquet", "-n", "50", "-o", "workload.parquet")
	must(t, "synth", "--mirror", "t.parquet", "-o", "mirror.parquet")
	must(t, "profile", "t.parquet", "--histograms", "histograms.parquet", "--tables", "tables.parquet")
	must(t, "synth", "fit", "histograms.parquet", "-o", "cells.parquet")
	must(t, "synth", "chat", "-n", "20", "-o", "chat.parquet")
	id := captureOf(t, "t.parquet")
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) {
		t.Fatalf("the capture id is %q", id)
	}
	for _, name := range []string{"slice", "deep", "partner", "model", "workload", "mirror", "histograms", "tables", "cells"} {
		if got := captureOf(t, name+".parquet"); got != id {
			t.Errorf("%s has the capture ids %q, want %q", name, got, id)
		}
	}
	if got := captureOf(t, "chat.parquet"); got != "" {
		t.Errorf("a workload of a description has the capture id %q", got)
	}
	var digests []string
	for _, name := range []string{"t.parquet", "again.parquet"} {
		f, err := trace.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, f.Meta.Digest)
		f.Close()
	}
	if captureOf(t, "again.parquet") == id || digests[0] != digests[1] {
		t.Errorf("two imports of one log: ids %s and %s, digests %q", id, captureOf(t, "again.parquet"), digests)
	}
}
