package profile

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace/page"
)

// statColumns is how many distributions stand side by side.
const statColumns = 5

// WriteText prints s for people: tables of at most 96 columns, no colours.
func WriteText(w io.Writer, s Summary) error {
	var b strings.Builder
	writeFacts(&b, &s)
	writeStats(&b, "Lengths", fixed2, number, []namedStats{{"input tokens", s.Input}, {"output tokens", s.Output},
		{"reasoning tokens", s.Reasoning}, {"cached tokens", s.Cached}, {"image tokens", s.ImageTokens},
		{"images", s.Images}, {"max tokens", s.MaxTokens}})
	writeStats(&b, "Times in seconds", page.Seconds, page.Seconds, []namedStats{{"between requests", s.Arrivals.InterArrival},
		{"turn to turn", turnGap(s.Sessions)}, {"think", s.Think}, {"tool", s.Tool}, {"TTFT", s.TTFT}, {"E2E", s.E2E}})
	writeDispersion(&b, &s.Arrivals)
	writeReuse(&b, &s)
	writeOverTime(&b, &s)
	for _, set := range reuseSets(&s) {
		writeCurve(&b, set)
	}
	writeCategories(&b, &s)
	writeGroups(&b, "model", s.ByModel)
	writeGroups(&b, "client", s.ByClient)
	writePrefixes(&b, &s)
	writeWorkingSet(&b, s.WorkingSet)
	writeRouting(&b, s.Routing)
	all, recorded := byRows(s.Waterfalls)
	if len(recorded) == 0 || recorded[0].Requests < all[0].Requests {
		writeWaterfall(&b, &s, "requests with blocks", all)
	}
	writeWaterfall(&b, &s, "requests with recorded cached tokens", recorded)
	writeBreakers(&b, s.Breakers)
	writeWarnings(&b, s.Warnings)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeFacts(b *strings.Builder, s *Summary) {
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "%-15s %s\n", name, value)
		}
	}
	fact("source", s.SourceFormat)
	fact("tier", s.Tier)
	fact("tokenizer", s.Tokenizer)
	fact("requests", page.Count(s.Requests)+" of "+page.Count(s.Rows)+" rows")
	fact("duration", page.Fixed(s.DurationS, 3)+" s")
	fact("rate", page.OrDash(s.Rate, fixed3)+" requests/s")
	fact("input", page.Count(s.InputTotal)+" tokens")
	fact("output", page.Count(s.OutputTotal)+" tokens")
	fact("input ~ output", "Spearman "+page.OrDash(s.InputOutput.Rho, fixed3))
	if g := s.Sessions; g != nil {
		origin := ""
		if g.Origin != "" {
			origin = " (" + g.Origin + ")"
		}
		fact("sessions", fmt.Sprintf("%s%s, %s turns on average; %s of requests have one", page.Count(g.Sessions), origin,
			page.Fixed(g.Turns.Mean, 2), page.OrDash(share(g.Requests, s.Requests), page.Percent)))
		if g.Rule != "" {
			for line := range strings.SplitSeq(text.WrapSoft("inferred: "+g.Rule, textWidth-16), "\n") {
				fact("", strings.TrimRight(line, " "))
			}
		}
	}
	if r := s.Reuse; r != nil {
		fact("blocks", fmt.Sprintf("%s of %d tokens, %s distinct, of which %s in one prompt only",
			page.Count(r.ReferencesBlocks), s.BlockSizeTokens, page.Count(r.UniqueBlocks), page.OrDash(r.TouchedOnceShare, page.Percent)))
	}
}

