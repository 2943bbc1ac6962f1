package report

import (
	"fmt"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// Codes of the warnings, in the order in which they are given.
const (
	WarnPreset        = "preset_off_its_hardware"
	warnRead          = "read_from_other_tool"
	warnFewSamples    = "too_few_samples"
	warnPromptLength  = "prompt_tokens_differ"
	warnTokenizer     = "tokenizer_differs"
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
	warnAdapted       = "requests_adapted"
	warnBuffered      = "answers_came_at_once"
	warnPieces        = "answers_came_in_pieces"
)

// warnings says what the numbers of s cannot tell or rest on.
func warnings(s *Summary, counts *tokenCounts, zeros bool) []Warning {
	out := []Warning{}
	warn := func(when bool, code, format string, args ...any) {
		if when {
			out = append(out, Warning{Code: code, Text: fmt.Sprintf(format, args...)})
		}
	}
	preset := Warned(s.Run.PresetWarning, s.Run.Extrapolates)
	warn(preset != "", WarnPreset, "%s", textpage.Plain(preset))
	if read := s.Run.Read; read != nil {
		warn(true, warnRead, "results of %s do not say: %s", textpage.Plain(read.Tool), strings.Join(read.Lacks, "; "))
	}
	out = append(out, fewSamples(s)...)
	tokenWarnings(s, warn)
	warn(zeros, warnZerosLeftOut,
		"the server reports cached tokens but never a zero, so a missing count was taken as none (as vLLM means it)")
	ratios := s.Cache.Measured != nil || s.Cache.Expected != nil
	warn(ratios && s.Cache.RowsLeftOut > 0, warnCacheRows,
		"the hit ratios leave out %s without the counts that they need", doc.Many(s.Cache.RowsLeftOut,
			"successful request"))
	warn(s.Cache.Block == nil && s.Requests.Succeeded > 0 && s.Run.Read == nil, warnNoBlockSize,
		"the server's block size is not known, so no hit ratio can be expected of it")
	warn(s.Run.Timing == result.ClosedLoop, warnClosedLoop,
		"a closed loop sends only as fast as the server answers: a saturated server gets less load, and queues do not "+
			"show; users, who do not wait for each other, see longer waits. To measure those, use --rate")
	warn(s.Run.Skipped > 0, warnSkipped,
		"%s %s not sent, since a turn before failed: sessions ended sooner than in the source", doc.Many(s.Run.Skipped,
			"later turn"), doc.Was(s.Run.Skipped))
	warn(s.Run.ReadLate > 0, warnReadLate,
		"%s %s due before %s could be read, since too many rows waited for their parents; each was sent late and "+
			"counts as such",
		doc.Many(s.Run.ReadLate, "row"), doc.Was(s.Run.ReadLate), it(s.Run.ReadLate))
	if p := s.Run.Selection; p != nil && p.Prime != nil {
		warn(p.Prime.Failed > 0, warnPrime,
			"%s of the %s that prime the cache failed, so that it held less than meant when the run began",
			doc.Brief(p.Prime.Failed), doc.Many(p.Prime.Prompts, "prompt"))
	}
	serverWarnings(s, warn)
	warn(counts.promptsCut > 0, warnPromptCut,
		"the server counted far fewer tokens than were sent in %s, and reported no error: it cut prompts silently, "+
			"so less was computed than the workload asks", doc.Many(counts.promptsCut, "request"))
	// A recorded body may let its answer be longer than the source's was.
	warn(counts.outputsLonger > 0 && s.Run.Prompts != result.PromptsVerbatim, warnOutputLonger,
		"%s %s longer than the most that was asked for: the server does not keep to max_tokens",
		doc.Many(counts.outputsLonger, "output"), doc.Was(counts.outputsLonger))
	for _, says := range s.Run.Adapted {
		warn(true, warnAdapted, "requests are not as asked: %s", textpage.Plain(says))
	}
	warn(s.Run.TLSUnverified, warnTLS, "the server's certificate was not checked, so who answered is not known")
	warn(len(s.ByEndpoint) > 1 && s.Cache.Expected != nil, warnCaches,
		"requests went to %d servers, each with a cache of its own; the expected hit ratio is for one cache which "+
			"all share", len(s.ByEndpoint))
	if r := s.Contract; r != nil && s.Requests.Failed > 0 {
		latencies, failures := false, false // what the clauses are about
		for i := range r.Clauses {
			c := &r.Clauses[i]
			latencies = latencies || c.Unit == "ms"
			failures = failures || c.SLO != "" || strings.HasPrefix(c.Clause, "error_rate ")
		}
		warn(latencies && !failures, warnContract,
			"latencies are of requests that succeeded, and the contract has no clause about error_rate or goodput: "+
				"%s could not break it", doc.Many(s.Requests.Failed, "failed request"))
	}
	return out
}

// tokenWarnings are about lengths that the server did not count, or counted otherwise than was asked.
func tokenWarnings(s *Summary, warn func(when bool, code, format string, args ...any)) {
	t, ok := &s.Tokens, s.Requests.Succeeded
	p, o := t.PromptError, t.OutputMiss
	byTokenizer := t.OutputSources[result.FromTokenizer]

	template, estimates, lengths := "", "", ""
	if len(s.Run.Uncounted) > 0 {
		template = ": what the server's template adds could not be measured and is not in it"
		if n := s.Run.Overhead; n > 0 {
			template = fmt.Sprintf(": what the server's template adds could not be measured, and was given as %s",
				doc.Many(int64(n), "token"))
		}
	}
	if byTokenizer > 0 {
		estimates = "; a tokenizer's counts are estimates, and so is what rests on them: TPOT, token ITL and output " +
			"tokens per second"
		lengths = fmt.Sprintf("; %s of the lengths %s estimated", doc.Brief(byTokenizer), doc.Was(byTokenizer))
	}

	other := otherTokenizer(s)
	asSent, off := s.Run.Prompts == result.PromptsVerbatim, other
	if off == "" {
		off = fmt.Sprintf("other prompt lengths, by %s in all and at most %d in a prompt,", doc.Many(p.SumAbs, "token"),
			p.MaxAbs)
	}
	which := ", which --tokenizer names, or gives as the path of its tokenizer.json"
	if !s.Run.Guessed && other == "" {
		which = " and the chat template"
	}
	warn(asSent && p.SumAbs > 0, warnPromptLength,
		"the server counted %s in %s. The prompts went out as they are: only the expected cache hits rest on the "+
			"tokenizer%s", off, doc.Many(p.More+p.Fewer, "request"), which)
	warn(!asSent && other != "", warnTokenizer,
		"the server counted %s, in %s: name its tokenizer with --tokenizer, by name or as the path of its "+
			"tokenizer.json. Prompts had other lengths than the workload's, and shared other prefixes",
		other, doc.Many(p.Compared, "request"))
	warn(!asSent && p.SumAbs > 0 && other == "", warnPromptLength,
		"the server counted other prompt lengths than wanted in %s: by %s in all, by at most %d",
		doc.Many(p.More+p.Fewer, "request"), doc.Many(p.SumAbs, "token"), p.MaxAbs)

	var impossibleInput int64
	if t.Impossible != nil {
		impossibleInput = t.Impossible.InputRows
	}
	unreported := ok - t.PromptFromUsage - impossibleInput
	warn(unreported > 0, warnNoPromptUsage,
		"the server did not report prompt tokens for %s; their prompts count as the workload asked, which is "+
			"an estimate%s",
		doc.Many(unreported, "request"), template)

	warn(o.SumAbs > 0, warnOutputLength,
		"%s %s shorter than wanted and %s longer: by %s in all, by at most %d%s",
		doc.Many(o.Fewer, "output"), doc.Was(o.Fewer), doc.Brief(o.More), doc.Many(o.SumAbs, "token"),
		o.MaxAbs, lengths)
	warn(t.OutputSources[result.FromUsage]+t.OutputSources[impossible] < ok, warnOutputCounted,
		"output tokens come from the server's usage for %s, from a tokenizer for %s, and from neither for %s%s",
		doc.Many(t.OutputSources[result.FromUsage], "request"), doc.Brief(byTokenizer),
		doc.Brief(t.OutputSources["none"]+t.OutputSources["other"]), estimates)
}

// untimedWarnings say which answers did not come token by token.
func (l *latencies) untimedWarnings() []Warning {
	how, n := "at once", l.atOnce+l.inPieces
	if l.inPieces > 0 {
		how = "at once or in two or three pieces"
	}
	switch {
	case l.buffered():
		return []Warning{{Code: warnBuffered,
			Text: fmt.Sprintf("ITL and TPOT were not measured: something between client and server buffers (%s of %s "+
				"came %s), such as a proxy or a gateway. TTFT is the time until the answer was whole. Switch its "+
				"buffering off, or send to the server itself",
				doc.Brief(n), doc.Many(l.several, "answer"), how)}}
	case l.inPieces > 0:
		return []Warning{{Code: warnPieces,
			Text: fmt.Sprintf("ITL and TPOT leave out %s of %s: their tokens came %s, which does not tell the times "+
				"between them",
				doc.Brief(n), doc.Many(l.several, "answer"), how)}}
	}
	return nil
}

// serverWarnings say what the servers' figures, and what they depend on, cannot tell.
func serverWarnings(s *Summary, warn func(when bool, code, format string, args ...any)) {
	r := &s.Run
	speculates := s.Servers != nil && s.Servers.Speculation != nil
	if e := r.Environment; e != nil {
		speculates = speculates ||
			slices.ContainsFunc(e.Servers, func(s result.ServerModels) bool { return s.Speculates })
	}
	text := map[string]string{result.TextStable: "words without meaning", "words": "words without order"}[r.PromptText]
	warn(speculates && text != "", warnSpeculation,
		"TPOT is not representative: the servers decode speculatively, and how much of a draft is accepted depends "+
			"on what the text says. These prompts are %s, so that neither the acceptance nor the latencies that rest "+
			"on it hold for real traffic; synth --corpus, replay --verbatim and record --shadow send text that is real",
		text)
	if v := s.Servers; v != nil {
		warn(v.Restarts > 0, warnRestart, "%s of the servers fell during the run: a server started anew",
			doc.Many(int64(v.Restarts), "counter"))
	}
	if st := r.Server; st != nil && st.Scraped != nil {
		for _, t := range st.Scraped.Targets {
			if says := t.Unkept(); says != "" {
				warn(true, warnUnmeasured,
					"the page of target %s has %s: --scrape names another page, --set scrape-metric a prefix to keep",
					textpage.Plain(t.Target), textpage.Plain(says))
			}
			warn(t.Failed > 0, warnUnmeasured, "%s of target %s failed: %s", doc.Many(t.Failed, "scrape"),
				textpage.Plain(t.Target), classes(t.Failures))
		}
		warn(st.Scraped.Dropped > 0, warnSeries, "%s of series beyond the first %s were dropped",
			doc.Many(st.Scraped.Dropped, "sample"), doc.Brief(int64(st.Scraped.Limit)))
	}
	if st := r.Server; st != nil && st.Prometheus != nil {
		warn(st.Prometheus.Failed > 0, warnUnmeasured, "%s of the Prometheus server failed: %s",
			doc.Many(st.Prometheus.Failed, "answer"), classes(st.Prometheus.Failures))
		warn(st.Prometheus.Dropped > 0, warnSeries, "%s of Prometheus' series beyond a limit were dropped",
			doc.Many(st.Prometheus.Dropped, "sample"))
	}
	// Of prompts with other tokens than were wanted, and of blocks of another size, the
	// difference says nothing about what the caches held.
	asWanted := otherTokenizer(s) == "" && float64(s.Tokens.PromptError.SumAbs) <= sameHits*float64(s.Tokens.Prompt) &&
		s.Cache.otherBlock == 0
	more := asWanted && deref(s.Cache.Difference) > sameHits
	if more && r.Thread != nil && r.Thread.Recoded > 0 {
		warn(true, warnGeneratedHits, "%s: in %s the reply may encode to other tokens than were generated, and hits "+
			"after the first such token are not expected", s.Cache.moreHits(), doc.Many(r.Thread.Recoded, "prompt"))
		more = false
	}
	warn(more && r.Simulated != "", warnGeneratedHits,
		"%s: the expected hit ratio leaves out what the simulated engines generated, and a turn that repeats the "+
			"answer before it finds that too", s.Cache.moreHits())
	more = more && r.Simulated == ""
	warn(more && r.Prompts == result.PromptsVerbatim, warnForeignHits,
		"%s: real prompts share more than whole blocks of %s, and generated text, or the cache was warm from earlier "+
			"runs", s.Cache.moreHits(), doc.Many(int64(r.BlockSize), "token"))
	warn(more && r.Prompts != result.PromptsVerbatim, warnForeignHits, "%s: %s", s.Cache.moreHits(), warmCause(r))
}

// otherTokenizer says how a server counts prompts that has another tokenizer than they
// were made with, such as "52 % fewer tokens than o200k_base", or "" where nothing shows
// that. A template that was measured wrong is off by the same in every prompt.
func otherTokenizer(s *Summary) string {
	p := &s.Tokens.PromptError
	name := textpage.Plain(s.Run.Tokenizer)
	differ := p.More + p.Fewer
	if name == "" || s.Run.Prompts == "ids" || p.Compared == 0 || p.Compared < s.Requests.Succeeded ||
		differ*10 < p.Compared*9 || min(p.More, p.Fewer)*20 > differ ||
		float64(p.MaxAbs)*float64(differ) < 1.5*float64(p.SumAbs) {
		return ""
	}
	wanted, word := s.Tokens.Prompt-p.SumAbs, "more"
	if p.Fewer > p.More {
		wanted, word = s.Tokens.Prompt+p.SumAbs, "fewer"
	}
	if share := float64(p.SumAbs) / float64(max(wanted, 1)); share >= 0.03 {
		return fmt.Sprintf("%s %s tokens than %s", doc.Percent(share), word, name)
	}
	return ""
}

func deref(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

// classes lists failures by class, in order of their names.
func classes(n map[string]int64) string {
	var all []string
	for class, k := range n {
		all = append(all, fmt.Sprintf("%s %s", doc.Brief(k), textpage.Plain(class)))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// fewSamples has one warning for each percentile that some metric is too small
// for. Metrics without any value are left out: nothing is claimed of them.
func fewSamples(s *Summary) []Warning {
	out := []Warning{}
	for _, p := range percentiles {
		w := Warning{Code: warnFewSamples}
		var labels []string
		withValues := 0
		for _, m := range s.Latency.shown() {
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
			w.Text = fmt.Sprintf("no %s below %s samples: %s", p.name, doc.Brief(p.needed), strings.Join(labels, ", "))
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

// Warned is what to know of a simulated engine before any figure: the warning of its preset,
// and how far it extrapolates. It is empty where there is nothing.
func Warned(preset string, beyond []result.Beyond) string {
	parts := []string{}
	for _, part := range []string{preset, Extrapolation(beyond)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// boundWords are the bounds of an engine's file in words.
var boundWords = map[string]string{
	"max_prompt_tokens": "prompts of %s tokens",
	"max_output_tokens": "answers of %s tokens",
	"max_in_flight":     "%s requests in flight",
	"max_decoding":      "%s requests that decode at once",
	"max_kv_tokens":     "%s tokens of KV",
}

// Extrapolation says in words how far a run went beyond what its engine was fitted to; empty
// where it did not.
func Extrapolation(beyond []result.Beyond) string {
	var parts []string
	for _, b := range beyond {
		if word := boundWords[b.Bound]; word != "" && b.Covers > 0 {
			parts = append(parts, fmt.Sprintf(word, doc.Count(int64(b.Reached)))+fmt.Sprintf(" (%s × %s)",
				doc.Number(float64(b.Reached)/float64(b.Covers)), doc.Count(int64(b.Covers))))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "the engine extrapolates, beyond the records that it was fitted to: " + strings.Join(parts, ", ")
}
