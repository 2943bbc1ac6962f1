package replay

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// A resumeCase replays a workload that is killed at some instants of its clock.
type resumeCase struct {
	path    string
	fake    func() *fake
	rows    []trace.Request
	loop    *Loop                      // in place of the rows
	options func() Options             // anew for each part, since arrivals are read once
	id      func(*result.Result) int64 // by which its sending is noted; nil is its row
}

func (c *resumeCase) reader() trace.Reader[trace.Request] {
	if c.loop != nil {
		again := *c.loop
		return &again
	}
	return reader(c.rows)
}

// part runs the n-th part, in a bubble of its own: the Parquet library's readers
// do not go from one to the next. One that is killed leaves its journal, with what
// was over by then.
func (c *resumeCase) part(t *testing.T, n int, kill time.Duration) (run result.Run, err error) {
	synctest.Test(t, func(t *testing.T) { run, err = c.inBubble(t, n, kill) })
	return run, err
}

func (c *resumeCase) inBubble(t *testing.T, n int, kill time.Duration) (result.Run, error) {
	t.Helper()
	o := c.options()
	if n > 0 {
		var err error
		if o.Resume, err = ReadResumption(c.path, c.options(), c.reader()); err != nil {
			return result.Run{}, err
		}
	}
	r := &Runner{Endpoint: c.fake(), Pacer: sleeper, Options: o}
	if kill == 0 {
		return r.Record(t.Context(), c.reader(), c.path)
	}
	settled, err := o.withDefaults()
	if err != nil {
		return result.Run{}, err
	}
	var out trace.SliceWriter[result.Result]
	run, err := r.Run(t.Context(), c.reader(), &out)
	if err != nil {
		return result.Run{}, err
	}
	j, err := result.CreateJournal(result.PartName(result.JournalName(c.path), n), settled.About)
	if err != nil {
		return result.Run{}, err
	}
	sends := result.NewSendLog(c.path, n > 0)
	for _, x := range out.Rows {
		if c.loop == nil && x.ReleasedNS != nil && time.Duration(*x.ReleasedNS) <= kill {
			id := x.RowID
			if c.id != nil {
				id = c.id(&x)
			}
			sends.Note(id)
		}
		if x.DoneNS != nil && time.Duration(*x.DoneNS) <= kill {
			if _, err := j.Write([]result.Result{x}); err != nil {
				return result.Run{}, err
			}
		}
	}
	return run, errors.Join(sends.Close(), killed(j, result.PartName(result.JournalName(c.path), n)))
}

// killed closes the journal at path as a kill does: without its end.
func killed(j *result.Journal, path string) error {
	written, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return errors.Join(j.Close(), os.WriteFile(path, written, 0o600))
}

// play runs to the end through all kills.
func (c *resumeCase) play(t *testing.T, kills ...time.Duration) (result.Run, []result.Result) {
	t.Helper()
	if c.path == "" {
		c.path = filepath.Join(t.TempDir(), "r.parquet")
	}
	for n, kill := range append(kills, 0) {
		run, err := c.part(t, n, kill)
		if err != nil {
			t.Fatal(err)
		}
		if kill == 0 {
			left, _ := filepath.Glob(c.path + ".*")
			if len(left) > 0 {
				t.Errorf("%v are left", left)
			}
			_, rows := readAll(t, c.path)
			return run, rows
		}
	}
	panic("unreachable")
}

func holding(d time.Duration) func() *fake {
	return func() *fake { return &fake{hold: func(int32) time.Duration { return d }} }
}

func noOptions() Options { return Options{} }

