//go:build amd64 || arm64

package confine

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are the system calls that fail with EPERM. All other ones pass: a list
// of what is allowed would break with every new version of Go's runtime.
var refused = []uint32{
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN,
	unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, // on a socket that was handed over
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // its operations pass no filter
	// another process could send
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_MOUNT,
}

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	offsetNumber = 0
	offsetArch   = 4
)

// x32 is the bit of system calls with 32-bit pointers on amd64, which have numbers
// of their own.
const x32 = 0x40000000

// filter is the program, in classic BPF.
func filter() ([]unix.SockFilter, error) {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	p := []unix.SockFilter{
		load(offsetArch),
		jump(unix.BPF_JEQ, arch, 1, 0),
		end(unix.SECCOMP_RET_KILL_PROCESS), // calls of another architecture have other numbers
		load(offsetNumber),
		jump(unix.BPF_JGE, x32, uint8(len(refused)+1), 0),
	}
	for i, number := range refused {
		p = append(p, jump(unix.BPF_JEQ, number, uint8(len(refused)-i), 0))
	}
	return append(p, end(unix.SECCOMP_RET_ALLOW), end(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))), nil
}

// install puts the filter on all threads at once.
func install(filter []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	switch {
	case errno != 0:
		return errno
	case r != 0: // the number of a thread
		return errors.New("a thread has a filter of its own")
	}
	return nil
}
