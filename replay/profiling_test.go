package replay

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A profiler takes 200 ms to start and 100 ms to stop.
type profiler struct {
	failStart, failStop error
	called              []string
}

func (p *profiler) StartProfile(context.Context) error {
	time.Sleep(200 * time.Millisecond)
	p.called = append(p.called, "start")
	return p.failStart
}

func (p *profiler) StopProfile(ctx context.Context) error {
	time.Sleep(100 * time.Millisecond)
	p.called = append(p.called, "stop")
	return errors.Join(p.failStop, ctx.Err())
}

// Servers are profiled from before the run, or from the first measured request on, to
// the last answer, and what fails there is told.
func TestServersAreProfiled(t *testing.T) {
	broken := errors.New("no route")
	at := func(d time.Duration) *int64 { return trace.Ptr(int64(d)) }
	const end = 2500 * time.Millisecond
	both := []string{"start", "stop"}
	for name, c := range map[string]struct {
		p      profiler
		warm   Span
		want   result.Profiled
		called []string
	}{
		"from the start":        {profiler{}, Span{}, result.Profiled{FromNS: at(0), ToNS: at(end)}, both},
		"behind a warm-up":      {profiler{}, Span{Requests: 1}, result.Profiled{FromNS: at(1200 * time.Millisecond), ToNS: at(end)}, both},
		"behind a time":         {profiler{}, Span{Time: 2 * time.Second}, result.Profiled{FromNS: at(2200 * time.Millisecond), ToNS: at(end)}, both},
		"that do not start":     {profiler{failStart: broken}, Span{Requests: 1}, result.Profiled{Error: "no route", ToNS: at(end)}, both},
		"that do not stop":      {profiler{failStop: broken}, Span{Requests: 1}, result.Profiled{Error: "no route", FromNS: at(1200 * time.Millisecond)}, both},
		"that do neither":       {profiler{failStart: broken, failStop: errors.New("gone")}, Span{Requests: 1}, result.Profiled{Error: "no route"}, both},
		"of nothing measured":   {profiler{}, Span{Requests: 3}, result.Profiled{}, nil},
		"of nothing after that": {profiler{}, Span{Time: time.Hour}, result.Profiled{}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun, measured := 0, 0
			p := c.p
			r := &Runner{Endpoint: &fake{hold: func(int32) time.Duration { return 500 * time.Millisecond }}, Pacer: sleeper,
				Options: Options{Profile: &p, Warmup: c.warm, Begun: func(time.Time) { begun++ }, Measured: func() { measured++ }}}
			run, err := r.Record(t.Context(), reader(workload(every(time.Second, 3)...)), filepath.Join(t.TempDir(), "run.parquet"))
			if err != nil || run.Profiled == nil || !reflect.DeepEqual(*run.Profiled, c.want) || !reflect.DeepEqual(p.called, c.called) {
				t.Errorf("%s: %v, %+v after %v; want %+v after %v", name, err, run.Profiled, p.called, c.want, c.called)
			}
			if begun != 1 || measured > 1 || (measured == 1) != (len(c.called) > 0) {
				t.Errorf("%s: %d times begun, %d measured", name, begun, measured)
			}
		})
	}
}

// Profilers that do not start before a run keep it from starting, and nothing is left.
func TestProfilersMustStart(t *testing.T) {
	broken := errors.New("no route")
	path := filepath.Join(t.TempDir(), "run.parquet")
	synctest.Test(t, func(t *testing.T) {
		p := &profiler{failStart: broken}
		r := &Runner{Endpoint: &fake{}, Pacer: sleeper, Options: Options{Profile: p, Metering: (&meterServer{}).metering(t)}}
		if _, err := r.Record(t.Context(), reader(workload(0)), path); !errors.Is(err, broken) || len(p.called) != 2 {
			t.Errorf("%v after %v", err, p.called)
		}
		// A run that does not start is profiled from and to one instant.
		p = &profiler{}
		rows := workload(0)
		r = &Runner{Endpoint: &fake{}, Pacer: sleeper, Options: Options{Profile: p, Causal: lineageOf(t, rows), Thread: &Threading{}}}
		run, err := r.Record(t.Context(), reader(rows), filepath.Join(t.TempDir(), "run.parquet"))
		if !errors.Is(err, errNoContinuer) || *run.Profiled.FromNS != 0 || *run.Profiled.ToNS != 0 || len(p.called) != 2 {
			t.Errorf("%v, %+v after %v", err, run.Profiled, p.called)
		}
	})
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
