package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	long(t)
	t.Parallel()
	for _, sig := range []os.Signal{os.Kill, os.Interrupt} {
		dir := t.TempDir()
		out := filepath.Join(dir, "t.parquet")
		if err := os.WriteFile(out, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := child(t, "import", "-", "-o", out, "--overwrite")
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
		pipe, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Long enough that rows and block ids have spilled: beyond 48 MiB of rows
		// and a million distinct blocks.
		if _, err := io.CopyN(pipe, &lines{}, 120<<20); err != nil {
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

// Whatever instant a command is killed at, its output is whole or not there.
func TestKilledAtAnyInstant(t *testing.T) {
	long(t)
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("log.jsonl"), []byte(sharingLog(5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", file("log.jsonl"), "-o", file("t.parquet"))
	must(t, "slice", file("t.parquet"), "--end", "1s", "-o", file("s.parquet"))
	must(t, "replay", file("s.parquet"), "--url", simulate(t), "-o", file("r.parquet"))
	for _, c := range []struct {
		args []string
		read []string // succeeds on a whole output
	}{
		{[]string{"import", file("log.jsonl"), "-o"}, []string{"profile"}},
		{[]string{"slice", file("t.parquet"), "--start", "1s", "-o"}, []string{"profile"}},
		{[]string{"synth", "--mirror", file("t.parquet"), "-o"}, []string{"profile"}},
		{[]string{"synth", file("t.parquet"), "-n", "20000", "-o"}, []string{"profile"}},
		{[]string{"synth", "agents", "-o"}, []string{"profile"}},
		{[]string{"synth", "fit", file("t.parquet"), "-o"}, []string{"synth", "-o", file("x.parquet")}},
		{[]string{"simulate", file("t.parquet"), "-o"}, []string{"report"}},
		{[]string{"profile", file("t.parquet"), "--html"}, nil},
		{[]string{"fidelity", file("t.parquet"), file("t.parquet"), "--max", "copies=off", "--html"}, nil},
		{[]string{"export", file("t.parquet"), "--to", "mooncake", "-o"}, []string{"import", "-o", file("x.parquet")}},
		{[]string{"profile", file("t.parquet"), "--json", "-o"}, nil},
		{[]string{"report", file("r.parquet"), "--html"}, nil},
	} {
		for try := range 8 {
			out := t.TempDir()
			cmd := child(t, append(c.args, filepath.Join(out, "o"))...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// Later and later: from before anything is written to after the end.
			kill := time.AfterFunc(time.Duration(try*try)*5*time.Millisecond, func() { cmd.Process.Kill() })
			err := cmd.Wait()
			kill.Stop()
			files, _ := os.ReadDir(out)
			files = slices.DeleteFunc(files, func(f os.DirEntry) bool { return f.Name() == "o.privacy.json" }) // it comes behind o
			switch {
			case len(files) == 0 && err == nil:
				t.Errorf("%v: it succeeded and wrote nothing", c.args[0])
			case len(files) > 1 || len(files) == 1 && files[0].Name() != "o":
				t.Errorf("%v: it left %v", c.args[0], files)
			case len(files) == 1 && c.read != nil:
				must(t, append(c.read, filepath.Join(out, "o"))...)
			}
		}
	}
}
