package replay

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/trace"
)

const millis = int64(time.Millisecond)

// stallsAt makes stalls of pairs of milliseconds.
func stallsAt(pairs ...int64) *Stalls {
	s := &Stalls{AboveNS: int64(lateBeat)}
	for i := 0; i < len(pairs); i += 2 {
		s.add(Stall{pairs[i] * millis, pairs[i+1] * millis})
	}
	return s
}

// A beat that comes more than 5 ms late is a stall, from when it should have come.
func TestHeartbeatNoticesLateBeats(t *testing.T) {
	for _, c := range []struct {
		name  string
		beats []float64 // ms from the start
		want  *Stalls
	}{
		{"none", nil, stallsAt()},
		{"on time", []float64{1, 2, 3.1, 4}, stallsAt()},
		{"a little late", []float64{1, 7, 8, 14}, stallsAt()},
		{"late", []float64{1, 8, 9}, stallsAt(2, 8)},
		{"stopped, twice", []float64{1, 2, 602, 603, 604, 1000, 1001}, stallsAt(3, 602, 605, 1000)},
		{"from the first on", []float64{50}, stallsAt(1, 50)},
		{"one after another", []float64{10, 20}, stallsAt(1, 10, 11, 20)},
	} {
		var h heartbeat
		h.watch(time.Now(), 0)
		for _, at := range c.beats {
			h.beat(time.Duration(at * 1e6))
		}
		if !reflect.DeepEqual(h.all, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, h.all, c.want)
		}
	}
}

// Who takes the stalls before the heartbeat itself wakes is told of the one that goes
// on; together with the rest, which comes later, it is one.
func TestHeartbeatTellsOfAStallThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h heartbeat
		if h.take() != nil {
			t.Error("stalls of a run that nobody watches")
		}
		h.watch(time.Now(), 0)
		h.beat(10 * time.Millisecond)
		time.Sleep(600 * time.Millisecond)
		first := h.take()
		h.beat(700 * time.Millisecond)
		second, third := h.take(), h.take()
		if want := stallsAt(1, 10, 11, 600); !reflect.DeepEqual(first, want) {
			t.Errorf("%+v, want %+v", first, want)
		}
		whole := stallsAt()
		for _, s := range []*Stalls{first, second, third} {
			whole.join(s)
		}
		if want := stallsAt(1, 10, 11, 700); !reflect.DeepEqual(whole, want) || !reflect.DeepEqual(h.all, want) {
			t.Errorf("%+v, %+v, want %+v", whole, h.all, want)
		}
	})
}

// Time that passes only while all sleep wakes nobody late.
func TestHeartbeatInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h heartbeat
		h.begin(time.Now())
		time.Sleep(5 * time.Second)
		if got := h.end(); !reflect.DeepEqual(got, stallsAt()) {
			t.Errorf("%+v", got)
		}
		if got := (&heartbeat{}).end(); got != nil {
			t.Errorf("%+v of a watch that never began", got)
		}
	})
}

// Many stalls are counted exactly and take bounded memory: their intervals still
// cover all of them, and little else.
func TestStallsAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, even := range []bool{false, true} {
		var s Stalls
		var all []Stall
		at, total, longest := int64(0), int64(0), int64(0)
		for range 5 * mostStalls {
			apart, long := 1+rng.Int64N(1e9), 6e6+rng.Int64N(1e8)
			if even {
				apart, long = 1e6, 6e6
			}
			x := Stall{at + apart, at + apart + long}
			at, total, longest = x.ToNS, total+long, max(longest, long)
			all = append(all, x)
			s.add(x)
			if len(s.Intervals) > mostStalls || s.Intervals[len(s.Intervals)-1] != x {
				t.Fatalf("%d intervals, the last %v of %v", len(s.Intervals), s.Intervals[len(s.Intervals)-1], x)
			}
		}
		if s.Count != int64(len(all)) || s.TotalNS != total || s.LongestNS != longest || !s.sound() || len(s.Intervals) < mostStalls/2 {
			t.Errorf("%d stalls, %d ns, longest %d, in %d intervals", s.Count, s.TotalNS, s.LongestNS, len(s.Intervals))
		}
		for _, x := range all {
			if !slices.ContainsFunc(s.Intervals, func(in Stall) bool { return in.FromNS <= x.FromNS && x.ToNS <= in.ToNS }) {
				t.Fatalf("no interval covers %v", x)
			}
		}
		var twice Stalls
		twice.join(&s)
		if !reflect.DeepEqual(twice, s) {
			t.Error("joined to nothing, they are others")
		}
	}
}

