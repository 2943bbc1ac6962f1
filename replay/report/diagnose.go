package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace/doc"
)

// Codes of the diagnoses, in the order in which they are given.
const (
	leadClient       = "client_limit"        // the client shaped the figures
	leadClientWait   = "client_wait"         // requests waited in the client
	leadSaturated    = "saturation"          // more came than the server finished
	leadQueueing     = "queueing"            // requests waited in the server
	leadTail         = "ttft_tail"           // p99 of TTFT far from its p50, for a reason that is not seen
	leadPrefill      = "prefill_cost"        // TTFT grows with the prompt
	leadInterference = "decode_interference" // some gaps are far longer than the rest
	leadSingle       = "single_stream"       // decode without batching
	leadBlockSize    = "block_size"          // the server's blocks are of another size
	leadSlotCache    = "slot_cache"          // the server keeps one sequence for each slot
	leadBoundary     = "block_boundary"      // shared prefixes end before the boundary of a block
	leadColdCache    = "cold_cache"          // fewer hits than the workload allows
	leadNoCache      = "no_prefix_cache"     // no hits at all, or caching is known to be off
	leadMemory       = "kv_cache_full"       // sequences were thrown out of the batch
	leadIdleGPU      = "idle_gpu"            // requests wait while the GPU does not work
)

// From where on a figure says something. They are rules of thumb, set so that what
// every healthy run has stays unsaid.
const (
	farTail    = 4    // p99 ÷ p50 of TTFT
	farGap     = 3    // p99 ÷ p50 of the gaps between tokens
	farLength  = 2    // TTFT p50 of the longest prompts ÷ that of the shortest
	fewFlying  = 2    // requests in flight that a decode step is hardly shared among
	rampUps    = 2    // times of an unloaded request that a quarter of the arrivals takes at least, to tell
	grown      = 1.5  // requests in flight, last quarter ÷ first, beyond what the arrivals grew by
	missedHits = 0.05 // share of prompt tokens
	sameHits   = 0.005
	leastHits  = 5   // requests that were to hit
	idleGPU    = 0.5 // mean utilisation
)

type leads struct{ out []Diagnosis }

func (l *leads) add(code, confirm, format string, args ...any) {
	l.out = append(l.out, Diagnosis{code, fmt.Sprintf(format, args...), confirm})
}

// diagnose looks for what may be behind the figures. The due times are from firstDue to lastDue.
func diagnose(s *Summary, t *timeline, firstDue, lastDue int64) []Diagnosis {
	l := &leads{out: []Diagnosis{}}
	l.client(s)
	early, late, came, ok := t.growth(firstDue, lastDue)
	// Until the first requests end, all that comes is in flight. Without a load a request would take about its tokens
	// times the least TPOT, whatever a queue and a growing batch make of it.
	if tpot := s.Latency.TPOT.Min; tpot != nil {
		tokens := float64(s.Tokens.Output) / float64(s.Requests.Succeeded)
		ok = ok && float64(lastDue-firstDue)/4e6 >= rampUps**tpot*tokens
	}
	if s.Run.Timing != result.ClosedLoop && ok && late >= early*grown*max(came, 1)+2 {
		l.add(leadSaturated, "the same workload at lower rates (--speed, --rate): below the knee, requests in "+
			"flight stay level",
			"The server fell behind: %s requests were in flight in the last quarter of the run, and %s in the first, "+
				"while arrivals changed by a factor of %s (in flight, arrivals).",
			doc.Number(late), doc.Number(early), doc.Number(came))
	}
	l.queue(s)
	l.prefill(s)
	l.decode(s)
	l.cache(s)
	return l.out
}

func (l *leads) client(s *Summary) {
	for _, r := range s.Verdict.Reasons {
		switch r.Code {
		case codeLagP50, codeLagP99, codeLagP999, codeLagDrift, codeCPU, codeGCPause, codeStalled, codeStalledTTFT,
			codeStalledGap, codeHeldBack:
			l.add(leadClient, "the same load from several clients, or a lower rate: where the figures change, they "+
				"were the client's",
				"The client shaped these figures: %s (validity checks).", r.Text)
			return
		}
	}
	sent, due := s.Latency.FromSent.TTFT.P99, s.Latency.FromDue.TTFT.P99
	if s.Run.Simulated == "" && sent != nil && due != nil && *due-*sent > max(1, 0.1**sent) {
		l.add(leadClientWait, "send lag over time beside requests in flight; the same run with a higher limit of "+
			"requests in flight, or with more connections",
			"Requests waited before they were sent: p99 of TTFT is %s ms from schedule and %s ms from sent (TTFT "+
				"from schedule, TTFT from sent), with a send lag of %s ms at p99 (send lag).",
			doc.Number(*due), doc.Number(*sent), numberOrDash(s.Latency.SendLag.P99))
	}
}

