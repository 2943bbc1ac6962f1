package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resultSchema names the layout of a [Result].
const resultSchema = "audit/1"

// A Status says how a check ended.
type Status string

// How a check ends.
const (
	Pass         Status = "pass"         // no way in was found
	Fail         Status = "fail"         // a way in was found
	Inconclusive Status = "inconclusive" // the check could not have found one
	Skipped      Status = "skipped"      // it was not run: what it needs is not there, or it is for other tiers
)

// Figures are what a check measured, by snake-case names with their units.
type Figures map[string]any

// A Finding is the outcome of a check.
type Finding struct {
	Check   string  `json:"check"` // set by [Run]
	Status  Status  `json:"status"`
	Why     string  `json:"why"`
	Figures Figures `json:"figures,omitempty"`

	broken bool // an error ended the check
}

// A Result holds the findings of all checks about one output.
type Result struct {
	Schema     string    `json:"schema"`
	Version    string    `json:"version"`               // of the tool that judged
	Kind       string    `json:"kind"`                  // of the output, see [Output]
	Tier       string    `json:"tier,omitempty"`        // as the output says
	Digest     string    `json:"digest,omitempty"`      // of its rows, counted anew for a trace
	FileSHA256 string    `json:"file_sha256"`           // hex
	CardSHA256 string    `json:"card_sha256,omitempty"` // hex, as the output says
	Findings   []Finding `json:"findings"`
}

// Failed reports whether a check failed.
func (r *Result) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Status == Fail })
}

// Unsettled names a check without which nobody should release the output, though
// none failed: one that an error ended. It is empty when there is none. Other checks
// that are inconclusive had nothing to find: no block to guess at, or few rows.
func (r *Result) Unsettled() string {
	for _, f := range r.Findings {
		if f.broken {
			return f.Check
		}
	}
	return ""
}

// Count is how many findings have a status.
func (r *Result) Count(s Status) int {
	n := 0
	for _, f := range r.Findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

// Findings of a check's Run.
func passed(fig Figures, format string, args ...any) Finding {
	return Finding{Status: Pass, Why: fmt.Sprintf(format, args...), Figures: fig}
}

func failed(fig Figures, format string, args ...any) Finding {
	return Finding{Status: Fail, Why: fmt.Sprintf(format, args...), Figures: fig}
}

func inconclusive(fig Figures, format string, args ...any) Finding {
	return Finding{Status: Inconclusive, Why: fmt.Sprintf(format, args...), Figures: fig}
}

func skipped(format string, args ...any) Finding {
	return Finding{Status: Skipped, Why: fmt.Sprintf(format, args...)}
}

// broken is the finding of a check that an error ended.
func broken(err error) Finding {
	f := inconclusive(nil, "it could not be run to its end: %v", err)
	f.broken = true
	return f
}

// answer is whether a check failed, and how many there were.
func (r *Result) answer() string {
	ran := len(r.Findings) - r.Count(Skipped)
	says := fmt.Sprintf("No check failed: %d of %d that ran passed", r.Count(Pass), ran)
	if ran == 0 {
		says = "No check was run"
	}
	if n := r.Count(Fail); n > 0 {
		says = fmt.Sprintf("Do not share this: %d of %d checks that ran failed", n, ran)
	}
	for _, s := range []Status{Inconclusive, Skipped} {
		if n := r.Count(s); n > 0 {
			says += fmt.Sprintf(", %d %s", n, s)
		}
	}
	return says
}

// figures are what the checks measured, a row for each figure: the check, its name and its value.
func (r *Result) figures() (rows [][]string) {
	for _, f := range r.Findings {
		for _, name := range slices.Sorted(maps.Keys(f.Figures)) {
			says := ""
			switch v := f.Figures[name].(type) {
			case []setRisk, []columnRisk, []pointRisk: // have tables of their own
				continue
			case float64:
				says = fmt.Sprintf("%.4g", v)
			case []string:
				says = strings.Join(v, ", ")
			default:
				says = fmt.Sprint(v)
			}
			rows = append(rows, []string{f.Check, strings.ReplaceAll(name, "_", " "), says})
		}
	}
	return rows
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
