package report

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// Codes of the checks, in the order in which they are given.
const (
	CodeNoSamples   = "no_samples"        // nothing succeeded, or no answer had a token
	codeLagP50      = "send_lag_p50"      // the client sent late
	codeLagP99      = "send_lag_p99"      //
	codeLagP999     = "send_lag_p99_9"    //
	codeLagDrift    = "send_lag_drift"    // the client fell further and further behind
	codeCPU         = "client_cpu"        // the client had no cores to spare
	codeGCPause     = "client_gc_pause"   // the client stood still
	codeStalled     = "client_stalled"    // the process or the machine stood still
	codeStalledTTFT = "stalled_ttft"      // the client stood still while it waited for first tokens
	codeStalledGap  = "stalled_gap"       // the client stood still between tokens
	codeLateFirst   = "late_first_token"  // the client read first tokens late
	codeLateLast    = "late_last_token"   // and last ones
	codeClock       = "clock_jump"        // the wall clock was set, or the machine suspended
	codeHeldBack    = "held_back"         // the limit of requests in flight shaped the load
	codeConnect     = "connect_failures"  // requests that never reached the server
	CodeRefused     = "refused_share"     // the server took less than it was given
	CodeErrors      = "error_share"       // too many requests failed
	CodeSkipped     = "skipped"           // failures ended sessions, so that their turns were never sent
	codeEndedEarly  = "ended_early"       // the run was cut short
	codeNotSent     = "not_sent"          // rows of the workload were never sent
	codeUnprepared  = "unprepared"        // no prompt could be made for rows of the workload
	codeGuessed     = "guessed_counts"    // output tokens were counted by a tokenizer that nobody named
	codeRowsMissing = "results_missing"   // fewer results than the run had requests
	codeShards      = "shards_apart"      // shards of one load started at several times
	codePrompts     = "prompt_tokens"     // the server counted other prompts than were asked for
	codeOutputs     = "output_tokens"     // answers were shorter or longer than was forced
	codeExtraHits   = "extra_cache_hits"  // the servers' caches had what this run had not sent
	codeImpossible  = "impossible_counts" // the servers' counts contradict each other, the requests or the answers
)

// judge holds a run against its limits.
func judge(s *Summary, limits Limits) Verdict {
	j := judgement{reasons: []Reason{}, checks: []Check{}}
	why := "no request succeeded" + cause(s)
	if r := &s.Requests; r.Rows == 0 && r.CoolDown > 0 {
		why = fmt.Sprintf("all %s belong to the warm-up or the cool-down: measure for longer",
			doc.Many(r.all(), "request"))
	} else if r.Rows == 0 && r.WarmUp > 0 {
		why = fmt.Sprintf("all %s belong to the warm-up: measure for longer", doc.Many(r.all(), "request"))
	}
	timed := s.Requests.Succeeded
	if timed > 0 && s.Latency.FromSent.E2E.Count == 0 {
		timed, why = 0, "the server counts the tokens of its answers, and none of them came: see what it streams with curl"
	}
	j.check(CodeNoSamples, against(float64(timed), 1, "requests", timed > 0), "nothing was measured: %s", why)
	run := &s.Run
	j.check(codeEndedEarly, against(float64(run.NotSent), 0, "requests", run.EndedEarly == ""),
		"the run ended early: %s", run.EndedEarly)
	if s.Run.Simulated == "" {
		j.lag(s, limits)
	}
	if s.Run.Watched() {
		j.machine(s, limits)
	}
	j.stalls(s, limits)
	j.outcomes(s, limits)
	j.delivered(s, limits)

	// Whether the run was the one that was asked for.
	n := max(run.NotSent, s.Requests.NotSent)
	j.check(codeNotSent, atMost(float64(n), 0, "requests"), "%s of the workload %s never sent",
		doc.Many(n, "request"), doc.Was(n))
	j.check(codeUnprepared, atMost(float64(run.Unprepared), 0, "requests"),
		"no prompt could be made for %s of the workload: %s", doc.Many(run.Unprepared, "row"), run.Unready)
	if counted := s.Tokens.OutputSources[result.FromTokenizer]; run.Guessed {
		j.check(codeGuessed, atMost(float64(counted), 0, "requests"),
			"the server sent no usage for %s, whose output was counted by %s, which may not be the server's "+
				"tokenizer, so TPOT and output tokens per second are guesses. Name it with --tokenizer",
			doc.Many(counted, "request"), run.Tokenizer)
	}
	due, all := run.Requests+run.Unprepared, s.Requests.all()
	j.check(codeRowsMissing, against(float64(all), float64(due), "requests", due <= all),
		"there are results of %s, but the run had %s", doc.Many(all, "request"), doc.Brief(due))
	if len(run.Shards) > 0 {
		apart, furthest := result.StartedApart(run.Shards)
		j.check(codeShards, atMost(float64(apart), 0, "shards"),
			"%s of %d started at another time than the others, by up to %v: the load was never whole",
			doc.Many(int64(apart), "shard"), len(run.Shards), furthest.Round(time.Second))
	}
	return Verdict{Trustworthy: len(j.reasons) == 0, Reasons: j.reasons, Loosened: limits.Loosened(), Checks: j.checks}
}

