package report

import (
	"errors"
	"fmt"
	"math"
)

// A Contract is what a run has to keep to: clauses about latencies, errors,
// throughput, goodput, the cache and cost. [ReadContract] reads one, [Options]
// take it, and [Summary] says what came of it.
//
// Clauses are about the requests that are measured: those within the run's
// window. Latencies are of the requests that succeeded; one that failed has none,
// and counts for error_rate and goodput alone.
type Contract struct {
	Name    string
	Clauses []Clause

	// What cost is computed from. 0 is not known, and refused where a clause is
	// about cost.
	GPUs            int
	PricePerGPUHour float64 // in any currency
}

// check refuses a contract that the options do not complete.
func (c *Contract) check(slo SLO) error {
	if len(c.Clauses) == 0 {
		return errors.New("the contract has no clauses")
	}
	for i := range c.Clauses {
		clause := &c.Clauses[i]
		if clause.quantity == nil {
			return errors.New("a clause of the contract is empty")
		}
		switch clause.quantity.kind {
		case goodShare:
			if clause.slo.Empty() && slo.Empty() {
				return fmt.Errorf("%s: the clause has no slo, such as slo: ttft:200ms,tpot:50ms", clause)
			}
		case costOf:
			if !(c.PricePerGPUHour > 0 && c.PricePerGPUHour < math.MaxInt32) || c.GPUs <= 0 {
				return fmt.Errorf("%s: cost needs gpus and price_per_gpu_hour", clause)
			}
		}
	}
	return nil
}

// leavesErrorsOut tells whether failures cannot break the contract, which is about
// latencies.
func (c *Contract) leavesErrorsOut() bool {
	latencies := false
	for i := range c.Clauses {
		q := c.Clauses[i].quantity
		if q.name == errorRate || q.kind == goodShare {
			return false
		}
		latencies = latencies || q.latency()
	}
	return latencies
}

// Outcomes of a clause.
const (
	Holds    = "holds"
	Fails    = "fails"
	Unjudged = "cannot be judged" // the run has too few values, or none
)

// A ContractResult is a contract held against a run.
type ContractResult struct {
	Name    string         `json:"name"`
	Holds   bool           `json:"holds"`  // every clause does
	Judged  bool           `json:"judged"` // every clause could be
	Clauses []ClauseResult `json:"clauses"`
}

// A ClauseResult is a clause held against a run.
type ClauseResult struct {
	Clause   string   `json:"clause"`          // such as p95 ttft <= 1s
	Where    string   `json:"where,omitempty"` // which requests it is about; empty is all
	From     string   `json:"from,omitempty"`  // due or sent: where its latency begins
	SLO      string   `json:"slo,omitempty"`   // of goodput
	Outcome  string   `json:"outcome"`         // [Holds], [Fails] or [Unjudged]
	Why      string   `json:"why,omitempty"`   // it cannot be judged
	Measured *float64 `json:"measured"`        // null where the run cannot say
	Allowed  float64  `json:"allowed"`
	Unit     string   `json:"unit"` // of both: ms, share, 1/s, per million tokens

	// Margin is how far the measurement is within what is allowed, as a share of
	// that; below zero it is beyond. Null where nothing was measured, and where
	// nothing is allowed.
	Margin *float64 `json:"margin"`

	Samples int64 `json:"samples"`                  // values, or requests, that the measurement rests on
	Needed  int64 `json:"needed_samples,omitempty"` // by a percentile p: 1/(1−p)

	// Estimated is how many of the requests have counts of tokens that the server did
	// not make, where the measurement rests on them.
	Estimated int64 `json:"estimated_requests,omitempty"`
}

// Fails tells whether some clause does. A contract may fail and have clauses that
// cannot be judged.
func (r *ContractResult) Fails() bool {
	for i := range r.Clauses {
		if r.Clauses[i].Outcome == Fails {
			return true
		}
	}
	return false
}
