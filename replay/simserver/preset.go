package simserver

import (
	"fmt"
	"math"
	"strings"
)

// A Preset is an engine whose costs were fitted to published measurements of a
// real one, by least squares on the logarithms of simulated over published.
type Preset struct {
	Name   string
	Model  string
	About  string // hardware, source, and what the source does not say and was assumed
	Engine EngineConfig

	published []published
}

// published is what a source measured under a load; 0 is what it does not say.
type published struct {
	load   Trial
	want   TrialResult
	engine func(*EngineConfig) // what it changed for this load
	beyond bool                // shown, and not fitted
}

// A FitPoint is one published figure beside the simulated one.
type FitPoint struct {
	Load      string  `json:"load"`
	Metric    string  `json:"metric"`
	Fitted    bool    `json:"fitted"` // else shown for comparison alone
	Published float64 `json:"published"`
	Simulated float64 `json:"simulated"`
}

// Error is simulated over published, less one.
func (p FitPoint) Error() float64 { return p.Simulated/p.Published - 1 }

// Fit plays the loads of the source to the preset's engine, and returns every
// published figure beside what came out.
func (p Preset) Fit() ([]FitPoint, error) {
	var points []FitPoint
	for _, of := range p.published {
		c := p.Engine
		if of.engine != nil {
			of.engine(&c)
		}
		got, err := of.load.Run(c)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", p.Name, of.load, err)
		}
		load := of.load.String()
		if c.Batching == Static {
			load += ", static"
		}
		for _, m := range []struct {
			name      string
			want, got float64
		}{
			{"output tokens/s", of.want.OutputPerS, got.OutputPerS}, {"TTFT p50, ms", of.want.TTFTP50, got.TTFTP50},
			{"TTFT p99, ms", of.want.TTFTP99, got.TTFTP99}, {"ITL p50, ms", of.want.ITLP50, got.ITLP50}, {"E2E p50, ms", of.want.E2EP50, got.E2EP50},
		} {
			if m.want > 0 {
				points = append(points, FitPoint{load, m.name, !of.beyond, m.want, m.got})
			}
		}
	}
	return points, nil
}

// RMSE is the root mean square of the natural logarithms of simulated over
// published, of the points that were fitted: 0.1 is about 10 %.
func RMSE(points []FitPoint) float64 {
	sum, n := 0.0, 0
	for _, p := range points {
		if p.Fitted {
			l := math.Log(p.Simulated / p.Published)
			sum += float64(l * l)
			n++
		}
	}
	return math.Sqrt(sum / float64(max(n, 1)))
}

// OpenPreset finds a preset by name; without one the error lists them.
func OpenPreset(name string) (Preset, error) {
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("no such preset; there are %s", strings.Join(names, ", "))
}
