package bench

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/doc"
)

// resultSchema names the layout of a [SuiteResult] as JSON.
const resultSchema = "bench/1"

// A SuiteResult is the outcome of a suite.
type SuiteResult struct {
	Schema string      `json:"schema"`
	Suite  string      `json:"suite"`
	About  string      `json:"about,omitempty"`
	Digest string      `json:"suite_digest"`
	Tier   string      `json:"tier,omitempty"` // of privacy, of what was sent
	Models []string    `json:"models"`         // in the order of the columns
	Rows   []RowResult `json:"rows"`
	// Baseline is the directory that changes are against, where there is one.
	Baseline string `json:"baseline,omitempty"`
	// BaselineReasons say why runs of it cannot be trusted, by the limits of this suite.
	BaselineReasons []string `json:"baseline_reasons,omitempty"`

	// PresetWarnings are those of the models' runs, see [result.Run].
	PresetWarnings []string `json:"preset_warnings,omitempty"`
	// Extrapolates are the bounds of what each model's engine was fitted to that its runs passed.
	Extrapolates map[string][]result.Beyond `json:"extrapolates,omitempty"`

	title string       // of runs that are no suite
	made  [][]doc.Fact // of each model, where its first run was made and by what
}

// A RowResult is the outcome of a row, for each model.
type RowResult struct {
	Row     string `json:"row"`
	About   string `json:"about,omitempty"`
	Load    string `json:"load"`
	Primary string `json:"primary_metric"`
	// Hypothesis is what was said before the row ran.
	Hypothesis string        `json:"hypothesis,omitempty"`
	Models     []ModelResult `json:"models"`
}

// A ModelResult is the outcome of the runs of a row against one model.
type ModelResult struct {
	Model       string              `json:"model"`
	Runs        int                 `json:"runs"`
	Requests    int64               `json:"requests"` // measured, of all runs
	Succeeded   int64               `json:"succeeded"`
	Errors      []report.ErrorCount `json:"errors,omitempty"`
	Figures     []Figure            `json:"figures"`
	Hypothesis  *Outcome            `json:"hypothesis,omitempty"`
	Trustworthy bool                `json:"trustworthy"`
	Reasons     []string            `json:"reasons,omitempty"` // why not
	Untrusted   int                 `json:"untrusted_runs,omitempty"`
	// Loosened are the limits of that verdict that allow more than their defaults.
	Loosened report.LoosenedLimits `json:"loosened_limits,omitempty"`
	Contract *ContractOutcome      `json:"contract,omitempty"`
	Changes  []Change              `json:"changes,omitempty"` // against the baseline
	// Regression is what became of the primary metric against the baseline, where a
	// limit was given. Held is within the limit.
	Regression *Outcome `json:"regression,omitempty"`
}

// A ContractOutcome is what became of a contract in the runs of a row.
type ContractOutcome struct {
	Name   string   `json:"name"`
	Holds  bool     `json:"holds"`  // in every run
	Judged bool     `json:"judged"` // in every run
	Fails  bool     `json:"fails"`  // a clause does, in some run
	Broken []string `json:"broken,omitempty"`
}

// A Change is that of a metric, as a share of what it was.
type Change struct {
	Metric string  `json:"metric"`
	Was    float64 `json:"was"`
	Is     float64 `json:"is"`
	Change float64 `json:"change"`
}

// runsOf are the runs of a row against a model.
type runsOf struct {
	row, model string
	runs       []report.Summary
}

// suiteMetrics are those of every row.
var suiteMetrics = []string{"output_tokens_per_s", "requests_per_s", "p50_ttft", "p95_ttft", "p99_ttft", "p50_itl",
	"p95_itl", "p99_itl", "p50_tpot",
	"min_e2e", "p50_e2e", "p90_e2e", "p95_e2e", "p99_e2e", "max_e2e", "error_rate", "hit_ratio",
	"max_running", "max_waiting", "max_kv_cache_use", "max_gpu_utilisation", "max_gpu_memory_mib"}

// sessionMetrics are those of every row under a load by session.
var sessionMetrics = []string{"sessions_per_s", "p50_session_time", "p95_session_time", "session_success"}

