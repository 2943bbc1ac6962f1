package bench

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/replay/contract"
	"reprise/replay/figure"
	"reprise/trace/doc"
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
	Session    SessionSettings // of a load by session
	Requests   int64           // of the workload, the warm-up within the run included; 0 is as many as it says
	Input      string          // tokens of a prompt, in place of the workload's; see arrival.ParseLength
	Output     string

	Warmup   int64         // requests sent before the run, one at a time and with other prompts
	Settle   string        // first requests of the run, or time, that are not measured; see replay.ParseSpan
	Cooldown string        // last ones
	Cache    string        // what the prefix cache holds before: see result.CacheCold
	Repeats  int           // of the run, each with prompts of its own
	Duration time.Duration // nothing is sent that is due later; a synthetic workload at recorded times is so long
	Timeout  time.Duration // of one request; 0 is the target's

	Contract *contract.Contract // nil is none
	Primary  figure.Figure      // what the row is about
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

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// How a metric moves.
const (
	movesUp   = "up"
	movesDown = "down"
	movesNot  = "same"
)

// A Hypothesis says before a row runs what will come of it: a metric moves against
// another row of the same model.
type Hypothesis struct {
	Says    string
	Metric  figure.Figure
	Moves   string  // up, down or same; empty says nothing that can be judged
	Against string  // name of a row
	By      float64 // share by which it moves at least; of same, at most
}

// defaultSame is within how much a metric has not moved.
const defaultSame = 0.05

// check refuses what cannot be judged.
func (h *Hypothesis) check() error {
	switch {
	case h.Moves == "" && (h.Metric != figure.Figure{} || h.Against != "" || h.By != 0):
		return errors.New("say how the metric should move: moves: up, down or same")
	case h.Moves == "":
		return nil
	case !slices.Contains([]string{movesUp, movesDown, movesNot}, h.Moves):
		return errors.New("moves: want up, down or same")
	case h.Metric == figure.Figure{} || h.Against == "":
		return errors.New("a hypothesis that can be judged names a metric, and the row that it moves against")
	}
	return nil
}

// String is the hypothesis for people.
func (h *Hypothesis) String() string {
	if h.Moves == "" {
		return h.Says
	}
	what := map[string]string{movesUp: "is above that", movesDown: "is below that", movesNot: "is that"}[h.Moves]
	by := ""
	switch {
	case h.Moves == movesNot:
		by = fmt.Sprintf(", within %s", doc.Percent(h.within()))
	case h.By > 0:
		by = fmt.Sprintf(", by %s or more", doc.Percent(h.By))
	}
	rest := fmt.Sprintf("%s %s of %s%s", h.Metric, what, h.Against, by)
	if h.Says == "" {
		return rest
	}
	return h.Says + ": " + rest
}

func (h *Hypothesis) within() float64 {
	if h.By > 0 {
		return h.By
	}
	return defaultSame
}

// An Outcome is what became of a hypothesis.
type Outcome struct {
	Held   *bool    `json:"held"` // null where it cannot be judged
	Text   string   `json:"text"`
	Change *float64 `json:"change"` // of the metric against the other row, as a share of that
}

// parsePercent reads a share such as 10%.
func parsePercent(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil || !(v > 0 && v <= 1e6) {
		return 0, errors.New("want a percentage above zero, such as 10%")
	}
	return v / 100, nil
}
