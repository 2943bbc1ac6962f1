package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reprise/replay/result"
	"reprise/trace/doc"
)

// A Tried is a run of a tuning, with what tells its results from others'.
type Tried struct {
	Name    string // of the results
	Digest  string // of the results file
	Summary Summary
}

// A Decision is what a record of a tuning says beside its runs. What is empty was not
// given, and the record says so.
type Decision struct {
	Why             string  // the tuning stopped
	PricePerGPUHour float64 // in any currency
}

// Accepted tells whether the figures can be trusted and the contract, if there is one,
// is kept.
func (t *Tried) Accepted() bool {
	c := t.Summary.Contract
	return t.Summary.Verdict.Trustworthy && (c == nil || c.Holds)
}

// verdict is whether a setting is accepted, and all reasons why not.
func (t *Tried) verdict(preferred bool) string {
	switch s := &t.Summary; {
	case !s.Verdict.Trustworthy:
		var why []string
		for _, r := range s.Verdict.Reasons {
			why = append(why, r.Text)
		}
		return "rejected, since it cannot be trusted: " + strings.Join(why, "; ")
	case !t.Accepted() && !s.Contract.Fails() && !s.Contract.Judged:
		return "not judged: " + s.Contract.String()
	case !t.Accepted():
		return "rejected: " + s.Contract.String()
	case preferred:
		return "accepted, and preferred"
	}
	return "accepted"
}

// rationale is why the tuning stopped.
func rationale(runs []Tried, d Decision, best int) string {
	switch {
	case d.Why != "":
		return d.Why
	case runs[0].Summary.Contract == nil:
		return "Not given."
	case best >= 0:
		return runs[best].Name + " keeps to the contract, which is the stopping rule."
	}
	return "The tuning has not ended: no run keeps to the contract."
}

// target is the contract, or the objectives, that the runs were held against.
func target(runs []Tried) (lines []string) {
	s := &runs[0].Summary
	if c := s.Contract; c != nil {
		for i := range c.Clauses {
			lines = append(lines, c.Clauses[i].name())
		}
		return lines
	}
	if s.Goodput != nil {
		return []string{"Requests that meet " + s.Goodput.SLO.String() + ": the more per second, the better."}
	}
	return []string{"None was given: neither a contract nor objectives."}
}

// chosen is the index of the run that the target prefers, -1 for none, and the rule.
func chosen(runs []Tried) (best int, rule string) {
	var of func(*Summary) *float64
	switch s := &runs[0].Summary; {
	case s.Contract != nil:
		of, rule = func(s *Summary) *float64 { return s.Throughput.OutputTokensPerS },
			"Of the runs that keep to the contract, that with the most output tokens per second is preferred."
	case s.Goodput != nil:
		of, rule = goodputOf, "Of the runs that can be trusted, that with the most goodput from schedule is preferred."
	default:
		return -1, "Without a target no run is preferred; those that cannot be trusted are rejected."
	}
	best = -1
	for i := range runs {
		v := of(&runs[i].Summary)
		if runs[i].Accepted() && v != nil && (best < 0 || *v > *of(&runs[best].Summary)) {
			best = i
		}
	}
	return best, rule
}

func goodputOf(s *Summary) *float64 {
	if s.Goodput == nil {
		return nil
	}
	return s.Goodput.FromDue.PerS
}

// differingSettings lists the settings that are not the same in all runs.
func differingSettings(runs []Tried) ([][]string, error) {
	var all []*result.Run
	for i := range runs {
		all = append(all, &runs[i].Summary.Run)
	}
	return Differing(all...)
}

// settings are the fields of a run that say how it was set up, and not its outcome.
// A note is none: it may say which round a run was, and stands with where it is from.
var settings = []string{"model", "api", "prompts", "tokenizer", "speed", "timing", "rate", "concurrency", "keep_think",
	"connections", "workload_digest",
	"seed", "in_flight_limit", "simulated", "prefix_caching", "endpoints", "balance", "sampling", "retries", "http2",
	"prompt_text", "server_version", "max_model_len",
	"cache_discipline.done", "selection", "environment", "version"}

