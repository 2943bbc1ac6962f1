package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/replay/figure"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// A Named is the summary of a run under the name that a report of several runs
// has for it. Its JSON is that of the [Summary], with the name.
type Named struct {
	Name string `json:"name"`
	Summary
}

// noClaim says what runs beside each other do not tell: what is noise and what is not takes repeats.
const noClaim = "Figures are as measured; reprise compare tells a difference from noise."

// Tier is the strictest tier of the runs, which everything that shows them inherits.
func Tier(runs []Named) string {
	return trace.Strictest(runs, func(r *Named) string { return r.Run.Tier })
}

// Overlay lays several runs over each other: a column and a curve for each, and on the first screen the figures that
// most look for. One run gives the document of [Page].
func Overlay(runs []Named) *doc.Document {
	if len(runs) == 1 {
		return Page(runs[0].Summary)
	}
	p := &doc.Document{
		Title:    fmt.Sprintf("Report of %d runs", len(runs)),
		Tag:      trace.TierNote("report", Tier(runs)),
		Headline: overlayHeadline(runs),
		Lead:     noClaim,
		Table:    firstOverlay(runs),
		About:    overlayProvenance(runs),
		Terms:    pageTerms(),
	}
	for _, n := range overlayNotes(runs) { // what must be known before the figures, and what may be read after them
		if n.Level == doc.Bad {
			p.Verdict = append(p.Verdict, n)
		} else {
			p.Notes = append(p.Notes, n)
		}
	}
	plots := distributions(runs)
	if len(plots) > 0 {
		p.Plot, plots = &plots[0], plots[1:]
	}
	for _, section := range []doc.Section{overlayFigures(runs), paretoSection(runs),
		{Title: "Distributions", Plots: plots}, loadSection(runs), hintSection(runs)} {
		if len(section.Text)+len(section.Tables)+len(section.Plots) > 0 {
			p.Sections = append(p.Sections, section)
		}
	}
	return p
}

// overlayHeadline says whether the runs can be trusted, and by which limits.
func overlayHeadline(runs []Named) string {
	untrusted := int64(0)
	for i := range runs {
		if !runs[i].Verdict.Trustworthy {
			untrusted++
		}
	}
	says := fmt.Sprintf("Each of the %d runs is trustworthy by itself", len(runs))
	if untrusted > 0 {
		says = fmt.Sprintf("Not trustworthy: %d of %d runs", untrusted, len(runs))
	}
	return runs[0].Verdict.Loosened.Beside(says) // one report judges all runs by the same limits
}

// overlayNotes are why runs are not trustworthy, what their contracts say, and what keeps them from being compared.
func overlayNotes(runs []Named) []doc.Note {
	var notes []doc.Note
	add := func(level doc.Level, text string) { notes = append(notes, doc.Note{Level: level, Text: text}) }
	for _, r := range runs {
		if !r.Verdict.Trustworthy {
			add(doc.Bad, r.Name+" is not trustworthy: "+r.Verdict.Reasons[0].Text)
		}
	}
	for i := range runs {
		for _, n := range contractNotes(&runs[i].Summary) {
			notes = append(notes, doc.Note{Level: n.Level, Word: textpage.Plain(runs[i].Name),
				Text: contractLine(&runs[i].Summary)})
		}
	}
	for i := range runs {
		if w := Warned(runs[i].Run.PresetWarning, runs[i].Run.Extrapolates); w != "" {
			add(doc.Warn, runs[i].Name+": "+textpage.Plain(w))
		}
	}
	for _, d := range differences(runs) {
		add(doc.Warn, d)
	}
	return notes
}

