package synth

import (
	"cmp"
	"errors"
	"math"
	"reflect"
	"strconv"
	"testing"
	"time"

	"reprise/trace"
)

// What a model keeps of each row of a small trace: two cache domains, one session of
// four turns, one request without, one that failed and one that was cancelled.
func TestPlacesOfASmallTrace(t *testing.T) {
	id, n := trace.Ptr[int64], trace.Ptr[int32]
	nan := float32(math.NaN())
	rows := []trace.Request{
		{ArrivalNS: 1000, User: id(70), Session: id(9), InputTokens: 40, OutputTokens: trace.Ptr[int32](3), Blocks: []uint64{5, 6, 7}, Kind: "chat",
			Class: trace.Ptr("c"), Stream: trace.Ptr(false), Temperature: trace.Ptr(float32(0)), Status: "ok", FinishReason: "stop", E2ENS: id(77),
			ReasoningTokens: n(2), ImageTokens: n(4), Images: n(1), MaxTokens: n(100), ThinkNS: id(1)},
		{ArrivalNS: 1100, Status: trace.StatusFailed, InputTokens: -9},
		{ArrivalNS: 1200, User: id(30), Session: id(4), InputTokens: 32, OutputTokens: trace.Ptr[int32](1), Blocks: []uint64{5, 8}, Stream: trace.Ptr(true), Temperature: &nan, Status: "ok"},
		{ArrivalNS: 1400, User: id(70), Session: id(9), InputTokens: 64, OutputTokens: trace.Ptr[int32](4), Blocks: []uint64{5, 6, 10, 11}, Parents: []int64{0}, ThinkNS: id(3), ToolNS: id(4), Status: "ok"},
		{ArrivalNS: 1500, InputTokens: 40, OutputTokens: trace.Ptr[int32](5), Blocks: []uint64{5, 6, 7}, Status: trace.StatusCancelled, E2ENS: id(50)},
		{ArrivalNS: 1600, User: id(70), Session: id(9), InputTokens: 90, Blocks: []uint64{5, 6, 10, 11, 12}, ToolNS: id(6), Status: "ok"},
		{ArrivalNS: 2000, User: id(70), Session: id(9), InputTokens: 64, Blocks: []uint64{5, 8}, Status: "ok"},
		{ArrivalNS: 2100, Status: "ok"},
		{ArrivalNS: 2200, InputTokens: 32, Blocks: []uint64{5, 20}, Status: "ok"},
		{ArrivalNS: 2300, InputTokens: 48, Blocks: []uint64{5, 8, 21}, Status: "ok"},
	}
	for i := range rows {
		if rows[i].Blocks != nil {
			rows[i].Model, rows[i].Adapter = "m", "a"
		}
	}
	meta := trace.Meta{BlockSize: 16, Sessions: sessionsOfSource, Tier: "internal", Seed: "4", Breakers: "[]", Digest: "sha256:00", Capture: trace.RelativeCapture(0, time.Second)}
	m := fitted(t, rows, meta, 1, 0)
	// All with blocks begin with block 5, the global prefix and the trunk.
	want := []modelRow{
		{Table: tableTemplates, Shared: true},
		{User: id(0), Kind: "chat", Class: trace.Ptr("c"), Stream: trace.Ptr(false), Temperature: trace.Ptr(float32(0)), Builds: "opens", Template: id(0), Trunk: 1,
			Join: int32(begins), ThinkNS: id(1), Fresh: 2, Tail: 8, OutputTokens: trace.Ptr[int32](3), ReasoningTokens: n(2), ImageTokens: n(4), Images: n(1), MaxTokens: n(100),
			Status: "ok", FinishReason: "stop"},
		{User: id(1), Stream: trace.Ptr(true), Builds: "opens", Template: id(0), Trunk: 1, Join: int32(begins), Fresh: 1, Tail: 16, OutputTokens: trace.Ptr[int32](1), Status: "ok"},
		{User: id(0), Builds: "continues", Parent: id(0), Hit: 2, ParentHit: 1, ParentFull: 2, ParentBlocks: 3, Growth: 24, Join: int32(byParent),
			Waits: true, ThinkNS: id(3), ToolNS: id(4), OutputTokens: trace.Ptr[int32](4), Status: "ok"},
		{Builds: "repeats", Parent: id(0), Hit: 3, ParentHit: 1, ParentFull: 2, ParentBlocks: 3, OutputTokens: trace.Ptr[int32](5), Status: trace.StatusCancelled, CancelledNS: id(50)},
		{User: id(0), Builds: "continues", Parent: id(2), Hit: 4, ParentHit: 2, ParentFull: 4, ParentBlocks: 4, Growth: 26, Join: int32(byParent), ToolNS: id(6), Status: "ok"},
		// The prompt is another session's, and the session goes on with the row before.
		{User: id(0), Builds: "continues", Parent: id(1), Hit: 2, ParentHit: 1, ParentFull: 2, ParentBlocks: 2, Growth: 32, Join: int32(byPlace), After: id(4), Status: "ok"},
		{Builds: "opens", Status: "ok"},
		{Builds: "opens", Template: id(0), Trunk: 1, Fresh: 1, Tail: 16, Status: "ok"},
		{Builds: "branches", Parent: id(5), Hit: 2, ParentHit: 2, ParentFull: 4, ParentBlocks: 4, Fresh: 1, Tail: 16, Status: "ok"},
	}
	got, gaps := rowsOf(t, m), []int64{0, 200, 200, 100, 100, 400, 100, 100, 100}
	for i := range want {
		if want[i].Table = cmp.Or(want[i].Table, tablePlaces); want[i].Table == tablePlaces {
			want[i].GapNS, gaps = id(gaps[0]), gaps[1:]
		}
		if want[i].Fresh+want[i].Hit > 0 {
			want[i].Model, want[i].Adapter = "m", "a"
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("row %d is\n%+v, want\n%+v", i, show(got[i]), show(want[i]))
		}
	}
	if len(m.places) != len(want)-1 || m.Requests() != len(want)-1 || m.span != 1300+1300/8+1 || m.KSwap() != 1 {
		t.Errorf("%d places in %d ns", len(m.places), m.span)
	}
	if want := (trace.Meta{BlockSize: 16, Sessions: sessionsOfSource, Tier: "internal", Digest: m.digest()}); m.Meta() != want {
		t.Errorf("the metadata are %+v, want %+v", m.Meta(), want)
	}
	// Sessions that were inferred are kept as those that the source named.
	meta.Sessions = sessionsInferred
	m = fitted(t, rows, meta, 1, 0)
	for i, r := range rowsOf(t, m)[:len(want)] {
		if !reflect.DeepEqual(r, want[i]) {
			t.Errorf("with inferred sessions row %d is\n%+v, want\n%+v", i, show(r), show(want[i]))
		}
	}
}

