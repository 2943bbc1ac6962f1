package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"reprise/trace"
	"reprise/trace/objectstore"
)

// Standard names stdin or stdout where a command line takes a file.
const Standard = "-"

// OpenTrace opens a trace by its path, or from stdin. Of a file that holds something else,
// the error says what, and which command takes it.
func OpenTrace(cmd *cobra.Command, path string) (*trace.Trace, error) {
	if path == Standard {
		return trace.Spool("stdin", cmd.InOrStdin())
	}
	t, err := trace.Open(path)
	if err != nil {
		err = otherKind(path, err, "a trace or a workload", trace.Schema)
	}
	return t, err
}

// WriteTrace writes a trace to a path, where it appears whole or not at all,
// or to stdout.
func WriteTrace(cmd *cobra.Command, path string, f func(trace.Writer[trace.Request]) (trace.Meta, error)) error {
	switch path {
	case "":
		return Usagef("name a file for the trace: -o FILE.parquet, or -o - for stdout")
	case Standard:
		if IsTerminal(cmd.OutOrStdout()) {
			return Usagef("a trace is binary: redirect stdout, or give -o FILE.parquet")
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

// WriteOutput writes text to a path, or to stdout when it is empty or "-".
func WriteOutput(cmd *cobra.Command, path string, f func(io.Writer) error) error {
	return WriteOutputMode(cmd, path, 0o644, f)
}

// WriteOutputMode is [WriteOutput] for a file with the given mode.
func WriteOutputMode(cmd *cobra.Command, path string, mode os.FileMode, f func(io.Writer) error) error {
	if path == "" || path == Standard {
		return f(cmd.OutOrStdout())
	}
	return trace.WriteFile(path, mode, f)
}

// ReadSecret reads what a file holds that a flag names, such as a key, without the white space
// around it. A group may read the file, since that is how a mounted secret reaches a process
// that is not its owner's; everybody may not.
func ReadSecret(flag, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows" {
		return "", Exit(Failure,
			fmt.Errorf("%s %s: everybody on this machine has access to it (mode %04o): run chmod 600 on it, or mount "+
				"it with defaultMode: 0440; renew what it holds if somebody may have read it",
				flag, path, info.Mode().Perm()))
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return strings.TrimSpace(string(b)), err
}

// KeepInputs refuses an output that would overwrite an input, and two outputs to one
// place: a log that is overwritten is lost. Empty names and "-" are no files.
func KeepInputs(inputs []string, outputs ...string) error {
	var read []os.FileInfo
	objects := make(map[string]bool) // inputs in a store
	for _, name := range inputs {
		if objectstore.IsURL(name) {
			objects[objectstore.Join(name)] = true
			continue
		}
		if info, err := os.Stat(name); err == nil {
			read = append(read, info)
		}
		if trace.IsPartitioned(name) {
			partitions, _ := filepath.Glob(filepath.Join(name, "*"))
			for _, partition := range partitions {
				if info, err := os.Stat(partition); err == nil {
					read = append(read, info)
				}
			}
		}
	}
	seen := make(map[string]bool)
	for _, name := range outputs {
		if name == "" || name == Standard {
			continue
		}
		path, err := filepath.Abs(name)
		if objectstore.IsURL(name) {
			path, err = objectstore.Join(name), nil
		}
		if err != nil {
			return err
		}
		if objects[path] {
			return Usagef("%s is an input and would be overwritten: name another output", name)
		}
		if seen[path] {
			return Usagef("two outputs have the same name, %s: give each its own file", name)
		}
		seen[path] = true
		if objectstore.IsURL(name) {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			continue // there is nothing to lose
		}
		for _, r := range read {
			if os.SameFile(info, r) && (info.Mode().IsRegular() || trace.IsPartitioned(name)) {
				return Usagef("%s is an input and would be overwritten: name another output", name)
			}
		}
	}
	return nil
}

// IsTerminal says whether w is a terminal.
func IsTerminal(w io.Writer) bool { return terminal(w) != nil }

// terminal is w, or what it writes to, if that is a terminal.
func terminal(w io.Writer) *os.File {
	if r, ok := w.(*renamed); ok {
		w = r.w
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// CanRedraw says whether w is a terminal on which what was drawn can be drawn again. A
// dumb one, as in Emacs, shows the codes for that.
func CanRedraw(w io.Writer) bool { return IsTerminal(w) && os.Getenv("TERM") != "dumb" }

// OpenInput opens a file, or copies stdin to a private one that is gone when it
// is closed, since Parquet is read from its end; and says how long it is.
func OpenInput(cmd *cobra.Command, path string) (in objectstore.File, size int64, err error) {
	if path != Standard {
		if in, err = objectstore.Open(path); err != nil {
			return nil, 0, err
		}
	} else {
		spool, serr := trace.TempFile("")
		if serr != nil {
			return nil, 0, serr
		}
		in = spool
		_, err = io.Copy(spool, cmd.InOrStdin())
	}
	fi, statErr := in.Stat()
	if err = errors.Join(err, statErr); err != nil {
		return nil, 0, errors.Join(err, in.Close())
	}
	return in, fi.Size(), nil
}

// TraceIn opens the trace that in holds.
func TraceIn(path string, in objectstore.File, size int64) (*trace.Trace, error) {
	if path != Standard {
		t, err := trace.Open(path)
		if err != nil {
			err = otherKind(path, err, "a trace or a workload", trace.Schema)
		}
		return t, err
	}
	return trace.Spool("stdin", io.NewSectionReader(in, 0, size))
}

// InFile names the file that an error is of.
func InFile(path string, err error) error {
	if err == nil {
		return nil
	}
	if path == Standard {
		path = "stdin"
	}
	return fmt.Errorf("%s: %w", path, err)
}
