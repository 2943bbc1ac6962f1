package replay

import (
	"context"

	"reprise/replay/host"
	"reprise/replay/result"
)

// CaptureEnvironment describes this host, the servers by what they answer, and the
// GPUs where all servers are on this host. What does not answer within 10 s is left
// out.
func (a *Admin) CaptureEnvironment(ctx context.Context, model string) *result.Environment {
	e := &result.Environment{Host: host.This(), Servers: a.Survey(ctx, model)}
	if a.local() {
		e.GPUs = host.GPUs(ctx)
	}
	return e
}
