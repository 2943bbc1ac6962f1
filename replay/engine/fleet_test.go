package engine

import (
	"math/rand/v2"
	"reflect"
	"reprise/trace/fleet"
	"slices"
	"testing"
)

// Every arrival gives one answer on every router, the same each time, and no
// client gets a token after it hung up.
func TestFleetProperties(t *testing.T) {
	cut, refused := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		list := randomArrivals(rng, Config{BlockSize: 4})
		c := FleetConfig{Engine: randomConfig(rng), Replicas: 1 + rng.IntN(5), Seed: seed,
			Router: fleet.Routers()[rng.IntN(len(fleet.Routers()))]}
		play := func() (map[int64]Answer, FleetSummary) {
			got := map[int64]Answer{}
			tally := NewTally(c)
			f, err := NewFleet(c, func(a *Answer) error {
				if _, twice := got[a.Job.ID]; twice {
					t.Fatalf("seed %d: job %d was answered twice", seed, a.Job.ID)
				}
				got[a.Job.ID] = *a
				tally.Add(a)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range list {
				session := int64(i % 5)
				if err := f.Send(Arrival{Job: a.job, At: a.at, Cut: a.abort, Session: &session}); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Finish(); err != nil {
				t.Fatal(err)
			}
			if len(f.cuts) != 0 {
				t.Fatalf("seed %d: %d requests are to be cut at the end", seed, len(f.cuts))
			}
			for i, l := range f.Load() {
				if l.Running+l.Waiting+l.UsedBlocks != 0 {
					t.Fatalf("seed %d: replica %d holds %+v at the end", seed, i, l)
				}
			}
			return got, tally.Summary(f)
		}
		got, sum := play()
		again, sum2 := play()
		if !reflect.DeepEqual(got, again) || !reflect.DeepEqual(sum, sum2) {
			t.Fatalf("seed %d: not twice the same", seed)
		}
		if len(got) != len(list) || sum.Answered+sum.Cut+sum.Refused != int64(len(list)) {
			t.Fatalf("seed %d: %d answers, %+v, for %d requests", seed, len(got), sum, len(list))
		}
		for _, a := range got {
			last := Picos(0)
			if n := len(a.Tokens); n > 0 {
				last = a.Tokens[n-1]
			}
			switch {
			case a.Err == nil && (len(a.Tokens) != a.Job.Output || a.Done < last || a.Cut > 0 && a.Done > a.Cut):
				t.Fatalf("seed %d: job %d has %d of %d tokens, until %d", seed, a.Job.ID, len(a.Tokens), a.Job.Output, a.Done)
			case a.Err == ErrCut && (a.Done != a.Cut || last > a.Cut):
				t.Fatalf("seed %d: job %d was cut at %d, has a token at %d", seed, a.Job.ID, a.Cut, last)
			}
			if a.Err == ErrCut {
				cut++
			} else if a.Err != nil {
				refused++
			}
		}
	}
	if cut < 100 || refused < 100 {
		t.Errorf("the workloads are too tame: %d cut, %d refused", cut, refused)
	}
}

// One engine behind a router is that engine.
func TestFleetOfOne(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 4))
		c := randomConfig(rng)
		list := randomArrivals(rng, c)
		for i := range list {
			list[i].abort = 0
		}
		_, p, _ := play(t, c, list, false)
		got := newTape()
		f, err := NewFleet(FleetConfig{Engine: c, Replicas: 1, Router: fleet.LeastLoaded}, func(a *Answer) error {
			if a.Err == nil {
				got.over[a.Job.ID], got.found[a.Job.ID] = a.Done, [2]int{a.Job.Cached, a.Job.Preempted}
				got.order = append(got.order, a.Job.ID)
				if len(a.Tokens) > 0 {
					got.tokens[a.Job.ID] = a.Tokens
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if err := f.Send(Arrival{Job: a.job, At: a.at}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Finish(); err != nil {
			t.Fatal(err)
		}
		p.calls = 0
		if !reflect.DeepEqual(got, p) {
			t.Fatalf("seed %d: the fleet differs from its engine", seed)
		}
	}
}

// Where each router sends a few requests, one a second, on three replicas.
func TestRouters(t *testing.T) {
	c := DefaultConfig()
	c.BlockSize, c.KVTokens, c.Costs = 4, 40, Costs{Step: 1e9, PrefillToken: 1e9}
	blocks := func(ids ...uint64) []uint64 { return ids }
	list := []struct {
		session int64
		blocks  []uint64
		tokens  int
	}{
		{0, blocks(1, 2), 8}, {1, blocks(1, 3), 8}, {0, blocks(1, 2, 4), 12}, {1, blocks(1, 3, 5), 12}, {2, blocks(9), 4}, {0, blocks(1, 2, 4, 6), 16},
	}
	for router, want := range map[string][]int{
		fleet.RoundRobin: {0, 1, 2, 0, 1, 2},
		// All are idle at each arrival, so the fewest tokens decide.
		fleet.LeastLoaded: {0, 1, 2, 0, 1, 1},
		// The first block draws all that begin with it to replica 0; 9 has no
		// place, so the fewest tokens decide.
		fleet.Prefix: {0, 0, 0, 0, 1, 0},
		// The second: replica 0 holds 1/2 of it and was sent 2 above the mean. The
		// third: it holds 2/3 and was sent 8 tokens, 1/2 above the mean of 16/3.
		fleet.PrefixWeighted: {0, 1, 0, 1, 2, 0},
	} {
		var got []int
		f, err := NewFleet(FleetConfig{Engine: c, Replicas: 3, Router: router}, func(a *Answer) error {
			got = append(got, a.Replica)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range list {
			a := Arrival{Session: &r.session, At: Picos(i) * 1e12, Job: Job{ID: int64(i), Prompt: r.tokens, Output: 1, Blocks: r.blocks, BlockSize: 4}}
			if err := f.Send(a); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Finish(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s sends to %v; want %v", router, got, want)
		}
	}
	if _, err := NewFleet(FleetConfig{Engine: c, Replicas: 2, Router: "fair"}, nil); err == nil {
		t.Error("a router that there is not is taken")
	}
	for _, n := range []int{0, fleet.MaxReplicas + 1} {
		if _, err := NewFleet(FleetConfig{Engine: c, Replicas: n, Router: fleet.Random}, nil); err == nil {
			t.Errorf("%d replicas are taken", n)
		}
	}
}

// Two at a time: 4 tokens of prompt each in one step, then 2 decoded; worked out
// by hand.
func TestClosedLoop(t *testing.T) {
	c := DefaultConfig()
	c.Costs = Costs{Step: 1e9, PrefillToken: 5e8, Request: 1e9} // 1 ms, 0.5 ms, 1 ms
	got, err := closedLoop{Concurrency: 2, Requests: 4, Prompt: exactly(4), Output: exactly(3)}.Run(c)
	want := trialResult{OutputPerS: 6 / 0.007, TTFTP50: 5, TTFTP95: 5, TTFTP99: 5, ITLP50: 1, ITLP95: 1, ITLP99: 1, E2EP50: 7, E2EP95: 7, E2EP99: 7}
	if err != nil || got != want {
		t.Errorf("%+v; want %+v (%v)", got, want, err)
	}
	// Two at once, in the open.
	open, err := openLoop{Requests: 2, Prompt: exactly(4), Output: exactly(3)}.Run(c)
	want.OutputPerS = 6 / 0.007
	if err != nil || open != want {
		t.Errorf("%+v; want %+v (%v)", open, want, err)
	}
	if _, err := (closedLoop{Concurrency: 1, Requests: 1}).Run(c); err == nil {
		t.Error("requests of no tokens are taken")
	}
}

func TestParseCosts(t *testing.T) {
	base := Costs{Step: 1, KVToken: 2, PrefillToken: 3, DecodeSeq: 4, Request: 5}
	got, err := ParseCosts("step=5ms, kv-token=40ns,prefill-token=23.5us,decode-seq=1.5µs,request=0s", base)
	want := Costs{Step: 5e9, KVToken: 40e3, PrefillToken: 23_500_000, DecodeSeq: 1_500_000}
	if err != nil || got != want {
		t.Errorf("%+v; want %+v (%v)", got, want, err)
	}
	if one, err := ParseCosts("kv-token=7ps", base); err != nil || one != (Costs{Step: 1, KVToken: 7, PrefillToken: 3, DecodeSeq: 4, Request: 5}) {
		t.Errorf("%+v, %v", one, err)
	}
	for _, c := range []Costs{base, want, {Step: 1, Attention: 530, Expert: 7e9}, {Step: 1e15, KVToken: 123_456_789, Request: 999}} {
		if back, err := ParseCosts(c.String(), Costs{}); err != nil || back != c {
			t.Errorf("%s reads back as %+v, %v", c, back, err)
		}
	}
	for _, bad := range []string{"", "step", "step=", "step=5", "steps=5ms", "step=-5ms", "step=NaNs", "step=1e9s", "step=5ms,", "step=Infs"} {
		if _, err := ParseCosts(bad, base); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParseCosts(f *testing.F) {
	f.Add("step=5ms,kv-token=40ns")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCosts(text, Costs{})
		if err != nil {
			return
		}
		if back, err := ParseCosts(c.String(), Costs{}); err != nil || back != c {
			t.Errorf("%s reads back as %+v, %v", c, back, err)
		}
	})
}

// Time that passes from end to end gives the same answers as in one go, and
// stops at every end: a request that follows one arrives when that is over.
func TestFleetAdvance(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 4))
		list := randomArrivals(rng, Config{BlockSize: 4})
		c := FleetConfig{Engine: randomConfig(rng), Replicas: 1 + rng.IntN(4), Router: fleet.RoundRobin}
		play := func(advance bool) map[int64]Answer {
			got := map[int64]Answer{}
			last := Picos(0)
			f, err := NewFleet(c, func(a *Answer) error {
				if advance && a.Done < last {
					t.Fatalf("seed %d: job %d ended at %d, told after one arrived at %d", seed, a.Job.ID, a.Done, last)
				}
				got[a.Job.ID] = *a
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				for advance && f.Advance(a.at) {
				}
				last = a.at
				if err := f.Send(Arrival{Job: a.job, At: a.at, Cut: a.abort}); err != nil {
					t.Fatal(err)
				}
			}
			for advance && f.Advance(Never) {
			}
			if err := f.Finish(); err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got, want := play(true), play(false); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: other answers when time passes from end to end", seed)
		}
	}
}

// A request is in flight until the instant of its last token.
func TestInFlightUntilTheLastToken(t *testing.T) {
	c := DefaultConfig()
	c.Costs.Step = 10
	e := mustEngine(t, c)
	for i, output := range []int{1, 1, 2} {
		if err := e.Add(&Job{ID: int64(i), Prompt: 1, Output: output}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		run, at Picos
		want    int
	}{{0, 0, 3}, {1, 1, 3}, {1, 9, 3}, {1, 10, 1}, {11, 19, 1}, {11, 20, 0}, {11, 21, 0}} {
		e.Run(row.run, newTape())
		if got := e.InFlight(row.at); got != row.want {
			t.Errorf("at %d, after the steps that begin before %d: %d in flight, want %d", row.at, row.run, got, row.want)
		}
	}
}

// Time that passes up to an instant does the steps that begin before it, and lets the
// clients hang up that do so by then.
func TestAdvanceUpToAnInstant(t *testing.T) {
	c := FleetConfig{Engine: DefaultConfig(), Replicas: 2, Router: fleet.RoundRobin}
	c.Engine.Costs = Costs{Step: 10, Request: 100}
	var ends []Picos
	f, err := NewFleet(c, func(a *Answer) error {
		ends = append(ends, a.Done)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.Advance(Never) {
		t.Error("something ended where nothing was sent")
	}
	for i, cut := range []Picos{0, 50, 0} {
		if err := f.Send(Arrival{Job: Job{ID: int64(i), Prompt: 1, Output: 1 + i}, Cut: cut}); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		at    Picos
		ended bool
		ends  []Picos
		steps int64
	}{
		{49, false, nil, 0}, {50, true, []Picos{50}, 0}, {50, false, []Picos{50}, 0}, {100, false, []Picos{50}, 0},
		{101, true, []Picos{50, 110}, 1}, {110, false, []Picos{50, 110}, 1}, {111, false, []Picos{50, 110}, 2}, {Never, true, []Picos{50, 110, 130}, 3}, {Never, false, []Picos{50, 110, 130}, 3},
	} {
		if ended := f.Advance(row.at); ended != row.ended || !slices.Equal(ends, row.ends) || f.Stats()[0].Steps != row.steps || f.Stats()[1].Steps != 0 {
			t.Errorf("up to %d: ended %v, ends %v after %d and %d steps; want %+v", row.at, ended, ends, f.Stats()[0].Steps, f.Stats()[1].Steps, row)
		}
	}
}
