package bench

import (
	"context"
	"fmt"
	"time"

	"reprise/replay"
	"reprise/replay/engine"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// A Simulation is a workload that is answered by engines in virtual time.
type Simulation struct {
	Fleet     engine.FleetConfig
	Rows      trace.Reader[trace.Request]
	BlockSize int            // tokens in a block of the rows; 0 is without blocks
	Options   replay.Options // when rows are due, as in a replay; Known is asked too

	// Timeout, when above zero, is how long a request may take before its client gives
	// up, and the engine drops it.
	Timeout time.Duration

	// Results, when set, takes what a replay would have recorded, in the order in
	// which requests end.
	Results  trace.Writer[result.Result]
	Progress func(sent int64) // when set, is told now and then
}

// Run plays the workload to its end. It returns the fleet's summary, and the run's
// own figures of the sending.
func (s Simulation) Run(ctx context.Context) (engine.FleetSummary, result.Run, error) {
	p := &simulation{Simulation: s, tally: engine.NewTally(s.Fleet), pending: map[int64]*result.Result{}}
	var err error
	if p.times, err = replay.NewTimetable(s.Options, s.Rows); err != nil {
		return engine.FleetSummary{}, result.Run{}, err
	}
	if p.fleet, err = engine.NewFleet(s.Fleet, p.finishRequest); err != nil {
		return engine.FleetSummary{}, result.Run{}, err
	}
	if err := p.sendRows(ctx); err != nil {
		return engine.FleetSummary{}, result.Run{}, err
	}
	run, err := p.times.Finish()
	run.MaxInFlight = p.fleet.MaxInFlight()
	return p.tally.Summary(p.fleet), run, err
}

// resultRows is how many results are written at once.
const resultRows = 512

// A simulation turns rows into arrivals, and answers into results.
type simulation struct {
	Simulation
	times   *replay.Timetable
	fleet   *engine.Fleet
	tally   *engine.Tally
	pending map[int64]*result.Result // by id, without an answer yet
	rows    []result.Result          // to be written
	sent    int64
	now     int64 // ns, of the last arrival
}

// sendRows sends each row when it is due, and lets time pass in between.
func (p *simulation) sendRows(ctx context.Context) error {
	for {
		due, ok := p.times.Next()
		until := engine.Never
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
			if p.Progress != nil {
				p.Progress(p.sent)
			}
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

func (p *simulation) arrival(d *replay.Departure) engine.Arrival {
	r := d.Row
	p.now = max(p.now, d.Result.DueNS) // a row that was read late is sent late
	a := engine.Arrival{Session: d.Result.Session, At: instantOf(p.now), Job: engine.Job{ID: d.ID,
		Prompt: int(r.InputTokens), Output: int(r.OutputOr(0)), BlockSize: p.BlockSize}}
	if p.BlockSize > 0 {
		a.Job.Blocks, a.Job.OutputBlocks = r.Blocks, r.OutputBlocks
	}
	cut, why := d.Cut, openai.KindCancelled
	if p.Timeout > 0 && (cut == 0 || p.Timeout < cut) {
		cut, why = p.Timeout, openai.KindTimeout
	}
	if cut > 0 {
		a.Cut = instantOf(p.now + int64(cut))
	}
	res := &d.Result
	res.Error = why // unless it is answered
	if p.Results != nil {
		res.SentNS, res.Input = trace.Ptr(p.now), trace.Ptr(r.InputTokens)
		if p.Options.Known != nil {
			res.Known = trace.Ptr(p.Options.Known(d.ID, r))
		}
	}
	p.pending[d.ID] = res
	return a
}

// instantOf converts nanoseconds since the trace began, which a damaged file
// may have below 0: a fleet refuses those.
func instantOf(ns int64) engine.Picos {
	if ns >= int64(engine.Never/1000) {
		return engine.Never
	}
	return engine.Picos(max(ns, -1)) * 1000
}

// finishRequest completes the result of a request with its answer.
func (p *simulation) finishRequest(a *engine.Answer) error {
	p.tally.Add(a)
	r := p.pending[a.Job.ID]
	delete(p.pending, a.Job.ID)
	r.DoneNS = trace.Ptr(int64(a.Done.Duration()))
	whyCut := r.Error
	r.Error = ""
	switch a.Err {
	case engine.ErrBusy:
		r.Error, r.HTTPStatus, r.Input = openai.KindRateLimited, trace.Ptr(int32(429)), nil
	case engine.ErrTooLong:
		r.Error, r.HTTPStatus, r.Input = openai.KindTooLong, trace.Ptr(int32(400)), nil
	default:
		if a.Err == engine.ErrCut {
			r.Error = whyCut
		} else {
			r.FinishReason = "length"
		}
		r.HTTPStatus, r.Cached = trace.Ptr(int32(200)), trace.Ptr(int32(a.Job.Cached))
		r.Events = int32(len(a.Tokens))
		r.Output, r.OutputFrom = trace.Ptr(r.Events), result.FromUsage
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
	p.times.Over(a.Job.ID, time.Duration(*r.DoneNS), r.Failed())
	if p.Results == nil {
		return nil
	}
	if p.rows = append(p.rows, *r); len(p.rows) < resultRows {
		return nil
	}
	return p.flush()
}

func (p *simulation) flush() error {
	if p.Results == nil || len(p.rows) == 0 {
		return nil
	}
	_, err := p.Results.Write(p.rows)
	p.rows = p.rows[:0]
	return err
}
