package release_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

const window = time.Hour

// A traffic makes sessions whose turns extend, branch and repeat.
type traffic struct {
	r    *rand.Rand
	next uint64
	rows []trace.Request
	size int
}

// session adds a session of so many turns.
func (k *traffic) session(id, user int64, turns int) {
	at, input := k.r.Int64N(int64(window)), int32(1+k.r.IntN(40*k.size))
	first := []uint64{uint64(k.r.IntN(4))} // a trunk, or one of its own
	if first[0] == 3 {
		first[0] = 1e6 + k.next
		k.next++
	}
	var blocks []uint64
	for range turns {
		n := (int(input) + k.size - 1) / k.size
		keep := min(len(blocks), n, k.r.IntN(len(blocks)+2))
		blocks = slices.Clone(blocks[:keep])
		if len(blocks) == 0 {
			blocks = slices.Clone(first)
		}
		for len(blocks) < n {
			blocks = append(blocks, 1e6+k.next)
			k.next++
		}
		output := int32(1 + k.r.IntN(900))
		k.rows = append(k.rows, trace.Request{ArrivalNS: at, Session: &id, User: &user, InputTokens: input, OutputTokens: trace.Ptr(output), Blocks: blocks, MaxTokens: trace.Ptr(int32(len(k.rows)))})
		at = min(int64(window)-1, at+k.r.Int64N(int64(2*time.Minute)))
		switch k.r.IntN(3) {
		case 0:
			input += output + int32(k.r.IntN(500))
		case 1:
			input = max(1, input/2+int32(k.r.IntN(int(input)+1)))
		}
	}
}

// rowsOf are some sessions of users, in order of arrival.
func rowsOf(seed uint64, sessions int) []trace.Request {
	k := newTraffic(seed)
	for i := range sessions {
		k.session(int64(i), int64(i)/3, 1+k.r.IntN(3)*k.r.IntN(14))
	}
	return k.inOrder()
}

func newTraffic(seed uint64) *traffic {
	return &traffic{r: rand.New(rand.NewPCG(seed, 1)), size: 64}
}

func (k *traffic) inOrder() []trace.Request {
	slices.SortStableFunc(k.rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
	return k.rows
}

func windowed(sessions string) trace.Meta {
	return trace.Meta{BlockSize: 64, Tier: "internal", Sessions: sessions, Capture: trace.RelativeCapture(0, window)}
}

// longPrompts are one session whose later turns have more tokens together than count.
func longPrompts() (rows []trace.Request) {
	for i := range int32(10) {
		rows = append(rows, trace.Request{ArrivalNS: int64(window) - 20 + int64(i), Session: trace.Ptr(int64(1e6)), User: trace.Ptr(int64(1e6)),
			InputTokens: 120_000 + i, OutputTokens: trace.Ptr[int32](10), MaxTokens: trace.Ptr(1e6 + i)})
	}
	return rows
}

// TestOneUnitMoves holds everything before the noise to its bound: with one unit more,
// each table changes by a weight of one unit at most, and only upwards; the layout does not
// change at all.
func TestOneUnitMoves(t *testing.T) {
	for _, c := range []struct {
		unit, sessions string
		key            func(r *trace.Request) int64
	}{
		{synth.UnitUser, "source", func(r *trace.Request) int64 { return *r.User }},
		{synth.UnitSession, "source", func(r *trace.Request) int64 { return *r.Session }},
		{synth.UnitSession, "inferred", func(r *trace.Request) int64 {
			if len(r.Blocks) < 2 {
				return -1 - r.ArrivalNS
			}
			return int64(r.Blocks[1])
		}},
		{synth.UnitRequest, "source", func(r *trace.Request) int64 { return int64(*r.MaxTokens) }},
	} {
		rows, meta, o := append(rowsOf(7, 40), longPrompts()...), windowed(c.sessions), release.Options{Unit: c.unit}
		with := release.Counted(t, rows, meta, o, nil)
		units := map[int64]bool{}
		for i := range rows {
			units[c.key(&rows[i])] = true
		}
		moved := map[string]int64{}
		for unit := range units {
			rest := slices.DeleteFunc(slices.Clone(rows), func(r trace.Request) bool { return c.key(&r) == unit })
			without := release.Counted(t, rest, meta, o, with)
			if !reflect.DeepEqual(with.Layout(), without.Layout()) {
				t.Fatalf("%s, %s: a unit changes the layout", c.unit, c.sessions)
			}
			less := without.Tables()
			for name, cells := range with.Tables() {
				var change int64
				for i, x := range cells {
					if x < less[name][i] {
						t.Errorf("%s, %s: %s: a unit takes weight from another", c.unit, c.sessions, name)
					}
					change += x - less[name][i]
				}
				if change > release.UnitWeight {
					t.Errorf("%s, %s: %s: a unit moves a weight of %d, above %d", c.unit, c.sessions, name, change, release.UnitWeight)
				}
				moved[name] = max(moved[name], change)
			}
		}
		want := 7 // tables of requests alone
		if c.unit != synth.UnitRequest {
			want = 15
		}
		if n := len(slices.DeleteFunc(slices.Collect(maps.Values(moved)), func(x int64) bool { return x < release.UnitWeight-1 })); n < want {
			t.Errorf("%s, %s: only %d tables were moved by a whole unit: %v", c.unit, c.sessions, n, moved)
		}
	}
}

// A user with more sessions than there are parts of the weight still adds one unit.
func TestManySessionsOfOneUser(t *testing.T) {
	var rows []trace.Request
	for i := range int64(1000) {
		rows = append(rows, trace.Request{ArrivalNS: i, Session: trace.Ptr(i), User: trace.Ptr(int64(0)), InputTokens: 5, OutputTokens: trace.Ptr[int32](5), Blocks: []uint64{uint64(i)}})
	}
	for name, cells := range release.Counted(t, rows, windowed("source"), release.Options{Unit: synth.UnitUser}, nil).Tables() {
		var n int64
		for _, x := range cells {
			n += x
		}
		if n > release.UnitWeight || name == "input" && n != release.UnitWeight {
			t.Errorf("%s: a user adds %d", name, n)
		}
	}
}
