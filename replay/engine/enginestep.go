package engine

import "slices"

// Step begins at now, or at the end of the last step when that is later. It does
// one step and returns the instant at which it ends; or several, when they decode
// the same sequences, each begins before the horizon, and no job enters. It is
// not ok when there is nothing to do: until is then the instant of the next job
// to enter, or [Never].
func (e *engineCore) Step(now, horizon Picos, sink tokenSink) (until Picos, ok bool) {
	e.now = max(e.now, now)
	for e.arriving.len() > 0 && e.arriving.head().entered <= e.now {
		e.waiting.push(e.arriving.pop())
	}
	if len(e.running) == 0 && e.waiting.len() == 0 {
		if e.arriving.len() == 0 {
			return Never, false
		}
		return e.arriving.head().entered, false
	}
	if e.arriving.len() > 0 {
		horizon = min(horizon, e.arriving.head().entered)
	}
	e.lastOver = 0
	if !e.decodeSteps(horizon, sink) {
		e.mixedStep(sink)
	}
	return e.now, true
}

// nextStep is when the next step begins; Never when there is nothing to do.
func (e *engineCore) nextStep() Picos {
	switch {
	case len(e.running) > 0 || e.waiting.len() > 0:
		return e.now
	case e.arriving.len() > 0:
		return max(e.now, e.arriving.head().entered)
	}
	return Never
}

// Run does all steps that begin before an instant.
func (e *engineCore) Run(until Picos, sink tokenSink) {
	for now := e.now; now < until; {
		now, _ = e.Step(now, until, sink)
	}
}

// mixedStep does one step of prefill, decode or both.
func (e *engineCore) mixedStep(sink tokenSink) {
	var b batch
	b.budget = e.c.MaxBatchTokens
	// The next tokens of the running come first. The step is not calm when one of them
	// lost its blocks; then nothing is admitted.
	// Some of the budget is left for each: a sequence is admitted only then, and all but
	// the last take one token.
	calm := true
	for i := 0; i < len(e.running); i++ {
		j := e.running[i]
		n := j.uncomputed()
		if e.c.ChunkedPrefill {
			n = min(n, b.budget)
		}
		for len(e.running) > i && !e.allocateBlocks(j, j.computed+n) {
			// Preempt the sequence admitted last: it loses its blocks, and waits before
			// all others.
			last := len(e.running) - 1
			victim := e.running[last]
			e.running = e.running[:last]
			e.release(victim)
			victim.computed, victim.state = 0, stateWaiting
			victim.Preempted++
			e.preempted++
			e.waiting.putBack(victim)
			if e.c.Batching == staticBatching {
				e.batch++ // it is still part of this batch
			}
			calm = false
		}
		if len(e.running) > i {
			b.put(j, n)
		}
	}
	if calm {
		e.admit(&b)
	}
	e.notePeak()
	e.reached.join(Covers{MaxDecoding: int(b.decode), MaxKVTokens: int(b.kv)})
	costs := e.costsOf(b.prefill + b.decode)
	e.now += costs.stepTimeOf(b.kv, b.prefill, b.decode, b.pairs)
	e.steps++
	e.computed += b.prefill
	e.ends = append(e.ends[:0], e.now)
	for _, j := range e.running {
		j.computed += j.planned
		if j.uncomputed() == 0 && j.generated < j.Output {
			j.generated++
			sink.Tokens(j, e.ends)
		}
	}
	e.retireFinished(sink)
}

// A batch is what one step computes.
type batch struct {
	budget              int
	kv, prefill, decode int64
	pairs               int64 // of a prompt token and one that it attends to
}

// put plans n tokens of j.
func (b *batch) put(j *Job, n int) {
	j.planned = n
	b.budget -= n
	b.kv += int64(j.computed + n)
	if j.isDecoding() {
		b.decode++
	} else {
		b.prefill += int64(n)
		b.pairs += int64(n)*int64(j.computed) + int64(n)*int64(n+1)/2
	}
}

// allocateBlocks makes sure that j has blocks for its first so many tokens, and makes
// those known to others that are then full. It does nothing when there is no
// room for all of them.
func (e *engineCore) allocateBlocks(j *Job, tokens int) bool {
	size := e.c.BlockSize
	more := blocksOf(tokens, size) - len(j.kvBlocks)
	if more > e.pool.available() {
		return false
	}
	from := j.computed / size // the first that may become full
	for ; more > 0; more-- {
		e.pool.allocate()
		j.kvBlocks = append(j.kvBlocks, keyless)
	}
	if e.c.PrefixCaching {
		for k := from; k < tokens/size; k++ {
			j.kvBlocks[k] = e.publish(j, k)
		}
	}
	return true
}

// publish makes a full block of a job known, and returns it. A block of this job alone is looked up again only after
// the job was preempted, which never happens in memory without a limit.
func (e *engineCore) publish(j *Job, k int) int32 {
	key := j.blockKey(k, e.c.BlockSize)
	if key&privateKey != 0 && e.c.KVTokens == 0 {
		return keyless
	}
	return e.pool.publish(key)
}

// mayAdmit says whether the head of the queue may be admitted, blocks and budget
// aside.
func (e *engineCore) mayAdmit() bool {
	if e.waiting.len() == 0 || len(e.running) >= e.c.MaxSeqs || e.blocked {
		return false
	}
	return e.c.Batching == continuousBatching || e.batch > 0
}

