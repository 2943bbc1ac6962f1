package synth

import (
	"math"
	"reflect"
	"strconv"
	"testing"
	"time"

	"reprise/trace"
)

// What a model keeps of each row of a small trace: two cache domains, one session of
// four turns, one request without, one that failed and one that was cancelled.
func TestTuplesOfASmallTrace(t *testing.T) {
	id, n := trace.Ptr[int64], trace.Ptr[int32]
	nan := float32(math.NaN())
	rows := []trace.Request{
		{ArrivalNS: 1000, User: id(70), Session: id(9), InputTokens: 40, OutputTokens: 3, Blocks: []uint64{5, 6, 7}, Kind: "chat",
			Class: trace.Ptr("c"), Stream: trace.Ptr(false), Temperature: trace.Ptr(float32(0)), Status: "ok", FinishReason: "stop", E2ENS: id(77),
			ReasoningTokens: n(2), ImageTokens: n(4), Images: n(1), MaxTokens: n(100), ThinkNS: id(1)},
		{ArrivalNS: 1100, Status: trace.StatusFailed, InputTokens: -9},
		{ArrivalNS: 1200, User: id(30), Session: id(4), InputTokens: 32, OutputTokens: 1, Blocks: []uint64{5, 8}, Stream: trace.Ptr(true), Temperature: &nan, Status: "ok"},
		{ArrivalNS: 1400, User: id(70), Session: id(9), InputTokens: 64, OutputTokens: 4, Blocks: []uint64{5, 6, 10, 11}, Parents: []int64{0}, ThinkNS: id(3), ToolNS: id(4), Status: "ok"},
		{ArrivalNS: 1500, InputTokens: 40, OutputTokens: 5, Blocks: []uint64{5, 6, 7}, Status: trace.StatusCancelled, E2ENS: id(50)},
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
	// All with blocks begin with block 5, the global prefix and the trunk. The stack is
	// written behind each row, the most recent first.
	want := []modelRow{
		{User: id(0), Kind: "chat", Class: trace.Ptr("c"), Stream: trace.Ptr(false), Temperature: trace.Ptr(float32(0)), Category: trace.Cold,
			Join: int32(opens), ThinkNS: id(1), Fresh: 3, Tail: 8, OutputTokens: 3, ReasoningTokens: n(2), ImageTokens: n(4), Images: n(1), MaxTokens: n(100),
			Status: "ok", FinishReason: "stop"}, // 5 6 7
		{User: id(1), Stream: trace.Ptr(true), Category: trace.Global, Hit: 1, Distance: 1, Distance25: 1, Distance50: 1, Distance75: 1,
			Join: int32(opens), Fresh: 1, Tail: 16, OutputTokens: 1, Status: "ok"}, // 5 8 6 7
		{User: id(0), Category: trace.Continuation, Hit: 2, Distance: 3, Distance25: 1, Distance50: 1, Distance75: 3, Chain: 1, Join: int32(byTree), Back: 2, Turn: 1,
			Waits: true, ThinkNS: id(3), ToolNS: id(4), Fresh: 2, Tail: 16, OutputTokens: 4, Status: "ok"}, // 5 6 10 11 8 7
		{Category: trace.Duplicate, Hit: 3, Distance: 6, Distance25: 1, Distance50: 2, Distance75: 6, Chain: 0, Tail: 8, OutputTokens: 5,
			Status: trace.StatusCancelled, CancelledNS: id(50)}, // 5 6 7 10 11 8
		{User: id(0), Category: trace.Continuation, Hit: 4, Distance: 5, Distance25: 1, Distance50: 2, Distance75: 4, Chain: 2, Join: int32(byTree), Back: 1, Turn: 2,
			ToolNS: id(6), Fresh: 2, Tail: 10, Status: "ok"}, // 5 6 10 11 12 new 7 8
		{User: id(0), Category: trace.Continuation, Hit: 2, Distance: 8, Distance25: 1, Distance50: 1, Distance75: 8, Join: int32(byRecency), Back: 1, Turn: 3, Fresh: 2, Tail: 16, Status: "ok"}, // 5 8 new new 6 …
		{Status: "ok"},
		{Category: trace.Global, Hit: 1, Distance: 1, Distance25: 1, Distance50: 1, Distance75: 1, Fresh: 1, Tail: 16, Status: "ok"}, // 5 20 8 …
		{Category: trace.Branch, Hit: 2, Distance: 3, Distance25: 1, Distance50: 1, Distance75: 3, Fresh: 1, Tail: 16, Status: "ok"},
	}
	got := rowsOf(t, m)
	for i := range want {
		want[i].Table = tableTuples
		if want[i].Fresh+want[i].Hit > 0 {
			want[i].Model, want[i].Adapter, want[i].Trunk = "m", "a", 1
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("row %d is\n%+v, want\n%+v", i, show(got[i]), show(want[i]))
		}
	}
	if len(m.tuples) != len(want) || m.Requests() != len(want) || m.span != 1300+1300/8+1 || m.KSwap() != 1 {
		t.Errorf("%d tuples in %d ns", len(m.tuples), m.span)
	}
	if want := (trace.Meta{BlockSize: 16, Sessions: sessionsOfSource, Tier: "internal", Digest: m.digest()}); m.Meta() != want {
		t.Errorf("the metadata are %+v, want %+v", m.Meta(), want)
	}
	// Sessions that were inferred are not the source's: the tuples lose them.
	meta.Sessions = sessionsInferred
	m = fitted(t, rows, meta, 1, 0)
	chains := []int32{0, 0, 1, 1, 2, 1, 0, 0, 2}
	for i, r := range rowsOf(t, m)[:len(want)] {
		w := want[i]
		w.Join, w.Back, w.Turn, w.Waits, w.ThinkNS, w.ToolNS, w.Chain = 0, 0, 0, false, nil, nil, chains[i]
		if !reflect.DeepEqual(r, w) {
			t.Errorf("with inferred sessions row %d is\n%+v, want\n%+v", i, show(r), show(w))
		}
	}
}

// show is a row without its pointers.
func show(r modelRow) any {
	b := r.canonical(nil)
	r.User, r.Class, r.Stream, r.Temperature, r.ThinkNS, r.ToolNS = nil, nil, nil, nil, nil, nil
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
		{16, trace.Request{OutputTokens: -1}, "row 1: a token count is negative"},
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
	if _, err := Fit(t.Context(), cloned([]trace.Request{{ArrivalNS: -5}, {ArrivalNS: -1}}), trace.Meta{}, FitOptions{}); err == nil || err.Error() != times {
		t.Errorf("before 0: %v", err)
	}
	if _, err := Fit(t.Context(), cloned(nil), trace.Meta{}, FitOptions{KSwap: -1}); err == nil || err.Error() != "k_swap cannot be negative" {
		t.Errorf("a negative k: %v", err)
	}
	if _, err := (&extractor{size: 1}).lengths(&trace.Request{InputTokens: maxBlocks}); err != nil {
		t.Errorf("as many blocks as there may be: %v", err)
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

// Users with 1,000 requests or more have arrivals of their own, the 64 busiest at
// most, the busiest first.
func TestBusiestUsersAreClients(t *testing.T) {
	var m Model
	add := func(user int64, n int) {
		for range n {
			m.tuples = append(m.tuples, tuple{user: user})
		}
	}
	add(none, 3000)
	add(2, 1000)
	add(0, 999)
	add(4, 1001)
	add(3, 1000)
	if got := m.ownClients(); !reflect.DeepEqual(got, []int64{4, 2, 3}) {
		t.Errorf("the clients are %v", got)
	}
	m.tuples = nil
	for u := range int64(70) {
		add(u, 1000+int(u%2))
	}
	got := m.ownClients()
	if len(got) != 64 || got[0] != 1 || got[34] != 69 || got[35] != 0 || got[63] != 56 {
		t.Errorf("of 70 users %d are clients: %v", len(got), got)
	}
}

// Requests of no user of their own are one client, but for a single one, which joins
// the least busy.
func TestArrivalsByClient(t *testing.T) {
	rows := func(others int) (out []trace.Request) {
		for i := range 2211 {
			r := trace.Request{ArrivalNS: int64(i) * 1e6, InputTokens: 5, User: trace.Ptr(int64(0))}
			if i%11 >= 6 {
				r.User = trace.Ptr(int64(1))
			}
			if i%700 == 699 && i/700 < others {
				r.User = nil
			}
			out = append(out, r)
		}
		return out
	}
	for others, want := range map[int][]struct{ user, n int64 }{
		0: {{0, 1206}, {1, 1005}},
		1: {{0, 1206}, {none, 1005}},
		2: {{0, 1205}, {1, 1004}, {none, 2}},
	} {
		m := fitted(t, rows(others), trace.Meta{}, 1, 0)
		var got []struct{ user, n int64 }
		for i, q := range m.tupleQueues() {
			got = append(got, struct{ user, n int64 }{m.clients[i].user, int64(len(q.tuples))})
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d others: clients %v, want %v", others, got, want)
		}
	}
}
