package host

import "golang.org/x/sys/unix"

// kernelAndMemory returns the release of the kernel and the bytes of memory.
func kernelAndMemory() (kernel string, memory int64) {
	if release, err := unix.Sysctl("kern.osrelease"); err == nil {
		kernel = Label(release)
	}
	if n, err := unix.SysctlUint64("hw.memsize"); err == nil {
		memory = int64(n)
	}
	return kernel, memory
}
