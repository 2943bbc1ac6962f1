package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace/doc"
)

// The figures by session as lines, tables and a section.

// sessionLines are what the answer says of sessions: how many went well and how long they
// took, and what their time went to.
func sessionLines(s *Summary) (how, where string) {
	o := s.Sessions
	if o == nil {
		return "", ""
	}
	if o.CutUnknown && o.Succeeded+o.Failed == 0 {
		return doc.Count(o.Sessions) + "; which of them were over is not known", ""
	}
	how = fmt.Sprintf("%s of %s succeeded", doc.Count(o.Succeeded), doc.Count(o.Sessions))
	if o.Failed > 0 {
		how += fmt.Sprintf(", %s failed", doc.Count(o.Failed))
	}
	switch {
	case o.CutUnknown:
		how += "; which others were cut is not known"
	case o.Censored > 0:
		how += fmt.Sprintf(", %s cut", doc.Count(o.Censored))
	}
	if c := &o.Completion; c.P50 != nil {
		how += "; p50 " + inSeconds(c.P50)
		if c.P95 != nil {
			how += ", p95 " + inSeconds(c.P95)
		}
		how += " s"
	}
	if c := o.Cost; c != nil {
		how += "; cost " + numberOrDash(c.Mean) + " each on average"
	}
	if o.Path == nil {
		return how, ""
	}
	var parts []string
	for _, part := range []struct {
		of   *PathPart
		name string
	}{{&o.Path.Server, "server"}, {&o.Path.Think, "think"}, {&o.Path.Tool, "tool"}, {&o.Path.Wait, "wait"},
		{&o.Path.Client, "client"}} {
		if share := part.of.Share; share != nil && *share >= 0.0005 {
			parts = append(parts, doc.Percent(*share)+" "+part.name)
		}
	}
	if d := o.Slowdown.P50; d != nil {
		parts = append(parts, "slowdown p50 "+doc.Number(*d))
	}
	return how, strings.Join(parts, ", ")
}

// inSeconds prints milliseconds as seconds.
func inSeconds(ms *float64) string {
	return doc.OrDash(ms, func(v float64) string { return doc.Number(v / 1000) })
}

// sessionFacts are how sessions ended, and how many there were.
func sessionFacts(o *Sessions) (g factGroup) {
	note := fmt.Sprintf("%s succeeded, %s failed, %s censored: they had requests left when the run ended",
		doc.Brief(o.Succeeded), doc.Brief(o.Failed), doc.Brief(o.Censored))
	if o.CutUnknown {
		note = fmt.Sprintf("%s failed; which of the others had requests left when the run ended, the results do not "+
			"say, so that all count as censored", doc.Brief(o.Failed))
	}
	add := func(name, value, note string) {
		if value != noFigure {
			g.define("sessions", name, value, note)
		}
	}
	add("Sessions", doc.Brief(o.Sessions), note)
	if o.SampleShare != nil {
		note := "of the sessions, chosen by a hash: these figures are of them"
		if o.SplitTrees {
			note += ". Trees of several sessions of the workload are not whole in it"
		}
		add("Sample", doc.Percent(*o.SampleShare), note)
	}
	add("Outside", positive(int(o.Outside), "session"), "began before the measured window or after it, and do not count")
	add("Partial", positive(int(o.Partial), "session"), "had begun before their first request here, and do not count")
	add("One request", positive(int(o.Single), "session"), "have no more than one")
	add("Success", doc.OrDash(o.SuccessShare, doc.Percent), "succeeded ÷ (succeeded + failed)")
	add("Sessions per second", numberOrDash(o.PerS), "that succeeded, by their end")
	add("Jobs per hour, user", numberOrDash(o.PerUser), "3600 ÷ mean completion time in s")
	add("Jobs per hour, GPU", numberOrDash(o.PerGPU), "sessions per second · 3600 ÷ GPUs")
	if o.SlowdownLacks != "" {
		add("Slowdown", doc.Many(o.Slowdown.Count, "session"), "compared with the recording: "+o.SlowdownLacks)
	}
	return g
}

var sessionTimeHead = []string{"in s", "n", "mean", "p50", "p90", "p95", "p99", "max"}

