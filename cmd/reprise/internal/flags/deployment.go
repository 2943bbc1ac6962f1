package flags

import (
	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// MaxNote is how many bytes a note that is kept with every copy of the results may
// have.
const MaxNote = 4096

// Deployment says what serves, where servers do not say it themselves.
type Deployment struct {
	hardware     string
	modelSize    string
	quantization string
	tp, pp       int
	engine       string
	EngineFlags  string // --engine-flags
}

// Register adds the flags.
func (f *Deployment) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	_, rest := Sections(fl, DeployedFlags)
	rest.StringVar(&f.hardware, "hardware", "",
		"GPUs of the server, for the report: `[N x]GPU`[,memory][,interconnect], such as '8xH100, 80GB, NVLink'")
	rest.StringVar(&f.modelSize, "model-size", "", "number of `parameters` of the model, such as 70B, for the report")
	rest.StringVar(&f.quantization, "quantization", "",
		"quantization of the model's weights, such as fp8, for the report")
	rest.IntVar(&f.tp, "tp", 0, "tensor parallelism: GPUs for each layer, for the report")
	rest.IntVar(&f.pp, "pp", 0, "pipeline parallelism: number of stages, for the report")
	rest.StringVar(&f.engine, "engine", "", "`name and version` of the engine, such as 'vllm 0.11.0', for the report")
	rest.StringVar(&f.EngineFlags, "engine-flags", "",
		"`flags` that the engine was started with, for the report; values that look like keys are left out")
}

// Check refuses what cannot be read, and what is too long.
func (f *Deployment) Check() error {
	_, err := f.Serving()
	return err
}

// Serving is what the flags say, nil when they say nothing.
func (f *Deployment) Serving() (*result.Deployment, error) {
	if f.tp < 0 || f.pp < 0 {
		return nil, cli.Usagef("--tp and --pp: want numbers above zero")
	}
	d := result.Deployment{Quantization: result.Redact(f.quantization), TP: f.tp, PP: f.pp,
		Engine: result.Redact(f.engine), EngineFlags: result.Redact(f.EngineFlags)}
	for flag, text := range map[string]string{"quantization": d.Quantization, "engine": d.Engine,
		"engine-flags": d.EngineFlags} {
		if len(text) > MaxNote {
			return nil, cli.Usagef("--%s: %d bytes at most", flag, MaxNote)
		}
	}
	if f.hardware != "" {
		if err := d.SetHardware(f.hardware); err != nil {
			return nil, cli.Usagef("--hardware: %v", err)
		}
	}
	if f.modelSize != "" {
		if err := d.SetModelSize(f.modelSize); err != nil {
			return nil, cli.Usagef("--model-size: %v", err)
		}
	}
	if d == (result.Deployment{}) {
		return nil, nil
	}
	return &d, nil
}
