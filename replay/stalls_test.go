package replay

import (
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
)

const millis = int64(time.Millisecond)

// stallsAt makes stalls of pairs of milliseconds.
func stallsAt(pairs ...int64) *result.Stalls {
	s := &result.Stalls{AboveNS: int64(lateBeat)}
	for i := 0; i < len(pairs); i += 2 {
		s.Add(result.Stall{FromNS: pairs[i] * millis, ToNS: pairs[i+1] * millis})
	}
	return s
}

// A beat that comes more than 5 ms late is a stall, from when it should have come.
func TestHeartbeatNoticesLateBeats(t *testing.T) {
	for _, c := range []struct {
		name  string
		beats []float64 // ms from the start
		want  *result.Stalls
	}{
		{"none", nil, stallsAt()},
		{"on time", []float64{1, 2, 3.1, 4}, stallsAt()},
		{"a little late", []float64{1, 7, 8, 14}, stallsAt()},
		{"late", []float64{1, 8, 9}, stallsAt(2, 8)},
		{"stopped, twice", []float64{1, 2, 602, 603, 604, 1000, 1001}, stallsAt(3, 602, 605, 1000)},
		{"from the first on", []float64{50}, stallsAt(1, 50)},
		{"before the start", []float64{-30, -29, -2, -1}, stallsAt()},
		{"over the start", []float64{-30, -29, 8, 9}, stallsAt(0, 8)},
		{"one after another", []float64{10, 20}, stallsAt(1, 10, 11, 20)},
	} {
		var h heartbeat
		h.watch(time.Now(), 0)
		for _, at := range c.beats {
			h.beat(0, time.Duration(at*1e6))
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
		if h.takeNew() != nil {
			t.Error("stalls of a run that nobody watches")
		}
		h.watch(time.Now(), 0)
		h.beat(0, 10*time.Millisecond)
		time.Sleep(600 * time.Millisecond)
		first := h.takeNew()
		h.beat(0, 700*time.Millisecond)
		second, third := h.takeNew(), h.takeNew()
		if want := stallsAt(1, 10, 11, 600); !reflect.DeepEqual(first, want) {
			t.Errorf("%+v, want %+v", first, want)
		}
		whole := stallsAt()
		for _, s := range []*result.Stalls{first, second, third} {
			for _, x := range s.Intervals {
				whole.Add(x)
			}
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
		h.begin(time.Now(), instantly{})
		time.Sleep(5 * time.Second)
		if got := h.end(); !reflect.DeepEqual(got, stallsAt()) {
			t.Errorf("%+v", got)
		}
		h.beat(0, time.Minute) // of a reader that was about to when the watch ended
		if !reflect.DeepEqual(h.all, stallsAt()) {
			t.Errorf("%+v after the end", h.all)
		}
		if got := (&heartbeat{}).end(); got != nil {
			t.Errorf("%+v of a watch that never began", got)
		}
	})
}

// A run in real time is watched, and its file says so.
func TestRecordedRunIsWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	run, err := (&Runner{Endpoint: instantly{}}).Record(t.Context(), reader(workload(every(5*time.Millisecond, 4)...)), path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if run.Stalls == nil || !reflect.DeepEqual(f.Run.Stalls, run.Stalls) {
		t.Errorf("%+v, and in the file %+v", run.Stalls, f.Run.Stalls)
	}
}