// admit takes jobs from the queue while there is room for them in the batch.
func (e *engineCore) admit(b *batch) {
	if e.c.Batching == staticBatching && len(e.running) == 0 && e.batch == 0 {
		e.batch = min(e.waiting.len(), e.c.MaxSeqs)
	}
	for b.budget > 0 && e.mayAdmit() {
		j := e.waiting.head()
		// The leading blocks that the cache has, at most one token less than the job.
		// They are in its list, but not yet its own.
		hits := 0
		j.kvBlocks = j.kvBlocks[:0]
		for most := (j.tokens() - 1) / e.c.BlockSize; e.c.PrefixCaching && hits < most; hits++ {
			n := e.pool.find(j.blockKey(hits, e.c.BlockSize))
			if n == keyless {
				break
			}
			j.kvBlocks = append(j.kvBlocks, n)
		}
		computed := max(hits*e.c.BlockSize, min(j.Reused, j.tokens()-1))
		n := j.tokens() - computed
		switch {
		case e.c.ChunkedPrefill:
			n = min(n, b.budget)
		case n > b.budget && (n <= e.c.MaxBatchTokens || b.prefill > 0):
			return // one that no budget is enough for goes without another prefill
		}
		room := e.pool.available() // the hits must not be evicted for the others
		for _, hit := range j.kvBlocks {
			if e.pool.nodes[hit].users == 0 {
				room--
			}
		}
		if blocksOf(computed+n, e.c.BlockSize)-hits > room {
			e.blocked = true
			return
		}
		e.waiting.pop()
		e.start(j, computed)
		e.allocateBlocks(j, j.computed+n)
		b.put(j, n)
	}
}

// start makes a job run, with the blocks that it shares and the KV of so many tokens.
func (e *engineCore) start(j *Job, computed int) {
	for _, n := range j.kvBlocks {
		e.pool.share(n)
	}
	j.computed, j.state = computed, stateRunning
	if j.unscheduled {
		j.unscheduled, j.Cached, j.started = false, j.computed, e.now
	}
	e.running = append(e.running, j)
	e.batch--
}

// retireFinished lets go of the jobs that are done.
func (e *engineCore) retireFinished(sink tokenSink) {
	e.running = slices.DeleteFunc(e.running, func(j *Job) bool {
		if j.generated < j.Output || j.computed < max(j.Prompt, 1) {
			return false
		}
		e.release(j)
		j.kvBlocks, j.state = nil, stateOver
		e.lastOver++
		sink.Finished(j, e.now)
		return true
	})
	if len(e.running) == 0 && e.waiting.len() == 0 {
		e.batch = 0
	}
}

// A crossing is where a sequence needs a block, or fills one, in a stretch.
type crossing struct{ step, seq int }

// decodeSteps does steps that decode every running sequence and nothing else, as
// many as are alike: each begins before the horizon, none but the last finishes
// a sequence, and blocks suffice. It is not for a step in which anything else
// may happen, and says so.
func (e *engineCore) decodeSteps(horizon Picos, sink tokenSink) bool {
	n := len(e.running)
	if n == 0 || n < e.c.MaxBatchTokens && e.mayAdmit() {
		return false
	}
	costs := e.costsOf(int64(n))
	s := decodeRun{costs: &costs, seqs: int64(n)}
	steps := int64(maxRun)
	for _, j := range e.running {
		if !j.isDecoding() {
			return false
		}
		steps = min(steps, int64(j.Output-j.generated))
		s.kv += int64(j.computed + 1)
	}
	steps = e.allocateForSteps(int(s.stepsBegunWithin(steps, horizon-e.now)))
	if steps == 0 {
		return false
	}
	e.ends = e.ends[:0]
	for i, at := int64(0), e.now; i < steps; i++ {
		at += s.step(i)
		e.ends = append(e.ends, at)
	}
	e.notePeak()
	e.reached.join(Covers{MaxDecoding: n, MaxKVTokens: int(s.kv + s.seqs*(steps-1))})
	e.now = e.ends[steps-1]
	e.steps += steps
	for _, j := range e.running {
		j.computed += int(steps)
		j.generated += int(steps)
		sink.Tokens(j, e.ends)
	}
	e.retireFinished(sink)
	return true
}

// allocateForSteps gives the running their blocks for so many steps, in the order in which
// single steps would, and returns for how many of them the blocks suffice.
func (e *engineCore) allocateForSteps(steps int) int64 {
	size := e.c.BlockSize
	list := e.crossings[:0]
	for i, j := range e.running {
		// The token of step s is the (computed+s+1)th: it needs a block when it
		// is the first in it, and fills one when it is the last.
		for s := (size - j.computed%size) % size; s < steps; s += size {
			list = append(list, crossing{s, i})
		}
		if size > 1 {
			for s := size - 1 - j.computed%size; s < steps; s += size {
				list = append(list, crossing{s, i})
			}
		}
	}
	e.crossings = list
	slices.SortFunc(list, func(a, b crossing) int {
		if a.step != b.step {
			return a.step - b.step
		}
		return a.seq - b.seq
	})
	room := e.pool.available()
	for i, c := range list {
		if (e.running[c.seq].computed+c.step)%size == 0 {
			if room--; room < 0 {
				steps = c.step
				list = list[:i]
				break
			}
		}
	}
	for _, c := range list {
		if c.step >= steps {
			break
		}
		// What allocateBlocks does, for one token.
		j := e.running[c.seq]
		tokens := j.computed + c.step + 1
		if tokens > len(j.kvBlocks)*size {
			e.pool.allocate()
			j.kvBlocks = append(j.kvBlocks, keyless)
		}
		if e.c.PrefixCaching && tokens%size == 0 {
			k := tokens/size - 1
			j.kvBlocks[k] = e.publish(j, k)
		}
	}
	return int64(steps)
}
