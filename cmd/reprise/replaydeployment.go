package main

import (
	"github.com/spf13/pflag"

	"reprise/replay"
)

// deploymentFlags say what serves, where servers do not say it themselves.
type deploymentFlags struct {
	hardware     string
	modelSize    string
	quantization string
	tp, pp       int
	engine       string
	engineFlags  string
}

func (f *deploymentFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.hardware, "hardware", "", "GPUs that serve, for the report: `[N x]GPU`[,memory][,interconnect], such as '8xH100, 80GB, NVLink'")
	fl.StringVar(&f.modelSize, "model-size", "", "`parameters` of the model, for the report, such as 70B")
	fl.StringVar(&f.quantization, "quantization", "", "of its weights, for the report, such as fp8")
	fl.IntVar(&f.tp, "tp", 0, "GPUs that each layer is spread over, for the report")
	fl.IntVar(&f.pp, "pp", 0, "stages that the layers are spread over, for the report")
	fl.StringVar(&f.engine, "engine", "", "`name and version` of the engine, for the report, such as 'vllm 0.11.0'")
	fl.StringVar(&f.engineFlags, "engine-flags", "", "`flags` that it was started with, for the report; what looks like a key is left out")
}

// deployment is what the flags say, nil when they say nothing.
func (f *deploymentFlags) deployment() (*replay.Deployment, error) {
	if f.tp < 0 || f.pp < 0 {
		return nil, usagef("--tp and --pp: want numbers above zero")
	}
	d := replay.Deployment{Quantization: replay.Redact(f.quantization), TP: f.tp, PP: f.pp, Engine: replay.Redact(f.engine), EngineFlags: replay.Redact(f.engineFlags)}
	for flag, text := range map[string]string{"quantization": d.Quantization, "engine": d.Engine, "engine-flags": d.EngineFlags} {
		if len(text) > maxNote {
			return nil, usagef("--%s: %d bytes at most", flag, maxNote)
		}
	}
	if f.hardware != "" {
		if err := d.SetHardware(f.hardware); err != nil {
			return nil, usagef("--hardware: %v", err)
		}
	}
	if f.modelSize != "" {
		if err := d.SetModelSize(f.modelSize); err != nil {
			return nil, usagef("--model-size: %v", err)
		}
	}
	if d == (replay.Deployment{}) {
		return nil, nil
	}
	return &d, nil
}
