package replay

import (
	"context"
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

// CaptureEnvironment describes this host, the servers by what they answer, and the
// GPUs where all servers are on this host. What does not answer within 10 s is left
// out.
func (a *Admin) CaptureEnvironment(ctx context.Context, model string) *Environment {
	e := &Environment{Host: host.This(), Servers: a.Survey(ctx, model)}
	if a.local() {
		e.GPUs = host.GPUs(ctx)
	}
	return e
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