// UntrustedRuns says how many of several runs cannot be trusted.
func UntrustedRuns(n, all int64) string {
	return fmt.Sprintf("%s of %s %s not trustworthy", doc.Brief(n), doc.Many(all, "run"),
		map[bool]string{true: "is", false: "are"}[n == 1])
}

type judgement struct {
	reasons []Reason
	checks  []Check
}

// against is what was measured beside what is allowed. A limit below zero is none.
func against(measured, limit float64, unit string, holds bool) Check {
	c := Check{Measured: Rounded(measured, 1e9), Unit: unit, Holds: holds}
	if limit >= 0 {
		c.Allowed = Rounded(limit, 1e9)
	}
	c.Holds = c.Holds || c.Allowed == nil || c.Measured == nil
	return c
}

// unmeasured has a limit, and nothing to hold against it.
func unmeasured(limit float64, unit string) Check {
	c := against(0, limit, unit, true)
	c.Measured = nil
	return c
}

// atMost holds what must not be above a limit.
func atMost(measured, limit float64, unit string) Check {
	return against(measured, limit, unit, measured <= limit)
}

// check takes a check, and the reason in words where it does not hold.
func (j *judgement) check(code string, c Check, format string, args ...any) {
	c.Code = code
	j.checks = append(j.checks, c)
	if !c.Holds {
		j.reasons = append(j.reasons, Reason{code, fmt.Sprintf(format, args...), *c.Measured, *c.Allowed, c.Unit})
	}
}

// lag checks the percentiles of the send lag, each through the largest lag
// where there are too few requests for it, and the drift.
func (j *judgement) lag(s *Summary, limits Limits) {
	lag := &s.Latency.SendLag
	for _, c := range []struct {
		code, name string
		value      *float64
		limit      time.Duration
	}{
		{codeLagP50, "p50", lag.P50, limits.LagP50},
		{codeLagP99, "p99", lag.P99, limits.LagP99},
		{codeLagP999, "p99.9", lag.P999, limits.LagP999},
	} {
		value, what := c.value, fmt.Sprintf("the %s of the send lag", c.name)
		if value == nil {
			value, what = lag.Max, fmt.Sprintf("the largest send lag of %s, too few for a %s,",
				doc.Many(lag.Count, "request"), c.name)
		}
		if value == nil {
			j.check(c.code, unmeasured(ms(c.limit), "ms"), "")
			continue
		}
		j.check(c.code, atMost(*value, ms(c.limit), "ms"), "%s is %s ms; the limit is %s ms", what,
			doc.Beside(*value, ms(c.limit)), doc.Number(ms(c.limit)))
	}
	limit := ms(limits.LagDrift)
	if d := s.LagDriftMS; d != nil {
		j.check(codeLagDrift, atMost(*d, limit, "ms"),
			"the median send lag grew by %s ms from the first to the last quarter of the run; the limit is %s ms",
			doc.Beside(*d, limit), doc.Number(limit))
	} else {
		j.check(codeLagDrift, unmeasured(limit, "ms"), "")
	}
}

