package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reprise/replay/result"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"reprise/datasets"
	"reprise/trace"
)

// standard is the name of stdin or stdout on the command line.
const standard = "-"

// openTrace opens a trace by its path, or from stdin.
func openTrace(cmd *cobra.Command, path string) (*trace.Trace, error) {
	if path == standard {
		return trace.Spool("stdin", cmd.InOrStdin())
	}
	t, err := trace.Open(path)
	if info, serr := os.Stat(path); err != nil && serr == nil {
		switch {
		case info.IsDir():
			err = fmt.Errorf("%s is a directory: name a trace or a workload in it", path)
		case errors.Is(err, trace.ErrNoFooter):
			err = fmt.Errorf("%w; of a log, reprise import makes a trace", err)
		}
	}
	return t, err
}

// logFiles turns the arguments of a command into the files of a source.
func logFiles(cmd *cobra.Command, args []string) ([]datasets.File, error) {
	var files []datasets.File
	for _, arg := range args {
		if arg == standard {
			files = append(files, datasets.File{Name: "stdin", Open: func() (io.ReadCloser, error) {
				return io.NopCloser(cmd.InOrStdin()), nil
			}})
			continue
		}
		more, err := datasets.Expand(arg)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// writeTrace writes a trace to a path, where it appears whole or not at all,
// or to stdout.
func writeTrace(cmd *cobra.Command, path string, f func(trace.Writer[trace.Request]) (trace.Meta, error)) error {
	switch path {
	case "":
		return usagef("say where the trace goes: -o FILE.parquet, or -o - for stdout")
	case standard:
		if isTerminal(cmd.OutOrStdout()) {
			return usagef("a trace is binary: redirect stdout, or give -o FILE.parquet")
		}
		w := trace.NewRequestWriter(cmd.OutOrStdout())
		meta, err := f(w)
		if err != nil {
			return err
		}
		return w.Close(meta)
	}
	return trace.Create(path, f)
}

// writeOutput writes text to a path, or to stdout when it is empty or "-".
func writeOutput(cmd *cobra.Command, path string, f func(io.Writer) error) error {
	return writeModed(cmd, path, 0o644, f)
}

// writeModed is writeOutput to a file of a mode.
func writeModed(cmd *cobra.Command, path string, mode os.FileMode, f func(io.Writer) error) error {
	if path == "" || path == standard {
		return f(cmd.OutOrStdout())
	}
	return trace.WriteFile(path, mode, f)
}

// keepsInputs refuses to write over a file that the command reads, and two outputs
// to one place: an output replaces what was there, and a log is not easily had
// again. Empty names and "-" are no files.
func keepsInputs(inputs []string, outputs ...string) error {
	var read []os.FileInfo
	for _, name := range inputs {
		if info, err := os.Stat(name); err == nil {
			read = append(read, info)
		}
	}
	seen := make(map[string]bool)
	for _, name := range outputs {
		if name == "" || name == standard {
			continue
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		if seen[path] {
			return usagef("two outputs are to be written to %s: name a file for each", name)
		}
		seen[path] = true
		info, err := os.Stat(name)
		if err != nil {
			continue // there is nothing to lose
		}
		for _, r := range read {
			if os.SameFile(info, r) && info.Mode().IsRegular() {
				return usagef("%s is what is read, and would be overwritten: name another output", name)
			}
		}
	}
	return nil
}

// isTerminal says whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// resultsNamed replaces a directory by the results file in it. One that has none, or
// several, is refused with what to name instead: which of them belong together the
// directory does not say.
func resultsNamed(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = path
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue // what cannot be read is said when it is opened
		}
		found, err := resultsIn(path)
		if err != nil {
			return nil, err
		}
		if len(found) != 1 {
			return nil, usagef("%s", severalResults(path, found))
		}
		out[i] = found[0]
	}
	return out, nil
}

// resultsIn finds the results files in a directory and those below it, in order.
func resultsIn(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		if f, err := result.Open(path); err == nil { // other Parquet is no concern of a report
			found = append(found, path)
			return f.Close()
		}
		return nil
	})
	return found, err
}

// severalResults says what to name of a directory.
func severalResults(dir string, found []string) string {
	if len(found) == 0 {
		return dir + " is a directory without results: name the file that replay or simulate wrote with -o"
	}
	out := fmt.Sprintf("%s is a directory with %d results files: name one, or several to be set side by side, such as %s",
		dir, len(found), strings.Join(found[:2], " "))
	if _, err := os.Stat(filepath.Join(dir, roundsName)); err == nil {
		out += fmt.Sprintf(`; "reprise compare %s" says whether the two sides differ`, dir)
	}
	return out
}
