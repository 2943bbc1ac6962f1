package engine

import (
	"errors"
	"fmt"

	"reprise/replay/hardware"
)

// Ways of batching.
const (
	// continuousBatching admits a request as soon as there is a place, as vLLM does.
	continuousBatching = "continuous"
	// staticBatching admits requests only when the batch before has ended, as many as
	// wait then.
	staticBatching = "static"
)

// Config says what an [engineCore] is like. The names are vLLM's.
type Config struct {
	BlockSize      int `json:"block_size"`             // tokens in a block of KV
	KVTokens       int `json:"kv_tokens"`              // tokens of KV memory; 0 is without bound
	MaxSeqs        int `json:"max_num_seqs"`           // requests that run at once
	MaxBatchTokens int `json:"max_num_batched_tokens"` // tokens computed in a step
	MaxWaiting     int `json:"max_waiting"`            // requests that wait; more are refused
	// a prompt is computed in parts as the budget of a step allows; else whole
	ChunkedPrefill bool   `json:"chunked_prefill"`
	PrefixCaching  bool   `json:"prefix_caching"` // blocks are found again by what they hold
	Batching       string `json:"batching"`       // continuous or static
	Costs          Costs  `json:"-"`              // see Costs.String
	// Of a mixture, the experts of a layer that tokens are routed to, and how many of them
	// each token takes; see Costs.Expert. 0 without a mixture.
	Experts         int `json:"experts,omitempty"`
	ExpertsPerToken int `json:"experts_per_token,omitempty"`
}

// DefaultConfig has vLLM's defaults for a server on one accelerator: blocks of
// 16 tokens, 256 sequences, 2,048 tokens a step, chunked prefill and prefix
// caching. KV memory is without bound.
func DefaultConfig() Config {
	return Config{BlockSize: 16, MaxSeqs: 256, MaxBatchTokens: 2048, MaxWaiting: 100_000,
		ChunkedPrefill: true, PrefixCaching: true, Batching: continuousBatching}
}

// Above maxBlocks and mostOfStep no server is, and sums would no longer fit.
const (
	maxBlocks  = 1<<31 - 2
	mostOfStep = 1 << 31
)

func (c *Config) check() error {
	switch {
	case c.BlockSize < 1 || c.BlockSize > maxBlockSize:
		return errors.New("simulated engine: a block has 1 to 524,288 tokens")
	case c.KVTokens < 0 || c.KVTokens/c.BlockSize > maxBlocks:
		return errors.New("simulated engine: the KV memory is negative or above 2^31 blocks")
	case c.KVTokens > 0 && c.KVTokens < c.BlockSize:
		return fmt.Errorf("simulated engine: a KV memory of %d tokens holds no block of %d", c.KVTokens, c.BlockSize)
	case c.MaxSeqs < 1 || c.MaxBatchTokens < 1 || c.MaxWaiting < 0:
		return errors.New("simulated engine: the limits of a step must be positive, and the queue's not negative")
	case max(c.MaxSeqs, c.MaxBatchTokens, c.MaxWaiting) > mostOfStep:
		return errors.New("simulated engine: a limit of a step or of the queue is above 2^31")
	case c.Batching != continuousBatching && c.Batching != staticBatching:
		return errors.New("simulated engine: batching is continuous or static")
	case c.Experts < 0 || c.ExpertsPerToken < 0 || c.ExpertsPerToken > c.Experts:
		return errors.New("simulated engine: a token takes more experts than there are")
	case c.Costs.Expert > 0 && c.Experts == 0:
		return errors.New("simulated engine: it has a cost of experts and none of them: that cost comes from " +
			"--model-config")
	}
	return c.Costs.check()
}

// A tokenSink receives the tokens and ends of jobs during [engineCore.Step]. The instants
// may lie ahead of the caller's clock, up to the one that Step returns.
type tokenSink interface {
	// Tokens tells the instants of a job's next tokens, in order. The slice is
	// the engine's again afterwards.
	Tokens(j *Job, at []Picos)
	// Finished tells that a job has all its tokens and left the engine.
	Finished(j *Job, at Picos)
}

