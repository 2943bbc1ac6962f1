package main

import (
	"github.com/spf13/cobra"

	"reprise/replay/report"
)

// limitFlags are what a run may be and still be trusted. A negative one is no
// limit.
type limitFlags struct{ limits report.Limits }

func (f *limitFlags) register(cmd *cobra.Command) {
	f.limits = report.DefaultLimits()
	l, fl := &f.limits, cmd.Flags()
	fl.Float64Var(&l.Errors, "max-errors", l.Errors, "share of failed requests, and of turns not sent after one, beyond which the run is not trusted; as with the other limits, below 0 is none")
	fl.DurationVar(&l.LagP99, "max-lag", l.LagP99, "p99 of the send lag beyond which the run is not trusted")
	fl.DurationVar(&l.LagP50, "max-lag-p50", l.LagP50, "the same of its median")
	fl.DurationVar(&l.LagP999, "max-lag-p999", l.LagP999, "the same of its p99.9")
	fl.DurationVar(&l.LagDrift, "max-lag-drift", l.LagDrift, "growth of the median send lag from the first to the last quarter of the run, at most")
	fl.Float64Var(&l.CPU, "max-cpu", l.CPU, "share of the client's cores; so much in use is already too much")
	fl.DurationVar(&l.GCPause, "max-gc-pause", l.GCPause, "longest pause of the client's garbage collector, at most")
	fl.DurationVar(&l.Stall, "max-stall", l.Stall, "longest that the client or its machine may have stood still")
	fl.Float64Var(&l.StallTTFT, "max-stall-ttft", l.StallTTFT, "share of the times to first token in which the client may have stood still")
	fl.Float64Var(&l.StallGap, "max-stall-gap", l.StallGap, "share of a gap between tokens, at p99, in which it may have")
	fl.DurationVar(&l.ClockJump, "max-clock-jump", l.ClockJump, "most that the wall clock may have jumped against the monotonic one")
	fl.Float64Var(&l.HeldBack, "max-held-back", l.HeldBack, "share of requests kept waiting by --max-in-flight, at most")
	fl.Float64Var(&l.Connect, "max-connect-failures", l.Connect, "share of requests without a connection, at most")
	fl.Float64Var(&l.Refused, "max-refused", l.Refused, "share of requests that the server refused with 429 or 503, at most")
}
