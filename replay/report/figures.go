package report

import (
	"cmp"

	"reprise/replay/figure"
)

// stats are the figures that have statistics, by their subject: times in milliseconds. Nil is of a
// run without any. The list [begun] has the others.
var stats = map[*figure.Subject]func(*Summary) *Stat{
	figure.TPOT:     func(s *Summary) *Stat { return &s.Latency.TPOT },
	figure.ITL:      func(s *Summary) *Stat { return &s.Latency.ITLChunk },
	figure.TokenITL: func(s *Summary) *Stat { return &s.Latency.ITLToken },
	figure.SendLag:  func(s *Summary) *Stat { return &s.Latency.SendLag },

	figure.QueueTime: func(s *Summary) *Stat {
		return cmp.Or(s.Latency.told(&s.Latency.QueueTime), serverFigure(func(o *Servers) *Stat { return o.QueueTime })(s))
	},
	figure.PrefillTime: func(s *Summary) *Stat { return s.Latency.told(&s.Latency.PrefillTime) },

	figure.SessionTime: sessionFigure(func(o *Sessions) *Stat { return &o.Completion }),
	figure.SessionServerTime: sessionFigure(func(o *Sessions) *Stat {
		if o.Path == nil || o.Path.Server.MeanS == nil {
			return nil
		}
		return &Stat{Count: o.Completion.Count, Mean: Rounded(*o.Path.Server.MeanS*1000, 1e9)}
	}),
	figure.SessionSlowdown: sessionFigure(func(o *Sessions) *Stat { return o.Slowdown.stat() }),
}

// singles are the figures without a statistic. What servers said is the most that they said while what is
// measured was sent.
var singles = map[*figure.Subject]func(*Summary) *float64{
	figure.RequestRate: func(s *Summary) *float64 { return s.Throughput.RequestsPerS },
	figure.PromptRate:  func(s *Summary) *float64 { return s.Throughput.PromptTokensPerS },
	figure.OutputRate:  func(s *Summary) *float64 { return s.Throughput.OutputTokensPerS },
	figure.ErrorRate:   func(s *Summary) *float64 { return s.Requests.ErrorShare },
	figure.HitRatio:    func(s *Summary) *float64 { return s.Cache.Measured },
	figure.InFlight:    func(s *Summary) *float64 { return s.InFlight.Mean },

	figure.Goodput: func(s *Summary) *float64 {
		if s.Goodput == nil {
			return nil
		}
		return s.Goodput.FromDue.Share
	},

	figure.SessionSuccess: sessionFigure(func(o *Sessions) *float64 { return o.SuccessShare }),
	figure.SessionRate:    sessionFigure(func(o *Sessions) *float64 { return o.PerS }),

	figure.MaxRunning:    serverFigure(func(o *Servers) *float64 { return o.Running.Peak() }),
	figure.MaxWaiting:    serverFigure(func(o *Servers) *float64 { return o.Waiting.Peak() }),
	figure.MaxKVCacheUse: serverFigure(func(o *Servers) *float64 { return o.KVUsage.Peak() }),
	figure.MaxGPUUse:     serverFigure(func(o *Servers) *float64 { return o.GPUUse.Peak() }),
	figure.MaxGPUMemory:  serverFigure(func(o *Servers) *float64 { return o.GPUMemoryMiB.Peak() }),
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

// serverFigure is what a run has whose servers said something of themselves.
func serverFigure[T any](of func(*Servers) *T) func(*Summary) *T {
	return func(s *Summary) *T {
		if s.Servers == nil {
			return nil
		}
		return of(s.Servers)
	}
}

// Summarised tells whether a [Summary] has a figure, where its run has it.
func Summarised(f figure.Figure) bool {
	_, known := new(Stat).At(f.Statistic)
	switch f.Subject {
	case figure.SessionServerTime:
		return f.Statistic == figure.Mean
	case figure.QueueTime:
		known = known && f.Statistic != figure.Min && f.Statistic != figure.Max
	case figure.SessionSlowdown:
		known = known && f.Statistic != figure.Min && f.Statistic != figure.P999
	}
	return known && statOf(f.Subject) != nil || singles[f.Subject] != nil
}

// stat are the statistics of a figure, nil where the run does not have it.
func (s *Summary) stat(of *figure.Subject) *Stat {
	if get := statOf(of); get != nil {
		return get(s)
	}
	return nil
}

// statOf finds the statistics of a figure in a summary; nil for a figure without any.
func statOf(of *figure.Subject) func(*Summary) *Stat {
	for _, latency := range begun {
		if latency.of == of {
			return func(s *Summary) *Stat { return latency.stat(&s.Latency.FromDue) }
		}
	}
	return stats[of]
}

// Figure is a figure of the run, in its unit. It is nil where the run does not have it, or too few values for it.
// Latencies count from when a request was due.
func (s *Summary) Figure(f figure.Figure) *float64 {
	if of := singles[f.Subject]; of != nil {
		return of(s)
	}
	v, _ := s.stat(f.Subject).At(f.Statistic)
	return v
}

// Values is how many values a figure with a statistic is of.
func (s *Summary) Values(f figure.Figure) int64 {
	if stat := s.stat(f.Subject); stat != nil {
		return stat.Count
	}
	return 0
}

// At is a statistic, not ok where no [Stat] has it.
func (s *Stat) At(of figure.Statistic) (v *float64, ok bool) {
	if s == nil {
		return nil, false
	}
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
