package fidelity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/trace/doc"
)

// measureAbout is what there is to know of a measure.
type measureAbout struct {
	name  string
	about string
	sides string      // what stands beside the distance
	form  measureForm // of the two sides
	limit float64     // by default, or noLimit
	small float64     // the limit for a small reference: growing, or 0 for the same
	first bool        // measured over the first requests: see [keptRows]
}

const (
	noLimit = -1
	growing = -1
)

// A measureForm is how a value is printed.
type measureForm uint8

const (
	asRatio measureForm = iota
	asNumber
	asCount
	asPercent
)

const noValue = "–"

// print prints v, or a dash when it is missing.
func (f measureForm) print(v *float64) string {
	switch {
	case v == nil:
		return noValue
	case f == asNumber:
		return doc.Number(*v)
	case f == asCount:
		return doc.Count(int64(*v))
	case f == asPercent:
		return doc.Percent(*v)
	}
	return doc.Number(*v)
}

// catalogue lists the measures in their order. The limits are what synthesis of two Mooncake traces, swapped among ten,
// keeps in the mean of several seeds.
var catalogue = []measureAbout{
	{"mrc_mae", "mean difference of the LRU hit ratio by block, over 61 capacities from 100 to 200,000 blocks",
		"mean hit ratio over the capacities", asRatio, 0.005, growing, false},
	{"mrc_max", "largest difference of the hit ratio over these capacities", "hit ratio where it is", asRatio,
		0.015, growing, false},
	{"hit_by_block", "difference of the hit ratio by block of a cache without limit", "hit ratio", asRatio,
		0.01, growing, false},
	{"hit_by_token", "difference of the hit ratio by token of a cache without limit", "hit ratio", asRatio,
		0.01, growing, false},
	{"hit_mean_over_requests", "difference of the mean hit ratio of a request, by block, without limit", "hit ratio",
		asRatio, 0.01, growing, false},
	{"hit_full_blocks_only", "difference of the hit ratio of full blocks alone, without limit", "hit ratio", asRatio,
		0.01, growing, false},
	{"hit_at_1000_blocks", "difference of the LRU hit ratio by block at 1,000 blocks", "hit ratio", asRatio,
		0.01, growing, false},
	{"input_ks", "Kolmogorov-Smirnov distance of input lengths", "median, tokens", asCount, 0.035, growing, false},
	{"input_w1", "Wasserstein-1 distance of input lengths, over the reference's mean", "mean, tokens", asNumber,
		noLimit, 0, false},
	{"output_ks", "Kolmogorov-Smirnov distance of output lengths", "median, tokens", asCount, 0.035, growing, false},
	{"output_w1", "Wasserstein-1 distance of output lengths, over the reference's mean", "mean, tokens", asNumber,
		noLimit, 0, false},
	{"rho_input_output", "difference of Spearman's rank correlation of input and output lengths", "correlation",
		asRatio, 0.03, growing, false},
	{"rho_hit_new", "difference of the rank correlation of hit blocks and new blocks", "correlation", asRatio,
		0.03, growing, false},
	{"rho_new_output", "difference of the rank correlation of new blocks and output lengths", "correlation", asRatio,
		0.03, growing, false},
	{"idc_log2", "mean absolute log2 of the ratio of the IDCs, at least 0.1 each, over the scales that can be compared",
		"geometric mean of the IDC over these scales", asNumber, 0.2, growing, false},
	{"iat_cv", "difference of the CV of the gaps between requests, over the reference's", "CV", asNumber,
		noLimit, 0, false},
	{"categories", "largest difference of the share of a reuse category", "share where it is", asPercent,
		0.01, growing, false},
	{"category_cold", "difference of the share of cold requests", "share", asPercent, noLimit, 0, false},
	{"category_duplicate", "difference of the share of duplicates", "share", asPercent, noLimit, 0, false},
	{"category_continuation", "difference of the share of continuations", "share", asPercent, noLimit, 0, false},
	{"category_template", "difference of the share of requests on a template", "share", asPercent, noLimit, 0, false},
	{"category_branch", "difference of the share of branches", "share", asPercent, noLimit, 0, false},
	{"turns_ks", "Kolmogorov-Smirnov distance of the turns of a session", "median", asCount, 0.05, growing, false},
	{"turns_p90", "difference of the turns that 90 % of sessions have at most, over the reference's", "turns", asCount,
		noLimit, 0, false},
	{"turns_p99", "difference of the turns that 99 % of sessions have at most, over the reference's", "turns", asCount,
		noLimit, 0, false},
	{"turns_top10_log2", "absolute log2 of the ratio of the mean turns of the ten longest sessions", "turns",
		asNumber, 0.35, 0, false},
	{"turns_max_log2", "absolute log2 of the ratio of the turns of the longest session", "turns",
		asCount, 0.6, 0, false},
	{"growth_p10", "difference of the 10th percentile of how many tokens longer a request is than its parent", "tokens",
		asNumber, noLimit, 0, true},
	{"growth_p50", "difference of the median of that growth", "tokens", asNumber, noLimit, 0, true},
	{"growth_p90", "difference of the 90th percentile of that growth", "tokens", asNumber, noLimit, 0, true},
	{"growth_ks", "Kolmogorov-Smirnov distance of the tokens that a prompt is longer than the one it builds on",
		"median, tokens", asCount, 0.08, growing, true},
	{"turn_gap_ks", "Kolmogorov-Smirnov distance of the time from turn to turn", "median, s", asNumber,
		0.05, growing, false},
	{"fanout", "difference of the share of requests that several others build on", "share", asPercent,
		0.01, growing, true},
	{"fanout_max", "difference of the most requests that build on one", "requests", asCount, noLimit, 0, true},
	{"top_block_log2", "absolute log2 of the ratio of uses of the most used block outside the global prefix", "uses",
		asCount, 0.6, 0, true},
	{"reuse_time_ks", "Kolmogorov-Smirnov distance of the time until a block is used again", "median, s", asNumber,
		0.05, growing, false},
	{"think_ks", "Kolmogorov-Smirnov distance of think times", "median, s", asNumber, noLimit, 0, false},
	{"route_round_robin", "largest difference of the hit ratio behind a round-robin router, over 12 fleets",
		"mean hit ratio over the fleets", asRatio, 0.015, growing, true},
	{"route_sticky", "largest difference of the hit ratio with each session on one replica, over 12 fleets",
		"mean hit ratio over the fleets", asRatio, 0.015, growing, true},
	{"route_prefix", "largest difference of the hit ratio behind a router by prefix and load, over 12 fleets",
		"mean hit ratio over the fleets", asRatio, 0.02, growing, true},
	{"route_sticky_gain", "difference of sticky's hit ratio over round-robin's, at least 0.01 each, at 8 replicas " +
		"of 5 % of the blocks, over the reference's", "sticky over round-robin", asNumber, 0.12, growing, true},
	{"queue_70_log2", "mean absolute log2 of the ratios of p50, p90 and p99 of a queue's TTFT at 70 % load", "p90, s",
		asNumber, 0.35, growing, true},
	{"queue_85_log2", "the same at 85 % load", "p90, s", asNumber, 0.35, growing, true},
	{"queue_95_log2", "the same at 95 % load", "p90, s", asNumber, 0.5, growing, true},
	{"token_cv_log2", "mean absolute log2 of the ratio of the CVs, at least 0.01 each, of input tokens in windows of " +
		"1 to 300 s",
		"CV at 1 s", asNumber, 0.2, growing, true},
	{"rate_idc_log2", "mean absolute log2 of the ratio of the IDCs, at least 0.1 each, of requests in windows of " +
		"1 to 300 s",
		"IDC at the widest", asNumber, 0.2, growing, true},
	{"token_acf", "largest difference of the autocorrelation of input tokens per second, at lags of 1 to 300 s",
		"autocorrelation at 3 s", asRatio, 0.1, growing, true},
	{"ticks", "larger difference of the share of gaps that are 0, and of the others' that are on the reference's clock",
		"share of the others on the clock", asPercent, 0.05, 0, true},
	{pairMatchName, "share of the candidate's requests whose exact pair of lengths the reference has, beyond what " +
		"chance gives",
		"share by chance; share found", asPercent, 0.005, 0, false},
	{uniquePairMatchName, "the same, of pairs that one request of the reference has", "share by chance; share found",
		asPercent, 0.005, 0, false},
	{linkageName, "share of requests with one of the reference's within 20 places and 5 % of both lengths, beyond " +
		"the share at a 25th of the requests, 41 to 200 places, from there",
		"share away from there; share found", asPercent, 0.05, 0.03, true},
	{chainExactName, "share of chains of three turns whose six lengths equal one of the reference's, beyond chance",
		"share by chance; share found", asPercent, 0, 0, true},
	{chainNearName, "share of chains of three turns whose six lengths are within 5 % of one's of the reference, " +
		"beyond chance",
		"share by chance; share found", asPercent, 0.005, 0, true},
	{"requests", "difference of the number of requests, over the reference's", "requests", asCount, noLimit, 0, false},
	{"input_tokens", "difference of all input tokens, over the reference's", "tokens", asCount, noLimit, 0, false},
	{"output_tokens", "difference of all output tokens, over the reference's", "tokens", asCount, noLimit, 0, false},
	{"duration_s", "difference of the duration, over the reference's", "s, from the first arrival to the last",
		asNumber, noLimit, 0, false},
}

