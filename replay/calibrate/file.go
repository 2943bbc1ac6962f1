package calibrate

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"reprise/replay/engine"
	"reprise/replay/figure"
	"reprise/trace/doc"
	"reprise/trace/fleet"
	"reprise/trace/strictyaml"
)

// schema names the layout of the file of a [Calibration].
const schema = "engine/1"

// header begins the file of an engine.
const header = `# An engine that reprise calibrate fitted to recorded requests, for --preset.
# It holds within what "covers" says; held_out says how far it was from requests that it
# was not fitted to. Latencies are in milliseconds.
`

// settingsFile are the settings of an engine as its file has them.
type settingsFile struct {
	BlockSize      int    `yaml:"block_size" json:"block_size"`
	KVTokens       int    `yaml:"kv_tokens" json:"kv_tokens"`
	MaxSeqs        int    `yaml:"max_num_seqs" json:"max_num_seqs"`
	MaxBatchTokens int    `yaml:"max_num_batched_tokens" json:"max_num_batched_tokens"`
	MaxWaiting     int    `yaml:"max_waiting" json:"max_waiting"`
	ChunkedPrefill bool   `yaml:"chunked_prefill" json:"chunked_prefill"`
	PrefixCaching  bool   `yaml:"prefix_caching" json:"prefix_caching"`
	Batching       string `yaml:"batching" json:"batching"`
	Costs          string `yaml:"costs" json:"costs"`
}

// document is the file of an engine.
type document struct {
	Schema     string        `yaml:"schema" json:"schema"`
	Model      string        `yaml:"model" json:"model"`
	Warning    string        `yaml:"warning,omitempty" json:"warning,omitempty"`
	Engine     settingsFile  `yaml:"engine" json:"engine"`
	Parameters []Parameter   `yaml:"parameters" json:"parameters"`
	Residual   float64       `yaml:"residual" json:"residual"`
	Covers     engine.Covers `yaml:"covers" json:"covers"`
	Sources    []Source      `yaml:"sources" json:"sources"`
	HeldOut    HeldOut       `yaml:"held_out" json:"held_out"`
}

func (c *Calibration) document() document {
	e := c.Engine
	return document{Schema: schema, Model: c.Model, Warning: c.Warning(), Parameters: c.Parameters,
		Residual: digits(c.Residual), Covers: c.Covers, Sources: c.Sources, HeldOut: c.HeldOut,
		Engine: settingsFile{e.BlockSize, e.KVTokens, e.MaxSeqs, e.MaxBatchTokens, e.MaxWaiting, e.ChunkedPrefill,
			e.PrefixCaching, e.Batching, e.Costs.String()}}
}

// MarshalJSON writes what the file has, and the design of further loads.
func (c *Calibration) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		document
		Design Design `json:"missing_loads"`
	}{c.document(), c.Design})
}

// Marshal writes the calibration as the text of its file, without the design of further
// loads.
func (c *Calibration) Marshal() ([]byte, error) {
	text, err := yaml.MarshalWithOptions(c.document(), yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("calibrate: the engine cannot be written as YAML: %w", err)
	}
	return append([]byte(header), text...), nil
}

// MarshalYAML writes a figure in one line.
func (f Figure) MarshalYAML() ([]byte, error) {
	out := fmt.Sprintf("{metric: %s, measured: %s, predicted: %s, values: %d", f.Metric, number(f.Measured),
		number(f.Predicted), f.Values)
	if f.Spread > 0 {
		out += ", spread: " + number(f.Spread)
	}
	return []byte(out + "}"), nil
}

// digits keeps four of a number.
func digits(v float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return 0
	}
	return v
}

func number(v float64) string {
	return strconv.FormatFloat(digits(v), 'f', -1, 64)
}

// Warning says that runs which were fitted to cannot be trusted; empty where all can.
func (c *Calibration) Warning() string {
	for _, s := range c.Sources {
		if s.Untrusted != "" {
			return fmt.Sprintf("the engine was fitted to %s, a run that is not trustworthy: %s", s.File, s.Untrusted)
		}
	}
	return ""
}

var fileBounds = strictyaml.Bounds{What: "an engine", Bytes: 1 << 20}

// Open reads the file of an engine.
func Open(path string) (*Calibration, error) {
	text, err := strictyaml.ReadFile(path, fileBounds)
	if err != nil {
		return nil, err
	}
	return parseFile(path, text)
}

