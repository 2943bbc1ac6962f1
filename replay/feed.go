package replay

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"reprise/trace"
)

// What is prepared and not yet sent is bounded three ways: by time
// ([Options.Ahead]), by memory and by number.
const (
	preparedBytes = 256 << 20
	preparedCalls = 1 << 14
)

// A flight is one row on its way from the workload to its Result.
type flight struct {
	call   Call
	size   int64
	due    time.Duration
	cut    time.Duration
	at     int64 // backs result.ReleasedNS
	result Result
}

// A feeder reads the workload and prepares each row some seconds before it is
// due. It stops at a bound and goes on when the dispatcher has made room. A row
// that it prepares too late is sent late, and keeps its due time.
type feeder struct {
	opt     Options
	prompts Prompter
	end     Endpoint
	budget  *semaphore.Weighted
	queue   chan *flight
	unready chan<- *Result // rows without a prompt

	// The clock starts when the first rows are prepared, so that a workload
	// that begins with a burst is not late from its first request on.
	primed  chan struct{}
	prime   sync.Once
	started chan struct{}
	start   time.Time // valid once started is closed

	// Counts, read after run returns.
	excluded, notSent, unprepared int64
	why                           string
	rows                          int64
	first, last                   time.Duration // due times
}

// run reads rows to their end. After the end of ctx it prepares no more and
// only counts, so that what was not sent is known.
func (f *feeder) run(ctx context.Context, rows trace.Reader[trace.Request]) error {
	defer close(f.queue)
	defer f.ready()
	err := trace.Each(rows, func(id int64, row *trace.Request) error {
		if row.Status == trace.StatusFailed && !f.opt.IncludeFailed {
			f.excluded++
			return nil
		}
		due := f.opt.scaled(row.ArrivalNS)
		if f.rows == 0 {
			f.first = due
		}
		f.last = due
		f.rows++
		if f.feed(ctx, id, row, due) != nil {
			f.notSent++
		}
		return nil
	})
	if err != nil {
		return errors.Join(errWorkload, err)
	}
	return nil
}

// errWorkload is what the run says of a workload that cannot be read; the
// details, which may hold a path, are in the error that Run returns.
var errWorkload = errors.New("the workload could not be read to its end")

func (f *feeder) ready() { f.prime.Do(func() { close(f.primed) }) }

// feed prepares one row and queues it; the error is that of ctx.
func (f *feeder) feed(ctx context.Context, id int64, row *trace.Request, due time.Duration) error {
	if err := f.wait(ctx, due-f.opt.Ahead); err != nil {
		return err
	}
	fl := &flight{due: due, result: f.opt.blank(id, row, due)}
	if row.Status == trace.StatusCancelled && row.E2ENS != nil {
		// Not 0, which would be never: the recorded instant of a request that was dropped at once.
		fl.cut = max(f.opt.scaled(*row.E2ENS), 1)
	}
	var err error
	if fl.call, err = f.end.Prepare(row, f.prompts); err != nil {
		return f.spoil(ctx, fl, err)
	}
	if f.opt.Known != nil {
		fl.result.Known = trace.Ptr(f.opt.Known(row))
	}
	fl.size = min(int64(fl.call.Size()), preparedBytes)
	if !f.budget.TryAcquire(fl.size) {
		f.ready()
		if err := f.budget.Acquire(ctx, fl.size); err != nil {
			return err
		}
	}
	select {
	case f.queue <- fl:
		return nil
	default:
		f.ready()
	}
	select {
	case f.queue <- fl:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spoil gives a row that could not be prepared its Result.
func (f *feeder) spoil(ctx context.Context, fl *flight, err error) error {
	fl.result.Error = KindPrepare
	select {
	case f.unready <- &fl.result:
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.unprepared++; f.unprepared == 1 {
		f.why = err.Error()
	}
	return nil
}

// wait returns at an instant of the run, or with the error of ctx.
func (f *feeder) wait(ctx context.Context, until time.Duration) error {
	if until <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	f.ready()
	select {
	case <-f.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	if until -= time.Since(f.start); until <= 0 {
		return nil
	}
	t := time.NewTimer(until)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// scaled divides a recorded time by the speed.
func (o *Options) scaled(ns int64) time.Duration {
	if o.Speed == 1 {
		return time.Duration(ns)
	}
	return time.Duration(float64(ns) / o.Speed)
}

// blank begins the Result of a row.
func (o *Options) blank(id int64, row *trace.Request, due time.Duration) Result {
	r := Result{
		RowID: id, Category: row.Category, DueNS: int64(due),
		WantInput: row.InputTokens, WantOutput: row.OutputTokens,
	}
	if row.Session != nil {
		r.Session = trace.Ptr(*row.Session)
	}
	if row.Class != nil {
		r.Class = *row.Class
	}
	return r
}
