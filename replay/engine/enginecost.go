package engine

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Picos is an instant or a duration of an engine's clock, in picoseconds. It is
// an integer, so that a sum of steps is the same in any order,
// and fine enough for what one token of KV cache adds to a step.
type Picos int64

// Never is later than every instant of an engine: 53 days.
const Never Picos = 1 << 62

// picosOf converts a duration of up to [Never]; longer ones become that.
func picosOf(d time.Duration) Picos {
	if d >= time.Duration(Never/1000) {
		return Never
	}
	return Picos(d) * 1000
}

// Duration rounds to nanoseconds, half up.
func (p Picos) Duration() time.Duration {
	n := p / 1000
	if p%1000 >= 500 {
		n++
	}
	return time.Duration(n)
}

// Text writes a duration as [ParseCosts] reads it, in the largest unit of which there is one.
func (p Picos) Text() string {
	unit := costUnits[0]
	for _, u := range costUnits {
		if u.name != "µs" && float64(p) >= u.picos {
			unit = u
		}
	}
	return strconv.FormatFloat(float64(p)/unit.picos, 'f', -1, 64) + unit.name
}

// Costs are what the steps of an engine take, all in picoseconds:
//
//	step = max(Step + Expert × experts read + KVToken × tokens of KV in the batch,
//	           PrefillToken × prompt tokens computed + DecodeSeq × sequences that decode + Attention × pairs ÷ 2^20)
//
// the larger of the time to read memory, weights and KV, and the time to
// compute: the roofline of Williams, Waterman and Patterson (2009) with linear
// terms. Tokens of KV are those of each sequence of the step, with the ones that
// the step adds. Pairs are those of a prompt token computed and a token that it attends
// to; the experts read are those of [Config].Experts that are different, on average, when
// each token takes its own. Fitted engines have neither.
type Costs struct {
	Step         Picos // of reading the weights, whatever the batch
	KVToken      Picos // of reading the KV of one token
	PrefillToken Picos // of computing one token of a prompt
	DecodeSeq    Picos // of computing one token of an answer
	// Request is the time from the arrival of a request until the scheduler sees
	// it: HTTP, tokenising, handing over. It delays one request and no step.
	Request Picos
	// Attention is the time of 2^20 pairs, and Expert that of reading one expert of each
	// layer.
	Attention, Expert Picos
}

// maxStep bounds what a step may take, 1,000 s, so that sums do not overflow.
const maxStep Picos = 1e15

// maxRun is how many steps are added up at once.
const maxRun = 4096

// shortRun is up to how many steps it takes less time to add them up than to search for
// the last.
const shortRun = 16

// fields names the costs for people.
func (c *Costs) fields() []costField {
	return []costField{{"step", &c.Step}, {"kv-token", &c.KVToken}, {"prefill-token", &c.PrefillToken},
		{"decode-seq", &c.DecodeSeq}, {"request", &c.Request}, {"attention", &c.Attention}, {"expert", &c.Expert}}
}

type costField struct {
	name  string
	value *Picos
}

// physical is how many of the fields, the last, only a roofline has.
const physical = 2

// costUnits are in picoseconds; that which ends the others is last.
var costUnits = []struct {
	name  string
	picos float64
}{{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"µs", 1e6}, {"ms", 1e9}, {"s", 1e12}}

// String writes the costs as [ParseCosts] reads them.
func (c Costs) String() string {
	var parts []string
	fields := c.fields()
	for i, f := range fields {
		if i >= len(fields)-physical && *f.value == 0 {
			continue
		}
		parts = append(parts, f.name+"="+f.value.Text())
	}
	return strings.Join(parts, ",")
}