// Why there is nothing to hold against a limit on stalls.
const (
	stallsNotRecorded   = "not recorded"
	stallsNotApplicable = "not applicable"
)

// stalls checks how much of what was measured the client stood still in.
func (j *judgement) stalls(s *Summary, limits Limits) {
	var stalled Stalled
	why := ""
	switch {
	case s.Run.Simulated != "":
		why = stallsNotApplicable
	case s.Stalled == nil:
		why = stallsNotRecorded
	default:
		stalled = *s.Stalled
	}
	check := func(code string, share *float64, limit float64, format string, args ...any) {
		if share == nil {
			c := unmeasured(limit, "share")
			c.Says = why
			j.check(code, c, "")
			return
		}
		j.check(code, atMost(*share, limit, "share"), format,
			append([]any{doc.Percent(*share)}, append(args, doc.Percent(limit))...)...)
	}
	before := len(j.reasons)
	var seen []string // what of the client's own delays was seen
	if r := s.Run.Stalls; r != nil {
		seen = append(seen, fmt.Sprintf("%s, the longest %s ms", doc.Many(r.Count, "stall"),
			doc.Number(float64(r.LongestNS)/1e6)))
	}
	ttft := "up to %s of TTFT is the client's own delay, since it stood still in %s of %s (%s); the limit is %s"
	gap := "up to %s of ITL p99 is the client's own delay, since it stood still (%s); the limit is %s"
	switch r := s.Receipt; {
	case r == nil:
	case r.Instants == InstantsKernel:
		ttft = "requests whose first token has no certain instant are left out: they are %s of the times to first " +
			"token, in %s of %s (%s); the limit is %s"
		gap = "gaps between tokens whose ends have no certain instant are left out: at p99 they are %s of a gap " +
			"(%s); the limit is %s"
	case r.Delay.Max != nil:
		ttft = strings.Replace(ttft, "stood still", "stood still or read late", 1)
		gap = strings.Replace(gap, "stood still", "stood still or read late", 1)
		seen = append(seen, "the latest read "+doc.Number(*r.Delay.Max)+" ms after the kernel had the data")
	}
	check(codeStalledTTFT, stalled.TTFTShare, limits.StallTTFT, ttft,
		doc.Brief(stalled.StalledRequests), doc.Many(s.Requests.Succeeded, "request"), strings.Join(seen, "; "))
	check(codeStalledGap, stalled.GapP99Share, limits.StallGap, gap, strings.Join(seen, "; "))
	// The share of all times to first token is about the mean. By chance, stalls may meet
	// more of the first and last tokens than of the time, and p99 consists of those.
	for _, c := range []struct {
		code, what, metric string
		late               *float64
		of                 *Stat
	}{
		{codeLateFirst, "first", "TTFT", stalled.TTFTLateP99, &s.Latency.FromSent.TTFT},
		{codeLateLast, "last", "E2E", stalled.E2ELateP99, &s.Latency.FromSent.E2E},
	} {
		limit := -1.0
		if limits.StallTTFT >= 0 {
			limit = ms(lateRead)
			if c.of.P99 != nil {
				limit = max(limit, limits.StallTTFT**c.of.P99)
			}
		}
		if c.late == nil {
			check := unmeasured(limit, "ms")
			check.Says = cmp.Or(why, stallsNotRecorded)
			j.check(c.code, check, "")
			continue
		}
		j.check(c.code, atMost(*c.late, limit, "ms"),
			"p99 of %s may be %s ms too long, since %s tokens were read late (%s); the limit is %s ms",
			c.metric, doc.Beside(*c.late, limit), c.what, strings.Join(seen, "; "), doc.Number(limit))
	}
	j.heldUp(j.reasons[before:], strings.Join(seen, "; "), s.Run.Endpoints)
}

