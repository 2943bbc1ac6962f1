package twin

import (
	"math"

	"reprise/replay/engine"
)

// A Request is due at an instant, in ns from the begin of its run.
type Request struct {
	DueNS          int64
	Prompt, Output int32 // tokens
	// How long its first token took and how long all of it, from when it was due, in ns. 0 is
	// of a request that was not answered.
	TTFTNS, E2ENS int64
}

// An Engine prefills prompts in order of arrival and decodes all that have their first token,
// a token in each step.
type Engine struct {
	Costs  engine.Costs
	Seqs   int // that run at once; 0 is without a limit
	Budget int // tokens of a step
}

// A sequence is decoded.
type sequence struct {
	request int
	due     float64
	ends    float64 // when so many steps are over
	base    float64 // its KV tokens, less the steps that were over when it began
}

// A player is an engine with its state. Times are in ns.
type player struct {
	step, kvToken, prefillToken, decodeSeq, request float64

	seqs   int
	now    float64
	steps  float64
	base   float64    // of all that run
	runs   []sequence // a heap, the first to end at its top
	prompt []admitted // whose prompts end with the step

	first, last func(request int, tookNS int64)
}

// An admitted request has its first token at the end of the step.
type admitted struct {
	request int
	of      Request
}

// Answer answers requests, which are in the order in which they are due: the TTFT and E2E of each,
// in ns.
func (e *Engine) Answer(requests []Request) (ttft, e2e []int64) {
	ttft, e2e = make([]int64, len(requests)), make([]int64, len(requests))
	i := 0
	e.Play(func() (r Request, ok bool) {
		if ok = i < len(requests); ok {
			r, i = requests[i], i+1
		}
		return r, ok
	}, func(request int, took int64) { ttft[request] = took }, func(request int, took int64) { e2e[request] = took })
	return ttft, e2e
}

// Play answers the requests that next returns, until it is not ok, in the order in which they
// are due, and tells of each how long its first token took, and its last. Requests count from 0.
func (e *Engine) Play(next func() (r Request, ok bool), first, last func(request int, tookNS int64)) {
	p := player{step: float64(e.Costs.Step) / 1e3, kvToken: float64(e.Costs.KVToken) / 1e3, prefillToken: float64(e.Costs.PrefillToken) / 1e3,
		decodeSeq: float64(e.Costs.DecodeSeq) / 1e3, request: float64(e.Costs.Request) / 1e3, seqs: e.Seqs, first: first, last: last}
	if p.seqs == 0 {
		p.seqs = math.MaxInt
	}
	head, waits := next()
	left, taken := head.Prompt, 0 // of the head's prompt; requests before it
	for waits || len(p.runs) > 0 {
		if len(p.runs) == 0 && left == head.Prompt {
			p.now = max(p.now, float64(head.DueNS))
		}
		decode, prefill := len(p.runs), int32(0)
		kv := p.base + (p.steps+1)*float64(decode)
		for budget := e.Budget - decode; waits && float64(head.DueNS) <= p.now && budget > 0 && decode+len(p.prompt) < p.seqs; {
			part := min(left, int32(budget))
			prefill, left, budget = prefill+part, left-part, budget-int(part)
			kv += float64(head.Prompt - left)
			if left > 0 {
				break
			}
			p.prompt = append(p.prompt, admitted{taken, head})
			head, waits = next()
			left, taken = head.Prompt, taken+1
		}
		compute := p.prefillToken*float64(prefill) + p.decodeSeq*float64(decode)
		memory := p.step + p.kvToken*kv
		if prefill > 0 || len(p.prompt) > 0 {
			p.now, p.steps = p.now+max(memory, compute), p.steps+1
		} else {
			until := math.Inf(1)
			if waits && decode < p.seqs {
				until = float64(head.DueNS)
			}
			p.decode(memory, compute, until)
		}
		p.retire()
		p.start()
	}
}

// decode does steps that decode what runs and nothing else: until the first ends, or the
// first step that begins after an instant.
func (p *player) decode(memory, compute, until float64) {
	n := max(p.runs[0].ends-p.steps, 1)
	growth := 0.0 // of a step over the one before
	if memory > compute {
		growth = p.kvToken * float64(len(p.runs))
	}
	first := max(memory, compute)
	if wait := until - p.now; !math.IsInf(wait, 1) {
		steps := wait / first
		if growth > 0 { // n·first + growth·n(n−1)/2 = wait
			b := first - growth/2
			steps = (math.Sqrt(b*b+2*growth*max(wait, 0)) - b) / growth
		}
		n = min(n, max(math.Ceil(steps), 1))
	}
	p.now += n*first + growth*n*(n-1)/2
	p.steps += n
}

// retire lets go of what ended.
func (p *player) retire() {
	for len(p.runs) > 0 && p.runs[0].ends <= p.steps {
		s := p.pop()
		p.base -= s.base
		p.last(s.request, int64(p.now+p.request-s.due))
	}
}

// start gives first tokens.
func (p *player) start() {
	for _, a := range p.prompt {
		took := int64(p.now + p.request - float64(a.of.DueNS))
		p.first(a.request, took)
		if a.of.Output <= 1 {
			p.last(a.request, took)
		} else {
			s := sequence{a.request, float64(a.of.DueNS), p.steps + float64(a.of.Output-1), float64(a.of.Prompt) - p.steps}
			p.base += s.base
			p.push(s)
		}
	}
	p.prompt = p.prompt[:0]
}

// push and pop are those of package heap, without its interface: they are half of what a
// request costs.
func (p *player) push(s sequence) {
	p.runs = append(p.runs, s)
	h, i := p.runs, len(p.runs)-1
	for i > 0 && h[(i-1)/2].ends > s.ends {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = s
}

func (p *player) pop() sequence {
	h, last := p.runs, len(p.runs)-1
	top, s := h[0], h[last]
	p.runs = h[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && h[c+1].ends < h[c].ends {
			c++
		}
		if h[c].ends >= s.ends {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = s
	return top
}
