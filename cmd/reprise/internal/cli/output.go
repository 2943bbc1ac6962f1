package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/trace"
	"reprise/trace/objectstore"
)

// Written annotates a flag that names a file to write; its value is [Parquet] where nothing else is written there.
const Written = "reprise_written"

// Parquet says that a file is one.
const Parquet = "parquet"

// ToHub is the value of export's --to whose output is a folder, for a hub of data sets.
const ToHub = "hf"

// otherFormats are extensions that Parquet does not have.
var otherFormats = []string{".csv", ".tsv", ".json", ".jsonl", ".html", ".md", ".txt", ".xlsx"}

// CheckOutputs looks at what flags name to be written before a command begins, so that
// hours of work do not end in a file that cannot be written: its folder must exist and be
// writable, it may not be an input or another output, and it may not exist itself without
// --overwrite. Pipes, devices and stdout are written as they are. A run that only plans
// with --dry-run writes none. An input
// that does not exist is said first.
func CheckOutputs(cmd *cobra.Command, args []string) error {
	fl := cmd.Flags()
	if On(cmd, "dry-run") {
		return nil
	}
	var paths []string
	var fault error
	fl.VisitAll(func(flag *pflag.Flag) {
		formats, file := flag.Annotations[Written]
		folder := false
		path := flag.Value.String()
		if !file || path == "" || path == Standard {
			return
		}
		paths = append(paths, path)
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand
		}
		if fl.Changed("shard") && flag.Name == "output" { // shards of a job have one folder, and each a file in it
			info, err := objectstore.Stat(path)
			folder = folder || err == nil && info.IsDir()
		}
		if to := fl.Lookup("to"); to != nil && to.Value.String() == ToHub && flag.Name == "output" {
			folder = true
		}
		switch ext := filepath.Ext(path); {
		case fault != nil:
		case slices.Contains(formats, Parquet) && slices.Contains(otherFormats, ext):
			fault = Usagef("%s %s: Parquet is written there: name it %s. reprise export makes CSV and other formats "+
				"of it", name, path, strings.TrimSuffix(path, ext)+".parquet")
		case objectstore.IsURL(path):
			fault = checkObject(path, name, folder || fl.Changed("partitions"), On(cmd, "overwrite"))
		case fl.Changed("partitions") && flag.Name == "output":
			fault = checkPartitioned(path, name, On(cmd, "overwrite"))
		case folder:
			fault = checkFolder(path, name)
		default:
			fault = checkFile(path, name, On(cmd, "overwrite"))
		}
	})
	if err := KeepInputs(args, paths...); err != nil || fault == nil {
		return err
	}
	for _, arg := range args {
		if _, err := objectstore.Stat(arg + ".journal"); err != nil {
			// of a run that did not end, which is read in its place
			if err := MissingFile(arg); err != nil {
				return err
			}
		}
	}
	return fault
}

// CheckBeside refuses to replace a file that goes with an output and is written beside it,
// such as its privacy card, unless --overwrite is given. Empty names are no files.
func CheckBeside(cmd *cobra.Command, output string, beside ...string) error {
	if On(cmd, "overwrite") {
		return nil
	}
	for _, path := range beside {
		if info, err := objectstore.Stat(path); path != output && err == nil && info.Mode().IsRegular() {
			return Usagef("%s exists, and would be written beside %s: name another file with -o, or replace both "+
				"with --overwrite", path, output)
		}
	}
	return nil
}

// ErrExists says all that there is to say of an output that exists.
var ErrExists = errors.New("exists: --overwrite replaces it")

// checkFile says why a file cannot be written, which is named by a flag.
func checkFile(path, flag string, overwrite bool) error {
	folder := filepath.Dir(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return Usagef("%s is a folder: name a file in it, such as %s %s", path, flag,
			filepath.Join(path, "out.parquet"))
	case err == nil && !info.Mode().IsRegular():
		return nil
	case err == nil && !overwrite:
		return Usagef("%s %w", path, ErrExists)
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			return Usagef("folder %s does not exist: make it first, or name another with %s", folder, flag)
		}
	}
	probe, err := trace.TempFile(folder) // without a name: nothing is left when the process is killed
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return Exit(Failure, fmt.Errorf("no permission to write to folder %s: name another with %s", folder, flag))
	}
	if err != nil {
		return nil // the writing says what is wrong
	}
	return probe.Close()
}