// differences say in what the runs differ that should be the same where they are
// to be compared.
func differences(runs []Named) []string {
	var out []string
	differ := func(of func(*Named) string, format string) {
		var values []string
		for i := range runs {
			if v := of(&runs[i]); !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 {
			out = append(out, fmt.Sprintf(format, strings.Join(values, ", ")))
		}
	}
	differ(func(r *Named) string { return orNone(ShortDigest(r.Run.Workload)) },
		"The workloads differ (digests %s): the runs did not do the same work, and their figures do not compare.")
	differ(func(r *Named) string {
		if r.Run.Simulated != "" {
			return "simulated"
		}
		return "measured"
	}, "Some runs were simulated and some were measured (%s).")
	differ(func(r *Named) string { return orNone(r.Run.API) }, "The runs used different APIs (%s).")
	differ(func(r *Named) string {
		return schedule(&r.Run)
	}, "The schedules differ (%s): the servers did not get the same load.")
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return textpage.Plain(s)
}

// An overlayRow is a figure of a run, with its name and its definition.
type overlayRow struct {
	name, term string
	of         func(*Summary) string
}

// overlayRows are the rows of several runs beside each other; the figures of servers come last.
var overlayRows = slices.Concat([]overlayRow{
	{"Verdict", "verdict.checks", func(s *Summary) string {
		return map[bool]string{true: "trusted", false: "not trusted"}[s.Verdict.Trustworthy]
	}},
	{"Contract", "contract.clauses.margin", func(s *Summary) string {
		switch c := s.Contract; {
		case c == nil:
			return "–"
		case c.Holds:
			return "holds"
		case c.Fails():
			return "fails"
		}
		return "not judged"
	}},
	{"Requests", "rows", func(s *Summary) string { return doc.Brief(s.Requests.Rows) }},
	{"Failed", "failed", func(s *Summary) string { return doc.Brief(s.Requests.Failed) }},
	{"Duration, s", "duration", func(s *Summary) string { return numberOrDash(s.DurationS) }},
	{"Offered, requests/s", "offered_requests",
		func(s *Summary) string { return numberOrDash(s.Throughput.OfferedPerS) }},
	figureRow("Done, requests/s", 0, figure.RequestRate),
	figureRow("Prompt tokens/s", 0, figure.PromptRate),
	figureRow("Output tokens/s", 0, figure.OutputRate),
	figureRow("Goodput from schedule", 0, figure.Goodput),
	{"TTFT from sent, p50", "ttft", func(s *Summary) string { return numberOrDash(s.Latency.FromSent.TTFT.P50) }},
	{"… p99", "ttft", func(s *Summary) string { return numberOrDash(s.Latency.FromSent.TTFT.P99) }},
	{"… p99.9", "ttft", func(s *Summary) string { return numberOrDash(s.Latency.FromSent.TTFT.P999) }},
	figureRow("TTFT from schedule, p99", figure.P99, figure.TTFT),
	figureRow("ITL, p50", figure.P50, figure.ITL),
	figureRow("… p99", figure.P99, figure.ITL),
	figureRow("TPOT, p50", figure.P50, figure.TPOT),
	figureRow("… p99", figure.P99, figure.TPOT),
	{"E2E from sent, p50", "e2e", func(s *Summary) string { return numberOrDash(s.Latency.FromSent.E2E.P50) }},
	{"… p99", "e2e", func(s *Summary) string { return numberOrDash(s.Latency.FromSent.E2E.P99) }},
	figureRow("Session time (s), p50", figure.P50, figure.SessionTime),
	figureRow("… p95", figure.P95, figure.SessionTime),
	figureRow("… of the server, mean", figure.Mean, figure.SessionServerTime),
	{"Sessions", "sessions", func(s *Summary) string {
		if s.Sessions == nil {
			return "–"
		}
		return doc.Brief(s.Sessions.Sessions)
	}},
	figureRow("Sessions succeeded", 0, figure.SessionSuccess),
	figureRow("Sessions/s", 0, figure.SessionRate),
	figureRow("In flight, mean", 0, figure.InFlight),
	figureRow("Hit ratio", 0, figure.HitRatio),
	{"… expected", "expected_ratio", func(s *Summary) string { return doc.OrDash(s.Cache.Expected, doc.Percent) }},
	figureRow("Send lag, p99", figure.P99, figure.SendLag),
	{"Tokens/s per user", "tokens_per_s_per_user",
		func(s *Summary) string { return numberOrDash(s.Efficiency.PerUser) }},
	{"GPUs", "output_tokens_per_s_per_gpu", func(s *Summary) string {
		if s.Efficiency.GPUsFrom != gpusGiven {
			return "not known"
		}
		return doc.Brief(int64(s.Efficiency.GPUs))
	}},
	{"Output/s per GPU", "output_tokens_per_s_per_gpu", func(s *Summary) string { return s.perGPU(true) }},
	{"… per instance", "output_tokens_per_s_per_gpu", func(s *Summary) string { return s.perGPU(false) }},
}, serverFigureRows())

// perGPU is the output of a GPU, where their number is given, or else the output of an instance.
func (s *Summary) perGPU(given bool) string {
	if (s.Efficiency.GPUsFrom == gpusGiven) != given {
		return "–"
	}
	return numberOrDash(s.Efficiency.PerGPU)
}

// serverFigureRows are what servers say of themselves and a run can be judged by.
func serverFigureRows() (rows []overlayRow) {
	for _, of := range figure.All() {
		switch {
		case !of.Servers:
		case of.Spread:
			rows = append(rows, figureRow("Servers: "+of.Label+", p95", figure.P95, of))
		default:
			rows = append(rows, figureRow("Servers: "+of.Label, 0, of))
		}
	}
	return rows
}

// figureRow shows a figure: times in ms, times of sessions in s, shares in percent.
func figureRow(name string, statistic figure.Statistic, of *figure.Subject) overlayRow {
	show := doc.Number
	switch {
	case of.Unit == figure.Share:
		show = doc.Percent
	case of.Sessions && of.Unit.IsTime():
		show = func(ms float64) string { return doc.Number(ms / 1000) }
	}
	return overlayRow{name, of.Definitions()[0], func(s *Summary) string {
		return doc.OrDash(s.Figure(figure.Of(statistic, of)), show)
	}}
}

// firstRows are the figures of the first screen.
var firstRows = []string{"Failed", "Done, requests/s", "Output tokens/s", "TTFT from sent, p50", "TTFT from sent, p99",
	"ITL, p50", "ITL, p99", "E2E from sent, p50", "E2E from sent, p99",
	"Session time (s), p50", "Session time (s), p95", "Output/s per GPU", "Contract"}

// firstScreenRows are as many as stand beside a plot on the first screen.
const firstScreenRows = 12

// firstOverlay has these figures, a column for each run.
func firstOverlay(runs []Named) *doc.Table {
	head, rows, terms := overlayTable(runs)
	t := &doc.Table{Caption: "Latencies in ms", Head: head, Align: doc.FiguresOf(len(head))}
	of := ""
	for i, row := range rows {
		name := row[0]
		if rest, more := strings.CutPrefix(name, "… "); more {
			name = of + ", " + rest
		} else {
			of, _, _ = strings.Cut(name, ", ")
		}
		if slices.Contains(firstRows, name) && len(t.Rows) < firstScreenRows {
			t.Rows, t.RowTerms = append(t.Rows, append([]string{name}, row[1:]...)), append(t.RowTerms, terms[i])
		}
	}
	return t
}

// overlayFigures has all figures, a column for each run.
func overlayFigures(runs []Named) doc.Section {
	head, rows, rowTerms := overlayTable(runs)
	return doc.Section{Title: "Figures", Tables: []doc.Table{{Caption: "A column for each run; latencies in ms",
		Head: head, Rows: rows, RowTerms: rowTerms, Align: doc.FiguresOf(len(head))}}}
}

// overlayTable has a column for each run, and no row that none has a figure for.
func overlayTable(runs []Named) (head []string, rows [][]string, rowTerms []string) {
	head = []string{""}
	for _, r := range runs {
		head = append(head, textpage.Plain(r.Name))
	}
	for _, f := range overlayRows {
		row, any := []string{f.name}, false
		for i := range runs {
			v := f.of(&runs[i].Summary)
			row, any = append(row, v), any || v != "–"
		}
		if any {
			rows, rowTerms = append(rows, row), append(rowTerms, termOf(f.term))
		}
	}
	return head, rows, rowTerms
}

// overlayProvenance says once what all runs share, and of each run the rest.
func overlayProvenance(runs []Named) []doc.Group {
	type fact = doc.Fact
	var all [][]fact
	seen := map[fact]int{}
	for i := range runs {
		var facts []fact
		for _, g := range provenanceGroups(&runs[i].Summary) {
			facts = append(facts, g.Facts...)
		}
		for _, f := range facts {
			seen[f]++
		}
		all = append(all, facts)
	}
	shared := doc.Group{Title: "The same in all runs"}
	for _, f := range all[0] {
		if seen[f] == len(runs) {
			shared.Facts = append(shared.Facts, f)
		}
	}
	out := []doc.Group{shared}
	for i, facts := range all {
		g := doc.Group{Title: runs[i].Name}
		for _, f := range facts {
			if seen[f] != len(runs) {
				g.Facts = append(g.Facts, f)
			}
		}
		if len(g.Facts) > 0 {
			out = append(out, g)
		}
	}
	return slices.DeleteFunc(out, func(g doc.Group) bool { return len(g.Facts) == 0 })
}

// hintSection has what the figures of each run may come from.
func hintSection(runs []Named) doc.Section {
	t := doc.Table{Head: []string{"run", "possible cause", "to confirm"},
		Align:     []doc.Align{doc.Left, doc.Left, doc.Left},
		HeadTerms: repeat(termOf("diagnoses"), 3)}
	for _, r := range runs {
		for _, d := range r.Diagnoses {
			t.Rows = append(t.Rows, []string{textpage.Plain(r.Name), d.Text, d.Confirm + "."})
		}
	}
	if len(t.Rows) == 0 {
		return doc.Section{}
	}
	return doc.Section{Title: "Possible causes", Tables: []doc.Table{t}}
}

// A spot is a run on the plane of what a GPU gives and what a user gets.
type spot struct {
	name          string
	user, gpu     float64
	beaten        string // a run that is better at both, or at one and as good at the other
	gpus          int
	gpusAreCounts bool
}

// spots are the runs that have both figures.
func spots(runs []Named) (out []spot, known bool) {
	known = true
	for _, r := range runs {
		e := r.Efficiency
		known = known && e.GPUsFrom == gpusGiven
		if e.PerGPU != nil && e.PerUser != nil {
			out = append(out, spot{name: textpage.Plain(r.Name), user: *e.PerUser, gpu: *e.PerGPU, gpus: e.GPUs,
				gpusAreCounts: e.GPUsFrom == gpusGiven})
		}
	}
	for i := range out {
		for _, o := range out {
			if a := &out[i]; o.user >= a.user && o.gpu >= a.gpu && (o.user > a.user || o.gpu > a.gpu) {
				a.beaten = o.name
				break
			}
		}
	}
	return out, known
}

// perWhat names the second axis. Where one run's GPUs are not known, those of no
// two can be held against each other, and all are per what they are.
func perWhat(known bool) string {
	if known {
		return "GPU"
	}
	return "instance"
}

// sayPareto says which runs no other beats.
func sayPareto(runs []Named) []string {
	all, known := spots(runs)
	if len(all) < 2 {
		return nil
	}
	if mixed(all) {
		return []string{"The number of GPUs is known of some runs only, so that what a GPU gives does not compare: " +
			"give --gpus for each."}
	}
	user := slices.MaxFunc(all, func(a, b spot) int { return cmp.Compare(a.user, b.user) })
	gpu := slices.MaxFunc(all, func(a, b spot) int { return cmp.Compare(a.gpu, b.gpu) })
	perUser := doc.Number(user.user) + " tokens/s per user"
	perGPU := doc.Number(gpu.gpu) + " output tokens/s per " + perWhat(known)
	says := []string{fmt.Sprintf("%s is best per user, %s, and %s is best per %s, %s.", user.name, perUser, gpu.name,
		perWhat(known), perGPU)}
	if user.name == gpu.name {
		says = []string{fmt.Sprintf("%s is best at both: %s, %s.", user.name, perUser, perGPU)}
	}
	for _, s := range all {
		if s.beaten != "" {
			says = append(says, fmt.Sprintf("%s is beaten by %s at both: %s tokens/s per user, %s per %s.",
				s.name, s.beaten, doc.Number(s.user), doc.Number(s.gpu), perWhat(known)))
		}
	}
	if !known {
		says = append(says, "The number of GPUs is not known, so output is per instance: an engine or an endpoint, "+
			"whatever its size. --gpus gives the number.")
	}
	return says
}

// mixed says that some spots are per GPU and some per instance.
func mixed(all []spot) bool {
	return slices.ContainsFunc(all, func(s spot) bool { return s.gpusAreCounts != all[0].gpusAreCounts })
}

// paretoSection draws the runs on both axes, with a line through those that no
// other beats.
func paretoSection(runs []Named) doc.Section {
	all, known := spots(runs)
	sec := doc.Section{Title: "Users and hardware", Text: sayPareto(runs)}
	if len(all) < 2 || mixed(all) {
		return sec
	}
	plot := doc.Plot{Title: "Output per " + perWhat(known) + " against speed per user", Kind: doc.Line,
		Text: "Up and to the right is better. Larger batches go up and to the left. The line joins the runs that " +
			"none beats at both.",
		XLabel: "tokens per second per user", YLabel: "output tokens per second per " + perWhat(known)}
	front := doc.Series{Name: "not beaten"}
	for _, s := range all { // in the order of the runs, which so have their colours of the other plots
		plot.Series = append(plot.Series, doc.Series{Name: s.name, X: []float64{s.user}, Y: []float64{s.gpu}})
	}
	slices.SortStableFunc(all, func(a, b spot) int { return cmp.Compare(a.user, b.user) })
	for _, s := range all {
		if s.beaten == "" {
			front.X, front.Y = append(front.X, s.user), append(front.Y, s.gpu)
		}
	}
	plot.Series = append(plot.Series, front)
	sec.Plots = defined("output_tokens_per_s_per_gpu", plot)
	t := doc.Table{Caption: "The same in figures",
		Head: []string{"run", "tokens/s per user", "output tokens/s per " + perWhat(known),
			perWhat(known) + "s", "beaten by"},
		HeadTerms: []string{"", termOf("tokens_per_s_per_user"), termOf("output_tokens_per_s_per_gpu"),
			termOf("output_tokens_per_s_per_gpu"), termOf("output_tokens_per_s_per_gpu")},
		Align: []doc.Align{doc.Left, doc.Right, doc.Right, doc.Right, doc.Left}}
	for _, s := range all {
		by := s.beaten
		by = cmp.Or(by, "none")
		t.Rows = append(t.Rows, []string{s.name, doc.Number(s.user), doc.Number(s.gpu),
			doc.Brief(int64(s.gpus)), by})
	}
	sec.Tables = []doc.Table{t}
	return sec
}
