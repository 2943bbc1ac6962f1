package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
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
	long(t)
	log, err := filepath.Abs("../../datasets/demo.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	must(t, "import", log, "-o", "t.parquet", "--quiet")
	must(t, "import", log, "-o", "again.parquet", "--quiet")
	must(t, "slice", "t.parquet", "--start", "10s", "-o", "slice.parquet")
	must(t, "slice", "slice.parquet", "--end", "200s", "-o", "deep.parquet")
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
	for _, name := range []string{"slice", "deep", "model", "workload", "mirror", "histograms", "tables", "cells"} {
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

// ofUser runs a command for a user whose ledger is in a folder.
func ofUser(t *testing.T, folder string, args ...string) (said string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(cli.WithState(context.Background(), folder), replacing(args), strings.NewReader(""), &out, &errs)
	return errs.String(), code
}

// daysLog writes a log of some users, a request a second.
func daysLog(t *testing.T, path string, users, turns int) {
	t.Helper()
	var b strings.Builder
	for i := range users * turns {
		fmt.Fprintf(&b, "{\"ts\":\"2026-05-01T%02d:%02d:%02dZ\",\"user\":\"u%d\",\"in\":%d,\"out\":%d}\n", i/3600, i/60%60, i%60, i*7%users, 100+i*i%400, 20+i%90)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// imported imports such a log, within a declared window.
func imported(t *testing.T, log, trace string, more ...string) {
	t.Helper()
	must(t, append([]string{"import", log, "--map", "time=ts,user=user,input_tokens=in,output_tokens=out", "--capture-begin", "2026-05-01T00:00:00Z", "--capture-end", "2026-05-02T00:00:00Z",
		"-o", trace, "--quiet"}, more...)...)
}

// A trace's releases count wherever it goes: in a copy in another folder, in a slice, and in
// another import of its log; and at another user, where a ledger went along.
func TestLedgerFollows(t *testing.T) {
	long(t)
	dir := t.TempDir()
	t.Chdir(dir)
	daysLog(t, "log.jsonl", 200, 40)
	imported(t, "log.jsonl", "t.parquet")
	for _, d := range []string{"copied", "mailed", "mine"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fit := func(trace, folder string, more ...string) (string, int) {
		t.Helper()
		return ofUser(t, folder, append([]string{"synth", "fit", trace, "--tier", "public", "--epsilon", "3", "--max-input", "512", "--max-output", "128", "-o", "m.parquet"}, more...)...)
	}
	// Whether the noise is too much or not: both count.
	said, code := fit("t.parquet", "mine")
	if code != cli.Good && code != cli.Check || code == cli.Good && !strings.Contains(said, "no earlier release or attempt of this source") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	link := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	link("t.parquet", "copied/x.parquet")
	if said, code = fit("copied/x.parquet", "mine"); code != cli.Good && code != cli.Check || code == cli.Good && !strings.Contains(said, "releases or attempts before: 1 of the same rows") {
		t.Errorf("a copy: exit code %d\n%s", code, said)
	}
	must(t, "slice", "copied/x.parquet", "--start", "10m", "--end", "2h", "-o", "copied/slice.parquet")
	if said, code = fit("copied/slice.parquet", "mine"); code != cli.Good && code != cli.Check || code == cli.Good && !strings.Contains(said, "releases or attempts before: 2 of the same capture") {
		t.Errorf("a slice: exit code %d\n%s", code, said)
	}
	imported(t, "log.jsonl", "again.parquet", "--block-size", "32")
	link("copied/slice.parquet", "mailed/t.parquet")
	link("mine/ledger.jsonl", "mailed/t.ledger.jsonl")
	for what, of := range map[string][2]string{"the trace": {"t.parquet", "mine"}, "another import": {"again.parquet", "mine"}, "a slice in another folder": {"copied/slice.parquet", "mine"},
		"a slice that was mailed with the ledger": {"mailed/t.parquet", "yours"}} {
		if said, code := fit(of[0], of[1]); code != cli.Usage || !strings.Contains(said, "ε would be 12 in all: "+
			"earlier releases or attempts (3) spent 9 of it, by ") {
			t.Errorf("%s: exit code %d\n%s", what, code, said)
		}
	}
	if info, err := os.Stat("mine/ledger.jsonl"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the ledger of the user: %v, %v", info, err)
	}
}
