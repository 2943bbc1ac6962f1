package engine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// A tape records what an engine does with jobs.
type tape struct {
	tokens map[int64][]Picos
	over   map[int64]Picos
	order  []int64
	found  map[int64][2]int // tokens found in the cache, and preemptions, of finished jobs
	calls  int64            // of Step
}

func newTape() *tape {
	return &tape{tokens: map[int64][]Picos{}, over: map[int64]Picos{}, found: map[int64][2]int{}}
}

func (p *tape) Tokens(j *Job, at []Picos) { p.tokens[j.ID] = append(p.tokens[j.ID], at...) }

func (p *tape) Finished(j *Job, at Picos) {
	if _, twice := p.over[j.ID]; twice {
		panic("finished twice")
	}
	p.over[j.ID], p.found[j.ID] = at, [2]int{j.Cached, j.Preempted}
	p.order = append(p.order, j.ID)
}

// An arrival is a job with its instant and, maybe, one at which it is aborted.
type arrival struct {
	job   Job
	at    Picos
	abort Picos // 0: never
}

// randomArrivals are jobs that share prefixes and answers, so that blocks are
// found, named twice and evicted.
func randomArrivals(rng *rand.Rand, c Config) []arrival {
	var list []arrival
	at := Picos(0)
	size := []int{c.BlockSize, 2 * c.BlockSize, 3, max(c.BlockSize/2, 1)}[rng.IntN(4)]
	aborts := rng.IntN(2) == 0
	for i := range 1 + rng.IntN(40) {
		if rng.IntN(3) > 0 {
			at += Picos(rng.IntN(200_000))
		}
		j := Job{ID: int64(i), Prompt: 1 + rng.IntN(40), Output: rng.IntN(30), BlockSize: size}
		if rng.IntN(8) == 0 {
			j.Output = rng.IntN(200)
		}
		family := uint64(rng.IntN(3))
		for k := range blocksOf(j.Prompt, size) {
			j.Blocks = append(j.Blocks, family*1000+uint64(k))
		}
		if rng.IntN(2) == 0 {
			for k := range 20 {
				j.OutputBlocks = append(j.OutputBlocks, family*1000+uint64(j.Prompt/size+k))
			}
		}
		if rng.IntN(6) == 0 {
			j.Blocks, j.OutputBlocks, j.BlockSize = nil, nil, 0
		}
		a := arrival{job: j, at: at}
		if aborts && rng.IntN(4) == 0 {
			a.abort = at + Picos(1+rng.IntN(400_000))
		}
		list = append(list, a)
	}
	return list
}

func randomConfig(rng *rand.Rand) Config {
	c := Config{BlockSize: 1 + rng.IntN(8), MaxSeqs: 1 + rng.IntN(8), MaxBatchTokens: 1 + rng.IntN(40),
		MaxWaiting: 1 + rng.IntN(40), ChunkedPrefill: rng.IntN(3) > 0, PrefixCaching: rng.IntN(3) > 0, Batching: continuousBatching,
		Costs: Costs{Step: Picos(rng.IntN(9000)), KVToken: Picos(rng.IntN(60)), PrefillToken: Picos(rng.IntN(400)),
			DecodeSeq: Picos(rng.IntN(5000)), Request: Picos(rng.IntN(2) * 30_000)}}
	if rng.IntN(4) == 0 {
		c.Batching = staticBatching
	}
	if rng.IntN(4) > 0 {
		c.KVTokens = c.BlockSize * (1 + (40+rng.IntN(200))/c.BlockSize)
	}
	return c
}