// sessionTimeRows are how long sessions took, and took in the source.
func sessionTimeRows(s *Summary) (rows [][]string) {
	if s.Sessions == nil {
		return nil
	}
	for _, m := range []struct {
		label string
		st    *Stat
	}{{"Completion", &s.Sessions.Completion}, {"Recorded", &s.Sessions.Recorded}} {
		if m.st.Count > 0 {
			row := []string{m.label, doc.Brief(m.st.Count)}
			for _, v := range []*float64{m.st.Mean, m.st.P50, m.st.P90, m.st.P95, m.st.P99, m.st.Max} {
				row = append(row, doc.OrDash(v, func(v float64) string { return doc.Short(v / 1000) }))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

var spreadHead = []string{"of each session", "n", "mean", "p50", "p90", "p95", "p99", "max"}

// spreadRows are what sessions have, and how much longer they took than recorded.
func spreadRows(s *Summary) (rows [][]string) {
	o := s.Sessions
	if o == nil {
		return nil
	}
	for _, m := range []struct {
		label string
		of    *Spread
	}{{"Slowdown", &o.Slowdown}, {"Requests", &o.Requests}, {"Input tokens", &o.Input}, {"Cached tokens", &o.Cached},
		{"Output tokens", &o.Output}, {"Cost", o.Cost}} {
		if m.of != nil && m.of.Count > 0 {
			row := []string{m.label, doc.Brief(m.of.Count)}
			for _, v := range []*float64{m.of.Mean, m.of.P50, m.of.P90, m.of.P95, m.of.P99, m.of.Max} {
				row = append(row, doc.OrDash(v, doc.Short))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

var pathHead = []string{"critical path", "mean, s", "share"}

// pathRows are what the time of sessions went to.
func pathRows(s *Summary) (rows [][]string) {
	if s.Sessions == nil || s.Sessions.Path == nil {
		return nil
	}
	p := s.Sessions.Path
	for _, part := range []struct {
		label string
		of    *PathPart
	}{
		{"Server", &p.Server}, {"Server until first token", &p.Prefill}, {"Server decode", &p.Decode},
		{"Think", &p.Think}, {"Tool", &p.Tool}, {"For the recorded time", &p.Wait}, {"Client late", &p.Client},
	} {
		rows = append(rows, []string{part.label, doc.OrDash(part.of.MeanS, doc.Short),
			doc.OrDash(part.of.Share, doc.Percent)})
	}
	return rows
}

func sessionSection(s *Summary) doc.Section {
	o := s.Sessions
	if o == nil {
		return doc.Section{}
	}
	sec := doc.Section{Title: "Sessions"}
	table := func(caption string, head []string, rows [][]string, term string) {
		align := doc.FiguresOf(len(head))
		if len(rows) > 0 {
			sec.Tables = append(sec.Tables, doc.Table{Caption: caption, Head: head, Rows: rows,
				HeadTerms: repeat(termOf(term), len(head)), Align: align})
		}
	}
	facts := sessionFacts(o)
	sec.Tables = append(sec.Tables, facts.table(""))
	table("How long they took", sessionTimeHead, sessionTimeRows(s), "session_time")
	table("What their time went to", pathHead, pathRows(s), "sessions.critical_path")
	table("What they had", spreadHead, spreadRows(s), "sessions.requests_per_session")
	left := func(l *lanes) string {
		if l.drawn == l.of {
			return ""
		}
		return fmt.Sprintf(" Drawn are %d of %s.", l.drawn, doc.Count(int64(l.of)))
	}
	const how = "A lane is a thread of a session, named by the session's number in the workload; +1 and on are its " +
		"further threads. Thick bars are requests, thin ones the time before them."
	if l := s.Series.FirstSessions; l != nil {
		sec.Plots = append(sec.Plots, l.plot("The first sessions over time",
			"Sessions of more than one request that began first. "+how+left(l), "time since the start"))
	}
	if l := s.Series.SlowSessions; l != nil {
		sec.Plots = append(sec.Plots, l.plot("The slowest sessions",
			"Successful sessions that took longest, each from its own begin."+left(l), "time since the session began"))
	}
	sec.Plots = defined("sessions.critical_path", sec.Plots...)
	return sec
}

// What a chart of sessions draws at most.
const (
	drawnSessions = 12
	drawnLanes    = 24
	drawnRequests = 1500
)

// A lanes is a chart of sessions: a lane for each thread of each, with bars of what its
// time went to.
type lanes struct {
	names []string
	bars  [pathParts]doc.Series // in seconds
	drawn int                   // sessions
	of    int                   // that there are
}

// firstSessions draws the sessions that began first, on the clock of the run.
func firstSessions(all []session, run *result.Run) *lanes {
	var chosen []*session
	for i := range all {
		if len(all[i].requests) > 1 && all[i].outcome != sessionOutside {
			chosen = append(chosen, &all[i])
		}
	}
	slices.SortStableFunc(chosen, func(a, b *session) int { return cmp.Compare(a.start, b.start) })
	return drawLanes(chosen, run, func(*session) int64 { return 0 })
}

// slowSessions draws the slowest sessions that succeeded, each from its own begin.
func slowSessions(all []session, run *result.Run) *lanes {
	var chosen []*session
	for i := range all {
		if len(all[i].requests) > 1 && all[i].outcome == SessionSucceeded {
			chosen = append(chosen, &all[i])
		}
	}
	slices.SortStableFunc(chosen, func(a, b *session) int { return cmp.Compare(b.end-b.start, a.end-a.start) })
	return drawLanes(chosen, run, func(s *session) int64 { return s.start })
}

// drawLanes draws the first of the sessions, as many as there is room for. from is the
// instant that is drawn at zero.
func drawLanes(chosen []*session, run *result.Run, from func(*session) int64) *lanes {
	l := &lanes{of: len(chosen)}
	requests := 0
	for _, s := range chosen[:min(len(chosen), drawnSessions)] {
		lane, threads := s.threads()
		requests += len(s.requests)
		if l.drawn > 0 && (len(l.names)+threads > drawnLanes || requests > drawnRequests) {
			break
		}
		l.add(s, run, lane, threads, from(s))
	}
	if l.drawn == 0 {
		return nil
	}
	return l
}

// add draws a session. Of one that alone is too large it draws the first requests, and
// the first threads.
func (l *lanes) add(s *session, run *result.Run, lane []int, threads int, zero int64) {
	l.drawn++
	top := len(l.names)
	for i := range min(threads, drawnLanes) {
		name := fmt.Sprint(s.key.Session)
		if play := s.key.Play; play > 0 {
			name += fmt.Sprintf(" play %d", play+1)
		}
		if i > 0 {
			name = fmt.Sprintf("+%d", i)
		}
		l.names = append(l.names, name)
	}
	for i := range lane {
		q := s.requests[i]
		if lane[i] >= drawnLanes {
			continue
		}
		bar := func(step pathStep) {
			if step.to-step.from < leastDrawn {
				return
			}
			b := &l.bars[step.part]
			b.X, b.Hi = append(b.X, float64(step.from-zero)/1e9), append(b.Hi, float64(step.to-zero)/1e9)
			b.Y = append(b.Y, float64(top+lane[i]+1))
		}
		if p := s.followed(i); p >= 0 && s.requests[p].done < q.due {
			q.pause(run, s.requests[p].done, q.due, bar)
		}
		at := q.due
		for part, until := range q.parts() {
			if until > at {
				bar(pathStep{pathPart(part), at, until})
				at = until
			}
		}
	}
}

// threads gives each request that may be drawn a lane of its session: that of its thread
// where the workload has threads, else that of the parent that it goes on from, unless
// another request did so before it.
func (s *session) threads() (lane []int, threads int) {
	drawn := s.requests[:min(len(s.requests), drawnRequests)]
	lane = make([]int, len(drawn))
	if !slices.ContainsFunc(drawn, func(q *sessionRequest) bool { return q.thread < 0 }) {
		numbered := map[int32]int{}
		for i := range drawn {
			at, ok := numbered[drawn[i].thread]
			if !ok {
				at = len(numbered)
				numbered[drawn[i].thread] = at
			}
			lane[i] = at
		}
		return lane, len(numbered)
	}
	goesOn := func(i int) int { // from which request; −1 where that was still under way
		if p := s.followed(i); p >= 0 && drawn[p].done <= drawn[i].due {
			return p
		}
		return -1
	}
	follower := make([]int, len(drawn)) // the last request that goes on from each
	for i := range drawn {
		if p := goesOn(i); p >= 0 {
			follower[p] = i
		}
	}
	var tails []int // the last request of each lane
	for i := range drawn {
		before, begin := goesOn(i), drawn[i].due
		if before >= 0 {
			begin = drawn[before].done
		}
		at := slices.Index(tails, before) // −1 is no request
		if at < 0 {                       // a lane that is free from then on, or one more
			at = slices.IndexFunc(tails, func(tail int) bool { return drawn[tail].done <= begin && follower[tail] < i })
		}
		if at < 0 {
			at = len(tails)
			tails = append(tails, i)
		}
		lane[i], tails[at] = at, i
	}
	return lane, len(tails)
}

// laneParts are the bars of a chart in the order of its legend, with their colours. Those
// between requests are thin.
var laneParts = []struct {
	part pathPart
	name string
	tone int
	thin bool
}{
	{pathPrefill, "until first token", 2, false}, {pathDecode, "decode", 1, false}, {pathThink, "think", 3, true},
	{pathTool, "tool", 4, true},
	{pathWait, "for the recorded time", 6, true}, {pathClient, "client late", 5, false},
}

// leastDrawn is the shortest time that is drawn, a millisecond: a bar is a pixel wide at
// least, and the usual send lag would hide what is beside it.
const leastDrawn = 1e6

// plot is the chart of the lanes.
func (l *lanes) plot(title, text, x string) doc.Plot {
	p := doc.Plot{Title: title, Text: text, Kind: doc.Lanes, XLabel: x, XUnit: "s",
		YLabel: "session", YNames: l.names}
	for _, part := range laneParts {
		b := l.bars[part.part]
		b.Name, b.Tone, b.Thin = part.name, part.tone, part.thin
		p.Series = append(p.Series, b)
	}
	return p
}
