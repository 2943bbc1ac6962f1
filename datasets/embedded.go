package datasets

import (
	"compress/gzip"
	"embed"
	"io"
	"strings"
)

//go:generate go run ./demolog demo.jsonl.gz

//go:embed demo.jsonl.gz
var demoLog string

// Demo opens the embedded demo log: half a minute of a made-up gateway in the
// format openai-log, with some 240 requests of three users. Command demolog beside
// this package wrote it; all of its text is invented.
func Demo() (io.ReadCloser, error) { return gzip.NewReader(strings.NewReader(demoLog)) }

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
