package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"gonum.org/v1/gonum/mathext"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/page"
	"reprise/trace/sample"
)

// Values of [Row].Rules: scenarios of MLPerf Inference, by its rules of 2026-07-23
// (github.com/mlcommons/inference_policies, inference_rules.adoc, commit ac93e89).
const (
	rulesOffline = "mlperf-offline"
	rulesServer  = "mlperf-server"
	rulesSingle  = "mlperf-single-stream"
)

// allRules are those that a row may name.
var allRules = []string{rulesOffline, rulesServer, rulesSingle}

// What the rules ask of a run: all scenarios last 600 s, offline has at least 24,576
// samples, and server passes early stopping at a confidence of 99 % with a tolerance of 0.
// Single-stream has no limit: its result is an estimate of the 90th percentile of latency, by
// early stopping too.
const (
	singleShare      = 0.9
	singleRequests   = 65_536 // that are made ready: enough for 600 s unless one takes less than 9 ms
	mlperfDuration   = 600 * time.Second
	mlperfSamples    = 24_576
	mlperfConfidence = 0.99
)

// checkRules refuses a row that cannot be held to its rules, before anything is sent.
func (row *Row) checkRules() error {
	clauses := row.earlyClauses()
	switch {
	case row.Rules == rulesOffline && row.Load.Rate != allAtOnce:
		return fmt.Errorf("row %s: %s sends all samples at once: load: burst", row.Name, row.Rules)
	case row.Rules == rulesOffline && row.Requests > 0 && row.Requests < mlperfSamples:
		return fmt.Errorf("row %s: %s takes %s samples at least, and requests is %s", row.Name, row.Rules, page.Brief(mlperfSamples), page.Brief(row.Requests))
	case row.Rules == rulesSingle && row.Load != (Load{Concurrency: 1}):
		return fmt.Errorf("row %s: %s sends a request when the answer to the last is whole: load: sequential", row.Name, row.Rules)
	case row.Rules == rulesSingle && row.Requests > 0 && row.Requests < earlyStopping(1, singleShare):
		return fmt.Errorf("row %s: %s takes %d requests at least, and requests is %d", row.Name, row.Rules, earlyStopping(1, singleShare), row.Requests)
	case row.Rules == rulesSingle && row.Duration > 0 && row.Duration < mlperfDuration:
		return fmt.Errorf("row %s: %s lasts 600 s at least, and duration is %v: leave it out", row.Name, row.Rules, row.Duration)
	case row.Rules == rulesServer && (!strings.HasPrefix(row.Load.Rate, "poisson:") || row.rate() == 0):
		return fmt.Errorf("row %s: %s has Poisson arrivals, such as load: poisson:4", row.Name, row.Rules)
	case row.Rules == rulesServer && len(clauses) == 0:
		return fmt.Errorf("row %s: %s needs a contract with a percentile of ttft, e2e or tpot, such as p99 ttft <= 2s", row.Name, row.Rules)
	case row.Rules == rulesServer && row.Duration > 0 && row.Duration <= mlperfDuration:
		return fmt.Errorf("row %s: %s lasts 600 s at least, and duration is %v: leave it out, and as many requests are sent as that takes", row.Name, row.Rules, row.Duration)
	}
	return nil
}

// rate is that of a Poisson load per second, 0 of another.
func (row *Row) rate() float64 {
	p, err := arrival.ParseProcess(row.Load.Rate)
	if err != nil {
		return 0
	}
	return p.Rate()
}

// SettleRules sets how many requests a row under rules sends, where it does not say: as many
// as a server scenario takes to last 600 s, with 5 % to spare since arrivals are random, and
// the least that offline takes.
func (row *Row) SettleRules() {
	if row.Requests > 0 || row.Workload.Trace || isTrace(row.Workload.File) {
		return
	}
	switch row.Rules {
	case rulesOffline:
		row.Requests = mlperfSamples
	case rulesSingle: // as many as are answered in that time
		row.Requests, row.Duration = singleRequests, cmp.Or(row.Duration, mlperfDuration)
	case rulesServer:
		n := row.rate() * mlperfDuration.Seconds()
		row.Requests = int64(math.Ceil(n*1.05 + 4*math.Sqrt(n)))
	}
}