// figure is a metric over the runs; not ok where a run does not have it.
func (m *runsOf) figure(of figure.Figure) (f Figure, ok bool) {
	var values []float64
	for i := range m.runs {
		v, ok := valueOf(of, &m.runs[i])
		if !ok {
			return f, false
		}
		values, f.Largest = append(values, v.V), f.Largest || v.Largest
	}
	if len(values) == 0 {
		return f, false
	}
	slices.Sort(values)
	n := len(values)
	f.Metric, f.V, f.Lo, f.Hi = of.String(), (values[(n-1)/2]+values[n/2])/2, values[0], values[n-1]
	return f, true
}

// result puts the runs side by side.
func (s *Suite) result(models []string, all []runsOf) SuiteResult {
	out := SuiteResult{Schema: resultSchema, Suite: s.Name, About: s.About, Digest: s.Digest, Models: models}
	find := func(row, model string) *runsOf {
		i := slices.IndexFunc(all, func(m runsOf) bool { return m.row == row && m.model == model })
		if i < 0 {
			return nil
		}
		return &all[i]
	}
	for _, model := range models {
		var facts []doc.Fact
		if i := slices.IndexFunc(all, func(m runsOf) bool { return m.model == model && len(m.runs) > 0 }); i >= 0 {
			facts = report.Made(all[i].runs[0])
		}
		out.made = append(out.made, facts)
	}
	for i := range s.Rows {
		row := &s.Rows[i]
		r := RowResult{Row: row.Name, About: row.About, Load: row.Load.String(), Primary: row.Primary.String()}
		if row.Hypothesis != nil {
			r.Hypothesis = row.Hypothesis.String()
		}
		for _, model := range models {
			m := find(row.Name, model)
			if m == nil {
				continue
			}
			one := m.result(row)
			if h := row.Hypothesis; h != nil && h.Moves != "" {
				one.Hypothesis = new(h.outcome(m, find(h.Against, model)))
			}
			for k := range m.runs {
				run := &m.runs[k].Run
				out.Tier = cmp.Or(out.Tier, run.Tier)
				if w := model + ": " + printable(run.PresetWarning); run.PresetWarning != "" &&
					!slices.Contains(out.PresetWarnings, w) {
					out.PresetWarnings = append(out.PresetWarnings, w)
				}
				if len(run.Extrapolates) > 0 {
					if out.Extrapolates == nil {
						out.Extrapolates = map[string][]result.Beyond{}
					}
					out.Extrapolates[model] = result.JoinBeyond(out.Extrapolates[model], run.Extrapolates)
				}
			}
			r.Models = append(r.Models, one)
		}
		if len(r.Models) > 0 {
			out.Rows = append(out.Rows, r)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(out.Extrapolates)) {
		out.PresetWarnings = append(out.PresetWarnings, model+": "+report.Extrapolation(out.Extrapolates[model]))
	}
	return out
}

// outcome judges a hypothesis by the runs of its row and of the other.
func (h *Hypothesis) outcome(m, other *runsOf) Outcome {
	var got, was Figure
	has := false
	if other != nil {
		var a, b bool
		got, a = m.figure(h.Metric)
		was, b = other.figure(h.Metric)
		has = a && b
	}
	if !has || was.V == 0 {
		return Outcome{Text: fmt.Sprintf("not judged: there is no %s to compare", h.Metric)}
	}
	change := got.V/was.V - 1
	held := false
	switch h.Moves {
	case movesUp:
		held = change > 0 && change >= h.By
	case movesDown:
		held = change < 0 && -change >= h.By
	case movesNot:
		held = math.Abs(change) <= h.within()
	}
	return Outcome{&held, fmt.Sprintf("%s: %s is %s, against %s in %s (%s)",
		map[bool]string{true: "confirmed", false: "not confirmed"}[held],
		heading(h.Metric), format(h.Metric, got, doc.Number), format(h.Metric, was, doc.Number), h.Against,
		signed(change)), &change}
}

func (m *runsOf) result(row *Row) ModelResult {
	out := ModelResult{Model: m.model, Runs: len(m.runs), Trustworthy: true}
	names := slices.Clone(suiteMetrics)
	if row.Load.bySession() {
		names = append(slices.Clone(sessionMetrics), names...)
	}
	if primary := row.Primary.String(); !slices.Contains(names, primary) {
		names = append(names, primary)
	}
	for _, name := range names {
		if f, ok := m.figure(metric(name)); ok {
			out.Figures = append(out.Figures, f)
		}
	}
	counts := map[string]int64{}
	for i := range m.runs {
		s := &m.runs[i]
		out.Requests += s.Requests.Rows
		out.Succeeded += s.Requests.Succeeded
		out.Trustworthy, out.Loosened = out.Trustworthy && s.Verdict.Trustworthy, s.Verdict.Loosened
		if !s.Verdict.Trustworthy {
			out.Untrusted++
		}
		for _, r := range s.Verdict.Reasons {
			if !slices.Contains(out.Reasons, r.Text) {
				out.Reasons = append(out.Reasons, r.Text)
			}
		}
		for _, e := range s.Errors {
			counts[e.Class] += e.Count
		}
		out.contract(s.Contract)
	}
	failed := int64(0)
	for class, n := range counts {
		out.Errors = append(out.Errors, report.ErrorCount{Class: class, Count: n})
		failed += n
	}
	for i := range out.Errors {
		out.Errors[i].Share = math.Round(float64(out.Errors[i].Count)/float64(out.Succeeded+failed)*1e9) / 1e9
	}
	slices.SortFunc(out.Errors, func(a, b report.ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// contract takes what became of the contract in a run.
func (m *ModelResult) contract(c *report.ContractResult) {
	if c == nil {
		return
	}
	if m.Contract == nil {
		m.Contract = &ContractOutcome{Name: c.Name, Holds: true, Judged: true}
	}
	o := m.Contract
	o.Holds, o.Judged, o.Fails = o.Holds && c.Holds, o.Judged && c.Judged, o.Fails || c.Fails()
	if !c.Holds {
		o.Broken = append(o.Broken, c.String())
	}
}

// find is the result of a row against a model, nil without one.
func (r *SuiteResult) find(row, model string) *ModelResult {
	for i := range r.Rows {
		for j := range r.Rows[i].Models {
			if r.Rows[i].Row == row && r.Rows[i].Models[j].Model == model {
				return &r.Rows[i].Models[j]
			}
		}
	}
	return nil
}

// Figure is a metric of a model, nil where it does not have it.
func (m *ModelResult) Figure(metric string) *Figure {
	for i := range m.Figures {
		if m.Figures[i].Metric == metric {
			return &m.Figures[i]
		}
	}
	return nil
}

// Against fills in what changed since an earlier result: for each row the model of
// the same name, or the only one where both have one. It says nothing of whether the
// changes are more than chance. Primary metrics may be worse by most, a share of what
// they were; below 0 they are not judged.
func (r *SuiteResult) Against(dir string, before SuiteResult, most float64) {
	r.Baseline = dir
	before.each(func(row *RowResult, m *ModelResult) {
		for _, reason := range m.Reasons {
			r.BaselineReasons = append(r.BaselineReasons, before.name(row, m)+": "+reason)
		}
	})
	for i := range r.Rows {
		for j := range r.Rows[i].Models {
			m := &r.Rows[i].Models[j]
			name := m.Model
			if len(r.Models) == 1 && len(before.Models) == 1 {
				name = before.Models[0]
			}
			was := before.find(r.Rows[i].Row, name)
			if primary := r.Rows[i].Primary; most >= 0 {
				var baseline *Figure
				if was != nil {
					baseline = was.Figure(primary)
				}
				m.Regression = regression(metric(primary), m.Figure(primary), baseline, most)
				if was != nil && !m.Regression.refuted() {
					// figures of the requests that succeeded hide those that did not
					if errors := moreErrors(m.Figure(errorRate), was.Figure(errorRate), most); errors != nil {
						m.Regression = errors
					}
				}
			}
			if was != nil {
				m.Changes = nil
				for _, f := range m.Figures {
					if w := was.Figure(f.Metric); w != nil && w.V != 0 {
						m.Changes = append(m.Changes, Change{f.Metric, w.V, f.V, f.V/w.V - 1})
					}
				}
			}
		}
	}
}

// Trustworthy tells whether every run is.
func (r *SuiteResult) Trustworthy() bool {
	return !r.any(func(m *ModelResult) bool { return !m.Trustworthy })
}

// loosened are the limits by which runs are trusted, as far as they allow more than their defaults.
func (r *SuiteResult) loosened() (out report.LoosenedLimits) {
	r.any(func(m *ModelResult) bool {
		out = m.Loosened
		return len(out) > 0
	})
	return out
}

// Unjudged tells whether a contract could not be judged.
func (r *SuiteResult) Unjudged() bool {
	return r.any(func(m *ModelResult) bool { return m.Contract != nil && !m.Contract.Judged })
}

// Broken tells whether a clause of a contract fails.
func (r *SuiteResult) Broken() bool {
	return r.any(func(m *ModelResult) bool { return m.Contract != nil && m.Contract.Fails })
}

func (r *SuiteResult) any(f func(*ModelResult) bool) bool {
	return slices.ContainsFunc(r.Rows, func(row RowResult) bool {
		return slices.ContainsFunc(row.Models, func(m ModelResult) bool { return f(&m) })
	})
}

// errorRate is the metric that is held against a baseline whatever the primary one is.
const errorRate = "error_rate"

// moreErrors is the outcome of a share of errors that is above the baseline's by more points than may be; nil
// where it is not.
func moreErrors(is, was *Figure, most float64) *Outcome {
	if is == nil || was == nil || is.V-was.V <= most || is.Lo <= was.Hi {
		return nil
	}
	m := metric(errorRate)
	print := func(f Figure) string { return format(m, f, doc.Number) }
	change, held := is.V-was.V, false
	return &Outcome{&held, fmt.Sprintf("REGRESSION: %s is %s, in the baseline %s (%s, limit %s points)", heading(m),
		print(*is), print(*was), points(change), doc.Number(most*100)), &change}
}

// points prints a change of a share.
func points(change float64) string { return strings.TrimSuffix(signed(change), "%") + "points" }

// regression holds a figure against the baseline's: a regression is worse by more than
// most, a share of what it was, or of a share that was zero, in points. Where the runs of the two overlap, as far as
// rows repeat, a change may be chance, and is none.
func regression(m figure.Figure, is, was *Figure, most float64) *Outcome {
	print := func(f Figure) string { return format(m, f, doc.Number) }
	if is == nil || was == nil || was.V == 0 && m.Unit != figure.Share {
		return &Outcome{Text: fmt.Sprintf("not held against the baseline, which has no %s to compare", m)}
	}
	change, by := is.V/was.V-1, signed(is.V/was.V-1)
	if was.V == 0 { // a share of nothing has no ratio: the limit is then of points
		change = is.V
		by = points(is.V)
	}
	worse, apart := change > 0, is.Lo > was.Hi
	switch {
	case m.Better == figure.Higher:
		worse, apart = change < 0, is.Hi < was.Lo
	case m.Better == figure.Neither:
		return &Outcome{Text: fmt.Sprintf("not held against the baseline: neither more nor less %s is worse", m)}
	}
	said := fmt.Sprintf("%s is %s, in the baseline %s (%s, limit %s %%)", heading(m), print(*is), print(*was), by,
		doc.Number(most*100))
	held := !worse || math.Abs(change) <= most || !apart
	switch {
	case !held:
		said = "REGRESSION: " + said
	case worse && math.Abs(change) > most:
		said = fmt.Sprintf("no regression, since repeats overlap: %s; they are %s to %s, and were %s to %s", said,
			print(Figure{V: is.Lo}), print(Figure{V: is.Hi}), print(Figure{V: was.Lo}), print(Figure{V: was.Hi}))
	default:
		said = "no regression: " + said
	}
	return &Outcome{&held, said, &change}
}

// Regressed tells whether a row is worse than the baseline by more than may be.
func (r *SuiteResult) Regressed() bool {
	return r.any(func(m *ModelResult) bool { return m.Regression.refuted() })
}

// refuted tells whether something was judged and did not hold.
func (o *Outcome) refuted() bool { return o != nil && o.Held != nil && !*o.Held }
