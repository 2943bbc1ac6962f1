package replay

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// An Environment says where a run was measured. It holds what explains a number and
// nothing that names a person or a machine: no host or user name, no variable of the
// environment, no address and no key.
type Environment struct {
	Host       Host           `json:"host"`                 // of the client
	Servers    []ServerModels `json:"servers,omitempty"`    // what each says of itself, in the order of their addresses
	GPUs       []GPU          `json:"gpus,omitempty"`       // of the host, when the servers are on it
	Deployment *Deployment    `json:"deployment,omitempty"` // of the servers, as who started the run says
}

// A Host is the machine of the client. What it does not tell is empty.
type Host struct {
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

// ThisHost describes the machine that it runs on.
func ThisHost() Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: shown(cpuid.CPU.BrandName), Cores: runtime.NumCPU(), Go: runtime.Version(), Build: build()}
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

// shown makes such a name fit to be kept and printed.
func shown(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > longestName {
		s = string(r[:longestName-1]) + "…"
	}
	return printable(s)
}

// CaptureEnvironment describes this host, the servers by what they answer, and the
// GPUs where all servers are on this host. What does not answer within 10 s is left
// out.
func (a *Admin) CaptureEnvironment(ctx context.Context, model string) *Environment {
	e := &Environment{Host: ThisHost(), Servers: a.Survey(ctx, model)}
	if a.local() {
		e.GPUs = LocalGPUs(ctx)
	}
	return e
}

// GPUCount is how many GPUs serve: as given, else as found; 0 is not known.
func (e *Environment) GPUCount() int {
	if e == nil {
		return 0
	}
	if d := e.Deployment; d != nil && d.GPUs > 0 {
		return d.GPUs
	}
	n := 0
	for _, g := range e.GPUs {
		n += g.Count
	}
	return n
}
