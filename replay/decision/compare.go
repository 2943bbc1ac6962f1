package decision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"

	"reprise/replay/bench"
	"reprise/replay/contract"
	"reprise/replay/engine"
)

// MostRows is how many requests of a workload are played: it bounds the time that a
// comparison takes.
const MostRows = 20_000

// leastRows is how many requests a p95 needs to mean something.
const leastRows = 200

const (
	rounds       = 2    // of arrivals, whose mean counts
	leastTTFT    = 4.0  // s, of the contract
	ttftHeadroom = 2.0  // of the contract over the p95 of TTFT at lightLoad
	lightLoad    = 0.1  // of the rate that is expected to be possible
	changesLoad  = 0.85 // of the reference's capacity, at which changes are compared
)

var sideNames = [2]string{"reference", "candidate"}

// Options are the settings of [Compare].
type Options struct {
	// Told, when set, is told how many of the [Plays] are done. It is called by one
	// goroutine at a time.
	Told func(done int64)
}

// Plays is how many plays a comparison takes: sweeps, and the base and each change.
func Plays() int64 { return 2 * rounds * int64(2+len(Changes())) }

// Compare plays both workloads and says whether they lead to the same decisions.
func Compare(ctx context.Context, ref, cand *Workload, o Options) (Report, error) {
	r := Report{Schema: schema, Engine: baseAbout, Reference: len(ref.Rows), Candidate: len(cand.Rows), Changes: []ChangeResult{}}
	for side, w := range [2]*Workload{ref, cand} {
		if len(w.Rows) < leastRows {
			return r, fmt.Errorf("the %s has %d requests: decisions need %d or more", sideNames[side], len(w.Rows), leastRows)
		}
	}
	p := &plays{ctx: ctx, told: o.Told, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	expected := ref.expectedRate()
	light, err := P95(ctx, ref, BaseFleet(), lightLoad*expected, 1)
	if err != nil {
		return r, err
	}
	limit := math.Max(leastTTFT, math.Ceil(ttftHeadroom*light/1000))
	clause := "p95 ttft <= " + strconv.FormatFloat(limit, 'g', -1, 64) + "s"
	terms, err := contract.Parse("", []byte("clauses: ['"+clause+"']"))
	if err != nil {
		return r, err
	}
	r.Contract = clause
	if err := p.capacities(&r, &terms, [2]*Workload{ref, cand}, expected); err != nil {
		return r, err
	}
	r.RateRPS = rounded(changesLoad * r.Capacity.Ref)
	err = p.effects(&r, [2]*Workload{ref, cand})
	r.judge()
	return r, err
}

// expectedRate is a rate near what the base can take: without hits, with full batches.
func (w *Workload) expectedRate() float64 {
	f := BaseFleet()
	c := &f.Engine.Costs
	var work engine.Picos
	for i := range w.Rows {
		work += c.PrefillToken*engine.Picos(w.Rows[i].InputTokens) + c.DecodeSeq*engine.Picos(w.Rows[i].OutputOr(0)) + c.Request
	}
	seconds := work.Duration().Seconds() / float64(len(w.Rows))
	return rounded(float64(f.Replicas) / seconds)
}

// rounded cuts a rate to three digits, so that it can be said and typed again.
func rounded(rate float64) float64 {
	digits := math.Pow(10, 2-math.Floor(math.Log10(rate)))
	return math.Round(rate*digits) / digits
}

// plays makes as many at once as there are processors.
type plays struct {
	ctx   context.Context
	told  func(done int64)
	slots chan struct{}

	wait sync.WaitGroup
	mu   sync.Mutex
	done int64
	err  error
}

// run makes one play when there is room.
func (p *plays) run(what func(ctx context.Context) error) {
	p.wait.Go(func() {
		p.slots <- struct{}{}
		defer func() { <-p.slots }()
		err := p.ctx.Err()
		if err == nil {
			err = what(p.ctx)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil && p.err == nil {
			p.err = err
		}
		p.done++
		if p.told != nil {
			p.told(p.done)
		}
	})
}

// finish waits for all plays.
func (p *plays) finish() error {
	p.wait.Wait()
	return p.err
}

// capacities sweeps both workloads, once for each round.
func (p *plays) capacities(r *Report, terms *contract.Contract, both [2]*Workload, expected float64) error {
	var loads [2][rounds]float64
	for side, w := range both {
		for round := range rounds {
			p.run(func(ctx context.Context) (err error) {
				loads[side][round], err = Capacity(ctx, w, terms, bench.Ladder{From: expected}, uint64(round)+1)
				if errors.Is(err, errNoLoad) {
					err = fmt.Errorf("%w for the %s: %s, by %s", err, sideNames[side], r.Contract, baseAbout)
				}
				return err
			})
		}
	}
	if err := p.finish(); err != nil {
		return err
	}
	for round := range rounds {
		r.Capacity.Ref += loads[0][round] / rounds
		r.Capacity.Cand += loads[1][round] / rounds
	}
	return nil
}

// effects plays every change in rounds, each beside the base with the same arrivals.
func (p *plays) effects(r *Report, both [2]*Workload) error {
	changes := append([]Change{{"", func(*engine.FleetConfig) {}}}, Changes()...)
	p95 := make([][2][rounds]float64, len(changes))
	for i, change := range changes {
		for side, w := range both {
			for round := range rounds {
				p.run(func(ctx context.Context) (err error) {
					f := BaseFleet()
					change.Set(&f)
					p95[i][side][round], err = P95(ctx, w, f, r.RateRPS, uint64(round)+1)
					return err
				})
			}
		}
	}
	if err := p.finish(); err != nil {
		return err
	}
	for i, change := range changes[1:] {
		var effects [2]Effect
		for side := range effects {
			for round := range rounds {
				effects[side] = append(effects[side], math.Log(p95[i+1][side][round]/p95[0][side][round]))
			}
		}
		r.Changes = append(r.Changes, ChangeResult{Name: change.Name, Ref: effects[0].Percent(), Cand: effects[1].Percent(),
			Decides: effects[0].Decides(), SameSign: effects[0].SameSign(effects[1])})
	}
	return nil
}