// Differing lists the settings that are not the same in all runs: the name of each, and
// its value in each run. Of a long value it gives the parts that differ.
func Differing(runs ...*result.Run) ([][]string, error) {
	var all []map[string]string
	names := map[string]bool{}
	for _, run := range runs {
		doc, err := json.Marshal(run)
		if err != nil {
			return nil, err
		}
		var root any
		if err := json.Unmarshal(doc, &root); err != nil {
			return nil, err
		}
		values := map[string]string{}
		leaves(root, "", values)
		all = append(all, values)
		for name := range values {
			names[name] = true
		}
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !slices.ContainsFunc(settings, func(s string) bool { return name == s || strings.HasPrefix(name, s+".") }) {
			continue
		}
		row, same := []string{name}, true
		for _, values := range all {
			row = append(row, values[name])
			same = same && values[name] == all[0][name]
		}
		if same {
			continue
		}
		values := differingParts(row[1:])
		if len(rows) > 0 { // a part may have a name of its own
			told := true
			for i := range values {
				told = told && slices.ContainsFunc(rows, func(r []string) bool { return r[0]+":"+r[1+i] == values[i] })
			}
			if told {
				continue
			}
		}
		rows = append(rows, append([]string{name}, values...))
	}
	return rows, nil
}

// leaves lists the values of a document by their paths.
func leaves(v any, path string, out map[string]string) {
	at := func(name string, v any) { leaves(v, strings.TrimPrefix(path+"."+name, "."), out) }
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			at(k, x)
		}
	case []any:
		for i, x := range v {
			at(strconv.Itoa(i), x)
		}
	case nil:
	default:
		out[path] = fmt.Sprint(v)
	}
}

// longSetting is the number of characters from which only the parts of a value that differ are shown.
const longSetting = 60

// differingParts leaves of long values what is not in all of them: step=5.7ms of all the
// costs of an engine.
func differingParts(values []string) []string {
	if !slices.ContainsFunc(values, func(v string) bool { return utf8.RuneCountInString(v) > longSetting }) {
		return values
	}
	count := map[string]int{}
	var parts [][]string
	for _, v := range values {
		of := strings.FieldsFunc(strings.ReplaceAll(v, `"`, ""),
			func(r rune) bool { return strings.ContainsRune(" ,;{}[]", r) })
		parts = append(parts, of)
		slices.Sort(of)
		for _, part := range slices.Compact(slices.Clone(of)) {
			count[part]++
		}
	}
	out := make([]string, len(values))
	for i := range values {
		out[i] = strings.Join(slices.DeleteFunc(parts[i], func(part string) bool { return count[part] == len(values) }),
			", ")
	}
	if strings.Join(out, "") == "" { // the order alone differs
		return values
	}
	return out
}

// decisionFigures are the figures of each run in its column.
func decisionFigures(runs []Tried) [][]string {
	var rows [][]string
	row := func(name string, of func(s *Summary) string) {
		cells := []string{name}
		for i := range runs {
			cells = append(cells, of(&runs[i].Summary))
		}
		rows = append(rows, cells)
	}
	for _, m := range []struct {
		name string
		of   func(*Latency) *Stat
	}{
		{"TTFT from schedule", func(l *Latency) *Stat { return &l.FromDue.TTFT }}, {"TPOT",
			func(l *Latency) *Stat { return &l.TPOT }},
		{"Chunk ITL", func(l *Latency) *Stat { return &l.ITLChunk }}, {"E2E from schedule",
			func(l *Latency) *Stat { return &l.FromDue.E2E }},
	} {
		for _, p := range percentiles {
			row(m.name+" "+p.name+", ms", func(s *Summary) string {
				return doc.OrDash(*p.of(m.of(&s.Latency)), doc.Short)
			})
		}
	}
	row("requests/s", func(s *Summary) string { return numberOrDash(s.Throughput.RequestsPerS) })
	row("prompt tokens/s", func(s *Summary) string { return numberOrDash(s.Throughput.PromptTokensPerS) })
	row("output tokens/s", func(s *Summary) string { return numberOrDash(s.Throughput.OutputTokensPerS) })
	row("goodput from schedule, requests/s", func(s *Summary) string { return numberOrDash(goodputOf(s)) })
	row("failed", func(s *Summary) string { return doc.OrDash(s.Requests.ErrorShare, doc.Percent) })
	row("values of TTFT", func(s *Summary) string { return doc.Brief(s.Latency.FromDue.TTFT.Count) })
	return rows
}

