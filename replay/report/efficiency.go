package report

import (
	"cmp"

	"reprise/trace/page"
)

// Where a number of GPUs is from.
const (
	gpusGiven     = "given"     // by who asked for the report, or recorded with the run
	gpusInstances = "instances" // not known: one for each engine or endpoint
)

// An Efficiency is what the server's owner and its users get of it at once: the
// two axes that batching trades against each other.
type Efficiency struct {
	GPUs     int      `json:"gpus"`
	GPUsFrom string   `json:"gpus_from"`                   // [gpusGiven] or [gpusInstances]
	PerGPU   *float64 `json:"output_tokens_per_s_per_gpu"` // or per instance, as GPUsFrom says
	PerUser  *float64 `json:"tokens_per_s_per_user"`
}

// efficiency divides what was measured by a number of GPUs.
func efficiency(s *Summary, gpus int) *Efficiency {
	e := &Efficiency{GPUs: cmp.Or(gpus, s.Run.Environment.GPUCount()), GPUsFrom: gpusGiven}
	if e.GPUs == 0 {
		e.GPUs, e.GPUsFrom = cmp.Or(s.Run.Instances, max(len(s.Run.Endpoints), 1)), gpusInstances
	}
	if t := s.Throughput.OutputTokensPerS; t != nil {
		e.PerGPU = Rounded(*t/float64(e.GPUs), 1e6)
	}
	if m := s.Latency.TPOT.Mean; m != nil && *m > 0 {
		e.PerUser = Rounded(1000 / *m, 1e6)
	}
	return e
}

// per names what the tokens are divided by.
func (e *Efficiency) per() string {
	if e.GPUsFrom == gpusGiven {
		return "GPU"
	}
	return "instance"
}

// rows are the lines of the overview.
func (e *Efficiency) rows() [][]string {
	if e == nil {
		return nil
	}
	note := "output tokens, of " + page.Many(int64(e.GPUs), e.per())
	if e.GPUsFrom == gpusInstances {
		note += "; --gpus gives the number of GPUs"
	}
	return [][]string{
		{"Per user", unit(e.PerUser, "tokens/s"), "once tokens come: 1 ÷ mean TPOT"},
		{"Per " + e.per(), unit(e.PerGPU, "tokens/s"), note},
	}
}

var efficiencyDefinitions = []Definition{
	{"tokens_per_s_per_user", "1/s", "How fast a user sees tokens come, once they do: the mean TPOT turned over.", "1000 ÷ mean TPOT in ms"},
	{"output_tokens_per_s_per_gpu", "1/s", "Output tokens of successful requests per second and GPU. Where the number of GPUs is not known it is per instance, an engine or an endpoint, and says so: --gpus gives the number.", "output_tokens ÷ GPUs"},
}
