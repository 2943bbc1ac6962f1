package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ownFiles are the files that this process has open. A bare chroot has no /proc.
const ownFiles = "/proc/self/fd"

// openUnnamed opens a file without a name (open(2), O_TMPFILE) in the folder of path, which it can be given later.
// Errors name it so.
func openUnnamed(path string, mode os.FileMode) (*os.File, error) {
	if _, err := os.Stat(ownFiles); err != nil {
		return nil, err
	}
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, uint32(mode.Perm()))
	if err != nil {
		return nil, err
	}
	if err := unix.Fchmod(fd, uint32(mode.Perm())); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}

// linkUnnamed gives f the name path, or, where that is taken, a hidden one
// beside it, ready for a rename: linkat itself cannot replace a file. The way
// through /proc needs no privilege.
func linkUnnamed(f *os.File, path string) (string, error) {
	self := fmt.Sprintf("%s/%d", ownFiles, f.Fd())
	for name := path; ; name = filepath.Join(filepath.Dir(path),
		fmt.Sprintf(".%s.part-%08x", filepath.Base(path), rand.Uint32())) {
		err := unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", &os.PathError{Op: "link", Path: path, Err: err}
		}
	}
}
