package shard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// run puts together what the runs say of themselves. Settings are those of the first. Counts
// add up; of the longest and the most that a client saw, the largest counts; of the CPU, the
// client that used the largest share of its cores. What only rows can tell is from the survey.
func (s *Set) run(v *survey) result.Run {
	run := s.shards[0].file.Run
	run.Shard, run.Shards = nil, nil
	run.Requests, run.Excluded, run.Unprepared, run.NotSent, run.Beyond = 0, 0, 0, 0, 0
	run.Skipped, run.ReadLate, run.ShortTails, run.HeldBack = 0, 0, 0, 0
	run.Unready, run.EndedEarly, run.Cut, run.Odd, run.Said, run.Wire = "", "", nil, result.Odd{}, nil, nil
	run.Window, run.Drift = nil, result.DriftOf(v.turns, v.sum, v.most, v.drifts)
	run.MaxInFlight, run.PlannedNS = v.peak(), v.lastDue-v.firstDue
	run.Served = s.served()
	var ended []string
	var stalls []*result.Stalls
	for i := range s.shards {
		one := &s.shards[i].file.Run
		addSending(&run.Sending, &one.Sending)
		addOdd(&run.Odd, &one.Odd)
		run.Said = addSaid(run.Said, one.Said)
		addClient(&run, one)
		run.PlannedNS = max(run.PlannedNS, one.PlannedNS)
		run.Started = min(run.Started, one.Started)
		stalls = append(stalls, one.Stalls)
		if one.Wire != nil {
			run.Wire = addWire(run.Wire, one.Wire)
		}
		run.Server = cmp.Or(run.Server, one.Server)
		if one.TraceID != run.TraceID {
			run.TraceID = "" // each has its own, see Shards
		}
		if one.EndedEarly != "" {
			ended = append(ended, fmt.Sprintf("shard %v: %s", one.Shard.Share, one.EndedEarly))
		}
		if i > 0 {
			addParts(&run, one)
		}
		run.Shards = append(run.Shards, sentShard(one, &v.lags[i]))
	}
	run.Stalls = result.SideBySide(stalls)
	ended = append(ended, s.absent()...)
	run.EndedEarly = strings.Join(ended, "; ")
	return run
}

// absent says which shards have no results at all.
func (s *Set) absent() (says []string) {
	at := 0
	for i := range s.of {
		if at < len(s.shards) && s.shards[at].share().Index == i {
			at++
			continue
		}
		says = append(says, fmt.Sprintf("shard %v is missing", result.Share{Index: i, Of: s.of}))
	}
	return says
}

func addSending(to, of *result.Sending) {
	to.Requests += of.Requests
	to.Excluded += of.Excluded
	to.Unprepared += of.Unprepared
	to.NotSent += of.NotSent
	to.Beyond += of.Beyond
	to.Skipped += of.Skipped
	to.ReadLate += of.ReadLate
	to.ShortTails += of.ShortTails
	to.HeldBack += of.HeldBack
	to.Unready = cmp.Or(to.Unready, of.Unready)
	if w := of.Window; w != nil {
		if to.Window == nil {
			to.Window = &result.Window{From: w.From, To: w.To}
		}
		// A cool-down counts back from the last request of all.
		if w.To != nil && (to.Window.To == nil || to.Window.To.Before(*w.To)) {
			to.Window.To = w.To
		}
	}
	if c := of.Cut; c != nil {
		if to.Cut == nil {
			to.Cut = &result.CutSessions{Sessions: []result.SessionKey{}}
		}
		to.Cut.Incomplete = to.Cut.Incomplete || c.Incomplete
		to.Cut.Sessions = append(to.Cut.Sessions, c.Sessions...)
		slices.SortFunc(to.Cut.Sessions, result.SessionKey.Compare)
		to.Cut.Sessions = slices.Compact(to.Cut.Sessions)
	}
}

func addOdd(to, of *result.Odd) {
	to.RetryAfter += of.RetryAfter
	to.Waited += of.Waited
	to.NoDone += of.NoDone
	to.DoneAgain += of.DoneAgain
	to.NoFinish += of.NoFinish
	to.KeepAlives += of.KeepAlives
	to.Malformed += of.Malformed
	to.Choices += of.Choices
	to.NoUsage += of.NoUsage
	to.Uncounted += of.Uncounted
}