// A reference needs smallRequests for the limits of a large one, and is never taken for one of fewer
// than leastRequests.
const (
	smallRequests = 5000
	leastRequests = 100
)

// MeasureNames lists the names of all measures in their order.
func MeasureNames() []string {
	names := make([]string, len(catalogue))
	for i, m := range catalogue {
		names[i] = m.name
	}
	return names
}

// measurePlace is where a measure stands in the catalogue, -1 if there is no such measure.
func measurePlace(name string) int {
	return slices.IndexFunc(catalogue, func(m measureAbout) bool { return m.name == name })
}

// aboutMeasure is the entry of a measure, without a description if there is no such measure.
func aboutMeasure(name string) measureAbout {
	if i := measurePlace(name); i >= 0 {
		return catalogue[i]
	}
	return measureAbout{name: name}
}

// Thresholds are the largest distances that a gate lets pass, by the name of
// the measure. A measure without one is not checked.
type Thresholds map[string]float64

// DefaultThresholds returns the thresholds of a faithful workload, for a reference of so
// many requests. Below 5,000 they grow as the error of a figure of so few does, with one over the
// root of their number, but for those of the longest and of copies.
func DefaultThresholds(requests int64) Thresholds {
	t := Thresholds{}
	few := math.Sqrt(smallRequests / float64(max(leastRequests, min(requests, smallRequests))))
	for _, m := range catalogue {
		switch {
		case m.limit == noLimit:
		case m.small == growing:
			t[m.name] = thousandths(m.limit * few)
		case m.small > 0 && requests < smallRequests:
			t[m.name] = m.small
		default:
			t[m.name] = m.limit
		}
	}
	return t
}