// sameLoad is the share by which the offered rates of runs of one load may differ.
const sameLoad = 0.05

// A costLine states the cost of a run or, with no name, of all runs.
type costLine struct{ run, says string }

// costs are what a million output tokens cost in each accepted run at its load, or what
// is missing to say so. Runs of one load on as many GPUs cost the same, whatever their
// settings: what these save shows at the highest load that each can serve.
func costs(runs []Tried, d Decision) []costLine {
	if !(d.PricePerGPUHour > 0) {
		return []costLine{{"", "Not given: the price of a GPU for an hour."}}
	}
	var out []costLine
	type served struct {
		gpus int
		rate float64
	}
	var seen []served
	alike := false
	for i := range runs {
		s := &runs[i].Summary
		gpus, says := 0, ""
		if e := s.Efficiency; e != nil && e.GPUsFrom == gpusGiven {
			gpus = e.GPUs
		}
		switch per := s.Throughput.OutputTokensPerS; {
		case !s.Verdict.Trustworthy:
			says = "not known, since the run cannot be trusted"
		case !runs[i].Accepted():
			says = "none at this load, where it is rejected: it takes more GPUs"
		case gpus == 0:
			says = "not known, since the results do not say how many GPUs served"
		case per == nil || *per == 0:
			says = "not known, since there is no output"
		default:
			if rate := s.Throughput.OfferedPerS; rate != nil {
				alike = alike || slices.ContainsFunc(seen, func(o served) bool {
					return o.gpus == gpus && math.Abs(o.rate-*rate) <= sameLoad**rate
				})
				seen = append(seen, served{gpus, *rate})
			}
			says = fmt.Sprintf("%s per million output tokens at this load, %s requests/s (%s, %s each per hour)",
				doc.Number(d.PricePerGPUHour*float64(gpus)/3600 / *per * 1e6), numberOrDash(s.Throughput.OfferedPerS),
				doc.Many(int64(gpus), "GPU"), doc.Number(d.PricePerGPUHour))
		}
		out = append(out, costLine{runs[i].Name, says})
	}
	if alike {
		out = append(out, costLine{"",
			"Runs of the same load on the same GPUs cost the same, but for how long their last answers took: that " +
				"does not say which setting is cheaper."})
	}
	if len(runs) > 1 {
		out = append(out, costLine{"", "What a setting costs at the highest load that it can serve: reprise capacity."})
	}
	return out
}

// provenance tells runs and workloads apart, and puts side by side where the runs were
// measured.
func provenance(runs []Tried) [][]string {
	var rows [][]string
	for _, f := range []struct {
		name string
		of   func(*Tried) string
	}{
		{"results", func(t *Tried) string {
			return t.Digest
		}},
		{"note", func(t *Tried) string { return t.Summary.Run.Note }},
		{"workload", func(t *Tried) string { return t.Summary.Run.Workload }},
		{"seed", func(t *Tried) string { return t.Summary.Run.Seed }},
	} {
		row := []string{f.name}
		for i := range runs {
			row = append(row, f.of(&runs[i]))
		}
		rows = append(rows, row)
	}
	for i := range runs {
		for _, f := range Made(runs[i].Summary) {
			at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == f.Label })
			if at < 0 {
				at = len(rows)
				rows = append(rows, append([]string{f.Label}, make([]string, len(runs))...))
			}
			rows[at][i+1] = f.Value
		}
	}
	return rows
}
