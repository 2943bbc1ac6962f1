package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// system fills in what the kernel tells. The name of the host, which it tells as
// well, is not asked for.
func (h *Machine) system() {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.Kernel = Label(unix.ByteSliceToString(name.Release[:]))
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		h.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	root := os.DirFS("/")
	if h.CPU == "" {
		h.CPU = armModel(root)
	}
	h.LimitCores, h.LimitMemory = groupLimits(root, h.MemoryBytes)
}
