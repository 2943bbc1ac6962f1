package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// Page lays the summary out for a browser: on the first screen whether the run can be
// trusted, its main figures and its latencies over time; then what is behind them, the
// checks, provenance and definitions. A plot without a value is left
// out.
func Page(s Summary) *doc.Document {
	p := &doc.Document{
		Title:   "Replay report",
		Tag:     trace.TierNote("report", s.Run.Tier),
		Lead:    whatRan(&s),
		Verdict: verdictNotes(&s),
		Facts:   keyFigures(&s),
		Table:   keyLatencies(&s),
		About:   provenanceGroups(&s),
		Terms:   pageTerms(),
	}
	if main := defined("ttft", overTime(&s, "Latency over time", "latency", s.Series.TTFTMax, s.Series.TTFTPoints,
		s.Series.E2EPoints)); len(main) > 0 {
		p.Plot = &main[0]
	}
	if s.Run.Simulated != "" {
		p.Title = "Simulation report"
	}
	if s.Run.Note != "" {
		p.Notes = append(p.Notes, doc.Note{Level: doc.Info, Text: "Of this run: " + s.Run.Note})
	}
	limits := doc.Note{Level: doc.Warn, Word: "Limitations",
		Text: "what these figures rest on, and what they cannot say."}
	few := doc.Note{Level: doc.Info, Word: "Few values", Text: "percentiles that are left out."}
	for _, w := range s.Warnings {
		switch {
		case w.Code == WarnPreset: // without it, nobody would doubt the figures
			p.Verdict = append(p.Verdict, doc.Note{Level: doc.Warn, Text: w.Text})
		case w.Code == warnFewSamples && s.Peer != nil: // a peer fills each percentile
		case w.Code == warnFewSamples: // a dash in the table says it too
			few.Items = append(few.Items, w.Text)
		default:
			limits.Items = append(limits.Items, w.Text)
		}
	}
	for _, note := range []doc.Note{limits, few} {
		if len(note.Items) > 0 {
			p.Notes = append(p.Notes, note)
		}
	}
	one := []Named{{Summary: s}}
	for _, section := range []doc.Section{
		askedSection(&s), contractSection(&s), {Title: "Distributions", Plots: distributions(one)}, sessionSection(&s),
		causeSection(&s), overviewSection(&s), steadySection(s.Steady), peerSection(s.Peer), loadSection(one),
		serverSection(&s), lengthSection(&s), groupSection(&s), retrySection(&s), errorSection(&s), validitySection(&s),
	} {
		if len(section.Text)+len(section.Tables)+len(section.Plots)+len(section.Notes) > 0 {
			section.Folded = !section.Asked // in a comment on a pull request the first screen is enough
			p.Sections = append(p.Sections, section)
		}
	}
	return p
}

