package engine

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// A naiveEngine does one step after another, as the comments on [engineCore] say, and finds
// its blocks in lists.
type naiveEngine struct {
	c                          Config
	now                        Picos
	arriving, waiting, running []*naiveJob
	batch                      int
	blocked                    bool
	limit, bare                int
	users                      map[uint64]int // of blocks in use, by key
	kept                       []uint64       // longest ago first
	stats                      Stats
	tape                       *tape
}

type naiveJob struct {
	*Job
	enters                       Picos
	computed, generated, planned int
	blocks                       []uint64 // keys; 0 is a block without one
	cached, preempted            int
	scheduled, over, refused     bool
}

// key is that of block k, so that 0 is none.
func (e *naiveEngine) key(j *naiveJob, k int) uint64 { return j.blockKey(k, e.c.BlockSize) + 1 }

func (e *naiveEngine) used() int { return e.bare + len(e.users) }

func (e *naiveEngine) available() int { return e.limit - e.used() }

func (j *naiveJob) left() int { return max(j.Prompt, 1) + j.generated - j.computed }

// allocate gives a job blocks for its first tokens, and full ones their keys, or reports
// that there are too few.
func (e *naiveEngine) allocate(j *naiveJob, tokens int) bool {
	size := e.c.BlockSize
	more := (tokens+size-1)/size - len(j.blocks)
	if more > e.available() {
		return false
	}
	for range max(more, 0) {
		if e.used()+len(e.kept) == e.limit {
			e.kept = e.kept[1:]
		}
		e.bare++
		j.blocks = append(j.blocks, 0)
	}
	for k := j.computed / size; k < tokens/size && e.c.PrefixCaching; k++ {
		if key := e.key(j, k); e.users[key] == 0 && !slices.Contains(e.kept, key) {
			e.bare--
			e.users[key]++
			j.blocks[k] = key
		}
	}
	return true
}

func (e *naiveEngine) release(j *naiveJob) {
	for _, key := range slices.Backward(j.blocks) {
		if key == 0 {
			e.bare--
		} else if e.users[key]--; e.users[key] == 0 {
			delete(e.users, key)
			e.kept = append(e.kept, key)
		}
	}
	j.blocks, e.blocked = nil, false
}

// step does a step, or tells that there is nothing to do until the next job enters.
func (e *naiveEngine) step() bool {
	for len(e.arriving) > 0 && e.arriving[0].enters <= e.now {
		e.waiting, e.arriving = append(e.waiting, e.arriving[0]), e.arriving[1:]
	}
	if len(e.running)+len(e.waiting) == 0 {
		return false
	}
	budget, kv, prefill, decode := e.c.MaxBatchTokens, 0, 0, 0
	plan := func(j *naiveJob, n int) {
		j.planned = n
		budget -= n
		kv += j.computed + n
		if j.generated > 0 && j.left() == 1 {
			decode++
		} else {
			prefill += n
		}
	}
	preempted := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		j := e.running[i]
		n := j.left()
		if e.c.ChunkedPrefill {
			n = min(n, budget)
		}
		for i < len(e.running) && !e.allocate(j, j.computed+n) {
			last := e.running[len(e.running)-1]
			e.running = e.running[:len(e.running)-1]
			e.release(last)
			last.computed = 0
			last.preempted++
			e.stats.Preemptions++
			e.waiting = append([]*naiveJob{last}, e.waiting...)
			if e.c.Batching == staticBatching {
				e.batch++
			}
			preempted = true
		}
		if i < len(e.running) {
			plan(j, n)
		}
	}
	if e.c.Batching == staticBatching && len(e.running) == 0 && e.batch == 0 && !preempted {
		e.batch = min(len(e.waiting), e.c.MaxSeqs)
	}
	for !preempted && budget > 0 && len(e.waiting) > 0 && len(e.running) < e.c.MaxSeqs && !e.blocked {
		if e.c.Batching == staticBatching && e.batch == 0 {
			break
		}
		j, size := e.waiting[0], e.c.BlockSize
		hits, fresh := 0, 0 // blocks that are known, and those of them that nobody uses
		for ; e.c.PrefixCaching && hits < (j.left()-1)/size; hits++ {
			key := e.key(j, hits)
			if e.users[key] == 0 && !slices.Contains(e.kept, key) {
				break
			}
			if e.users[key] == 0 {
				fresh++
			}
		}
		n := j.left() - hits*size
		if e.c.ChunkedPrefill {
			n = min(n, budget)
		} else if n > budget && (n <= e.c.MaxBatchTokens || prefill > 0) {
			break
		}
		if (n+size-1)/size > e.available()-fresh {
			e.blocked = true
			break
		}
		e.waiting = e.waiting[1:]
		for k := range hits {
			key := e.key(j, k)
			e.kept = slices.DeleteFunc(e.kept, func(other uint64) bool { return other == key })
			e.users[key]++
			j.blocks = append(j.blocks, key)
		}
		j.computed = hits * size
		if !j.scheduled {
			j.scheduled, j.cached = true, j.computed
		}
		e.running = append(e.running, j)
		e.batch = max(e.batch-1, 0)
		e.allocate(j, j.computed+n)
		plan(j, n)
	}
	e.stats.MaxRunning, e.stats.MaxWaiting = max(e.stats.MaxRunning, len(e.running)), max(e.stats.MaxWaiting, len(e.waiting))
	e.stats.MaxUsedBlocks = max(e.stats.MaxUsedBlocks, e.used())
	e.stats.Steps++
	e.stats.PrefillTokens += int64(prefill)
	costs := e.c.Costs
	e.now += max(costs.Step+costs.KVToken*Picos(kv), costs.PrefillToken*Picos(prefill)+costs.DecodeSeq*Picos(decode))
	running := e.running
	e.running = nil
	for _, j := range running {
		j.computed += j.planned
		if j.planned > 0 && j.left() == 0 && j.generated < j.Output {
			j.generated++
			e.tape.tokens[j.ID] = append(e.tape.tokens[j.ID], e.now)
		}
		j.planned = 0
		if j.generated == j.Output && j.computed >= max(j.Prompt, 1) {
			e.finish(j)
		} else {
			e.running = append(e.running, j)
		}
	}
	if len(e.running)+len(e.waiting) == 0 {
		e.batch = 0
	}
	return true
}

