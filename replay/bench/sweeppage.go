package bench

import (
	"fmt"
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/doc"
)

// Page lays the sweep out for a browser: the highest load as the headline, beside the
// curve with the limits of the contract.
func (r *SweepResult) Page() *doc.Document {
	p := &doc.Document{Title: "Load sweep", Tag: trace.TierNote("page", r.Tier), Lead: r.lead(), Headline: r.Headline(),
		Facts: r.facts(), Plot: r.mainPlot(), About: r.provenance(), Long: true}
	first := r.table(true)
	first.Caption = r.caption() + ". " + r.chanceNote()
	p.Table = &first
	if l := r.Untrusted(); l != nil {
		p.Verdict = append(p.Verdict, doc.Note{Level: doc.Bad, Word: "Not trustworthy",
			Text: r.limited(l) + ": " + l.Why})
	}
	var though []string
	for _, l := range r.sorted() {
		if l.countsThough() {
			though = append(though, l.Name)
		}
	}
	if len(though) > 0 {
		p.Verdict = append(p.Verdict, doc.Note{Level: doc.Warn, Text: "The client read late at " +
			strings.Join(though, ", ") + ", which cannot change whether the contract holds there (--details)."})
	}
	if says := r.Loosened().String(); says != "" {
		p.Verdict = append(p.Verdict, doc.Note{Level: doc.Warn, Text: says})
	}
	if warning := r.warned(); warning != "" {
		p.Verdict = append(p.Verdict, doc.Note{Level: doc.Warn, Text: printable(warning) + "."})
	}
	if note := r.loopNote(); note != "" {
		p.Notes = append(p.Notes, doc.Note{Level: doc.Warn, Text: note})
	}
	if r.Hypothesis != "" {
		p.Notes = append(p.Notes, doc.Note{Level: doc.Info, Word: "Hypothesis", Text: r.Hypothesis})
	}
	p.Sections = append(p.Sections,
		doc.Section{Title: "How the levels ended", Text: r.remarks()},
		doc.Section{Title: "Levels", Tables: []doc.Table{r.table(false)}, Text: []string{r.levelsNote()}},
		doc.Section{Title: "Curves", Plots: r.plots()})
	return p
}

// chanceNote explains the marks of outcomes and intervals.
func (r *SweepResult) chanceNote() string {
	of := "p99 TTFT"
	if r.bySession() {
		of = "p95 of session time"
	}
	note := `"?": so measured, but it may be chance. "±": half of the 95 % interval of ` + of +
		`. "–": too few values for an interval`
	if r.Saturation != nil {
		note += fmt.Sprintf(" (always so above %s, near saturation)", r.load(nearShare**r.Saturation))
	}
	return note + "."
}

// caption is that of the table of levels.
func (r *SweepResult) caption() string {
	switch {
	case r.bySession():
		return "Session times in s, latencies in ms"
	case r.Closed:
		return "Latencies in ms"
	}
	return "Latencies in ms, TTFT and E2E from the schedule"
}

// levelsNote explains the table of levels.
func (r *SweepResult) levelsNote() string {
	if r.bySession() {
		return "Sessions began in the measured window of a level, and each is followed to its end under the " +
			"same load; sessions/s count the sessions that ended in it. TTFT counts from the schedule."
	}
	return levelsNote
}

const levelsNote = "TTFT and E2E count from the schedule; service TTFT counts from sending. Rates, output tokens and " +
	"requests in flight are means over the second half of a level, without the drain at its end."

// load prints a load with its unit.
func (r *SweepResult) load(v float64) string {
	switch r.Unit {
	case unitLiveSessions:
		return doc.Many(int64(v), "live session")
	case unitSessionRate:
		return doc.Number(v) + " sessions/s"
	}
	if r.Closed {
		return doc.Number(v) + " in flight"
	}
	return doc.Number(v) + " req/s"
}

// loopNote says what a closed loop hides, "" of others.
func (r *SweepResult) loopNote() string {
	switch {
	case r.Unit == unitLiveSessions:
		return "A closed loop of sessions: when the server is slow, sessions take longer and fewer start. Read the " +
			"session time; sweep over --session-rates for what sessions that come by themselves would see."
	case r.Closed:
		return closedNote
	}
	return ""
}

