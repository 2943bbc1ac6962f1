package replay

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// loopRows are three rows, of which the last follows the first.
func loopRows() []trace.Request {
	rows := workload(10*time.Second, 11*time.Second, 13*time.Second)
	for i := range rows {
		rows[i].Blocks = []uint64{uint64(i), 7}
		rows[i].OutputBlocks = []uint64{8}
	}
	rows[2].Parents, rows[2].ThinkNS = []int64{0}, trace.Ptr(int64(2e9))
	return rows
}

func loopOf(rounds int64, blocks uint64) *Loop {
	open := func() (trace.Reader[trace.Request], error) { return reader(loopRows()), nil }
	return &Loop{Open: open, Rows: 3, PeriodNS: Period(10e9, 13e9, 3), Rounds: rounds, Blocks: blocks}
}

func TestLoopReadsRounds(t *testing.T) {
	for _, blocks := range []uint64{0, 9} {
		var out trace.SliceWriter[trace.Request]
		if n, err := trace.Copy(&out, loopOf(3, blocks)); n != 9 || err != nil {
			t.Fatal(n, err)
		}
		base := loopRows()
		for i, r := range out.Rows {
			round, b := int64(i/3), base[i%3]
			shift := uint64(round) * blocks
			if r.ArrivalNS != b.ArrivalNS+round*4.5e9 || !slices.Equal(r.Blocks, []uint64{uint64(i%3) + shift, 7 + shift}) || r.OutputBlocks[0] != 8+shift {
				t.Errorf("row %d: %+v", i, r)
			}
			if i%3 == 2 && !slices.Equal(r.Parents, []int64{3 * round}) {
				t.Errorf("row %d: parents %v", i, r.Parents)
			}
		}
	}
	if p := Period(5, 5, 100); p != 1e9 {
		t.Errorf("a period of %d where all arrive at once", p)
	}
}

// A loop refuses what it cannot play, and passes errors on.
func TestLoopErrors(t *testing.T) {
	bad := errors.New("broken")
	short := loopOf(2, 0)
	short.Rows = 4
	long := loopOf(2, 0)
	long.Rows = 2
	broken := loopOf(2, 0)
	broken.Open = func() (trace.Reader[trace.Request], error) { return nil, bad }
	still := loopOf(2, 0)
	still.PeriodNS = 0
	for i, c := range []struct {
		loop *Loop
		want error
	}{{short, errLoopRows}, {long, errLoopRows}, {broken, bad}, {still, errLoop}} {
		if _, err := trace.Copy(&trace.SliceWriter[trace.Request]{}, c.loop); !errors.Is(err, c.want) {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
	}
}

// A run of a loop names each result by round and row, in that order in the file,
// and a turn waits for the parent of its own round.
func TestLoopRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	synctest.Test(t, func(t *testing.T) {
		l := lineageOf(t, loopRows())
		l.Repeat()
		f := &fake{hold: func(int32) time.Duration { return 3 * time.Second }} // so that rounds overlap
		row := func(i int64) int64 { return i + 100 }
		r := &Runner{Endpoint: f, Pacer: sleeper, Options: Options{Causal: l, Origin: Origin(3, row)}}
		run, err := r.Record(t.Context(), loopOf(3, 0), path)
		if err != nil || run.Requests != 9 {
			t.Fatal(run, err)
		}
	})
	// Outside the bubble: decoders of Parquet are pooled, and would belong to it.
	file, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out trace.SliceWriter[result.Result]
	if _, err := trace.Copy(&out, file.Reader()); err != nil {
		t.Fatal(err)
	}
	for i, r := range out.Rows {
		round := int64(i / 3)
		due := []int64{10e9, 11e9, 15e9}[i%3] + round*4.5e9
		if r.RowID != 100+int64(i%3) || r.Round != int32(round) || r.DueNS != due {
			t.Errorf("result %d: row %d of round %d, due %d, want %d", i, r.RowID, r.Round, r.DueNS, due)
		}
	}
}

// In later rounds too, a turn whose parent was answered fast is read and sent
// before its recorded time.
func TestLoopReadsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lineageOf(t, loopRows())
		l.Repeat()
		f := &fake{hold: func(int32) time.Duration { return 100 * time.Millisecond }}
		var out trace.SliceWriter[result.Result]
		r := &Runner{Endpoint: f, Pacer: sleeper, Options: Options{Causal: l, Ahead: time.Millisecond, Origin: Origin(3, func(i int64) int64 { return i })}}
		if _, err := r.Run(t.Context(), loopOf(3, 0), &out); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Rows {
			if want := 12.1e9 + int64(r.Round)*4.5e9; r.RowID == 2 && (r.DueNS != want || *r.ReleasedNS != want) {
				t.Errorf("round %d: due %d, released %d, want %d", r.Round, r.DueNS, *r.ReleasedNS, want)
			}
		}
	})
}

// A loop without an end is over with its duration, in every kind of schedule.
func TestEndlessLoop(t *testing.T) {
	for _, o := range []Options{{}, {Speed: 2}, {Concurrency: 2}, {Causal: &Lineage{}}} {
		synctest.Test(t, func(t *testing.T) {
			if o.Causal != nil {
				o.Causal = lineageOf(t, loopRows())
				o.Causal.Repeat()
			}
			o.Duration, o.Endless, o.Origin = 60*time.Second, true, Origin(3, func(i int64) int64 { return i })
			f := &fake{hold: func(int32) time.Duration { return time.Second }}
			var out trace.SliceWriter[result.Result]
			run, err := (&Runner{Endpoint: f, Pacer: sleeper, Options: o}).Run(t.Context(), loopOf(0, 0), &out)
			if err != nil || run.EndedEarly != "" || run.Requests != int64(len(out.Rows)) || run.Requests < 30 {
				t.Fatal(run, err)
			}
			seen := map[[2]int64]bool{}
			for _, r := range out.Rows {
				k := [2]int64{int64(r.Round), r.RowID}
				if seen[k] || r.DueNS >= 60e9 {
					t.Errorf("row %d of round %d, due %d", r.RowID, r.Round, r.DueNS)
				}
				seen[k] = true
			}
		})
	}
	if _, err := (Options{Endless: true}).withDefaults(); err == nil {
		t.Error("no end and no duration")
	}
}

// Warm-up and cool-down of a loop are told apart by rounds, since rows come again.
func TestPlaceOfRounds(t *testing.T) {
	w := result.Window{From: &result.Place{DueNS: 5, Row: 2, Round: 1}, To: &result.Place{DueNS: 9, Row: 2, Round: 1}}
	for _, c := range []struct {
		r             result.Result
		before, after bool
	}{
		{result.Result{DueNS: 5, RowID: 9, Round: 0}, true, false}, {result.Result{DueNS: 5, RowID: 1, Round: 1}, true, false},
		{result.Result{DueNS: 5, RowID: 2, Round: 1}, false, false}, {result.Result{DueNS: 5, RowID: 0, Round: 2}, false, false},
		{result.Result{DueNS: 9, RowID: 1, Round: 1}, false, false}, {result.Result{DueNS: 9, RowID: 0, Round: 2}, false, true},
	} {
		if b, a := w.Holds(&c.r); b != c.before || a != c.after {
			t.Errorf("%+v: before %v, after %v", c.r, b, a)
		}
	}
}
