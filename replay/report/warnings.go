package report

import (
	"fmt"
	"strings"

	"reprise/replay/result"
	"reprise/trace/page"
)

// Codes of the warnings, in the order in which they are given.
const (
	WarnPreset        = "preset_off_its_hardware"
	warnFewSamples    = "too_few_samples"
	warnPromptLength  = "prompt_tokens_differ"
	warnNoPromptUsage = "prompt_tokens_not_reported"
	warnOutputLength  = "output_tokens_differ"
	warnOutputCounted = "output_tokens_not_from_usage"
	warnZerosLeftOut  = "cached_zero_left_out"
	warnCacheRows     = "cache_rows_left_out"
	warnNoBlockSize   = "server_block_size_unknown"
	warnSkipped       = "turns_skipped"
	warnReadLate      = "rows_read_late"
	warnClosedLoop    = "closed_loop"
	warnPrime         = "priming_failed"
	warnResumed       = "resumed"
	warnSpeculation   = "speculation_on_made_up_text"
	warnRestart       = "server_restarted"
	warnUnmeasured    = "server_metrics_failed"
	warnSeries        = "server_series_dropped"
	warnForeignHits   = "cache_held_more_than_was_sent"
	warnGeneratedHits = "cache_held_generated_kv"
	warnPromptCut     = "prompts_cut"
	warnOutputLonger  = "outputs_longer_than_asked"
	warnTLS           = "tls_unverified"
	warnCaches        = "several_caches"
	warnContract      = "contract_without_error_rate"
)

// warnings says what the numbers of s cannot tell or rest on.
func (c *collector) warnings(s *Summary, zeros bool) []Warning {
	out := []Warning{}
	warn := func(when bool, code, format string, args ...any) {
		if when {
			out = append(out, Warning{Code: code, Text: fmt.Sprintf(format, args...)})
		}
	}
	warn(c.run.PresetWarning != "", WarnPreset, "%s", Plain(c.run.PresetWarning))
	out = append(out, fewSamples(s)...)
	t, ok := &s.Tokens, s.Requests.Succeeded
	p, o := t.PromptError, t.OutputMiss
	byTokenizer := t.OutputSources[result.FromTokenizer]
	template, estimates, lengths := "", "", ""
	if len(c.run.Uncounted) > 0 {
		template = ": what the server's template adds could not be measured and is not in it"
	}
	if byTokenizer > 0 {
		estimates = "; a tokenizer's counts are estimates, and so is what rests on them: TPOT, token ITL and output tokens per second"
		lengths = fmt.Sprintf("; %s of the lengths %s estimated", page.Brief(byTokenizer), page.Was(byTokenizer))
	}
	warn(p.SumAbs > 0, warnPromptLength,
		"the server counted other prompt lengths than wanted in %s: by %s in all, by at most %d",
		page.Many(p.More+p.Fewer, "request"), page.Many(p.SumAbs, "token"), p.MaxAbs)
	warn(t.PromptFromUsage < ok, warnNoPromptUsage,
		"the server did not report prompt tokens for %s; their prompts count as the workload asked, which is an estimate%s",
		page.Many(ok-t.PromptFromUsage, "request"), template)
	warn(o.SumAbs > 0, warnOutputLength,
		"%s %s shorter than wanted and %s longer: by %s in all, by at most %d%s",
		page.Many(o.Fewer, "output"), page.Was(o.Fewer), page.Brief(o.More), page.Many(o.SumAbs, "token"), o.MaxAbs, lengths)
	warn(t.OutputSources[result.FromUsage] < ok, warnOutputCounted,
		"output tokens come from the server's usage for %s, from a tokenizer for %s, and from neither for %s%s",
		page.Many(t.OutputSources[result.FromUsage], "request"), page.Brief(byTokenizer), page.Brief(t.OutputSources["none"]+t.OutputSources["other"]), estimates)
	warn(zeros, warnZerosLeftOut,
		"the server reports cached tokens but never a zero, so a missing count was taken as none (as vLLM means it)")
	ratios := s.Cache.Measured != nil || s.Cache.Expected != nil
	warn(ratios && s.Cache.RowsLeftOut > 0, warnCacheRows,
		"the hit ratios leave out %s without the counts that they need", page.Many(s.Cache.RowsLeftOut, "successful request"))
	warn(s.Cache.Block == nil && ok > 0, warnNoBlockSize,
		"the server's block size is not known, so no hit ratio can be expected of it")
	warn(c.run.Timing == result.ClosedLoop, warnClosedLoop,
		"a closed loop sends only as fast as the server answers: a server that is saturated gets less load and its waiting does not show, so these latencies are not those of users, who come on their own account")
	warn(len(c.run.Resumed) > 0, warnResumed, "%s", resumed(c.run.Resumed))
	warn(c.run.Skipped > 0, warnSkipped,
		"%s %s not sent, since a turn before failed: sessions ended sooner than in the source", page.Many(c.run.Skipped, "later turn"), page.Was(c.run.Skipped))
	warn(c.run.ReadLate > 0, warnReadLate,
		"%s %s due before %s could be read, since too many rows waited for their parents; each was sent late and counts as such",
		page.Many(c.run.ReadLate, "row"), page.Was(c.run.ReadLate), it(c.run.ReadLate))
	if p := c.run.Selection; p != nil && p.Prime != nil {
		warn(p.Prime.Failed > 0, warnPrime,
			"%s of the %s that prime the cache failed, so that it held less than meant when the run began", page.Brief(p.Prime.Failed), page.Many(p.Prime.Prompts, "prompt"))
	}
	serverWarnings(s, warn)
	warn(c.promptsCut > 0, warnPromptCut,
		"the server counted far fewer tokens than were sent in %s, and reported no error: it cut prompts silently, so less was computed than the workload asks", page.Many(c.promptsCut, "request"))
	warn(c.outputsLonger > 0, warnOutputLonger,
		"%s %s longer than the most that was asked for: the server does not keep to max_tokens", page.Many(c.outputsLonger, "output"), page.Was(c.outputsLonger))
	warn(c.run.TLSUnverified, warnTLS, "the server's certificate was not checked, so who answered is not known")
	warn(len(s.ByEndpoint) > 1 && s.Cache.Expected != nil, warnCaches,
		"requests went to %d servers, each with a cache of its own; the expected hit ratio is that of one cache which all share", len(s.ByEndpoint))
	warn(s.Contract != nil && s.Requests.Failed > 0 && s.Contract.leavesErrorsOut(), warnContract,
		"latencies are of requests that succeeded, and the contract has no clause about error_rate or goodput: %s could not break it", page.Many(s.Requests.Failed, "failed request"))
	return out
}

