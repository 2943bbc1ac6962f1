package history

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/replay/bench"
	"reprise/replay/report"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// label names the main metric with its unit.
func (h *History) label() string { return words(h.metrics[0]) }

// words name a metric within a sentence, as contracts do: p99 TTFT.
func words(m bench.Metric) string {
	label, _, _ := strings.Cut(m.Label(), " (")
	if at := strings.LastIndexByte(label, ' '); at > 0 && strings.HasPrefix(m.String(), label[at+1:]+"_") {
		return label[at+1:] + " " + label[:at]
	}
	return strings.ToLower(label[:1]) + label[1:]
}

// figure prints a value of a metric with its unit.
func figure(m bench.Metric, v float64) string {
	switch {
	case m.IsShare():
		return page.Percent(v)
	case strings.HasSuffix(m.Label(), "s)"):
		return page.Number(v) + " ms"
	}
	return page.Number(v)
}

// String says what moved, by how much, and between which runs.
func (c Change) String() string {
	m, err := bench.ParseMetric(c.Metric)
	if err != nil {
		return ""
	}
	verb := "rose"
	if c.Is < c.Was {
		verb = "fell"
	}
	by := page.Percent(math.Abs(c.Change))
	if m.IsShare() {
		by = page.PercentagePoints(math.Abs(c.Change)) + " points"
	}
	return fmt.Sprintf("%s %s by %s, from %s to %s", words(m), verb, by, figure(m, c.Was), figure(m, c.Is))
}

func day(w Where) string { return w.Started.Format("2006-01-02 15:04") }

// headline is the answer about the newest run's series in a few words, and the metric that it is about.
func (h *History) headline() (says string, metric int) {
	var last *Change
	for i := range h.Series[0].Judged {
		if c := h.Series[0].Judged[i].lastChange(); c != nil && (last == nil || c.Worse && !last.Worse) {
			last, metric = c, i
		}
	}
	switch {
	case last != nil:
		return last.String() + " at " + clipped(last.At.Name, 24), metric
	case h.Judged():
		return h.unchanged() + " found in " + page.Many(int64(h.Series[0].Trusted), "run"), 0
	}
	return "Too few trusted runs to find a change", 0
}

// unchanged names what was looked for and not found.
func (h *History) unchanged() string {
	if h.MinChange > 0 {
		return "No change of " + page.Percent(h.MinChange) + " or more"
	}
	return "No change"
}

// findings are the changes of a series and what was not judged, a sentence each.
func (s *Series) findings(unchangedWords string) (out []string) {
	var unchanged []string
	unjudged := map[string][]string{}
	var reasons []string
	last := ""
	for i := range s.Judged {
		j := &s.Judged[i]
		switch {
		case j.Why != "":
			if !slices.Contains(reasons, j.Why) {
				reasons = append(reasons, j.Why)
			}
			unjudged[j.Why] = append(unjudged[j.Why], words(j.metric))
		case len(j.Changes) == 0:
			unchanged = append(unchanged, words(j.metric))
		}
		for _, c := range slices.Backward(j.Changes) {
			at := fmt.Sprintf("between %s (%s) and %s (%s)", clipped(c.After.Name, 24), day(c.After), clipped(c.At.Name, 24), day(c.At))
			if at == last {
				at = "at the same place"
			} else {
				last = at
			}
			out = append(out, fmt.Sprintf("%s (%s), %s.", c.String(), map[bool]string{true: "worse", false: "better"}[c.Worse], at))
		}
	}
	if len(unchanged) > 0 {
		out = append(out, unchangedWords+" found in "+strings.Join(unchanged, ", ")+".")
	}
	for _, why := range reasons {
		out = append(out, fmt.Sprintf("Not judged: %s (%s).", strings.Join(unjudged[why], ", "), why))
	}
	return out
}

