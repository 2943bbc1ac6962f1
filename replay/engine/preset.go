package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/replay/hardware"
)

// A Preset is an engine whose costs were fitted to published measurements of a
// real one, by least squares on the logarithms of simulated over published.
type Preset struct {
	Name   string
	Model  string
	About  string // hardware, source, and what the source does not say and was assumed
	Engine Config
	// Static are the costs under static batching, where the source measured that too;
	// else nil, and Engine's serve for both.
	Static *Costs

	Hardware Roofline // what it was measured on, decoding one sequence
	Cards    string   // the hardware in words, such as 8 × H100
	GPU      string   // one of them, by its name in [hardware.GPUs]; "" is not known
	// Covers is what the records had that it was fitted to; nil where that is not known, as of
	// published tables, or means nothing, as of a bound.
	Covers *Covers
	// Setup is what a roofline was made of; nil for an engine that was fitted.
	Setup *hardware.Setup
	// Warning says that the engine is far slower than its hardware, or no more than a
	// bound; else it is empty. Whatever uses the preset shows it.
	Warning string

	published []published
}

// tooSlow is how many times the floor of its hardware a token may take before an
// engine is said not to be one of that hardware. Presets of a single card take
// 1.4 to 1.6 times.
const tooSlow = 2

// Warn is the warning of the preset's engine at these costs, or "": what it takes to
// decode one sequence, compared with the least that [Roofline.Predict] gives the hardware.
func (p *Preset) Warn(c Costs) string {
	if p.Setup != nil {
		return boundOf(p.Setup)
	}
	floor, err := p.Hardware.Predict()
	if err != nil {
		return ""
	}
	ms := float64(c.stepTime(0, 0, 1)) / 1e9
	times := ms / floor.TPOTMS
	if times <= tooSlow {
		return ""
	}
	return fmt.Sprintf("the preset %s decodes %.2g times slower than the memory of its %s allows: a token of one "+
		"sequence takes %.1f ms, where reading %.0f GB of weights takes %.2f ms. That is the speed of %.2g of the %d "+
		"GPUs. Take no latency, throughput, capacity or cost of that hardware from it",
		p.Name, times, p.Cards, ms, floor.WeightBytes/1e9, floor.TPOTMS,
		float64(p.Hardware.GPUs)/times, p.Hardware.GPUs)
}

// published is what a source measured under a load; 0 is what it does not say.
type published struct {
	load   trial
	of     string // the part of the source, where it has several
	want   trialResult
	also   trialResult   // further figures of this load: shown, and not fitted
	engine func(*Config) // what it changed for this load
	beyond bool          // all of it is shown, and not fitted
}

// A FitPoint is one published figure and the simulated one.
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
			c = p.Batched(c)
		}
		got, err := of.load.Run(c)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", p.Name, of.load, err)
		}
		load := of.load.String()
		if of.of != "" {
			load += ", " + of.of
		}
		if c.Batching == staticBatching {
			load += ", static"
		}
		want, also := of.want.figures(), of.also.figures()
		for i, f := range got.figures() {
			if want[i].value > 0 {
				points = append(points, FitPoint{load, f.name, !of.beyond, want[i].value, f.value})
			}
			if also[i].value > 0 {
				points = append(points, FitPoint{load, f.name, false, also[i].value, f.value})
			}
		}
	}
	return points, nil
}

// Batched is c, an engine of the preset, with the costs that go with its batching.
func (p *Preset) Batched(c Config) Config {
	if p.Static != nil && c.Batching == staticBatching {
		c.Costs = *p.Static
	}
	return c
}

// RMSE is the root mean square of the natural logarithms of simulated over
// published: 0.1 is about 10 %.
func RMSE(points []FitPoint) float64 {
	sum := 0.0
	for _, p := range points {
		l := math.Log(p.Simulated / p.Published)
		sum += float64(l * l)
	}
	return math.Sqrt(sum / float64(max(len(points), 1)))
}

// Fitted are the points that the costs were fitted to.
func Fitted(points []FitPoint) []FitPoint {
	return slices.DeleteFunc(slices.Clone(points), func(p FitPoint) bool { return !p.Fitted })
}

// ErrUnknownPreset is the error for a name that no preset has.
var ErrUnknownPreset = errors.New("unknown preset")

// OpenPreset finds a preset by name; without one the error lists them.
func OpenPreset(name string) (Preset, error) {
	if name == "h100-llama-70b" {
		return Preset{}, errors.New("h100-llama-70b is now called document-h100-llama-70b: its figures are a " +
			"document's, 6.9 times slower than 8 × H100 can be. The bound of that hardware is " +
			"roofline-8xh100-llama-70b")
	}
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("%w: want one of %s", ErrUnknownPreset, strings.Join(names, ", "))
}
