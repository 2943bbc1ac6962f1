package replay

import (
	"context"
	"errors"
	"fmt"
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
