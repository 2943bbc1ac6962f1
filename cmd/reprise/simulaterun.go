package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/simserver"
	"reprise/trace"
	"reprise/trace/profile"
)

// simulated is what a simulation came to.
type simulated struct {
	summary        simserver.FleetSummary
	sent, excluded int64
	most           int
	planned        int64 // ns from first to last due
}

// journalRows is how many results are written at once.
const journalRows = 512

// play sends a workload to a fleet. Without a journal the results are counted
// and not kept.
func (f *simulateFlags) play(cmd *cobra.Command, w *trace.Trace, c simserver.FleetConfig, journal *replay.Journal) (simulated, error) {
	rows, err := w.Reader()
	if err != nil {
		return simulated{}, err
	}
	p := &simulation{speed: f.speed, size: w.Meta.BlockSize, tally: simserver.NewTally(c), journal: journal}
	if journal != nil && p.size > 0 {
		p.known = profile.NewKnownPass(p.size, false)
	}
	fleet, err := simserver.NewFleet(c, p.note)
	if err != nil {
		return simulated{}, err
	}
	bar := newProgress(cmd)
	bar.start("simulate "+c.Router, "requests", rows.Rows())
	defer bar.end()
	p.pending = map[int64]*replay.Result{}
	err = trace.Each(rows, func(row int64, r *trace.Request) error {
		if row%1024 == 0 {
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			bar.set(row)
		}
		if r.Status == trace.StatusFailed && !f.includeFailed {
			p.excluded++
			return nil
		}
		if err := fleet.Send(p.arrival(row, r)); err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		return nil
	})
	if err == nil {
		err = fleet.Finish()
	}
	if err == nil {
		err = p.flush()
	}
	return simulated{p.tally.Summary(fleet), p.sent, p.excluded, fleet.MaxInFlight(), p.last - p.first}, err
}

// A simulation turns rows into arrivals, and answers into results.
type simulation struct {
	speed   float64
	size    int // tokens in a block of the workload
	tally   *simserver.Tally
	known   *profile.KnownPass
	journal *replay.Journal
	pending map[int64]*replay.Result // by row, without an answer yet
	rows    []replay.Result          // to be written

	sent, excluded, first, last int64
}

func (p *simulation) scaled(ns int64) int64 {
	if p.speed == 1 {
		return ns
	}
	return int64(float64(ns) / p.speed)
}

func (p *simulation) arrival(row int64, r *trace.Request) simserver.Arrival {
	due := p.scaled(r.ArrivalNS)
	if p.sent == 0 {
		p.first = due
	}
	p.last = due
	p.sent++
	a := simserver.Arrival{Session: r.Session, At: instantOf(due), Job: simserver.Job{ID: row,
		Prompt: int(r.InputTokens), Output: int(r.OutputTokens), BlockSize: p.size}}
	if p.size > 0 {
		// The lists are the reader's again after this row.
		a.Job.Blocks, a.Job.OutputBlocks = append([]uint64(nil), r.Blocks...), append([]uint64(nil), r.OutputBlocks...)
	}
	if r.Session != nil {
		a.Session = trace.Ptr(*r.Session)
	}
	if r.Status == trace.StatusCancelled && r.E2ENS != nil {
		a.Cut = instantOf(due + max(p.scaled(*r.E2ENS), 1))
	}
	if p.journal != nil {
		res := &replay.Result{RowID: row, Session: a.Session, Category: r.Category, DueNS: due, SentNS: trace.Ptr(due),
			WantInput: r.InputTokens, WantOutput: r.OutputTokens, Input: trace.Ptr(r.InputTokens)}
		if r.Class != nil {
			res.Class = *r.Class
		}
		if p.known != nil {
			res.Known = trace.Ptr(p.known.Touch(r))
		}
		p.pending[row] = res
	}
	return a
}

// instantOf converts nanoseconds since the trace began, which a damaged file
// may have below 0: a fleet refuses those.
func instantOf(ns int64) simserver.Picos {
	if ns >= int64(simserver.Never/1000) {
		return simserver.Never
	}
	return simserver.Picos(max(ns, -1)) * 1000
}

// note takes an answer.
func (p *simulation) note(a *simserver.Answer) error {
	p.tally.Add(a)
	if p.journal == nil {
		return nil
	}
	r := p.pending[a.Job.ID]
	delete(p.pending, a.Job.ID)
	answered(r, a)
	if p.rows = append(p.rows, *r); len(p.rows) < journalRows {
		return nil
	}
	return p.flush()
}

// answered completes a result with what became of its request.
func answered(r *replay.Result, a *simserver.Answer) {
	r.DoneNS = trace.Ptr(int64(a.Done.Duration()))
	switch a.Err {
	case simserver.ErrBusy:
		r.Error, r.HTTPStatus, r.Input = openai.KindRateLimited, trace.Ptr(int32(429)), nil
		return
	case simserver.ErrTooLong:
		r.Error, r.HTTPStatus, r.Input = openai.KindTooLong, trace.Ptr(int32(400)), nil
		return
	case simserver.ErrCut:
		r.Error = openai.KindCancelled
	default:
		r.FinishReason = "length"
	}
	r.HTTPStatus, r.Cached = trace.Ptr(int32(200)), trace.Ptr(int32(a.Job.Cached))
	r.Events = int32(len(a.Tokens))
	r.Output, r.OutputFrom = trace.Ptr(r.Events), replay.FromUsage
	r.GapsNS = make([]int64, 0, max(len(a.Tokens)-1, 0))
	for i, at := range a.Tokens {
		ns := int64(at.Duration())
		if i == 0 {
			r.FirstEventNS, r.FirstTokenNS = trace.Ptr(ns), trace.Ptr(ns)
		} else {
			r.GapsNS = append(r.GapsNS, ns-*r.LastTokenNS)
		}
		r.LastTokenNS = trace.Ptr(ns)
	}
}

func (p *simulation) flush() error {
	if p.journal == nil || len(p.rows) == 0 {
		return nil
	}
	_, err := p.journal.Write(p.rows)
	p.rows = p.rows[:0]
	return err
}
