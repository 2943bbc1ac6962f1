package history

import (
	"fmt"
	"slices"
	"strings"

	"reprise/trace/page"
	"reprise/trace/textpage"
)

// Page lays the history out for a browser: what changed as the headline, beside the main
// metric over the runs of the newest run's series.
func (h *History) Page() *page.Page {
	p := &page.Page{Title: "History"}
	if len(h.Runs) == 0 {
		p.Headline = "No run could be read"
		return p
	}
	newest, first := h.Newest(), h.Series[0]
	headline, main := h.headline()
	p.Headline = headline
	from, to := h.Runs[0].Started.Format("2 Jan 2006"), newest.Started.Format("2 Jan 2006")
	when := "from " + from + " to " + to
	if from == to {
		when = "of " + to
	}
	p.Lead = fmt.Sprintf("%s %s. %s", page.Many(int64(len(h.Runs)), "run"), when, first.about())
	if !newest.Trustworthy {
		p.Verdict = append(p.Verdict, page.Note{Level: page.Warn, Word: "Newest run not trusted", Text: newest.Reasons[0] + "."})
	}
	p.Plot = first.plot(main)
	p.Table = &page.Table{Caption: "Last change of each metric", Head: []string{"", "before", "now", "change", "at"}, Align: []page.Align{page.Left, page.Right, page.Right, page.Right, page.Left}}
	for i := range first.Judged {
		p.Table.Rows = append(p.Table.Rows, first.Judged[i].row())
	}
	p.Facts = []page.Fact{{Label: "Newest run", Value: clipped(newest.Name(), 16), Note: newest.Started.Format("2 Jan 2006 15:04") + " UTC, " + newest.verdict()},
		{Label: "Runs", Value: page.Brief(int64(first.Runs)), Note: fmt.Sprintf("%d trusted", first.Trusted)}}
	for _, u := range h.Unread {
		p.Notes = append(p.Notes, page.Note{Level: page.Warn, Word: "Not read", Text: textpage.Plain(u)})
	}
	for _, s := range h.Series {
		section := page.Section{Title: "Series " + s.Name, Text: append([]string{s.about()}, s.findings(h.unchanged())...)}
		if len(h.Series) == 1 {
			section.Title = "All metrics"
		}
		for i := range s.Judged {
			if s == first && i == main {
				continue
			}
			if plot := s.plot(i); plot != nil {
				section.Plots = append(section.Plots, *plot)
			}
		}
		p.Sections = append(p.Sections, section)
	}
	if plot := first.days(main); plot != nil {
		p.Sections = append(p.Sections, page.Section{Title: "By day", Plots: []page.Plot{*plot}})
	}
	runs := slices.Clone(h.Runs)
	slices.Reverse(runs)
	head, rows := h.detailRows(runs)
	p.Sections = append(p.Sections, page.Section{Title: "Runs", Tables: []page.Table{{Caption: "Newest first", Head: head, Rows: rows}}},
		page.Section{Title: "How changes are found", Text: h.method()})
	return p
}

// row is the last change of a metric for the first screen.
func (j *Judgment) row() []string {
	last := j.lastChange()
	switch {
	case j.Why != "":
		return []string{words(j.metric), "–", "–", "not judged", "–"}
	case last == nil:
		return []string{words(j.metric), "–", figure(j.metric, j.levels[len(j.levels)-1].median), "none", "–"}
	}
	by := page.Percent(last.Change)
	if last.Change > 0 {
		by = "+" + by
	}
	sign := map[bool]string{true: "✕ ", false: "✓ "}[last.Worse]
	return []string{words(j.metric), figure(j.metric, last.Was), figure(j.metric, last.Is), sign + by, clipped(last.At.Name, 12)}
}

// plot draws a metric over the runs of the series, oldest first, with its changes. nil
// without a value.
func (s *Series) plot(metric int) *page.Plot {
	at := func(r *Run) float64 { return float64(slices.Index(s.all, r) + 1) }
	return s.drawn(metric, "runs", "run, oldest first", at)
}

// days is plot over the days since the first run; nil where all are of one day.
func (s *Series) days(metric int) *page.Plot {
	begin := s.all[0].Started
	at := func(r *Run) float64 { return r.Started.Sub(begin).Hours() / 24 }
	if at(s.all[len(s.all)-1]) < 1 {
		return nil
	}
	return s.drawn(metric, "days", "days since "+begin.Format("2 Jan 2006"), at)
}

// drawn is a plot over what at says of a run.
func (s *Series) drawn(metric int, over, label string, at func(*Run) float64) *page.Plot {
	j := &s.Judged[metric]
	scale, yUnit := 1.0, ""
	switch {
	case j.metric.IsShare():
		scale, yUnit = 100, "%"
	case strings.HasSuffix(j.metric.Label(), "s)"):
		yUnit = "ms"
	}
	values := page.Series{Name: words(j.metric)}
	for i, r := range j.runs {
		values.X, values.Y = append(values.X, at(r)), append(values.Y, scale*j.values[i])
	}
	untrusted := page.Series{Name: "not trusted"}
	for _, r := range s.all {
		if v := r.Figures[metric]; v != nil && !r.Trustworthy {
			untrusted.X, untrusted.Y = append(untrusted.X, at(r)), append(untrusted.Y, scale**v)
		}
	}
	out := page.Plot{Title: words(j.metric) + " over " + over, Kind: page.Points, XLabel: label, YLabel: words(j.metric), YUnit: yUnit}
	for _, series := range []page.Series{values, untrusted} {
		if len(series.X) > 0 {
			out.Series = append(out.Series, series)
		}
	}
	if len(out.Series) == 0 {
		return nil
	}
	for i, c := range j.Changes {
		out.Marks = append(out.Marks, page.Mark{Axis: page.AxisX, At: (at(j.runs[j.levels[i].to]) + at(j.runs[j.levels[i+1].from])) / 2, Label: clipped(c.At.Name, 12)})
	}
	return &out
}
