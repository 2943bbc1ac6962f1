package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"reprise/trace/textpage"
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
	Seed    string  `json:"seed,omitempty"` // decimal, of what the check drew

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
// none failed: one that an error ended, and non-interference where the source was
// not that of the output. It is empty when there is none. Other checks that are
// inconclusive had nothing to find: no block to guess at, or few rows.
func (r *Result) Unsettled() string {
	for _, f := range r.Findings {
		if f.broken || f.Check == nonInterference && f.Status == Inconclusive {
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

// lines are figures that are printed one below the other.
type lines[T fmt.Stringer] []T

func (l lines[T]) String() string {
	var b strings.Builder
	for _, v := range l {
		b.WriteString("\n" + v.String())
	}
	return b.String()
}

// WriteJSON writes the result as one indented object.
func (r *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteText writes the result for people: whether a check failed, the findings that need
// a look, and the names of the others, in [textpage.AnswerLines] lines at most. With
// details it writes every finding with its figures.
func (r *Result) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	p.Line("", r.answer())
	p.Line("  ", fmt.Sprintf("%s of tier %s, file sha256:%s", r.Kind, orNone(r.Tier), r.FileSHA256))
	if o.Details {
		if r.Digest != "" {
			p.Line("  ", "rows "+r.Digest)
		}
		r.writeDetails(p)
	} else {
		r.writeAnswer(p, o.Rest)
	}
	_, err := p.WriteTo(w)
	return err
}

// answer is whether a check failed, and how many there were.
func (r *Result) answer() string {
	ran := len(r.Findings) - r.Count(Skipped)
	says := fmt.Sprintf("No check failed: %d of %d that ran passed", r.Count(Pass), ran)
	if n := r.Count(Fail); n > 0 {
		says = fmt.Sprintf("Do not share this: %d of %d checks that ran failed", n, ran)
	}
	for _, s := range []Status{Inconclusive, Skipped} {
		if n := r.Count(s); n > 0 {
			says += fmt.Sprintf(", %d %s", n, s)
		}
	}
	return says + "."
}

// writeAnswer writes what failed, what was inconclusive, and what passed, of that a line each, then
// the names of the checks that were skipped.
func (r *Result) writeAnswer(p *textpage.Page, rest string) {
	p.Blank()
	var skipped []string
	for _, status := range []Status{Fail, Inconclusive, Pass} {
		for _, f := range r.Findings {
			mark := fmt.Sprintf("%-12s  %-16s  ", f.Status, f.Check)
			switch {
			case f.Status != status:
			case status == Pass:
				p.LineAtMost(1, mark, f.Why)
			default:
				p.Line(mark, f.Why)
			}
		}
	}
	for _, f := range r.Findings {
		if f.Status == Skipped {
			skipped = append(skipped, f.Check)
		}
	}
	if len(skipped) > 0 {
		p.Line(fmt.Sprintf("%-12s  ", Skipped), strings.Join(skipped, ", "))
	}
	p.Blank()
	p.Line("", rest)
}

func (r *Result) writeDetails(p *textpage.Page) {
	p.Blank()
	for _, f := range r.Findings {
		p.Line(fmt.Sprintf("%-12s  %-16s  ", f.Status, f.Check), f.Why)
		for _, name := range slices.Sorted(maps.Keys(f.Figures)) {
			for i, line := range strings.Split(fmt.Sprintf("%s: %v", strings.ReplaceAll(name, "_", " "),
				shown(f.Figures[name])), "\n") {
				p.Line(strings.Repeat(" ", 15+min(i, 1)*2), strings.TrimSpace(line))
			}
		}
	}
}

// shown is a figure as a person reads it.
func shown(v any) any {
	switch v := v.(type) {
	case float64:
		return fmt.Sprintf("%.4g", v)
	case []string:
		return strings.Join(v, ", ")
	}
	return v
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