// play runs arrivals and aborts through an engine, with many steps at a time or
// one, and checks its blocks after each.
func play(t *testing.T, c Config, list []arrival, single bool) (*engineCore, *tape, []error) {
	t.Helper()
	e, err := newEngineCore(c)
	if err != nil {
		t.Fatal(err)
	}
	p := newTape()
	type action struct {
		at    Picos
		which int
		abort bool
	}
	var acts []action
	for i, a := range list {
		acts = append(acts, action{a.at, i, false})
		if a.abort > 0 {
			acts = append(acts, action{a.abort, i, true})
		}
	}
	slices.SortStableFunc(acts, func(a, b action) int { return int(a.at - b.at) })
	jobs := make([]Job, len(list))
	errs := make([]error, len(list))
	run := func(until Picos) {
		for now := e.Now(); now < until; checkBlocks(t, e) {
			horizon := until
			if single {
				horizon = now
			}
			now, _ = e.Step(now, horizon, p)
			p.calls++
		}
	}
	for _, a := range acts {
		run(a.at)
		j := &jobs[a.which]
		if a.abort {
			e.Abort(j)
			continue
		}
		*j = list[a.which].job
		errs[a.which] = e.Add(j, a.at)
	}
	run(Never)
	for i := range jobs {
		if errs[i] == nil && jobs[i].state != stateOver {
			t.Fatalf("job %d is not over", i)
		}
	}
	return e, p, errs
}

// checkBlocks counts the blocks of an engine anew.
func checkBlocks(t *testing.T, e *engineCore) {
	t.Helper()
	p := e.pool
	users, bare := map[int32]int32{}, 0
	for _, j := range e.running {
		if len(j.kvBlocks) < blocksOf(j.computed, e.c.BlockSize) {
			t.Fatalf("job %d has %d blocks for %d tokens", j.ID, len(j.kvBlocks), j.computed)
		}
		for _, n := range j.kvBlocks {
			if n == keyless {
				bare++
			} else {
				users[n]++
			}
		}
	}
	kept, used := 0, 0
	for i, held := range p.index.keys {
		if held == 0 {
			continue
		}
		key, n := held-1, p.index.nodes[i]
		if p.nodes[n].key != key || p.nodes[n].users != users[n] {
			t.Fatalf("block %d has %d users; want %d", n, p.nodes[n].users, users[n])
		}
		if users[n] == 0 {
			kept++
		} else {
			used++
		}
	}
	ring := 0
	for n := p.nodes[0].next; n != 0; n = p.nodes[n].next {
		ring++
	}
	if used != len(users) || kept != p.cached || ring != kept || p.free < 0 || p.free+kept+used+bare != p.limit {
		t.Fatalf("%d free, %d kept (%d in the ring, %d said), %d named, %d bare of %d blocks", p.free, kept, ring, p.cached, used, bare, p.limit)
	}
	if len(e.running) > e.c.MaxSeqs {
		t.Fatalf("%d run", len(e.running))
	}
}

// Every job ends once with all its tokens at instants that rise, all blocks are
// free at the end, and stretches of steps give exactly what single steps give.
func TestEngineProperties(t *testing.T) {
	preempted, calls, singles, cached, refused := int64(0), int64(0), int64(0), 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := randomConfig(rng)
		list := randomArrivals(rng, c)
		t.Run("", func(t *testing.T) {
			e, p, errs := play(t, c, list, false)
			one, q, errs1 := play(t, c, list, true)
			again, r, _ := play(t, c, list, false)
			calls, singles = calls+p.calls, singles+q.calls
			p.calls, q.calls, r.calls = 0, 0, 0
			if !reflect.DeepEqual(p, q) || !reflect.DeepEqual(errs, errs1) || e.Stats() != one.Stats() || e.Load() != one.Load() || e.now != one.now {
				t.Fatalf("seed %d: stretches differ from single steps under %+v: %v %v, %v %v", seed, c, e.Stats(), one.Stats(), e.now, one.now)
			}
			if !reflect.DeepEqual(p, r) || e.Stats() != again.Stats() {
				t.Fatalf("seed %d: not twice the same", seed)
			}
			if l := e.Load(); l.Running+l.Waiting+l.UsedBlocks != 0 {
				t.Fatalf("seed %d: %+v at the end", seed, l)
			}
			for i, a := range list {
				at := p.tokens[int64(i)]
				over, ended := p.over[int64(i)]
				switch {
				case errs[i] != nil:
					refused++
					if ended || at != nil {
						t.Fatalf("seed %d: job %d was refused and answered", seed, i)
					}
					continue
				case a.abort == 0 && (!ended || len(at) != a.job.Output):
					t.Fatalf("seed %d: job %d has %d of %d tokens", seed, i, len(at), a.job.Output)
				}
				if len(at) > 0 && (at[0] < a.at+c.Costs.Request || !slices.IsSorted(at) || ended && at[len(at)-1] != over) {
					t.Fatalf("seed %d: job %d, arrived %d, ended %d, has tokens at %v", seed, i, a.at, over, at)
				}
			}
			preempted += e.Stats().Preemptions
			cached += e.Load().KeptBlocks
		})
	}
	if preempted < 400 || cached < 400 || refused < 400 || 3*calls > 2*singles {
		t.Errorf("the workloads are too tame: %d preempted, %d blocks kept, %d refused, %d calls for %d steps", preempted, cached, refused, calls, singles)
	}
}

