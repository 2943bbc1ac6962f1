// Package host describes the machine that the client runs on: its hardware, the
// limits it sets for the process, and the resources that a run used.
//
// [This] describes the machine and [GPUs] its GPUs, for the results of a run. A
// [Cost] measures processor time and garbage collection pauses; a report uses them
// to find a client that was short of either. [FileLimit], [OpenFiles] and
// [LocalPorts] bound the number of connections that the client can hold. Nothing
// here identifies a person or a machine.
//
// # Files
//
//   - cgroup.go: cores and memory that Linux's control groups allow; names of ARM CPUs
//   - cost.go, cost_unix.go, cost_other.go: processor time and garbage collection pauses
//     of a run
//   - gpu.go: GPUs by nvidia-smi: names, memory, driver
//   - label.go: names from servers and other programs, made safe to print; which are this machine
//   - limit_unix.go, limit_notunix.go: the limit of open files
//   - used_linux.go: how many files are open, and how many local ports there are
//   - grow_linux.go: the kernel's table of open files, grown before the run
//   - system_linux.go, system_darwin.go: kernel release and memory, by system
//   - host.go: the Machine: CPU, cores, memory, system
//
// Exported names may change in any release.
package host

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/klauspost/cpuid/v2"
)

// A Machine describes the machine of the client. A field that the machine does not
// report is empty.
type Machine struct {
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel,omitempty"` // its release
	CPU         string `json:"cpu,omitempty"`    // its model
	Cores       int    `json:"cores"`            // logical, that the process may run on
	MemoryBytes int64  `json:"memory_bytes,omitempty"`
	Go          string `json:"go"`
	Build       string `json:"build,omitempty"` // revision of the source; +modified when it had changes

	// Limits of the control group, as of a container; null is none.
	LimitCores  *float64 `json:"limit_cores,omitempty"`
	LimitMemory *int64   `json:"limit_memory_bytes,omitempty"`
}

// This describes the machine that it runs on.
func This() Machine {
	h := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: Label(cpuid.CPU.BrandName), Cores: runtime.NumCPU(),
		Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok { // the Go tool notes the revision that it built from
		set := map[string]string{}
		for _, s := range info.Settings {
			set[s.Key] = s.Value
		}
		h.Build = set["vcs.revision"]
		if h.Build != "" && set["vcs.modified"] == "true" {
			h.Build += "+modified"
		}
	}
	h.Kernel, h.MemoryBytes = kernelAndMemory()
	root := os.DirFS("/")
	if h.CPU == "" {
		h.CPU = armModel(root)
	}
	h.LimitCores, h.LimitMemory = groupLimits(root, h.MemoryBytes)
	return h
}