// heldUp gives the details of the client's delays in the first of the reasons that rest on them, and says in the last
// one what to do.
func (j *judgement) heldUp(reasons []Reason, seen string, endpoints []string) {
	if len(reasons) == 0 {
		return
	}
	for i := range reasons[1:] {
		reasons[1+i].Text = strings.Replace(reasons[1+i].Text, " ("+seen+")", "", 1)
	}
	remedy := "Give the client cores that nothing else uses"
	onThisMachine := func(endpoint string) bool {
		u, err := url.Parse(endpoint)
		return err == nil && host.Loopback(u.Hostname())
	}
	if slices.ContainsFunc(endpoints, onThisMachine) {
		remedy = "The server is on this machine: give it and the client cores of their own, such as with taskset"
	}

	var keys []string
	for i := range reasons {
		if _, key := reasons[i].Doubts(); !slices.Contains(keys, key+"=…") {
			keys = append(keys, key+"=…")
		}
	}
	reasons[len(reasons)-1].Text += ". " + remedy + ", or lower the load; --trust " + strings.Join(keys, ",") +
		" accepts it"
}

// stallsApart is how far the two clocks that see a stall may be apart, in nanoseconds.
const stallsApart = 10e6

// machine checks what the client took of its machine, and the machine of it.
func (j *judgement) machine(s *Summary, limits Limits) {
	run, cpu := &s.Run, unmeasured(limits.CPU, "share")
	cores, had := float64(run.Cores), fmt.Sprintf("%d cores", run.Cores)
	if c := run.CPU; c != nil {
		if c.QuotaCores > 0 && c.QuotaCores < cores {
			cores = c.QuotaCores
			had = fmt.Sprintf("the %s cores that its control group allows", doc.Number(cores))
		}
		if c.ThrottledNS > 0 {
			had += fmt.Sprintf(", throttled in %s for %s ms in all", doc.Many(c.Throttled, "period"),
				doc.Number(ms(time.Duration(c.ThrottledNS))))
		}
		if share := c.StealShare; share != nil && *share > 0 {
			cores *= 1 - min(*share, 0.999)
			had += fmt.Sprintf(", %s of the machine's time stolen by its host", doc.Percent(*share))
		}
	}
	if cores > 0 && run.ClientCPU > 0 {
		share := run.ClientCPU / cores
		cpu = against(share, limits.CPU, "share", share < limits.CPU)
	}
	j.check(codeCPU, cpu, "the client used %.2f of %s; from %s on, its own waiting is in the latencies", run.ClientCPU,
		had, doc.Percent(limits.CPU))
	stalled := run.StalledNS
	if r := run.Stalls; r != nil && s.Stalled != nil && r.Count == int64(len(r.Intervals)) &&
		stalled <= r.LongestNS+stallsApart {
		stalled = int64(*s.Stalled.InFlightMax * 1e6) // the heartbeat saw all of them, and nobody waited in the others
	}
	for _, c := range []struct {
		code  string
		value int64
		limit time.Duration
		words string
	}{
		{codeGCPause, run.GCPauseMaxNS, limits.GCPause,
			"a garbage collection stopped the client for %s ms; the limit is %s ms"},
		{codeStalled, stalled, limits.Stall,
			"client stall of %s ms: the process was stopped, suspended or starved; the limit is %s ms"},
		{codeClock, run.ClockJumpNS, limits.ClockJump,
			"the wall clock jumped by %s ms against the monotonic one: it was set, or the machine was suspended; the " +
				"limit is %s ms"},
	} {
		value, limit := ms(time.Duration(c.value)), ms(c.limit)
		j.check(c.code, atMost(value, limit, "ms"), c.words, doc.Beside(value, limit), doc.Number(limit))
	}
}