// A row each second takes five. Killed at 50.5 s, the 46 rows that were due by 45
// are over, the last at 50; the row that was due at 46 is now due at 50, and all
// behind it 4 s later than at first.
func TestResumeOpenLoop(t *testing.T) {
	c := &resumeCase{fake: holding(5 * time.Second), rows: workload(every(time.Second, 100)...), options: noOptions}
	run, rows := c.play(t, 50500*time.Millisecond, 71*time.Second)
	if len(rows) != 100 || run.Requests != 100 || run.NotSent != 0 || len(run.Resumed) != 2 || run.PlannedNS != int64(107*time.Second) {
		t.Fatalf("%d rows, run %+v", len(rows), run)
	}
	for i, first := range []int64{46, 63} { // the five that were in flight at each kill
		want := &result.SeenTwice{Requests: 5, PromptTokens: 5*first + 10, Rows: []int64{first, first + 1, first + 2, first + 3, first + 4}}
		if got := run.Resumed[i].Twice; !reflect.DeepEqual(got, want) {
			t.Errorf("kill %d: seen twice %+v, want %+v", i, got, want)
		}
	}
	// The second time: rows to 62 were due by 66 and over by 71; 63 was due at 67.
	for i, r := range rows {
		want := time.Duration(i) * time.Second
		switch {
		case i > 62:
			want += 8 * time.Second
		case i > 45:
			want += 4 * time.Second
		}
		if r.RowID != int64(i) || r.DueNS != int64(want) || *r.ReleasedNS != r.DueNS || *r.DoneNS != r.DueNS+int64(5*time.Second) {
			t.Errorf("row %d: due %v, want %v: %+v", i, time.Duration(r.DueNS), want, r)
		}
	}
	a, b := run.Resumed[0], run.Resumed[1]
	if a.AtNS != 50e9 || a.ShiftNS != 4e9 || a.Kept != 46 || a.Again != 5 || b.AtNS != 71e9 || b.ShiftNS != 8e9 || b.Kept != 63 || b.Again != 5 {
		t.Errorf("interruptions %+v", run.Resumed)
	}
}

// What was not yet due waits as long as it had to, idle time included.
func TestResumeKeepsIdleTime(t *testing.T) {
	c := &resumeCase{fake: holding(5 * time.Second), rows: workload(0, 100*time.Second), options: noOptions}
	run, rows := c.play(t, 30*time.Second)
	gap := run.Resumed[0]
	if rows[1].DueNS != 100e9 || gap.AtNS != 5e9 || gap.ShiftNS != 0 || gap.Kept != 1 || gap.Again != 0 || gap.Twice.Requests != 0 {
		t.Errorf("rows %+v, run %+v", rows, run)
	}
}

// Think time begins anew: turns behind a parent that was over are due that long
// after the resumption, one whose parent was in flight that long after its second
// answer, and a session whose last turn was over does nothing.
func TestResumeCausal(t *testing.T) {
	rows := workload(0, time.Second, 2*time.Second, 20*time.Second, 21*time.Second, 60*time.Second)
	for turn, parent := range map[int]int64{3: 0, 4: 1} {
		rows[turn].Parents, rows[turn].ThinkNS = []int64{parent}, trace.Ptr(int64(15*time.Second))
	}
	lineage := lineageOf(t, rows)
	f := func() *fake {
		return &fake{hold: func(id int32) time.Duration { return []time.Duration{5, 9, 1, 5, 5, 5}[id] * time.Second }}
	}
	c := &resumeCase{fake: f, rows: rows, options: func() Options { return Options{Causal: lineage} }}
	run, got := c.play(t, 7*time.Second) // rows 0 and 2 are over, at 5 and 3 s; 1 is in flight
	if len(got) != 6 || len(run.Resumed) != 1 || run.Resumed[0].AtNS != 5e9 || run.Resumed[0].Again != 1 {
		t.Fatalf("%d rows, run %+v", len(got), run)
	}
	// Row 1 was due at 1 and is due at 5: the schedule moves by 4.
	for i, want := range []time.Duration{0, 5, 2, 5 + 15, 5 + 9 + 15, 60 + 4} {
		if got[i].DueNS != int64(want*time.Second) {
			t.Errorf("row %d is due at %v, want %v s", i, time.Duration(got[i].DueNS), want)
		}
	}
}

// The turns behind a row that failed before the crash are not sent after it.
func TestResumeSkipsWhatFailed(t *testing.T) {
	rows := chain(10*time.Second, 10*time.Second)
	lineage := lineageOf(t, rows)
	f := func() *fake { return &fake{fail: func(id int32) bool { return id == 0 }} }
	c := &resumeCase{fake: f, rows: rows, options: func() Options { return Options{Causal: lineage} }}
	run, got := c.play(t, 3*time.Second)
	if len(got) != 1 || run.Skipped != 2 || run.Requests != 1 || run.NotSent != 0 {
		t.Errorf("%d rows, run %+v", len(got), run)
	}
}

