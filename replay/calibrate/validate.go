package calibrate

import (
	"math"
	"slices"

	"reprise/replay/figure"
)

// spreads is how many standard deviations between runs of one load a predicted figure may
// be off beside the limit: so much, runs of the server differ from each other.
const spreads = 2

// judgedValues is how many values must lie beyond a quantile for it to be judged: with
// fewer it differs from run to run by more than a prediction can be held to.
const judgedValues = 5

// A Validation holds later runs against what an engine predicts of them.
type Validation struct {
	Limit  float64     `json:"limit"` // of an error, as a share
	Levels []Validated `json:"levels"`
	// Untrusted says of the first run that cannot be trusted why; empty where all can.
	Untrusted string `json:"not_trustworthy,omitempty"`
}

// A Validated is a load with its figures, and those of them that are beyond the limit.
type Validated struct {
	Level
	Beyond []string `json:"beyond"`
	Judged []string `json:"judged"`
}

// Validate plays the requests of later runs to the engine. A figure is beyond the limit
// where its error is, and, of several runs of a load, more than twice the spread between
// them too. Quantiles with fewer than five values above them are shown and not judged.
func (c *Calibration) Validate(records []*Record, limit float64) (*Validation, error) {
	all, err := levels(records, c.Engine, whole)
	if err != nil {
		return nil, err
	}
	v := &Validation{Limit: limit}
	for _, r := range records {
		if v.Untrusted == "" && r.Untrusted != "" {
			v.Untrusted = r.Name + ": " + r.Untrusted
		}
	}
	for _, l := range all {
		one := Validated{Level: l, Beyond: []string{}, Judged: []string{}}
		for i := range l.Figures {
			f := &l.Figures[i]
			if !judged(f, l.Runs) {
				continue
			}
			one.Judged = append(one.Judged, f.Metric)
			if off := math.Abs(f.Error()); off > limit && off > spreads*f.Spread {
				one.Beyond = append(one.Beyond, f.Metric)
			}
		}
		v.Levels = append(v.Levels, one)
	}
	return v, nil
}

// judged tells whether a figure has values enough in each run.
func judged(f *Figure, runs int) bool {
	of, err := figure.Parse(f.Metric, known)
	share, percentile := of.Statistic.Share()
	return err != nil || !percentile || float64(f.Values/runs)*(1-share) >= judgedValues-1e-9
}

// Holds tells whether no figure that is judged is beyond the limit.
func (v *Validation) Holds() bool {
	return !slices.ContainsFunc(v.Levels, func(l Validated) bool { return len(l.Beyond) > 0 })
}

// Worst is the figure that is judged with the largest error, and its load.
func (v *Validation) Worst() (load string, worst Figure) {
	for i := range v.Levels {
		l := &v.Levels[i]
		for _, f := range l.Figures {
			if slices.Contains(l.Judged, f.Metric) &&
				(worst.Metric == "" || math.Abs(f.Error()) > math.Abs(worst.Error())) {
				load, worst = l.Load, f
			}
		}
	}
	return load, worst
}
