package report

import (
	"strings"

	"reprise/replay/result"
)

// A Contract is what a run has to keep to. Package contract reads them.
type Contract interface {
	// Check refuses a contract that cannot be judged where the report asks for the
	// objectives of slo.
	Check(slo SLO) error

	// Judge begins to hold a run against the contract. Goodput without objectives of
	// its own has those of slo. newEvidence makes what further evidence is kept in.
	Judge(run *result.Run, slo SLO, newEvidence func() *Evidence) Judge
}

// A Judge holds a run against a contract.
type Judge interface {
	// Add takes a result within the run's window that succeeded or failed.
	Add(r *result.Result, failed bool)

	// Result judges every clause. all is the evidence of all requests. The run took so
	// many nanoseconds; zeros tells whether a missing count of cached tokens is none.
	Result(all *Evidence, durationNS int64, zeros bool) *ContractResult
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

// leavesErrorsOut tells whether failures cannot break the contract, which is about
// latencies.
func (r *ContractResult) leavesErrorsOut() bool {
	latencies := false
	for i := range r.Clauses {
		c := &r.Clauses[i]
		if c.SLO != "" || strings.HasPrefix(c.Clause, "error_rate ") {
			return false
		}
		latencies = latencies || c.Unit == "ms"
	}
	return latencies
}