// wholeKeys are the keys whose values are whole numbers.
var wholeKeys = map[string]bool{"block_size": true, "kv_tokens": true, "max_num_seqs": true,
	"max_num_batched_tokens": true, "max_waiting": true,
	"requests": true, "runs": true, "values": true, "max_prompt_tokens": true, "max_output_tokens": true,
	"max_in_flight": true, "max_decoding": true, "max_kv_tokens": true}

// maxWhole bounds the whole numbers of a file.
const maxWhole = 1 << 40

// parseFile reads the text of an engine's file. Faults begin with the name, and the line and
// column at fault. docs/calibrate.md has the keys.
func parseFile(name string, text []byte) (*Calibration, error) {
	c, err := parse(text)
	if err != nil {
		return nil, strictyaml.Named(name, err)
	}
	return c, nil
}

func parse(text []byte) (*Calibration, error) {
	doc, err := strictyaml.Parse(text, fileBounds)
	if err != nil {
		return nil, err
	}
	err = doc.Walk(func(key string, value strictyaml.Node) error {
		if wholeKeys[key] {
			_, err := strictyaml.Whole[int64](0, maxWhole)(value)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var d document
	if err := doc.Decode(&d); err != nil {
		return nil, err
	}
	if d.Schema != schema {
		return nil, doc.Faultf("its schema is not %s: it is no engine of reprise calibrate", schema)
	}
	e := d.Engine
	c := &Calibration{Model: d.Model, Parameters: d.Parameters, Residual: d.Residual, Covers: d.Covers,
		Sources: d.Sources, HeldOut: d.HeldOut,
		Engine: engine.Config{BlockSize: e.BlockSize, KVTokens: e.KVTokens, MaxSeqs: e.MaxSeqs,
			MaxBatchTokens: e.MaxBatchTokens, MaxWaiting: e.MaxWaiting,
			ChunkedPrefill: e.ChunkedPrefill, PrefixCaching: e.PrefixCaching, Batching: e.Batching}}
	at, _ := doc.Find("engine")
	if !at.Exists() {
		return nil, doc.Faultf("it has no engine")
	}
	if place, ok := doc.Find("engine.costs"); ok {
		at = place
	}
	if c.Engine.Costs, err = engine.ParseCosts(e.Costs, engine.Costs{}); err != nil {
		return nil, at.Faultf("costs: %v", err)
	}
	if _, err := engine.NewFleet(engine.FleetConfig{Engine: c.Engine, Replicas: 1, Router: fleet.RoundRobin},
		nil); err != nil {
		return nil, at.Faultf("engine: %v", strings.TrimPrefix(err.Error(), "simulated engine: "))
	}
	return c, c.check(doc)
}

// check refuses figures that are no figures.
func (c *Calibration) check(doc strictyaml.Node) error {
	good := func(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }
	if !good(c.Residual) {
		return doc.Faultf("residual: want a number of 0 or more")
	}
	for i := range c.HeldOut.Levels {
		for k := range c.HeldOut.Levels[i].Figures {
			f := &c.HeldOut.Levels[i].Figures[k]
			if of, err := figure.Parse(f.Metric, known); err == nil {
				f.Metric = of.String() // an earlier file says ttft_p95_ms
			}
			if !good(f.Measured) || !good(f.Predicted) || !good(f.Spread) || f.Measured == 0 {
				at, _ := doc.Find(fmt.Sprintf("held_out.levels[%d].figures[%d]", i, k))
				return at.Faultf("want measured above 0, and predicted and spread of 0 or more")
			}
		}
	}
	return nil
}

// Preset is the engine as the commands with --preset take it.
func (c *Calibration) Preset(name string) engine.Preset {
	return engine.Preset{Name: name, Model: c.Model, About: c.about(), Engine: c.Engine, Warning: c.Warning(),
		Covers: &c.Covers}
}

// about says where the engine is from.
func (c *Calibration) about() string {
	requests := 0
	for _, s := range c.Sources {
		requests += s.Requests
	}
	return fmt.Sprintf("fitted by reprise calibrate to %s of %s", doc.Many(int64(requests), "request"),
		doc.Many(int64(len(c.Sources)), "run"))
}
