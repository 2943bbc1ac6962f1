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

// sorted are the levels by load, those that confirm behind the ladder.
func (r *SweepResult) sorted() []*Level {
	out := r.Ladder()
	for i := range r.Levels {
		if r.Levels[i].Role != RoleLevel {
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
	if !l.Sure && (l.Outcome == Holds || l.Outcome == Fails) {
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

func cell(v *float64) string {
	if v == nil {
		return "–"
	}
	return figure(*v)
}
