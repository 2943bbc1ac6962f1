package profile

import (
	"fmt"
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
		Title: "Trace profile",
		Lead:  "What a trace is like: how long its requests are, when they arrive, and how much of its prompts a prefix cache would find.",
		Facts: h.facts(),
	}
	if tier := trace.TierNote("page", h.Tier); tier != "" {
		p.Notes = append(p.Notes, page.Note{Level: page.Warn, Text: tier})
	}
	for _, w := range h.Warnings {
		p.Notes = append(p.Notes, page.Note{Level: page.Warn, Text: asSentence(w.Message)})
	}
	for _, section := range []page.Section{
		h.lengths(), h.arrivals(), h.reuse(), h.losses(), h.breakers(), h.cacheSize(), h.cacheTable(), h.overTime(), h.groups(),
		h.distances(), h.prefixes(), h.workingSet(), h.routing(), h.sessions(), h.latency(),
	} {
		if len(section.Tables)+len(section.Plots) > 0 {
			for i, text := range section.Text {
				section.Text[i] = strings.ReplaceAll(text, " %", "\u00a0%") // kept on one line
			}
			p.Sections = append(p.Sections, section)
		}
	}
	if d := definitions(p.Sections); len(d.Tables) > 0 {
		p.Sections = append(p.Sections, d)
	}
	return p
}

// facts are what a reader looks for first. Unknown ones are left out.
func (h *sheet) facts() []page.Fact {
	var out []page.Fact
	add := func(known bool, label, value, note string) {
		if known && value != "" {
			out = append(out, page.Fact{Label: label, Value: value, Note: note})
		}
	}
	failed := ""
	if h.Failed > 0 {
		failed = fmt.Sprintf("%s rows, of which %s failed", page.Count(h.Rows), page.Count(h.Failed))
	}
	add(true, "Requests", page.Count(h.Requests), failed)
	add(h.DurationS > 0, "Duration", lasting(h.DurationS), page.Fixed(h.DurationS, 3)+" s from the first arrival to the last")
	add(h.Rate != nil, "Rate", page.OrDash(h.Rate, often), "")
	if h.Requests > 0 {
		add(h.Input != nil, "Prompt tokens", compact(h.InputTotal), figure(float64(h.InputTotal)/float64(h.Requests))+" each on average")
		add(h.Output != nil, "Output tokens", compact(h.OutputTotal), figure(float64(h.OutputTotal)/float64(h.Requests))+" each on average")
	}
	if r := h.Reuse; r != nil {
		add(r.HitRatios.ByToken != nil, "Hit ratio by token", page.OrDash(r.HitRatios.ByToken, page.Percent),
			"of a cache without limit; in steady state "+page.OrDash(r.Steady.HitRatios.ByToken, page.Percent))
		add(true, "Distinct blocks", page.Count(r.UniqueBlocks), "of "+page.Count(r.ReferencesBlocks)+" in all prompts")
	}
	add(h.BlockSizeTokens > 0, "Block", page.Many(int64(h.BlockSizeTokens), "token"), "that prefixes are known in")
	if kv := h.KVBytesPerToken; kv != nil {
		add(true, "KV cache", figure(float64(*kv)/1024)+" KiB", "for each token, as asked for")
	}
	add(true, "Tokenizer", h.Tokenizer, "")
	add(true, "Source format", h.SourceFormat, "")
	add(true, "Tier", h.Tier, "this page is no more public than that")
	digest := strings.TrimPrefix(h.Digest, "sha256:")
	if enough := 12; len(digest) > enough { // to tell traces apart by eye
		digest = digest[:enough] + "…"
	}
	add(true, "Digest", digest, "SHA-256 of the rows; whole in the JSON")
	return out
}
