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

// errWrite is the run's error for results that cannot be written; the details
// are in the error that Run returns.
var errWrite = errors.New("the results could not be written")

// A collector writes Results in batches.
type collector struct {
	out          trace.Writer[result.Result]
	stop         context.CancelCauseFunc // ends the sending
	stalls       func() *result.Stalls   // those since the last call
	batch        []result.Result
	done, failed int64
	meters       *meters // nil where nobody asks
	observe      func(*result.Result)
	aborter      *aborter
	told         [2]int64 // done and failed at the last report
	err          error
}

// run writes Results as they come, in batches, until the channel is closed. It calls
// report each second and at the end. A writer that fails stops the run, which cannot be
// recorded any more; what is in flight is still taken, so that no request blocks.
func (c *collector) run(results <-chan *result.Result, report func(*collector)) error {
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		select {
		case r, ok := <-results:
			if !ok {
				c.writeBatch()
				report(c)
				return c.err
			}
			c.done++
			if r.Failed() {
				c.failed++
			}
			c.meters.add(r)
			if c.observe != nil {
				c.observe(r)
			}
			if c.batch = append(c.batch, *r); len(c.batch) == batchResults {
				c.writeBatch()
			}
		case <-tick.C:
			c.writeBatch()
			report(c)
		}
	}
}

// batchResults bounds what is written at once, and so what waits in memory.
const batchResults = 512

func (c *collector) writeBatch() {
	if len(c.batch) > 0 && c.err == nil {
		if j, ok := c.out.(*result.Journal); ok {
			j.Stalled(c.stalls()) // of the rows of the batch, all is known by now
		}
		if _, err := c.out.Write(c.batch); err != nil {
			c.err = fmt.Errorf("replay: results cannot be written, so the run was stopped: %w", err)
			c.stop(errWrite)
		}
	}
	clear(c.batch)
	c.batch = c.batch[:0]
}
