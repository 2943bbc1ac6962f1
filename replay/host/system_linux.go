package host

import "golang.org/x/sys/unix"

// kernelAndMemory returns the release of the kernel and the bytes of memory. The kernel
// would also tell the name of the host, which is not asked for.
func kernelAndMemory() (kernel string, memory int64) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		kernel = Label(unix.ByteSliceToString(name.Release[:]))
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		memory = int64(info.Totalram) * int64(info.Unit)
	}
	return kernel, memory
}
