package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"reprise/trace/fleet"
	"reprise/trace/sample"
)

// manyArrivals are several lists of random arrivals, one after the other, whose clients
// stay on the line.
func manyArrivals(rng *rand.Rand, c Config) []arrival {
	var list []arrival
	for range 6 {
		last := Picos(0)
		if n := len(list); n > 0 {
			last = list[n-1].at
		}
		for _, a := range randomArrivals(rng, c) {
			a.at, a.abort, a.job.ID = a.at+last, 0, int64(len(list))
			if rng.IntN(20) == 0 && a.job.BlockSize > 0 { // longer than the memory, mostly
				for a.job.Prompt = 400; len(a.job.Blocks)*a.job.BlockSize < a.job.Prompt; {
					a.job.Blocks = append(a.job.Blocks, a.job.Blocks[0]+uint64(len(a.job.Blocks)))
				}
			}
			list = append(list, a)
		}
	}
	return list
}

// A naiveRouter chooses by the definitions of the routers, from what became of all
// requests. It remembers the blocks sent to each replica in lists, the latest first.
type naiveRouter struct {
	c     FleetConfig
	rng   *rand.Rand
	turn  int
	sent  []int
	held  [][]uint64
	limit int // of held, from the first blocks seen
	past  []*Answer
}

func newNaiveRouter(c FleetConfig) *naiveRouter {
	return &naiveRouter{c: c, rng: rand.New(rand.NewPCG(c.Seed, 0)), sent: make([]int, c.Replicas), held: make([][]uint64, c.Replicas)}
}

// inFlight counts the requests on a replica that were taken and had not ended at an instant.
func (r *naiveRouter) inFlight(replica int, at Picos) (n int) {
	for _, a := range r.past {
		if a.Replica == replica && a.Err == nil && a.Done > at {
			n++
		}
	}
	return n
}

// highest is the replica of the highest score; then the one sent the fewest tokens, then
// the first.
func (r *naiveRouter) highest(score func(int) float64) int {
	best := 0
	for i := range r.sent {
		if s, b := score(i), score(best); s > b || s == b && r.sent[i] < r.sent[best] {
			best = i
		}
	}
	return best
}

func (r *naiveRouter) route(a *Answer) (to int) {
	n := r.c.Replicas
	switch r.c.Router {
	case fleet.Random:
		to = r.rng.IntN(n)
	case fleet.LeastLoaded:
		to = r.highest(func(i int) float64 { return -float64(r.inFlight(i, a.At)) })
	case fleet.Prefix, fleet.PrefixWeighted:
		to = r.byPrefix(&a.Job)
	default:
		if r.c.Router == fleet.Session && a.Session != nil {
			to = int(sample.Mix64(uint64(*a.Session+1)*sample.Golden) % uint64(n))
		} else {
			to, r.turn = r.turn%n, r.turn+1
		}
	}
	r.sent[to] += a.Job.Prompt
	r.past = append(r.past, a)
	return to
}

func (r *naiveRouter) byPrefix(j *Job) int {
	if r.limit == 0 && j.BlockSize > 0 {
		if r.limit = 1 << 40; r.c.Engine.KVTokens > 0 {
			r.limit = max(r.c.Engine.KVTokens/j.BlockSize, 1)
		}
	}
	total := 0
	for _, n := range r.sent {
		total += n
	}
	weight := 0.0
	if r.c.Router == fleet.PrefixWeighted {
		weight = 1
	}
	to := r.highest(func(i int) float64 {
		hits := 0
		for hits < len(j.Blocks) && slices.Contains(r.held[i], j.Blocks[hits]) {
			hits++
		}
		above := max(0, r.sent[i]*r.c.Replicas-total)
		return float64(hits)/float64(max(len(j.Blocks), 1)) - weight*(float64(above)/float64(max(total, 1)))
	})
	held, mine := r.held[to], []uint64{}
	for _, id := range j.Blocks {
		if at := slices.Index(held, id); at >= 0 {
			held = slices.Delete(held, at, at+1)
		} else if len(held)+len(mine) >= r.limit {
			if len(held) == 0 {
				break
			}
			held = held[:len(held)-1]
		}
		mine = append(mine, id)
	}
	r.held[to] = append(mine, held...)
	return to
}

