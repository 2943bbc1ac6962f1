package result

import (
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

// ServerModels is what a server says of itself: its version, at /version as vLLM has
// it, and what it serves, at /v1/models. Where models lie on its disks, which vLLM
// says too, is left out.
type ServerModels struct {
	Version  string        `json:"version,omitempty"`
	Models   []ServedModel `json:"models,omitempty"`
	Unlisted int           `json:"unlisted_models,omitempty"` // further ones, beyond twenty
}

// A ServedModel is a model that a server lists. What it does not tell is empty.
type ServedModel struct {
	ID         string `json:"id"`
	OwnedBy    string `json:"owned_by,omitempty"` // engines put their name here
	Parent     string `json:"parent,omitempty"`   // model that an adapter is of
	MaxLen     int    `json:"max_model_len,omitempty"`
	Parameters int64  `json:"parameters,omitempty"`   // of the model; llama.cpp says so
	Bytes      int64  `json:"weight_bytes,omitempty"` // of its weights; llama.cpp says so
}
