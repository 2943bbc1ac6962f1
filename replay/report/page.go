package report

import (
	"fmt"
	"strings"
	"time"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the summary out for a browser: verdict and provenance, what the
// numbers say, tables, plots, and the definitions of all of it. A plot without
// a value is left out.
func Page(s Summary) *page.Page {
	p := &page.Page{
		Title: "Replay report",
		Lead:  "What a replay measured, with every latency from when a request was sent and from when it was due.",
		Facts: facts(&s),
		Notes: pageNotes(&s),
	}
	if s.Run.Simulated != "" {
		p.Title, p.Lead = "Simulation report", "What a model of an engine would do with a workload, in virtual time; there was no client whose sending could be late."
	}
	for _, section := range []page.Section{
		contractSection(&s), peerSection(s.Peer), overviewSection(&s), steadySection(s.Steady), ttftSection(&s), itlSection(&s), e2eSection(&s),
		loadSection(&s), serverSection(&s), lengthSection(&s), cacheSection(&s), partSection(&s), errorSection(&s), environmentSection(&s), definitionSection(),
	} {
		if len(section.Text)+len(section.Tables)+len(section.Plots) > 0 {
			p.Sections = append(p.Sections, section)
		}
	}
	return p
}

// shortDigest keeps enough of a digest to tell workloads apart by eye.
func shortDigest(d string) string {
	const enough = len("sha256:") + 12
	if len(d) <= enough {
		return d
	}
	return d[:enough] + "…"
}

// toSecond drops the fraction of an RFC 3339 instant, and nothing else.
func toSecond(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.Format("2006-01-02 15:04:05 MST")
}

// facts are the provenance. What the run does not say is left out.
func facts(s *Summary) []page.Fact {
	r := &s.Run
	var out []page.Fact
	add := func(label, value, note string) {
		if value != "" {
			out = append(out, page.Fact{Label: label, Value: value, Note: note})
		}
	}
	positive := func(n int, what string) string {
		if n <= 0 {
			return ""
		}
		return many(int64(n), what)
	}
	prompts := ""
	if r.Prompts != "" {
		prompts = "prompts as " + r.Prompts
	}
	add("Simulated", r.Simulated, "")
	add("Model", r.Model, "")
	add("API", r.API, prompts)
	add("Tokenizer", r.Tokenizer, "")
	add("Workload", shortDigest(r.Workload), "digest of its rows; whole in the JSON")
	add("Tier", r.Tier, "that of the workload")
	add("Seed", r.Seed, "")
	if r.Speed > 0 {
		add("Speed", "× "+number(r.Speed), "")
	}
	add("Schedule", schedule(r), "")
	add("Connections", r.Connections, "")
	if len(r.Endpoints) > 0 {
		add("Endpoints", strings.Join(r.Endpoints, ", "), r.Balance)
	}
	add("Sampling", samplingOf(r), "")
	add("Trace", r.TraceID, "id of the requests' traces")
	if b := s.Cache.Block; b != nil {
		add("Server's blocks", many(*b, "token"), "that expected reuse is counted in")
	}
	add("Workload's blocks", positive(r.BlockSize, "token"), "")
	add("Template overhead", positive(r.Overhead, "token"), "of the chat template, in each prompt")
	add("Client", positive(r.Cores, "core"), fmt.Sprintf("%.2f used on average", r.ClientCPU))
	add("Left out", positive(int(r.Excluded), "row"), "failed in the source")
	add("Skipped", positive(int(r.Skipped), "turn"), "a turn before failed")
	add("Short tails", positive(int(r.ShortTails), "partial block"), "too short to be told apart")
	if r.Cache != nil {
		did, note := cacheBefore(r.Cache)
		add("Caches before", did, note)
	}
	add("Server", r.ServerVersion, "its version")
	add("Context length", positive(r.MaxModelLen, "token"), "as the server lists it")
	add("Prompt text", promptText(r.PromptText), "")
	add("Started", toSecond(r.Started), "")
	add("Reprise", r.Version, "")
	return out
}

// pageNotes begin with the verdict.
func pageNotes(s *Summary) []page.Note {
	level := page.Good
	if !s.Verdict.Trustworthy {
		level = page.Bad
	}
	notes := []page.Note{{Level: level, Text: verdictLine(s)}}
	for _, r := range s.Verdict.Reasons {
		notes = append(notes, page.Note{Level: page.Bad, Text: r.Text})
	}
	notes = append(notes, contractNotes(s)...)
	if tier := trace.TierNote("page", s.Run.Tier); tier != "" {
		notes = append(notes, page.Note{Level: page.Warn, Text: tier})
	}
	if s.Run.Note != "" {
		notes = append(notes, page.Note{Level: page.Info, Text: "Of this run: " + s.Run.Note})
	}
	for _, w := range s.Warnings {
		notes = append(notes, page.Note{Level: page.Info, Text: w.Text})
	}
	return notes
}

func overviewSection(s *Summary) page.Section {
	head := []string{"metric", "n", "mean, ms", "sd", "min", "p50", "p90", "p95", "p99", "p99.9", "max", "percentiles"}
	var rows [][]string
	for _, m := range s.Latency.metrics() {
		st := m.stat
		row := []string{m.label, count(st.Count), orDash(st.Mean), orDash(st.SD), orDash(st.Min)}
		for _, p := range percentiles {
			row = append(row, orDash(*p.of(st)))
		}
		rows = append(rows, append(row, orDash(st.Max), st.Method))
	}
	return page.Section{Title: "Summary", Text: sayOverview(s), Tables: []page.Table{
		{Caption: "Run", Head: []string{"", "figure", "note"}, Rows: overview(s), Align: []page.Align{page.Left, page.Right, page.Left}},
		{Caption: "Latency in ms, of successful requests; send lag of all that were sent", Head: head, Rows: rows},
		{Caption: "What the verdict rests on", Head: checkHead, Rows: checkRows(s)},
	}}
}

func definitionSection() page.Section {
	t := page.Table{Head: []string{"name", "unit", "definition", "formula"}, Align: []page.Align{page.Left, page.Left, page.Left, page.Left}}
	for _, d := range metricDefinitions() {
		t.Rows = append(t.Rows, []string{d.Name, d.Unit, d.Definition, d.Formula})
	}
	return page.Section{Title: "Definitions", Tables: []page.Table{t}, Text: []string{
		"Instants are of one monotonic clock: due, when the schedule wanted the request sent; sent, the entry to its write; headers; first and last token; done, the end of its stream or its failure. Everything else is derived from them.",
	}}
}
