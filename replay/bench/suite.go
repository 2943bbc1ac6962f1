package bench

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"reprise/replay/contract"
)

// A Suite is a list of runs to make of a server, each with what is expected of it.
type Suite struct {
	Name   string
	About  string
	Seed   uint64
	Rows   []Row
	Digest string // of its text, SHA-256 in hexadecimal
}

// A Row is one run of a suite, or several when it repeats.
type Row struct {
	Name       string
	About      string
	Hypothesis *Hypothesis
	Workload   WorkloadRef
	Load       Load
	Requests   int64  // of the workload, the warm-up within the run included; 0 is as many as it says
	Input      string // tokens of a prompt, in place of the workload's; see arrival.ParseLength
	Output     string

	Warmup   int64         // requests sent before the run, one at a time and with other prompts
	Settle   string        // first requests of the run, or time, that are not measured; see replay.ParseSpan
	Cooldown string        // last ones
	Cache    string        // what the prefix cache holds before: see result.CacheCold
	Repeats  int           // of the run, each with prompts of its own
	Duration time.Duration // nothing is sent that is due later; a synthetic workload at recorded times is so long
	Timeout  time.Duration // of one request; 0 is the target's

	Contract *contract.Contract // nil is none
	Primary  Metric             // what the row is about
}

// A WorkloadRef names the workload of a row in one of four ways.
type WorkloadRef struct {
	Name  string // a built-in one
	File  string // a specification, a trace or a workload
	Spec  string // a specification as YAML, with the lines and columns of the suite
	Trace bool   // what --trace names
}

// String names it for people.
func (w WorkloadRef) String() string {
	switch {
	case w.Trace:
		return "the trace"
	case w.Spec != "":
		return "a specification of its own"
	case w.File != "":
		return w.File
	}
	return w.Name
}

//go:embed suites/*.yaml
var suites embed.FS

// Suites lists the built-in suites by name, in the order of the alphabet.
func Suites() []string {
	names, err := fs.Glob(suites, "suites/*.yaml")
	if err != nil {
		return nil // the pattern is good
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(name, "suites/"), ".yaml")
	}
	return names
}

// SuiteText gives a built-in suite as YAML, for [ParseSuite].
func SuiteText(name string) (text []byte, ok bool) {
	text, err := suites.ReadFile("suites/" + name + ".yaml")
	return text, err == nil
}

// Row finds a row by name, nil without one.
func (s *Suite) Row(name string) *Row {
	for i := range s.Rows {
		if s.Rows[i].Name == name {
			return &s.Rows[i]
		}
	}
	return nil
}

// seed is that of the prompts of a repeat of a row: each has its own, so that none
// finds another's prompts in a cache.
func (s *Suite) seed(row, repeat int) string {
	return fmt.Sprint(s.Seed + uint64(row)*1000 + uint64(repeat))
}

// warmupSeed is that of the requests before it.
func (s *Suite) warmupSeed(row, repeat int) string {
	return fmt.Sprint(s.Seed + 1_000_000 + uint64(row)*1000 + uint64(repeat))
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