// Headline is the answer in a few words, such as "94 req/s within the contract". Without a
// contract it is the knee, and says so.
func (r *SweepResult) Headline() string {
	h := &r.Highest
	if len(r.Contract) == 0 {
		switch {
		case h.Load == nil:
			return "No load was held"
		case h.AtLeast:
			return r.load(*h.Load) + " is below the knee, without a contract" + r.askedFor()
		}
		return r.load(*h.Load) + " is the knee, without a contract" + r.askedFor()
	}

	switch l := r.Unjudged(); {
	case h.Load == nil && l != nil:
		return fmt.Sprintf("Not judged: at %s %s", r.load(l.Load), l.Why)
	case h.Load == nil && r.Untrusted() != nil:
		return "Not judged: " + r.limited(r.Untrusted())
	case h.Load == nil:
		return "No load is within the contract"
	case h.AtLeast:
		return fmt.Sprintf("At least %s within the contract%s", r.load(*h.Load), r.askedFor()) + r.unconfirmed()
	}
	return r.load(*h.Load) + " within the contract" + r.askedFor() + r.unconfirmed()
}

// unconfirmed says that the run which was to confirm the highest load could not be trusted.
func (r *SweepResult) unconfirmed() string {
	if at := r.atHighest(); at != nil && at.Role == roleLevel && slices.ContainsFunc(r.Levels, func(l Level) bool {
		return l.Role == roleConfirm && l.Outcome == outcomeUntrusted
	}) {
		return ", not confirmed"
	}
	return ""
}

// limited says at which level the client was the limit, and what was left out for it.
func (r *SweepResult) limited(l *Level) string {
	out := "at " + r.load(l.Load) + " the client was the limit"
	switch {
	case l.Role != roleLevel:
		return out + " of the run that was to " + l.Role + " it"
	case strings.Contains(r.Stopped.Text, l.Name+": "):
		return out + ", and no further load was tried"
	}
	return out
}

// askedFor says which load was asked for where the highest is less, since less came out; "" where it is the same.
func (r *SweepResult) askedFor() string {
	at := r.atHighest()
	if at == nil || doc.Number(at.Load) == doc.Number(*r.Highest.Load) {
		return ""
	}
	const drawn = 0.9 // of the load: what came out is less since less was sent
	if offered := at.Flow.OfferedPerS; !r.Closed && at.Sessions == nil && offered != nil && *offered < drawn*at.Load {
		return fmt.Sprintf(" (arrivals drawn at %s came to %s: longer levels come closer)", r.load(at.Load),
			doc.Number(*r.Highest.Load))
	}
	return fmt.Sprintf(" (asked for %s, reached %s)", r.load(at.Load), doc.Number(*r.Highest.Load))
}

// sustained says whether a longer run at the highest load held, or why there was none.
func (r *SweepResult) sustained() (says, why string) {
	ran := func(role string) bool {
		return slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Role == role })
	}
	switch {
	case r.Highest.Sustained:
		return "yes", "by a longer run at that load"
	case ran(roleSustain):
		return "no", "the longer run did not hold"
	case ran(roleConfirm):
		return "not tried", "--sustain 5m makes a longer run at that load"
	}
	return "not tried", "no further run was made at that load"
}

// lead says what was swept.
func (r *SweepResult) lead() string {
	var parts []string
	if r.Model != "" {
		parts = append(parts, "Model "+printable(r.Model))
	}
	switch {
	case r.Simulated != "":
		parts = append(parts, "a model of an engine in virtual time")
	case len(r.Endpoints) > 0:
		parts = append(parts, strings.Join(r.Endpoints, ", "))
	}
	if levels := r.Ladder(); len(levels) == 1 {
		parts = append(parts, "1 level at "+r.load(levels[0].Load))
	} else if len(levels) > 1 {
		parts = append(parts, fmt.Sprintf("%s from %s to %s", doc.Many(int64(len(levels)), "level"),
			doc.Number(levels[0].Load), r.load(levels[len(levels)-1].Load)))
	}
	if r.Process != "" {
		parts = append(parts, r.Process+" arrivals")
	}
	stopped := printable(r.Stopped.Text)
	if r.Stopped.Code == stoppedUntrusted { // the verdict says why
		stopped, _, _ = strings.Cut(stopped, ": ")
	}
	out := strings.Join(parts, ", ") + ". Stopped: " + stopped + "."
	switch {
	case len(r.Contract) == 0:
		out += " The highest load within a contract takes one, such as --clause 'p99 ttft <= 500ms'."
	case r.Highest.Load == nil:
		out += " The contract: " + strings.Join(r.Contract, "; ") + "."
	}
	return out
}

// atHighest is the level that the highest load is of; nil without one. A sweep of an earlier
// version does not name it: then it is the last run at that load.
func (r *SweepResult) atHighest() (at *Level) {
	h := &r.Highest
	for i := range r.Levels {
		if l := &r.Levels[i]; h.Load != nil && (l.Name == h.Level || h.Level == "" && l.Load == *h.Load) {
			at = l
		}
	}
	return at
}

