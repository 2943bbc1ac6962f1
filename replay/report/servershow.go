package report

import (
	"fmt"
	"slices"
	"strings"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// serverFacts is what the servers say about themselves.
func serverFacts(s *Summary) (g factGroup) {
	v := s.Servers
	if v == nil {
		return g
	}
	add := func(term, name, figure, format string, args ...any) {
		g.define(term, name, figure, fmt.Sprintf(format, args...))
	}
	level := func(term, name string, l *Level, show func(float64) string, note string) {
		if l != nil {
			add(term, name, show(l.Mean)+" on average", "at most %s%s", doc.OrDash(l.Peak(), show), note)
		}
	}
	plainly := func(unit string) func(float64) string {
		return func(f float64) string { return strings.TrimSpace(doc.Number(f) + " " + unit) }
	}
	level("servers.running", "Running", v.Running, plainly(""), ", of all engines together")
	level("servers.waiting", "Waiting", v.Waiting, plainly(""), ", of all engines together")
	level("servers.kv_cache_use", "KV cache in use", v.KVUsage, doc.Percent, "")
	if v.PrefixRatio != nil {
		client := ""
		if s.Cache.Measured != nil {
			client = fmt.Sprintf("; %s by the answers", doc.Percent(*s.Cache.Measured))
		}
		if s.Cache.Expected != nil {
			client += fmt.Sprintf(", %s expected", doc.Percent(*s.Cache.Expected))
		}
		add("servers.prefix_hit_ratio", "Prefix cache hits", doc.Percent(*v.PrefixRatio), "%s of %s tokens%s", doc.Brief(int64(*v.PrefixHits)),
			doc.Brief(int64(*v.PrefixQueries)), client)
	}
	for _, of := range figure.All() {
		if st, show := s.stat(of), plainly(string(of.Unit)); of.Servers && st != nil {
			add(of.Definitions()[0], strings.ToUpper(of.Label[:1])+of.Label[1:], doc.OrDash(st.P95, show)+" at p95",
				"p50 %s, p99 %s, of %s", doc.OrDash(st.P50, show), doc.OrDash(st.P99, show), doc.Many(st.Count, "request"))
		}
	}
	if v.Preemptions != nil {
		add("servers.preemptions", "Preemptions", doc.Number(*v.Preemptions), "requests thrown out of the batch for want of KV cache")
	}
	if v.Generated != nil {
		add("servers.generated_tokens", "Generated", unit(v.GeneratedPerS, "tokens/s"), "%s tokens", doc.Number(*v.Generated))
	}
	level("servers.gpu_utilisation", "GPU utilisation", v.GPUUse, doc.Percent, "")
	level("servers.gpu_power", "GPU power", v.GPUPowerW, plainly("W"), ", of all GPUs together")
	level("servers.gpu_memory", "GPU memory", v.GPUMemoryMiB, plainly("MiB"), ", of all GPUs together")
	if v.JoulesPerToken != nil {
		add("servers.joules_per_output_token", "GPU energy", doc.Number(*v.JoulesPerToken)+" J per token",
			"%s tokens/s per W; %s J in all, of all GPUs together", numberOrDash(v.TokensPerWatt),
			doc.Number(*v.EnergyJ))
	}
	if p := v.Speculation; p != nil {
		note := ""
		if len(p.ByPosition) > 0 {
			var shares []string
			for _, share := range p.ByPosition {
				shares = append(shares, doc.Percent(share))
			}
			note = "; by position " + strings.Join(shares, ", ")
		}
		add("servers.speculation.acceptance_rate", "Speculation", doc.OrDash(p.Acceptance, doc.Percent)+" accepted", "%s tokens a step%s",
			numberOrDash(p.Length), note)
	}
	g.define("servers.measured", "Measured", fmt.Sprintf("%s to %s s", doc.Number(v.FromS), doc.Number(v.ToS)),
		measuredNote(&s.Run))
	return g
}

// measuredNote says how the measuring went.
func measuredNote(r *result.Run) string {
	if r.Server == nil {
		return "the run did not finish: up to its last second"
	}
	var says []string
	if st := r.Server.Scraped; st != nil {
		var good, bad int64
		for _, t := range st.Targets {
			good, bad = good+t.Scrapes, bad+t.Failed
		}
		says = append(says, fmt.Sprintf("%s of %s, %s failed", doc.Many(good, "scrape"),
			doc.Many(int64(len(st.Targets)), "target"), doc.Brief(bad)))
	}
	if p := r.Server.Prometheus; p != nil {
		clock := "its clock is not known"
		if c := p.Clock; c != nil {
			clock = fmt.Sprintf("its clock is %s ms ahead, within %s ms", doc.Number(float64(c.Offset)/1e6),
				doc.Number(float64(c.Within)/1e6))
		}
		says = append(says, fmt.Sprintf("%s of Prometheus, %s failed, %s", doc.Many(p.Answers, "answer"),
			doc.Brief(p.Failed), clock))
	}
	return strings.Join(says, "; ")
}

// cacheBefore says what was done to the caches before the run.
func cacheBefore(c *result.CacheDiscipline) (did, note string) {
	switch c.Done {
	case result.CacheReset:
		return "emptied", fmt.Sprintf("by POST %s, at %s", textpage.Plain(c.Call),
			doc.Many(int64(c.Servers), "server"))
	case result.CacheSalt:
		return "not matched", "prompts with the salt " + textpage.Plain(c.Salt) + ", which no earlier run has sent"
	case result.CacheNewSeed:
		return "not matched", "prompts of a seed of their own: the servers have no call to empty them"
	case result.CacheWarmPass:
		return "warmed", fmt.Sprintf("by the whole workload: %s; %s of them failed",
			doc.Many(c.WarmRequests, "request"), doc.Brief(c.WarmFailed))
	}
	return "not controlled", "whatever earlier requests left in the caches"
}

func serverSection(s *Summary) doc.Section {
	facts := serverFacts(s)
	if len(facts.Facts) == 0 {
		return doc.Section{}
	}
	p := &s.Series
	over := func(title, about, label, unit string, series ...doc.Series) doc.Plot {
		return doc.Plot{Title: title, Text: about, Kind: doc.Line, XLabel: "time since the start", XUnit: "s",
			YLabel: label, YUnit: unit, Series: series}
	}
	return doc.Section{
		Title: "Servers",
		Text: []string{"What the servers say of themselves. Their instants are of the clock of the run, as the " +
			"client's in the plots above."},
		Tables: []doc.Table{facts.table("")},
		Plots: slices.Concat(
			defined("servers.running",
				over("Requests at the servers",
					"Of all engines together; the client's requests in flight are in the plot above.", "requests", "",
					p.Running, p.Waiting)),
			defined("servers.kv_cache_use", over("KV cache in use", "Mean of the engines.", "share", "", p.KVUse)),
			defined("servers.prefix_hit_ratio", over("Prefix cache hit ratio",
				"Of the tokens that were looked up between one scrape and the next.", "share", "", p.ServerHits)),
			defined("servers.generated_tokens",
				over("Tokens generated at the servers", "", "tokens per second", "", p.Generated),
				over("Prompt tokens at the servers", "", "tokens per second", "", p.Prefilled),
				over("Preemptions", "", "per second", "", p.Preempted)),
			defined("servers.gpu_utilisation",
				over("GPU utilisation", "Mean of the GPUs.", "share", "", p.GPUUse),
				over("GPU power", "Of all GPUs together.", "power", "W", p.GPUPower))),
	}
}
