package profile

import (
	"fmt"
	"strings"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays a profile out for a browser: where the trace comes from and what
// must be known of it, then a section for each thing that the trace tells,
// each with what its numbers say, and the definitions of all of them. What the
// trace does not tell has no section.
//
// It is made of the summary and of the rows of [Profiler.Histograms] alone, in
// their order. Like every file that is made of a trace, a page is no more public
// than the trace is: the tier is on it.
func Page(s Summary, histograms []HistogramRow) *page.Page {
	h := newSheet(&s, histograms)
	p := &page.Page{
		Title: "Trace profile",
		Lead:  "What a trace is like: how long its requests are, when they arrive, and how much of its prompts a prefix cache would find.",
		Facts: h.facts(),
		Notes: h.notes(),
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

// A sheet is what a page is made of.
type sheet struct {
	*Summary
	buckets map[histogramKey][]Bucket
}

func newSheet(s *Summary, rows []HistogramRow) *sheet {
	h := &sheet{s, map[histogramKey][]Bucket{}}
	for _, r := range rows {
		key := histogramKey{r.Metric, r.Category}
		h.buckets[key] = append(h.buckets[key], Bucket{r.Lo, r.Hi, r.Count})
	}
	return h
}

// warned tells whether the summary has a warning of that code.
func (h *sheet) warned(code string) bool {
	for _, w := range h.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// facts are what a reader looks for first. What is unknown is left out.
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
	add(true, "Digest", shortDigest(h.Digest), "SHA-256 of the rows; whole in the JSON")
	return out
}

// shortDigest keeps enough of a digest to tell traces apart by eye.
func shortDigest(d string) string {
	const enough = 12
	if d = strings.TrimPrefix(d, "sha256:"); len(d) <= enough {
		return d
	}
	return d[:enough] + "…"
}

// notes are the tier, where it forbids a release, and all warnings.
func (h *sheet) notes() []page.Note {
	var out []page.Note
	if tier := trace.TierNote("page", h.Tier); tier != "" {
		out = append(out, page.Note{Level: page.Warn, Text: tier})
	}
	for _, w := range h.Warnings {
		out = append(out, page.Note{Level: page.Warn, Text: asSentence(w.Message)})
	}
	return out
}

// asSentence begins a clause with a capital and ends it with a full stop.
func asSentence(clause string) string {
	if clause == "" || strings.HasSuffix(clause, ".") {
		return clause
	}
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}