// checkObject says why an object cannot be written, or a folder of objects, which is named by
// a flag. Whether the store takes an object shows when it is uploaded.
func checkObject(path, flag string, folder, overwrite bool) error {
	info, err := objectstore.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !noBucket(err):
		return nil
	case err != nil:
		return Exit(Failure, err)
	case info.IsDir() && !folder:
		return Usagef("%s is a folder: name an object in it, such as %s %s", path, flag,
			objectstore.Join(path, "out.parquet"))
	case !info.IsDir() && folder:
		return Usagef("%s is an object: name a folder with %s", path, flag)
	case overwrite:
		return nil
	case !folder:
		return Usagef("%s %w", path, ErrExists)
	}
	before, err := objectstore.Glob(objectstore.Join(path, "part-*-of-*.parquet"))
	if err == nil && len(before) > 0 {
		return Usagef("%s holds what would be replaced, such as %s: name another folder with %s, or replace it with "+
			"--overwrite", path, before[0], flag)
	}
	return err
}

// noBucket reports whether an error is that of a store in which the bucket is missing.
func noBucket(err error) bool {
	var at *objectstore.Error
	return errors.As(err, &at) && at.Kind == objectstore.NoBucket
}

// checkFolder says why nothing can be written into what should be a folder.
func checkFolder(path, flag string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return Usagef("%s is a file: name a folder with %s", path, flag)
	}
	return nil
}

// checkPartitioned says why a partitioned trace cannot be written to a folder.
func checkPartitioned(path, flag string, overwrite bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkFile(filepath.Clean(path), flag, overwrite)
	case err == nil && !info.IsDir():
		return Usagef("%s is a file, and with --partitions %s names a folder: name another", path, flag)
	}
	before, _ := filepath.Glob(filepath.Join(path, "part-*-of-*.parquet"))
	if (len(before) > 0 || trace.IsPartitioned(path)) && !overwrite {
		return Usagef("%s holds partitions of a trace: name another folder with %s, or replace them with --overwrite",
			path, flag)
	}
	others, _ := filepath.Glob(filepath.Join(path, "*.parquet"))
	for _, other := range others {
		if !slices.Contains(before, other) {
			return Usagef("%s holds %s, which is no partition of a trace: name another folder with %s", path,
				filepath.Base(other), flag)
		}
	}
	return nil
}

// MissingFile is the error for a path, with an extension as traces and logs have them,
// at which there is no file; other words may name what is built in.
func MissingFile(path string) error {
	switch filepath.Ext(path) {
	case ".parquet", ".json", ".jsonl", ".csv", ".yaml", ".gz":
	default:
		return nil
	}
	if _, err := objectstore.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mistyped is the file of a folder whose name is within two letters of a name that no file has, or empty.
func mistyped(folder, name string) (near string) {
	const letters = 2
	if len(strings.TrimSuffix(name, filepath.Ext(name))) <= 2*letters {
		return "" // most short names are near each other
	}

	entries, err := os.ReadDir(filepath.Join(folder, "."))
	if err != nil {
		return ""
	}
	fewest := letters + 1
	for _, entry := range entries {
		if n := levenshtein.ComputeDistance(name, entry.Name()); n < fewest {
			near, fewest = filepath.Join(folder, entry.Name()), n
		}
	}
	return near
}

// PlainError is the text of an error, with what the system says about a path in plain words.
func PlainError(err error) string {
	text := err.Error()
	var object *objectstore.Error
	if errors.As(err, &object) { // which names the object, as those do who add a name to every error
		says := object.Error()
		name := strings.TrimSuffix(says, object.Text)
		return strings.ReplaceAll(text, name+says, says)
	}
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
		if near := mistyped(folder, name); near != "" {
			plain += ": did you mean " + near + "?"
		}
	case errors.Is(at.Err, fs.ErrPermission) && temporary:
		plain = fmt.Sprintf("no permission to write to folder %s", filepath.Clean(folder))
	case errors.Is(at.Err, fs.ErrPermission):
		plain = fmt.Sprintf("no permission for %s", at.Path)
	default:
		return text
	}
	return strings.ReplaceAll(text, at.Error(), plain)
}