// outcomes checks how requests ended, and which of them were kept from their time.
func (j *judgement) outcomes(s *Summary, limits Limits) {
	r, run := &s.Requests, &s.Run
	const workload, those = "of the workload", "of those that ended"
	share := func(code string, n, of int64, limit float64, whole, format string, args ...any) {
		part := Ratio(n, of)
		if part == nil {
			j.check(code, unmeasured(limit, "share"), "")
			return
		}
		j.check(code, atMost(*part, limit, "share"), format+", %s %s; the limit is %s",
			append(args, doc.Percent(*part), whole, doc.Percent(limit))...)
	}
	ended := r.Succeeded + r.Failed
	if run.Simulated == "" {
		share(codeHeldBack, run.HeldBack, max(run.Requests, r.all(), run.HeldBack), limits.HeldBack, workload,
			"%s waited for the limit of %d in flight, so the client shaped the load", doc.Many(run.HeldBack,
				"request"), run.InFlightLimit)
		share(codeConnect, r.Unconnected, ended, limits.Connect, those, "%s found no connection",
			doc.Many(r.Unconnected, "request"))
		share(CodeRefused, r.Refused, ended, limits.Refused, those, "the server refused %s with 429 or 503",
			doc.Many(r.Refused, "request"))
	}
	share(CodeErrors, r.Failed, ended, limits.Errors, those, "%s failed", doc.Many(r.Failed, "request"))
	if n := len(j.reasons); n > 0 && j.reasons[n-1].Code == CodeErrors {
		j.reasons[n-1].Text += cause(s)
	}
	share(CodeSkipped, run.Skipped, run.Skipped+r.Rows, limits.Errors, workload,
		"%s %s not sent since a turn before failed", doc.Many(run.Skipped, "later turn"), doc.Was(run.Skipped))
}

// delivered checks what came of what was asked for. The rate is held by the limits on the send
// lag, whose drift is the part by which the rate is off.
func (j *judgement) delivered(s *Summary, limits Limits) {
	run := &s.Run
	share := func(code string, off *float64, limit float64, format string, args ...any) {
		if off == nil {
			j.check(code, unmeasured(limit, "share"), "")
			return
		}
		j.check(code, atMost(*off, limit, "share"), format+"; the limit is %s", append(args, doc.Percent(limit))...)
	}

	impossible := &ImpossibleCounts{}
	if s.Tokens.Impossible != nil {
		impossible = s.Tokens.Impossible
	}
	share(codeImpossible, Ratio(impossible.Rows, s.Requests.Succeeded), limits.Impossible,
		"the server's token counts are impossible, and no figure uses them: %s", impossible)

	prompts, how := s.Tokens.PromptError.share(), "counted other prompt lengths than the workload's"
	if run.Prompts == result.PromptsVerbatim || run.Images != nil && run.Images.Requests > 0 {
		prompts = nil // their lengths are those that another server counted
	}
	if other := otherTokenizer(s); other != "" {
		how = "counted " + other
	}
	share(codePrompts, prompts, limits.Prompt,
		"the server %s, %s off in all: name its tokenizer with --tokenizer, by name or as the path of its "+
			"tokenizer.json, and what its template adds with --set template-tokens", how,
		doc.OrDash(prompts, doc.Percent))

	outputs := s.Tokens.OutputMiss.share()
	if string(run.Sampling["ignore_eos"]) != "true" || run.Prompts == result.PromptsVerbatim {
		outputs = nil // the server ended its answers by itself, as it may
	}
	fewer := "more"
	if s.Tokens.OutputMiss.Fewer > s.Tokens.OutputMiss.More {
		fewer = "fewer"
	}
	share(codeOutputs, outputs, limits.Output,
		"answers had %s %s output tokens than were asked for: the server did not keep to ignore_eos and min_tokens. "+
			"Use one that does, or let it end its answers by itself with --force-output=false", doc.OrDash(outputs,
			doc.Percent), fewer)

	extra := s.extraHits()
	if prompts != nil && !atMost(*prompts, limits.Prompt, "share").Holds {
		extra = nil // what was expected counts tokens that the server does not have
	}
	says := s.Cache.moreHits()
	if run.Prompts == result.PromptsVerbatim { // the least that an earlier run explains, and not the whole difference
		says = fmt.Sprintf("at least %s of the prompt tokens were cached before this run (%s)",
			doc.OrDash(extra, doc.Percent), s.Cache.hits())
	}
	share(codeExtraHits, extra, limits.ExtraHits, "%s: %s", says, warmCause(run))
}

