package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/simserver"
	"reprise/trace"
	"reprise/trace/profile"
)

// simulated is what a simulation came to.
type simulated struct {
	summary simserver.FleetSummary
	run     replay.Run // what the sending says of itself
}

// journalRows is how many results are written at once.
const journalRows = 512

// play sends a workload to a fleet. Without a journal the results are counted
// and not kept.
func (f *simulateFlags) play(cmd *cobra.Command, w *trace.Trace, c simserver.FleetConfig, about replay.Run, journal *replay.Journal) (simulated, error) {
	rows, err := w.Reader()
	if err != nil {
		return simulated{}, err
	}
	lineage, err := f.lineage(cmd, func() (trace.Reader[replay.Turn], error) { return trace.Columns[replay.Turn](w) })
	if err != nil {
		return simulated{}, err
	}
	options, err := f.schedule(lineage, f.seed)
	if err != nil {
		return simulated{}, err
	}
	options.About = about
	p := &simulation{size: w.Meta.BlockSize, tally: simserver.NewTally(c), journal: journal, pending: map[int64]*replay.Result{}}
	if p.times, err = replay.NewTimetable(options, rows); err != nil {
		return simulated{}, err
	}
	if journal != nil && p.size > 0 {
		p.known = profile.NewKnownPass(p.size, false)
	}
	if p.fleet, err = simserver.NewFleet(c, p.note); err != nil {
		return simulated{}, err
	}
	bar := newProgress(cmd)
	bar.start("simulate "+c.Router, "requests", rows.Rows())
	defer bar.end()
	if err := p.run(cmd.Context(), bar.set); err != nil {
		return simulated{}, err
	}
	run, err := p.times.Finish()
	run.MaxInFlight = p.fleet.MaxInFlight()
	return simulated{p.tally.Summary(p.fleet), run}, err
}

// A simulation turns rows into arrivals, and answers into results.
type simulation struct {
	times   *replay.Timetable
	fleet   *simserver.Fleet
	size    int // tokens in a block of the workload
	tally   *simserver.Tally
	known   *profile.KnownPass
	journal *replay.Journal
	pending map[int64]*replay.Result // by row, without an answer yet
	rows    []replay.Result          // to be written
	sent    int64
	now     int64 // ns, of the last arrival
}

// run sends each row when it is due, and lets time pass in between.
func (p *simulation) run(ctx context.Context, progress func(int64)) error {
	for {
		due, ok := p.times.Next()
		until := simserver.Never
		if ok {
			until = instantOf(int64(due))
		}
		if !p.times.Fixed() && p.fleet.Advance(until) {
			continue
		}
		if !ok {
			break
		}
		if p.sent%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(p.sent)
		}
		p.sent++
		d := p.times.Take()
		if err := p.fleet.Send(p.arrival(&d)); err != nil {
			return fmt.Errorf("row %d: %w", d.Result.RowID, err)
		}
	}
	if err := p.fleet.Finish(); err != nil { // says what failed; all requests are over
		return err
	}
	return p.flush()
}

func (p *simulation) arrival(d *replay.Departure) simserver.Arrival {
	r := d.Row
	p.now = max(p.now, d.Result.DueNS) // a row that was read late is sent late
	a := simserver.Arrival{Session: d.Result.Session, At: instantOf(p.now), Job: simserver.Job{ID: d.Result.RowID,
		Prompt: int(r.InputTokens), Output: int(r.OutputTokens), BlockSize: p.size}}
	if p.size > 0 {
		a.Job.Blocks, a.Job.OutputBlocks = r.Blocks, r.OutputBlocks
	}
	if d.Cut > 0 {
		a.Cut = instantOf(p.now + int64(d.Cut))
	}
	res := &d.Result
	if p.journal != nil {
		res.SentNS, res.Input = trace.Ptr(p.now), trace.Ptr(r.InputTokens)
		if p.known != nil {
			res.Known = trace.Ptr(p.known.Touch(r))
		}
	}
	p.pending[res.RowID] = res
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
	r := p.pending[a.Job.ID]
	delete(p.pending, a.Job.ID)
	answered(r, a)
	p.times.Over(r.RowID, time.Duration(*r.DoneNS), r.Failed())
	if p.journal == nil {
		return nil
	}
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
