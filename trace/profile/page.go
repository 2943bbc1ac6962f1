package profile

import (
	"strings"

	"reprise/trace"
	"reprise/trace/doc"
)

// Page lays a profile out for a browser: the source of the trace and its
// warnings, then one section for each subject, with sentences that say what the
// numbers mean, and last the definitions of all figures. A subject on which the
// trace has no data has no section.
//
// Page needs only the summary and the rows of [Profiler.Histograms], in their
// order. A page is no more public than the trace that it is made of: the tier is
// on it.
func Page(s Summary, histograms []HistogramRow) *doc.Document {
	h := &sheet{&s, map[histogramKey][]Bucket{}}
	for _, r := range histograms {
		key := histogramKey{r.Metric, r.Category}
		h.buckets[key] = append(h.buckets[key], Bucket{r.Lo, r.Hi, r.Count})
	}
	p := &doc.Document{
		Title: "Trace profile", Headline: h.headline(), Lead: h.lead(), Tag: trace.TierNote("report", h.Tier),
		Facts: h.facts(), About: []doc.Group{{Title: "Trace", Facts: h.about()}},
	}
	if t := h.lengthsTable(); len(t.Rows) > 0 {
		p.Table = &t
	}
	if cache := h.cacheSize(); len(cache.Plots) > 0 { // how much a cache of which size would find
		p.Plot = &cache.Plots[0]
	} else if arrivals := h.arrivals(); len(arrivals.Plots) > 0 {
		p.Plot = &arrivals.Plots[0]
	}
	p.Notes = []doc.Note{{Level: doc.Info, Text: "All figures are of load: requests that failed are counted, and " +
		"left out of everything else. Histograms have public log-linear buckets, to within 1 %."}}
	for _, w := range h.Warnings {
		p.Notes = append(p.Notes, doc.Note{Level: doc.Warn, Text: asSentence(w.Message), Fits: true})
	}
	for _, section := range []doc.Section{
		h.lengths(), h.arrivals(), h.reuse(), h.losses(), h.breakers(), h.cacheSize(), h.cacheTable(),
		h.overTime(), h.groups(),
		h.distances(), h.prefixes(), h.workingSet(), h.routing(), h.sessions(), h.latency(),
	} {
		if len(section.Tables)+len(section.Plots) > 0 {
			p.Sections = append(p.Sections, section)
		}
	}
	p.Terms = definitions(p.Sections, h.CategoryRule)
	return p
}

// headline is the answer in a few words.
func (h *sheet) headline() string {
	out := doc.Many(h.Requests, "request")
	if h.Rate != nil {
		out += ", " + often(*h.Rate)
	}
	switch r := h.Reuse; {
	case r != nil && r.HitRatios.ByToken != nil:
		out += "; a prefix cache in blocks of " + doc.Count(int64(h.BlockSizeTokens)) + " could serve " +
			doc.Percent(*r.HitRatios.ByToken) + " of prompt tokens"
	case r == nil:
		out += "; prefix reuse unknown"
	}
	return out
}

// lead says what was profiled.
func (h *sheet) lead() string {
	out := "A trace"
	if source := strings.TrimSuffix(h.SourceFormat, " of "); source != "" { // a release names no source
		out += " (" + source + ")"
	}
	if h.DurationS > 0 {
		out += " of " + lasting(h.DurationS)
	}
	return out + "."
}

// lengthsTable has the spread of the lengths and of recorded times, one a line.
func (h *sheet) lengthsTable() doc.Table {
	t := doc.Table{Head: []string{"", "mean", "p50", "p95", "p99", "max"}}
	for _, d := range []namedStats{{"input tokens", h.Input}, {"output tokens", h.Output}, {"cached tokens", h.Cached},
		{"TTFT, s", h.TTFT}, {"E2E, s", h.E2E}} {
		if d.Stats != nil {
			t.Rows = append(t.Rows, []string{d.name, doc.Short(d.Mean), doc.Short(d.P50), doc.Short(d.P95),
				doc.Short(d.P99), doc.Short(d.Max)})
		}
	}
	return t
}

// facts are what a reader looks for first. Unknown ones are left out.
func (h *sheet) facts() []doc.Fact {
	var out doc.Group
	put := out.Add
	if h.Input != nil {
		put("Prompt tokens", compact(h.InputTotal), "")
	}
	switch {
	case h.OutputTotal == nil:
		put("Output tokens", "unknown", "")
	case h.OutputUnknown > 0:
		put("Output tokens", compact(*h.OutputTotal), "unknown in "+doc.Many(h.OutputUnknown, "request"))
	default:
		put("Output tokens", compact(*h.OutputTotal), "")
	}
	if r := h.Reuse; r != nil {
		if steady := r.Steady.HitRatios.ByToken; steady != nil {
			put("Hit ratio, steady", doc.Percent(*steady), "by token, once the cache is warm")
		}
		if g := h.ReuseWithGenerated; g != nil && g.HitRatios.ByToken != nil {
			put("With KV of outputs", doc.Percent(*g.HitRatios.ByToken), "by token")
		}
		blocks := "of " + doc.Count(r.ReferencesBlocks) + " in all prompts"
		if w := h.WorkingSet; w != nil && w.Total.GiB != nil {
			blocks += ", " + figure(*w.Total.GiB) + " GiB"
		}
		put("Distinct blocks", doc.Count(r.UniqueBlocks), blocks)
	}
	if i := h.InferredReuse; i != nil {
		put("Estimated", i.String(), "")
	}
	if b := h.Breakers; b != nil && len(b.List) > 0 {
		put("Lost at breakers", doc.OrDash(b.LostShare, doc.Percent), "of the prompt tokens, most at "+
			b.List[0].Place())
	}
	if g := h.Sessions; g != nil {
		note := doc.Fixed(g.Turns.Mean, 2) + " turns on average"
		if g.Origin == originInferred {
			note += "; inferred for " + doc.Many(g.Requests, "request")
			if g.Doubt != nil {
				note += ", " + doc.Percent(*g.Doubt) + " of the turns perhaps by chance"
			}
		}
		put("Sessions", doc.Count(g.Sessions), note)
	}
	if h.Arrivals.CV != nil {
		put("CV of gaps", doc.Number(*h.Arrivals.CV), "1 is Poisson")
	}
	var shares []string
	for _, c := range h.Categories {
		shares = append(shares, c.Category+" "+doc.OrDash(c.RequestShare, doc.Percent))
	}
	if len(shares) > 0 {
		put("Categories", strings.Join(shares, ", "), "of requests")
	}
	return out.Facts
}

// about is where the figures come from. Unknown facts are left out.
func (h *sheet) about() []doc.Fact {
	var out doc.Group
	put := func(known bool, label, value, note string) {
		if known {
			out.Add(label, value, note)
		}
	}
	put(h.Failed > 0, "Rows", doc.Count(h.Rows), "of which "+doc.Count(h.Failed)+" failed")
	put(h.DurationS > 0, "Duration", doc.Number(h.DurationS)+" s", "from the first arrival to the last")
	put(h.BlockSizeTokens > 0, "Block", doc.Many(int64(h.BlockSizeTokens), "token"),
		"the unit in which prefixes are known")
	if kv := h.KVBytesPerToken; kv != nil {
		put(true, "KV cache", figure(float64(*kv)/1024)+" KiB", "for each token, as asked for")
	}
	put(true, "Tier", h.Tier, "the page is no more public") // which audit reads of a page
	put(true, "Tokenizer", h.Tokenizer, "")
	put(true, "Source format", h.SourceFormat, "")
	put(true, "Digest", h.Digest, "of the rows")
	return out.Facts
}
