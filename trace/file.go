package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"reprise/trace/objectstore"
)

// A File is an output that appears whole or not at all: it is written beside
// its path, synced, and renamed by Commit. Abort removes it. Where
// the kernel allows (Linux's O_TMPFILE), the unfinished file has no name, so
// not even SIGKILL leaves one, except in the instant in which an existing file is
// replaced.
//
// A path that is not a regular file, such as a pipe or /dev/null, is written to
// directly, since a rename would replace it by a file. An object of a store (see package
// objectstore) is written to a file in [os.TempDir] and uploaded by Commit; should that fail, the
// file stays, and the error names it.
type File struct {
	f       *os.File
	path    string
	url     string // of an object that path is uploaded as
	unnamed bool
	direct  bool // f is at path already
	done    bool
}

// CreateFile begins a file that will appear at path, or where a link of that
// name leads, with the given mode.
func CreateFile(path string, mode os.FileMode) (*File, error) {
	if objectstore.IsURL(path) {
		if err := objectstore.Start(path); err != nil {
			return nil, err
		}
		kept := fmt.Sprintf("reprise-%016x-%s", rand.Uint64(), filepath.Base(path))
		o, err := CreateFile(filepath.Join(os.TempDir(), kept), private)
		if err != nil {
			return nil, fmt.Errorf("%s is kept in %s until it is whole: set TMPDIR to a folder that takes it: %w", path,
				os.TempDir(), err)
		}
		o.url = path
		return o, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // of a directory this is an error
		if err != nil {
			return nil, err
		}
		return &File{f: f, path: path, direct: true}, nil
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	dir := filepath.Dir(path)
	if f, err := openUnnamed(path, mode); err == nil {
		return &File{f: f, path: path, unnamed: true}, nil
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".part-*")
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return &File{f: f, path: path}, nil
}

// Write implements io.Writer.
func (o *File) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	if err != nil && o.url != "" {
		err = fmt.Errorf("%s is kept in %s until it is whole: set TMPDIR to a folder with room for it: %w", o.url,
			os.TempDir(), err)
	}
	return n, err
}

// share makes the file readable by everybody.
func (o *File) share() error {
	if o.direct || o.url != "" {
		return nil
	}
	return o.f.Chmod(shared)
}

// Commit makes the file appear at its path, in place of any file there.
func (o *File) Commit() error {
	if o.done {
		return os.ErrClosed
	}
	if o.direct {
		o.done = true
		return o.f.Close()
	}
	if o.url != "" {
		return o.put()
	}
	if err := o.f.Sync(); err != nil {
		return errors.Join(err, o.Abort())
	}
	name := o.f.Name()
	if o.unnamed {
		var err error
		if name, err = linkUnnamed(o.f, o.path); err != nil {
			return errors.Join(err, o.Abort())
		}
		o.unnamed = false
	}
	o.done = true
	err := o.f.Close()
	if name != o.path {
		err = errors.Join(err, os.Rename(name, o.path))
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// put puts the file up as an object. Where that fails, it stays on the machine.
func (o *File) put() error {
	info, err := o.f.Stat()
	if err == nil {
		err = objectstore.Put(o.url, o.f, info.Size())
	}
	if err == nil {
		return o.Abort()
	}
	o.url = ""
	if kept := o.Commit(); kept != nil {
		return errors.Join(err, kept)
	}
	return fmt.Errorf("%w. The file to upload is in %s: copy it there when the store takes it", err, o.path)
}

// Abort drops the file. After Commit it does nothing, so it may be deferred.
func (o *File) Abort() error {
	if o.done {
		return nil
	}
	o.done = true
	if o.unnamed || o.direct {
		return o.f.Close()
	}
	return errors.Join(o.f.Close(), os.Remove(o.f.Name()))
}

// WriteFile writes a whole output through f; it appears only when f succeeds.
func WriteFile(path string, mode os.FileMode, f func(io.Writer) error) error {
	o, err := CreateFile(path, mode)
	if err != nil {
		return err
	}
	defer o.Abort()
	if err := f(o); err != nil {
		return err
	}
	return o.Commit()
}

// TempFile opens a private file that has no name: it is gone when it is closed
// or the process ends. dir is os.TempDir when empty.
func TempFile(dir string) (*os.File, error) {
	dir = cmp.Or(dir, os.TempDir())
	if f, err := openUnnamed(filepath.Join(dir, "reprise-spill"), 0o600); err == nil {
		return f, nil
	}
	f, err := os.CreateTemp(dir, ".reprise-spill-*")
	if err != nil {
		return nil, err
	}
	// Unlinked while open; where the system forbids that, the name stays until
	// the process closes it, and the file is private all the same.
	if err := os.Remove(f.Name()); err != nil && os.PathSeparator == '/' {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
