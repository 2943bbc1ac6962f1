package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
)

// Rules about what is found when a run is over, by the names that broken ones have.
const (
	ruleWorkload = "workload"
	ruleTooLong  = "too_long"
	ruleErrors   = "errors"
	ruleWhole    = "uninterrupted"
	ruleSessions = "live_sessions"
	ruleTrust    = "trustworthy"
)

// CheckWorkload holds the digest of a workload, and that of the file that it is of, which
// may be empty, against those that may be replayed.
func (s *Scenario) CheckWorkload(digest, source string) *result.BrokenRule {
	n, m := len(s.Workloads), len(s.Sources)
	if n+m == 0 || slices.Contains(s.Workloads, digest) || source != "" && slices.Contains(s.Sources, source) {
		return nil
	}
	b := &result.BrokenRule{Rule: ruleWorkload, Given: digest}
	var want []string
	if n > 0 {
		want = append(want, fmt.Sprintf("one of the %d that are permitted", n))
	}
	if m > 0 {
		want = append(want, fmt.Sprintf("the import of one of the %d files that are permitted, whole", m))
		if b.Given += ", not known to be of one whole file"; source != "" {
			b.Given = digest + ", of the file " + source
		}
	}
	b.Want = strings.Join(want, ", or ")
	return b
}

// Stamp adds to a run that is over, and that Apply was used for, which rules it broke while
// it went on, and whether it may be submitted. results opens the results from their
// beginning.
//
// A run is not valid when it ended early; when fewer sessions were live than asked for
// before its time was over; when more than the limit of its answers say that a prompt
// does not fit the context; or when the measurement cannot be trusted, by the usual limits.
func (s *Scenario) Stamp(run *result.Run, results trace.Reader[result.Result]) error {
	about := *run.Scenario
	about.Broken = slices.Clone(about.Broken)
	counts := &tally{in: results}
	limits := report.DefaultLimits()
	if s.Limits.Errors >= 0 {
		limits.Errors = -1 // the scenario has its own
	}
	sum, err := report.Summarise(*run, counts, report.Options{Limits: limits})
	if err != nil {
		return err
	}
	about.Answers, about.TooLong = counts.answers, counts.tooLong
	broke := func(rule, want, given string, args ...any) {
		about.Broken = append(about.Broken,
			result.BrokenRule{Rule: rule, Given: fmt.Sprintf(given, args...), Want: want})
	}
	if run.EndedEarly != "" {
		broke(ruleWhole, "a run to its end", "it ended early (%s)", run.EndedEarly)
	}
	if p := run.Sessions; p != nil && p.Live > 0 && p.Counts != nil && run.EndedEarly == "" {
		l := cmp.Or(p.Counts.LiveTrees, &result.LiveTrees{})
		duration := run.Plan.DurationNS
		switch {
		case l.Min < int64(p.Live):
			broke(ruleSessions, doc.Many(int64(p.Live), "live session")+" at every instant",
				"%d at the least", l.Min)
		case duration > 0 && l.ToNS < duration:
			broke(ruleSessions, doc.Many(int64(p.Live), "live session")+" until the time is over",
				"none was left to start after %v", time.Duration(l.ToNS).Round(time.Second))
		}
	}
	exceeds := func(rule string, n int64, limit float64, what string) {
		if limit >= 0 && float64(n) > limit*float64(counts.answers) {
			broke(rule, doc.Percent(limit)+" at most", "%d of %s %s", n, doc.Many(counts.answers, "answer"), what)
		}
	}
	exceeds(ruleTooLong, counts.tooLong, s.Limits.TooLong, "refused a prompt that does not fit the context")
	exceeds(ruleErrors, counts.failed, s.Limits.Errors, "were errors")
	if v := sum.Verdict; !v.Trustworthy {
		var codes []string
		for _, r := range v.Reasons {
			codes = append(codes, r.Code)
		}
		broke(ruleTrust, "a measurement that can be trusted", "%s", strings.Join(codes, ", "))
	}
	about.Valid = trace.Ptr(len(about.Broken)+len(about.Unchecked) == 0)
	run.Scenario = &about
	return nil
}

// A tally counts the results that pass through it.
type tally struct {
	in                       trace.Reader[result.Result]
	answers, failed, tooLong int64
}

func (t *tally) Read(rows []result.Result) (int, error) {
	n, err := t.in.Read(rows)
	for i := range rows[:n] {
		r := &rows[i]
		if r.SentNS == nil && !r.Failed() {
			continue
		}
		t.answers++
		if r.Failed() {
			t.failed++
		}
		if r.Error == result.KindTooLong {
			t.tooLong++
		}
	}
	return n, err
}