// whatRan is a line about what was sent where.
func whatRan(s *Summary) string {
	out := doc.Many(s.Requests.Rows, "request")
	if s.DurationS != nil {
		out += " in " + doc.Number(*s.DurationS) + " s"
	}
	out += ", " + schedule(&s.Run)
	if m := s.Run.Model; m != "" {
		out += ", model " + textpage.Plain(m)
	}
	if s.Run.Simulated != "" {
		return out + ", against a model of an engine in virtual time."
	}
	if n := len(s.Run.Endpoints); n > 0 {
		out += ", at " + textpage.Plain(s.Run.Endpoints[0])
		if n > 1 {
			out += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return out + "."
}

// verdictNotes are what to know before any figure: the verdict, the contract and the scenario.
func verdictNotes(s *Summary) []doc.Note {
	return append(append([]doc.Note{verdictNote(s)}, contractNotes(s)...), scenarioNotes(s.Run.Scenario)...)
}

// verdictNote is the verdict on the measurement, and its word says so: a server may be slow in a trustworthy one.
func verdictNote(s *Summary) doc.Note {
	v := doc.Note{Level: doc.Good, Word: "Trustworthy",
		Text: "the client kept to its schedule and the run is complete."}
	if s.Run.Simulated != "" {
		v.Word, v.Text = "Simulated", "a model of an engine gave these figures in virtual time. Nothing was sent and "+
			"no client was measured; the run is complete."
	}
	if s.Run.Read != nil {
		v.Level, v.Word, v.Text = doc.Info, "Read from results of "+s.Run.Read.Tool, readVerdict
	}
	if !s.Verdict.Trustworthy {
		v.Level, v.Word = doc.Bad, "Not trustworthy"
		v.Text = "these figures may not describe the server."
		if s.Run.Simulated != "" {
			v.Word = "Simulated, and not trustworthy"
			v.Text = "these figures may not describe the engine."
		}
		for _, r := range s.Verdict.Reasons {
			v.Items = append(v.Items, r.Text)
		}
	}
	v.Text = s.Verdict.Loosened.Beside(v.Text)
	return v
}

// sayEnds says how requests ended that did not succeed, by the class of their error.
func sayEnds(s *Summary) string {
	r := &s.Requests
	says := fmt.Sprintf("%s of %s failed", doc.Brief(r.Failed), doc.Many(r.Succeeded+r.Failed, "request"))
	for _, other := range []struct {
		n    int64
		what string
	}{{r.Cancelled, "cancelled"}, {r.NotSent, "not sent"}} {
		if other.n > 0 {
			says += fmt.Sprintf(", %s %s", doc.Brief(other.n), other.what)
		}
	}
	var classes []string
	for _, e := range s.Errors {
		classes = append(classes, textpage.Plain(e.Class)+" "+doc.Brief(e.Count))
	}
	if len(classes) > 0 {
		says += ": " + strings.Join(classes, ", ")
	}
	return says
}

// largest is the p99, or the maximum where there are too few values for it.
func (s *Stat) largest() *float64 { return cmp.Or(s.P99, s.Max) }

// keyLatencies are what users feel, from when requests were sent and, where that is another figure, from
// when they were due; a peer's distributions where its definitions were asked for.
func keyLatencies(s *Summary) *doc.Table {
	if s.Peer != nil {
		head, rows := peerSpreads(s.Peer)
		return &doc.Table{Caption: peerLine(s.Peer), Head: head, Rows: rows}
	}
	t := &doc.Table{Caption: "Latency in ms, of successful requests",
		Head:      []string{"", "mean", "p50", "p95", "p99", "max"},
		HeadTerms: []string{"", termOf("mean"), termOf("p50"), termOf("p95"), termOf("p99"), termOf("max")},
		Align:     []doc.Align{doc.Left, doc.Right, doc.Right, doc.Right, doc.Right, doc.Right}}
	few := false
	row := func(name, term string, st *Stat) {
		if st.Count == 0 {
			return
		}
		few = few || st.P99 == nil
		t.Rows = append(t.Rows, []string{name, doc.OrDash(st.Mean, doc.Short), doc.OrDash(st.P50, doc.Short),
			doc.OrDash(st.P95, doc.Short), doc.OrDash(st.P99, doc.Short), doc.OrDash(st.Max, doc.Short)})
		t.RowTerms = append(t.RowTerms, termOf(term))
	}
	l := &s.Latency
	fromSchedule := func(of *figure.Subject, sent, due *Stat) {
		if v, later := sent.largest(), due.largest(); v != nil && later != nil && *later > 1.01**v {
			row(of.Label+" from schedule", of.Name, due)
		}
	}
	row(figure.TTFT.Label, figure.TTFT.Name, &l.FromSent.TTFT)
	if l.reasoned() {
		row(figure.TTFO.Label, figure.TTFO.Name, &l.FromSent.TTFO)
	}
	row(figure.ITL.Label, "itl_chunk", &l.ITLChunk)
	if per := s.Tokens.PerEvent; per != nil && *per > 1.01 {
		row(figure.TokenITL.Label, "itl_token", &l.ITLToken)
	}
	row(figure.E2E.Label, figure.E2E.Name, &l.FromSent.E2E)
	// A table that is cut loses its last rows: first the client's, and TPOT, which is near ITL, before E2E.
	row("Queue, at the server", figure.QueueTime.Name, &l.QueueTime)
	row("Prefill, at the server", figure.PrefillTime.Name, &l.PrefillTime)
	row(figure.TPOT.Label, "tpot", &l.TPOT)
	fromSchedule(figure.TTFT, &l.FromSent.TTFT, &l.FromDue.TTFT)
	fromSchedule(figure.E2E, &l.FromSent.E2E, &l.FromDue.E2E)
	if s.Run.Timing != result.ClosedLoop || s.Run.Sessions != nil { // in which turns have a schedule
		row("Send lag", "send_lag", &l.SendLag)
	}
	if few {
		t.Caption += "; – is too few of them"
	}
	return t
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

// causeSection has what may be behind the figures.
func causeSection(s *Summary) doc.Section {
	sec := doc.Section{Title: "Possible causes"}
	for _, d := range s.Diagnoses {
		sec.Notes = append(sec.Notes,
			doc.Note{Level: doc.Info, Word: "Lead", Text: d.Text + " To confirm: " + d.Confirm + "."})
	}
	return sec
}

// validitySection says what the verdict was made by.
func validitySection(s *Summary) doc.Section {
	checks := doc.Table{Caption: "Checks of the client and the run", Head: checkHead, Rows: checkRows(s),
		HeadTerms: []string{"", termOf("verdict.checks"), termOf("verdict.checks")}}
	return doc.Section{Title: validityChecks, Tables: []doc.Table{checks}}
}

// overviewSection has what was asked of the server and what it did, and every latency
// that has a value.
func overviewSection(s *Summary) doc.Section {
	run := factGroup{doc.Group{Facts: runFacts(s)}}
	const says = "From sent is what the server took; from schedule adds what a request waited in the client. A dash is " +
		"too few values."
	return doc.Section{Title: "Figures", Text: []string{says}, Tables: []doc.Table{run.table("Run"),
		latencyTable("Latency in ms, of successful requests; send lag of all that were sent", s.Latency.shown())}}
}

// latencyTable has every statistic of the latencies that have a value.
func latencyTable(caption string, of []metric) doc.Table {
	t := doc.Table{Caption: caption, Head: []string{"metric", "n", "mean", "sd", "min"},
		HeadTerms: []string{"", termOf("count"), termOf("mean"), termOf("sd"), termOf("min")}}
	for _, p := range percentiles {
		t.Head, t.HeadTerms = append(t.Head, p.name), append(t.HeadTerms, termOf(strings.ReplaceAll(p.name, ".", "_")))
	}
	t.Head = append(t.Head, "max", "p99 ÷ p50")
	t.HeadTerms = append(t.HeadTerms, termOf("max"), termOf("tail_ratio"))

	near := false
	for _, m := range of {
		st := m.stat
		if st.Count == 0 {
			continue
		}
		near = near || st.Method == hdr
		row := []string{m.label, doc.Brief(st.Count), doc.OrDash(st.Mean, doc.Short), doc.OrDash(st.SD, doc.Short),
			doc.OrDash(st.Min, doc.Short)}
		for _, p := range percentiles {
			row = append(row, doc.OrDash(*p.of(st), doc.Short))
		}
		t.Rows = append(t.Rows, append(row, doc.OrDash(st.Max, doc.Short), doc.OrDash(st.TailRatio, doc.Short)))
		t.RowTerms = append(t.RowTerms, termOf(m.name[strings.LastIndex(m.name, ".")+1:]))
	}
	if near {
		t.Caption += "; percentiles of more than a million values are within 0.1 %"
	}
	return t
}

func positive(n int, what string) string {
	if n <= 0 {
		return ""
	}
	return doc.Many(int64(n), what)
}

// provenanceGroups are where the figures come from.
func provenanceGroups(s *Summary) []doc.Group {
	var out []doc.Group
	for _, g := range []factGroup{hardware(s), engine(s), workload(s), load(s), client(s)} {
		if len(g.Facts) > 0 {
			out = append(out, g.Group)
		}
	}
	return out
}

// Made tells where a run was made and by what: hardware, engine and client.
func Made(s Summary) []doc.Fact {
	var out []doc.Fact
	for _, g := range []factGroup{hardware(&s), engine(&s), client(&s)} {
		for _, f := range g.Facts {
			f.Term = "" // a page of several runs has no definitions of one
			out = append(out, f)
		}
	}
	return out
}

// SideBySide is a table of the facts of several runs, with a row for each label and a column for each name. head
// stands above the labels.
func SideBySide(head string, names []string, of [][]doc.Fact) doc.Table {
	t := doc.Table{Head: append([]string{head}, names...), Align: slices.Repeat([]doc.Align{doc.Left}, len(names)+1)}
	for i, facts := range of {
		for _, f := range facts {
			row := slices.IndexFunc(t.Rows, func(row []string) bool { return row[0] == f.Label })
			if row < 0 {
				row = len(t.Rows)
				t.Rows = append(t.Rows, append([]string{f.Label}, make([]string, len(names))...))
			}
			t.Rows[row][i+1] = f.Value
		}
	}
	return t
}

func hardware(s *Summary) factGroup {
	g := factGroup{doc.Group{Title: "Hardware"}}
	where := s.Run.Environment
	gpus := ""
	if where != nil {
		gpus = joined(gpuParts(where)...)
	}
	if e := s.Efficiency; gpus == "" && e != nil && e.GPUsFrom == gpusGiven {
		gpus = doc.Brief(int64(e.GPUs)) + ", as given"
	}
	g.add("GPUs", gpus, "")
	if v := s.Servers; v != nil && v.GPUMemoryMiB != nil {
		g.add("GPU memory in use", doc.Number(v.GPUMemoryMiB.Max)+" MiB", "at most, of all GPUs together")
	}
	if n := s.Run.Instances; n > 0 {
		g.add("Instances", doc.Brief(int64(n)), "engines behind the endpoint")
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
	g := factGroup{doc.Group{Title: "Model and engine"}}
	model := r.Model
	if e := r.Environment; e != nil {
		g.add("Engine", joined(engineParts(r)...), "")
		if d := e.Deployment; d != nil {
			g.add("Engine's flags", d.EngineFlags, "as given")
		}
		model = joined(modelParts(r)...)
	}
	g.add("Model", model, "")
	words := ""
	if r.Words > 0 {
		words = fmt.Sprintf("not named: prompts are of %d words that the server counts as one token each", r.Words)
	}
	g.add("Tokenizer", r.Tokenizer, words)
	g.add("Context length", positive(r.MaxModelLen, "token"), "as the server lists it")
	g.add("Server", r.ServerVersion, "its version")
	g.add("Simulated", strings.NewReplacer("{", "", "}", "", `"`, "", "_", " ", ":", ": ", ",",
		", ").Replace(r.Simulated), "")
	g.add("Endpoints", strings.Join(r.Endpoints, ", "), r.Balance)
	if b := s.Cache.Block; b != nil {
		from := ""
		switch r.ServerBlockFrom {
		case "":
			if r.Environment != nil && r.Simulated == "" {
				from = "; assumed, since no server states it"
			}
		case result.BlockGiven:
			from = ", as given"
		default:
			from = ", as the server states (" + textpage.Plain(r.ServerBlockFrom) + ")"
		}
		g.add("Cache blocks", doc.Many(*b, "token"), "that expected reuse is counted in"+from)
	}
	if r.Cache != nil {
		did, note := cacheBefore(r.Cache)
		g.add("Cache state at start", did, note)
	}
	return g
}

// workload is what was sent, and what its makers say about its privacy.
func workload(s *Summary) factGroup {
	r := &s.Run
	g := factGroup{doc.Group{Title: "Workload and privacy"}}
	g.add("Digest", ShortDigest(r.Workload), "of the rows; whole in the JSON")
	g.add("Tier", r.Tier, "privacy tier of the workload, which this page inherits")
	if p := r.Privacy; p != nil {
		g.add("Privacy card", ShortDigest("sha256:"+p.Card),
			"in the workload; reprise anonymize --card prints it in words")
		g.add("Unit of privacy", p.Unit, "")
		g.add("Times", p.Time, "")
		g.add("Residual risks", strings.Join(p.Risks, " "), "")
	}
	g.add("Seed", r.Seed, "")
	g.add("Blocks", positive(r.BlockSize, "token"), "prefix blocks of the workload")
	text := textpage.Plain(r.PromptText)
	if r.PromptText == result.TextStable {
		text = "words without meaning"
	}
	g.add("Prompt text", text, "")
	if r.Verbatim != "" {
		g.add("Verbatim", ShortDigest(r.Verbatim), "digest of the raw file: real text was sent")
	}
	g.add("Skipped rows", positive(int(r.Excluded), "row"), "failed in the source")
	g.add("Skipped turns", positive(int(r.Skipped), "turn"), "a turn before failed")
	g.add("Short tails", positive(int(r.ShortTails), "partial block"), "too short to differ")
	return g
}

func load(s *Summary) factGroup {
	r := &s.Run
	g := factGroup{doc.Group{Title: "Load"}}
	g.add("Schedule", schedule(r), "")
	if r.Speed > 0 {
		g.add("Speed", "× "+doc.Number(r.Speed), "")
	}
	prompts := ""
	if r.Prompts != "" {
		prompts = "prompts as " + r.Prompts
	}
	g.add("API", r.API, prompts)
	if c := r.Scenario; c != nil {
		from := "rules from a file"
		if c.BuiltIn {
			from = "rules built in"
		}
		g.add("Scenario", textpage.Plain(c.Version), from+", SHA-256 "+ShortDigest(c.Rules))
	}
	if i := r.Images; i != nil {
		g.add("Images", "in "+doc.Many(i.Requests, "request"), doc.Many(i.Tokens, "token")+" by the workload")
	}
	var sampling []string
	for _, name := range slices.Sorted(maps.Keys(r.Sampling)) {
		sampling = append(sampling, name+" "+strings.Trim(string(r.Sampling[name]), `"`))
	}
	g.add("Sampling", strings.Join(sampling, ", "), "")
	if len(r.Uncounted) > 0 {
		g.add("Template overhead", "not known", "the server sends no usage, so that it cannot be measured")
	}
	g.add("Template overhead", positive(r.Overhead, "token"), "of the chat template, in each prompt")
	return g
}

func client(s *Summary) factGroup {
	r := &s.Run
	g := factGroup{doc.Group{Title: "Client"}}
	g.add("Connections", r.Connections, r.ConnectionsWhy)
	stalls := "" // where the run was not watched
	if st := r.Stalls; st != nil && st.Count == 0 {
		stalls = "none"
	} else if st != nil {
		stalls = fmt.Sprintf("%s, %s ms in all, the longest %s ms", doc.Brief(st.Count),
			doc.Number(float64(st.TotalNS)/1e6), doc.Number(float64(st.LongestNS)/1e6))
	}
	g.add("Stalls", stalls, "of the client")
	if c := s.Receipt; c != nil {
		late := fmt.Sprintf("p50 %s ms, at most %s ms", numberOrDash(c.Delay.P50), numberOrDash(c.Delay.Max))
		g.add("Read delay", late, "from the kernel's receive timestamps to the reads")
		g.add("Instants", map[string]string{InstantsRead: "of the client's reads",
			InstantsKernel: "of the kernel"}[c.Instants], fmt.Sprintf("%s without a certain one",
			doc.Many(c.Uncertain, "token event")))
	}
	g.add("Trace", r.TraceID, "id of the requests' traces")
	g.add("Started", ToSecond(r.Started), "")
	source := ""
	if r.Environment != nil {
		source = r.Environment.Host.Build
	}
	name, version := madeBy(r)
	g.add(name, version, source)
	return g
}
