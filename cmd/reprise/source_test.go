package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"reprise/datasets"
)

// How much of the files was read counts the bytes of all, a file that is opened again from its start, and is unknown
// where one of them has no size.
func TestReadShare(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"a": strings.Repeat("x", 300), "b": strings.Repeat("y", 100)})
	of := func(name string) datasets.File {
		return datasets.File{Name: name, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(string(read(t, name)))), nil
		}}
	}
	files, share := readShare([]datasets.File{of("a"), of("b")})
	take := func(file int, bytes int64, want float64) {
		t.Helper()
		in, err := files[file].Open()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if _, err := io.CopyN(io.Discard, in, bytes); err != nil || share(0, 2) != want {
			t.Errorf("%d bytes of %s: %g, %v, want %g", bytes, files[file].Name, share(0, 2), err, want)
		}
	}
	take(0, 200, 0.5)
	take(0, 100, 0.25)
	take(1, 100, 0.5)
	if got := share(1, 2); got != 1 {
		t.Errorf("of the second file alone: %g, want 1", got)
	}

	if _, share := readShare([]datasets.File{of("a"), {Name: filepath.Join("no", "file")}}); share(0, 2) != 0 {
		t.Errorf("a file without a size: %g", share(0, 2))
	}
}

// An import counts the users that a mapping took in, and proposes no second field for them.
func TestMappedUsersAreCounted(t *testing.T) {
	t.Chdir(t.TempDir())
	var log strings.Builder
	for _, team := range []string{"a", "b", "a"} {
		log.WriteString(`{"timestamp":"2026-01-02T15:04:05Z","model":"m",` +
			`"messages":[{"role":"user","content":"one two"}],` +
			`"usage":{"prompt_tokens":9,"completion_tokens":3},"metadata":{"team":"` + team + `","region":"r"}}` + "\n")
	}
	writeFiles(t, map[string]string{"log.jsonl": log.String()})
	said := func(flags ...string) string {
		t.Helper()
		args := append([]string{"import", "log.jsonl", "-o", "t.parquet", "--overwrite"}, flags...)
		_, errs, code := reprise(t, args...)
		if code != 0 {
			t.Fatalf("exit code %d\n%s", code, errs)
		}
		return strings.Join(strings.Fields(errs), " ")
	}
	expect(t, said(), "--map user=metadata.region")
	expect(t, said("--map", "user=metadata.team"), "; users: 2 ", "--map class=metadata.region")
}