// Every router sends every request where its definition says, and the summary is that of
// all answers.
func TestRoutersByDefinition(t *testing.T) {
	routed := map[string]int{}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 11))
		c := FleetConfig{Engine: randomConfig(rng), Replicas: 1 + rng.IntN(5), Seed: seed, Router: fleet.Routers()[seed%6]}
		c.Engine.Costs.Step++ // no step takes no time
		if rng.IntN(3) > 0 {
			c.Engine.KVTokens = 300 / c.Engine.BlockSize * c.Engine.BlockSize
		}
		list := manyArrivals(rng, c.Engine)
		answers := make([]*Answer, len(list))
		tally := NewTally(c)
		f, err := NewFleet(c, func(a *Answer) error {
			answers[a.Job.ID] = a
			tally.Add(a)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range list {
			arrival := Arrival{Job: a.job, At: a.at}
			if session := int64(i * i % 7); i%4 > 0 {
				arrival.Session = &session
			}
			if err := f.Send(arrival); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Finish(); err != nil {
			t.Fatal(err)
		}
		naive, most := newNaiveRouter(c), 0
		for i, a := range answers {
			if to := naive.route(a); to != a.Replica {
				t.Fatalf("seed %d, %+v: request %d went to %d, want %d", seed, c, i, a.Replica, to)
			}
			if a.Err == nil {
				inFlight := 0
				for replica := range c.Replicas {
					inFlight += naive.inFlight(replica, a.At)
				}
				most = max(most, inFlight)
			} else if a.Done != a.At+1e9 || a.Tokens != nil {
				t.Fatalf("seed %d: request %d was refused at %d, told at %d, with tokens %v", seed, i, a.At, a.Done, a.Tokens)
			}
		}
		if got := f.MaxInFlight(); got != most {
			t.Fatalf("seed %d: %d in flight at most, want %d", seed, got, most)
		}
		want := naiveSummary(c, f.Stats(), answers)
		want.Reached.MaxInFlight, want.Reached.MaxDecoding, want.Reached.MaxKVTokens = f.Reached().MaxInFlight, f.Reached().MaxDecoding, f.Reached().MaxKVTokens // see TestReached
		if got := tally.Summary(f); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: the summary is %+v, want %+v", seed, got, want)
		}
		routed[c.Router] += len(list)
	}
	for _, router := range fleet.Routers() {
		if routed[router] < 1000 {
			t.Errorf("%s was tried %d times", router, routed[router])
		}
	}
}

// naiveSummary adds up answers, none of which was cut.
func naiveSummary(c FleetConfig, stats []Stats, answers []*Answer) FleetSummary {
	s := FleetSummary{Router: c.Router, Replicas: c.Replicas}
	sent, computed := make([]float64, c.Replicas), make([]float64, c.Replicas)
	prompt, cached, blocks, hits := 0, 0, 0, 0
	var ttft []float64
	for _, a := range answers {
		sent[a.Replica] += float64(a.Job.Prompt)
		if a.Err != nil {
			s.Refused++
			continue
		}
		s.Answered++
		s.Reached.MaxPromptTokens, s.Reached.MaxOutputTokens = max(s.Reached.MaxPromptTokens, a.Job.Prompt), max(s.Reached.MaxOutputTokens, a.Job.Output)
		prompt, cached = prompt+a.Job.Prompt, cached+a.Job.Cached
		blocks, hits = blocks+(a.Job.Prompt+c.Engine.BlockSize-1)/c.Engine.BlockSize, hits+a.Job.Cached/c.Engine.BlockSize
		if len(a.Tokens) > 0 {
			ttft = append(ttft, float64(a.Tokens[0]-a.At))
		}
	}
	for i, e := range stats {
		computed[i] = float64(e.PrefillTokens)
		s.Preemptions += e.Preemptions
		s.MaxUsedBlocks, s.CapacityBlocks = max(s.MaxUsedBlocks, e.MaxUsedBlocks), e.CapacityBlocks
	}
	part := func(a, b float64) *float64 {
		if b == 0 {
			return nil
		}
		a /= b
		return &a
	}
	sum := func(list []float64) (total float64) {
		for _, v := range list {
			total += v
		}
		return total
	}
	s.HitByToken, s.HitByBlock = part(float64(cached), float64(prompt)), part(float64(hits), float64(blocks))
	s.LoadImbalance = part(slices.Max(sent)*float64(c.Replicas), sum(sent))
	s.PrefillImbalance = part(slices.Max(computed)*float64(c.Replicas), sum(computed))
	slices.Sort(ttft)
	at := func(p float64) *float64 { // linear between the two neighbours
		rank := p * float64(len(ttft)-1)
		below := int(rank)
		above := min(below+1, len(ttft)-1)
		v := (ttft[below] + (rank-float64(below))*(ttft[above]-ttft[below])) / 1e9
		return &v
	}
	if len(ttft) > 0 {
		s.TTFTP50MS = at(0.5)
	}
	if len(ttft) >= 100 {
		s.TTFTP99MS = at(0.99)
	}
	return s
}

