package bench

import (
	"fmt"
	"slices"

	"reprise/trace"
	"reprise/trace/doc"
)

// A sweepColumn is a column of the table of levels.
type sweepColumn struct {
	head  string
	of    func(l *Level) string
	short bool // a short answer has it
}

// columns are those of the table of levels.
func (r *SweepResult) columns() []sweepColumn {
	if !r.bySession() {
		return sweepColumns
	}
	of := func(get func(s *LevelSessions) string) func(l *Level) string {
		return func(l *Level) string { return get(l.Sessions) }
	}
	return []sweepColumn{
		{"sessions", func(l *Level) string { return cell(&l.Load) }, true},
		{"outcome", (*Level).outcome, true},
		{"sessions/s", of(func(s *LevelSessions) string { return doc.OrDash(s.EndedPerS, doc.Number) }), true},
		{"live", of(func(s *LevelSessions) string { return doc.OrDash(s.LiveMean, doc.Number) }), false},
		{"time p50", of(func(s *LevelSessions) string { return seconds(s.Time.P50) }), true},
		{"p95", of(func(s *LevelSessions) string { return seconds(s.Time.P95) }), true},
		{"±", (*Level).spread, true},
		{"server", of(func(s *LevelSessions) string { return doc.OrDash(s.ServerMeanS, doc.Number) }), false},
		{"success", of(func(s *LevelSessions) string { return doc.OrDash(s.SuccessShare, doc.Percent) }), true},
		{"TTFT p50", func(l *Level) string { return cell(l.TTFTDue.P50) }, false},
		{"TTFT p99", func(l *Level) string { return cell(l.TTFTDue.P99) }, true},
		{"TPOT p99", func(l *Level) string { return cell(l.TPOT.P99) }, false},
		{"tok/s", func(l *Level) string { return cell(l.Flow.OutputPerS) }, true},
		{"errors", (*Level).errors, false},
		{"in flight", func(l *Level) string { return cell(l.Flow.InFlight) }, false},
		{"n", of(func(s *LevelSessions) string { return fmt.Sprint(s.Measured) }), false},
	}
}

// thousandth is milliseconds in seconds.
func thousandth(ms *float64) *float64 {
	if ms == nil {
		return nil
	}
	return trace.Ptr(*ms / 1e3)
}

// seconds prints milliseconds in seconds.
func seconds(ms *float64) string { return doc.OrDash(thousandth(ms), doc.Number) }

var sweepColumns = []sweepColumn{
	{"rate", func(l *Level) string { return cell(&l.Load) }, true},
	{"outcome", (*Level).outcome, true},
	{"offered/s", func(l *Level) string { return cell(l.Flow.OfferedPerS) }, false},
	{"achieved/s", func(l *Level) string { return cell(l.Flow.AchievedPerS) }, true},
	{"tok/s", func(l *Level) string { return cell(l.Flow.OutputPerS) }, true},
	{"TTFT p50", func(l *Level) string { return cell(l.TTFTDue.P50) }, true},
	{"p95", func(l *Level) string { return cell(l.TTFTDue.P95) }, true},
	{"p99", func(l *Level) string { return cell(l.TTFTDue.P99) }, true},
	{"±", (*Level).spread, true},
	{"ITL p50", func(l *Level) string { return cell(l.ITL.P50) }, false},
	{"p95", func(l *Level) string { return cell(l.ITL.P95) }, false},
	{"p99", func(l *Level) string { return cell(l.ITL.P99) }, false},
	{"E2E p50", func(l *Level) string { return cell(l.E2E.P50) }, false},
	{"p95", func(l *Level) string { return cell(l.E2E.P95) }, false},
	{"p99", func(l *Level) string { return cell(l.E2E.P99) }, false},
	{"service TTFT p50", func(l *Level) string { return cell(l.TTFTSent.P50) }, false},
	{"service TTFT p99", func(l *Level) string { return cell(l.TTFTSent.P99) }, false},
	{"TPOT p50", func(l *Level) string { return cell(l.TPOT.P50) }, false},
	{"TPOT p99", func(l *Level) string { return cell(l.TPOT.P99) }, false},
	{"errors", (*Level).errors, true},
	{"in flight", func(l *Level) string { return cell(l.Flow.InFlight) }, false},
	{"n", func(l *Level) string { return fmt.Sprint(l.TTFTDue.Count) }, false},
}

// errors is the share of requests that failed.
func (l *Level) errors() string { return doc.OrDash(l.Requests.ErrorShare, doc.Percent) }

// outcome marks what chance may have done.
func (l *Level) outcome() string {
	if !l.Sure && (l.Outcome == outcomeHolds || l.Outcome == outcomeFails) {
		return l.Outcome + "?"
	}
	return l.Outcome
}

// pastKnee tells whether a level without a contract, which asks nothing of latencies, lies beyond
// the knee.
func (r *SweepResult) pastKnee(l *Level) bool {
	return len(r.Contract) == 0 && r.Knee != nil && l.Load > r.Knee.Load && l.Outcome == outcomeHolds
}

// spread is half of the 95 % interval of the p99 of TTFT, or by session of the p95 of session
// time, as a share of it.
func (l *Level) spread() string {
	of := "p99 ttft"
	if l.Sessions != nil {
		of = "p95 session_time"
	}
	for _, i := range l.Intervals {
		if i.Metric == of && i.HalfWidth != nil {
			return doc.Percent(*i.HalfWidth)
		}
	}
	return doc.OrDash(nil, doc.Percent)
}

// table is the curve of latency over load, with the runs that confirm it named: all columns, or
// those of a short answer. Columns that say nothing are left out: errors where there are
// none, and what a closed loop offered, which is what it achieved.
func (r *SweepResult) table(short bool) doc.Table {
	failed := slices.ContainsFunc(r.Levels, func(l Level) bool {
		return l.Requests.ErrorShare != nil && *l.Requests.ErrorShare > 0
	})
	columns := slices.DeleteFunc(slices.Clone(r.columns()), func(c sweepColumn) bool {
		return short && !c.short || c.head == "errors" && !failed || c.head == "offered/s" && r.Closed
	})
	var t doc.Table
	for _, c := range columns {
		switch {
		case c.head == "rate" && r.Closed:
			c.head = "concurrency"
		case c.head == "sessions" && r.Unit == unitSessionRate:
			c.head = "rate"
		}
		align := doc.Right
		if c.head == "outcome" {
			align = doc.Left
		}
		t.Head, t.Align = append(t.Head, c.head), append(t.Align, align)
	}
	for _, l := range r.sorted() {
		var row []string
		for _, c := range columns {
			row = append(row, c.of(l))
			if c.head == "outcome" && r.pastKnee(l) {
				row[len(row)-1] = "past knee"
			}
		}
		if l.Role != roleLevel {
			row[0] += " " + l.Role
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// sorted are the levels by load, those that confirm after the ladder.
func (r *SweepResult) sorted() []*Level {
	out := r.Ladder()
	for i := range r.Levels {
		if r.Levels[i].Role != roleLevel {
			out = append(out, &r.Levels[i])
		}
	}
	return out
}
