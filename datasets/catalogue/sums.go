package catalogue

import (
	"context"
	"crypto/sha1" // Git's ids of files, not a signature
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// A digest is what the bytes of a file say.
type digest struct {
	size            int64
	sha256, gitBlob string
}

// digestOf reads a whole file.
func digestOf(ctx context.Context, path string) (d digest, err error) {
	f, err := os.Open(path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return d, err
	}
	whole, blob := sha256.New(), sha1.New()
	fmt.Fprintf(blob, "blob %d\x00", info.Size()) // git-hash-object(1)
	buf := make([]byte, 1<<20)
	for err == nil {
		var n int
		n, err = f.Read(buf)
		whole.Write(buf[:n])
		blob.Write(buf[:n])
		d.size += int64(n)
		err = errors.Join(err, ctx.Err())
	}
	if !errors.Is(err, io.EOF) || ctx.Err() != nil {
		return d, err
	}
	d.sha256, d.gitBlob = hex.EncodeToString(whole.Sum(nil)), hex.EncodeToString(blob.Sum(nil))
	return d, nil
}

// A mismatchError says that a file is not the one of the list.
type mismatchError struct {
	Path      string // of the file that was looked at
	What      string // bytes, SHA-256 or Git blob id
	Got, Want string
}

// Error implements error.
func (e *mismatchError) Error() string {
	return fmt.Sprintf("%s has the %s %s, and the list has %s", e.Path, e.What, e.Got, e.Want)
}

// matches compares a file with what is known of it.
func (f *File) matches(path string, d digest) error {
	for _, c := range []struct{ what, got, want string }{
		{"size", fmt.Sprintf("%d bytes", d.size), fmt.Sprintf("%d bytes", f.Size)},
		{"SHA-256", d.sha256, f.SHA256},
		{"Git blob id", d.gitBlob, f.GitBlob},
	} {
		if known := c.want != "" && (c.what != "size" || f.Size > 0); known && c.got != c.want {
			return &mismatchError{path, c.what, c.got, c.want}
		}
	}
	return nil
}

// sumsOf is the name of the file that records the first download's sum, in the form of
// sha256sum(1).
func sumsOf(path string) string { return path + ".sha256" }

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})[ *]`)

// recorded is the SHA-256 of the first download, empty if there was none.
func recorded(path string) (string, error) {
	text, err := os.ReadFile(sumsOf(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	m := sumLine.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s is no line of sha256sum: remove it to record the sum again", sumsOf(path))
	}
	return string(m[1]), nil
}

func record(path, sum string) error {
	return os.WriteFile(sumsOf(path), []byte(sum+"  "+filepath.Base(path)+"\n"), 0o644)
}
