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
	EngineFlags  string // engine-flags
}

// Register adds the flags.
func (f *Deployment) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	_, rest := Sections(fl, DeployedFlags)
	rest.StringVar(&f.hardware, "hardware", "", "")
	rest.StringVar(&f.modelSize, "model-size", "", "")
	rest.StringVar(&f.quantization, "quantization", "", "")
	rest.IntVar(&f.tp, "tp", 0, "")
	rest.IntVar(&f.pp, "pp", 0, "")
	rest.StringVar(&f.engine, "engine", "", "")
	rest.StringVar(&f.EngineFlags, "engine-flags", "", "")
}

// Check refuses what cannot be read, and what is too long.
func (f *Deployment) Check() error {
	_, err := f.Serving()
	return err
}

// Serving is what the flags say, nil when they say nothing.
func (f *Deployment) Serving() (*result.Deployment, error) {
	d := result.Deployment{Quantization: result.Redact(f.quantization), TP: f.tp, PP: f.pp,
		Engine: result.Redact(f.engine), EngineFlags: result.Redact(f.EngineFlags)}
	for flag, text := range map[string]string{"quantization": d.Quantization, "engine": d.Engine,
		"engine-flags": d.EngineFlags} {
		if len(text) > MaxNote {
			return nil, cli.Usagef("--set %s: %d bytes at most", flag, MaxNote)
		}
	}
	if f.hardware != "" {
		if err := d.SetHardware(f.hardware); err != nil {
			return nil, cli.Usagef("--set hardware: %v", err)
		}
	}
	if f.modelSize != "" {
		if err := d.SetModelSize(f.modelSize); err != nil {
			return nil, cli.Usagef("--set model-size: %v", err)
		}
	}
	if d == (result.Deployment{}) {
		return nil, nil
	}
	return &d, nil
}