// Errors of an [Answer].
var (
	// ErrBusy says that the waiting queue is full (HTTP 429).
	ErrBusy = errors.New("the waiting queue is full")
	// ErrTooLong says that a job would not fit into the KV memory alone.
	ErrTooLong = errors.New("the request is longer than the KV memory")
)

// An engineCore is a serving engine as a state machine without a clock: its caller passes
// the time. The same calls give the same tokens at the same instants, whether the time is
// real or virtual.
//
// In each step it first gives every running sequence its next token, or the next
// part of its prompt, in order of admission; then it admits from the queue, in
// order of arrival, while the budget of tokens, the places and the blocks last.
// When blocks run out, the sequence admitted last loses its own and waits at the
// head of the queue, to compute all of its tokens anew, except those it finds
// in the cache. This is the order of vLLM's V1 scheduler (vllm/v1/core/sched).
//
// It differs from vLLM in two points, which change no result of interest: the head of the
// queue, once there were no blocks for it, is tried again when blocks were given back,
// and not in every step; and blocks without a key are used again before any others,
// where vLLM queues them after the others.
//
// An Engine is for one goroutine.
type engineCore struct {
	c        Config
	reading  []Picos // of a mixture, Costs.Step and experts by tokens of a step; nil without
	now      Picos   // when the next step may begin
	pool     *blockPool
	running  []*Job
	waiting  jobQueue
	arriving jobQueue // added, and not yet seen by the scheduler
	entered  Picos    // of the last that was added

	batch    int  // of a static batch: jobs still to be admitted; else of no meaning
	blocked  bool // the head of the queue found no blocks, and none were given back since
	lastOver int  // jobs that finished at the end of the last step, which is now

	ends      []Picos
	crossings []crossing
	peak      Load
	reached   Covers
	steps     int64
	preempted int64
	computed  int64
}

// newEngineCore makes an engine at instant 0.
func newEngineCore(c Config) (*engineCore, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	blocks := maxBlocks
	if c.KVTokens > 0 {
		blocks = c.KVTokens / c.BlockSize
	}
	return &engineCore{c: c, pool: newPool(blocks, c.BlockSize), reading: c.reading()}, nil
}

// reading is what it takes to read the weights, by tokens of a step up to the most that
// make a difference; nil where it is always Costs.Step.
func (c *Config) reading() []Picos {
	if c.Costs.Expert == 0 {
		return nil
	}
	layer := hardware.Experts{Routed: c.Experts, PerToken: c.ExpertsPerToken}
	all := c.Costs.Step + times(c.Costs.Expert, int64(c.Experts))
	var list []Picos
	for tokens := 0; tokens <= c.MaxBatchTokens; tokens++ {
		at := min(c.Costs.Step+Picos(float64(c.Costs.Expert)*layer.Different(tokens)), all)
		list = append(list, at)
		if all-at < c.Costs.Expert/1000 {
			break
		}
	}
	return list
}

// costsOf are the costs of a step of so many tokens: Step is what reading the weights
// takes then.
func (e *engineCore) costsOf(tokens int64) Costs {
	c := e.c.Costs
	if e.reading != nil {
		c.Step = e.reading[min(tokens, int64(len(e.reading)-1))]
	}
	return c
}

// Add gives the engine a job that arrives at an instant, which must not be
// before that of an earlier Add. On [ErrBusy] or [ErrTooLong] the job is not
// taken.
func (e *engineCore) Add(j *Job, at Picos) error {
	if err := j.check(); err != nil {
		return err
	}
	if j.state != stateNew {
		return errors.New("simulated engine: a job was added twice")
	}
	if at < 0 || at >= Never/2 {
		return errors.New("simulated engine: an arrival is before 0 or after 26 days")
	}
	if len(e.running)+e.waiting.len()+e.arriving.len() >= e.c.MaxSeqs+e.c.MaxWaiting {
		return ErrBusy
	}
	// The last token that is generated is not computed, and has no KV.
	if blocksOf(max(j.Prompt, 1)+max(j.Output-1, 0), e.c.BlockSize) > e.pool.limit {
		return ErrTooLong
	}
	// One process hands the requests over: none overtakes another.
	e.entered = max(e.entered, at+e.c.Costs.Request+j.late)
	j.entered, j.state, j.unscheduled = e.entered, stateWaiting, true
	e.arriving.push(j)
	e.reached.join(Covers{MaxPromptTokens: j.Prompt, MaxOutputTokens: j.Output, MaxInFlight: e.InFlight(at)})
	return nil
}