// A RulesOutcome says what a run, or several of a row, lack of the rules that they are held to.
type RulesOutcome struct {
	Rules string   `json:"rules"`
	Valid bool     `json:"valid"`
	Fails bool     `json:"fails"`           // surely, at 99 % confidence; else a longer run may be valid
	Lacks []string `json:"lacks,omitempty"` // in words

	EarlyStopping []EarlyStop `json:"early_stopping,omitempty"`
	// Estimates are the results of single-stream, of each run; none with fewer requests than one takes.
	Estimates []EarlyEstimate `json:"early_stopping_estimates,omitempty"`
}

// An EarlyEstimate bounds a percentile of latency from above at 99 % confidence: what MLPerf's
// single-stream reports in place of the percentile. Of n requests it is the t-th highest
// latency, with the largest t of which a server that just misses it would need no more than n
// requests to be told, as loadgen computes it.
type EarlyEstimate struct {
	Percentile float64 `json:"percentile"` // 90
	E2EMS      float64 `json:"e2e_ms"`     // the estimate, from sending
	Measured   float64 `json:"e2e_percentile_ms"`
	Requests   int64   `json:"requests"`
	Over       int64   `json:"discarded_requests"` // with a higher latency than the estimate's
}

// estimateEarly is that of the latencies of all requests, in nanoseconds, which it sorts. It is
// not ok where there are too few.
func estimateEarly(latencies []int64, share float64) (e EarlyEstimate, ok bool) {
	n := int64(len(latencies))
	t := int64(sort.Search(int(n), func(i int) bool { return earlyStopping(int64(i)+1, share) > n }))
	if t == 0 {
		return e, false
	}
	slices.Sort(latencies)
	order := sample.Sorted(latencies)
	return EarlyEstimate{Percentile: share * 100, E2EMS: float64(latencies[n-t]) / 1e6, Measured: float64(order.At(int64(share*1000), 1000)) / 1e6, Requests: n, Over: t - 1}, true
}

// An EarlyStop is MLPerf's criterion for one percentile: so many requests were over the limit,
// and with so many the run needs so many in all.
type EarlyStop struct {
	Clause   string `json:"clause"`
	Requests int64  `json:"requests"` // that succeeded or failed
	Over     int64  `json:"over_limit_requests"`
	Needed   int64  `json:"needed_requests"`

	share  float64
	within report.SLO // of one request
	origin int
}

// earlyClauses are the percentiles of a row's contract that a request is over, or is not.
func (row *Row) earlyClauses() (out []EarlyStop) {
	if row.Contract == nil {
		return nil
	}
	for i := range row.Contract.Clauses {
		c := &row.Contract.Clauses[i]
		timing, share, limit, ok := c.Limit()
		e := EarlyStop{Clause: c.Whole(), share: share, origin: timing.Origin}
		switch timing.Name {
		case "ttft":
			e.within.TTFT = &limit
		case "tpot":
			e.within.TPOT = &limit
		case "e2e":
			e.within.E2E = &limit
		default:
			ok = false // of no request, but of gaps or headers
		}
		if ok {
			out = append(out, e)
		}
	}
	return out
}

// rulesOf holds the run in a results file to the rules of its row, nil without any.
func (row *Row) rulesOf(s *report.Summary, path string) (*RulesOutcome, error) {
	if row.Rules == "" {
		return nil, nil
	}
	f, err := result.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return row.judgeRules(s, f.Reader())
}

