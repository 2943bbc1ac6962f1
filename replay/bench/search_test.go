package bench

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/replay/contract"
	"reprise/replay/report"
)

// atLoad measures a level of a queue in virtual time as a sweep measures one of a server: by
// the same runs, and to the same end.
func (q prefillQueue) atLoad(s *Sweep, role string, load, limit float64, seed uint64) Level {
	q.share = load * prefillMS / 1e3
	m := newMeasurement(&s.Report, false)
	m.budget = s.Budget
	l := Level{Role: role, Load: load}
	for {
		q.measure(m, seed<<20|uint64(load*1000)<<4|uint64(m.runs), s.Requests, 10)
		l.Measured = m.values
		l.Contract = &report.ContractResult{Clauses: []report.ClauseResult{{Clause: m.terms.Clauses[0].String(), Unit: "ms", Measured: new(float64), Allowed: limit}}}
		m.remeasure(&l)
		if l.Outcome = outcomeFails; l.Contract.Holds {
			l.Outcome = outcomeHolds
		}
		l.Sure, _ = m.sure(l.Contract, searchConfidence, nil)
		if *l.Contract.Clauses[0].Measured > farBeyond*l.Contract.Clauses[0].Allowed {
			l.Outcome, l.Sure = outcomeSaturated, true
		}
		if s.enough(m, &l) || s.spent(m) || l.Outcome == outcomeSaturated {
			return l
		}
	}
}

// Of 100 sweeps with a precision, the interval of the highest load holds the truth in 90 or
// more. The short form has 20 seeds and a smaller budget. docs/sweep.md has the table of
// the long one.
func TestSearchHoldsTheTruth(t *testing.T) {
	seeds, budget := 20, int64(8_000)
	if os.Getenv("REPRISE_TEST_STATISTICS") != "" {
		seeds, budget = 100, 50_000
	}
	var table strings.Builder
	for _, c := range []struct {
		at         prefillQueue // the limit is the true percentile there, so that this is the highest load
		percentile int          // index into ttftPercentiles
	}{{prefillQueue{"poisson", .8}, 2}, {prefillQueue{"poisson", .5}, 0}, {prefillQueue{"gamma", .5}, 1}, {prefillQueue{"sessions", .8}, 1}} {
		truth := c.at.share * 1e3 / prefillMS
		clause := fmt.Sprintf("p%g ttft <= %.1fms", 100*ttftPercentiles[c.percentile], queueTruths[c.at][c.percentile])
		terms, err := contract.Parse("c", []byte("clauses: ["+clause+"]"))
		if err != nil {
			t.Fatal(err)
		}
		s := Sweep{Precision: .1, Budget: budget, Requests: 1000, Duration: time.Second, Report: report.Options{Contract: &terms},
			Ladder: Ladder{Loads: []float64{10, 20, 30, 45}, Resolution: .05}}
		var lock sync.Mutex
		holds, both, width, requests := 0, 0, 0.0, int64(0)
		eachOf(seeds, func(seed int) {
			var r SweepResult
			q := prefillQueue{arrivals: c.at.arrivals}
			for {
				load := s.Ladder.nextLoad(r.Levels)
				if load == 0 {
					break
				}
				r.Levels = append(r.Levels, q.atLoad(&s, roleLevel, load, queueTruths[c.at][c.percentile], uint64(seed)))
			}
			for range mostSearched {
				load := s.Ladder.nextSearched(r.Levels)
				if load == 0 {
					break
				}
				r.Levels = append(r.Levels, q.atLoad(&s, roleConfirm, load, queueTruths[c.at][c.percentile], uint64(seed)))
			}
			r.Highest.interval(r.Levels)
			h := &r.Highest
			lock.Lock()
			defer lock.Unlock()
			for i := range r.Levels {
				requests += r.Levels[i].Measured
			}
			if (h.Low == nil || *h.Low <= truth) && (h.High == nil || truth <= *h.High) {
				holds++
			}
			if h.Low != nil && h.High != nil {
				both++
				width += (*h.High - *h.Low) / truth
			}
		})
		fmt.Fprintf(&table, "| %s | %s | %.2f | %d of %d | %d | %.1f %% | %d |\n", c.at.arrivals, clause, truth, holds, seeds, both, 100*width/math.Max(float64(both), 1), requests/int64(seeds))
		if holds < seeds*9/10 || both < seeds*9/10 {
			t.Errorf("%s, %s: %d of %d intervals have two ends, and %d hold the truth", c.at.arrivals, clause, both, seeds, holds)
		}
	}
	t.Log("\n" + table.String())
}