// However stalls are cut into parts, joined they are the same.
func TestStallsJoin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	for range 200 {
		var whole, joined, part Stalls
		at := int64(0)
		for range rng.IntN(40) {
			x := Stall{at + 1 + rng.Int64N(100), 0}
			x.ToNS = x.FromNS + 1 + rng.Int64N(100)
			at = x.ToNS
			if rng.IntN(3) == 0 { // told of while it goes on
				part.add(Stall{x.FromNS, x.FromNS + rng.Int64N(x.ToNS-x.FromNS+1)})
				joined.join(&part)
				part = Stalls{}
			}
			whole.add(x)
			part.add(x)
		}
		joined.join(&part)
		if !reflect.DeepEqual(joined, whole) {
			t.Fatalf("%+v, want %+v", joined, whole)
		}
	}
}

// A run that was killed goes on where its journal ends: stalls after that are of time
// that is gone through again.
func TestResumedStallsAddUp(t *testing.T) {
	before := stallsAt(10, 20, 40, 60, 100, 200)
	for _, c := range []struct {
		at          int64
		later, want *Stalls
	}{
		{300, stallsAt(), before},
		{60, stallsAt(70, 75), stallsAt(10, 20, 40, 60, 70, 75)},
		{45, stallsAt(400, 600), stallsAt(10, 20, 40, 45, 400, 600)},
		{5, stallsAt(6, 12), stallsAt(6, 12)},
		{300, nil, nil},
	} {
		run := Run{Stalls: c.later}
		(&Resumption{stalls: before, gap: Interruption{AtNS: c.at * millis, Kept: 3}}).add(&run)
		if !reflect.DeepEqual(run.Stalls, c.want) {
			t.Errorf("at %d ms: %+v, want %+v", c.at, run.Stalls, c.want)
		}
	}
	run := Run{Stalls: before}
	(&Resumption{gap: Interruption{Kept: 3}}).add(&run)
	if run.Stalls != nil {
		t.Error("the part before was not watched, and the stalls of the run are known")
	}
	run = Run{Stalls: before}
	(&Resumption{}).add(&run)
	if !reflect.DeepEqual(run.Stalls, before) {
		t.Error("a part without rows makes the stalls unknown")
	}
}

// Files keep stalls: Parquet in its metadata, the journal of a run that was killed
// with each batch, and all journals of a run that was killed more than once.
func TestFilesKeepStalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	rows := randomResults(6, 20)
	read := func(name string) *Stalls {
		t.Helper()
		f, err := OpenResults(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.Run.Stalls
	}
	for _, s := range []*Stalls{nil, stallsAt(), stallsAt(3, 9, 100, 700)} {
		run := someRun
		run.Stalls = s
		if err := WriteResults(path, run, &trace.SliceReader[Result]{Rows: rows}); err != nil {
			t.Fatal(err)
		}
		if got := read(path); !reflect.DeepEqual(got, s) {
			t.Errorf("Parquet: %+v, want %+v", got, s)
		}
	}

	part := func(n int, run Run, batches ...*Stalls) {
		t.Helper()
		j, err := CreateJournal(partName(JournalName(path), n), run)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range batches {
			j.stalled(s)
			if _, err := j.Write(rows[10*n+i : 10*n+i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.file.Close(); err != nil { // as a kill does
			t.Fatal(err)
		}
	}
	run := someRun
	part(0, run, stallsAt(), stallsAt(3, 9, 100, 300), stallsAt(), stallsAt(100, 700, 900, 950))
	if got, want := read(JournalName(path)), stallsAt(3, 9, 100, 700, 900, 950); !reflect.DeepEqual(got, want) {
		t.Errorf("journal: %+v, want %+v", got, want)
	}
	run.Resumed = []Interruption{{AtNS: 920 * millis}}
	part(1, run) // killed before its first row
	if got, want := read(JournalName(path)), stallsAt(3, 9, 100, 700, 900, 920); !reflect.DeepEqual(got, want) {
		t.Errorf("two journals: %+v, want %+v", got, want)
	}
	if err := os.Remove(partName(JournalName(path), 1)); err != nil {
		t.Fatal(err)
	}
	part(1, run, stallsAt(1000, 1007))
	if got, want := read(JournalName(path)), stallsAt(3, 9, 100, 700, 900, 920, 1000, 1007); !reflect.DeepEqual(got, want) {
		t.Errorf("two journals: %+v, want %+v", got, want)
	}
}

// A run in real time is watched, and its file says so.
func TestRecordedRunIsWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	run, err := (&Runner{Endpoint: instantly{}}).Record(t.Context(), reader(workload(every(5*time.Millisecond, 4)...)), path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenResults(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if run.Stalls == nil || !reflect.DeepEqual(f.Run.Stalls, run.Stalls) {
		t.Errorf("%+v, and in the file %+v", run.Stalls, f.Run.Stalls)
	}
}