func TestResumeClosedLoop(t *testing.T) {
	c := &resumeCase{fake: holding(4 * time.Second), rows: workload(make([]time.Duration, 20)...), options: func() Options { return Options{Concurrency: 3} }}
	run, rows := c.play(t, 9*time.Second)
	if len(rows) != 20 || run.MaxInFlight != 3 || run.Resumed[0].AtNS != 8e9 || run.Resumed[0].Kept != 6 || run.Resumed[0].ShiftNS != 0 {
		t.Fatalf("%d rows, run %+v", len(rows), run)
	}
	for i, r := range rows {
		if want := time.Duration(i/3) * 4 * time.Second; r.DueNS != int64(want) {
			t.Errorf("row %d is due at %v, want %v", i, time.Duration(r.DueNS), want)
		}
	}
}

// Arrivals are those that the process would have given, moved; known tokens are
// counted over what was sent before; the warm-up is that of the whole run.
func TestResumeArrivalsKnownAndWindow(t *testing.T) {
	process, err := arrival.ParseProcess("poisson:1")
	if err != nil {
		t.Fatal(err)
	}
	var rows []trace.Request
	for i := range 60 {
		rows = append(rows, trace.Request{InputTokens: int32(i), Status: []string{"", trace.StatusFailed}[i%5/4]})
	}
	asked := 0
	options := func() Options {
		asked = 0
		return Options{Arrivals: process.New(arrival.Stream(1, "x")), Warmup: Span{Requests: 7}, Cooldown: Span{Requests: 3},
			Known: func(int64, *trace.Request) int32 { asked++; return int32(asked) }}
	}
	c := &resumeCase{fake: holding(3 * time.Second), rows: rows, options: options}
	whole := &resumeCase{fake: holding(3 * time.Second), rows: rows, options: options}
	want, plain := whole.play(t)
	run, got := c.play(t, 20*time.Second, 30*time.Second)
	if len(got) != 48 || len(plain) != 48 || run.Excluded != 12 || want.Window.From.Row != run.Window.From.Row || want.Window.To.Row != run.Window.To.Row {
		t.Fatalf("%d rows, windows %+v and %+v", len(got), want.Window.From, run.Window.From)
	}
	for i := range got {
		moved := got[i].DueNS - plain[i].DueNS
		if g := run.Resumed; moved != 0 && moved != g[0].ShiftNS && moved != g[1].ShiftNS || got[i].RowID != plain[i].RowID || *got[i].Known < 1 {
			t.Errorf("row %d: moved by %v, %+v", got[i].RowID, time.Duration(moved), got[i])
		}
	}
	// One after another, those before the crash first, and those that were in flight then twice.
	if last := got[len(got)-1]; int64(*last.Known) != 48+run.Resumed[1].Twice.Requests {
		t.Errorf("the last knows %d", *last.Known)
	}
}

// Whatever the workload, killed three times at random, every row has one result,
// or is accounted for as it is in a run that was never killed.
func TestResumedRowsAreAccountedFor(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rows := workload(every(time.Duration(rng.IntN(400))*time.Millisecond, 1+rng.IntN(200))...)
		for i := range rows {
			rows[i].Status = []string{"", "", trace.StatusOK, trace.StatusFailed}[rng.IntN(4)]
			if i > 0 && rng.IntN(2) == 0 {
				rows[i].Parents = []int64{int64(rng.IntN(i))}
				if rng.IntN(3) > 0 {
					rows[i].ThinkNS = trace.Ptr(rng.Int64N(5e9))
				}
			}
		}
		options := Options{Speed: 1 + float64(rng.IntN(2)), MaxInFlight: rng.IntN(9)}
		switch rng.IntN(3) {
		case 0:
			options = Options{Concurrency: 1 + rng.IntN(9)}
		case 1:
			options.Causal = lineageOf(t, rows)
		}
		f := func() *fake {
			return &fake{hold: func(id int32) time.Duration { return time.Duration(id%7) * time.Second }, fail: func(id int32) bool { return id%23 == 5 }}
		}
		c := &resumeCase{fake: f, rows: rows, options: func() Options { return options }}
		whole := &resumeCase{fake: f, rows: rows, options: c.options}
		want, plain := whole.play(t)
		kills := []time.Duration{time.Duration(rng.Int64N(20e9)), 0, 0}
		kills[1] = kills[0] + time.Duration(rng.Int64N(20e9))
		kills[2] = kills[1] + time.Duration(rng.Int64N(20e9))
		kills[0] += 1 // 0 is never
		kills[1] += 1
		kills[2] += 1
		run, got := c.play(t, kills...)
		if len(got) != len(plain) || run.Requests != want.Requests || run.Excluded != want.Excluded || run.Skipped != want.Skipped || run.NotSent != 0 || len(run.Resumed) != 3 {
			t.Fatalf("seed %d: %d rows and %+v, want %d and %+v", seed, len(got), run, len(plain), want)
		}
		for i := range got {
			if got[i].RowID != plain[i].RowID || got[i].Error != plain[i].Error || *got[i].ReleasedNS < got[i].DueNS {
				t.Fatalf("seed %d: row %+v, want %+v", seed, got[i], plain[i])
			}
		}
	}
}