// about says what a series is of.
func (s *Series) about() string {
	r := s.all[len(s.all)-1]
	out := fmt.Sprintf("Series %s: %s", s.Name, page.Many(int64(s.Runs), "run"))
	if n := s.Runs - s.Trusted; n > 0 {
		out += fmt.Sprintf(" (%d not trusted, and not judged)", n)
	}
	out += ", workload " + strings.TrimSuffix(report.ShortDigest(r.Workload), "…")
	if r.Engine != "" {
		out += ", " + r.Engine
	}
	if len(s.Differs) > 0 {
		out += "; not as series A: " + strings.Join(s.Differs, ", ")
	}
	return out + "."
}

// verdict is that on a run in a word.
func (r *Run) verdict() string {
	if !r.Trustworthy {
		return "not trusted"
	}
	return "trusted"
}

// head is the main metric as the head of a column.
func (h *History) head() string {
	m := h.metrics[0]
	switch {
	case m.IsShare():
		return words(m)
	case strings.HasSuffix(m.Label(), "s)"):
		return words(m) + ", ms"
	}
	return words(m)
}

func (h *History) row(r *Run) []string {
	value := page.OrDash(r.Figures[0], page.Number)
	if h.metrics[0].IsShare() {
		value = page.OrDash(r.Figures[0], page.Percent)
	}
	return []string{r.Started.Format("2006-01-02 15:04"), clipped(r.Name(), 16), r.Series, clipped(r.Engine, 14), value, page.OrDash(r.RequestsPer, page.Number), r.verdict()}
}

// clipped is a name in so many characters: its begin and its end.
func clipped(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width/2]) + "…" + string(r[len(r)-width+width/2+1:])
	}
	return s
}

// method says how changes are found, and how sure they are.
func (h *History) method() []string {
	if h.Tests == 0 {
		return []string{fmt.Sprintf("A change is looked for among %d trusted runs of a series or more.", leastRuns(h.Alpha))}
	}
	below := ""
	if h.MinChange > 0 {
		below = fmt.Sprintf(" A change below %s of the level before is not reported (--min-change).", page.Percent(h.MinChange))
	}
	return []string{fmt.Sprintf("Changes are found by E-divisive with a permutation test.%s Where nothing changed, %s of such histories have a change found in them: each of the %s is judged at %s, and needs %d trusted runs.", below,
		page.Percent(h.Alpha), page.Many(int64(h.Tests), "test"), page.Percent(h.Alpha/float64(h.Tests)), leastRuns(h.Alpha/float64(h.Tests))),
		"A run is judged with those of the same workload, load, engine, hardware, deployment and client machine. The version and the commit of the engine may differ, and so may seeds.",
		"A permutation test takes runs for independent. Noise that lasts over several runs, such as a neighbour on the machine for some days, is found as a change."}
}

// WriteText writes the history for people: what changed, and the newest runs, in
// [textpage.AnswerLines] lines. With details it writes all series and runs.
func (h *History) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	if len(h.Runs) == 0 {
		p.Line("", fmt.Sprintf("No run below %s could be read.", h.Dir))
	}
	for i, s := range h.Series {
		if !o.Details && p.Lines() >= linesOfSeries {
			p.Line("", fmt.Sprintf("%d more series: --details has them.", len(h.Series)-i))
			break
		}
		s.write(p, i == 0, o.Details, h.unchanged())
	}
	for i, unread := range h.Unread {
		if i > 0 && !o.Details {
			p.Line("warning: ", page.Many(int64(len(h.Unread)-1), "more file")+" could not be read")
			break
		}
		p.LineAtMost(2, "warning: ", unread)
	}
	runs := slices.Clone(h.Runs)
	slices.Reverse(runs)
	if o.Details {
		h.writeDetails(p, runs)
		_, err := p.WriteTo(w)
		return err
	}
	// Besides runs there are the head, the rest, and the older runs, two of them after a
	// blank line.
	head, rows := []string{"started (UTC)", "run", "series", "engine", h.head(), "req/s", "verdict"}, [][]string{}
	for _, r := range runs[:min(len(runs), max(textpage.AnswerLines-p.Lines()-5, 3))] {
		rows = append(rows, h.row(r))
	}
	if len(h.Series) == 1 {
		head, rows = without("series", head, rows)
	}
	// A row that is cut in two says less than a row without what others say too.
	for _, column := range []string{"engine", "req/s", "series"} {
		if widthOf(head, rows) > p.Width() {
			head, rows = without(column, head, rows)
		}
	}
	if len(rows) > 0 {
		p.Columns(head, rows)
	}
	if n := len(h.Runs) - len(rows); n > 0 {
		p.Line("", "and "+page.Many(int64(n), "older run")+".")
	}
	p.Blank()
	p.Line("", o.Rest)
	_, err := p.WriteTo(w)
	return err
}

