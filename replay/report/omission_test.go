package report

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay"
	"reprise/replay/pace"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/textpage"
)

// A stalling server answers in 10 ms, and once takes five seconds.
type stalling struct{ resulttest.Endpoint }

type stalledCall int32

func (stalledCall) Size() int { return 1 }

func (stalling) Prepare(_ int64, _ int32, row *trace.Request, _ result.Prompter) (result.Call, error) {
	return stalledCall(row.InputTokens), nil
}

func (stalling) Fire(_ context.Context, s result.Shot, r *result.Result) {
	now := func() *int64 { return trace.Ptr(int64(time.Since(s.Start))) }
	r.SentNS = now()
	hold := 10 * time.Millisecond
	if s.Call.(stalledCall) == 500 {
		hold = 5 * time.Second
	}
	time.Sleep(hold)
	r.FirstTokenNS, r.LastTokenNS, r.DoneNS = now(), now(), now()
	r.HeadersNS, r.FirstEventNS, r.Events = r.FirstTokenNS, r.FirstTokenNS, 1
}

// sleeping is a pacer that only sleeps, which is exact in virtual time.
type sleeping time.Time

func (s sleeping) WaitUntil(ctx context.Context, due time.Duration) error {
	left := due - time.Since(time.Time(s))
	if err := ctx.Err(); err != nil || left <= 0 {
		return err
	}
	select {
	case <-time.After(left):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Coordinated omission. A server that serves one request at a time stalls for
// five seconds. The requests that stand behind it are sent late and answered at
// once: latencies from sent do not show that their users waited, those from schedule
// do. Both are printed, and the reader is told.
func TestStalledServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rows []trace.Request
		for i := range 1000 {
			rows = append(rows, trace.Request{ArrivalNS: int64(i) * 20e6, InputTokens: int32(i), OutputTokens: trace.Ptr[int32](1)})
		}
		runner := replay.Runner{Endpoint: stalling{}, Options: replay.Options{MaxInFlight: 1},
			Pacer: func(start time.Time) (pace.Pacer, error) { return sleeping(start), nil }}
		var out trace.SliceWriter[result.Result]
		run, err := runner.Run(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, &out)
		if err != nil {
			t.Fatal(err)
		}
		s := summarise(t, run, Options{}, out.Rows...)
		sent, due := s.Latency.FromSent.TTFT, s.Latency.FromDue.TTFT
		// Each request behind the stall makes up 10 ms: 499 of them wait.
		if *sent.P99 != 10 || *sent.Max != 5000 || *due.P50 < 10 || *due.P90 < 3500 || *due.P99 < 4900 || *due.Max != 5000 {
			t.Errorf("from sent p99 %v ms, from schedule p50 %v, p90 %v, p99 %v ms", *sent.P99, *due.P50, *due.P90, *due.P99)
		}
		var text bytes.Buffer
		if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"TTFT from sent", "TTFT from schedule"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%q is not printed:\n%s", want, &text)
			}
		}
		if !slices.ContainsFunc(s.Diagnoses, func(d Diagnosis) bool { return d.Code == leadClientWait || d.Code == leadClient }) {
			t.Errorf("the reader is told: %+v", s.Diagnoses)
		}
	})
}

// Requests outside the window are counted and nothing else.
func TestWindow(t *testing.T) {
	var results []result.Result
	for i := range int64(100) {
		wait := int64(5)
		if i < 10 || i >= 80 {
			wait = 900
		}
		results = append(results, answer(i, i*10, 0, wait))
	}
	results[3] = failure(3, 30, "timeout")
	run := result.Run{Sending: result.Sending{Requests: 100, Window: &result.Window{From: &result.Place{DueNS: 10 * 10 * msNS, Row: 10}, To: &result.Place{DueNS: 80 * 10 * msNS}}}}
	s := summarise(t, run, Options{}, results...)
	r := s.Requests
	if r.Rows != 70 || r.Succeeded != 70 || r.WarmUp != 10 || r.CoolDown != 20 || *s.Latency.FromSent.TTFT.Max != 5 || !s.Verdict.Trustworthy {
		t.Errorf("%+v, %+v", r, s.Verdict)
	}
	var text bytes.Buffer
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil || !strings.Contains(text.String(), "10 to warm up and 20 to cool down") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// A closed loop is called one wherever its figures are shown.
func TestClosedLoopIsLabelled(t *testing.T) {
	s := summarise(t, result.Run{Load: result.Load{Timing: result.ClosedLoop, Concurrency: 8}}, Options{}, answer(0, 0, 0, 5))
	var text bytes.Buffer
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "closed loop of 8 requests: the server") {
		t.Errorf("%s", &text)
	}
	for _, w := range s.Warnings {
		if w.Code == warnClosedLoop {
			return
		}
	}
	t.Errorf("no warning: %+v", s.Warnings)
}
