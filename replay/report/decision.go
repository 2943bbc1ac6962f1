package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reprise/trace"
	"reprise/trace/page"
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

// WriteDecision writes one page of Markdown on which settings a tuning accepted and
// rejected, by what target, with the latencies and the cost of each.
func WriteDecision(w io.Writer, runs []Tried, d Decision) error {
	var b bytes.Buffer
	b.WriteString("# Decision record\n")
	for i := range runs {
		if tier := trace.TierNote("record", runs[i].Summary.Run.Tier); tier != "" {
			b.WriteString("\n" + inMarkdown(tier) + "\n")
			break
		}
	}
	for i := range runs {
		if warning := runs[i].Summary.Run.PresetWarning; warning != "" {
			b.WriteString("\n" + inMarkdown("Warning: "+runs[i].Name+": "+Plain(warning)) + ".\n")
		}
	}
	part := func(name string) { b.WriteString("\n## " + name + "\n\n") }
	part("Target")
	b.WriteString(target(runs) + "\n")
	part("Settings")
	best, rule := chosen(runs)
	for i := range runs {
		outcome := "accepted"
		switch s := &runs[i].Summary; {
		case !s.Verdict.Trustworthy:
			var why []string
			for _, r := range s.Verdict.Reasons {
				why = append(why, r.Text)
			}
			outcome = "rejected, since it cannot be trusted: " + strings.Join(why, "; ")
		case !runs[i].Accepted():
			outcome = "rejected: " + s.Contract.String()
		case i == best && len(runs) > 1:
			outcome = "accepted, and preferred"
		}
		b.WriteString("- **" + inMarkdown(runs[i].Name) + "**: " + inMarkdown(outcome) + "\n")
	}
	b.WriteString("\n" + rule + "\n")
	head := []string{"setting"}
	for i := range runs {
		head = append(head, runs[i].Name)
	}
	rows, err := differing(runs)
	if err != nil {
		return err
	}
	markdownTable(&b, "What differs", head, rows)
	if len(rows) == 0 && len(runs) > 1 {
		b.WriteString("\nThe results do not say what differs between the runs.\n")
	}
	part("Figures")
	markdownTable(&b, "", head, decisionFigures(runs))
	part("Cost")
	b.WriteString(cost(runs, d) + "\n")
	part("Why the tuning stopped")
	why := "It has not: no run keeps to the contract."
	switch {
	case d.Why != "":
		why = d.Why
	case runs[0].Summary.Contract == nil:
		why = "Not given."
	case best >= 0:
		why = runs[best].Name + " keeps to the contract, which is the stopping rule."
	}
	b.WriteString(inMarkdown(why) + "\n")
	part("Provenance")
	markdownTable(&b, "", head, provenance(runs))
	_, err = w.Write(b.Bytes())
	return err
}

// target is the contract, or the objectives, that the runs were held against.
func target(runs []Tried) string {
	s := &runs[0].Summary
	var out []string
	if c := s.Contract; c != nil {
		for i := range c.Clauses {
			out = append(out, "- "+inMarkdown(c.Clauses[i].name()))
		}
		return strings.Join(out, "\n")
	}
	if s.Goodput != nil {
		return "Requests that meet " + inMarkdown(s.Goodput.SLO.String()) + ": the more per second, the better."
	}
	return "None was given: neither a contract nor objectives."
}