// judgeRules holds a run to the rules of its row. A request that failed is over every limit.
func (row *Row) judgeRules(s *report.Summary, results trace.Reader[result.Result]) (*RulesOutcome, error) {
	out := &RulesOutcome{Rules: row.Rules}
	stops := row.earlyClauses()
	if row.Rules != rulesServer {
		stops = nil
	}
	var firstDue, lastDue int64
	var n int64
	var latencies []int64 // of single-stream
	err := trace.Each(results, func(_ int64, r *result.Result) error {
		end, _ := report.OutcomeOf(r)
		if before, after := s.Run.Window.Holds(r); before || after || end != report.Succeeded && end != report.Failed {
			return nil
		}
		if n++; n == 1 {
			firstDue, lastDue = r.DueNS, r.DueNS
		}
		firstDue, lastDue = min(firstDue, r.DueNS), max(lastDue, r.DueNS)
		d := report.Derive(r)
		if e2e := d.E2E[report.FromSent]; row.Rules == rulesSingle && end == report.Succeeded && e2e.OK {
			latencies = append(latencies, e2e.NS)
		}
		for i := range stops {
			e := &stops[i]
			e.Requests++
			if end == report.Failed || !d.Meets(&e.within, e.origin) {
				e.Over++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	lack := func(format string, args ...any) { out.Lacks = append(out.Lacks, fmt.Sprintf(format, args...)) }
	lasted := time.Duration(lastDue - firstDue) // a server scenario lasts until the last request is due
	if row.Rules == rulesSingle {
		lasted = time.Duration(*cmp.Or(s.DurationS, new(float64)) * 1e9)
		if failed := s.Requests.Failed; failed > 0 {
			lack("%s failed", page.Many(failed, "request"))
		}
		if e, ok := estimateEarly(latencies, singleShare); ok {
			out.Estimates = append(out.Estimates, e)
		} else {
			lack("an estimate of the p90 takes %d requests, and there were %s", earlyStopping(1, singleShare), page.Brief(n))
		}
	}
	if row.Rules == rulesOffline {
		lasted = time.Duration(*cmp.Or(s.DurationS, new(float64)) * 1e9)
		if n < mlperfSamples {
			lack("it takes %s samples, and there were %s", page.Brief(mlperfSamples), page.Brief(n))
		}
		if failed := s.Requests.Failed; failed > 0 {
			lack("%s failed", page.Many(failed, "sample"))
		}
	}
	if lasted < mlperfDuration {
		more := ""
		if n > 0 && lasted > 0 {
			more = fmt.Sprintf(": send about %s", page.Brief(int64(math.Ceil(1.1*float64(n)*float64(mlperfDuration)/float64(lasted)))))
		}
		lack("it takes 600 s, and %s requests took %s s%s", page.Brief(n), page.Number(*report.Rounded(lasted.Seconds(), 1e2)), more)
	}
	for i := range stops {
		e := &stops[i]
		e.Needed = earlyStopping(e.Over, e.share)
		switch missing := e.Needed - e.Requests; {
		case missing <= 0:
		case surelyOver(e.Over, e.Requests, e.share):
			out.Fails = true
			lack("%s is not met, at 99 %% confidence: %s of %s requests were over", e.Clause, page.Brief(e.Over), page.Brief(e.Requests))
		default:
			lack("%s is not settled at 99 %% confidence: %s of %s requests were over, which takes %s, %s more", e.Clause, page.Brief(e.Over), page.Brief(e.Requests), page.Brief(e.Needed), page.Brief(missing))
		}
	}
	out.EarlyStopping, out.Valid = stops, len(out.Lacks) == 0
	return out, nil
}

// earlyStopping is how many requests in all a run needs of which so many are over the limit of
// a percentile: the least h within it for which a server that just misses the percentile would
// have at most so many over of h+over, with a chance of 1 % (appendix "Early Stopping
// Criterion" of the rules: I(p; h, t+1) ≤ 1 − c, with d = 0 and c = 0.99).
func earlyStopping(over int64, share float64) int64 {
	enough := func(h int64) bool {
		return mathext.RegIncBeta(float64(h), float64(over+1), share) <= 1-mlperfConfidence
	}
	low, high := int64(0), int64(1) // the criterion holds at high and not at low
	for !enough(high) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high + over
}

// surelyOver says that more requests were over the limit than those of a server that just meets
// the percentile would be, but for a chance of 1 %.
func surelyOver(over, n int64, share float64) bool {
	return over > 0 && mathext.RegIncBeta(float64(over), float64(n-over+1), 1-share) <= 1-mlperfConfidence
}

// merge joins the outcomes of the runs of a row.
func (o *RulesOutcome) merge(more *RulesOutcome) *RulesOutcome {
	if o == nil || more == nil {
		return cmp.Or(o, more)
	}
	out := *o
	out.Valid, out.Fails = o.Valid && more.Valid, o.Fails || more.Fails
	for _, l := range more.Lacks {
		if !slices.Contains(out.Lacks, l) {
			out.Lacks = append(slices.Clone(out.Lacks), l)
		}
	}
	out.EarlyStopping = append(slices.Clone(o.EarlyStopping), more.EarlyStopping...)
	out.Estimates = append(slices.Clone(o.Estimates), more.Estimates...)
	return &out
}

// String says whether the rules were kept, and what is missing.
func (o *RulesOutcome) String() string {
	if o.Valid {
		return "valid under the rules of " + o.Rules + o.estimated()
	}
	return "NOT valid under the rules of " + o.Rules + ": " + strings.Join(o.Lacks, "; ")
}

// estimated is what single-stream reports, of each run.
func (o *RulesOutcome) estimated() (out string) {
	for _, e := range o.Estimates {
		out += fmt.Sprintf("; p%g E2E by early stopping %s ms (the percentile itself is %s)", e.Percentile, figure(e.E2EMS), figure(e.Measured))
	}
	return out
}
