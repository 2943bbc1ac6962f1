package audit

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// An endingContext ends when it was asked so many times whether it has.
type endingContext struct {
	context.Context
	left atomic.Int64
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A check that is stopped, at whichever of its steps, says that and judges nothing.
func TestChecksThatAreStopped(t *testing.T) {
	t.Parallel()
	var rows []trace.Request
	for i := range int64(40) {
		rows = append(rows, trace.Request{ArrivalNS: i * 1e9, InputTokens: 32, OutputTokens: trace.Ptr[int32](5), User: trace.Ptr(i % 20), Session: trace.Ptr(i % 20), Kind: "chat", Status: trace.StatusOK, Blocks: []uint64{0, uint64(1 + i)}})
	}
	src := linkTrace(t, trace.Meta{Tier: anonymize.Internal, BlockSize: 16, Convention: trace.PartialTail, Sessions: "source", Capture: trace.RelativeCapture(0, time.Minute)}, rows)
	drawn, internal := drawnCase(t, src, anonymize.UnitUser, nil), &Case{Output: &Output{Kind: kindTrace, Trace: src, Meta: map[string]string{"tier": anonymize.Internal}}}
	for name, c := range map[string]struct {
		of    *Case
		check func(context.Context, *Case) Finding
	}{
		"times":   {drawn, times},
		"linkage": {drawn, linkage}, "linkage of an internal trace": {internal, linkage},
	} {
		whole := c.check(t.Context(), c.of)
		for n := int64(0); ; n += 1 + n/8 {
			ctx := &endingContext{Context: t.Context()}
			ctx.left.Store(n)
			f := c.check(ctx, c.of)
			if ctx.left.Load() >= 0 { // it was not asked so often
				if !reflect.DeepEqual(f, whole) {
					t.Errorf("%s, not stopped: %+v, want %+v", name, f, whole)
				}
				if n < 1 {
					t.Errorf("%s asks %d times", name, n)
				}
				break
			}
			if f.Status != Inconclusive || !f.broken || f.Why != broken(context.Canceled).Why {
				t.Fatalf("%s, stopped at step %d: %+v", name, n, f)
			}
		}
	}
}

// What a check reads may fail to open.
func TestSourcesThatStopOpening(t *testing.T) {
	t.Parallel()
	gone := errors.New("the log is gone")
	closed := drawnCase(t, linkHouse(t), anonymize.UnitUser, nil)
	closed.Internal, closed.Log = nil, &Log{Open: func() (*Opened, error) { return nil, gone }}
	checks := map[string]func(context.Context, *Case) Finding{"linkage": linkage, "times": times}
	for name, check := range checks {
		if f := check(t.Context(), closed); !f.broken || f.Why != broken(gone).Why {
			t.Errorf("%s of a log that does not open: %+v", name, f)
		}
	}
	closed.Internal = linkHouse(t)
	closed.Output.Trace.Close()
	checks["ids"] = ids
	for name, check := range checks {
		if f := check(t.Context(), closed); !f.broken {
			t.Errorf("%s of rows that cannot be read: %+v", name, f)
		}
	}
}

// Of long traces every check and the page stop between two batches of rows.
func TestLongTracesStop(t *testing.T) {
	rows := make([]trace.Request, 1200)
	for i := range rows {
		rows[i] = trace.Request{InputTokens: 23, OutputTokens: trace.Ptr[int32](5), User: trace.Ptr(int64(i))}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	o := tinyTrace(t, trace.Meta{Tier: anonymize.Public}, rows...)
	if r, err := Run(stopped, &Case{Output: o}, nil); !errors.Is(err, context.Canceled) || r.Findings != nil || r.Digest != "" {
		t.Errorf("a run: %+v, %v", r, err)
	}
	house := linkTrace(t, trace.Meta{Tier: anonymize.Internal}, rows)
	release := tinyTrace(t, trace.Meta{Tier: anonymize.Partner, BlockSize: 16}, rows...)
	for name, f := range map[string]Finding{
		"ids": ids(stopped, &Case{Output: release}), "times": times(stopped, &Case{Output: release, Internal: house}),
		"linkage": linkage(stopped, &Case{Output: release}), "linkage of a public trace": linkage(stopped, &Case{Output: o, Internal: house}),
	} {
		if !reflect.DeepEqual(f, broken(context.Canceled)) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for n := range int64(2) { // of the source, and of the output
		ctx := &endingContext{Context: t.Context()}
		ctx.left.Store(n)
		if p, err := Page(ctx, &Case{Output: o, Internal: house}, &Result{}); !errors.Is(err, context.Canceled) || p != nil {
			t.Errorf("a page, stopped at %d: %+v, %v", n, p, err)
		}
	}
}
