package main

import (
	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/simserver"
	"reprise/trace"
	"reprise/trace/profile"
)

// simulated is what a simulation came to.
type simulated struct {
	summary simserver.FleetSummary
	run     replay.Run // what the sending says of itself
}

// play sends a workload to a fleet. Without a journal the results are counted
// and not kept.
func (f *simulateFlags) play(cmd *cobra.Command, w *trace.Trace, c simserver.FleetConfig, about replay.Run, journal *replay.Journal) (simulated, error) {
	part, err := f.part(cmd, w, f.seed)
	if err != nil {
		return simulated{}, err
	}
	rows, err := part.reader()
	if err != nil {
		return simulated{}, err
	}
	lineage, err := f.lineage(cmd, part.turns)
	if err != nil {
		return simulated{}, err
	}
	options, err := f.schedule(lineage, f.seed)
	if err != nil {
		return simulated{}, err
	}
	options.About = about
	part.apply(&options)
	sim := bench.Simulation{Fleet: c, Rows: rows, BlockSize: part.blockSize, Options: options, Timeout: f.timeout}
	if journal != nil {
		sim.Results = journal
		if w.Meta.BlockSize > 0 {
			sim.Options.Known = profile.NewKnownPass(w.Meta.BlockSize, false).Touch
		}
	}
	bar := newProgress(cmd)
	bar.start("simulate "+c.Router, "requests", rows.total)
	defer bar.end()
	sim.Progress = bar.set
	s, run, err := sim.Run(cmd.Context())
	return simulated{s, run}, err
}