func TestResumeRefuses(t *testing.T) {
	process, _ := arrival.ParseProcess("poisson:1")
	rows := workload(every(time.Second, 20)...)
	path := filepath.Join(t.TempDir(), "r.parquet")
	base := func() Options {
		return Options{About: result.Run{Source: result.Source{Workload: "w", Seed: "1"}, Load: result.Load{Model: "m"}}}
	}
	c := &resumeCase{path: path, fake: holding(time.Second), rows: rows, options: base}
	if _, err := ReadResumption(path, base(), reader(rows)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a journal: %v", err)
	}
	if _, err := c.part(t, 0, 7*time.Second); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(o *Options){
		"workload_digest": func(o *Options) { o.About.Workload = "v" }, "seed": func(o *Options) { o.About.Seed = "2" },
		"model": func(o *Options) { o.About.Model = "n" }, "speed": func(o *Options) { o.Speed = 2 },
		"timing": func(o *Options) { o.Causal = lineageOf(t, rows) }, "concurrency": func(o *Options) { o.Concurrency = 3 },
		"rate":            func(o *Options) { o.Arrivals, o.About.Rate = process.New(arrival.Stream(1, "x")), "poisson:1" },
		"in_flight_limit": func(o *Options) { o.MaxInFlight = 3 }, "warmup_ns": func(o *Options) { o.Warmup.Time = time.Second },
		"duration_ns": func(o *Options) { o.Duration = time.Hour }, "keep_think": func(o *Options) { o.KeepThink = true },
	} {
		o := base()
		change(&o)
		_, err := ReadResumption(path, o, reader(rows))
		var other *Disagreement
		if !errors.As(err, &other) || other.Field != field || !strings.Contains(err.Error(), strings.ReplaceAll(field, "_", " ")) {
			t.Errorf("another %s: %v", field, err)
		}
	}
	o := base()
	o.About.Version, o.About.Cores = "v2", 99
	if _, err := ReadResumption(path, o, reader(rows)); err != nil {
		t.Errorf("by another version, on another machine: %v", err)
	}
	if _, err := ReadResumption(path, base(), brokenReader{reader(rows)}); err == nil {
		t.Error("a workload that cannot be read is taken")
	}
	whole, err := os.ReadFile(result.JournalName(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(result.JournalName(path)); err != nil {
		t.Fatal(err)
	}
	running, err := result.CreateJournal(result.JournalName(path), result.Run{Schema: result.Schema, Version: "another"}) // locked while it is open
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(result.JournalName(path), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadResumption(path, base(), reader(rows)); !errors.Is(err, result.ErrRunning) {
		t.Errorf("a run that goes on: %v", err)
	}
	running.Close()
	if err := os.WriteFile(result.JournalName(path), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign, err := result.CreateJournal(result.PartName(result.JournalName(path), 1), result.Run{Schema: result.Schema, Version: "another"})
	if err != nil {
		t.Fatal(err)
	}
	foreign.Close()
	if _, err := ReadResumption(path, base(), reader(rows)); err == nil || !strings.Contains(err.Error(), ".journal.2") {
		t.Errorf("a foreign journal behind it: %v", err)
	}
}

// A run that was killed when all was over sends nothing and is finished.
func TestResumeWithNothingLeft(t *testing.T) {
	c := &resumeCase{fake: holding(time.Second), rows: workload(every(time.Second, 20)...), options: noOptions}
	var last Progress
	c.options = func() Options { return Options{Progress: func(p Progress) { last = p }} }
	run, rows := c.play(t, time.Hour)
	if len(rows) != 20 || run.Requests != 20 || run.EndedEarly != "" || last.Done != 20 {
		t.Errorf("%d rows, run %+v, progress %+v", len(rows), run, last)
	}
}

// A resumption that is ended before it sends anything has what was kept, and the
// rest was not sent.
func TestResumeEndedAtOnce(t *testing.T) {
	c := &resumeCase{path: filepath.Join(t.TempDir(), "r.parquet"), fake: holding(time.Second), rows: workload(every(time.Second, 20)...), options: noOptions}
	if _, err := c.part(t, 0, 8*time.Second); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o := noOptions()
		var err error
		if o.Resume, err = ReadResumption(c.path, noOptions(), reader(c.rows)); err != nil {
			t.Fatal(err)
		}
		run, err := (&Runner{Endpoint: c.fake(), Pacer: sleeper, Options: o}).Record(ctx, reader(c.rows), c.path)
		if err != nil || run.Requests != 8 || run.NotSent != 12 || run.EndedEarly == "" {
			t.Errorf("run %+v, %v", run, err)
		}
	})
	if f, rows := readAll(t, c.path); len(rows) != 8 || f.Run.NotSent != 12 {
		t.Errorf("%d rows, run %+v", len(rows), f.Run)
	}
}

// The journals of a run and of its resumption are one, while it goes on.
func TestReportOnAResumedRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	c := &resumeCase{path: path, fake: holding(time.Second), rows: workload(every(time.Second, 20)...), options: noOptions}
	for n, kill := range []time.Duration{5 * time.Second, 11 * time.Second, 15 * time.Second} {
		if _, err := c.part(t, n, kill); err != nil {
			t.Fatal(err)
		}
	}
	f, rows := readAll(t, result.JournalName(path))
	if len(rows) != 15 || f.Rows() != 15 || f.Run.Requests != 15 || len(f.Run.Resumed) != 2 || !f.Unfinished || f.Run.EndedEarly == "" {
		t.Errorf("%d rows, run %+v", len(rows), f.Run)
	}
	for i, r := range rows {
		if r.RowID != int64(i) {
			t.Errorf("row %d is %d", i, r.RowID)
		}
	}
	if f, rows := readAll(t, result.PartName(result.JournalName(path), 1)); len(rows) == 15 || len(f.Run.Resumed) != 1 {
		t.Errorf("the second journal by itself has %d rows", len(rows))
	}
}

// noGaps has all arrive at once.
type noGaps struct{}

func (noGaps) Next() time.Duration { return 0 }

// A loop goes on in the round in which it was killed, with an end or without one, and
// is as long as it would have been.
func TestResumeLoop(t *testing.T) {
	steady, err := arrival.ParseProcess("constant:2")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rounds int64
		o      func() Options
	}{
		"four rounds":     {4, func() Options { return Options{} }},
		"open":            {0, func() Options { return Options{} }},
		"fast":            {0, func() Options { return Options{Speed: 2} }},
		"causal":          {0, func() Options { l := lineageOf(t, loopRows()); l.Repeat(); return Options{Causal: l} }},
		"closed":          {0, func() Options { return Options{Concurrency: 2} }},
		"by a process":    {0, func() Options { return Options{Arrivals: steady.New(arrival.Stream(1, "x"))} }},
		"within a window": {0, func() Options { return Options{Warmup: Span{Requests: 5}, Cooldown: Span{Requests: 5}} }},
	} {
		t.Run(name, func(t *testing.T) {
			options := func() Options {
				o := c.o()
				o.Origin, o.Known = Origin(3, func(i int64) int64 { return i }), func(int64, *trace.Request) int32 { return 1 }
				if o.Endless = c.rounds == 0; o.Endless {
					o.Duration = 60 * time.Second
				}
				return o
			}
			one := &resumeCase{fake: holding(4 * time.Second), loop: loopOf(c.rounds, 0), options: options}
			whole := *one
			want, plain := whole.play(t)
			run, got := one.play(t, 21*time.Second, 22*time.Second, 40*time.Second)
			if len(run.Resumed) != 3 || run.Resumed[0].Kept < 4 || run.Resumed[0].Again < 0 || run.Resumed[2].Again > 9 || run.NotSent != 0 || run.Requests != int64(len(got)) {
				t.Errorf("run %+v", run)
			}
			if name == "closed" { // whose last rows depend on when it was killed
				plain = plain[:min(len(plain), len(got))]
				got = got[:len(plain)]
			}
			if len(got) != len(plain) || len(got) < 12 {
				t.Fatalf("%d rows, %d of a run that is not killed: %+v and %+v", len(got), len(plain), run, want)
			}
			if want.Window != nil && (want.Window.From.Row != run.Window.From.Row || want.Window.From.Round != run.Window.From.Round) {
				t.Errorf("windows %+v and %+v", want.Window.From, run.Window.From)
			}
			for i, r := range got {
				if r.Key() != plain[i].Key() {
					t.Fatalf("result %d is row %d of round %d, and not %+v", i, r.RowID, r.Round, plain[i].Key())
				}
			}
		})
	}
}