// without is a table without one of its columns, if it has that.
func without(column string, head []string, rows [][]string) ([]string, [][]string) {
	at := slices.Index(head, column)
	if at < 0 {
		return head, rows
	}
	for i := range rows {
		rows[i] = slices.Delete(rows[i], at, at+1)
	}
	return slices.Delete(head, at, at+1), rows
}

// widthOf is how many columns a table takes on a page.
func widthOf(head []string, rows [][]string) int {
	sum := -2
	for i := range head {
		widest := 0
		for _, row := range append([][]string{head}, rows...) {
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		sum += widest + 2
	}
	return sum
}

// linesOfSeries is from which line on an answer names no further series.
const linesOfSeries = 8

// write writes what was found in a series. An answer has of the first series four
// findings, and of the others the newest change.
func (s *Series) write(p *textpage.Page, first, details bool, unchanged string) {
	findings := s.findings(unchanged)
	switch changed := slices.ContainsFunc(s.Judged, func(j Judgment) bool { return len(j.Changes) > 0 }); {
	case details:
	case first:
		findings = findings[:min(len(findings), 4)]
	case changed:
		findings = findings[:1]
	default:
		findings = nil
	}
	for i, says := range findings {
		mark := "  "
		if i == 0 {
			mark = ""
		}
		p.Line(mark, says)
	}
	if details {
		p.Line("  ", s.about())
		return
	}
	p.LineAtMost(2, "", s.about())
}

// writeDetails writes every run with all of its metrics, and how changes are found.
func (h *History) writeDetails(p *textpage.Page, runs []*Run) {
	head, rows := h.detailRows(runs)
	p.Table("Runs, newest first", head, rows)
	p.Blank()
	for _, r := range runs {
		if !r.Trustworthy {
			p.Line("", fmt.Sprintf("%s is not trusted: %s.", textpage.Plain(r.File), strings.Join(r.Reasons, "; ")))
		}
	}
	for _, says := range h.method() {
		p.Line("", says)
	}
}

func (h *History) detailRows(runs []*Run) (head []string, rows [][]string) {
	head = []string{"file", "started (UTC)", "run", "series", "workload", "engine", "verdict", "contract", "requests", "req/s"}
	for _, m := range h.metrics {
		head = append(head, words(m))
	}
	for _, r := range runs {
		row := []string{textpage.Plain(r.File), r.Started.Format("2006-01-02 15:04:05"), clipped(r.Name(), 16), r.Series, shortWorkload(r.Workload), clipped(r.Engine, 24), r.verdict(),
			textpage.Plain(r.Contract), page.Brief(r.Requests), page.OrDash(r.RequestsPer, page.Number)}
		for i, m := range h.metrics {
			row = append(row, page.OrDash(r.Figures[i], func(v float64) string { return figure(m, v) }))
		}
		rows = append(rows, row)
	}
	return head, rows
}

func shortWorkload(digest string) string {
	return strings.TrimSuffix(strings.TrimPrefix(report.ShortDigest(digest), "sha256:"), "…")
}