// writeStats prints distributions side by side, those that there are: moments
// in one format, order statistics in another.
func writeStats(b *strings.Builder, title string, moment, value func(float64) string, all []namedStats) {
	var list []namedStats
	for _, s := range all {
		if s.Stats != nil {
			list = append(list, s)
		}
	}
	for len(list) > 0 {
		n := min(len(list), statColumns)
		head := table.Row{""}
		for _, s := range list[:n] {
			head = append(head, s.name)
		}
		var rows []table.Row
		line := func(name string, cell func(*Stats) string) {
			row := table.Row{name}
			for _, s := range list[:n] {
				row = append(row, cell(s.Stats))
			}
			rows = append(rows, row)
		}
		line("count", func(s *Stats) string { return page.Count(s.Count) })
		line("mean", func(s *Stats) string { return moment(s.Mean) })
		line("sd", func(s *Stats) string { return page.OrDash(s.SD, moment) })
		line("min", func(s *Stats) string { return value(s.Min) })
		line("p50", func(s *Stats) string { return value(s.P50) })
		line("p90", func(s *Stats) string { return value(s.P90) })
		line("p95", func(s *Stats) string { return value(s.P95) })
		line("p99", func(s *Stats) string { return value(s.P99) })
		line("p99.9", func(s *Stats) string { return value(s.P999) })
		line("max", func(s *Stats) string { return value(s.Max) })
		draw(b, title, head, rows)
		list = list[n:]
	}
}

func writeDispersion(b *strings.Builder, a *Arrivals) {
	if a.InterArrival == nil {
		return
	}
	var rows []table.Row
	for _, one := range a.IDC {
		mark := ""
		if one.TickArtefact {
			mark = "artefact of ticks"
		}
		rows = append(rows, table.Row{number(one.WindowS) + " s", page.Count(one.Windows), page.OrDash(one.IDC, fixed3), mark})
	}
	title := fmt.Sprintf("Arrivals: CV of gaps %s, gaps of 0 %s; dispersion of counts (1 is Poisson)",
		page.OrDash(a.CV, fixed3), page.OrDash(a.ZeroShare, page.Percent))
	draw(b, title, table.Row{"window", "windows", "IDC", ""}, rows)
	if a.Clock == nil {
		return
	}
	rows = nil
	for _, one := range a.Clock.IDC {
		rows = append(rows, table.Row{page.Fixed(one.WindowS, 3) + " s", page.Count(one.Windows), page.OrDash(one.IDC, fixed3)})
	}
	draw(b, fmt.Sprintf("Arrivals by ticks of %s s", page.Fixed(a.Clock.TickS, 3)), table.Row{"window", "windows", "IDC"}, rows)
}

func writeReuse(b *strings.Builder, s *Summary) {
	if s.Reuse == nil {
		return
	}
	sets := reuseSets(s)
	head := table.Row{"hit ratio without limit"}
	var rows []table.Row
	for _, set := range sets {
		head = append(head, set.name, "steady")
	}
	line := func(name string, of func(*HitRatios) *float64) {
		row := table.Row{name}
		for _, r := range sets {
			row = append(row, page.OrDash(of(&r.HitRatios), ratio4), page.OrDash(of(&r.Steady.HitRatios), ratio4))
		}
		rows = append(rows, row)
	}
	line("by block", func(h *HitRatios) *float64 { return h.ByBlock })
	line("by token", func(h *HitRatios) *float64 { return h.ByToken })
	line("mean over requests", func(h *HitRatios) *float64 { return h.MeanOverRequests })
	line("full blocks only", func(h *HitRatios) *float64 { return h.FullBlocksOnly })
	if g := s.GeneratedGain; g != nil {
		head = append(head, "+points")
		for i, gain := range []*float64{g.Whole.ByBlock, g.Whole.ByToken, g.Whole.MeanOverRequests, g.Whole.FullBlocksOnly} {
			rows[i] = append(rows[i], page.OrDash(gain, points))
		}
	}
	if v := s.Server; v != nil {
		name := fmt.Sprintf("by token, server blocks of %d", v.BlockSizeTokens)
		rows = append(rows, table.Row{name, page.OrDash(v.HitRatio, ratio4)},
			table.Row{"lost by rounding to these", page.OrDash(v.RoundingLoss, ratio4)})
	}
	steady := &s.Reuse.Steady
	title := fmt.Sprintf("Prefix reuse; steady is the %s requests from %s s on", page.Count(steady.Requests), page.Fixed(steady.WarmUpS, 3))
	draw(b, title, head, rows)
}

func writeWarnings(b *strings.Builder, list []Warning) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\nWarnings\n")
	for _, w := range list {
		lines := text.WrapSoft(w.Message, textWidth-4)
		for i, line := range strings.Split(lines, "\n") {
			bullet := "    "
			if i == 0 {
				bullet = "  - "
			}
			b.WriteString(strings.TrimRight(bullet+line, " ") + "\n")
		}
	}
}