// chosen is the index of the run that the target prefers, -1 for none, and the rule.
func chosen(runs []Tried) (best int, rule string) {
	var of func(*Summary) *float64
	switch s := &runs[0].Summary; {
	case s.Contract != nil:
		of, rule = func(s *Summary) *float64 { return s.Throughput.OutputTokensPerS }, "Of the runs that keep to the contract, that with the most output tokens per second is preferred."
	case s.Goodput != nil:
		of, rule = goodputOf, "Of the runs that can be trusted, that with the most goodput from due is preferred."
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

// settings are the fields of a run that say how it was set up, and not what came of it.
// A note is none: it may say which round a run was, and stands with where it is from.
var settings = []string{"model", "api", "prompts", "tokenizer", "speed", "timing", "rate", "concurrency", "keep_think", "connections", "workload_digest",
	"seed", "in_flight_limit", "simulated", "prefix_caching", "endpoints", "balance", "sampling", "retries", "http2", "prompt_text", "server_version", "max_model_len",
	"cache_discipline.done", "selection", "environment", "version"}

// differing lists the settings that are not the same in all runs.
func differing(runs []Tried) ([][]string, error) {
	var all []map[string]string
	names := map[string]bool{}
	for i := range runs {
		doc, err := json.Marshal(runs[i].Summary.Run)
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
		if !same {
			rows = append(rows, row)
		}
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
		{"TTFT from due", func(l *Latency) *Stat { return &l.FromDue.TTFT }}, {"TPOT", func(l *Latency) *Stat { return &l.TPOT }},
		{"Chunk ITL", func(l *Latency) *Stat { return &l.ITLChunk }}, {"E2E from due", func(l *Latency) *Stat { return &l.FromDue.E2E }},
	} {
		for _, p := range percentiles {
			row(m.name+" "+p.name+", ms", func(s *Summary) string { return page.OrDash(*p.of(m.of(&s.Latency)), page.Short) })
		}
	}
	row("requests/s", func(s *Summary) string { return numberOrDash(s.Throughput.RequestsPerS) })
	row("prompt tokens/s", func(s *Summary) string { return numberOrDash(s.Throughput.PromptTokensPerS) })
	row("output tokens/s", func(s *Summary) string { return numberOrDash(s.Throughput.OutputTokensPerS) })
	row("goodput from due, requests/s", func(s *Summary) string { return numberOrDash(goodputOf(s)) })
	row("failed", func(s *Summary) string { return page.OrDash(s.Requests.ErrorShare, page.Percent) })
	row("values of TTFT", func(s *Summary) string { return page.Brief(s.Latency.FromDue.TTFT.Count) })
	return rows
}

// cost is what a million output tokens cost in each run, or what is missing to say so.
func cost(runs []Tried, d Decision) string {
	if !(d.PricePerGPUHour > 0) {
		return "Not given: the price of a GPU for an hour."
	}
	var out []string
	for i := range runs {
		s := &runs[i].Summary
		gpus, says := 0, ""
		if e := s.Efficiency; e != nil && e.GPUsFrom == gpusGiven {
			gpus = e.GPUs
		}
		switch per := s.Throughput.OutputTokensPerS; {
		case gpus == 0:
			says = "not known, since the results do not say how many GPUs served"
		case per == nil || *per == 0:
			says = "not known, since there is no output"
		default:
			says = fmt.Sprintf("%s per million output tokens (%s, %s each per hour, over the duration of the run)",
				page.Number(d.PricePerGPUHour*float64(gpus)/3600 / *per * 1e6), page.Many(int64(gpus), "GPU"), page.Number(d.PricePerGPUHour))
		}
		out = append(out, "- **"+inMarkdown(runs[i].Name)+"**: "+says)
	}
	return strings.Join(out, "\n")
}

// provenance tells runs and workloads apart, and puts side by side where the runs were
// measured.
func provenance(runs []Tried) [][]string {
	var rows [][]string
	for _, f := range []struct {
		name string
		of   func(*Tried) string
	}{
		{"results", func(t *Tried) string { return t.Digest }}, {"note", func(t *Tried) string { return t.Summary.Run.Note }}, {"workload", func(t *Tried) string { return t.Summary.Run.Workload }},
		{"seed", func(t *Tried) string { return t.Summary.Run.Seed }}, {"started", func(t *Tried) string { return t.Summary.Run.Started }},
		{"reprise", func(t *Tried) string { return t.Summary.Run.Version }},
	} {
		row := []string{f.name}
		for i := range runs {
			row = append(row, f.of(&runs[i]))
		}
		rows = append(rows, row)
	}
	before := len(rows)
	for i := range runs {
		for _, r := range environmentRows(&runs[i].Summary.Run) {
			at := slices.IndexFunc(rows[before:], func(row []string) bool { return row[0] == r[0] })
			if at < 0 {
				at = len(rows) - before
				rows = append(rows, append([]string{r[0]}, make([]string, len(runs))...))
			}
			rows[before+at][i+1] = r[1]
		}
	}
	return rows
}
