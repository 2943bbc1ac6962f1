package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// collectEvery is the longest that a Result waits in memory before it is
// written: what a killed run can lose.
const collectEvery = time.Second

// collect writes Results as they come, in batches, until the channel is closed.
// A writer that fails stops the run, which cannot be recorded any more; what is
// in flight is still taken, so that no request blocks.
func (p *play) collect(out trace.Writer[result.Result], stop context.CancelCauseFunc) error {
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	c := collector{out: out, stop: stop, heart: &p.heart}
	if p.opt.Progress != nil || len(p.opt.Abort) > 0 {
		c.meters = newMeters()
	}
	if len(p.opt.Abort) > 0 {
		c.aborter = &aborter{conditions: p.opt.Abort}
	}
	for {
		select {
		case r, ok := <-p.results:
			if !ok {
				c.write()
				p.tell(&c)
				return c.err
			}
			c.add(r)
		case <-tick.C:
			c.write()
			p.tell(&c)
		}
	}
}

// errWrite is what the run says of results that cannot be written; the details
// are in the error that Run returns.
var errWrite = errors.New("the results could not be written")

type collector struct {
	out          trace.Writer[result.Result]
	stop         context.CancelCauseFunc
	batch        []result.Result
	done, failed int64
	meters       *meters // nil where nobody is told
	aborter      *aborter
	heart        *heartbeat
	told         [2]int64 // done and failed at the last report
	err          error
}

// batchResults bounds what is written at once, and so what waits in memory.
const batchResults = 512

func (c *collector) add(r *result.Result) {
	c.done++
	if r.Failed() {
		c.failed++
	}
	c.meters.add(r)
	if c.batch = append(c.batch, *r); len(c.batch) == batchResults {
		c.write()
	}
}

func (c *collector) write() {
	if len(c.batch) > 0 && c.err == nil {
		if j, ok := c.out.(*result.Journal); ok {
			j.Stalled(c.heart.take()) // of the rows of the batch, all is known by now
		}
		if _, err := c.out.Write(c.batch); err != nil {
			c.err = fmt.Errorf("replay: results cannot be written, so the sending was stopped: %w", err)
			c.stop(errWrite)
		}
	}
	clear(c.batch)
	c.batch = c.batch[:0]
}

// Record runs r with a journal beside path, named [result.JournalName], and finishes
// that into a results file at path. A run that fails is recorded as far as it
// came. The journal goes when the results are whole, and stays when they cannot
// be written.
func (r *Runner) Record(ctx context.Context, rows trace.Reader[trace.Request], path string) (result.Run, error) {
	opt, err := r.Options.settled()
	if err != nil {
		return opt.About, err
	}
	name := result.JournalName(path)
	part := result.PartName(name, len(opt.About.Resumed))
	journal, err := result.CreateJournal(part, opt.About)
	if err != nil {
		return opt.About, err
	}
	meter, err := newMeter(r.Metering, path, &opt.About)
	if err != nil {
		return opt.About, errors.Join(err, journal.Close(), os.Remove(part))
	}
	metered := *r
	meter.prepare(ctx, &metered.Options)
	profiling, err := newProfiling(ctx, r.Profile, &metered.Options)
	if err != nil {
		return opt.About, errors.Join(err, meter.drop(), journal.Close(), os.Remove(part))
	}
	run, err := metered.Run(ctx, rows, journal)
	meter.over()
	profiling.end(ctx, &run)
	err = errors.Join(err, journal.Close(), meter.end(ctx, &run))
	return run, errors.Join(err, result.Finish(name, path, run))
}