// ParseCosts changes the costs that a text such as "step=5ms,kv-token=40ns"
// names: step, kv-token, prefill-token, decode-seq, request, attention, expert, each with
// ps, ns, us, ms or s.
func ParseCosts(text string, c Costs) (Costs, error) {
	for i, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		var to *Picos
		for _, f := range c.fields() {
			if f.name == name {
				to = f.value
			}
		}
		if !ok || to == nil {
			return c, fmt.Errorf("part %d is not one of step, kv-token, prefill-token, decode-seq and request, with "+
				"= and a time", i+1)
		}
		var picos Picos
		ok = false
		for _, u := range costUnits { // the first that fits: one that ends others is last
			if number, has := strings.CutSuffix(value, u.name); has {
				v, err := strconv.ParseFloat(number, 64)
				v = math.Round(v * u.picos)
				picos, ok = Picos(v), err == nil && v >= 0 && v <= float64(maxStep)
				break
			}
		}
		if !ok {
			return c, fmt.Errorf("%s: not a time such as 40ns, 2.5us or 5ms, of at most 1,000 s", name)
		}
		*to = picos
	}
	return c, c.check()
}

func (c *Costs) check() error {
	for _, v := range []Picos{c.Step, c.KVToken, c.PrefillToken, c.DecodeSeq, c.Request, c.Attention, c.Expert} {
		if v < 0 {
			return errors.New("simulated engine: a cost is negative")
		}
		if v > maxStep {
			return errors.New("simulated engine: a cost is above 1,000 s")
		}
	}
	return nil
}

// times is n × p, and no more than maxStep.
func times(p Picos, n int64) Picos {
	if n <= 0 {
		return p * Picos(n)
	}
	if high, low := bits.Mul64(uint64(p), uint64(n)); high == 0 && low <= uint64(maxStep) {
		return Picos(low)
	}
	return maxStep
}

// stepTime is what a step takes that attends to nothing but for its KV.
func (c *Costs) stepTime(kv, prefill, decode int64) Picos {
	return c.stepTimeOf(kv, prefill, decode, 0)
}

// stepTimeOf is what a step takes. Its Step has the experts that it reads.
func (c *Costs) stepTimeOf(kv, prefill, decode, pairs int64) Picos {
	compute := times(c.PrefillToken, prefill) + times(c.DecodeSeq, decode)
	if c.Attention > 0 {
		compute += min(Picos(float64(c.Attention)*(float64(pairs)/(1<<20))), maxStep)
	}
	return min(max(c.Step+times(c.KVToken, kv), compute), maxStep)
}

// A decodeRun is a run of steps that decode the same sequences, so that each has
// seqs tokens of KV more than the one before.
type decodeRun struct {
	costs    *Costs
	kv, seqs int64 // of the first step
}

// step is what step i takes, from 0.
func (s decodeRun) step(i int64) Picos { return s.costs.stepTime(s.kv+i*s.seqs, 0, s.seqs) }

// sum is what the first k steps take, k ≤ maxRun. Steps take compute until
// memory has grown above it, and memory from there on until the bound of a
// step; each part is an arithmetic series.
func (s decodeRun) sum(k int64) Picos {
	flat := s.countWhile(k, func(i int64) bool { return s.step(i) == s.step(0) })
	capped := s.countWhile(k, func(i int64) bool { return s.step(i) < maxStep })
	capped = max(capped, flat)
	n := capped - flat
	return Picos(flat)*s.step(0) + Picos(n)*s.step(flat) + times(s.costs.KVToken, s.seqs)*Picos(n*(n-1)/2) +
		Picos(k-capped)*maxStep
}

// countWhile is the number of the first k steps for which holds is true; it is true
// up to some step and false from there on.
func (s decodeRun) countWhile(k int64, holds func(i int64) bool) int64 {
	return int64(sort.Search(int(k), func(i int) bool { return !holds(int64(i)) }))
}

// stepsBegunWithin is how many of at most k steps begin before so long a time has passed;
// the first always does.
func (s decodeRun) stepsBegunWithin(k int64, within Picos) int64 {
	k = min(k, maxRun)
	// Beside other engines most runs are short: their steps are added up one by one.
	begun := min(k, shortRun)
	for i, at := int64(0), Picos(0); i < begun; i++ {
		if at >= within {
			return max(1, i)
		}
		at += s.step(i)
	}
	return max(1, begun+s.countWhile(k-begun, func(i int64) bool { return s.sum(begun+i) < within }))
}
