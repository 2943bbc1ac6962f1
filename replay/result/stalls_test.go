package result

import (
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"reprise/trace"
)

const millis = int64(time.Millisecond)

// stallsAt makes stalls of pairs of milliseconds.
func stallsAt(pairs ...int64) *Stalls {
	s := &Stalls{AboveNS: 5 * millis}
	for i := 0; i < len(pairs); i += 2 {
		s.Add(Stall{pairs[i] * millis, pairs[i+1] * millis})
	}
	return s
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
			s.Add(x)
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
				part.Add(Stall{x.FromNS, x.FromNS + rng.Int64N(x.ToNS-x.FromNS+1)})
				joined.join(&part)
				part = Stalls{}
			}
			whole.Add(x)
			part.Add(x)
		}
		joined.join(&part)
		if !reflect.DeepEqual(joined, whole) {
			t.Fatalf("%+v, want %+v", joined, whole)
		}
	}
}

// Files keep stalls: Parquet in its metadata, the journal of a run that was killed
// with each batch, and all journals of a run that was killed more than once.
func TestFilesKeepStalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	rows := randomResults(6, 20)
	read := func(name string) *Stalls {
		t.Helper()
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.Run.Stalls
	}
	for _, s := range []*Stalls{nil, stallsAt(), stallsAt(3, 9, 100, 700)} {
		run := someRun
		run.Stalls = s
		if err := Write(path, run, &trace.SliceReader[Result]{Rows: rows}); err != nil {
			t.Fatal(err)
		}
		if got := read(path); !reflect.DeepEqual(got, s) {
			t.Errorf("Parquet: %+v, want %+v", got, s)
		}
	}

	part := func(n int, run Run, batches ...*Stalls) {
		t.Helper()
		j, err := CreateJournal(JournalName(path), run)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range batches {
			j.Stalled(s)
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
}