// script plays jobs that nothing shares and returns the instants of their tokens.
func script(t *testing.T, c Config, list ...arrival) map[int64][]Picos {
	t.Helper()
	for i := range list {
		list[i].job.ID = int64(i)
	}
	_, p, errs := play(t, c, list, false)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return p.tokens
}

// Instants worked out by hand.
func TestEngineByHand(t *testing.T) {
	base := Config{BlockSize: 4, MaxSeqs: 2, MaxBatchTokens: 10, MaxWaiting: 9, ChunkedPrefill: true, PrefixCaching: true,
		Batching: continuousBatching, Costs: Costs{Step: 100, KVToken: 1, PrefillToken: 30, DecodeSeq: 10}}
	with := func(f func(*Config)) Config { c := base; f(&c); return c }
	job := func(at Picos, prompt, output int, blocks ...uint64) arrival {
		return arrival{at: at, job: Job{Prompt: prompt, Output: output, Blocks: blocks, BlockSize: 4}}
	}
	for name, c := range map[string]struct {
		config Config
		jobs   []arrival
		want   map[int64][]Picos
	}{
		// 6 × 30 = 180 of compute; then 100 + 7 and 100 + 8 of memory.
		"alone": {base, []arrival{job(5, 6, 3)}, map[int64][]Picos{0: {185, 292, 400}}},
		// 10 of 16 tokens, then 6: 300 and 180; 100 + 17.
		"chunks": {base, []arrival{job(0, 16, 2)}, map[int64][]Picos{0: {480, 597}}},
		// The decoding job takes one token of the budget, so the other's prompt takes 9 and 1.
		"both": {base, []arrival{job(0, 2, 4), job(10, 10, 1)},
			map[int64][]Picos{0: {102, 102 + 280, 102 + 280 + 114, 102 + 280 + 114 + 105}, 1: {102 + 280 + 114}}},
		"whole": {with(func(c *Config) { c.ChunkedPrefill = false }), []arrival{job(0, 2, 4), job(10, 10, 1)},
			// 10 tokens do not fit beside a decode, and wait until it is over.
			map[int64][]Picos{0: {102, 205, 309, 414}, 1: {714}}},
		"longer than a step": {with(func(c *Config) { c.ChunkedPrefill = false }), []arrival{job(0, 20, 1)},
			map[int64][]Picos{0: {600}}},
		// The first 8 of 9 tokens are found; the last costs 100 + 9.
		"cached": {base, []arrival{job(0, 9, 1, 1, 2, 3), job(1000, 9, 1, 1, 2, 3)}, map[int64][]Picos{0: {270}, 1: {1109}}},
		// 8 tokens are known whole, and one must be computed: so only 4 are found.
		"last token": {base, []arrival{job(0, 8, 1, 1, 2), job(1000, 8, 1, 1, 2)}, map[int64][]Picos{0: {240}, 1: {1120}}},
		"no cache": {with(func(c *Config) { c.PrefixCaching = false }),
			[]arrival{job(0, 9, 1, 1, 2, 3), job(1000, 9, 1, 1, 2, 3)}, map[int64][]Picos{0: {270}, 1: {1270}}},
		// The third waits for a place until the first is over.
		"places": {base, []arrival{job(0, 1, 2), job(0, 1, 3), job(0, 1, 1)},
			map[int64][]Picos{0: {102, 206}, 1: {102, 206, 206 + 104}, 2: {206 + 104}}},
		// In a static batch it waits until both are.
		"static": {with(func(c *Config) { c.Batching = staticBatching }), []arrival{job(0, 1, 2), job(0, 1, 3), job(0, 1, 1)},
			map[int64][]Picos{0: {102, 206}, 1: {102, 206, 309}, 2: {410}}},
		// Two jobs fill the memory of 4 blocks; the second loses its own when the
		// first needs a third, and computes 8 + 1 tokens anew once it is over.
		"preempted": {with(func(c *Config) { c.KVTokens, c.MaxBatchTokens, c.PrefixCaching = 16, 20, false }),
			[]arrival{job(0, 8, 3), job(0, 8, 3)},
			map[int64][]Picos{0: {480, 589, 699}, 1: {480, 699 + 270, 699 + 270 + 110}}},
		// The second takes the last block for itself and loses all; who was
		// preempted in a step is not admitted again in it, though 4 tokens would fit.
		"not at once": {with(func(c *Config) { c.KVTokens, c.MaxBatchTokens, c.PrefixCaching = 16, 5, false }),
			[]arrival{job(0, 4, 3), job(0, 12, 1)}, map[int64][]Picos{0: {150, 280, 386}, 1: {386 + 150 + 150 + 112}}},
		"overhead": {with(func(c *Config) { c.Costs.Request = 50 }), []arrival{job(5, 6, 1)}, map[int64][]Picos{0: {235}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := script(t, c.config, c.jobs...); !reflect.DeepEqual(got, c.want) {
				t.Errorf("tokens at %v; want %v", got, c.want)
			}
		})
	}
}

