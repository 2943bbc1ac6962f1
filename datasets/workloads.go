package datasets

import (
	"embed"
	"strings"
)

//go:embed workloads/*.yaml
var workloads embed.FS

// Workloads lists the built-in workloads by name, in the order of the alphabet.
func Workloads() []string {
	entries, err := workloads.ReadDir("workloads")
	if err != nil {
		return nil // the directory is in the binary
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}

// Workload gives the specification of a built-in workload as YAML, for
// package synth/spec to parse.
func Workload(name string) (text []byte, ok bool) {
	text, err := workloads.ReadFile("workloads/" + name + ".yaml")
	return text, err == nil
}
