package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"reprise/trace"
)

// WriteText writes the sweep for people: what came of it, and a line for each level.
func (r *SweepResult) WriteText(w io.Writer) error {
	var b strings.Builder
	if tier := trace.TierNote("table", r.Tier); tier != "" {
		fmt.Fprintln(&b, tier)
	}
	if r.Hypothesis != "" {
		fmt.Fprintf(&b, "Hypothesis: %s\n", r.Hypothesis)
	}
	if r.Closed {
		fmt.Fprintln(&b, closedNote)
	}
	for _, line := range r.Says() {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintln(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	head, rows := r.table()
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(&b, "\nTTFT, TPOT and ITL in ms; TTFT from due but where sent is said. Offered, achieved and output tokens are of the second\nhalf of a level. A question mark: within chance.")
	for _, line := range r.remarks() {
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(w, b.String())
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

// table is the curve of latency over load.
func (r *SweepResult) table() (head []string, rows [][]string) {
	what := "rate"
	if r.Closed {
		what = "concurrency"
	}
	head = []string{"level", what, "outcome", "offered/s", "achieved/s", "TTFT p50", "p99", "sent p50", "sent p99", "TPOT p50", "p99", "ITL p99", "out tok/s", "errors", "in flight", "n"}
	for _, l := range r.sorted() {
		outcome := l.Outcome
		if !l.Sure && (outcome == Holds || outcome == Fails) {
			outcome += "?"
		}
		rows = append(rows, []string{l.Role, figure(l.Load), outcome, cell(l.Flow.OfferedPerS), cell(l.Flow.AchievedPerS),
			cell(l.TTFTDue.P50), cell(l.TTFTDue.P99), cell(l.TTFTSent.P50), cell(l.TTFTSent.P99), cell(l.TPOT.P50), cell(l.TPOT.P99), cell(l.ITL.P99),
			cell(l.Flow.OutputPerS), percentage(l.Requests.ErrorShare), cell(l.InFlight), fmt.Sprint(l.TTFTDue.Count)})
	}
	return head, rows
}

func cell(v *float64) string {
	if v == nil {
		return "–"
	}
	return figure(*v)
}

func percentage(share *float64) string {
	if share == nil {
		return "–"
	}
	return figure(*share*100) + " %"
}
