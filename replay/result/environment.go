package result

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"reprise/replay/host"
)

// An Environment says where a run was measured. It holds what explains a number and
// nothing that names a person or a machine: no host or user name, no variable of the
// environment, no address and no key.
type Environment struct {
	Host       host.Machine   `json:"host"`                 // of the client
	Servers    []ServerModels `json:"servers,omitempty"`    // what each says of itself, in the order of their addresses
	GPUs       []host.GPU     `json:"gpus,omitempty"`       // of the host, when the servers are on it
	Deployment *Deployment    `json:"deployment,omitempty"` // of the servers, as who started the run says
}

// GPUCount is how many GPUs serve: as given, else as found; 0 is not known.
func (e *Environment) GPUCount() int {
	if e == nil {
		return 0
	}
	if d := e.Deployment; d != nil && d.GPUs > 0 {
		return d.GPUs
	}
	n := 0
	for _, g := range e.GPUs {
		n += g.Count
	}
	return n
}

// ServerModels is how a server describes itself: its version, what it serves, at
// /v1/models, and what its metrics state. Where models lie on its disks, which vLLM
// says too, is left out.
type ServerModels struct {
	// by the names of its metrics, or else by the owner of its models: vllm, sglang, llamacpp, dynamo, trtllm or
	// reprise
	Engine   string        `json:"engine,omitempty"`
	Version  string        `json:"version,omitempty"`
	Models   []ServedModel `json:"models,omitempty"`
	Unlisted int           `json:"unlisted_models,omitempty"` // further ones, beyond twenty

	// tokens in a block of its prefix cache; 1 at llama.cpp, whose slots are reused by token
	BlockSize int `json:"block_size,omitempty"`
	// what states it, such as vllm:cache_config_info{block_size}
	BlockFrom     string `json:"block_size_from,omitempty"`
	KVTokens      int64  `json:"kv_cache_tokens,omitempty"` // that its KV cache holds; at Dynamo, that of one worker
	PrefixCaching *bool  `json:"prefix_caching,omitempty"`
	Slots         int    `json:"slots,omitempty"`                // of llama.cpp, which keeps one sequence in each
	Speculates    bool   `json:"speculative_decoding,omitempty"` // by its metrics or settings
}

// A ServedModel is a model that a server lists. What it does not tell is empty.
type ServedModel struct {
	ID         string `json:"id"`
	OwnedBy    string `json:"owned_by,omitempty"` // engines put their name here
	Parent     string `json:"parent,omitempty"`   // model that an adapter is of
	Root       string `json:"-"`                  // folder or name that vLLM loaded it from; not kept
	MaxLen     int    `json:"max_model_len,omitempty"`
	Parameters int64  `json:"parameters,omitempty"`   // of the model; llama.cpp says so
	Bytes      int64  `json:"weight_bytes,omitempty"` // of its weights; llama.cpp says so
}

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
// without a number, and after commas the memory of each and what connects them.
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
				return errors.New("want the memory of a GPU, such as 80GB")
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

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// value is what follows a name: a quoted string, or all up to a space.
const value = `(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"']+(?:"[^"]*"?|'[^']*'?)*)`

// secretName is a name whose value is a secret. Token alone or at the end is one, as
// in --hf-token, while tokenizer, max_tokens and batched-tokens are none; key is one at
// the end, as in --api-key and AWS_ACCESS_KEY.
const secretName = `[\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|credentials?|authorization|[_-]auth|bearer)`

// Each pattern keeps its first group, which names what is replaced.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)(?:\s+|%20))[^\s"',]+`),
	// --api-key X and --api-key=X; vLLM takes several after one flag.
	regexp.MustCompile(`(?i)(--?` + secretName + `(?:\s*=\s*|\s+))` + value + `(?:\s+[^\s-]\S*)*`),
	// HF_TOKEN=X, "token": "X", api_key: X
	regexp.MustCompile(`(?i)(["']?\b` + secretName + `["']?\s*[=:]\s*)` + value),
	regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@`), // user:password@
	regexp.MustCompile(`(/(?:home|Users)/)[^\s/"',:]+`),
	// What is a key by its look.
	regexp.MustCompile(`()\b(?:sk|nvapi|xai|glpat)-[\w-]{12,}`),
	regexp.MustCompile(`()\b(?:hf|gsk|npm|gh[pousr]|github_pat)_\w{12,}`),
	regexp.MustCompile(`()\b(?:AKIA|ASIA)[A-Z0-9]{12,}`),
	regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w.-]{8,}`),
}

// Redact puts [Redacted] in the place of what looks like a secret: the values of flags,
// variables and fields that are named like one, bearer tokens, what stands before the @
// of a URL, names of home directories, and strings that look like keys. It is for text that is kept beside
// results, such as an engine's flags; rather too much goes than too little.
func Redact(s string) string {
	for _, re := range secrets {
		s = re.ReplaceAllString(s, "${1}"+Redacted)
	}
	return s
}
