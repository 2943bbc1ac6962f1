package replay

import (
	"context"
	"time"

	"reprise/replay/result"
	"reprise/trace/crash"
)

// A Profiler starts and stops the profilers of the servers.
type Profiler interface {
	StartProfile(ctx context.Context) error
	StopProfile(ctx context.Context) error
}

// A profiling starts the servers' profilers with the part of a run that is
// measured: before the run, or, when it has a warm-up, during it when the first
// request that is measured is sent. It stops them when the last request is over, even
// if that is of the cool-down, since the start of a cool-down is only known then.
type profiling struct {
	admin Profiler
	begun time.Time // they had started
	start time.Time // of the run
	about result.Profiled
	async chan error // of a start beside the run
}

// newProfiling starts the profilers when the run has no warm-up; that they do not
// start is an error, since a profile was asked for.
func newProfiling(ctx context.Context, admin Profiler, o *Options) (*profiling, error) {
	if admin == nil {
		return nil, nil
	}
	p := &profiling{admin: admin}
	begun, measured := o.Begun, o.Measured
	o.Begun = func(start time.Time) {
		p.start = start
		if begun != nil {
			begun(start)
		}
	}
	if o.Warmup == (Span{}) {
		err := admin.StartProfile(ctx)
		if err != nil {
			admin.StopProfile(context.WithoutCancel(ctx)) // those that did
			return nil, err
		}
		p.begun = time.Now()
		return p, nil
	}
	o.Measured = func() {
		p.async = make(chan error, 1)
		go func() {
			defer crash.Caught()
			err := admin.StartProfile(context.WithoutCancel(ctx))
			p.begun = time.Now()
			p.async <- err
		}()
		if measured != nil {
			measured()
		}
	}
	return p, nil
}

// end stops the profilers and notes in run what became of them.
func (p *profiling) end(ctx context.Context, run *result.Run) {
	if p == nil {
		return
	}
	run.Profiled = &p.about
	if p.async != nil {
		if err := <-p.async; err != nil {
			p.about.Error = err.Error()
		}
	}
	if p.begun.IsZero() {
		return // nothing was measured
	}
	if p.start.IsZero() {
		p.start = p.begun // the run did not start
	}
	if p.about.Error == "" {
		p.about.FromNS = elapsed(p.start, p.begun)
	}
	told := elapsed(p.start, time.Now())
	if err := p.admin.StopProfile(context.WithoutCancel(ctx)); err != nil {
		if p.about.Error == "" {
			p.about.Error = err.Error()
		}
		return
	}
	p.about.ToNS = told
}

func elapsed(from, to time.Time) *int64 {
	ns := int64(to.Sub(from))
	return &ns
}