// addSaid takes what servers said about errors of another class or status.
func addSaid(to, of []result.Said) []result.Said {
	for _, said := range of {
		if !slices.ContainsFunc(to, func(s result.Said) bool {
			return s.Class == said.Class && s.Status == said.Status
		}) {
			to = append(to, said)
		}
	}
	return to
}

// addClient takes what a client found out about its machine.
func addClient(to, of *result.Run) {
	if of.ClientCPU/cores(of) > to.ClientCPU/cores(to) {
		to.ClientCPU, to.Cores, to.CPU = of.ClientCPU, of.Cores, of.CPU
	}
	to.GCPauseMaxNS = max(to.GCPauseMaxNS, of.GCPauseMaxNS)
	to.ClockJumpNS, to.StalledNS = max(to.ClockJumpNS, of.ClockJumpNS), max(to.StalledNS, of.StalledNS)
}

// cores are those that a client had.
func cores(r *result.Run) float64 {
	n := max(float64(r.Cores), 1)
	if c := r.CPU; c != nil && c.QuotaCores > 0 {
		n = min(n, c.QuotaCores)
	}
	return n
}

// addWire adds connections up. The most in a minute is the sum of each shard's, which may not
// be of the same minute, so that it is a bound from above.
func addWire(to, of *result.Wire) *result.Wire {
	if to == nil {
		return new(*of)
	}
	to.Dials += of.Dials
	to.DialsMinute += of.DialsMinute
	to.Waited += of.Waited
	to.Reused += of.Reused
	to.Replaced += of.Replaced
	to.Stale += of.Stale
	to.ServerCloses = to.ServerCloses || of.ServerCloses
	to.PortWaits += of.PortWaits
	to.PortWaitMax = max(to.PortWaitMax, of.PortWaitMax)
	to.LocalPorts = min(to.LocalPorts, of.LocalPorts)
	if of.Note != "" && !strings.Contains(to.Note, of.Note) {
		to.Note = strings.TrimPrefix(to.Note+"; "+of.Note, "; ")
	}
	return to
}

// addParts adds what a further shard counted of its part of the load.
func addParts(to, of *result.Run) {
	if !strings.Contains(","+to.Connections+",", ","+of.Connections+",") {
		to.Connections += "," + of.Connections
	}
	if a, b := to.Images, of.Images; a != nil && b != nil {
		sum := *a
		sum.Requests, sum.Tokens = a.Requests+b.Requests, a.Tokens+b.Tokens
		to.Images = &sum
	}
	if a, b := to.Selection, of.Selection; a != nil && b != nil && a.Prime != nil && b.Prime != nil {
		chosen, prime := *a, *a.Prime
		prime.Prompts += b.Prime.Prompts
		prime.Tokens += b.Prime.Tokens
		prime.Failed += b.Prime.Failed
		prime.TookNS = max(prime.TookNS, b.Prime.TookNS)
		chosen.Prime = &prime
		to.Selection = &chosen
	}
	if a, b := to.Cache, of.Cache; a != nil && b != nil && b.WarmRequests > 0 {
		warm := *a
		warm.WarmRequests += b.WarmRequests
		warm.WarmFailed += b.WarmFailed
		warm.WarmEnded = cmp.Or(warm.WarmEnded, b.WarmEnded)
		to.Cache = &warm
	}
	if a, b := to.Thread, of.Thread; a != nil && b != nil {
		to.Thread = &result.Threads{Threaded: a.Threaded + b.Threaded, Assumed: a.Assumed + b.Assumed,
			Apart:   a.Apart + b.Apart,
			NoReply: a.NoReply + b.NoReply, NoRoom: a.NoRoom + b.NoRoom, Joined: a.Joined + b.Joined,
			Recoded: a.Recoded + b.Recoded,
			Longer:  a.Longer + b.Longer, LongerBy: a.LongerBy + b.LongerBy, ReplyTokens: a.ReplyTokens + b.ReplyTokens,
			LostTokens: a.LostTokens + b.LostTokens, PeakBytes: max(a.PeakBytes, b.PeakBytes)}
	}
	if a, b := to.Sessions, of.Sessions; a != nil && b != nil && a.Counts != nil && b.Counts != nil {
		load, counts := *a, addCounts(*a.Counts, b.Counts)
		load.Counts = &counts
		to.Sessions = &load
	}
}

