package datasets

import (
	"compress/gzip"
	"embed"
	"io"
	"strconv"
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

// WorkloadAbout says in a line what a built-in workload is, and nothing of one that does not say it: the text
// of its specification's key about, which is read here without parsing the rest, since each start of the
// command lists all workloads in its help.
func WorkloadAbout(name string) string {
	text, _ := Workload(name)
	for line := range strings.Lines(string(text)) {
		if quoted, ok := strings.CutPrefix(line, "about: "); ok {
			about, _ := strconv.Unquote(strings.TrimSpace(quoted))
			return about
		}
	}
	return ""
}
