package trace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reprise/trace/longtest"
)

// A Writer of Entries must not compile; the same program with Requests must.
func TestEntryIsNotTextFree(t *testing.T) {
	longtest.Skip(t)
	build := func(row string) ([]byte, error) {
		dir, err := os.MkdirTemp(".", "_compile-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		src := "package main\nimport \"reprise/trace\"\nvar _ trace.Writer[trace." + row + "]\nfunc main() {}\n"
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command("go", "vet", "./"+dir).CombinedOutput()
	}
	if out, err := build("Request"); err != nil {
		t.Fatalf("a Writer of Requests does not compile: %s", out)
	}
	for _, row := range []string{"Entry", "Text", "Message"} {
		out, err := build(row)
		if err == nil {
			t.Errorf("a Writer of %s compiles", row)
		}
		if !strings.Contains(string(out), "textFree") {
			t.Errorf("a Writer of %s fails for another reason: %s", row, out)
		}
	}
}
