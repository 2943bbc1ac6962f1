package report

import (
	"fmt"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the summary out for a browser: verdict, key figures and provenance,
// what the numbers say and the checklist, tables and plots, and the definitions
// of all of it. A plot without a value is left out.
func Page(s Summary) *page.Page {
	p := &page.Page{
		Title:   "Replay report",
		Lead:    "What a replay measured, with every latency from when a request was sent and from when it was due.",
		Verdict: verdictNotes(&s),
		Facts:   keyFigures(&s),
		About:   provenanceGroups(&s),
		Terms:   pageTerms(),
	}
	if s.Run.Note != "" {
		p.Notes = append(p.Notes, page.Note{Level: page.Info, Text: "Of this run: " + s.Run.Note})
	}
	for _, w := range s.Warnings {
		level := page.Info
		if w.Code == WarnPreset {
			level = page.Warn
		}
		p.Notes = append(p.Notes, page.Note{Level: level, Text: w.Text})
	}
	if s.Run.Simulated != "" {
		p.Title, p.Lead = "Simulation report", "What a model of an engine would do with a workload, in virtual time; there was no client whose sending could be late."
	}
	for _, section := range []page.Section{
		contractSection(&s), methodSection(&s), peerSection(s.Peer), overviewSection(&s), steadySection(s.Steady), ttftSection(&s), itlSection(&s), e2eSection(&s),
		loadSection(&s), serverSection(&s), lengthSection(&s), cacheSection(&s), classSection(&s), partSection(&s), errorSection(&s),
	} {
		if len(section.Text)+len(section.Tables)+len(section.Plots) > 0 {
			p.Sections = append(p.Sections, section)
		}
	}
	return p
}

// ShortDigest keeps enough of a digest to tell workloads apart by eye.
func ShortDigest(d string) string {
	const enough = len("sha256:") + 12
	if len(d) <= enough {
		return d
	}
	return d[:enough] + "…"
}

// ToSecond drops the fraction of an RFC 3339 instant, and nothing else.
func ToSecond(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.Format("2006-01-02 15:04:05 MST")
}

// methodSection says what the figures come to, and how far they carry.
func methodSection(s *Summary) page.Section {
	sec := page.Section{Title: "What the numbers say"}
	if s.DurationS != nil {
		r, t := &s.Requests, &s.Throughput
		says := fmt.Sprintf("%s of %s succeeded within %s s", page.Brief(r.Succeeded), page.Many(r.Rows, "request"), page.Number(*s.DurationS))
		if t.RequestsPerS != nil {
			says += fmt.Sprintf(": %s requests, %s prompt tokens and %s output tokens per second (duration, throughput)",
				page.Number(*t.RequestsPerS), page.Number(*t.PromptTokensPerS), page.Number(*t.OutputTokensPerS))
		}
		sec.Text = append(sec.Text, says+".")
		if g := s.Goodput; g != nil && g.FromDue.Share != nil {
			sec.Text = append(sec.Text, fmt.Sprintf("%s of the requests that ended met %s counted from when they were sent, and %s counted from when they were due (goodput share).",
				page.OrDash(g.FromSent.Share, page.Percent), g.SLO, page.Percent(*g.FromDue.Share)))
		}
	}
	for _, d := range s.Diagnoses {
		sec.Notes = append(sec.Notes, page.Note{Level: page.Info, Text: d.Text + " To confirm: " + d.Confirm + "."})
	}
	t := page.Table{Caption: "Checklist of the method", Head: checklistHead, Rows: checklistRows(s.Checklist),
		Align: []page.Align{page.Left, page.Left, page.Left}, HeadTerms: repeat(termOf("checklist"), len(checklistHead))}
	for i := range t.Rows {
		t.Rows[i][1] = s.Checklist[i].Status.sign()
	}
	checks := page.Table{Caption: "What the verdict rests on", Head: checkHead, Rows: checkRows(s),
		HeadTerms: []string{"", termOf("verdict.checks"), termOf("verdict.checks")}}
	sec.Tables = []page.Table{t, checks}
	return sec
}

// overviewSection has what was asked of the server and what it did, and every latency
// that has a value.
func overviewSection(s *Summary) page.Section {
	run := page.Table{Caption: "Run", Head: []string{"", "figure", "note"}, Rows: overview(s), Align: []page.Align{page.Left, page.Right, page.Left}}
	for _, row := range run.Rows {
		run.RowTerms = append(run.RowTerms, termOf(overviewTerms[row[0]]))
	}
	t := page.Table{Caption: "Latency in ms, of successful requests; send lag of all that were sent",
		Head:      []string{"metric", "n", "mean", "sd", "min"},
		HeadTerms: []string{"", termOf("count"), termOf("mean"), termOf("sd"), termOf("min")}}
	for _, p := range percentiles {
		t.Head, t.HeadTerms = append(t.Head, p.name), append(t.HeadTerms, termOf(strings.ReplaceAll(p.name, ".", "_")))
	}
	t.Head = append(t.Head, "max", "p99 ÷ p50")
	t.HeadTerms = append(t.HeadTerms, termOf("max"), termOf("tail_ratio"))
	near := 0
	for _, m := range s.Latency.metrics() {
		st := m.stat
		if st.Count == 0 {
			continue
		}
		if st.Method == hdr {
			near++
		}
		row := []string{m.label, page.Brief(st.Count), page.OrDash(st.Mean, page.Short), page.OrDash(st.SD, page.Short), page.OrDash(st.Min, page.Short)}
		for _, p := range percentiles {
			row = append(row, page.OrDash(*p.of(st), page.Short))
		}
		t.Rows = append(t.Rows, append(row, page.OrDash(st.Max, page.Short), page.OrDash(st.TailRatio, page.Short)))
		t.RowTerms = append(t.RowTerms, termOf(m.name[strings.LastIndex(m.name, ".")+1:]))
	}
	if near > 0 {
		t.Caption += "; percentiles of more than a million values are within 0.1 %"
	}
	return page.Section{Title: "Figures", Tables: []page.Table{run, t}}
}

// verdictNotes are what to know before any figure.
func verdictNotes(s *Summary) []page.Note {
	level := page.Good
	if !s.Verdict.Trustworthy {
		level = page.Bad
	}
	notes := []page.Note{{Level: level, Text: verdictLine(s)}}
	for _, r := range s.Verdict.Reasons {
		notes = append(notes, page.Note{Level: page.Bad, Text: r.Text})
	}
	notes = append(notes, contractNotes(s)...)
	notes = append(notes, page.Note{Level: page.Info, Text: sayChecklist(s.Checklist)})
	if tier := trace.TierNote("page", s.Run.Tier); tier != "" {
		notes = append(notes, page.Note{Level: page.Warn, Text: tier})
	}
	return notes
}

// keyFigures are those that are asked for first.
func keyFigures(s *Summary) []page.Fact {
	r, t, l := &s.Requests, &s.Throughput, &s.Latency
	out := []page.Fact{{Label: "Requests", Value: page.Brief(r.Rows), Note: fmt.Sprintf("%s succeeded, %s failed", page.Brief(r.Succeeded), page.Brief(r.Failed)), Term: termOf("rows")}}
	add := func(label, term string, value *float64, unit, note string) {
		if value != nil {
			out = append(out, page.Fact{Label: label, Value: page.Number(*value) + " " + unit, Note: note, Term: termOf(term)})
		}
	}
	spread := func(label, term string, st *Stat) {
		switch {
		case st.P99 != nil:
			out = append(out, page.Fact{Label: label + " p50 / p99", Value: page.Number(*st.P50) + " / " + page.Number(*st.P99) + " ms", Note: "tail ratio " + numberOrDash(st.TailRatio), Term: termOf(term)})
		case st.P50 != nil:
			out = append(out, page.Fact{Label: label + " p50 / max", Value: page.Number(*st.P50) + " / " + page.Number(*st.Max) + " ms", Note: page.Many(st.Count, "value") + ", too few for a p99", Term: termOf(term)})
		}
	}
	add("Throughput", "requests", t.RequestsPerS, "requests/s", "of "+numberOrDash(t.OfferedPerS)+" offered")
	spread("TTFT from sent", "ttft", &l.FromSent.TTFT)
	spread("ITL", "itl_chunk", &l.ITLChunk)
	spread("TPOT", "tpot", &l.TPOT)
	spread("E2E from sent", "e2e", &l.FromSent.E2E)
	add("Output tokens", "output_tokens", t.OutputTokensPerS, "/s", page.Brief(s.Tokens.Output)+" in all"+estimateNote(s.OutputEstimates(), r.Succeeded))
	add("Prompt tokens", "prompt_tokens", t.PromptTokensPerS, "/s", page.Brief(s.Tokens.Prompt)+" in all"+estimateNote(s.PromptEstimates(), r.Succeeded))
	if g := s.Goodput; g != nil {
		add("Goodput from due", "goodput", g.FromDue.PerS, "requests/s", fmt.Sprintf("%s met %s", page.OrDash(g.FromDue.Share, page.Percent), g.SLO))
	}
	add("In flight", "in_flight", s.InFlight.Mean, "on average", "at most "+page.Brief(int64(s.InFlight.Max)))
	if c := &s.Cache; c.Measured != nil {
		out = append(out, page.Fact{Label: "Prefix cache hits", Value: page.Percent(*c.Measured), Note: strings.TrimSpace(page.OrDash(c.Expected, page.Percent) + " expected " + expectedFromWords[c.ExpectedFrom]), Term: termOf("measured_ratio")})
	}
	return out
}

// A group collects the facts that the run gives; what it does not say is left out.
type factGroup struct{ page.Group }

func (g *factGroup) add(label, value, note string) {
	if value != "" {
		g.Facts = append(g.Facts, page.Fact{Label: label, Value: value, Note: note})
	}
}

func positive(n int, what string) string {
	if n <= 0 {
		return ""
	}
	return page.Many(int64(n), what)
}

// provenanceGroups are where the figures come from.
func provenanceGroups(s *Summary) []page.Group {
	var out []page.Group
	for _, g := range []factGroup{hardware(s), engine(s), workload(s), load(s), client(&s.Run)} {
		if len(g.Facts) > 0 {
			out = append(out, g.Group)
		}
	}
	return out
}

// Made says of a run where it was made and by what: hardware, engine and client.
func Made(s Summary) []page.Fact {
	var out []page.Fact
	for _, g := range []factGroup{hardware(&s), engine(&s), client(&s.Run)} {
		for _, f := range g.Facts {
			f.Term = "" // a page of several runs has no definitions of one
			out = append(out, f)
		}
	}
	return out
}

func hardware(s *Summary) factGroup {
	g := factGroup{page.Group{Title: "Hardware"}}
	where := s.Run.Environment
	gpus := ""
	if where != nil {
		gpus = joined(gpuParts(where)...)
	}
	if e := s.Efficiency; gpus == "" && e != nil && e.GPUsFrom == gpusGiven {
		gpus = page.Brief(int64(e.GPUs)) + ", as given"
	}
	g.add("GPUs", gpus, "")
	if v := s.Servers; v != nil && v.GPUMemoryMiB != nil {
		g.add("GPU memory in use", page.Number(v.GPUMemoryMiB.Max)+" MiB", "at most, of all GPUs together")
	}
	if n := s.Run.Instances; n > 0 {
		g.add("Instances", page.Brief(int64(n)), "engines behind the endpoint")
	}
	client, note := positive(s.Run.Cores, "core"), fmt.Sprintf("%.2f cores used on average", s.Run.ClientCPU)
	if where != nil {
		client = joined(hostParts(&where.Host)...)
	}
	if s.Run.Simulated != "" {
		note = "that computed the simulation"
	}
	g.add("Client", client, note)
	return g
}

func engine(s *Summary) factGroup {
	r := &s.Run
	g := factGroup{page.Group{Title: "Model and engine"}}
	model := r.Model
	if e := r.Environment; e != nil {
		g.add("Engine", joined(engineParts(r)...), "")
		if d := e.Deployment; d != nil {
			g.add("Engine's flags", d.EngineFlags, "as given")
		}
		model = joined(modelParts(r)...)
	}
	g.add("Model", model, "")
	g.add("Tokenizer", r.Tokenizer, "")
	g.add("Context length", positive(r.MaxModelLen, "token"), "as the server lists it")
	g.add("Server", r.ServerVersion, "its version")
	g.add("Simulated", strings.NewReplacer("{", "", "}", "", `"`, "", "_", " ", ":", ": ", ",", ", ").Replace(r.Simulated), "")
	g.add("Endpoints", strings.Join(r.Endpoints, ", "), r.Balance)
	if b := s.Cache.Block; b != nil {
		g.add("Cache blocks", page.Many(*b, "token"), "that expected reuse is counted in")
	}
	if r.Cache != nil {
		did, note := cacheBefore(r.Cache)
		g.add("Caches before", did, note)
	}
	return g
}

// workload is what was sent, and what its makers say of its privacy.
func workload(s *Summary) factGroup {
	r := &s.Run
	g := factGroup{page.Group{Title: "Workload and privacy"}}
	g.add("Digest", ShortDigest(r.Workload), "of the rows; whole in the JSON")
	g.add("Tier", r.Tier, "privacy tier of the workload, which this page inherits")
	if p := r.Privacy; p != nil {
		g.add("Privacy card", ShortDigest("sha256:"+p.Card), "in the workload; reprise anonymize --card prints it in words")
		g.add("Unit of privacy", p.Unit, "")
		g.add("Times", p.Time, "")
		g.add("Residual risks", strings.Join(p.Risks, " "), "")
	}
	g.add("Seed", r.Seed, "")
	g.add("Blocks", positive(r.BlockSize, "token"), "prefix blocks of the workload")
	text := Plain(r.PromptText)
	if r.PromptText == result.TextStable {
		text = "words without meaning"
	}
	g.add("Prompt text", text, "")
	if r.Verbatim != "" {
		g.add("Verbatim", ShortDigest(r.Verbatim), "digest of the raw file: real text was sent")
	}
	g.add("Left out", positive(int(r.Excluded), "row"), "failed in the source")
	g.add("Skipped", positive(int(r.Skipped), "turn"), "a turn before failed")
	g.add("Short tails", positive(int(r.ShortTails), "partial block"), "too short to be told apart")
	return g
}

func load(s *Summary) factGroup {
	r := &s.Run
	g := factGroup{page.Group{Title: "Load"}}
	g.add("Schedule", schedule(r), "")
	if r.Speed > 0 {
		g.add("Speed", "× "+page.Number(r.Speed), "")
	}
	prompts := ""
	if r.Prompts != "" {
		prompts = "prompts as " + r.Prompts
	}
	g.add("API", r.API, prompts)
	g.add("Sampling", samplingOf(r), "")
	if len(r.Uncounted) > 0 {
		g.add("Template overhead", "not known", "the server sends no usage, so that it cannot be measured")
	}
	g.add("Template overhead", positive(r.Overhead, "token"), "of the chat template, in each prompt")
	return g
}

func client(r *result.Run) factGroup {
	g := factGroup{page.Group{Title: "Client"}}
	g.add("Connections", r.Connections, "")
	stalls := "" // where the run was not watched
	if st := r.Stalls; st != nil && st.Count == 0 {
		stalls = "none"
	} else if st != nil {
		stalls = fmt.Sprintf("%s, %s ms in all, the longest %s ms", page.Brief(st.Count), page.Number(float64(st.TotalNS)/1e6), page.Number(float64(st.LongestNS)/1e6))
	}
	g.add("Stalls", stalls, "in which the client stood still")
	g.add("Trace", r.TraceID, "id of the requests' traces")
	g.add("Started", ToSecond(r.Started), "")
	source := ""
	if r.Environment != nil {
		source = r.Environment.Host.Build
	}
	g.add("Reprise", r.Version, source)
	return g
}