// The 99th percentile is told from 100 answers on, and nothing of no answers.
func TestSummaryOfFewAnswers(t *testing.T) {
	c := FleetConfig{Engine: DefaultConfig(), Replicas: 2, Router: fleet.Random}
	f, err := NewFleet(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	tally := NewTally(c)
	if got, want := tally.Summary(f), (FleetSummary{Router: fleet.Random, Replicas: 2, CapacityBlocks: maxBlocks}); got != want {
		t.Errorf("of no answers: %+v, want %+v", got, want)
	}
	for i := range 100 {
		if s := tally.Summary(f); s.TTFTP99MS != nil {
			t.Fatalf("a 99th percentile of %d answers", i)
		}
		tally.Add(&Answer{Arrival: Arrival{Job: Job{Prompt: 17, Cached: 16}, At: 1e9}, Replica: 1, Tokens: []Picos{Picos(i+1) * 1e9, 1e12}, Err: []error{nil, ErrCut}[i%2]})
	}
	tally.Add(&Answer{Replica: 0, Err: ErrBusy, Arrival: Arrival{Job: Job{Prompt: 100}}})
	tally.Add(&Answer{Replica: 0, Err: ErrCut})
	s := tally.Summary(f)
	got := fmt.Sprintf("%d %d %d, %.6f %.6f %.6f, %g %g, %v", s.Answered, s.Cut, s.Refused, *s.HitByToken, *s.HitByBlock, *s.LoadImbalance, *s.TTFTP50MS, *s.TTFTP99MS, s.PrefillImbalance)
	// 16 of 17 tokens, 1 of 2 blocks; 1,700 tokens of 1,800 on one of two; 0 to 99 ms.
	if want := fmt.Sprintf("50 51 1, %.6f %.6f %.6f, 49.5 98.01, <nil>", 16./17, 0.5, 1700./900); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A fleet says what is wrong, and ends with the first error of its listener.
func TestFleetErrors(t *testing.T) {
	for _, row := range []struct {
		c    FleetConfig
		want string
	}{
		{FleetConfig{Replicas: 0, Router: fleet.Random}, "simulated fleet: the number of replicas must be 1 to 64"},
		{FleetConfig{Replicas: 65, Router: fleet.Random}, "simulated fleet: the number of replicas must be 1 to 64"},
		{FleetConfig{Replicas: 64, Router: "none"}, "simulated fleet: there is no such router"},
		{FleetConfig{Replicas: 64, Router: fleet.Prefix}, "<nil>"},
	} {
		row.c.Engine = DefaultConfig()
		if f, err := NewFleet(row.c, nil); fmt.Sprint(err) != row.want || (f == nil) != (err != nil) {
			t.Errorf("%+v: got %v, want %s", row.c, err, row.want)
		}
	}
	c := FleetConfig{Engine: DefaultConfig(), Replicas: 2, Router: fleet.RoundRobin}
	c.Engine.Costs.Step = 1e9
	ends := 0
	f, err := NewFleet(c, func(a *Answer) error {
		ends++
		return fmt.Errorf("end %d", ends)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Send(Arrival{Job: Job{ID: -1}}); err == nil || err.Error() != "simulated engine: a job's number is out of range" {
		t.Errorf("a job that is none: %v", err)
	}
	if err := f.Send(Arrival{Job: Job{ID: 0}, At: -1}); err == nil || err.Error() != "simulated engine: an arrival is before 0 or after 26 days" {
		t.Errorf("an arrival that is none: %v", err)
	}
	for i := range 3 {
		if err := f.Send(Arrival{Job: Job{ID: int64(i), Prompt: 1, Output: 1}}); err != nil {
			t.Errorf("job %d: %v", i, err)
		}
	}
	for range 2 {
		if err := f.Send(Arrival{Job: Job{ID: 9, Prompt: 1, Output: 1}, At: 2e9}); err == nil || err.Error() != "end 1" {
			t.Errorf("after an error: %v", err)
		}
	}
	if err := f.Finish(); err == nil || err.Error() != "end 1" || ends != 3 {
		t.Errorf("at the end: %v after %d ends", err, ends)
	}
	refused := errors.New("no more")
	c.Engine.KVTokens = 16
	f, _ = NewFleet(c, func(a *Answer) error {
		if a.Err != ErrTooLong || a.Done != 5+1e9 {
			t.Errorf("%+v", a)
		}
		return refused
	})
	if err := f.Send(Arrival{Job: Job{Prompt: 17}, At: 5}); err != refused {
		t.Errorf("the listener's error about a refused request: %v", err)
	}
}

// Clients that hang up at one instant are told in the order of their requests, with the
// tokens that they got by then, that of the instant included.
func TestFleetCuts(t *testing.T) {
	c := FleetConfig{Engine: DefaultConfig(), Replicas: 2, Router: fleet.RoundRobin}
	c.Engine.Costs.Step = 10
	var got []string
	f, err := NewFleet(c, func(a *Answer) error {
		got = append(got, fmt.Sprint(a.Job.ID, a.Tokens, a.Done, a.Err))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range []struct {
		output int
		cut    Picos
	}{{9, 45}, {9, 45}, {9, 25}, {9, 45}, {3, 30}, {3, 29}, {3, 31}, {2, 5}, {0, 0}, {5, 40}} {
		if err := f.Send(Arrival{Job: Job{ID: int64(9 - i), Prompt: 1, Output: row.output}, Cut: row.cut}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Finish(); err != nil {
		t.Fatal(err)
	}
	const hungUp = " the client hung up"
	want := []string{"2 [] 5" + hungUp, "1 [] 10 <nil>", "5 [10 20 30] 30 <nil>", "3 [10 20 30] 30 <nil>", "7 [10 20] 25" + hungUp, "4 [10 20] 29" + hungUp,
		"0 [10 20 30 40] 40" + hungUp, "6 [10 20 30 40] 45" + hungUp, "8 [10 20 30 40] 45" + hungUp, "9 [10 20 30 40] 45" + hungUp}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
