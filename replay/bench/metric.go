package bench

import (
	"strconv"
	"strings"
	"unicode"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/trace/doc"
)

// parseMetric reads the name of a figure that a suite can show, in any spelling.
func parseMetric(name string) (figure.Figure, error) { return figure.Parse(name, report.Summarised) }

// metric is the figure of a name in a result; none of a name that this version does not know.
func metric(name string) figure.Figure {
	f, err := parseMetric(name)
	if err != nil {
		return figure.Figure{Subject: &figure.Subject{Name: name, Label: printable(name)}}
	}
	return f
}

// heading names a figure for tables, with the unit that it is shown in.
func heading(f figure.Figure) string {
	unit := ""
	switch {
	case inSeconds(f):
		unit = " (s)"
	case f.Unit == figure.Share:
		unit = " (%)"
	case f.Unit == figure.Milliseconds || f.Unit == figure.MiB:
		unit = " (" + string(f.Unit) + ")"
	}
	return strings.ToUpper(f.Label[:1]) + f.Title()[1:] + unit
}

// inSeconds says that a figure is shown in seconds: that of a whole answer or session.
func inSeconds(f figure.Figure) bool { return f.Subject == figure.E2E || f.Sessions && f.Unit.IsTime() }

// inTable is a value in the unit of its heading.
func inTable(f figure.Figure, v float64) float64 {
	switch {
	case inSeconds(f):
		return v / 1000
	case f.Unit == figure.Share:
		return v * 100
	}
	return v
}

// A value is a metric of one run. Where a run has too few requests for a percentile
// the largest of its values stands in for it, and Largest says so.
type value struct {
	V       float64
	Largest bool
}

// valueOf is a figure of a run; not ok is one that the run does not have.
func valueOf(f figure.Figure, s *report.Summary) (v value, ok bool) {
	if v := s.Figure(f); v != nil {
		return value{V: *v}, true
	}
	f.Statistic = figure.Max
	if v := s.Figure(f); v != nil && f.Spread {
		return value{*v, true}, true
	}
	return value{}, false
}

// spelled prints a load as it stands in the names of levels and of arrival processes,
// which a sweep that goes on finds again: with four digits, and without zeros behind.
func spelled(v float64) string {
	if v >= 1000 && v < 1e9 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// A Figure is a metric over the runs of a row: the median, and the ends.
type Figure struct {
	Metric  string  `json:"metric"`
	V       float64 `json:"median"`
	Lo      float64 `json:"min"`
	Hi      float64 `json:"max"`
	Largest bool    `json:"largest,omitempty"` // too few requests for the percentile: it is the largest value
}

// format prints a figure in the unit of its heading; a mark follows what stands in for a percentile.
func format(of figure.Figure, f Figure, print func(float64) string) string {
	s := print(inTable(of, f.V))
	if f.Largest {
		s += "*"
	}
	return s
}

// signed prints a change in percent.
func signed(share float64) string {
	s := strconv.FormatFloat(share*100, 'f', 1, 64)
	if share >= 10 || share <= -10 {
		s = strconv.FormatFloat(share*100, 'f', 0, 64)
	}
	if !strings.HasPrefix(s, "-") {
		s = "+" + s
	}
	return strings.Replace(s, "-", "−", 1) + " %"
}

func cell(v *float64) string { return doc.OrDash(v, doc.Number) }

// printable takes control characters out of what names and servers say.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
