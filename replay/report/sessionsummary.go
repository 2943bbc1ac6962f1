package report

import (
	"fmt"
	"math"
	"slices"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/sample"
)

// Sessions says how the sessions of a run went: the trees of requests that users, or
// their agents, see as one piece of work. Counts are of the sessions that began in the
// measured window; of a sample where there is a SampleShare.
type Sessions struct {
	Sessions  int64 `json:"sessions"`  // succeeded + failed + censored
	Succeeded int64 `json:"succeeded"` // all requests ended, and none failed
	Failed    int64 `json:"failed"`    // a request failed
	Censored  int64 `json:"censored"`  // had requests left when the run ended
	Outside   int64 `json:"outside"`   // further ones, that began before the window or after it
	Partial   int64 `json:"partial"`   // further ones, whose first requests this run did not send
	Single    int64 `json:"single_request"`

	// CutUnknown says that the run does not tell which sessions had requests left: all
	// that did not fail are censored.
	CutUnknown  bool     `json:"cut_unknown,omitempty"`
	SampleShare *float64 `json:"sample_share,omitempty"` // of the sessions, when there are too many to keep all
	// SplitTrees says that the sample holds parts of trees: those whose sessions of the
	// workload, which parents join, were not all kept.
	SplitTrees bool `json:"split_trees,omitempty"`

	SuccessShare *float64 `json:"success_share"` // succeeded ÷ (succeeded + failed)
	// Completion is the time from the first due time to the last answer, of those that
	// succeeded. Sessions that were censored took longer than they could be seen.
	Completion Stat `json:"completion"`

	// Slowdown is the completion over what the session took in the source.
	Slowdown      Spread `json:"slowdown"`
	SlowdownLacks string `json:"slowdown_lacks,omitempty"` // why there is none, or not of all
	Recorded      Stat   `json:"recorded"`                 // what these sessions took in the source

	PerS     *float64 `json:"sessions_per_s"` // that succeeded, by their end
	PerUser  *float64 `json:"jobs_per_hour_per_user"`
	PerGPU   *float64 `json:"jobs_per_hour_per_gpu,omitempty"` // where the number of GPUs is given
	Path     *Path    `json:"critical_path"`                   // null where none succeeded
	Requests Spread   `json:"requests_per_session"`
	Input    Spread   `json:"input_tokens_per_session"`
	Cached   Spread   `json:"cached_tokens_per_session"` // of those whose server reports it for every request
	Output   Spread   `json:"output_tokens_per_session"`

	// Cost is what each session that succeeded cost, of the price of the GPUs over the duration:
	// its share of the work of all requests that succeeded in the window, see [workOf]. Nil
	// without a price.
	Cost *Spread `json:"cost_per_session,omitempty"`
}

// A Spread describes values without a unit, as a [Stat] does times.
type Spread struct {
	Count int64    `json:"count"`
	Mean  *float64 `json:"mean"`
	P50   *float64 `json:"p50"`
	P90   *float64 `json:"p90"`
	P95   *float64 `json:"p95"`
	P99   *float64 `json:"p99"`
	Max   *float64 `json:"max"`
}

// stat is a spread with the fields of times.
func (s *Spread) stat() *Stat {
	return &Stat{Count: s.Count, Mean: s.Mean, P50: s.P50, P90: s.P90, P95: s.P95, P99: s.P99, Max: s.Max}
}

// spreadUnit is what [sample.Values] have for 1 of a [Spread].
const spreadUnit = 1e6

func spreadOf(of *sample.Values) Spread {
	st, _ := StatOf(of) // its milliseconds are millionths of what was added
	return Spread{st.Count, st.Mean, st.P50, st.P90, st.P95, st.P99, st.Max}
}

// A Path says what the time of sessions went to, along their critical paths: from the
// request that ended last to the parent that it waited for, and so on. Seconds are means
// over the sessions that succeeded, and shares are of their times together.
type Path struct {
	Server  PathPart `json:"server"`
	Prefill PathPart `json:"until_first_token"` // sent to first token: queue and prefill
	Decode  PathPart `json:"decode"`            // first token to the end of the answer
	Think   PathPart `json:"think"`
	Tool    PathPart `json:"tool"`
	Wait    PathPart `json:"wait"`   // for a recorded time, and nothing says for what
	Client  PathPart `json:"client"` // due to sent
}

// A PathPart is one part of a [Path].
type PathPart struct {
	MeanS *float64 `json:"mean_s"`
	Share *float64 `json:"share"`
}