// resumed says what an interruption of the run does to its numbers.
func resumed(gaps []result.Interruption) string {
	var at []string
	var again int64
	for _, g := range gaps {
		at = append(at, fmt.Sprintf("at %s s for %s s", page.Number(float64(g.AtNS)/1e9), page.Number(float64(g.DownNS)/1e9)))
		again += g.Again
	}
	return fmt.Sprintf("the run was interrupted %s (%s, which its clock leaves out) and resumed: what the server's cache held across the gap is not what one run would have left there, and the expected hit ratio assumes that nothing was lost; of %s due by then the results were lost, so %s %s sent again; CPU, pauses, drift and what the limit of requests in flight held back are known since the last interruption only",
		page.Many(int64(len(gaps)), "time"), strings.Join(at, ", "), page.Many(again, "request"), it(again), page.Was(again))
}

// fewSamples has one warning for each percentile that some metric is too small
// for. Metrics without any value are left out: nothing is claimed of them.
func fewSamples(s *Summary) []Warning {
	out := []Warning{}
	for _, p := range percentiles {
		w := Warning{Code: warnFewSamples}
		var labels []string
		withValues := 0
		for _, m := range s.Latency.metrics() {
			if m.stat.Count == 0 {
				continue
			}
			withValues++
			if *p.of(m.stat) == nil {
				w.Metrics = append(w.Metrics, m.name)
				labels = append(labels, m.label)
			}
		}
		if len(labels) == withValues {
			labels = []string{"every latency"}
		}
		if len(w.Metrics) > 0 {
			w.Text = fmt.Sprintf("no %s below %s samples: %s", p.name, page.Brief(p.needed), strings.Join(labels, ", "))
			out = append(out, w)
		}
	}
	return out
}

// it is it or they.
func it(n int64) string {
	if n == 1 {
		return "it"
	}
	return "they"
}
