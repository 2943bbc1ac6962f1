package replay

import (
	"fmt"

	"reprise/replay/host"
	"reprise/replay/internal/h1"
	"reprise/replay/result"
)

// Wire returns what became of the connections so far; nil where net/http has them
// all.
func (h *HTTP) Wire() *result.Wire {
	var all h1.Stats
	any := false
	for i := range h.targets {
		w := h.targets[i].wire
		if w == nil {
			continue
		}
		any = true
		s := w.client.Stats()
		all.Dials, all.Waited, all.Reused = all.Dials+s.Dials, all.Waited+s.Waited, all.Reused+s.Reused
		all.Replaced, all.Stale, all.Closes = all.Replaced+s.Replaced, all.Stale+s.Stale, all.Closes || s.Closes
		all.MaxMinute = max(all.MaxMinute, s.MaxMinute) // ports are counted for each address
	}
	if !any {
		return nil
	}
	return described(all, host.LocalPorts())
}

func described(s h1.Stats, ports int64) *result.Wire {
	w := &result.Wire{
		Dials: s.Dials, DialsMinute: s.MaxMinute, Waited: s.Waited, Reused: s.Reused,
		Replaced: s.Replaced, Stale: s.Stale, ServerCloses: s.Closes, LocalPorts: ports,
	}
	// A port is in use for a minute after its connection (TIME_WAIT), unless the
	// server was the first to close.
	if ports > 0 && w.DialsMinute > ports {
		w.Note = fmt.Sprintf("%d connections were opened within a minute and there are %d local ports: where the client closes first, requests fail as connect. Use pooled connections, or widen net.ipv4.ip_local_port_range", w.DialsMinute, ports)
	}
	return w
}

// spareFiles are kept for what the process has open beside its connections.
const spareFiles = 64

// CheckFiles says whether so many connections can be open at once. The runtime has
// raised the limit to what the process may have.
func CheckFiles(connections int) error {
	limit := host.FileLimit()
	if need := int64(connections) + host.OpenFiles() + spareFiles; need > limit {
		return fmt.Errorf("replay: %d connections at once need %d open files with what else is open, and the limit is %d: raise it with ulimit -n", connections, need, limit)
	}
	return nil
}