// pathOf makes a path of the times of so many sessions.
func pathOf(parts [pathParts]int64, sessions int64) *Path {
	if sessions == 0 {
		return nil
	}
	total := int64(0)
	for _, ns := range parts {
		total += ns
	}
	one := func(ns int64) PathPart {
		return PathPart{Rounded(float64(ns)/float64(sessions)/1e9, 1e9), Ratio(ns, total)}
	}
	return &Path{Server: one(parts[pathPrefill] + parts[pathDecode]), Prefill: one(parts[pathPrefill]),
		Decode: one(parts[pathDecode]),
		Think:  one(parts[pathThink]), Tool: one(parts[pathTool]), Wait: one(parts[pathWait]),
		Client: one(parts[pathClient])}
}

// A JudgedSession is what a contract is judged by of a session that began in the window.
type JudgedSession struct {
	Scopes   uint64 // that its first request is in, see [Judge]
	Outcome  SessionOutcome
	NS       int64   // from its first due time to its last answer; of one that was censored, to what was seen of it
	Slowdown float64 // 0 where it is not known
}

// sessionFigures adds up sessions.
type sessionFigures struct {
	out                              Sessions
	time, recorded, slowdown         sample.Values
	requests, input, cached, outputs sample.Values
	work                             sample.Values
	path                             [pathParts]int64
	ended                            int64 // within the measured time and without a failure, whenever they began
	unrecorded                       int64 // succeeded, and the source lacks an end
	judged                           []JudgedSession
	share                            float64 // of the sessions that are kept
	branching                        bool    // a session is no chain, so that depths are not turns
	deep                             []int32 // buffer
}

// summarise sums the sessions up. from and to are the measured time, zeros says that a
// missing count of cached tokens is none.
func (c *sessionCollector) summarise(run *result.Run, all []session, known bool, from, to int64, zeros bool,
	depths *grouping) *sessionFigures {
	f := &sessionFigures{share: c.share()}
	for _, v := range []*sample.Values{&f.time, &f.recorded, &f.slowdown, &f.requests, &f.input, &f.cached,
		&f.outputs, &f.work} {
		v.Limit = sessionRequests
	}
	o := &f.out
	o.CutUnknown = !known
	if c.halved > 0 {
		o.SampleShare, o.SplitTrees = Rounded(f.share, 1e9), c.joined
	}
	f.branching = slices.ContainsFunc(all, func(s session) bool { return !s.chain() })
	lacks := incomparable(run)
	for i := range all {
		s := &all[i]
		if f.branching {
			f.addDepths(s, depths)
		}
		if !s.failed && !s.cut && s.outcome != sessionPartial && s.end >= from && s.end <= to {
			f.ended++
		}
		switch s.outcome {
		case sessionOutside:
			o.Outside++
			continue
		case sessionPartial:
			o.Partial++
			continue
		}
		o.Sessions++
		if len(s.requests) == 1 {
			o.Single++
		}
		j := JudgedSession{Scopes: s.root().scopes, Outcome: s.outcome, NS: s.end - s.start}
		switch s.outcome {
		case SessionFailed:
			o.Failed++
		case SessionCensored:
			o.Censored++
		default:
			o.Succeeded++
			f.add(s, run, zeros)
			recorded, ok := s.recorded()
			if ok && lacks == "" {
				j.Slowdown = float64(j.NS) / float64(recorded)
				f.recorded.Add(recorded)
				f.slowdown.Add(int64(math.Round(min(j.Slowdown*spreadUnit, MaxInstant))))
			} else if !ok {
				f.unrecorded++
			}
		}
		f.judged = append(f.judged, j)
	}
	f.finish(lacks, from, to)
	return f
}

// incomparable says why sessions of a run cannot be compared with the recorded ones.
func incomparable(run *result.Run) string {
	load := run.Sessions
	switch {
	case run.Concurrency > 0:
		return "a closed loop of requests does not keep the times of a session"
	case run.Speed != 0 && math.Abs(run.Speed-1) > 1e-9:
		return fmt.Sprintf("the run was %s times as fast as the recording", doc.Number(run.Speed))
	case load != nil && (load.ThinkScale != 1 || load.ToolScale != 1):
		return "think or tool times were scaled"
	case load != nil && load.Counts != nil &&
		load.Counts.GapCap.Times+load.Counts.IdleCap.Times+load.Counts.TreeCap.Times > 0:
		return "waits were cut to a cap"
	}
	return ""
}

