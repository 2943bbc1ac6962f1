package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// Codes of the warnings of a [Comparison], in the order in which they are given.
const (
	warnWorkload     = "workloads_differ"
	warnSettings     = "settings_differ"
	warnClient       = "clients_differ"
	warnModel        = "models_differ"
	warnOrder        = "not_alternating"
	warnSameRun      = "same_run"
	warnUntrusted    = "not_trustworthy"
	warnEstimates    = "token_counts_estimated"
	warnValues       = "values_missing"
	warnFewSessions  = "few_sessions"
	warnTooFewRounds = "too_few_rounds"
	warnJoin         = "rows_left_out"
)

// A condition is one thing that two runs must have in common to be compared. Where it
// differs, it is part of the difference that is found.
type condition struct {
	name string                   // such as workload or schedule
	of   func(*result.Run) string // as text

	code, differs string // of the warning where it differs
}

var conditions = []condition{
	{"workload", func(r *result.Run) string { return r.Workload }, warnWorkload, "other workloads"},
	{"tokenizer", func(r *result.Run) string { return r.Tokenizer }, warnSettings, "other tokenizers"},
	{"seed", func(r *result.Run) string {
		if r.Cache != nil && r.Cache.ArrivalSeed != "" { // new prompts made the cache cold: the arrivals must agree
			return r.Cache.ArrivalSeed
		}
		return r.Seed
	}, warnSettings, "other seeds"},
	{"schedule", func(r *result.Run) string {
		of := []any{r.Speed, r.Timing, r.Rate, r.Concurrency, r.KeepThink, r.InFlightLimit}
		if r.Sessions != nil {
			asked := *r.Sessions
			asked.Counts = nil
			of = append(of, asked)
		}
		return asJSON(of)
	}, warnSettings, "other schedules"},
	{"part of the workload", func(r *result.Run) string { return asJSON(r.Selection) }, warnSettings,
		"other parts of the workload"},
	{"cache policy", func(r *result.Run) string {
		if r.Cache == nil {
			return ""
		}
		return asJSON([]any{r.Cache.Asked, r.Cache.Done}) // not what differs between rounds on purpose
	}, warnSettings, "other cache policies"},
	{"requests", func(r *result.Run) string {
		return asJSON([]any{r.API, r.Prompts, r.PromptText, r.Sampling, r.Connections, r.HTTP2})
	}, warnSettings, "other APIs, prompts, sampling or connections"},
	{"client", func(r *result.Run) string {
		host := ""
		if r.Environment != nil {
			host = asJSON(r.Environment.Host)
		}
		return fmt.Sprint(r.Version, r.Cores, r.Simulated != "", host)
	}, warnClient, "other clients"},
	{"model", func(r *result.Run) string { return r.Model }, warnModel, "other models"},
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "" // a NaN; no run is read with one
	}
	return string(b)
}

// runWarnings names what may be in the differences besides the servers.
func runWarnings(arms []Arm) (out []report.Warning) {
	warn := func(code, format string, args ...any) {
		out = append(out, report.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	a := arms[0]
	for _, b := range arms[1:] {
		for _, c := range conditions {
			n := 0
			for i := range a.Runs {
				if c.of(&a.Runs[i].Run) != c.of(&b.Runs[i].Run) {
					n++
				}
			}
			if n > 0 {
				rounds := " in " + doc.Many(int64(n), "round")
				if len(a.Runs) == 1 {
					rounds = ""
				}
				warn(c.code, "%s and %s had %s%s: that is in the difference too", a.Name, b.Name, c.differs, rounds)
			}
		}
		out = append(out, orderWarnings(a, b)...)
	}
	for _, arm := range arms {
		beyond := []result.Beyond(nil)
		for i := range arm.Runs {
			beyond = result.JoinBeyond(beyond, arm.Runs[i].Run.Extrapolates)
		}
		if w := report.Warned(arm.Runs[0].Run.PresetWarning, beyond); w != "" {
			warn(report.WarnPreset, "%s: %s", arm.Name, textpage.Plain(w))
		}
		estimated := 0
		for i := range arm.Runs {
			if s := &arm.Runs[i]; s.PromptEstimates()+s.OutputEstimates() > 0 {
				estimated++
			}
		}
		if estimated > 0 {
			warn(warnEstimates, "the token counts of %s of %s are estimates, since the server sent no usage: TPOT "+
				"and tokens per second rest on them", doc.Many(int64(estimated), "run"), arm.Name)
		}
	}
	return out
}

// orderWarnings checks when the runs began: alternating, and not the same run twice.
func orderWarnings(a, b Arm) (out []report.Warning) {
	var began [2][]time.Time
	for i := range a.Runs {
		for side, run := range []*result.Run{&a.Runs[i].Run, &b.Runs[i].Run} {
			at, err := time.Parse(time.RFC3339, run.Started)
			if err != nil {
				return nil
			}
			began[side] = append(began[side], at)
		}
		if began[0][i].Equal(began[1][i]) && a.Runs[i].Run.TraceID == b.Runs[i].Run.TraceID {
			return []report.Warning{{Code: warnSameRun,
				Text: fmt.Sprintf("run %d of %s and of %s is one and the same", i+1, a.Name, b.Name)}}
		}
	}
	before := func(a, b []time.Time) bool {
		return slices.MaxFunc(a, time.Time.Compare).Before(slices.MinFunc(b, time.Time.Compare))
	}
	if len(a.Runs) > 1 && (before(began[0], began[1]) || before(began[1], began[0])) {
		out = append(out, report.Warning{Code: warnOrder, Text: fmt.Sprintf(
			"all runs of one of %s and %s came before all runs of the other: whatever changed meanwhile is in the "+
				"difference; alternate them", a.Name, b.Name)})
	}
	return out
}

// resultWarnings says which figures rest on too little.
func (c *Comparison) resultWarnings() {
	warn := func(code, format string, args ...any) {
		c.Warnings = append(c.Warnings, report.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	for i := range c.Versus {
		v := &c.Versus[i]
		if c.Kind == kindRounds && v.Rounds < c.LeastRounds {
			warn(warnTooFewRounds, "%s of %s and %s: alpha %s needs %d, since the signed ranks of n pairs cannot "+
				"come below p = 2 ÷ 2^n, here %s; at any alpha it takes %d at least",
				doc.Many(int64(v.Rounds), "round"), c.A, v.B, doc.Number(c.Alpha), c.LeastRounds,
				pValue(2/float64(uint64(1)<<min(v.Rounds, 60))), minRounds)
		}
		var missing []string
		few := 0
		for _, m := range v.Metrics {
			if m.Rounds < v.Rounds {
				missing = append(missing, fmt.Sprintf("%s in %d", m.Label, v.Rounds-m.Rounds))
			}
			if r := m.Resampled; r != nil && r.Clusters < 50 {
				few = r.Clusters
			}
		}
		if len(missing) > 0 && c.Kind == kindRounds { // else the decision says so
			warn(warnValues, "rounds of %s and %s without a value on both sides, which are left out: %s; a p99 needs "+
				"100 successful requests, a ratio figures above zero", c.A, v.B, strings.Join(missing, ", "))
		}
		if few > 0 {
			warn(warnFewSessions, "the intervals of %s and %s from resampling rest on %d groups of sessions: with "+
				"fewer than 50 they tend to be too narrow (Cameron, Gelbach and Miller 2008)", c.A, v.B, few)
		}
	}
}
