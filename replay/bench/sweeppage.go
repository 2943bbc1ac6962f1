package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the sweep out for a browser: the highest load as the headline, beside the
// curve with the limits of the contract.
func (r *SweepResult) Page() *page.Page {
	p := &page.Page{Title: "Load sweep", Tag: trace.TierNote("page", r.Tier), Lead: r.lead(), Headline: r.headline(),
		Facts: r.facts(), Plot: r.mainPlot(), About: r.provenance()}
	if at := r.atHighest(); at != nil && at.Contract != nil {
		p.Table = at.Contract.Table("Contract at " + r.load(at.Load))
	}
	if l := r.Untrusted(); l != nil {
		p.Verdict = append(p.Verdict, page.Note{Level: page.Bad, Word: "Not trustworthy", Text: fmt.Sprintf("at %s the client was the limit: %s", l.Name, l.Why)})
	}
	if r.PresetWarning != "" {
		p.Verdict = append(p.Verdict, page.Note{Level: page.Warn, Text: printable(r.PresetWarning) + "."})
	}
	if r.Closed {
		p.Notes = append(p.Notes, page.Note{Level: page.Warn, Text: closedNote})
	}
	if r.Hypothesis != "" {
		p.Notes = append(p.Notes, page.Note{Level: page.Info, Word: "Hypothesis", Text: r.Hypothesis})
	}
	head, rows := r.table(sweepColumns)
	p.Sections = append(p.Sections,
		page.Section{Title: "How the sweep went", Text: append(r.Says(), r.remarks()...)},
		page.Section{Title: "Levels", Tables: []page.Table{{Head: head, Rows: rows, Caption: "Latencies in ms, from due unless it says sent"}},
			Text: []string{"Offered, achieved, output tokens and in flight are of the second half of a level, without the drain at its end. " + chanceNote}},
		page.Section{Title: "Curves", Plots: r.plots()})
	return p
}

const chanceNote = "? = not statistically significant."

// load prints a load with its unit.
func (r *SweepResult) load(v float64) string {
	if r.Closed {
		return figure(v) + " in flight"
	}
	return figure(v) + " req/s"
}

// headline is the answer in a few words.
func (r *SweepResult) headline() string {
	holds := "within the contract"
	if len(r.Contract) == 0 {
		holds = "before saturation"
	}
	switch h := &r.Highest; {
	case h.Load == nil && len(r.Contract) == 0:
		return "No load was held"
	case h.Load == nil:
		return "No load is within the contract"
	case h.AtLeast:
		return fmt.Sprintf("At least %s %s", r.load(*h.Load), holds)
	default:
		return r.load(*h.Load) + " " + holds
	}
}

// lead says what was swept.
func (r *SweepResult) lead() string {
	var parts []string
	if r.Model != "" {
		parts = append(parts, "Model "+printable(r.Model))
	}
	switch {
	case r.Simulated != "":
		parts = append(parts, "a model of an engine in virtual time")
	case len(r.Endpoints) > 0:
		parts = append(parts, strings.Join(r.Endpoints, ", "))
	}
	if levels := r.Ladder(); len(levels) > 0 {
		parts = append(parts, fmt.Sprintf("%s from %s to %s", page.Many(int64(len(levels)), "level"), figure(levels[0].Load), r.load(levels[len(levels)-1].Load)))
	}
	if r.Process != "" {
		parts = append(parts, r.Process+" arrivals")
	}
	return strings.Join(parts, ", ") + "."
}

// atHighest is the last run at the highest load, which is the one that confirms it where
// one does; nil without a highest load.
func (r *SweepResult) atHighest() (at *Level) {
	for i := range r.Levels {
		if l := &r.Levels[i]; r.Highest.Load != nil && l.Load == *r.Highest.Load {
			at = l
		}
	}
	return at
}

