package report

import (
	"fmt"
	"time"
)

// A Verdict says whether the numbers describe the server. It is false when the
// client was late or saturated, or when the run was not the one asked for, and
// the reasons say which. A run without reasons is trustworthy.
type Verdict struct {
	Trustworthy bool     `json:"trustworthy"`
	Reasons     []Reason `json:"reasons"`
}

// A Reason is one thing that makes a run untrustworthy.
type Reason struct {
	Code     string  `json:"code"` // one of the Code constants
	Text     string  `json:"text"`
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"`
	Unit     string  `json:"unit"` // of both: ms, share, requests
}

// Codes of the reasons, in the order in which they are given.
const (
	CodeNoSamples   = "no_samples"      // nothing succeeded: nothing can be said
	CodeLagP50      = "send_lag_p50"    // the client sent late
	CodeLagP99      = "send_lag_p99"    //
	CodeLagP999     = "send_lag_p99_9"  //
	CodeLagDrift    = "send_lag_drift"  // the client fell further and further behind
	CodeCPU         = "client_cpu"      // the client had no cores to spare
	CodeGCPause     = "client_gc_pause" // the client stood still
	CodeHeldBack    = "held_back"       // the limit of requests in flight shaped the load
	CodeErrors      = "error_share"     // too many requests failed
	CodeEndedEarly  = "ended_early"     // the run was cut short
	CodeNotSent     = "not_sent"        // rows of the workload were never sent
	CodeSkipped     = "skipped"         // failures ended sessions, so that their turns were never sent
	CodeUnprepared  = "unprepared"      // no prompt could be made for rows of the workload
	CodeRowsMissing = "results_missing" // fewer results than the run had requests
)

// judge finds the reasons.
func judge(s *Summary, limits Limits) Verdict {
	j := judgement{reasons: []Reason{}}
	if s.Requests.Succeeded == 0 {
		j.add(CodeNoSamples, 0, 1, "requests", "no request succeeded, so nothing can be said of the server%s", cause(s))
	}
	j.lag(s, limits)
	run := &s.Run
	if cores := float64(run.Cores); limits.CPU >= 0 && cores > 0 && run.ClientCPU/cores >= limits.CPU {
		share := run.ClientCPU / cores
		j.add(CodeCPU, share, limits.CPU, "share",
			"the client used %.2f of %d cores; from %s on, its own waiting is in the latencies", run.ClientCPU, run.Cores, percent(limits.CPU))
	}
	if pause := time.Duration(run.GCPauseMaxNS); limits.GCPause >= 0 && pause > limits.GCPause {
		j.add(CodeGCPause, ms(pause), ms(limits.GCPause), "ms",
			"the client stood still for %s ms to collect garbage; the limit is %s ms", number(ms(pause)), number(ms(limits.GCPause)))
	}
	if run.HeldBack > 0 {
		j.add(CodeHeldBack, float64(run.HeldBack), 0, "requests",
			"%s waited for the limit of %d in flight, so the client shaped the load", many(run.HeldBack, "request"), run.InFlightLimit)
	}
	if share := s.Requests.ErrorShare; share != nil && limits.Errors >= 0 && *share > limits.Errors {
		j.add(CodeErrors, *share, limits.Errors, "share",
			"%s failed, %s of those that ended; the limit is %s%s", many(s.Requests.Failed, "request"), percent(*share), percent(limits.Errors), cause(s))
	}
	if n := s.Run.Skipped; n > 0 && limits.Errors >= 0 {
		if share := *ratio(n, n+s.Requests.Rows); share > limits.Errors {
			j.add(CodeSkipped, share, limits.Errors, "share",
				"%s %s not sent since a turn before failed, %s of the workload; the limit is %s", many(n, "later turn"), verb(n), percent(share), percent(limits.Errors))
		}
	}
	j.completeness(s)
	return Verdict{Trustworthy: len(j.reasons) == 0, Reasons: j.reasons}
}

type judgement struct{ reasons []Reason }

func (j *judgement) add(code string, measured, limit float64, unit, format string, args ...any) {
	j.reasons = append(j.reasons, Reason{code, fmt.Sprintf(format, args...), *rounded(measured, 1e9), *rounded(limit, 1e9), unit})
}

// lag checks the percentiles of the send lag, each through the largest lag
// where there are too few requests for it, and the drift.
func (j *judgement) lag(s *Summary, limits Limits) {
	lag := &s.Latency.SendLag
	for _, c := range []struct {
		code, name string
		value      *float64
		limit      time.Duration
	}{
		{CodeLagP50, "p50", lag.P50, limits.LagP50},
		{CodeLagP99, "p99", lag.P99, limits.LagP99},
		{CodeLagP999, "p99.9", lag.P999, limits.LagP999},
	} {
		value, what := c.value, fmt.Sprintf("the %s of the send lag", c.name)
		if value == nil {
			value, what = lag.Max, fmt.Sprintf("the largest send lag of %s, too few for a %s,", many(lag.Count, "request"), c.name)
		}
		if value != nil && c.limit >= 0 && *value > ms(c.limit) {
			j.add(c.code, *value, ms(c.limit), "ms", "%s is %s ms; the limit is %s ms", what, number(*value), number(ms(c.limit)))
		}
	}
	if d := s.LagDriftMS; d != nil && limits.LagDrift >= 0 && *d > ms(limits.LagDrift) {
		j.add(CodeLagDrift, *d, ms(limits.LagDrift), "ms",
			"the median send lag grew by %s ms from the first to the last quarter of the run; the limit is %s ms", number(*d), number(ms(limits.LagDrift)))
	}
}

// completeness checks that the run was the one that was asked for.
func (j *judgement) completeness(s *Summary) {
	run := &s.Run
	if run.EndedEarly != "" {
		j.add(CodeEndedEarly, float64(run.NotSent), 0, "requests", "the run ended early: %s", run.EndedEarly)
	}
	if n := max(run.NotSent, s.Requests.NotSent); n > 0 {
		j.add(CodeNotSent, float64(n), 0, "requests", "%s of the workload %s never sent", many(n, "request"), verb(n))
	}
	if n := run.Unprepared; n > 0 {
		j.add(CodeUnprepared, float64(n), 0, "requests", "no prompt could be made for %s of the workload: %s", many(n, "row"), run.Unready)
	}
	if due := run.Requests + run.Unprepared; due > s.Requests.all() {
		j.add(CodeRowsMissing, float64(s.Requests.all()), float64(due), "requests",
			"there are results of %s, but the run had %s", many(s.Requests.all(), "request"), count(due))
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
