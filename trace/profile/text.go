package profile

import (
	"fmt"
	"io"
	"strings"

	"reprise/trace/page"
	"reprise/trace/textpage"
)

// statColumns is how many distributions stand side by side.
const statColumns = 5

// WriteText prints s for people: load, lengths, arrivals and prefix reuse in
// [textpage.AnswerLines] lines at most, or with details all tables.
func WriteText(w io.Writer, s Summary, o textpage.Options) error {
	p := textpage.New(o)
	if o.Details {
		writeDetails(p, &s)
	} else {
		writeAnswer(p, &s, o.Rest)
	}
	_, err := p.WriteTo(w)
	return err
}

// writeAnswer prints what most look for first.
func writeAnswer(p *textpage.Page, s *Summary, rest string) {
	from := s.SourceFormat
	if s.Tier != "" {
		from += ", tier " + s.Tier
	}
	p.Line("", fmt.Sprintf("%s in %s s, %s a second: %s in, %s out (%s).", page.Many(s.Requests, "request"),
		page.Number(s.DurationS), page.OrDash(s.Rate, page.Short),
		page.Many(s.InputTotal, "token"), outputWords(s), from))
	fact := func(name, says string) {
		if says != "" {
			p.Line(fmt.Sprintf("%-14s", name), says)
		}
	}
	p.Blank()
	if r := s.Reuse; r != nil {
		says := fmt.Sprintf("%s of prompt tokens with a cache without limit",
			page.OrDash(r.HitRatios.ByToken, page.Percent))
		if g := s.ReuseWithGenerated; g != nil {
			says += fmt.Sprintf(", %s where KV of outputs is kept too", page.OrDash(g.HitRatios.ByToken, page.Percent))
		}
		fact("Prefix reuse", says)
	}
	if i := s.InferredReuse; i != nil {
		fact("Estimated", i.String())
	}
	if s.WorkingSet != nil {
		t := &s.WorkingSet.Total
		size := page.Fixed(t.Tokens, 0) + " tokens"
		if t.GiB != nil {
			size = page.Number(*t.GiB) + " GiB"
		}
		fact("Working set", fmt.Sprintf("%s, %s blocks of %d tokens", size, page.Fixed(t.Blocks, 0), s.BlockSizeTokens))
	}
	var shares []string
	for _, c := range s.Categories {
		shares = append(shares, fmt.Sprintf("%s %s (%s)", c.Category, page.OrDash(c.RequestShare, page.Percent),
			page.OrDash(c.InputShare, page.Percent)))
	}
	if len(shares) > 0 {
		fact("Categories", "of requests (of prompt tokens): "+strings.Join(shares, ", "))
	}
	if g := s.Sessions; g != nil {
		says := fmt.Sprintf("%s, %s turns on average", page.Count(g.Sessions), page.Number(g.Turns.Mean))
		if g.Origin == originInferred {
			says += "; " + g.inferred(s.Requests)
		}
		fact("Sessions", says)
	}
	if s.Arrivals.InterArrival != nil {
		says := "CV of gaps " + page.OrDash(s.Arrivals.CV, page.Number) + " (1 is Poisson)"
		for _, one := range s.Arrivals.IDC {
			if one.IDC != nil && one.Windows >= 10 {
				says += fmt.Sprintf("; IDC %s at %s s", page.Number(*one.IDC), page.Number(one.WindowS))
			}
		}
		fact("Arrivals", says)
	}
	if s.Routing != nil {
		for _, f := range s.Routing.Fleets {
			if len(f.Routers) > 0 && f.PrefixShare != nil && p.Lines() < textpage.AnswerLines-10 {
				fact("Routing", fmt.Sprintf("over %d replicas by prefix keeps %s of the hit tokens of one cache",
					f.Replicas, page.Percent(*f.PrefixShare)))
			}
		}
	}
	if b := s.Breakers; b != nil && len(b.List) > 0 {
		fact("Breakers", fmt.Sprintf("%s of prompt tokens are lost where near-identical prompts part, most at %s",
			page.OrDash(b.LostShare, page.Percent), b.List[0].Place()))
	}
	p.Blank()
	var rows [][]string
	for _, d := range []namedStats{{"input tokens", s.Input}, {"output tokens", s.Output}, {"cached tokens", s.Cached},
		{"TTFT, s", s.TTFT}, {"E2E, s", s.E2E}} {
		if d.Stats == nil {
			continue
		}
		rows = append(rows, []string{d.name, page.Short(d.Mean), page.Short(d.P50), page.Short(d.P95),
			page.Short(d.P99), page.Short(d.Max)})
	}
	p.Columns([]string{"", "mean", "p50", "p95", "p99", "max"}, rows)
	p.Blank()
	if n := len(s.Warnings); n > 0 {
		rest = strings.TrimSpace(page.Many(int64(n), "warning") + ". " + rest)
	}
	if rest != "" {
		p.Line("", rest)
	}
}