func (r *SweepResult) facts() (out []page.Fact) {
	put := func(label, value, note string) {
		out = append(out, page.Fact{Label: label, Value: value, Note: note})
	}
	if k := r.Knee; k != nil {
		note := "of latency over throughput"
		if !k.Found {
			note = "or beyond: the last level"
		}
		put("Knee", r.load(k.Load), note)
	}
	if h := &r.Highest; h.Load != nil && h.Low != nil && h.High != nil {
		put("95 % interval", figure(*h.Low)+" to "+figure(*h.High), "highest load held, lowest not held")
	}
	if h := &r.Highest; h.Load != nil && !h.AtLeast {
		value := "no"
		if h.Sustained {
			value = "yes"
		}
		put("Sustained", value, "by a longer run at that load")
	}
	if at := r.atHighest(); at != nil {
		if at.Contract == nil {
			put("TTFT p50 / p99", cell(at.TTFTDue.P50)+" / "+cell(at.TTFTDue.P99)+" ms", "from due, at that load")
		}
		if at.Flow.OutputPerS != nil {
			put("Output", figure(*at.Flow.OutputPerS)+" tok/s", "at that load")
		}
		if at.Flow.InFlight != nil && !r.Closed {
			put("In flight", figure(*at.Flow.InFlight), "mean, at that load")
		}
		put("Errors", at.errors(), "at that load")
	}
	return out
}

// provenance is where the sweep comes from.
func (r *SweepResult) provenance() []page.Group {
	g := page.Group{Title: "Sweep"}
	for _, f := range []page.Fact{{Label: "Command", Value: r.Command}, {Label: "Contract", Value: strings.Join(r.Contract, "; ")},
		{Label: "Endpoints", Value: strings.Join(r.Endpoints, ", ")}, {Label: "Model", Value: r.Model},
		{Label: "Server", Value: r.Server, Note: "its version"}, {Label: "Simulated", Value: r.Simulated},
		{Label: "Workload", Value: r.Workload, Note: "digest of its rows"}, {Label: "Tier", Value: r.Tier},
		{Label: "Arrivals", Value: r.Process}, {Label: "Seed", Value: r.Seed},
		{Label: "Started", Value: r.Started}, {Label: "Reprise", Value: r.Version}} {
		if f.Value != "" {
			g.Facts = append(g.Facts, f)
		}
	}
	return []page.Group{g}
}

// series draws a figure of levels over their load, of those that can be trusted.
func series(name string, levels []*Level, of func(l *Level) *float64) page.Series {
	s := page.Series{Name: name}
	for _, l := range levels {
		if v := of(l); v != nil && l.Outcome != outcomeUntrusted {
			s.X, s.Y = append(s.X, l.Load), append(s.Y, *v)
		}
	}
	return s
}

// plot is over the load, with the knee and the highest load marked.
func (r *SweepResult) plot(title, about, label, yUnit string, log bool, of ...page.Series) page.Plot {
	p := page.Plot{Title: title, Text: about, Kind: page.Line, XLabel: "offered rate", XUnit: "req/s", YLabel: label, YUnit: yUnit, LogY: log, Series: of}
	if r.Closed {
		p.XLabel, p.XUnit = "requests in flight", ""
	}
	if h := r.Highest.Load; h != nil {
		p.Marks = append(p.Marks, page.Mark{Axis: page.AxisX, At: *h, Label: "highest " + figure(*h)})
	}
	if k := r.Knee; k != nil && k.Found {
		p.Marks = append(p.Marks, page.Mark{Axis: page.AxisX, At: k.Load, Label: "knee " + figure(k.Load)})
	}
	return p
}

// mainPlot has what the contract limits in milliseconds, each with its limit; TTFT where
// it limits nothing of the kind. nil without a level that can be trusted.
func (r *SweepResult) mainPlot() *page.Plot {
	levels := byLoad(r.Levels)
	out := r.ttft()
	if i := slices.IndexFunc(levels, func(l *Level) bool { return l.Contract != nil }); i >= 0 {
		var of []page.Series
		var limits []page.Mark
		for j, c := range levels[i].Contract.Clauses {
			if c.Unit != "ms" {
				continue
			}
			name := c.Clause
			if c.Where != "" {
				name += " where " + c.Where
			}
			of = append(of, series(printable(name), levels, func(l *Level) *float64 {
				if l.Contract == nil || j >= len(l.Contract.Clauses) {
					return nil
				}
				return l.Contract.Clauses[j].Measured
			}))
			limits = append(limits, page.Mark{Axis: page.AxisY, At: c.Allowed, Label: "limit " + figure(c.Allowed) + " ms", Series: len(of)})
		}
		if len(of) > 0 {
			out = r.plot("Latency over load", "What the contract limits, with its limits.", "latency", "ms", true, of...)
			out.Marks = append(out.Marks, limits...)
		}
	}
	for _, s := range out.Series {
		if len(s.X) > 0 {
			return &out
		}
	}
	return nil
}

