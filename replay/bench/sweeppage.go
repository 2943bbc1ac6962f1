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

// Page lays the sweep out for a browser.
func (r *SweepResult) Page() *page.Page {
	p := &page.Page{Title: "Load sweep", Lead: "What a server does at one load after another, up to saturation.", Facts: r.facts()}
	note := func(when bool, level page.Level, text string) {
		if when {
			p.Notes = append(p.Notes, page.Note{Level: level, Text: text})
		}
	}
	if l := r.Untrusted(); l != nil {
		note(true, page.Bad, fmt.Sprintf("The sweep is not trustworthy: at %s the client was the limit. %s", l.Name, l.Why))
	}
	note(r.PresetWarning != "", page.Warn, printable(r.PresetWarning))
	note(r.Closed, page.Warn, closedNote)
	tier := trace.TierNote("page", r.Tier)
	note(tier != "", page.Warn, tier)
	note(r.Hypothesis != "", page.Info, "Hypothesis: "+r.Hypothesis)
	head, rows := r.table(sweepColumns)
	found := page.Section{Title: "What was found", Text: append(r.Says(), r.remarks()...)}
	levels := page.Section{Title: "Levels", Tables: []page.Table{{Head: head, Rows: rows,
		Caption: "Latencies in ms, from due but where sent is said. Offered, achieved, output tokens and in flight are of the second half of a level, without the drain at its end. A question mark: within chance"}}}
	made := page.Section{Title: "How it was made", Tables: []page.Table{{Head: []string{"", ""}, Align: []page.Align{page.Left, page.Left}}}}
	for _, row := range [][]string{{"command", r.Command}, {"workload", r.Workload}, {"simulated", r.Simulated}} {
		if row[1] != "" {
			made.Tables[0].Rows = append(made.Tables[0].Rows, row)
		}
	}
	p.Sections = append(p.Sections, found, page.Section{Title: "Curves", Plots: r.plots()}, levels, made)
	return p
}

func (r *SweepResult) facts() []page.Fact {
	var out []page.Fact
	for _, f := range []page.Fact{{Label: "Endpoints", Value: strings.Join(r.Endpoints, ", ")}, {Label: "Model", Value: r.Model},
		{Label: "Server", Value: r.Server, Note: "its version"}, {Label: "Tier", Value: r.Tier},
		{Label: "Arrivals", Value: r.Process}, {Label: "Seed", Value: r.Seed}, {Label: "Contract", Value: strings.Join(r.Contract, "; ")},
		{Label: "Started", Value: r.Started}, {Label: "Reprise", Value: r.Version}} {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	return out
}

// plots are of the levels of the ladder that can be trusted.
func (r *SweepResult) plots() []page.Plot {
	x, unit := "offered rate", "req/s"
	if r.Closed {
		x, unit = "requests in flight", ""
	}
	series := func(name string, of func(l *Level) *float64) page.Series {
		s := page.Series{Name: name}
		for _, l := range r.Ladder() {
			if v := of(l); v != nil && l.Outcome != outcomeUntrusted {
				s.X, s.Y = append(s.X, l.Load), append(s.Y, *v)
			}
		}
		return s
	}
	plot := func(title, about, label, yUnit string, log bool, of ...page.Series) page.Plot {
		return page.Plot{Title: title, Text: about, Kind: page.Line, XLabel: x, XUnit: unit, YLabel: label, YUnit: yUnit, LogY: log, Series: of}
	}
	return page.Drawn(
		plot("TTFT", "From due, so that waiting in a queue is in it.", "TTFT", "ms", true,
			series("p50", func(l *Level) *float64 { return l.TTFTDue.P50 }), series("p99", func(l *Level) *float64 { return l.TTFTDue.P99 })),
		plot("Between tokens", "", "TPOT and ITL", "ms", true,
			series("TPOT p50", func(l *Level) *float64 { return l.TPOT.P50 }), series("TPOT p99", func(l *Level) *float64 { return l.TPOT.P99 }),
			series("ITL p99", func(l *Level) *float64 { return l.ITL.P99 })),
		plot("Requests", "Where the two part, the server does not follow.", "requests per second", "", false,
			series("offered", func(l *Level) *float64 { return l.Flow.OfferedPerS }), series("achieved", func(l *Level) *float64 { return l.Flow.AchievedPerS })),
		plot("In flight", "Sent and not over, on average over the second half of a level.", "requests", "", false, series("mean", func(l *Level) *float64 { return l.Flow.InFlight })),
	)
}

// WriteText writes the sweep for people: what came of it, and a line for each level.
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
	wrap(&b, "Latencies in ms, TTFT from due. Offered and achieved requests/s, output tokens and those in flight on average are of the second half of a level, without the drain at its end. A question mark: within chance.")
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

// Says are sentences about what came of the sweep.
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
	if h.Estimate != nil {
		says = append(says, fmt.Sprintf("Interpolated between the last level that holds and the first that does not: %s %s.", figure(*h.Estimate), unit))
	}
	lo, hi := "no level", "no level"
	if h.Low != nil {
		lo = figure(*h.Low) + " " + unit
	}
	if h.High != nil {
		hi = figure(*h.High) + " " + unit
	}
	return append(says, fmt.Sprintf("Beyond chance, at 95 %% and as if requests were independent: %s holds, %s does not.", lo, hi))
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

// remarks say of levels what does not fit into the table.
func (r *SweepResult) remarks() (out []string) {
	for _, l := range r.sorted() {
		for _, s := range []string{l.Why, l.Note} {
			if s != "" {
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
	{"rate", func(l *Level) string { return figure(l.Load) }},
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
