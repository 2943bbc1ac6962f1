package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// joined puts commas between what is not empty.
func joined(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p = strings.TrimSpace(textpage.Plain(p)); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}

// engineParts are the engine as it was given, and as the servers say.
func engineParts(r *result.Run) []string {
	var out []string
	e := r.Environment
	if d := e.Deployment; d != nil && d.Engine != "" {
		out = append(out, d.Engine+" (as given)")
	}
	for _, s := range e.Servers {
		said := s.Engine + " " + s.Version
		if s.Engine == "" && s.Version != "" {
			said = "version " + s.Version // of what, the owner of a model does not tell
		}
		if said = strings.TrimSpace(said); said == "" {
			continue
		}
		if said += " (as the server says)"; !slices.Contains(out, said) {
			out = append(out, said)
		}
	}
	return out
}

func modelParts(r *result.Run) []string {
	out := []string{r.Model}
	var given result.Deployment
	if d := r.Environment.Deployment; d != nil {
		given = *d
	}
	parameters := given.Parameters
	for _, s := range r.Environment.Servers {
		if parameters == 0 && len(s.Models) > 0 {
			parameters = float64(s.Models[0].Parameters)
		}
	}
	if parameters > 0 {
		size := doc.Number(parameters)
		for _, u := range []struct { // as models are named: 70B, 494M
			of   float64
			name string
		}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}} {
			if parameters >= u.of {
				size = doc.Number(parameters/u.of) + u.name
				break
			}
		}
		out = append(out, size+" parameters")
	}
	out = append(out, given.Quantization)
	if given.TP > 0 {
		out = append(out, fmt.Sprintf("TP %d", given.TP))
	}
	if given.PP > 0 {
		out = append(out, fmt.Sprintf("PP %d", given.PP))
	}
	return out
}

func gpuParts(e *result.Environment) []string {
	var out []string
	if d := e.Deployment; d != nil && d.GPU != "" {
		out = append(out, fmt.Sprintf("%d × %s", d.GPUs, d.GPU))
		if d.GPUMemoryGB > 0 {
			out = append(out, doc.Number(d.GPUMemoryGB)+" GB each")
		}
		return append(out, d.Interconnect, "as given")
	}
	for _, g := range e.GPUs {
		out = append(out, fmt.Sprintf("%d × %s", g.Count, g.Name))
		if g.MemoryMiB > 0 {
			out = append(out, doc.Number(float64(g.MemoryMiB)/1024)+" GiB each")
		}
		if g.PowerLimitW > 0 {
			out = append(out, doc.Number(g.PowerLimitW)+" W each at most")
		}
		if g.Driver != "" {
			out = append(out, "driver "+g.Driver)
		}
	}
	if len(out) > 0 {
		out = append(out, "of the client's host, where the server is too")
	}
	return out
}

func hostParts(h *host.Machine) []string {
	out := []string{h.OS + "/" + h.Arch, h.CPU, doc.Many(int64(h.Cores), "core")}
	if h.MemoryBytes > 0 {
		out = append(out, gibibytes(h.MemoryBytes))
	}
	if h.LimitCores != nil {
		out = append(out, "limited to "+strconv.FormatFloat(*h.LimitCores, 'g', 4, 64)+" cores")
	}
	if h.LimitMemory != nil {
		out = append(out, "limited to "+gibibytes(*h.LimitMemory))
	}
	if h.Kernel != "" {
		out = append(out, "kernel "+h.Kernel)
	}
	return append(out, h.Go)
}

func gibibytes(n int64) string { return doc.Number(float64(n)/(1<<30)) + " GiB" }