func (r *SweepResult) ttft() page.Plot {
	levels := r.Ladder()
	return r.plot("TTFT", "From due, so that waiting in a queue is in it.", "TTFT", "ms", true,
		series("p50", levels, func(l *Level) *float64 { return l.TTFTDue.P50 }), series("p99", levels, func(l *Level) *float64 { return l.TTFTDue.P99 }))
}

// plots show the levels of the ladder.
func (r *SweepResult) plots() []page.Plot {
	levels := r.Ladder()
	plots := []page.Plot{
		r.plot("Between tokens", "", "TPOT and ITL", "ms", true,
			series("TPOT p50", levels, func(l *Level) *float64 { return l.TPOT.P50 }), series("TPOT p99", levels, func(l *Level) *float64 { return l.TPOT.P99 }),
			series("ITL p99", levels, func(l *Level) *float64 { return l.ITL.P99 })),
		r.plot("Requests", "Where the two part, the server does not follow.", "requests per second", "", false,
			series("offered", levels, func(l *Level) *float64 { return l.Flow.OfferedPerS }), series("achieved", levels, func(l *Level) *float64 { return l.Flow.AchievedPerS })),
		r.plot("In flight", "Sent and not over, on average over the second half of a level.", "requests", "", false, series("mean", levels, func(l *Level) *float64 { return l.Flow.InFlight })),
	}
	if main := r.mainPlot(); main != nil && main.Title != "TTFT" {
		plots = append([]page.Plot{r.ttft()}, plots...)
	}
	return page.Drawn(plots...)
}