// add takes a session that succeeded.
func (f *sessionFigures) add(s *session, run *result.Run, zeros bool) {
	f.time.Add(s.end - s.start)
	var input, cached, output int64
	counted := true
	for i := range s.requests {
		q := s.requests[i]
		input += int64(q.input)
		output += int64(max(q.output, 0))
		cached += int64(max(q.cached, 0))
		counted = counted && q.counted && (q.cached >= 0 || zeros)
	}
	f.requests.Add(int64(len(s.requests)) * spreadUnit)
	f.input.Add(input * spreadUnit)
	f.outputs.Add(output * spreadUnit)
	f.work.Add(int64(workOf(input, cached, output) * spreadUnit))
	if counted {
		f.cached.Add(cached * spreadUnit)
	}
	s.path(run, func(step pathStep) { f.path[step.part] += step.to - step.from })
}

func (f *sessionFigures) finish(lacks string, from, to int64) {
	o := &f.out
	o.SuccessShare = Ratio(o.Succeeded, o.Succeeded+o.Failed)
	o.Completion, _ = StatOf(&f.time)
	o.Recorded, _ = StatOf(&f.recorded)
	o.Slowdown = spreadOf(&f.slowdown)
	switch {
	case lacks != "":
		o.SlowdownLacks = lacks
	case f.unrecorded > 0 && f.unrecorded == o.Succeeded:
		o.SlowdownLacks = "the source does not say how long requests took"
	case f.unrecorded > 0:
		o.SlowdownLacks = fmt.Sprintf("the source does not say when %s ended",
			doc.Many(f.unrecorded, "session"))
	}
	if to > from && !o.CutUnknown {
		o.PerS = Rounded(float64(f.ended)/f.share/float64(to-from)*1e9, 1e9)
	}
	if f.time.N > 0 && f.time.Max > 0 {
		o.PerUser = Rounded(3600e9/f.time.Mean(), 1e6)
	}
	o.Path = pathOf(f.path, o.Succeeded)
	o.Requests, o.Input, o.Cached, o.Output = spreadOf(&f.requests), spreadOf(&f.input), spreadOf(&f.cached),
		spreadOf(&f.outputs)
}

// cost shares the cost of the run by the work of sessions: price is that of all GPUs over the
// duration, for the work of all requests.
func (f *sessionFigures) cost(price, work float64) {
	if f.work.N == 0 || !(work > 0) {
		return
	}
	c := spreadOf(&f.work)
	for _, v := range []**float64{&c.Mean, &c.P50, &c.P90, &c.P95, &c.P99, &c.Max} {
		if *v != nil {
			*v = Rounded(**v*price/work, 1e9)
		}
	}
	f.out.Cost = &c
}

// bySession adds the figures by session to a summary, where some session has more than
// one request.
func (c *collector) bySession(s *Summary, zeros bool) *sessionFigures {
	all, known := c.sessions.sessions(&c.run)
	f := c.sessions.summarise(&c.run, all, known, c.firstDue, max(c.lastDone, c.firstDue), zeros, c.groups.depth)
	if len(all) == c.sessions.n { // each has one request
		return f
	}
	s.Sessions = &f.out
	s.Series.FirstSessions, s.Series.SlowSessions = firstSessions(all, &c.run), slowSessions(all, &c.run)
	return f
}

// addDepths counts the requests of a session by their depth in its tree.
func (f *sessionFigures) addDepths(s *session, depths *grouping) {
	f.deep = s.depths(f.deep)
	for i := range s.requests {
		q := s.requests[i]
		if q.before || q.after {
			continue
		}
		g := depths.group(groupKey{n: depths.by.begin(int64(f.deep[i]))})
		g.count(q.end)
		if q.end == Succeeded {
			q.addTo(g)
		}
	}
}

// addTo adds the latencies, the lengths and the reuse of a request that succeeded to a group.
func (q *sessionRequest) addTo(g *group) {
	span := func(at int64) Span { return Span{at - q.sent, at >= 0} }
	ttft := span(q.first)
	ttft.OK = ttft.OK && !q.uncertain
	g.addSpans(ttft, Span{q.tpot, q.tpot >= 0}, span(q.last))
	g.addTokens(int64(q.input), int64(q.cached), int64(max(q.output, 0)))

	known := func(has bool, n *int32) *int32 {
		if has {
			return n
		}
		return nil
	}
	g.cache.addCounts(known(q.counted, &q.input), known(q.cached >= 0, &q.cached), known(q.known >= 0, &q.known))
}
