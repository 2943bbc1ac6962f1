package calibrate

import (
	"math"
	"slices"

	"reprise/replay/engine"
	"reprise/replay/figure"
	"reprise/trace/sample"
)

// A Figure is a metric of one load, as measured and as the engine predicts it: a latency in
// milliseconds, or a rate per second.
type Figure struct {
	Metric    string  `yaml:"metric" json:"metric"` // such as p95_ttft, mean_itl, output_tokens_per_s
	Measured  float64 `yaml:"measured" json:"measured"`
	Predicted float64 `yaml:"predicted" json:"predicted"`
	// Values is how many the metric is over: requests, or gaps between tokens.
	Values int `yaml:"values" json:"values"`
	// Spread is the standard deviation between runs of the same load, as a share of the
	// measured figure; 0 where there was one run.
	Spread float64 `yaml:"spread,omitempty" json:"spread,omitempty"`
}

// Error is predicted over measured, less one.
func (f *Figure) Error() float64 { return f.Predicted/f.Measured - 1 }

// statistics are those of the times, and times what has them.
var (
	statistics = []figure.Statistic{figure.Mean, figure.P50, figure.P95, figure.P99}
	times      = []*figure.Subject{figure.TTFT, figure.ITL, figure.E2E}
)

// tokensPerS is the name of the throughput.
const tokensPerS = "output_tokens_per_s"

// known tells whether a calibration compares a figure.
func known(f figure.Figure) bool {
	return f.Subject == figure.OutputRate || slices.Contains(times, f.Subject) && slices.Contains(statistics, f.Statistic)
}

// statisticOf is a statistic of nanoseconds in order, in milliseconds.
func statisticOf(s figure.Statistic, sorted []int64) float64 {
	if s > 0 {
		o := sample.Sorted(sorted)
		num, den := s.Fraction()
		return float64(o.At(num, den)) / 1e6
	}
	sum := 0.0
	for _, v := range sorted {
		sum += float64(v)
	}
	return sum / float64(len(sorted)) / 1e6
}

// figures compares what was measured of the requests of a part with what an engine gave.
func (r *Record) figures(p *played, of part) []Figure {
	var measured, predicted struct{ ttft, itl, e2e []int64 }
	var tokens, answered int
	first, last := engine.Never, engine.Picos(0) // as measured, then as predicted
	begin, end := engine.Never, engine.Picos(0)
	for i := range r.requests {
		q := &r.requests[i]
		if !q.measured || !of(r, i) || math.IsNaN(p.e2e[i]) || math.IsNaN(q.e2e) {
			continue
		}
		tokens, answered = tokens+q.output, answered+1
		measured.ttft, predicted.ttft = append(measured.ttft, nanos(q.ttft)), append(predicted.ttft, nanos(p.ttft[i]))
		measured.e2e, predicted.e2e = append(measured.e2e, nanos(q.e2e)), append(predicted.e2e, nanos(p.e2e[i]))
		first, last = min(first, q.sent), max(last, q.sent+engine.Picos(q.e2e*1e12))
		begin, end = min(begin, p.sent[i]), max(end, p.sent[i]+engine.Picos(p.e2e[i]*1e12))
		if len(q.gaps) > 0 {
			measured.itl, predicted.itl = append(measured.itl, q.gaps...), append(predicted.itl, p.gaps[i]...)
		}
	}
	if answered == 0 {
		return nil
	}
	var out []Figure
	for k, t := range [][2][]int64{{measured.ttft, predicted.ttft}, {measured.itl, predicted.itl},
		{measured.e2e, predicted.e2e}} {
		slices.Sort(t[0])
		slices.Sort(t[1])
		for _, s := range statistics {
			if n := min(len(t[0]), len(t[1])); int64(n) >= s.Needed() {
				out = append(out, Figure{Metric: figure.Of(s, times[k]).String(), Measured: statisticOf(s, t[0]),
					Predicted: statisticOf(s, t[1]), Values: n})
			}
		}
	}
	if last > first && end > begin {
		out = append(out, Figure{Metric: tokensPerS, Measured: float64(tokens) / secondsOf(last-first),
			Predicted: float64(tokens) / secondsOf(end-begin), Values: answered})
	}
	return out
}

func nanos(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }

// A Level is the runs of one load, and how far the predicted figures are from the measured
// ones: each figure is the mean over the runs.
type Level struct {
	Load     string   `yaml:"load" json:"load"`
	Runs     int      `yaml:"runs" json:"runs"`
	Requests int      `yaml:"requests" json:"requests"` // that were compared, of all runs
	Figures  []Figure `yaml:"figures" json:"figures"`
}

// Figure finds a metric of the level.
func (l *Level) Figure(metric string) (Figure, bool) {
	i := slices.IndexFunc(l.Figures, func(f Figure) bool { return f.Metric == metric })
	if i < 0 {
		return Figure{}, false
	}
	return l.Figures[i], true
}

// levels compares the requests of a part with what an engine gives them, by load.
func levels(records []*Record, c engine.Config, of part) ([]Level, error) {
	all := make([][]Figure, len(records))
	errs := make([]error, len(records))
	each(len(records), func(k int) {
		p, err := records[k].play(c, true)
		if errs[k] = err; err == nil {
			all[k] = records[k].figures(&p, of)
		}
	})
	var out []Level
	for k, r := range records {
		if errs[k] != nil {
			return nil, errs[k]
		}
		i := slices.IndexFunc(out, func(l Level) bool { return l.Load == r.Level })
		if i < 0 {
			i = len(out)
			out = append(out, Level{Load: r.Level})
		}
		out[i].Runs++
		for j := range r.requests {
			if r.requests[j].measured && of(r, j) {
				out[i].Requests++
			}
		}
	}
	for i := range out {
		var runs [][]Figure
		for k, r := range records {
			if r.Level == out[i].Load {
				runs = append(runs, all[k])
			}
		}
		out[i].Figures = meanOf(runs)
	}
	return out, nil
}

// meanOf is the mean of each figure that all runs have, with the spread between them.
func meanOf(runs [][]Figure) []Figure {
	var out []Figure
	for _, f := range runs[0] {
		var of []Figure
		for _, run := range runs {
			if i := slices.IndexFunc(run, func(g Figure) bool { return g.Metric == f.Metric }); i >= 0 {
				of = append(of, run[i])
			}
		}
		n := float64(len(of))
		if len(of) < len(runs) {
			continue
		}
		mean := Figure{Metric: f.Metric}
		for _, g := range of {
			mean.Measured, mean.Predicted, mean.Values = mean.Measured+g.Measured/n, mean.Predicted+g.Predicted/n,
				mean.Values+g.Values
		}
		if n > 1 {
			squares := 0.0
			for _, g := range of {
				squares += (g.Measured - mean.Measured) * (g.Measured - mean.Measured)
			}
			mean.Spread = math.Sqrt(squares/(n-1)) / mean.Measured
		}
		out = append(out, mean)
	}
	return out
}