// A loop without end whose first row failed in the source and is left out: the round
// after those that are over is read past that row.
func TestResumeLoopPastALeftOutRow(t *testing.T) {
	steady, err := arrival.ParseProcess("constant:2")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o     Options
		first int64 // due time of the first row that has no result
	}{
		"recorded times": {Options{}, 15.5e9},
		"by a process":   {Options{Arrivals: steady.New(arrival.Stream(1, "x"))}, 1.5e9},
	} {
		path := filepath.Join(t.TempDir(), "r.parquet")
		c.o.Endless, c.o.Duration, c.o.Origin = true, time.Minute, Origin(3, func(i int64) int64 { return i })
		settled, err := c.o.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		j, err := result.CreateJournal(result.JournalName(path), settled.About)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Write([]result.Result{{RowID: 1, DoneNS: trace.Ptr(int64(16e9))}, {RowID: 2, DoneNS: trace.Ptr(int64(17e9))}}); err != nil {
			t.Fatal(err)
		}
		if err := killed(j, result.JournalName(path)); err != nil {
			t.Fatal(err)
		}
		loop := loopOf(0, 0)
		loop.Open = func() (trace.Reader[trace.Request], error) {
			rows := loopRows()
			rows[0].Status, rows[2].Parents = trace.StatusFailed, nil
			return reader(rows), nil
		}
		r, err := ReadResumption(path, c.o, loop)
		if err != nil || r.Gap().ShiftNS != 17e9-c.first {
			t.Errorf("%s: %+v, %v", name, r.Gap(), err)
		}
	}
}

