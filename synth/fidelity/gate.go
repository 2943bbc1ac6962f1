package fidelity

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/trace/page"
)

// measureAbout is what there is to know of a measure.
type measureAbout struct {
	name  string
	about string
	sides string      // what stands beside the distance
	form  measureForm // of the two sides
	limit float64     // by default; 0 is none
}

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
		return page.Number(*v)
	case f == asCount:
		return page.Count(int64(*v))
	case f == asPercent:
		return page.Percent(*v)
	}
	return page.Number(*v)
}

// catalogue lists the measures in their order. The limits are what resynthesis
// of the Mooncake conversation trace from its own tuples, k-anonymised, kept,
// and what resampling of independent marginals did not; of the hit ratios, only
// that by block was tried so, and the other three have its limit.
var catalogue = []measureAbout{
	{"mrc_mae", "mean difference of the LRU hit ratio by block, over 61 capacities from 100 to 200,000 blocks", "mean hit ratio over the capacities", asRatio, 0.005},
	{"mrc_max", "largest difference of the hit ratio over these capacities", "hit ratio where it is", asRatio, 0},
	{"hit_by_block", "difference of the hit ratio by block of a cache without limit", "hit ratio", asRatio, 0.005},
	{"hit_by_token", "difference of that hit ratio by token", "hit ratio", asRatio, 0.005},
	{"hit_mean_over_requests", "difference of the mean over requests of that hit ratio", "hit ratio", asRatio, 0.005},
	{"hit_full_blocks_only", "difference of that hit ratio over full blocks only", "hit ratio", asRatio, 0.005},
	{"input_ks", "Kolmogorov-Smirnov distance of input lengths", "median, tokens", asCount, 0.035},
	{"input_w1", "Wasserstein-1 distance of input lengths, over the reference's mean", "mean, tokens", asNumber, 0},
	{"output_ks", "Kolmogorov-Smirnov distance of output lengths", "median, tokens", asCount, 0.035},
	{"output_w1", "Wasserstein-1 distance of output lengths, over the reference's mean", "mean, tokens", asNumber, 0},
	{"rho_input_output", "difference of Spearman's rank correlation of input and output lengths", "correlation", asRatio, 0.02},
	{"rho_hit_new", "difference of the rank correlation of hit blocks and new blocks", "correlation", asRatio, 0.02},
	{"rho_new_output", "difference of the rank correlation of new blocks and output lengths", "correlation", asRatio, 0.02},
	{"input_output_ks2d", "two-dimensional Kolmogorov-Smirnov distance of input and output lengths (Fasano and Franceschini)", "", asRatio, 0},
	{"idc_log2", "mean absolute log2 of the ratio of the IDCs, over the scales that can be compared", "geometric mean of the IDC over these scales", asNumber, 0.2},
	{"iat_cv", "difference of the CV of the gaps between requests, over the reference's", "CV", asNumber, 0},
	{"categories", "largest difference of the share of a reuse category", "share where it is", asPercent, 0.01},
	{"category_cold", "difference of the share of cold requests", "share", asPercent, 0},
	{"category_global", "difference of the share of requests that hit the global prefix only", "share", asPercent, 0},
	{"category_duplicate", "difference of the share of duplicates", "share", asPercent, 0},
	{"category_continuation", "difference of the share of continuations", "share", asPercent, 0},
	{"category_branch", "difference of the share of branches", "share", asPercent, 0},
	{"turns_ks", "Kolmogorov-Smirnov distance of the turns of a session", "median", asCount, 0.05},
	{"turn_gap_ks", "Kolmogorov-Smirnov distance of the time from turn to turn", "median, s", asNumber, 0.05},
	{"reuse_time_ks", "Kolmogorov-Smirnov distance of the time until a block is used again", "median, s", asNumber, 0.05},
	{"think_ks", "Kolmogorov-Smirnov distance of think times", "median, s", asNumber, 0},
	{"pair_match", "share of the candidate's requests whose exact pair of lengths the reference has, beyond what chance gives",
		"share by chance; share found", asPercent, 0.005},
	{"requests", "difference of the number of requests, over the reference's", "requests", asCount, 0},
	{"input_tokens", "difference of all input tokens, over the reference's", "tokens", asCount, 0},
	{"output_tokens", "difference of all output tokens, over the reference's", "tokens", asCount, 0},
	{"duration_s", "difference of the duration, over the reference's", "s, from the first arrival to the last", asNumber, 0},
}

// MeasureNames lists the names of all measures in their order.
func MeasureNames() []string {
	names := make([]string, len(catalogue))
	for i, m := range catalogue {
		names[i] = m.name
	}
	return names
}

// aboutMeasure is the entry of a measure, without a description if there is no such measure.
func aboutMeasure(name string) measureAbout {
	if i := slices.IndexFunc(catalogue, func(m measureAbout) bool { return m.name == name }); i >= 0 {
		return catalogue[i]
	}
	return measureAbout{name: name}
}

// Thresholds are the largest distances that a gate lets pass, by the name of
// the measure. A measure without one is not checked.
type Thresholds map[string]float64

// DefaultThresholds returns the thresholds of a faithful workload.
func DefaultThresholds() Thresholds {
	t := Thresholds{}
	for _, m := range catalogue {
		if m.limit > 0 {
			t[m.name] = m.limit
		}
	}
	return t
}

// Set changes one threshold by what a user writes: NAME=LIMIT, with a distance
// from 0 up, or NAME=off for no check.
func (t Thresholds) Set(s string) error {
	name, value, _ := strings.Cut(s, "=")
	if aboutMeasure(name).about == "" {
		return fmt.Errorf("want NAME=LIMIT or NAME=off, where NAME is one of %s", strings.Join(MeasureNames(), ", "))
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
		return "ok"
	}
	return "FAIL"
}

// copyHint is said where pairs of lengths repeat those of the reference.
const copyHint = "the candidate repeats pairs of lengths of the reference; a mirror or a slice does so by design, " +
	"and is compared with --max pair_match=off"

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
			if !ok && m.Name == "pair_match" {
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

// WriteJSON writes f with the checks of its gate, and whether none failed.
func (f Report) WriteJSON(w io.Writer, checks []Check) error {
	if checks == nil {
		checks = []Check{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Report
		Checks []Check `json:"checks"`
		OK     bool    `json:"ok"`
	}{f, checks, len(Failures(checks)) == 0})
}