// Abort takes a job out between two steps; it is not told as finished. It
// reports whether the engine had the job.
func (e *engineCore) Abort(j *Job) bool {
	switch j.state {
	case stateRunning:
		for i, r := range e.running {
			if r == j {
				e.running = append(e.running[:i], e.running[i+1:]...)
				break
			}
		}
		e.release(j)
	case stateWaiting:
		if !e.waiting.remove(j) {
			e.arriving.remove(j)
		}
		e.blocked = false
	default:
		return false
	}
	j.state = stateOver
	return true
}

// ResetCache forgets the blocks that no job uses.
func (e *engineCore) ResetCache() {
	for e.pool.cached > 0 {
		e.pool.evict()
		e.pool.free++
	}
}

// Now is the instant at which the last step ended.
func (e *engineCore) Now() Picos { return e.now }

// Load is what an engine is busy with.
type Load struct {
	Running, Waiting int
	UsedBlocks       int // held by sequences: not to be evicted
	KeptBlocks       int // of the prefix cache, held by none
}

// Load returns the load between two steps.
func (e *engineCore) Load() Load {
	return Load{len(e.running), e.waiting.len() + e.arriving.len(), e.pool.used(), e.pool.cached}
}

// InFlight is how many jobs were not finished at an instant no earlier than the
// beginning of the last step.
func (e *engineCore) InFlight(at Picos) int {
	n := len(e.running) + e.waiting.len() + e.arriving.len()
	if at < e.now {
		n += e.lastOver
	}
	return n
}

// Stats count since the beginning.
type Stats struct {
	Steps          int64
	PrefillTokens  int64 // computed, those computed anew included
	Preemptions    int64
	MaxRunning     int
	MaxWaiting     int
	MaxUsedBlocks  int
	CapacityBlocks int
}

// Stats returns the counts so far.
func (e *engineCore) Stats() Stats {
	return Stats{e.steps, e.computed, e.preempted, e.peak.Running, e.peak.Waiting, e.peak.UsedBlocks, e.pool.limit}
}

// notePeak keeps the largest load, as it is during a step.
func (e *engineCore) notePeak() {
	e.peak.Running = max(e.peak.Running, len(e.running))
	e.peak.Waiting = max(e.peak.Waiting, e.waiting.len())
	e.peak.UsedBlocks = max(e.peak.UsedBlocks, e.pool.used())
}

// A jobQueue is first in, first out, except that jobs can be put back at its head.
type jobQueue struct {
	jobs []*Job
	from int
}

func (q *jobQueue) len() int    { return len(q.jobs) - q.from }
func (q *jobQueue) head() *Job  { return q.jobs[q.from] }
func (q *jobQueue) push(j *Job) { q.jobs = append(q.jobs, j) }

func (q *jobQueue) pop() *Job {
	j := q.jobs[q.from]
	q.from++
	if q.from > len(q.jobs)/2 {
		q.jobs, q.from = append(q.jobs[:0], q.jobs[q.from:]...), 0
	}
	return j
}

func (q *jobQueue) putBack(j *Job) {
	if q.from > 0 {
		q.from--
		q.jobs[q.from] = j
		return
	}
	q.jobs = append([]*Job{j}, q.jobs...)
}

func (q *jobQueue) remove(j *Job) bool {
	for i := q.from; i < len(q.jobs); i++ {
		if q.jobs[i] == j {
			q.jobs = append(q.jobs[:i], q.jobs[i+1:]...)
			return true
		}
	}
	return false
}

func blocksOf(tokens, size int) int { return (tokens + size - 1) / size }

// release gives back what j holds.
func (e *engineCore) release(j *Job) {
	e.pool.release(j.kvBlocks)
	j.kvBlocks = j.kvBlocks[:0]
	e.blocked = false
}
