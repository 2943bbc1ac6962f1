package synth

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"reprise/trace"
)

// What is measured of each request of a unit: its own reuse, turns and pauses, and
// nothing of other units.
func TestPublicRecords(t *testing.T) {
	id := trace.Ptr[int64]
	rows := []trace.Request{
		{ArrivalNS: 0, User: id(7), Session: id(1), InputTokens: 40, OutputTokens: 3, Blocks: []uint64{1, 2, 3}, ThinkNS: id(9)},
		{ArrivalNS: 5, Status: trace.StatusFailed, User: id(7), InputTokens: 16, Blocks: []uint64{9}},
		{ArrivalNS: 10, User: id(8), Session: id(1), InputTokens: 32, OutputTokens: 1, Blocks: []uint64{1, 2}},
		{ArrivalNS: 30, User: id(7), Session: id(1), InputTokens: 64, OutputTokens: 4, Blocks: []uint64{1, 2, 4, 5}, ThinkNS: id(3), ToolNS: id(4)},
		{ArrivalNS: 70, User: id(7), Session: id(1), InputTokens: 64, OutputTokens: 0, Blocks: []uint64{1, 2, 4, 6}, ToolNS: id(-5)},
		{ArrivalNS: 75, User: id(7), InputTokens: 48, Blocks: []uint64{8, 2, 4}},
		{ArrivalNS: 90, User: id(7), Session: id(1), InputTokens: 15, Blocks: []uint64{10}},
		{ArrivalNS: 99, User: id(7), Session: id(2), InputTokens: 100},
		{ArrivalNS: 99, InputTokens: 16, Blocks: []uint64{1}},
	}
	records := func(unit string, meta trace.Meta) map[int64][]record {
		t.Helper()
		meta.Capture = trace.RelativeCapture(0, 100)
		o := PublicOptions{Unit: unit}
		if err := o.defaults(meta); err != nil {
			t.Fatal(err)
		}
		c := collected(t, rows, meta, &o)
		out := map[int64][]record{}
		for key, u := range c.index {
			out[key] = c.units[u].Kept
		}
		if c.rows != 8 {
			t.Errorf("%d rows count, want 8", c.rows)
		}
		return out
	}
	want := map[int64][]record{
		7: {
			{at: 0, input: 40, output: 3, length: 3, gap: none, pause: none, nodes: []uint64{1, 2}},
			{at: 30, input: 64, output: 4, length: 4, hit: 2, extends: true, gap: 30, turn: 1, pause: 7, nodes: []uint64{1, 2, 5}},
			{at: 70, input: 64, length: 4, hit: 3, gap: 40, turn: 2, pause: 0, nodes: []uint64{1, 2, 6}},
			{at: 75, input: 48, length: 3, gap: none, pause: none, nodes: []uint64{8, 2}},
			{at: 90, input: 15, length: 1, gap: 20, turn: 3, pause: none},
			{at: 99, input: 100, length: 7, gap: none, pause: none},
		},
		8:      {{at: 10, input: 32, output: 1, length: 2, gap: none, pause: none, nodes: []uint64{1, 2}}},
		nobody: {{at: 99, input: 16, length: 1, gap: none, pause: none, nodes: []uint64{1}}},
	}
	got := records(UnitUser, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource})
	for key, w := range want {
		for i := range w {
			if len(got[key]) != len(w) || !reflect.DeepEqual(got[key][i], w[i]) {
				t.Errorf("user %d, request %d: got %+v, want %+v", key, i, got[key], w[i])
			}
		}
	}
	// Without sessions, turns count what a request builds on.
	turns := func(list []record) (out []int32) {
		for _, r := range list {
			out = append(out, r.turn)
		}
		return out
	}
	if got := turns(records(UnitUser, trace.Meta{BlockSize: 16})[7]); !reflect.DeepEqual(got, []int32{0, 1, 2, 0, 0, 0}) {
		t.Errorf("the chains are %v", got)
	}
	// A request of its own has no past.
	for key, list := range records(UnitRequest, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource}) {
		if r := list[0]; len(list) != 1 || r.hit != 0 || r.gap != none || r.turn != 0 || r.pause != none || r.extends {
			t.Errorf("request %d is %+v", key, list)
		}
	}
	sessions := records(UnitSession, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource})
	if len(sessions) != 3 || len(sessions[1]) != 5 || len(sessions[2]) != 1 || len(sessions[nobody]) != 2 {
		t.Errorf("the sessions are %+v", sessions)
	}
}

func TestPublicRowsRefused(t *testing.T) {
	good := trace.Request{User: trace.Ptr(int64(1)), ArrivalNS: 99}
	const negative = "row 1: a token count or its time is negative"
	for _, c := range []struct {
		bad  trace.Request
		want string
	}{
		{trace.Request{InputTokens: -1}, negative},
		{trace.Request{OutputTokens: -1}, negative},
		{trace.Request{ArrivalNS: -1}, negative},
		{trace.Request{ArrivalNS: 100}, "row 1: it arrives after the declared end of the capture"},
		{trace.Request{Blocks: []uint64{1}}, "row 1: it has blocks, but the trace has no block size"},
	} {
		meta := trace.Meta{Capture: trace.RelativeCapture(0, 100)}
		_, _, spent, err := FitPublic(t.Context(), cloned([]trace.Request{good, c.bad}), meta, PublicOptions{Unit: UnitUser})
		if err == nil || err.Error() != c.want || spent {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	for _, unit := range []string{"", "tenant"} {
		if _, err := unitKey(unit); err == nil || err.Error() != "the unit of privacy is user, session or request" {
			t.Errorf("unit %q: %v", unit, err)
		}
	}
}

// Fits tell how far they are every 4,096 rows, and end when they are told to.
func TestFitsTellProgress(t *testing.T) {
	rows := make([]trace.Request, 2*progressRows+1)
	for i := range rows {
		rows[i] = trace.Request{ArrivalNS: int64(i), InputTokens: 5, OutputTokens: 5, User: trace.Ptr(int64(i % 50))}
	}
	want := []int64{0, progressRows, 2 * progressRows}
	for name, fit := range map[string]func(ctx context.Context, progress func(int64)) error{
		"tuples": func(ctx context.Context, progress func(int64)) error {
			_, err := Fit(ctx, cloned(rows), trace.Meta{}, FitOptions{KSwap: 1, Progress: progress})
			return err
		},
		"public": func(ctx context.Context, progress func(int64)) error {
			meta := trace.Meta{Capture: trace.RelativeCapture(0, 1e9)}
			_, _, _, err := FitPublic(ctx, cloned(rows), meta, PublicOptions{Unit: UnitUser, Progress: progress})
			if noisy := (*TooNoisy)(nil); errors.As(err, &noisy) {
				return nil
			}
			return err
		},
	} {
		var told []int64
		if err := fit(t.Context(), func(n int64) { told = append(told, n) }); err != nil || !reflect.DeepEqual(told, want) {
			t.Errorf("%s: told %d, %v; want %d", name, told, err, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		told = nil
		err := fit(ctx, func(n int64) {
			told = append(told, n)
			cancel()
		})
		if !errors.Is(err, context.Canceled) || len(told) != 1 {
			t.Errorf("%s: ended after %d with %v", name, told, err)
		}
	}
}
