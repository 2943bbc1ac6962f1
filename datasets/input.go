package datasets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A File is one file of a source. Open may be called more than once; for a
// source of one file in a format that is not made of several, as stdin must be,
// it is called once only.
type File struct {
	Name string // for errors and for formats that are told by names
	Open func() (io.ReadCloser, error)
}

// Expand turns a path into files: a file into itself, a directory into the
// files in it, and a pattern of package path/filepath into those that it
// matches. Directories and patterns give files in lexical order, without hidden
// ones and without what is in directories below.
func Expand(path string) ([]File, error) {
	info, err := os.Stat(path)
	pattern := false
	var paths []string
	switch {
	case err == nil && !info.IsDir():
		return []File{fileAt(path)}, nil
	case err == nil:
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?["):
		pattern = true
		if paths, err = filepath.Glob(path); err != nil {
			return nil, fmt.Errorf("%s: it is not a pattern that can be read: %w", path, err)
		}
	default:
		return nil, err
	}
	var files []File
	for _, p := range paths {
		hidden := strings.HasPrefix(filepath.Base(p), ".") && !(pattern && strings.HasPrefix(filepath.Base(path), "."))
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && !hidden {
			files = append(files, fileAt(p))
		}
	}
	if len(files) == 0 && pattern {
		return nil, fmt.Errorf("%s: no file matches", path)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the directory has no files, but for hidden ones and those of directories below", path)
	}
	return files, nil
}

func fileAt(path string) File {
	return File{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// OpenFiles begins to read a source that is one file or several. Each may be
// compressed with gzip or zstd, as its first bytes tell. An archive that is cut off
// matches io.ErrUnexpectedEOF, at the place up to which it was read; one that holds
// more than 64 MiB and 1,000 times its own size is refused.
//
// Several files of a format whose sources are made of several are read as that
// format joins them. Of any other format they are read one after the other as
// one source: the format is told or found in the first file, each other file
// must be of the same, and what an entry refers to may be in a file before.
// Empty files are passed over. Close the source when it is not read to its end.
//
// Errors of what was asked for match [ErrUsage]. Errors of the input are of type
// *trace.SourceError and name the file, here and from Read.
func OpenFiles(files []File, o Options) (*Source, error) {
	if len(files) == 0 {
		return nil, usage("there is no file to read")
	}
	all := make([]File, len(files))
	for i, f := range files {
		all[i] = f.plain()
	}
	f, joined, err := o.joins(all)
	if err != nil {
		return nil, err
	}
	s := &Source{name: sourceName(files), file: files[0].Name, maxBad: o.MaxBad}
	if joined {
		s.readAs(f, o)
		s.dec, err = f.openFiles(all, o, s)
	} else {
		err = s.chain(all, o)
	}
	return s.start(err)
}

// sourceName stands for all files in errors that are of none.
func sourceName(files []File) string {
	if len(files) == 1 {
		return files[0].Name
	}
	return fmt.Sprintf("%s and %d more", files[0].Name, len(files)-1)
}

// joins finds a format that is made of several files. One file is that only
// when the format is told and has no other way to be read.
func (o *Options) joins(files []File) (Format, bool, error) {
	for _, f := range Formats() {
		if f.openFiles == nil || o.Format != "" && o.Format != f.Name || o.Format == "" && o.Map != nil {
			continue
		}
		told := o.Format == f.Name && (len(files) > 1 || f.open == nil)
		if !told && (len(files) == 1 || f.detectFiles == nil || !f.detectFiles(files)) {
			continue
		}
		return f, true, o.suits(f)
	}
	return Format{}, false, nil
}
