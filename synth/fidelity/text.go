package fidelity

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace"
)

// textWidth is the widest line that WriteText writes.
const textWidth = 96

// WriteText prints f and the checks of its gate for people: the verdict, then
// tables of at most 96 columns without colours, then what to know of them.
func (f Report) WriteText(w io.Writer, checks []Check) error {
	var b strings.Builder
	line := func(words string) {
		for _, l := range strings.Split(text.WrapSoft(words, textWidth), "\n") {
			b.WriteString(strings.TrimRight(l, " ") + "\n")
		}
	}
	line(gateVerdict(checks))
	if tier := trace.TierNote("report", f.Tier); tier != "" {
		line(tier)
	}
	for _, c := range checks {
		if c.OK == nil {
			line("  not applicable: " + c.Name + ": " + c.Why)
		} else if c.Failed() && c.Why != "" {
			line("  " + c.Name + ": " + c.Why)
		}
	}
	byName := map[string]Check{}
	for _, c := range checks {
		byName[c.Name] = c
	}
	var rows [][]string
	for _, m := range f.Measures {
		about := aboutMeasure(m.Name)
		row := []string{m.Name, about.form.print(m.Ref), about.form.print(m.Cand), asRatio.print(m.Distance), noValue, ""}
		if c, ok := byName[m.Name]; ok {
			row[4], row[5] = strconv.FormatFloat(c.Limit, 'g', -1, 64), c.result()
		}
		rows = append(rows, row)
	}
	writeTable(&b, "Measures", []string{"measure", "reference", "candidate", "distance", "limit", "check"}, rows)
	rows = nil
	for _, p := range f.IDC {
		rows = append(rows, []string{strconv.FormatFloat(p.WindowS, 'g', -1, 64), asNumber.print(p.Ref), asNumber.print(p.Cand), p.LeftOut})
	}
	writeTable(&b, "IDC by scale", []string{"window, s", "reference", "candidate", "left out"}, rows)
	if f.Sessions != "" {
		fmt.Fprintf(&b, "\nTurns and turn gaps are of %s sessions.\n", f.Sessions)
	}
	for _, warning := range f.Warnings {
		line("warning: " + warning.Message)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// gateVerdict counts the checks.
func gateVerdict(checks []Check) string {
	var failed []string
	applied := 0
	for _, c := range checks {
		if c.OK != nil {
			applied++
		}
		if c.Failed() {
			failed = append(failed, c.Name)
		}
	}
	s := fmt.Sprintf("All %d checks hold", applied)
	if len(failed) > 0 {
		s = fmt.Sprintf("%d of %d checks do not hold: %s", len(failed), applied, strings.Join(failed, ", "))
	}
	if n := len(checks) - applied; n > 0 {
		s += fmt.Sprintf("; %d do not apply", n)
	}
	return s + "."
}

// writeTable prints a title and a table, with numbers to the right.
func writeTable(b *strings.Builder, title string, head []string, rows [][]string) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	cells := func(row []string) table.Row {
		out := make(table.Row, len(row))
		for i := range row {
			out[i] = row[i]
		}
		return out
	}
	t.AppendHeader(cells(head))
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	var right []table.ColumnConfig
	for i := 2; i < len(head); i++ {
		right = append(right, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	fmt.Fprintf(b, "\n%s\n%s\n", title, t.Render())
}
