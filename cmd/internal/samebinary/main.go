// Command samebinary runs an old and a new build of reprise over the same files, and
// says where they differ: exit codes, what they print, and every file they write.
//
//	samebinary OLD NEW datasets/demo.jsonl.gz more.jsonl …
//
// The old build runs twice. What differs between its two runs is volatile (a random
// key, a time of day) and is not compared with the new build: single lines of text,
// the values of a Parquet file. Parquet files are compared by value,
// all others line by line.
//
// Run it after a change that only moves code, to show that the program does the same.
// Exit code 1 says that something differs. With -keep DIR, all files stay.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	keep := flag.String("keep", "", "folder to run in, which stays")
	flag.Parse()
	if flag.NArg() < 3 {
		fmt.Fprintln(os.Stderr, "usage: samebinary [-keep DIR] OLD NEW FILE...")
		os.Exit(2)
	}
	same, err := compareBuilds(*keep, flag.Arg(0), flag.Arg(1), flag.Args()[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "samebinary:", err)
		os.Exit(2)
	}
	if !same {
		os.Exit(1)
	}
}

// compareBuilds runs everything in three folders and prints what differs.
func compareBuilds(dir, before, after string, sources []string) (same bool, err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "samebinary"); err != nil {
			return false, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
	}
	for i, s := range sources {
		if sources[i], err = filepath.Abs(s); err != nil {
			return false, err
		}
	}
	folders := map[string]string{"old1": before, "old2": before, "new": after}
	for name, binary := range folders {
		if binary, err = filepath.Abs(binary); err != nil {
			return false, err
		}
		for _, s := range sources {
			if err = runAll(filepath.Join(dir, name, filepath.Base(s)), binary, s); err != nil {
				return false, err
			}
		}
	}
	return compareFolders(filepath.Join(dir, "old1"), filepath.Join(dir, "old2"), filepath.Join(dir, "new"))
}

// runAll runs every command of the list on one source, in a folder of its own, and
// leaves what each printed and its exit code beside the files that it wrote.
func runAll(dir, binary, source string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	contract := "clauses:\n  - p95 ttft <= 1s\n  - p99 e2e <= 30s\n"
	if err := os.WriteFile(filepath.Join(dir, "contract.yaml"), []byte(contract), 0o644); err != nil {
		return err
	}
	state, err := filepath.Abs(dir + ".state")
	if err != nil {
		return err
	}
	for i, line := range commandLines {
		args := strings.Fields(strings.ReplaceAll(line, "SOURCE", source))
		cmd := exec.CommandContext(context.Background(), binary, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state) // each run has its own ledger
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // the exit code says it, and is compared
		if cmd.ProcessState == nil {
			return fmt.Errorf("%s did not start", binary)
		}
		said := fmt.Sprintf("reprise %s\nexit code %d\n--- stdout\n%s\n--- stderr\n%s", line, cmd.ProcessState.ExitCode(), out.Bytes(), errs.Bytes())
		said = strings.ReplaceAll(said, source, "SOURCE")
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.said", i)), []byte(said), 0o644); err != nil {
			return err
		}
	}
	return nil
}
