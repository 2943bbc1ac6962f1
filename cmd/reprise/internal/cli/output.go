package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// CheckOutput looks at the file that -o names before a command begins, so that hours of
// work do not end in a file that cannot be written: its folder must exist and be
// writable, and it may not exist itself without --overwrite. Pipes, devices and stdout
// are written as they are. A run that goes on with --resume, or that only plans with
// --dry-run, is not held up. An output that is an input as well is left to [KeepInputs].
func CheckOutput(cmd *cobra.Command, args []string) error {
	fl := cmd.Flags()
	set := func(name string) bool {
		on, err := fl.GetBool(name)
		return err == nil && on
	}
	out, err := fl.GetString("output")
	if err != nil || fl.Lookup("overwrite") == nil || out == "" || out == Standard || set("dry-run") || set("resume") {
		return nil
	}
	folder := filepath.Dir(out)
	info, err := os.Stat(out)
	switch {
	case err == nil && info.IsDir():
		return Usagef("%s is a folder: name a file in it, such as -o %s", out, filepath.Join(out, "out.parquet"))
	case err == nil && !info.Mode().IsRegular():
		return nil
	case err == nil && !set("overwrite"):
		for _, arg := range args {
			if in, err := os.Stat(arg); err == nil && os.SameFile(in, info) {
				return nil
			}
		}
		return Usagef("%s exists: name another file with -o, or replace it with --overwrite", out)
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			return Usagef("folder %s does not exist: make it first, or name another with -o", folder)
		}
	}
	probe, err := os.CreateTemp(folder, ".reprise-*")
	if errors.Is(err, fs.ErrPermission) {
		return Exit(Failure, fmt.Errorf("no permission to write to folder %s: name another with -o", folder))
	}
	if err != nil {
		return nil // the writing says what is wrong
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// MissingFile is the error for a path, with an extension as traces and logs have them,
// at which there is no file; other words may name what is built in.
func MissingFile(path string) error {
	switch filepath.Ext(path) {
	case ".parquet", ".json", ".jsonl", ".csv", ".yaml", ".gz":
	default:
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// PlainError is the text of an error, with what the system says about a path in plain words.
func PlainError(err error) string {
	text := err.Error()
	var at *fs.PathError
	if !errors.As(err, &at) {
		return text
	}
	plain := ""
	folder, name := filepath.Split(at.Path)
	temporary := strings.HasPrefix(name, ".") && strings.Contains(name, ".part-")
	switch {
	case errors.Is(at.Err, fs.ErrNotExist) && temporary:
		plain = fmt.Sprintf("folder %s does not exist: make it first, or name another", filepath.Clean(folder))
	case errors.Is(at.Err, fs.ErrNotExist):
		plain = fmt.Sprintf("there is no file or folder %s", at.Path)
	case errors.Is(at.Err, fs.ErrPermission) && temporary:
		plain = fmt.Sprintf("no permission to write to folder %s", filepath.Clean(folder))
	case errors.Is(at.Err, fs.ErrPermission):
		plain = fmt.Sprintf("no permission for %s", at.Path)
	default:
		return text
	}
	return strings.ReplaceAll(text, at.Error(), plain)
}