func (l *leads) queue(s *Summary) {
	t := &s.Latency.FromSent.TTFT
	if v := s.Servers; v != nil && v.Waiting != nil && v.Waiting.Mean >= 1 {
		l.add(leadQueueing, "TTFT over time beside requests waiting; the same rate with a larger batch "+
			"(max_num_seqs), or a lower rate",
			"Requests queued at the servers: %s waited on average and %s at most (waiting), and TTFT is %s ms at p50 "+
				"and %s ms at p99 (TTFT from sent).",
			doc.Number(v.Waiting.Mean), doc.Number(v.Waiting.Max), numberOrDash(t.P50), numberOrDash(t.P99))
		if v.GPUUse != nil && v.GPUUse.Mean < idleGPU {
			l.add(leadIdleGPU, "the server's CPU, the GPU's clocks and the engine's log over the same time",
				"The GPU worked %s of the time while requests waited (GPU utilisation, waiting): something else "+
					"holds the engine up.", doc.Percent(v.GPUUse.Mean))
		}
		return
	}
	if t.TailRatio == nil || *t.TailRatio < farTail {
		return
	}
	l.add(leadTail, "requests waiting at the servers over time (--scrape), and whether the shortest prompts have the "+
		"same tail (TTFT by prompt length): if they do, they queue behind others",
		"One request in a hundred waits %s times as long for its first token as the median one, %s ms and %s ms (p99 "+
			"and p50 of TTFT from sent): queueing, bursts, or short prompts behind long ones.",
		doc.Number(*t.TailRatio), doc.Number(*t.P99), doc.Number(*t.P50))
}

// prefill looks whether the first token takes longer the longer the prompt is.
func (l *leads) prefill(s *Summary) {
	var of []LengthBucket
	for _, b := range s.ByInputLength {
		if b.TTFTP50 == nil || b.TTFTCount < 10 {
			continue
		}
		if n := len(of); n > 0 && *b.TTFTP50 < *of[n-1].TTFTP50 {
			return
		}
		of = append(of, b)
	}
	if len(of) < 2 {
		return
	}
	short, long := of[0], of[len(of)-1]
	if *long.TTFTP50 < farLength**short.TTFTP50 {
		return
	}
	l.add(leadPrefill, "prompt tokens per second and GPU compute utilisation over the same time, and the longest "+
		"prompts alone, one at a time; then chunked prefill, shorter context or prefix reuse",
		"Time to first token grows with the prompt: its median is %s ms for prompts of %s and %s ms for prompts of "+
			"%s (TTFT by prompt length), with %s requests in flight on average (in flight): prefill has a price here.",
		doc.Number(*short.TTFTP50), short.tokens(), doc.Number(*long.TTFTP50), long.tokens(),
		numberOrDash(s.InFlight.Mean))
}

// tokens names the lengths of a bucket.
func (b *LengthBucket) tokens() string {
	if b.Hi == nil {
		return doc.Brief(b.Lo) + " tokens or more"
	}
	return fmt.Sprintf("%s to %s tokens", doc.Brief(b.Lo), doc.Brief(*b.Hi-1))
}

func (l *leads) decode(s *Summary) {
	itl, tpot := &s.Latency.ITLChunk, &s.Latency.TPOT
	if r, m := itl.TailRatio, s.InFlight.Mean; r != nil && *r >= farGap && m != nil && *m > 1 {
		// a request alone has no other's prompt between its steps
		l.add(leadInterference, "ITL beside prompt tokens over time; the same run with chunked prefill, or with a "+
			"smaller budget of tokens in a step (max_num_batched_tokens)",
			"Streams stall: one gap in a hundred is %s times the median one, %s ms and %s ms (p99 and p50 of chunk "+
				"ITL). Prompts computed between the steps of decoding do that.",
			doc.Number(*r), doc.Number(*itl.P99), doc.Number(*itl.P50))
	}
	if m := s.InFlight.Mean; m != nil && *m < fewFlying && tpot.Count >= 10 && *tpot.Mean > 0 {
		l.add(leadSingle, "memory bandwidth ÷ bytes of the weights, which bounds it, and the GPU's memory counters: "+
			"far below the bound, look at kernels, clocks and precision",
			"Hardly anything was batched, with %s requests in flight on average (in flight): %s ms for a token, %s "+
				"tokens per second for a user (mean TPOT), is what decoding alone gives. It is bound by memory where "+
				"it is near what the bandwidth allows.",
			doc.Number(*m), doc.Number(*tpot.Mean), doc.Number(1000 / *tpot.Mean))
	}
}

// cachingOff finds the flags of engines that turn their prefix cache off.
var cachingOff = regexp.MustCompile(
	`--no-(enable-)?prefix-caching\b|--enable-prefix-caching[= ]+[Ff]alse\b|--disable-radix-cache\b|--no-cache-prompt\b`)

