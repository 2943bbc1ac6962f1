package host

import "golang.org/x/sys/unix"

func (h *Machine) system() {
	if release, err := unix.Sysctl("kern.osrelease"); err == nil {
		h.Kernel = Label(release)
	}
	if n, err := unix.SysctlUint64("hw.memsize"); err == nil {
		h.MemoryBytes = int64(n)
	}
}