// addCounts adds what became of the session trees of two shards. Of the live trees, the means
// add up; the fewest and the most are bounds, since they need not be of one instant.
func addCounts(a result.SessionCounts, b *result.SessionCounts) result.SessionCounts {
	a.Trees += b.Trees
	a.Started += b.Started
	a.Finished += b.Finished
	a.MinPlays, a.MaxPlays = min(a.MinPlays, b.MinPlays), max(a.MaxPlays, b.MaxPlays)
	a.HeldBack += b.HeldBack
	a.HeldNS += b.HeldNS
	a.HeldMostNS = max(a.HeldMostNS, b.HeldMostNS)
	a.Gaps.Recorded += b.Gaps.Recorded
	a.Gaps.Ends += b.Gaps.Ends
	a.Gaps.Starts += b.Gaps.Starts
	a.Gaps.Offsets += b.Gaps.Offsets
	a.Gaps.Implied += b.Gaps.Implied
	for _, c := range [][2]*result.Capped{{&a.GapCap, &b.GapCap}, {&a.IdleCap, &b.IdleCap}, {&a.TreeCap, &b.TreeCap}} {
		c[0].Times += c[1].Times
		c[0].NS += c[1].NS
	}
	if l, m := a.LiveTrees, b.LiveTrees; l != nil && m != nil {
		a.LiveTrees = &result.LiveTrees{Min: l.Min + m.Min, Mean: l.Mean + m.Mean, Max: l.Max + m.Max,
			FromNS: min(l.FromNS, m.FromNS), ToNS: max(l.ToNS, m.ToNS)}
	}
	if w, x := a.Warm, b.Warm; w != nil && x != nil {
		a.Warm = &result.TrajectoryWarmup{Trees: w.Trees + x.Trees, Streams: w.Streams + x.Streams,
			History: w.History + x.History,
			Tokens:  w.Tokens + x.Tokens, TookNS: max(w.TookNS, x.TookNS)}
	}
	return a
}

// served lists the values of recorded headers that any shard has seen, in the order in which
// they come in the shards.
func (s *Set) served() (all []result.Served) {
	for i := range s.shards {
		for h, one := range s.shards[i].file.Run.Served {
			if h == len(all) {
				all = append(all, result.Served{Header: one.Header, Values: []string{}})
			}
			for _, value := range one.Values {
				if !slices.Contains(all[h].Values, value) {
					all[h].Values = append(all[h].Values, value)
				}
			}
		}
	}
	return all
}

// servedIndex says, for each shard and header, where its values stand among those of all.
func (s *Set) servedIndex() (index [][][]int32) {
	all := s.served()
	for i := range s.shards {
		var headers [][]int32
		for h, one := range s.shards[i].file.Run.Served {
			to := make([]int32, len(one.Values))
			for k, value := range one.Values {
				to[k] = int32(slices.Index(all[h].Values, value))
			}
			headers = append(headers, to)
		}
		index = append(index, headers)
	}
	return index
}

// sentShard is what the merged results say of a shard.
func sentShard(one *result.Run, lags *sample.Values) result.SentShard {
	out := result.SentShard{Shard: *one.Shard, Version: one.Version, Started: one.Started, TraceID: one.TraceID,
		Requests:  one.Requests,
		ClientCPU: one.ClientCPU, Cores: one.Cores, StalledNS: one.StalledNS, EndedEarly: one.EndedEarly}
	if order := lags.Order(); order.N > 0 {
		out.LagP50, out.LagP99, out.LagMax = trace.Ptr(order.At(1, 2)), trace.Ptr(order.At(99, 100)),
			trace.Ptr(lags.Max)
	}
	return out
}
