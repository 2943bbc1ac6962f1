package confine

import (
	"errors"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights to files, by the version of Landlock that brought them. What is not
// handled is not restricted, so that all of them are handled.
const (
	rightsABI1 = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	rightsABI2 = rightsABI1 | unix.LANDLOCK_ACCESS_FS_REFER
	rightsABI3 = rightsABI2 | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	reading = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// An output is made beside its name, without one where that is possible, and
	// takes its place, all in one directory.
	writing = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER
	// What a rule for a file that is no directory may grant.
	ofFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlock leaves the files of p to all threads, and returns the version of Landlock
// that the kernel has.
func landlock(p Paths) (abi int, err error) {
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	abi = int(r)
	set := ruleset{rights: rightsABI1}
	switch {
	case abi >= 3:
		set.rights = rightsABI3
	case abi == 2:
		set.rights = rightsABI2
	}
	if p.Serves {
		set.rights &^= reading | unix.LANDLOCK_ACCESS_FS_EXECUTE
	}
	// The first version knows the first field alone.
	attr := struct{ rights uint64 }{set.rights}
	r, _, errno = unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return 0, errno
	}
	set.fd = int(r)
	defer unix.Close(set.fd)
	var errs []error
	for _, path := range p.Read {
		errs = append(errs, set.rule(path, reading))
	}
	errs = append(errs, set.rule(p.Temp, writing))
	for _, path := range p.Write {
		errs = append(errs, set.rule(filepath.Dir(path), writing))
		if target, err := filepath.EvalSymlinks(path); err == nil {
			errs = append(errs, set.rule(filepath.Dir(target), writing))
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			errs = append(errs, set.rule(path, writing)) // such as /dev/null: it is written to as it stands
		}
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	return abi, onAllThreads(unix.SYS_LANDLOCK_RESTRICT_SELF, r, 0, 0, 0, 0)
}

// A ruleset is one of Landlock in the making.
type ruleset struct {
	fd     int
	rights uint64 // that are handled
}

// rule grants rights to what is at a path and below it. Where nothing is, there
// is nothing to grant: the error comes when it is opened.
func (s *ruleset) rule(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & s.rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(s.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 && errno != unix.EBADFD {
		return errno
	}
	return nil // EBADFD is a pipe without a name, such as /dev/stdin may be, and passes without a rule
}