// Of blocks given back, the tails of prompts go first, and those in use never.
func TestPoolEvicts(t *testing.T) {
	p := newPool(5, 1)
	prompt := func(keys ...uint64) (held []int32) {
		for _, key := range keys {
			n := p.find(key)
			if n == keyless {
				p.allocate()
				n = p.publish(key)
			} else {
				p.share(n)
			}
			held = append(held, n)
		}
		return held
	}
	p.release(prompt(1, 2, 3))
	p.release(prompt(1, 4))
	inUse := prompt(1, 2)
	for _, want := range [][]uint64{{1, 2, 3, 4}, {1, 2, 4}, {1, 2}} { // one free, then 3, then 4
		p.allocate()
		for key := range uint64(5) {
			if held := p.find(key) != keyless; key > 0 && held != slices.Contains(want, key) {
				t.Errorf("block %d is held: %v; want %v", key, held, want)
			}
		}
	}
	if p.available() != 0 {
		t.Errorf("room for %d", p.available())
	}
	p.release(inUse)
	p.allocate()
	if p.find(2) != keyless || p.find(1) == keyless {
		t.Error("the head of a prompt goes before its tail")
	}
}

// Sums of steps are those of the steps, also where compute and memory cross.
func TestStretch(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := Costs{Step: Picos(rng.IntN(1000)), KVToken: Picos(rng.IntN(5)), DecodeSeq: Picos(rng.IntN(300))}
		if seed%10 == 0 {
			c.KVToken = maxStep / 40
		}
		s := decodeRun{costs: &c, kv: int64(rng.IntN(100)), seqs: int64(1 + rng.IntN(9))}
		sum, within := Picos(0), Picos(rng.IntN(20_000))
		begun := int64(0)
		for k := range int64(60) {
			if got := s.sum(k); got != sum {
				t.Fatalf("%d steps of %+v take %d; want %d", k, c, got, sum)
			}
			if sum < within || k == 0 {
				begun = k + 1
			}
			sum += s.step(k)
		}
		if got := s.stepsBegunWithin(60, within); got != begun {
			t.Fatalf("%d steps of %+v begin within %d; want %d", got, c, within, begun)
		}
	}
}

func Example_steps() {
	c := DefaultConfig()
	c.Costs = Costs{Step: picosOf(5 * time.Millisecond), PrefillToken: picosOf(20 * time.Microsecond)}
	e, err := newEngineCore(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := e.Add(&Job{Prompt: 1000, Output: 3}, 0); err != nil {
		fmt.Println(err)
		return
	}
	e.Run(Never, printer{})
	// Output:
	// 20ms
	// 25ms
	// 30ms
}

type printer struct{}

func (printer) Tokens(_ *Job, at []Picos) {
	for _, t := range at {
		fmt.Println(t.Duration())
	}
}

func (printer) Finished(*Job, Picos) {}