// show is a row without its pointers.
func show(r modelRow) any {
	b := r.canonical(nil)
	r.User, r.Class, r.Stream, r.Temperature, r.ThinkNS, r.ToolNS, r.Parent, r.After = nil, nil, nil, nil, nil, nil, nil, nil
	r.ReasoningTokens, r.ImageTokens, r.Images, r.MaxTokens, r.CancelledNS = nil, nil, nil, nil, nil
	return []any{r, b}
}

// What cannot be fitted is said in full, with the row.
func TestFitSaysWhatIsWrong(t *testing.T) {
	good := trace.Request{InputTokens: 40, Blocks: []uint64{0, 1}}
	const chain = "row 1: its blocks are not chained: one block follows two different prefixes, so there is no prefix tree to fit. Use synth --mirror, which keeps blocks as they are"
	const times = "the trace's times are not between 0 and 2^62 nanoseconds"
	for _, c := range []struct {
		size int
		bad  trace.Request
		want string
	}{
		{16, trace.Request{InputTokens: -1}, "row 1: a token count is negative"},
		{16, trace.Request{OutputTokens: trace.Ptr[int32](-1)}, "row 1: a token count is negative"},
		{16, trace.Request{InputTokens: 32, Blocks: []uint64{2, 3, 4}}, "row 1: 3 blocks are too many for its 32 tokens"},
		{16, trace.Request{InputTokens: 32, Blocks: []uint64{2, 3}}, ""},
		{1, trace.Request{InputTokens: maxBlocks + 1}, "row 1: its prompt has more than 16777216 blocks"},
		{0, trace.Request{InputTokens: 32}, "row 0: it has blocks, but the trace has no block size"},
		{16, trace.Request{InputTokens: 32, Blocks: []uint64{2, 1}}, chain},
		{16, trace.Request{InputTokens: 32, Blocks: []uint64{1}}, chain},
		{16, trace.Request{InputTokens: 32, Blocks: []uint64{2, 2}}, chain},
		{16, trace.Request{InputTokens: 64, Blocks: []uint64{0, 2, 1}}, chain},
		{16, trace.Request{InputTokens: 64, Blocks: []uint64{0, 0}}, chain},
		{16, trace.Request{InputTokens: 64, Blocks: []uint64{0, 1, 2, 3}}, ""},
		{16, trace.Request{ArrivalNS: -1}, times},
		{16, trace.Request{ArrivalNS: 1 << 62}, times},
		{16, trace.Request{ArrivalNS: 1<<62 - 1}, "arrivals: cascade: want at least 2 arrivals in ascending order within a span from 1 µs to 9 years"},
		{16, trace.Request{Status: trace.StatusFailed}, "fewer than two requests of the trace succeeded: there is no traffic to fit"},
	} {
		got := ""
		if _, err := Fit(t.Context(), cloned([]trace.Request{good, c.bad}), trace.Meta{BlockSize: c.size}, FitOptions{KSwap: 1}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.bad, got, c.want)
		}
	}
	if _, err := Fit(t.Context(), cloned([]trace.Request{{ArrivalNS: -5}, {ArrivalNS: -1}}), trace.Meta{}, FitOptions{KSwap: 1}); err == nil || err.Error() != times {
		t.Errorf("before 0: %v", err)
	}
	if _, err := Fit(t.Context(), cloned(nil), trace.Meta{}, FitOptions{KSwap: -1}); err == nil || err.Error() != "k_swap cannot be negative" {
		t.Errorf("a negative k: %v", err)
	}
	if _, err := (&extractor{size: 1}).shape(&trace.Request{InputTokens: maxBlocks}); err != nil {
		t.Errorf("as many blocks as there may be: %v", err)
	}
	// Too few to swap.
	few := make([]trace.Request, 49)
	for i := range few {
		few[i] = trace.Request{ArrivalNS: int64(i), InputTokens: 5}
	}
	const short = "the trace is too short: 49 requests succeeded, and swapping among 10 similar ones needs 50 or " +
		"more. Use synth --mirror, or --k-swap 1, which keep the rows as they are"
	if _, err := Fit(t.Context(), cloned(few), trace.Meta{}, FitOptions{}); !errors.Is(err, errTooFew) || err.Error() != short {
		t.Errorf("49 requests: %v", err)
	}
	if _, err := Fit(t.Context(), cloned(append(few, trace.Request{ArrivalNS: 49})), trace.Meta{}, FitOptions{}); err != nil {
		t.Errorf("50 requests: %v", err)
	}
	// One class too many.
	rows := make([]trace.Request, math.MaxUint16+1)
	for i := range rows {
		rows[i] = trace.Request{ArrivalNS: int64(i), InputTokens: 1, Kind: strconv.Itoa(i)}
	}
	if _, err := Fit(t.Context(), cloned(rows), trace.Meta{}, FitOptions{KSwap: 1}); err != errTooManyLabels {
		t.Errorf("%d kinds of requests: %v", len(rows), err)
	}
}
