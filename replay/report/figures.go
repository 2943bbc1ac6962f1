package report

import (
	"reprise/replay/figure"
)

// stats are the figures that have statistics, by the name of their subject: times in milliseconds. Nil is of a
// run without any.
var stats = map[string]func(*Summary) *Stat{
	"ttft":      func(s *Summary) *Stat { return &s.Latency.FromDue.TTFT },
	"e2e":       func(s *Summary) *Stat { return &s.Latency.FromDue.E2E },
	"headers":   func(s *Summary) *Stat { return &s.Latency.FromDue.Headers },
	"tpot":      func(s *Summary) *Stat { return &s.Latency.TPOT },
	"itl":       func(s *Summary) *Stat { return &s.Latency.ITLChunk },
	"itl_token": func(s *Summary) *Stat { return &s.Latency.ITLToken },
	"send_lag":  func(s *Summary) *Stat { return &s.Latency.SendLag },

	"session_time": sessionFigure(func(o *Sessions) *Stat { return &o.Completion }),
	"session_server_time": sessionFigure(func(o *Sessions) *Stat {
		if o.Path == nil || o.Path.Server.MeanS == nil {
			return nil
		}
		return &Stat{Mean: Rounded(*o.Path.Server.MeanS*1000, 1e9)}
	}),
	"session_slowdown": sessionFigure(func(o *Sessions) *Stat {
		of := &o.Slowdown
		return &Stat{Mean: of.Mean, P50: of.P50, P90: of.P90, P95: of.P95, P99: of.P99, Max: of.Max}
	}),
}

// singles are the figures without a statistic. What servers said is the most that they said while what is
// measured was sent.
var singles = map[string]func(*Summary) *float64{
	"requests_per_s":      func(s *Summary) *float64 { return s.Throughput.RequestsPerS },
	"prompt_tokens_per_s": func(s *Summary) *float64 { return s.Throughput.PromptTokensPerS },
	"output_tokens_per_s": func(s *Summary) *float64 { return s.Throughput.OutputTokensPerS },
	"error_rate":          func(s *Summary) *float64 { return s.Requests.ErrorShare },
	"hit_ratio":           func(s *Summary) *float64 { return s.Cache.Measured },
	"in_flight":           func(s *Summary) *float64 { return s.InFlight.Mean },

	"goodput": func(s *Summary) *float64 {
		if s.Goodput == nil {
			return nil
		}
		return s.Goodput.FromDue.Share
	},

	"session_success": sessionFigure(func(o *Sessions) *float64 { return o.SuccessShare }),
	"sessions_per_s":  sessionFigure(func(o *Sessions) *float64 { return o.PerS }),

	"max_running":         peakOf(func(o *Servers) *Level { return o.Running }),
	"max_waiting":         peakOf(func(o *Servers) *Level { return o.Waiting }),
	"max_kv_cache_use":    peakOf(func(o *Servers) *Level { return o.KVUsage }),
	"max_gpu_utilisation": peakOf(func(o *Servers) *Level { return o.GPUUse }),
	"max_gpu_memory_mib":  peakOf(func(o *Servers) *Level { return o.GPUMemoryMiB }),
}

// sessionFigure is what a run with sessions has.
func sessionFigure[T any](of func(*Sessions) *T) func(*Summary) *T {
	return func(s *Summary) *T {
		if s.Sessions == nil {
			return nil
		}
		return of(s.Sessions)
	}
}

func peakOf(of func(*Servers) *Level) func(*Summary) *float64 {
	return func(s *Summary) *float64 {
		if s.Servers == nil {
			return nil
		}
		return of(s.Servers).Peak()
	}
}

// Summarised tells whether a [Summary] has a figure, where its run has it.
func Summarised(f figure.Figure) bool {
	_, known := new(Stat).At(f.Statistic)
	switch f.Name {
	case "session_server_time":
		return f.Statistic == figure.Mean
	case "session_slowdown":
		known = known && f.Statistic != figure.Min && f.Statistic != figure.P999
	}
	return known && stats[f.Name] != nil || singles[f.Name] != nil
}

// Figure is a figure of the run, in its unit. It is nil where the run does not have it, or too few values for it.
// Latencies count from when a request was due.
func (s *Summary) Figure(f figure.Figure) *float64 {
	if of := singles[f.Name]; of != nil {
		return of(s)
	}
	of := stats[f.Name]
	if of == nil {
		return nil
	}
	stat := of(s)
	if stat == nil {
		return nil
	}
	v, _ := stat.At(f.Statistic)
	return v
}

// At is a statistic, not ok where no [Stat] has it.
func (s *Stat) At(of figure.Statistic) (v *float64, ok bool) {
	switch of {
	case figure.Mean:
		return s.Mean, true
	case figure.Min:
		return s.Min, true
	case figure.Max:
		return s.Max, true
	}
	for _, p := range percentiles {
		if figure.Statistic(p.per)*1000 == of {
			return *p.of(s), true
		}
	}
	return nil, false
}
