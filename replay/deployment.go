package replay

import (
	"errors"
	"regexp"
	"reprise/replay/host"
	"strconv"
	"strings"
)

// A Deployment is what serves, in the words of who started the run: servers do not
// say it. What was not said is empty. No field holds a secret, see [Redact].
type Deployment struct {
	GPU          string  `json:"gpu,omitempty"`
	GPUs         int     `json:"gpus,omitempty"`
	GPUMemoryGB  float64 `json:"gpu_memory_gb,omitempty"` // of each
	Interconnect string  `json:"interconnect,omitempty"`

	Parameters   float64 `json:"model_parameters,omitempty"`
	Quantization string  `json:"quantization,omitempty"` // of the weights, such as fp8
	TP           int     `json:"tensor_parallel,omitempty"`
	PP           int     `json:"pipeline_parallel,omitempty"`

	Engine      string `json:"engine,omitempty"` // with its version
	EngineFlags string `json:"engine_flags,omitempty"`
}

var (
	gpuCount  = regexp.MustCompile(`^(\d{1,6})\s*[x×]\s*(.+)$`)
	gpuMemory = regexp.MustCompile(`(?i)^(\d+(?:\.\d+)?)\s*(?:GB|GiB|G)$`)
	modelSize = regexp.MustCompile(`(?i)^(\d+(?:\.\d+)?)\s*([KMBT])$`)
)

// SetHardware reads GPUs such as "8xH100, 80GB, NVLink": how many of which, one
// without a number, and behind commas the memory of each and what connects them.
func (d *Deployment) SetHardware(s string) error {
	parts := strings.Split(s, ",")
	d.GPUs, d.GPU = 1, host.Label(Redact(parts[0]))
	if m := gpuCount.FindStringSubmatch(d.GPU); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n == 0 {
			return errors.New("the number of GPUs must be above zero")
		}
		d.GPUs, d.GPU = n, m[2]
	}
	if d.GPU == "" {
		return errors.New("name the GPU, such as 8xH100")
	}
	for _, part := range parts[1:] {
		part = host.Label(Redact(part))
		switch m := gpuMemory.FindStringSubmatch(part); {
		case m != nil && d.GPUMemoryGB == 0:
			v, err := strconv.ParseFloat(m[1], 64)
			if err != nil || !(v > 0 && v < 1e6) {
				return errors.New("the memory of a GPU must be like 80GB")
			}
			d.GPUMemoryGB = v
		case m == nil && part != "" && d.Interconnect == "":
			d.Interconnect = part
		default:
			return errors.New("want the GPUs, the memory of each and what connects them, such as 8xH100, 80GB, NVLink")
		}
	}
	return nil
}

// SetModelSize reads a number of parameters such as 70B.
func (d *Deployment) SetModelSize(s string) error {
	m := modelSize.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return errors.New("want a number of parameters with K, M, B or T, such as 70B")
	}
	v, err := strconv.ParseFloat(m[1], 64)
	v *= map[string]float64{"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}[strings.ToUpper(m[2])]
	if err != nil || !(v > 0 && v < 1e18) {
		return errors.New("the number of parameters is not one that a model has")
	}
	d.Parameters = v
	return nil
}