// outputWords says how many tokens the outputs have, as far as the source tells.
func outputWords(s *Summary) string {
	if s.OutputTotal == nil {
		return "lengths unknown"
	}
	words := page.Many(*s.OutputTotal, "token")
	if s.OutputUnknown > 0 {
		words += " in " + page.Percent(1-float64(s.OutputUnknown)/float64(s.Requests)) +
			" of the requests, unknown in the others"
	}
	return words
}

// writeDetails prints all tables.
func writeDetails(p *textpage.Page, s *Summary) {
	writeFacts(p, s)
	writeStats(p, "Lengths", page.Number, page.Number,
		[]namedStats{{"input tokens", s.Input}, {"output tokens", s.Output},
			{"reasoning tokens", s.Reasoning}, {"cached tokens", s.Cached}, {"image tokens", s.ImageTokens},
			{"images", s.Images}, {"max tokens", s.MaxTokens}})
	writeStats(p, "Times in seconds", page.Number, page.Number,
		[]namedStats{{"between requests", s.Arrivals.InterArrival},
			{"turn to turn", turnGap(s.Sessions)}, {"think", s.Think}, {"tool", s.Tool}, {"TTFT",
				s.TTFT}, {"E2E", s.E2E}})
	writeDispersion(p, &s.Arrivals)
	writeReuse(p, s)
	writeOverTime(p, s)
	for _, set := range reuseSets(s) {
		writeCurve(p, set)
	}
	writeCategories(p, s)
	writeGroups(p, "model", s.ByModel)
	writeGroups(p, "client", s.ByClient)
	writePrefixes(p, s)
	writeWorkingSet(p, s.WorkingSet)
	writeRouting(p, s.Routing)
	all, recorded := byRows(s.Waterfalls)
	if len(recorded) == 0 || recorded[0].Requests < all[0].Requests {
		writeWaterfall(p, s, "requests with blocks", all)
	}
	writeWaterfall(p, s, "requests with recorded cached tokens", recorded)
	writeBreakers(p, s.Breakers)
	writeWarnings(p, s.Warnings)
}

func writeFacts(p *textpage.Page, s *Summary) {
	fact := func(name, value string) {
		if value != "" {
			p.Line(fmt.Sprintf("%-16s", name), value)
		}
	}
	fact("source", s.SourceFormat)
	fact("tier", s.Tier)
	fact("tokenizer", s.Tokenizer)
	fact("requests", page.Count(s.Requests)+" of "+page.Count(s.Rows)+" rows")
	fact("duration", page.Number(s.DurationS)+" s")
	fact("rate", page.OrDash(s.Rate, page.Number)+" requests/s")
	fact("input", page.Count(s.InputTotal)+" tokens")
	fact("output", outputWords(s))
	fact("input ~ output", "Spearman "+page.OrDash(s.InputOutput.Rho, page.Number))
	if g := s.Sessions; g != nil {
		origin := ""
		if g.Origin != "" {
			origin = " (" + g.Origin + ")"
		}
		fact("sessions", fmt.Sprintf("%s%s, %s turns on average; %s of requests have one",
			page.Count(g.Sessions), origin,
			page.Number(g.Turns.Mean), page.OrDash(share(g.Requests, s.Requests), page.Percent)))
		if g.Rule != "" {
			fact("", g.inferred(s.Requests)+": "+g.Rule)
		}
	}
	if r := s.Reuse; r != nil {
		fact("blocks", fmt.Sprintf("%s of %d tokens, %s distinct, of which %s in one prompt only",
			page.Count(r.ReferencesBlocks), s.BlockSizeTokens, page.Count(r.UniqueBlocks),
			page.OrDash(r.TouchedOnceShare, page.Percent)))
	}
}

