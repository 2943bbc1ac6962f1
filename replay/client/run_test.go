package client

import (
	"context"
	"testing"
	"time"

	"reprise/replay/pace"
	"reprise/replay/result"
	"reprise/trace"
)

func sleeper(start time.Time) (pace.Pacer, error) { return sleeping(start), nil }

// sleeping is a pacer for virtual time.
type sleeping time.Time

func (s sleeping) WaitUntil(ctx context.Context, due time.Duration) error {
	left := due - time.Since(time.Time(s))
	if left <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(left):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// workload makes rows that arrive at the given times; a row's input length is
// its number.
func workload(arrivals ...time.Duration) []trace.Request {
	var rows []trace.Request
	for i, at := range arrivals {
		rows = append(rows, trace.Request{ArrivalNS: int64(at), InputTokens: int32(i), OutputTokens: trace.Ptr[int32](7)})
	}
	return rows
}

// every is n times, a gap apart.
func every(gap time.Duration, n int) []time.Duration {
	var at []time.Duration
	for i := range n {
		at = append(at, time.Duration(i)*gap)
	}
	return at
}

func reader(rows []trace.Request) trace.Reader[trace.Request] {
	return &trace.SliceReader[trace.Request]{Rows: rows}
}

// readAll reads the results at path.
func readAll(t testing.TB, path string) (*result.File, []result.Result) {
	t.Helper()
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var out trace.SliceWriter[result.Result]
	if _, err := trace.Copy(&out, f.Reader()); err != nil {
		t.Fatal(err)
	}
	return f, out.Rows
}
