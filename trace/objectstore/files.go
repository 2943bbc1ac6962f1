package objectstore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A File is open for reading. Of the machine it is an *os.File.
type File interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	Stat() (fs.FileInfo, error)
	Name() string
}

// Open is [os.Open], but that a pipe which nothing writes to is not waited for without end.
func Open(name string) (File, error) {
	if !IsURL(name) {
		f, err := openFile(name)
		if err != nil {
			return nil, err // without a type
		}
		return f, nil
	}
	at, err := stat(name)
	if err != nil {
		return nil, err
	}
	c, err := of(name)
	if err != nil {
		return nil, err
	}
	return &object{client: c, info: at, chunks: map[int64]*chunk{}}, nil
}

// ReadFile is [os.ReadFile].
func ReadFile(name string) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Stat is [os.Stat]. A folder of a store is there as long as an object is in it, and a
// bucket always.
func Stat(name string) (fs.FileInfo, error) {
	if !IsURL(name) {
		return os.Stat(name)
	}
	at, err := stat(name)
	if err != nil {
		return nil, err // without a type
	}
	return at, nil
}

func stat(name string) (info, error) {
	c, err := of(name)
	if err != nil {
		return info{}, err
	}
	got, err := c.ask(message{Op: opStat, URL: name})
	if err != nil {
		return info{}, err
	}
	if len(got.Entries) != 1 {
		return info{}, &Error{URL: name, Text: "the fetch process gave no answer"}
	}
	return info{got.Entries[0], name}, nil
}

// ReadDir is [os.ReadDir].
func ReadDir(name string) ([]fs.DirEntry, error) {
	if !IsURL(name) {
		return os.ReadDir(name)
	}
	c, err := of(name)
	if err != nil {
		return nil, err
	}
	got, err := c.ask(message{Op: opList, URL: name})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(got.Entries, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	entries := make([]fs.DirEntry, 0, len(got.Entries))
	for _, e := range got.Entries {
		entries = append(entries, info{e, Join(name, e.Name)})
	}
	return entries, nil
}

// Glob is [filepath.Glob], but that a bucket is no pattern, and that what cannot be listed is an
// error.
func Glob(pattern string) ([]string, error) {
	scheme, bucket, key, ok := split(pattern)
	if !ok {
		return filepath.Glob(pattern)
	}
	if _, err := path.Match(key, ""); err != nil {
		return nil, err
	}
	found := []string{scheme + "://" + bucket}
	for step := range strings.SplitSeq(key, "/") {
		var next []string
		for _, dir := range found {
			if !strings.ContainsAny(step, `*?[\`) {
				next = append(next, Join(dir, step))
				continue
			}
			entries, err := ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, e := range entries {
				if matches, _ := path.Match(step, e.Name()); matches {
					next = append(next, Join(dir, e.Name()))
				}
			}
		}
		found = next
	}
	if last := path.Base(key); !strings.ContainsAny(last, `*?[\`) {
		found = slices.DeleteFunc(found, func(name string) bool { _, err := Stat(name); return err != nil })
	}
	return found, nil
}

// WalkDir is [filepath.WalkDir].
func WalkDir(root string, f fs.WalkDirFunc) error {
	if !IsURL(root) {
		return filepath.WalkDir(root, f)
	}
	at, err := stat(root)
	if err != nil {
		err = f(root, nil, err)
	} else {
		err = walk(root, at, f)
	}
	if err == fs.SkipDir || err == fs.SkipAll {
		return nil
	}
	return err
}

func walk(name string, at fs.DirEntry, f fs.WalkDirFunc) error {
	if err := f(name, at, nil); err != nil || !at.IsDir() {
		if err == fs.SkipDir && at.IsDir() {
			err = nil
		}
		return err
	}
	entries, err := ReadDir(name)
	if err != nil {
		if err = f(name, at, err); err != nil {
			if err == fs.SkipDir {
				err = nil
			}
			return err
		}
	}
	for _, e := range entries {
		if err := walk(Join(name, e.Name()), e, f); err != nil {
			if err == fs.SkipDir {
				break
			}
			return err
		}
	}
	return nil
}

// Remove is [os.Remove]. A folder of a store goes with the last object in it.
func Remove(name string) error {
	if !IsURL(name) {
		return os.Remove(name)
	}
	c, err := of(name)
	if err == nil {
		_, err = c.ask(message{Op: opRemove, URL: name})
	}
	return err
}

// Put puts size bytes of r up as an object, in parts. It appears whole, in place of any
// other, or not at all. When the store fails for the moment, all of it is sent again.
func Put(name string, r io.ReaderAt, size int64) error {
	c, err := of(name)
	if err != nil {
		return err
	}
	return c.again(name, func() error { return c.put(name, r, size) })
}

func (c *client) put(name string, r io.ReaderAt, size int64) error {
	begun, err := c.once(message{Op: opPut, URL: name, Size: size})
	if err != nil {
		return err
	}
	buf := make([]byte, min(size, maxData))
	for at := int64(0); at < size; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), size-at)]
		if _, err = r.ReadAt(buf, at); err != nil && err != io.EOF {
			break
		}
		if _, err = c.once(message{Op: opData, URL: name, Upload: begun.ID, Data: buf}); err != nil {
			break
		}
	}
	if err != nil {
		c.once(message{Op: opAbort, URL: name, Upload: begun.ID})
		return err
	}
	_, err = c.once(message{Op: opCommit, URL: name, Upload: begun.ID, Size: size})
	return err
}

// An info describes an object or a folder. It is an [fs.FileInfo] and an [fs.DirEntry].
type info struct {
	entry entry
	url   string
}

func (i info) Name() string               { return i.entry.Name }
func (i info) Size() int64                { return i.entry.Bytes }
func (i info) ModTime() time.Time         { return i.entry.Modified }
func (i info) IsDir() bool                { return i.entry.Folder }
func (i info) Sys() any                   { return nil }
func (i info) Type() fs.FileMode          { return i.Mode().Type() }
func (i info) Info() (fs.FileInfo, error) { return i, nil }

func (i info) Mode() fs.FileMode {
	if i.entry.Folder {
		return fs.ModeDir | 0o700
	}
	return 0o600
}