// hits are the two figures that the report's tables have of the caches.
func (c *Cache) hits() string {
	return "hits: " + doc.OrDash(c.Measured, doc.Percent) + ", expected: " + doc.OrDash(c.Expected, doc.Percent)
}

// moreHits says by how much the servers' caches had more than earlier prompts explain.
func (c *Cache) moreHits() string {
	return doc.OrDash(c.Difference, doc.PercentagePoints) + " more cache hits than expected (" + c.hits() + ")"
}

// saidBy are the warnings of what a reason of the verdict says already.
var saidBy = map[string][]string{
	codePrompts:   {warnTokenizer, warnPromptLength},
	codeOutputs:   {warnOutputLength},
	codeExtraHits: {warnForeignHits},
}

func (s *Summary) dropSaidWarnings() {
	for _, r := range s.Verdict.Reasons {
		s.Warnings = slices.DeleteFunc(s.Warnings, func(w Warning) bool {
			return slices.Contains(saidBy[r.Code], w.Code)
		})
	}
}

// extraHits is by how much more of the prompts the servers found in their caches than this run
// had sent, nil where that is not known: what a simulated engine generated is shared too.
func (s *Summary) extraHits() *float64 {
	run, more := &s.Run, s.Cache.Difference
	switch {
	case more == nil, run.Simulated != "", run.Thread != nil && run.Thread.Recoded > 0:
		return nil
	case run.Cache != nil && run.Cache.Asked == result.CacheAsIs: // somebody wants what is there
		return nil
	case run.Prompts == result.PromptsVerbatim:
		return s.Cache.beyond
	case s.Cache.otherBlock != 0:
		return nil
	}
	return trace.Ptr(max(*more, 0))
}