// thousandths rounds to three digits.
func thousandths(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64) // it was printed so
	return x
}

// copiesName stands for all of [copyMeasures] where a threshold is set.
const copiesName = "copies"

// Set changes one threshold by what a user writes: NAME=LIMIT, with a distance
// from 0 up, or NAME=off for no check. The name copies stands for all measures of copies,
// which a mirror and a slice fail by design.
func (t Thresholds) Set(s string) error {
	name, value, _ := strings.Cut(s, "=")
	if name == copiesName {
		for _, each := range copyMeasures {
			if err := t.Set(each + "=" + value); err != nil {
				return err
			}
		}
		return nil
	}
	if aboutMeasure(name).about == "" {
		return fmt.Errorf("want NAME=LIMIT or NAME=off, where NAME is copies or one of %s",
			strings.Join(MeasureNames(), ", "))
	}
	if value == "off" {
		delete(t, name)
		return nil
	}
	limit, err := strconv.ParseFloat(value, 64)
	if err != nil || !(limit >= 0) || math.IsInf(limit, 0) {
		return fmt.Errorf("%s: want a distance from 0 up, or off", name)
	}
	t[name] = limit
	return nil
}

// A Check is one measure held against its threshold.
type Check struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"` // the distance; null when it cannot be computed
	Limit float64  `json:"limit"`
	// OK is null when the check does not apply: the reference has nothing to
	// hold the candidate to. Where only the candidate lacks what is measured,
	// it is false.
	OK *bool `json:"ok"`
	// Why says why a check does not apply, or what a failed one points to.
	Why string `json:"why,omitempty"`
}

// Failed tells whether the check applies and does not hold.
func (c Check) Failed() bool { return c.OK != nil && !*c.OK }

// result is the check in a word or two.
func (c Check) result() string {
	switch {
	case c.OK == nil:
		return "not applicable"
	case *c.OK:
		return "✓ ok"
	}
	return "✕ FAIL"
}

// copyHint is said where lengths repeat those of the reference.
const copyHint = "the candidate repeats lengths of the reference; a mirror or a slice does so by design, " +
	"and is compared with --max copies=off"

// Gate holds the measures against thresholds, in the order of [MeasureNames]. A
// threshold without a measure fails.
func (f Report) Gate(t Thresholds) []Check {
	var checks []Check
	for _, m := range f.Measures {
		limit, asked := t[m.Name]
		if !asked {
			continue
		}
		c := Check{Name: m.Name, Value: m.Distance, Limit: limit, Why: m.Why}
		switch {
		case m.Distance != nil:
			ok := *m.Distance <= limit
			c.OK = &ok
			if !ok && slices.Contains(copyMeasures, m.Name) {
				c.Why = copyHint
			}
		case m.Ref != nil && m.Cand == nil:
			c.OK = new(bool)
		}
		checks = append(checks, c)
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if _, ok := f.Measure(name); !ok {
			checks = append(checks, Check{Name: name, Limit: t[name], OK: new(bool), Why: "there is no such measure"})
		}
	}
	return checks
}

// Failures returns the checks that failed.
func Failures(checks []Check) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return !c.Failed() })
}

// A Judged report has the checks of its gate, and whether none failed.
type Judged struct {
	Report
	Checks []Check `json:"checks"`
	OK     bool    `json:"ok"`
}

// Judged is f with the checks of its gate.
func (f Report) Judged(checks []Check) Judged {
	return Judged{f, append([]Check{}, checks...), len(Failures(checks)) == 0}
}
