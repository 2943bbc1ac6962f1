package main

import (
	"io"
	"os"

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
	return trace.Open(path)
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
	if path == "" || path == standard {
		return f(cmd.OutOrStdout())
	}
	return trace.WriteFile(path, 0o644, f)
}

// isTerminal says whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
