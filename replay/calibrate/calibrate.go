package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"reprise/replay/engine"
)

// Stated are settings of the server that its operator knows. What is 0 is taken from what
// the server stated when it was recorded, else fitted or left at its default.
type Stated struct {
	BlockSize, KVTokens, MaxSeqs, MaxBatchTokens int
}

// A Calibration is an engine that was fitted to records, and how far it can be relied on.
type Calibration struct {
	Model  string
	Engine engine.Config

	Parameters []Parameter
	Residual   float64 // root mean square of the logarithms of predicted over measured times, of what was fitted to
	HeldOut    HeldOut
	Sources    []Source
	Covers     engine.Covers // what the records had: beyond it the engine extrapolates
	Design     Design
}

// HeldOut is how far the engine is from requests that it was not fitted to. Its engine is
// another than that of the [Calibration]: one that was fitted without them.
type HeldOut struct {
	Method string  `yaml:"method" json:"method"`
	Levels []Level `yaml:"levels" json:"levels"`
}

// A Source is one recorded run that was fitted to.
type Source struct {
	File      string `yaml:"file" json:"file"`
	Load      string `yaml:"load" json:"load"`
	Requests  int    `yaml:"requests" json:"requests"`
	Workload  string `yaml:"workload_digest,omitempty" json:"workload_digest,omitempty"`
	Started   string `yaml:"started,omitempty" json:"started,omitempty"`
	Server    string `yaml:"server,omitempty" json:"server,omitempty"`
	Recorded  string `yaml:"recorded_by" json:"recorded_by"`
	Untrusted string `yaml:"not_trustworthy,omitempty" json:"not_trustworthy,omitempty"`
}

// Fit fits an engine to records of one server. told, when set, is told of each step, and how many fits are still to be
// made, with that of the step. Each takes about as long as the first.
func Fit(ctx context.Context, records []*Record, s Stated, told func(step string, fits int)) (*Calibration, error) {
	if err := oneServer(records); err != nil {
		return nil, err
	}
	if told == nil {
		told = func(string, int) {}
	}
	told("fitting all requests", 1+heldOutFits(records))
	f, err := fitEngine(ctx, records, s, whole)
	if err != nil {
		return nil, err
	}
	if err := f.measureIntervals(); err != nil {
		return nil, err
	}
	out := &Calibration{Model: modelOf(records), Engine: f.config, Residual: math.Sqrt(f.loss),
		Parameters: f.parameters()}
	for _, r := range records {
		out.Sources = append(out.Sources, r.source())
		r.cover(&out.Covers)
	}
	if out.HeldOut, err = heldOut(ctx, records, s, told); err != nil {
		return nil, err
	}
	told("designing further loads", 0)
	out.Design, err = f.design()
	return out, err
}

// unknownModel is the name of a model that no record names.
const unknownModel = "calibrated"

func modelOf(records []*Record) string {
	for _, r := range records {
		if m := r.About.Model; m != "" {
			return m
		}
	}
	return unknownModel
}

func (r *Record) source() Source {
	s := Source{File: r.Name, Load: r.Level, Requests: len(r.requests), Workload: r.About.Workload,
		Started: r.About.Started, Recorded: "reprise " + r.About.Version, Untrusted: r.Untrusted}
	if r.About.Read != nil {
		s.Recorded = r.About.Read.Tool
	}
	if e := r.About.Environment; e != nil && len(e.Servers) == 1 {
		s.Server = e.Servers[0].Engine + " " + e.Servers[0].Version
	}
	if r.About.Simulated != "" {
		s.Server = r.About.Simulated
	}
	return s
}

// cover widens c to what the record has.
func (r *Record) cover(c *engine.Covers) {
	p := r.peak()
	c.MaxInFlight, c.MaxDecoding, c.MaxKVTokens = max(c.MaxInFlight, p.inFlight), max(c.MaxDecoding, p.decoding),
		max(c.MaxKVTokens, p.kv)
	for i := range r.requests {
		c.MaxPromptTokens, c.MaxOutputTokens = max(c.MaxPromptTokens, r.requests[i].input),
			max(c.MaxOutputTokens, r.requests[i].output)
	}
}

// fewLoads is from how many loads on each is predicted by a fit to the others.
const fewLoads = 3

// loadsOf are the loads of records, in their order.
func loadsOf(records []*Record) (loads []string) {
	for _, r := range records {
		if !slices.Contains(loads, r.Level) {
			loads = append(loads, r.Level)
		}
	}
	return loads
}

// heldOutFits is how many fits [heldOut] makes.
func heldOutFits(records []*Record) int {
	if loads := len(loadsOf(records)); loads >= fewLoads {
		return loads
	}
	return 1
}

// heldOut fits without some requests, and predicts these. Of three loads and more each is
// predicted by a fit to the others; of fewer, the second half of the requests of each by a
// fit to the first halves.
func heldOut(ctx context.Context, records []*Record, s Stated, told func(string, int)) (HeldOut, error) {
	loads := loadsOf(records)
	if len(loads) < fewLoads {
		told("fitting the first halves, to predict the second", 1)
		f, err := fitEngine(ctx, records, s, firstHalf)
		if err != nil {
			return HeldOut{}, err
		}
		l, err := levels(records, f.config, secondHalf)
		return HeldOut{"the second half of each run, predicted by a fit to the first halves", l}, err
	}
	out := HeldOut{Method: "each load, predicted by a fit to the others"}
	for i, load := range loads {
		told(fmt.Sprintf("fitting all but %s, to predict it (%d of %d)", load, i+1, len(loads)), len(loads)-i)
		var others, held []*Record
		for _, r := range records {
			if r.Level == load {
				held = append(held, r)
			} else {
				others = append(others, r)
			}
		}
		f, err := fitEngine(ctx, others, s, whole)
		if err != nil {
			return out, err
		}
		l, err := levels(held, f.config, whole)
		if err != nil {
			return out, err
		}
		out.Levels = append(out.Levels, l...)
	}
	return out, nil
}