func (r *SweepResult) facts() []doc.Fact {
	var out doc.Group
	put := out.Add
	if k := r.Knee; k != nil {
		note := "of latency over throughput"
		if !k.Found {
			note = "or beyond: the last level"
		}
		put("Knee", r.load(k.Load), note)
	}
	h, beside := &r.Highest, "between the levels on either side"
	between := h.Estimate != nil && h.Load != nil && doc.Number(*h.Estimate) != doc.Number(*h.Load)
	switch {
	case h.Load == nil || h.High == nil:
	case h.Low != nil:
		put(r.intervalName(), doc.Number(*h.Low)+" to "+doc.Number(*h.High), "highest load held, lowest not held")
	case between:
		beside = "below " + doc.Number(*h.High) + ", which was not held"
	default:
		put("Not held", r.load(*h.High), "lower ones may be held by chance")
	}
	if between {
		put("Interpolated", r.load(*h.Estimate), beside)
	}
	if h.Load != nil && !h.AtLeast {
		value, why := r.sustained()
		put("Sustained", value, why)
	}
	if at := r.atHighest(); at != nil {
		if at.Contract != nil {
			for _, row := range at.Contract.Table("").Rows {
				put(row[0], row[1], "at that load")
			}
		} else {
			put("TTFT p50 / p99", cell(at.TTFTDue.P50)+" / "+cell(at.TTFTDue.P99)+" ms",
				"from the schedule, at that load")
			put("Errors", at.errors(), "at that load")
		}
		if at.Flow.OutputPerS != nil {
			put("Output", doc.Number(*at.Flow.OutputPerS)+" tok/s", "at that load")
		}
		if s := at.Sessions; s != nil {
			put("Session time p50 / p95", seconds(s.Time.P50)+" / "+seconds(s.Time.P95)+" s", "at that load")
			put("Sessions", doc.OrDash(s.EndedPerS, doc.Number)+" /s", "that ended, at that load")
			put("Success", doc.OrDash(s.SuccessShare, doc.Percent), "of sessions, at that load")
		}
	}
	return out.Facts
}

// provenance is where the sweep comes from.
func (r *SweepResult) provenance() []doc.Group {
	g := doc.Group{Title: "Sweep"}
	for _, f := range [][3]string{{"Command", r.Command}, {"Contract", strings.Join(r.Contract, "; ")},
		{"Endpoints", strings.Join(r.Endpoints, ", ")}, {"Model", r.Model}, {"Server", r.Server, "its version"},
		{"Simulated", r.Simulated}, {"Workload", r.Workload, "digest of its rows"}, {"Tier", r.Tier},
		{"Arrivals", r.Process}, {"Seed", r.Seed}, {"Started", r.Started}, {"Reprise", r.Version}} {
		g.Add(f[0], f[1], f[2])
	}
	return []doc.Group{g}
}

// series draws a figure of levels over their load, of those that can be trusted.
func series(name string, levels []*Level, of func(l *Level) *float64) doc.Series {
	s := doc.Series{Name: name}
	for _, l := range levels {
		if v := of(l); v != nil && l.Outcome != outcomeUntrusted {
			s.X, s.Y = append(s.X, l.Load), append(s.Y, *v)
		}
	}
	return s
}

// plot is over the load, with the knee and the highest load marked.
func (r *SweepResult) plot(title, about, label, yUnit string, log bool, of ...doc.Series) doc.Plot {
	p := doc.Plot{Title: title, Text: about, Kind: doc.Line, XLabel: "offered rate", XUnit: "req/s", YLabel: label,
		YUnit: yUnit, LogY: log, Series: of}
	switch r.Unit {
	case unitLiveSessions:
		p.XLabel, p.XUnit = "live sessions", ""
	case unitSessionRate:
		p.XLabel, p.XUnit = "rate of sessions", "1/s"
	default:
		if r.Closed {
			p.XLabel, p.XUnit = "requests in flight", ""
		}
	}
	if h := r.Highest.Load; h != nil {
		p.Marks = append(p.Marks, doc.Mark{Axis: doc.AxisX, At: *h, Label: "highest " + doc.Number(*h)})
	}
	if k := r.Knee; k != nil && k.Found {
		p.Marks = append(p.Marks, doc.Mark{Axis: doc.AxisX, At: k.Load, Label: "knee " + doc.Number(k.Load)})
	}
	return p
}

