package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lines yields rows of a Mooncake trace for ever, so that a command that reads
// them is killed half-way whenever it is killed.
type lines struct {
	n       int
	pending string
}

func (l *lines) Read(p []byte) (int, error) {
	if l.pending == "" {
		var b strings.Builder
		for range 1000 {
			fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 600, "output_length": 5, "hash_ids": [%d, %d]}`+"\n", l.n, l.n, l.n+1)
			l.n++
		}
		l.pending = b.String()
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

// A command that is killed half-way leaves no half-written output, and what
// stood at its path stays.
func TestKilledHalfWay(t *testing.T) {
	for _, sig := range []os.Signal{os.Kill, os.Interrupt} {
		dir := t.TempDir()
		out := filepath.Join(dir, "t.parquet")
		if err := os.WriteFile(out, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := child(t, "import", "-", "-o", out)
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
		pipe, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Long enough that rows have spilled: 64 MiB of them are about 230,000.
		if _, err := io.CopyN(pipe, &lines{}, 40<<20); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if sig == os.Interrupt {
			pipe.Close()
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: the command succeeded", sig)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Name() != "t.parquet" {
				t.Errorf("%v: %s is left behind", sig, f.Name())
			}
		}
		if b, _ := os.ReadFile(out); string(b) != "old" {
			t.Errorf("%v: the output was touched", sig)
		}
	}
}