// writeStats prints distributions side by side, those that there are: moments
// in one format, order statistics in another.
func writeStats(p *textpage.Page, title string, moment, value func(float64) string, all []namedStats) {
	var list []namedStats
	for _, s := range all {
		if s.Stats != nil {
			list = append(list, s)
		}
	}
	for len(list) > 0 {
		n := min(len(list), statColumns)
		head := []string{""}
		for _, s := range list[:n] {
			head = append(head, s.name)
		}
		var rows [][]string
		line := func(name string, cell func(*Stats) string) {
			row := []string{name}
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
		p.Table(title, head, rows)
		list = list[n:]
	}
}

func writeDispersion(p *textpage.Page, a *Arrivals) {
	if a.InterArrival == nil {
		return
	}
	var rows [][]string
	for _, one := range a.IDC {
		mark := ""
		if one.TickArtefact {
			mark = "artefact of ticks"
		}
		rows = append(rows, []string{page.Number(one.WindowS) + " s", page.Count(one.Windows),
			page.OrDash(one.IDC, page.Number), mark})
	}
	title := fmt.Sprintf("Arrivals: CV of gaps %s, gaps of 0 %s; dispersion of counts (1 is Poisson)",
		page.OrDash(a.CV, page.Number), page.OrDash(a.ZeroShare, page.Percent))
	p.Table(title, []string{"window", "windows", "IDC", ""}, rows)
	if a.Clock == nil {
		return
	}
	rows = nil
	for _, one := range a.Clock.IDC {
		rows = append(rows, []string{page.Number(one.WindowS) + " s", page.Count(one.Windows),
			page.OrDash(one.IDC, page.Number)})
	}
	p.Table(fmt.Sprintf("Arrivals by ticks of %s s", page.Number(a.Clock.TickS)),
		[]string{"window", "windows", "IDC"}, rows)
}

func writeReuse(p *textpage.Page, s *Summary) {
	if s.Reuse == nil {
		return
	}
	sets := reuseSets(s)
	head := []string{"hit ratio without limit"}
	var rows [][]string
	for _, set := range sets {
		head = append(head, set.name, "steady")
	}
	line := func(name string, of func(*HitRatios) *float64) {
		row := []string{name}
		for _, r := range sets {
			row = append(row, page.OrDash(of(&r.HitRatios), page.Number),
				page.OrDash(of(&r.Steady.HitRatios), page.Number))
		}
		rows = append(rows, row)
	}
	line("by block", func(h *HitRatios) *float64 { return h.ByBlock })
	line("by token", func(h *HitRatios) *float64 { return h.ByToken })
	line("mean over requests", func(h *HitRatios) *float64 { return h.MeanOverRequests })
	line("full blocks only", func(h *HitRatios) *float64 { return h.FullBlocksOnly })
	if g := s.GeneratedGain; g != nil {
		head = append(head, "+points")
		for i, gain := range []*float64{g.Whole.ByBlock, g.Whole.ByToken, g.Whole.MeanOverRequests,
			g.Whole.FullBlocksOnly} {
			rows[i] = append(rows[i], page.OrDash(gain, points))
		}
	}
	if v := s.Server; v != nil {
		name := fmt.Sprintf("by token, server blocks of %d", v.BlockSizeTokens)
		rows = append(rows, []string{name, page.OrDash(v.HitRatio, page.Number)},
			[]string{"lost by rounding to these", page.OrDash(v.RoundingLoss, page.Number)})
	}
	steady := &s.Reuse.Steady
	title := fmt.Sprintf("Prefix reuse; steady is the %s requests from %s s on", page.Count(steady.Requests),
		page.Number(steady.WarmUpS))
	p.Table(title, head, rows)
}

func writeWarnings(p *textpage.Page, list []Warning) {
	if len(list) == 0 {
		return
	}
	p.Blank()
	p.Line("", "Warnings")
	for _, w := range list {
		p.Line("  - ", w.Message)
	}
}
