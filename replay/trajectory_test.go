package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/trace"
)

// A forked session: an agent calls two others, of which one calls a third, joins them, and
// goes on; its prompt is shortened once.
func forked() []trace.Request {
	rows := workload(0, 10*time.Second, 12*time.Second, 20*time.Second, 30*time.Second, 40*time.Second, 60*time.Second, 80*time.Second)
	for i, r := range []struct {
		parents []int64
		blocks  []uint64
		input   int32
	}{
		{nil, []uint64{1, 2}, 32},
		{[]int64{0}, []uint64{1, 10, 11}, 40},
		{[]int64{0}, []uint64{1, 20}, 32},
		{[]int64{1}, []uint64{1, 30}, 32},               // called by row 1
		{[]int64{1, 3}, []uint64{1, 10, 12, 13}, 64},    // goes on with row 1, whose last block was partial
		{[]int64{2, 4}, []uint64{1, 2, 3}, 48},          // joins: goes on with row 0
		{[]int64{5}, []uint64{7, 8}, 20},                // shortened
		{[]int64{6}, []uint64{7, 9, 10000, 10001}, 100}, // goes on with it
	} {
		rows[i].Parents, rows[i].Blocks, rows[i].InputTokens = r.parents, r.blocks, r.input
		rows[i].ThinkNS, rows[i].Session = trace.Ptr(int64(time.Second)), trace.Ptr(int64(3))
	}
	return rows
}

func TestThreadsOfATree(t *testing.T) {
	rows := forked()
	o := Options{Sessions: &SessionLoad{Live: 1, Trees: treesOf(t, rows, 16)}}
	tree, err := o.loadTree(0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range tree.rows {
		got = append(got, fmt.Sprint(tree.rows[i].thread, ".", tree.rows[i].turn))
	}
	if want := "0.0 1.0 2.0 3.0 1.1 0.1 0.2 0.3"; strings.Join(got, " ") != want {
		t.Errorf("threads and turns %v, want %s", got, want)
	}
	// Without blocks the lengths tell: sub-agents are shorter than prompt and reply of who
	// calls them.
	for i, n := range []int32{100, 50, 60, 20, 70, 200, 30, 40} {
		rows[i].InputTokens, rows[i].Blocks = n, nil
	}
	o.Sessions.Trees = treesOf(t, rows, 0)
	if tree, err = o.loadTree(0); err != nil {
		t.Fatal(err)
	}
	got = nil
	for i := range tree.rows {
		got = append(got, fmt.Sprint(tree.rows[i].thread, ".", tree.rows[i].turn))
	}
	if want := "0.0 1.0 2.0 3.0 1.1 0.1 0.2 0.3"; strings.Join(got, " ") != want {
		t.Errorf("by lengths: threads and turns %v, want %s", got, want)
	}
}

// The first session of each place begins inside: what is before is not sent, what follows
// is due as long after the start as it was recorded after the instant, and later plays
// begin at their first turn.
func TestTrajectoryStart(t *testing.T) {
	var rows []trace.Request
	for s := range 4 {
		for _, r := range forked() {
			r.Session = trace.Ptr(int64(s))
			for i := range r.Parents {
				r.Parents[i] += int64(8 * s)
			}
			r.ArrivalNS += int64(s) * int64(time.Hour)
			rows = append(rows, r)
		}
	}
	start := &TrajectoryStart{From: 0.25, To: 0.75, Seed: 7}
	instant := func(place int) time.Duration {
		sum := sha256.Sum256([]byte(fmt.Sprintf("7:%d:%d", place, place)))
		u := float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
		return time.Duration((0.25 + u*0.5) * float64(80*time.Second))
	}
	o := Options{Sessions: &SessionLoad{Live: 3, Trees: treesOf(t, rows, 16), Start: start, GapCap: 9 * time.Second}, Speed: 2, Duration: 10 * time.Minute}
	warm, took, about, err := o.WarmRequests()
	if err != nil {
		t.Fatal(err)
	}
	at := []time.Duration{0, 10, 12, 20, 30, 40, 60, 80} // of the rows, in seconds
	threads := []int{0, 1, 2, 3, 1, 0, 0, 0}
	var want []string
	var most time.Duration
	history := map[int]int{}
	for s := range 3 {
		last := map[int]int{}
		for i := range at {
			switch before, ok := last[threads[i]]; {
			case at[i]*time.Second < instant(s):
				last[threads[i]] = i
				history[s]++
			case ok:
				delete(last, threads[i])
				lead := min((instant(s)-at[before]*time.Second)/2, 9*time.Second)
				want = append(want, fmt.Sprint(s, before, -lead.Round(time.Microsecond)))
				most = max(most, lead)
			}
		}
	}
	var got []string
	for i, w := range warm {
		got = append(got, fmt.Sprint(*w.Row.Session, slices.IndexFunc(rows, func(r trace.Request) bool { return slices.Equal(r.Blocks, w.Row.Blocks) }), (w.At-most).Round(time.Microsecond)))
		if i > 0 && w.At < warm[i-1].At || *w.Row.OutputTokens != 1 {
			t.Errorf("%+v", w)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(want) < 3 || about.Streams != int64(len(want)) || about.History != int64(history[0]+history[1]+history[2]) || warm[0].At != 0 || took != most {
		t.Errorf("the warm-up sends %v (%+v), want %v", got, about, want)
	}
	synctest.Test(t, func(t *testing.T) {
		f := &fake{hold: func(int32) time.Duration { return time.Second }}
		run, results := f.play(t, t.Context(), o, rows)
		if run.Sessions.Start != "0.25..0.75" || run.Sessions.StartSeed != "7" {
			t.Errorf("%+v", run.Sessions)
		}
		first := map[int64]bool{}
		for _, r := range results {
			s, i := int(r.RowID/8), int(r.RowID%8)
			if *r.Play > 0 || s >= 3 {
				continue
			}
			if at[i]*time.Second < instant(s) {
				t.Errorf("session %d, row %d is history and was sent", s, i)
			}
			first[r.RowID] = true
			inside := !slices.ContainsFunc(rows[r.RowID].Parents, func(p int64) bool { return at[p%8]*time.Second >= instant(s) })
			if !inside {
				continue
			}
			// The wait that is left, as the think time of one second is to the recorded gap: there
			// are no ends, so that the think time is all that is known of it.
			want := min((at[i]*time.Second-instant(s))/2, 9*time.Second)
			if due := time.Duration(r.DueNS); (due - want).Abs() > time.Microsecond {
				t.Errorf("session %d, row %d is due at %v, want %v", s, i, due, want)
			}
		}
		if n := 24 - history[0] - history[1] - history[2]; len(first) != n {
			t.Errorf("%d rows of the first plays were sent, want %d", len(first), n)
		}
		whole := map[int]int{} // plays from the first turn
		for _, r := range results {
			if s := int(r.RowID / 8); *r.Play == 1 {
				whole[s]++
			}
		}
		if whole[0] != 8 || whole[1] != 8 {
			t.Errorf("a session that is played again has %v requests", whole)
		}
	})
	for _, bad := range []string{"", "x", "0.5..0.2", "-1..1", "0..2", "0.2..nan"} {
		if _, err := ParseTrajectoryStart(bad); err == nil {
			t.Errorf("%q is a start", bad)
		}
	}
}