func (e *naiveEngine) finish(j *naiveJob) {
	e.release(j)
	j.over = true
	e.tape.over[j.ID], e.tape.found[j.ID] = e.now, [2]int{j.cached, j.preempted}
	e.tape.order = append(e.tape.order, j.ID)
}

func (e *naiveEngine) run(until Picos) {
	for e.now < until {
		if !e.step() {
			if len(e.arriving) == 0 || e.arriving[0].enters >= until {
				return
			}
			e.now = max(e.now, e.arriving[0].enters)
		}
	}
}

func (e *naiveEngine) add(j *naiveJob, at Picos) {
	held := (max(j.Prompt, 1) + max(j.Output-1, 0) + e.c.BlockSize - 1) / e.c.BlockSize
	if len(e.running)+len(e.waiting)+len(e.arriving) >= e.c.MaxSeqs+e.c.MaxWaiting || held > e.limit {
		j.refused = true
		return
	}
	j.enters = at + e.c.Costs.Request
	e.arriving = append(e.arriving, j)
}

func (e *naiveEngine) abort(j *naiveJob) {
	if j.over || j.refused {
		return
	}
	same := func(other *naiveJob) bool { return other == j }
	if slices.Contains(e.running, j) {
		e.release(j)
	}
	e.blocked, j.over = false, true
	e.running, e.waiting, e.arriving = slices.DeleteFunc(e.running, same), slices.DeleteFunc(e.waiting, same), slices.DeleteFunc(e.arriving, same)
}

// The engine gives each job its tokens when the naive one does, having found as much in
// the cache and preempted as often, with the same counts and peaks.
func TestEngineEqualsNaive(t *testing.T) {
	preempted, cached := int64(0), 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 21))
		c := randomConfig(rng)
		list := randomArrivals(rng, c)
		real, got, errs := play(t, c, list, false)
		e := &naiveEngine{c: c, limit: maxBlocks, users: map[uint64]int{}, tape: newTape()}
		if c.KVTokens > 0 {
			e.limit = c.KVTokens / c.BlockSize
		}
		e.stats.CapacityBlocks = e.limit
		type act struct {
			at    Picos
			which int
			abort bool
		}
		var acts []act
		jobs := make([]*naiveJob, len(list))
		for i, a := range list {
			acts = append(acts, act{a.at, i, false})
			if a.abort > 0 {
				acts = append(acts, act{a.abort, i, true})
			}
		}
		slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
		for _, a := range acts {
			e.run(a.at)
			if a.abort {
				e.abort(jobs[a.which])
				continue
			}
			jobs[a.which] = &naiveJob{Job: &list[a.which].job}
			e.add(jobs[a.which], a.at)
		}
		e.run(Never)
		for i, j := range jobs {
			if j.refused != (errs[i] != nil) {
				t.Fatalf("seed %d: job %d is refused: %v, want %v", seed, i, errs[i], j.refused)
			}
			cached += j.cached
		}
		got.calls = 0
		if !reflect.DeepEqual(got, e.tape) || real.Stats() != e.stats || real.Now() != e.now {
			t.Fatalf("seed %d, %+v: the engine differs from the naive one: %+v, %+v; %d, %d", seed, c, real.Stats(), e.stats, real.Now(), e.now)
		}
		preempted += e.stats.Preemptions
	}
	if preempted < 500 || cached < 5000 {
		t.Errorf("the workloads are too tame: %d preempted, %d tokens found", preempted, cached)
	}
}