// mainPlot has what the contract limits in milliseconds, each with its limit; TTFT where
// it limits nothing of the kind. nil without a level that can be trusted.
func (r *SweepResult) mainPlot() *doc.Plot {
	levels := byLoad(r.Levels)
	out := r.ttft()
	if r.bySession() {
		return r.sessionPlot()
	}
	if i := slices.IndexFunc(levels, func(l *Level) bool { return l.Contract != nil }); i >= 0 {
		var of []doc.Series
		var limits []doc.Mark
		for j, c := range levels[i].Contract.Clauses {
			if c.Unit != "ms" {
				continue
			}
			name := c.Clause
			if c.Where != "" {
				name += " where " + c.Where
			}
			of = append(of, series(printable(name), levels, func(l *Level) *float64 {
				if l.Contract == nil || j >= len(l.Contract.Clauses) {
					return nil
				}
				return l.Contract.Clauses[j].Measured
			}))
			limits = append(limits, doc.Mark{Axis: doc.AxisY, At: c.Allowed,
				Label: "limit " + doc.Number(c.Allowed) + " ms", Series: len(of)})
		}
		if len(of) > 0 {
			out = r.plot("Latency over load", "What the contract limits, with its limits.", "latency",
				"ms", true, of...)
			out.Marks = append(out.Marks, limits...)
		}
	}
	return out.OrNil()
}

// ofSessions is a figure of the sessions of a level.
func ofSessions(get func(s *LevelSessions) *float64) func(l *Level) *float64 {
	return func(l *Level) *float64 { return get(l.Sessions) }
}

// sessionPlot is the time of sessions over load, with the limits of the contract on it.
func (r *SweepResult) sessionPlot() *doc.Plot {
	levels := byLoad(r.Levels)
	at := ofSessions
	out := r.plot("Session time over load", "From the first due time to the last answer, of sessions that succeeded.",
		"session time", "s", true,
		series("p50", levels, at(func(s *LevelSessions) *float64 { return thousandth(s.Time.P50) })),
		series("p95", levels, at(func(s *LevelSessions) *float64 { return thousandth(s.Time.P95) })),
		series("server, mean", levels, at(func(s *LevelSessions) *float64 { return s.ServerMeanS })))
	for i := range levels {
		if c := levels[i].Contract; c != nil {
			for _, clause := range c.Clauses {
				if clause.Unit == "s" {
					out.Marks = append(out.Marks, doc.Mark{Axis: doc.AxisY, At: clause.Allowed,
						Label: "limit " + doc.Number(clause.Allowed) + " s"})
				}
			}
			break
		}
	}
	return out.OrNil()
}

func (r *SweepResult) ttft() doc.Plot {
	levels := r.Ladder()
	return r.plot("TTFT", "From the schedule, so that waiting in a queue counts.", "TTFT", "ms", true,
		series("p50", levels, func(l *Level) *float64 { return l.TTFTDue.P50 }), series("p99", levels,
			func(l *Level) *float64 { return l.TTFTDue.P99 }))
}

// plots show the levels of the ladder.
func (r *SweepResult) plots() []doc.Plot {
	levels := r.Ladder()
	var plots []doc.Plot
	if r.bySession() {
		of := ofSessions
		plots = append(plots,
			r.plot("Sessions", "That began and ended in the measured window.", "sessions per second", "", false,
				series("began", levels, of(func(s *LevelSessions) *float64 { return s.BegunPerS })), series("ended",
					levels, of(func(s *LevelSessions) *float64 { return s.EndedPerS }))))
	}
	plots = append(plots,
		r.plot("Between tokens", "", "TPOT and ITL", "ms", true,
			series("TPOT p50", levels, func(l *Level) *float64 { return l.TPOT.P50 }), series("TPOT p99", levels,
				func(l *Level) *float64 { return l.TPOT.P99 }),
			series("ITL p99", levels, func(l *Level) *float64 { return l.ITL.P99 })),
		r.plot("Requests", "Where the two part, the server does not keep up.", "requests per second", "", false,
			series("offered", levels, func(l *Level) *float64 { return l.Flow.OfferedPerS }), series("achieved", levels,
				func(l *Level) *float64 { return l.Flow.AchievedPerS })),
		r.plot("In flight", "Sent and not finished, mean over the second half of a level.", "requests", "", false,
			series("mean", levels, func(l *Level) *float64 { return l.Flow.InFlight })),
	)
	if main := r.mainPlot(); main != nil && main.Title != "TTFT" {
		plots = append([]doc.Plot{r.ttft()}, plots...)
	}
	return doc.Drawn(plots...)
}

const closedNote = "A closed loop: each request waits for one to end, so no queue forms and saturation does not " +
	"show. Sweep over rates to see what users would."

// intervalName is what the bounds of the highest load are.
func (r *SweepResult) intervalName() string {
	if r.Precision > 0 {
		return "90 % interval"
	}
	return "Bounds"
}

// remarks say about levels what neither the table nor the end of the sweep says.
func (r *SweepResult) remarks() (out []string) {
	for _, l := range r.sorted() {
		for _, s := range []string{l.Why, l.Note} {
			if s != "" && !strings.HasSuffix(r.Stopped.Text, l.Name+": "+s) { // which is said
				out = append(out, l.Name+": "+s)
			}
		}
	}
	return out
}
