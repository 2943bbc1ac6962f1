package profile

import (
	"strings"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays a profile out for a browser: the source of the trace and its
// warnings, then one section for each subject, with sentences that say what the
// numbers mean, and last the definitions of all figures. A subject on which the
// trace has no data has no section.
//
// Page needs only the summary and the rows of [Profiler.Histograms], in their
// order. A page is no more public than the trace that it is made of: the tier is
// on it.
func Page(s Summary, histograms []HistogramRow) *page.Page {
	h := &sheet{&s, map[histogramKey][]Bucket{}}
	for _, r := range histograms {
		key := histogramKey{r.Metric, r.Category}
		h.buckets[key] = append(h.buckets[key], Bucket{r.Lo, r.Hi, r.Count})
	}
	p := &page.Page{
		Title: "Trace profile", Headline: h.headline(), Lead: h.lead(),
		Facts: h.facts(), About: []page.Group{{Title: "Trace", Facts: h.about()}},
	}
	if t := h.lengthsTable(); len(t.Rows) > 0 {
		p.Table = &t
	}
	if cache := h.cacheSize(); len(cache.Plots) > 0 { // how much a cache of which size would find
		p.Plot = &cache.Plots[0]
	} else if arrivals := h.arrivals(); len(arrivals.Plots) > 0 {
		p.Plot = &arrivals.Plots[0]
	}
	if tier := trace.TierNote("page", h.Tier); tier != "" {
		p.Notes = append(p.Notes, page.Note{Level: page.Warn, Text: tier})
	}
	for _, w := range h.Warnings {
		p.Notes = append(p.Notes, page.Note{Level: page.Warn, Text: asSentence(w.Message)})
	}
	for _, section := range []page.Section{
		h.lengths(), h.arrivals(), h.reuse(), h.losses(), h.breakers(), h.cacheSize(), h.cacheTable(),
		h.overTime(), h.groups(),
		h.distances(), h.prefixes(), h.workingSet(), h.routing(), h.sessions(), h.latency(),
	} {
		if len(section.Tables)+len(section.Plots) > 0 {
			for i, text := range section.Text {
				section.Text[i] = strings.ReplaceAll(text, " %", "\u00a0%") // kept on one line
			}
			p.Sections = append(p.Sections, section)
		}
	}
	if d := definitions(p.Sections, h.CategoryRule); len(d.Tables) > 0 {
		p.Sections = append(p.Sections, d)
	}
	return p
}

// headline is the answer in a few words.
func (h *sheet) headline() string {
	out := page.Many(h.Requests, "request")
	if h.Rate != nil {
		out += ", " + often(*h.Rate)
	}
	switch r := h.Reuse; {
	case r != nil && r.HitRatios.ByToken != nil:
		out += "; a prefix cache could serve " + page.Percent(*r.HitRatios.ByToken) + " of the prompt tokens"
	case r == nil:
		out += "; prefix reuse unknown"
	}
	return strings.ReplaceAll(out, " %", "\u00a0%")
}

// lead says what was profiled.
func (h *sheet) lead() string {
	out := "The lengths, arrivals and prefix reuse of a trace"
	if h.SourceFormat != "" {
		out += " (" + h.SourceFormat + ")"
	}
	if h.DurationS > 0 {
		out += " of " + lasting(h.DurationS)
	}
	return out + "."
}

// lengthsTable has the spread of the lengths, one a line.
func (h *sheet) lengthsTable() page.Table {
	t := page.Table{Head: []string{"tokens", "mean", "p50", "p95", "p99", "max"}}
	for _, d := range []namedStats{{"input", h.Input}, {"output", h.Output}} {
		if d.Stats != nil {
			t.Rows = append(t.Rows, []string{d.name, page.Short(d.Mean), page.Short(d.P50), page.Short(d.P95),
				page.Short(d.P99), page.Short(d.Max)})
		}
	}
	return t
}

// facts are what a reader looks for first. Unknown ones are left out.
func (h *sheet) facts() (out []page.Fact) {
	put := func(known bool, label, value, note string) {
		if known {
			out = append(out, page.Fact{Label: label, Value: value, Note: note})
		}
	}
	put(h.Input != nil, "Prompt tokens", compact(h.InputTotal), "")
	if h.OutputTotal != nil {
		note := ""
		if h.OutputUnknown > 0 {
			note = "unknown in " + page.Many(h.OutputUnknown, "request")
		}
		put(true, "Output tokens", compact(*h.OutputTotal), note)
	}
	if r := h.Reuse; r != nil {
		put(r.Steady.HitRatios.ByToken != nil, "Hit ratio, steady",
			page.OrDash(r.Steady.HitRatios.ByToken, page.Percent), "by token, once the cache is warm")
		put(true, "Distinct blocks", page.Count(r.UniqueBlocks), "of "+page.Count(r.ReferencesBlocks)+" in all prompts")
	}
	if g := h.Sessions; g != nil {
		put(true, "Sessions", page.Count(g.Sessions), page.Fixed(g.Turns.Mean, 2)+" turns on average")
	}
	put(h.Tier != "", "Tier", h.Tier, "this report is no more public than that")
	return out
}

// about is where the figures come from. Unknown facts are left out.
func (h *sheet) about() (out []page.Fact) {
	put := func(known bool, label, value, note string) {
		if known && value != "" {
			out = append(out, page.Fact{Label: label, Value: value, Note: note})
		}
	}
	put(h.Failed > 0, "Rows", page.Count(h.Rows), "of which "+page.Count(h.Failed)+" failed")
	put(h.DurationS > 0, "Duration", page.Number(h.DurationS)+" s", "from the first arrival to the last")
	put(h.BlockSizeTokens > 0, "Block", page.Many(int64(h.BlockSizeTokens), "token"),
		"the unit in which prefixes are known")
	if kv := h.KVBytesPerToken; kv != nil {
		put(true, "KV cache", figure(float64(*kv)/1024)+" KiB", "for each token, as asked for")
	}
	put(true, "Tokenizer", h.Tokenizer, "")
	put(true, "Source format", h.SourceFormat, "")
	put(true, "Digest", h.Digest, "of the rows")
	return out
}
