package flags

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/hardware"
	"reprise/trace/objectstore"
	"reprise/trace/quantity"
)

// Hardware says what an engine that was never measured would run on: a model's shape and
// GPUs by their data sheet.
type Hardware struct {
	ModelConfig string
	setup       hardware.Setup
	gpu         string
}

// Register adds the flags.
func (f *Hardware) Register(fl *pflag.FlagSet) {
	everyday, rest := Sections(fl, HardwareFlags)
	everyday.StringVar(&f.ModelConfig, "model-config", "",
		"`config.json` of a model as Hugging Face publishes it: an engine that is as fast as --hardware "+
			"allows, a bound")
	everyday.StringVar(&f.gpu, "hardware", "", "GPU of that engine: "+strings.Join(gpuNames(), ", ")+
		"; or `mine.csv` with the data sheet of another, mine.csv:NAME one of several")
	everyday.IntVar(&f.setup.TP, "tp", 1, "GPUs that share each layer (tensor parallelism)")
	everyday.StringVar(&f.setup.DType, "dtype", "", "type of the weights: "+strings.Join(hardware.DTypes(), ", ")+
		"; by default as the config says, else bf16")
	rest.StringVar(&f.setup.KVDType, "kv-cache-dtype", "auto", "")
	rest.ShareVar(&f.setup.Utilization, "gpu-memory-utilization", 0.9, "")
	if fl.Lookup("efficiency") != nil { // the command's own
		return
	}
	rest.ShareVar(&f.setup.Efficiency, "efficiency", 1,
		"share of the data sheet's peaks that is reached; 1 is the bound")
}

func gpuNames() (names []string) {
	for _, g := range hardware.GPUs() {
		names = append(names, g.Name)
	}
	return names
}

// Given says whether the flags ask for an engine.
func (f *Hardware) Given() bool { return f.ModelConfig != "" || f.gpu != "" }

// Setup reads the model and finds the GPU.
func (f *Hardware) Setup() (hardware.Setup, error) {
	switch {
	case f.ModelConfig == "":
		return f.setup, cli.Usagef("--hardware needs a model: give the config.json beside its weights with " +
			"--model-config")
	case f.gpu == "":
		return f.setup, cli.Usagef("--model-config needs a GPU: give --hardware, one of %s",
			strings.Join(gpuNames(), ", "))
	}
	s := f.setup
	s.Efficiency = cmp.Or(s.Efficiency, 1)
	var err error
	if s.GPU, err = findGPU(f.gpu); err != nil {
		return s, cli.Usagef("--hardware: %v", err)
	}
	s.BatchTokens, s.Seqs = s.GPU.StepLimits()
	if s.Model, err = readModel(f.ModelConfig); err != nil {
		return s, cli.Exit(cli.Usage, fmt.Errorf("--model-config %s: %w", f.ModelConfig, err))
	}
	s.DType = cmp.Or(s.DType, s.Model.WeightsAs, "bf16")
	if err := s.Check(); err != nil {
		return s, cli.Exit(cli.Usage, err)
	}
	return s, nil
}

// readModel reads a config.json.
func readModel(path string) (hardware.Model, error) {
	in, err := objectstore.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return hardware.Model{}, errors.New("there is no such file")
		}
		return hardware.Model{}, err
	}
	defer in.Close()
	m, err := hardware.ReadModel(in)
	if err != nil || m.WeightsAs != "" {
		return m, err
	}

	const beside = "hf_quant_config.json"
	quantised, err := objectstore.Open(filepath.Join(filepath.Dir(path), beside))
	if err != nil {
		return m, nil // most models have none
	}
	defer quantised.Close()
	if m.WeightsAs, err = hardware.ReadQuantisation(quantised); err != nil {
		err = fmt.Errorf("%s beside it: %w", beside, err)
	}
	return m, err
}

// rooflinePrefix begins the name of a preset that is made of a model and a data sheet.
const rooflinePrefix = "roofline:"

// rooflinePreset makes a preset of
// roofline:CONFIG.json:[N x]GPU[:DTYPE][:kv=DTYPE][:memory=SHARE][@EFFICIENCY], which says all
// that the flags of [Hardware] do.
func rooflinePreset(name string, like engine.Config) (engine.Preset, error) {
	text := strings.TrimPrefix(name, rooflinePrefix)
	s := hardware.Setup{TP: 1, KVDType: "auto", Efficiency: 1, Utilization: 0.9}
	text, share, has := strings.Cut(text, "@")
	if has {
		var err error
		if s.Efficiency, err = quantity.Share(share); err != nil {
			return engine.Preset{}, fmt.Errorf("the efficiency behind @: %w", err)
		}
	}
	parts := strings.Split(text, ":")
	for len(parts) > 0 {
		last := len(parts) - 1
		name, value, _ := strings.Cut(parts[last], "=")
		if name != "kv" && name != "memory" {
			break
		}
		if parts = parts[:last]; name == "kv" {
			s.KVDType = value
			continue
		}
		var err error
		if s.Utilization, err = quantity.Share(value); err != nil {
			return engine.Preset{}, fmt.Errorf("the share of GPU memory behind memory=: %w", err)
		}
	}
	if last := len(parts) - 1; slices.Contains(hardware.DTypes(), parts[last]) {
		s.DType, parts = parts[last], parts[:last]
	}
	if len(parts) < 2 {
		return engine.Preset{}, errors.New("want roofline:CONFIG.json:GPU, such as roofline:config.json:8xh100:fp8 " +
			"or roofline:config.json:l4@0.7")
	}
	gpu, file := parts[len(parts)-1], strings.Join(parts[:len(parts)-1], ":")
	var err error
	if s.TP, s.GPU, err = ParseGPUs(gpu); err != nil {
		return engine.Preset{}, err
	}
	if s.Model, err = readModel(file); err != nil {
		return engine.Preset{}, fmt.Errorf("%s: %w", file, err)
	}
	s.DType = cmp.Or(s.DType, s.Model.WeightsAs, "bf16")
	return engine.RooflinePreset(name, s, like)
}

// ParseGPUs reads a GPU of the table of data sheets and how many there are, such as h100 or
// 8xh100.
func ParseGPUs(text string) (n int, gpu hardware.GPU, err error) {
	n, name := 1, text
	if count, of, has := strings.Cut(strings.ToLower(name), "x"); has {
		if many, err := strconv.Atoi(count); err == nil {
			n, name = many, name[len(name)-len(of):]
		}
	}
	gpu, err = findGPU(name)
	return n, gpu, err
}

// findGPU is a GPU of the data sheets, or of a CSV file: mine.csv, or mine.csv:NAME.
func findGPU(text string) (hardware.GPU, error) {
	const ext = ".csv"
	path, name, found := strings.Cut(text, ext)
	if !found {
		return hardware.FindGPU(text)
	}
	path += ext
	in, err := objectstore.Open(path)
	if err != nil {
		return hardware.GPU{}, err
	}
	defer in.Close()
	all, err := hardware.ReadGPUs(in)
	if err != nil {
		return hardware.GPU{}, fmt.Errorf("%s: %w", path, err)
	}
	gpu, err := hardware.FindIn(all, strings.TrimPrefix(name, ":"))
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return gpu, err
}