func (l *leads) cache(s *Summary) {
	// of other tokens, nothing can be said but that there are none
	d, other := deref(s.Cache.Difference), otherTokenizer(s) != ""
	slots := s.Run.Environment != nil &&
		slices.ContainsFunc(engineParts(&s.Run), func(e string) bool { return strings.HasPrefix(e, "llama") })
	switch c := &s.Cache; {
	case c.otherBlock > 0 && !other:
		why := "finds prefixes by the token and not in blocks: that explains"
		if c.otherBlock > 1 {
			why = fmt.Sprintf("has blocks of another size than was expected: all counts of cached tokens are "+
				"multiples of %d, and blocks of %d tokens explain", c.otherBlock, c.otherBlock)
		}
		l.add(leadBlockSize, fmt.Sprintf("reprise report RESULTS --server-block-size %d, and the block size in the "+
			"server's flags, or block_size of vllm:cache_config_info at /metrics", c.otherBlock),
			"The server %s the %s that were found (measured hit ratio), where blocks of %d would give %s (expected "+
				"hit ratio).", why, doc.Percent(*c.Measured), *c.Block, doc.Percent(*c.Expected))
	case d < -sameHits && *c.Measured > 0 && slots && !other:
		l.add(leadSlotCache, "the same run with more slots (llama-server --parallel), or one request at a time "+
			"(--concurrency 1)",
			"llama.cpp keeps the last sequence of each slot and no blocks: a prompt finds a prefix only while a slot "+
				"holds it. %s of the prompt tokens came from the slots, and %s could have from one cache that keeps "+
				"all (measured and expected hit ratio): that expectation is not of this engine.",
			doc.Percent(*c.Measured), doc.Percent(*c.Expected))
	case d < -sameHits && c.oneLess && !other:
		l.add(leadBoundary, "how much of the chat template stands before a prompt "+
			"(--set template-tokens=BEFORE+AFTER), and completions, which have no template",
			"Each prompt that shares a prefix found one block of %s less than expected (measured and expected hit "+
				"ratio): what prompts share ends a few tokens before the boundary of a block, as when more of a chat "+
				"template stands before them than was measured. Eviction would take more.",
			doc.Many(*c.Block, "token"))
	case d < -missedHits && (!other || *c.Measured == 0):
		r, found, possible := &s.Run, *c.Measured, doc.Percent(*c.Expected)
		flags := ""
		if e := r.Environment; e != nil && e.Deployment != nil {
			flags = cachingOff.FindString(e.Deployment.EngineFlags)
		}
		switch { // more memory helps neither a cache that is off nor one in which nothing was found
		case r.PrefixCaching != nil && !*r.PrefixCaching, flags != "":
			l.add(leadNoCache, "the same run with prefix caching on",
				"Prefix caching was off, so every prompt was computed whole: %s of the prompt tokens could have come "+
					"from one cache without limit (expected hit ratio).", possible)
		case found == 0 && r.PrefixCaching == nil:
			l.add(leadNoCache, "whether prefix caching is on at the server (its start flags, or "+
				"enable_prefix_caching of vllm:cache_config_info at /metrics); if it is, whether prompts are the "+
				"same to the byte",
				"Nothing was found in a prefix cache: none of the prompt tokens came from one, and %s could have "+
					"with one without limit (measured and expected hit ratio). A cache that is too small finds some.",
				possible)
		default:
			confirm := "the KV cache in use over time (--scrape), and the same run with more memory for it: with too " +
				"little, prefixes are evicted before they come again; if not, whether the prompts are the same " +
				"to the byte"
			where := ""
			if n := max(r.Instances, len(r.Endpoints)); n > 1 {
				confirm = "the same run with one instance, or with a router that follows prefixes (simulate --router " +
					"prefix): where the hit ratio rises, the caches hold the same prefixes several times"
				where = fmt.Sprintf("; each of %d instances has a cache of its own", n)
			}
			l.add(leadColdCache, confirm,
				"Prefixes were computed again: %s of the prompt tokens came from the cache, and %s could have with "+
					"one cache without limit (measured and expected hit ratio)%s.",
				doc.Percent(found), possible, where)
		}
	}
	if v := s.Servers; v != nil && v.Preemptions != nil && *v.Preemptions > 0 {
		most := ""
		if v.KVUsage != nil {
			most = fmt.Sprintf(" (at most %s in use)", doc.Percent(v.KVUsage.Max))
		}
		l.add(leadMemory, "preemptions beside the KV cache in use over time; the same rate with a smaller batch "+
			"(max_num_seqs) or more memory for the cache",
			"Sequences were thrown out of the batch %s times (preemptions) for want of KV cache%s; they start anew, "+
				"and their streams stall.", doc.Number(*v.Preemptions), most)
	}
}