// warmCause says why servers may have found more in their caches than a run had sent, and
// what to do.
func warmCause(run *result.Run) string {
	done := ""
	if run.Cache != nil {
		done = run.Cache.Done
	}
	switch {
	case run.Prompts == result.PromptsVerbatim:
		return "an earlier run sent these prompts, and the server still had them. Empty its cache before the run: " +
			"--cache cold where the server has a call for it, or start it anew. --cache as-is accepts a warm cache"
	case done == result.CacheSalt || done == result.CacheReset || done == result.CacheNewSeed:
		return "no earlier run sent these prompts, so others send them too, or the server counts hits in another way"
	}
	return "the cache was warm from earlier runs. Try --cache salted"
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// checkNames say what each check holds against its limit.
var checkNames = []struct{ code, name string }{
	{CodeNoSamples, "successful requests, at least"},
	{codeLagP50, "send lag, p50"},
	{codeLagP99, "send lag, p99"},
	{codeLagP999, "send lag, p99.9"},
	{codeLagDrift, "drift of the send lag"},
	{codeCPU, "the client's CPU, below"},
	{codeGCPause, "longest GC pause"},
	{codeStalled, "longest client stall"},
	{codeStalledTTFT, "client stalls in TTFT"},
	{codeStalledGap, "client stalls in a token gap, p99"},
	{codeLateFirst, "first tokens read late, p99"},
	{codeLateLast, "last tokens read late, p99"},
	{codeClock, "jump of the wall clock"},
	{codeHeldBack, "held back at the limit"},
	{codeConnect, "found no connection"},
	{CodeRefused, "refused with 429 or 503"},
	{CodeErrors, "failed"},
	{CodeSkipped, "turns not sent after a failure"},
	{codeEndedEarly, "left by an early end"},
	{codeNotSent, "never sent"},
	{codeUnprepared, "without a prompt"},
	{codeGuessed, "output counted by a guessed tokenizer"},
	{codeRowsMissing, "results, at least"},
	{codeShards, "shards that started apart"},
	{codePrompts, "prompt tokens off, by the server's count"},
	{codeOutputs, "output tokens off, of forced lengths"},
	{codeExtraHits, "cache hits beyond the sent prompts"},
	{codeImpossible, "answers with impossible counts"},
}

// validityChecks is the title of the checks.
const validityChecks = "Validity checks"

var checkHead = []string{"check", "measured", "allowed"}

// checkRows are what was measured beside what is allowed.
func checkRows(s *Summary) [][]string {
	var rows [][]string
	for _, c := range s.Verdict.Checks {
		i := slices.IndexFunc(checkNames, func(n struct{ code, name string }) bool { return n.code == c.Code })
		if i < 0 || c.Allowed == nil {
			continue
		}
		name := checkNames[i].name
		if !c.Holds {
			name += " (!)"
		}
		rows = append(rows, []string{name, cmp.Or(c.Says, inUnit(c.Measured, c.Unit)), inUnit(c.Allowed, c.Unit)})
	}
	return rows
}

func inUnit(v *float64, unit string) string {
	switch {
	case v == nil:
		return "–"
	case unit == "share":
		return doc.Percent(*v)
	case unit == "requests" || unit == "shards":
		return doc.Brief(int64(*v))
	}
	return doc.Number(*v) + " " + unit
}

// causes say what the classes of failure mean, for those who read a verdict.
var causes = map[string]string{
	"connect":      "the server refused connections, or could not be reached",
	"tls":          "the TLS handshake failed",
	"timeout":      "no whole answer came within the time limit",
	"bad_request":  "the server did not take the requests (HTTP 4xx)",
	"auth":         "the server wants another key (HTTP 401 or 403)",
	"not_found":    "the server knows no such path or model (HTTP 404)",
	"rate_limited": "the server had too many requests (HTTP 429)",
	"too_long":     "prompts were too long for the model",
	"server_error": "the server failed (HTTP 5xx)",
	"unavailable":  "the server was overloaded or not there (HTTP 502, 503, 504 or 529)",
	"redirect":     "the server sends clients to another address, and none is followed (HTTP 3xx)",
	"stream_error": "the server reported an error within an answer, or sent something other than an answer",
	"not_streamed": "the server sent whole answers and no streams, so no token has an instant",
	"overlong":     "answers went on beyond anything that was asked for, and were cut off",
	"compressed":   "the server, or a gateway, compressed its answers, which holds tokens back",
	"incomplete":   "answers ended before they were finished",
	"aborted":      "the server gave answers up before their end: its finish reason is abort, timeout or the like",
	"empty":        "answers had no token",
	"reset":        "connections broke",
	"prepare":      "no prompt could be made",
	"other":        "for other reasons",
}

// cause names the most frequent class of failure and what it means, as the end
// of a sentence; "" when none is known.
func cause(s *Summary) string {
	for _, e := range s.Errors {
		if says := causes[e.Class]; says != "" {
			if e.Says != "" {
				says += fmt.Sprintf(". The server says: %q", textpage.Plain(e.Says))
			}
			return fmt.Sprintf("; %s as %s: %s", doc.Brief(e.Count), e.Class, says)
		}
	}
	return ""
}
