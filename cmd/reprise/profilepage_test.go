package main

import (
	"os"
	"path/filepath"
	"testing"
)

// No text of a chat log is on the page of its profile. What the page of a trace
// that never had text says as well, script and definitions, is no leak.
func TestNoTextOnTheProfilePage(t *testing.T) {
	long(t)
	src := shared(t, "sharegpt_sample.json")
	raw, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	pageOf := func(name string) string {
		must(t, "profile", file(name+".parquet"), "--html", file(name+".html"), "--replicas", "2", "-o", file("out.txt"))
		b, err := os.ReadFile(file(name + ".html"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if err := os.WriteFile(file("log.jsonl"), []byte(sharingLog(200)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", file("log.jsonl"), "-o", file("textless.parquet"))
	must(t, "import", src, "--arrivals", "poisson:2", "-o", file("chats.parquet"))

	secret := textRuns([]string{string(raw)})
	if leaks(raw, secret) == 0 {
		t.Fatal("the scan is blind")
	}
	for run := range textRuns([]string{pageOf("textless")}) {
		delete(secret, run)
	}
	if n := leaks([]byte(pageOf("chats")), secret); n > 0 {
		t.Errorf("%d runs of text came out", n)
	}
}