// WriteText writes the sweep for people: the answer, and a line for each level.
func (r *SweepResult) WriteText(w io.Writer) error {
	var b strings.Builder
	if tier := trace.TierNote("table", r.Tier); tier != "" {
		wrap(&b, tier)
	}
	if r.PresetWarning != "" {
		wrap(&b, "Warning: "+r.PresetWarning+".")
	}
	if r.Hypothesis != "" {
		wrap(&b, "Hypothesis: "+r.Hypothesis)
	}
	if r.Closed {
		wrap(&b, closedNote)
	}
	for _, line := range r.Says() {
		wrap(&b, line)
	}
	fmt.Fprintln(&b)
	if err := r.writeTable(&b); err != nil {
		return err
	}
	fmt.Fprintln(&b)
	wrap(&b, "Latencies in ms, TTFT from due. Offered and achieved requests/s, output tokens and those in flight on average are of the second half of a level, without the drain at its end. "+chanceNote)
	for _, line := range r.remarks() {
		wrap(&b, line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sweepWidth is the widest line of text, in columns.
const sweepWidth = 110

func wrap(b *strings.Builder, s string) {
	for _, part := range strings.Split(text.WrapSoft(printable(s), sweepWidth), "\n") {
		fmt.Fprintln(b, strings.TrimRight(part, " "))
	}
}

// writeTable writes the columns that decide, under heads of two lines. TTFT from sent,
// errors where there are none, and what a closed loop offered, which is what it
// achieved, are in the JSON and on the page.
func (r *SweepResult) writeTable(b *strings.Builder) error {
	failed := slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Requests.ErrorShare != nil && *l.Requests.ErrorShare > 0 })
	columns := slices.DeleteFunc(slices.Clone(sweepColumns), func(c sweepColumn) bool {
		return strings.HasPrefix(c.head, "sent ") || c.head == "errors" && !failed || c.head == "offered" && r.Closed
	})
	head, rows := r.table(columns)
	above := make([]string, len(head))
	for i, h := range head {
		if group, rest, ok := strings.Cut(h, " "); ok {
			above[i], head[i] = group, rest
		}
	}
	var lines strings.Builder
	t := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{above, head}, rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	err := t.Flush()
	for line := range strings.Lines(lines.String()) {
		fmt.Fprintln(b, strings.TrimRight(strings.TrimPrefix(line, "  "), " \n"))
	}
	return err
}

const closedNote = "The loop is closed: the next request waits for one to end, so that no queue can form and saturation does not show. Rates say what users would see."

// Says are sentences about the outcome of the sweep.
func (r *SweepResult) Says() []string {
	unit := "req/s"
	if r.Closed {
		unit = "in flight"
	}
	says := []string{"Stopped: " + r.Stopped.Text + "."}
	switch k := r.Knee; {
	case k == nil:
	case k.Found:
		says = append(says, fmt.Sprintf("Knee: %s %s, where power is largest (%s).", figure(k.Load), unit, k.Of))
	default:
		says = append(says, fmt.Sprintf("Knee: not found up to %s %s; power still grew (%s).", figure(k.Load), unit, k.Of))
	}
	return append(says, r.Highest.says(unit, r.holds())...)
}

// holds is what a level has to do.
func (r *SweepResult) holds() string {
	switch {
	case len(r.Contract) == 0 && r.Closed:
		return "that does not saturate the server"
	case len(r.Contract) == 0:
		return "that the server follows"
	}
	return "within the contract (" + strings.Join(r.Contract, "; ") + ")"
}

func (h *Highest) says(unit, holds string) []string {
	if h.Load == nil {
		return []string{fmt.Sprintf("Highest load %s: none was confirmed.", holds)}
	}
	out := fmt.Sprintf("Highest load %s: %s %s", holds, figure(*h.Load), unit)
	if h.AtLeast {
		out += " at least, since no level failed"
	}
	if h.Sustained {
		out += "; a longer run at it held as well"
	}
	says := []string{out + "."}
	if h.Estimate != nil && figure(*h.Estimate) != figure(*h.Load) {
		says = append(says, fmt.Sprintf("Interpolated between the last level that holds and the first that does not: %s %s.", figure(*h.Estimate), unit))
	}
	lo, hi := "no level", "no level"
	if h.Low != nil {
		lo = figure(*h.Low) + " " + unit
	}
	if h.High != nil {
		hi = figure(*h.High) + " " + unit
	}
	return append(says, fmt.Sprintf("Statistically significant (95 %%, as if requests were independent): %s holds, %s does not.", lo, hi))
}

// sorted are the levels by load, those that confirm after the ladder.
func (r *SweepResult) sorted() []*Level {
	out := r.Ladder()
	for i := range r.Levels {
		if r.Levels[i].Role != roleLevel {
			out = append(out, &r.Levels[i])
		}
	}
	return out
}

// remarks say about levels what neither the table nor the end of the sweep says.
func (r *SweepResult) remarks() (out []string) {
	for _, l := range r.sorted() {
		for _, s := range []string{l.Why, l.Note} {
			if s != "" && !strings.HasSuffix(r.Stopped.Text, l.Name+": "+s) { // which is said
				out = append(out, l.Name+": "+s)
			}
		}
	}
	return out
}

// A sweepColumn is a column of the table of levels.
type sweepColumn struct {
	head string
	of   func(l *Level) string
}

var sweepColumns = []sweepColumn{
	{"level", func(l *Level) string { return l.Role }},
	{"rate", func(l *Level) string { return cell(&l.Load) }},
	{"outcome", (*Level).outcome},
	{"offered", func(l *Level) string { return cell(l.Flow.OfferedPerS) }},
	{"achieved", func(l *Level) string { return cell(l.Flow.AchievedPerS) }},
	{"TTFT p50", func(l *Level) string { return cell(l.TTFTDue.P50) }},
	{"TTFT p99", func(l *Level) string { return cell(l.TTFTDue.P99) }},
	{"sent p50", func(l *Level) string { return cell(l.TTFTSent.P50) }},
	{"sent p99", func(l *Level) string { return cell(l.TTFTSent.P99) }},
	{"TPOT p50", func(l *Level) string { return cell(l.TPOT.P50) }},
	{"TPOT p99", func(l *Level) string { return cell(l.TPOT.P99) }},
	{"ITL p99", func(l *Level) string { return cell(l.ITL.P99) }},
	{"output tok/s", func(l *Level) string { return cell(l.Flow.OutputPerS) }},
	{"errors", (*Level).errors},
	{"in flight", func(l *Level) string { return cell(l.Flow.InFlight) }},
	{"n", func(l *Level) string { return fmt.Sprint(l.TTFTDue.Count) }},
}

// errors is the share of requests that failed.
func (l *Level) errors() string { return page.OrDash(l.Requests.ErrorShare, page.Percent) }

// outcome marks what chance may have done.
func (l *Level) outcome() string {
	if !l.Sure && (l.Outcome == outcomeHolds || l.Outcome == outcomeFails) {
		return l.Outcome + "?"
	}
	return l.Outcome
}

// table is the curve of latency over load.
func (r *SweepResult) table(columns []sweepColumn) (head []string, rows [][]string) {
	for _, c := range columns {
		if c.head == "rate" && r.Closed {
			c.head = "concurrency"
		}
		head = append(head, c.head)
	}
	for _, l := range r.sorted() {
		var row []string
		for _, c := range columns {
			row = append(row, c.of(l))
		}
		rows = append(rows, row)
	}
	return head, rows
}
