// Package host says what the client's own machine tells of itself: what it is, what
// it allows the process, and what a run took from it.
//
// [This] describes the machine and [GPUs] its GPUs, for the results of a run. A
// [Cost] measures processor time and pauses, by which a client that was short of
// either can be found out. [FileLimit], [OpenFiles] and [LocalPorts] bound how many
// connections it can hold. Nothing here names a person or a machine.
package host

import (
	"runtime"
	"runtime/debug"
	"strings"
	"unicode"

	"github.com/klauspost/cpuid/v2"
)

// A Host is the machine of the client. What it does not tell is empty.
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
	h := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: Label(cpuid.CPU.BrandName), Cores: runtime.NumCPU(), Go: runtime.Version(), Build: build()}
	h.system()
	return h
}

// build is the revision that the program was built from, as the Go tool noted it.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	revision := set["vcs.revision"]
	if revision != "" && set["vcs.modified"] == "true" {
		revision += "+modified"
	}
	return revision
}

// longestName bounds a name that another program or a server gives.
const longestName = 200

// Label makes such a name fit to be kept and printed: short, in UTF-8, and without
// what does not print.
func Label(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > longestName {
		s = string(r[:longestName-1]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
