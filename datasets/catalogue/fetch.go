package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// A Fetcher brings files. The zero value fetches by [http.DefaultTransport], which takes
// proxies from the environment.
type Fetcher struct {
	Client   *http.Client
	Progress func(done, total int64) // bytes of the file; total is 0 if not known. May be nil
	Note     func(string)            // what is worth knowing on the way. May be nil

	// Stall is how long a server may send nothing, 0 for a minute; Pause how long the first
	// wait before another try is, which doubles, 0 for a second; Tries how often in a row
	// a transfer may break off without a byte, 0 for 5.
	Stall, Pause time.Duration
	Tries        int
}

// Fetched says what became of a file.
type Fetched struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
	Verified bool   `json:"verified"` // against a sum that was known before
	Present  bool   `json:"present"`  // it was there, and nothing was fetched
	Resumed  int64  `json:"resumed_from,omitempty"`
}

// errInTheWay says that a file of the name exists and is another one. Nothing replaces it.
var errInTheWay = errors.New("it is another file, and is kept: move it, or name another folder")

// Fetch brings a file of the list to path, from url, which may be that of a copy elsewhere.
//
// A file at path is verified and kept. What has arrived of one that is not whole stays in
// path.part, also after a crash, and is continued by the next call; path.part.json says
// which version of the file it is of. A part that turns out to be of another file is
// fetched again from its beginning.
func (f *Fetcher) Fetch(ctx context.Context, file File, url, path string) (Fetched, error) {
	got := Fetched{Path: path, Verified: file.SHA256 != "" || file.GitBlob != ""}
	if !got.Verified {
		sum, err := recorded(path)
		if err != nil {
			return got, err
		}
		file.SHA256, got.Verified = sum, sum != ""
	}
	if done, err := f.present(ctx, file, path, &got); done || err != nil {
		return got, err
	}
	for {
		t, err := f.transfer(ctx, file, url, path)
		if err != nil {
			return got, err
		}
		got.Resumed = t.resumed
		d, err := digestOf(ctx, t.part)
		if err != nil {
			return got, err
		}
		got.Bytes, got.SHA256 = d.size, d.sha256
		if err := file.matches(url, d); err != nil {
			if rm := t.drop(); rm != nil {
				return got, errors.Join(err, rm)
			}
			if t.resumed == 0 {
				return got, fmt.Errorf("%w: it was changed since, or on its way here; nothing was kept", err)
			}
			f.note("the part that was there did not fit the rest: it is fetched again from the beginning")
			continue
		}
		return got, f.keep(t, path, file, got)
	}
}

// present says whether the file is there already.
func (f *Fetcher) present(ctx context.Context, file File, path string, got *Fetched) (bool, error) {
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	} else if info.IsDir() {
		return false, fmt.Errorf("%s is a folder: name another one with -o", path)
	}
	d, err := digestOf(ctx, path)
	if err != nil {
		return false, err
	}
	got.Bytes, got.SHA256 = d.size, d.sha256
	if !got.Verified {
		return false, fmt.Errorf("%s exists, and no checksum is known to tell whether it is the data set: %w",
			path, errInTheWay)
	}
	if err := file.matches(path, d); err != nil {
		return false, fmt.Errorf("%w: %w", err, errInTheWay)
	}
	got.Present = true
	return true, nil
}

// keep gives a file that was verified its name.
func (f *Fetcher) keep(t *transfer, path string, file File, got Fetched) error {
	if file.SHA256 == "" && file.GitBlob == "" {
		if err := record(path, got.SHA256); err != nil {
			return err
		}
	}
	switch err := os.Link(t.part, path); {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s appeared meanwhile: %w", path, errInTheWay)
	case err != nil: // a file system without links
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s appeared meanwhile: %w", path, errInTheWay)
		}
		if err := os.Rename(t.part, path); err != nil {
			return err
		}
	}
	return t.drop()
}

func (f *Fetcher) note(text string) {
	if f.Note != nil {
		f.Note(text)
	}
}

// transfer brings all bytes of a file to its part.
func (f *Fetcher) transfer(ctx context.Context, file File, url, path string) (*transfer, error) {
	t := &transfer{Fetcher: f, file: file, url: url, part: path + ".part", state: path + ".part.json"}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(t.part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	t.out = out
	err = t.begin()
	if err == nil {
		err = t.run(ctx)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil && t.have == 0 {
		err = errors.Join(err, t.drop()) // nothing of it is worth keeping
	}
	return t, err
}