// Of rounds without end that are all due at once, no more is read than there is to know.
func TestResumeLoopAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	o := Options{Endless: true, Duration: time.Minute, MaxInFlight: 2, Origin: Origin(3, func(i int64) int64 { return i }), Arrivals: noGaps{}}
	settled, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	j, err := result.CreateJournal(result.JournalName(path), settled.About)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Write([]result.Result{{RowID: 1, Round: 7, DoneNS: trace.Ptr(int64(5e9))}}); err != nil {
		t.Fatal(err)
	}
	if err := killed(j, result.JournalName(path)); err != nil {
		t.Fatal(err)
	}
	r, err := ReadResumption(path, o, loopOf(0, 0))
	if err != nil || r.Gap().Kept != 1 || r.Gap().ShiftNS != 5e9 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A turn whose parent was over before the kill waits from the resumption on, and not for its
// parent's think time once more.
func TestResumeWaitsOnce(t *testing.T) {
	rows := chain(5*time.Second, 5*time.Second, 5*time.Second)
	c := resumeCase{rows: rows, fake: holding(time.Second), options: func() Options { return Options{Causal: lineageOf(t, rows)} }}
	run, results := c.play(t, 8*time.Second)
	// Turn 1 was over at 7 s, where the clock goes on.
	for i, want := range []int64{0, 6, 12, 18} {
		if got := results[i].DueNS / 1e9; got != want {
			t.Errorf("turn %d is due at %d s, want %d s (%+v)", i, got, want, run.Resumed)
		}
	}
}
