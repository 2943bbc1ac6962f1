package calibrate

import (
	"reflect"
	"strings"
	"testing"

	"reprise/replay/engine"
	"reprise/trace/fleet"
)

// fittedEngine is a calibration as a fit would give.
func fittedEngine() *Calibration {
	c := &Calibration{Model: "llama", Engine: engine.DefaultConfig(), Residual: 0.0823,
		Parameters: []Parameter{{Name: "step", Value: "5.25ms", From: fromFit, Low: "5.1ms", High: "5.4ms"}, {Name: "decode-seq", Value: "0ps", From: fromDefault, High: "at most 30us"}, {Name: "max_num_seqs", Value: "256", From: fromServer}},
		HeldOut: HeldOut{Method: "each load, predicted by a fit to the others", Levels: []Level{{Load: "poisson:5", Runs: 2, Requests: 300,
			Figures: []Figure{{Metric: "p95_ttft", Measured: 123.4, Predicted: 120.1, Values: 300, Spread: 0.02}, {Metric: tokensPerS, Measured: 1000, Predicted: 1010, Values: 300}}}}},
		Sources: []Source{{File: "r1.parquet", Load: "poisson:5", Requests: 150, Workload: "sha256:00", Started: "2026-11-24T12:00:00Z", Server: "vllm 0.19.0", Recorded: "reprise v1"}},
		Covers:  engine.Covers{MaxPromptTokens: 4000, MaxOutputTokens: 2000, MaxInFlight: 30, MaxDecoding: 25, MaxKVTokens: 40_000}}
	c.Engine.Costs = engine.Costs{Step: 5_250_000_000, KVToken: 183_500, PrefillToken: 22_060_000, Request: 24_140_000_000}
	c.Engine.KVTokens, c.Engine.MaxSeqs, c.Engine.PrefixCaching = 41_408, 64, false
	return c
}

// What is written is read again, and is a preset.
func TestEngineFileIsReadAgain(t *testing.T) {
	c := fittedEngine()
	text, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseFile("engine.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v\nwant %+v\n%s", got, c, text)
	}
	if !strings.Contains(string(text), "- {metric: p95_ttft, measured: 123.4, predicted: 120.1, values: 300, spread: 0.02}\n") {
		t.Errorf("a figure does not have a line of its own:\n%s", text)
	}
	p := got.Preset("engine.yaml")
	if p.Engine != c.Engine || p.Model != "llama" || p.Warning != "" || p.About != "fitted by reprise calibrate to 150 requests of 1 run" {
		t.Errorf("%+v", p)
	}
	c.Sources[0].Untrusted = "the client was late"
	want := "the engine was fitted to r1.parquet, a run that is not trustworthy: the client was late"
	if text, err = c.Marshal(); err != nil {
		t.Fatal(err)
	}
	if got, err = parseFile("engine.yaml", text); err != nil || got.Preset("x").Warning != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// Files that are no engine are refused, with the place and what is wrong.
func TestEngineFileFaults(t *testing.T) {
	text, err := fittedEngine().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"schema: engine/1", "schema: engine/9", "e.yaml:4:1: its schema is not engine/1: it is no engine of reprise calibrate"},
		{"block_size: 16", "block_size: 1.5", "e.yaml:7:15: block_size: want a whole number from 0 to 1099511627776"},
		{"block_size: 16", "block_size: 0", "e.yaml:15:3: engine: a block has 1 to 524,288 tokens"},
		{"max_num_seqs: 64", "max_seqs: 64", `e.yaml:9:3: unknown field "max_seqs"`},
		{"step=5.25ms", "step=5.25", "e.yaml:15:3: costs: step: not a time such as 40ns, 2.5us or 5ms, of at most 1,000 s"},
		{"batching: continuous", "batching: dynamic", "e.yaml:15:3: engine: batching is continuous or static"},
		{"measured: 123.4", "measured: .nan", "want measured above 0"},
		{"measured: 123.4", "measured: -1", "want measured above 0"},
		{"residual: 0.0823", "residual: .inf", "residual: want a number of 0 or more"},
		{"residual: 0.0823", "residual: [", "e.yaml:"},
	} {
		changed := strings.Replace(string(text), c.from, c.to, 1)
		if changed == string(text) {
			t.Fatalf("no %s in\n%s", c.from, text)
		}
		if _, err := parseFile("e.yaml", []byte(changed)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.to, err, c.want)
		}
	}
	for _, empty := range []string{"", "schema: engine/1\n", "- a\n", "engine/1"} {
		if _, err := parseFile("e.yaml", []byte(empty)); err == nil {
			t.Errorf("%q is an engine", empty)
		}
	}
}

// Whatever a file holds, it is an error or an engine that can run and be written.
func FuzzEngineFile(f *testing.F) {
	text, err := fittedEngine().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("schema: engine/1\nengine: {block_size: 16, max_num_seqs: 1, max_num_batched_tokens: 1, batching: static, costs: step=1ms}\n"))
	f.Add([]byte("schema: engine/1\nengine: {block_\r\r\r\r\r 16, max_num_seqs: 1, costs: step=1ms}\n"))
	f.Add([]byte("schema: engine/1\nheld_out: {levels: [{figures: [{measured: 1e400}]}]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseFile("e.yaml", text)
		if err != nil {
			if strings.Contains(err.Error(), "\n\n\n") {
				t.Errorf("an error of several paragraphs: %q", err)
			}
			return
		}
		if _, err := engine.NewFleet(engine.FleetConfig{Engine: c.Engine, Replicas: 1, Router: fleet.RoundRobin}, nil); err != nil {
			t.Errorf("an engine that cannot run: %v", err)
		}
		if _, err := c.Marshal(); err != nil {
			t.Error(err)
		}
	})
}
