package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"reprise/replay"
)

// resumeFlags say whether a replay goes on with a run that was killed.
type resumeFlags struct{ resume bool }

func (f *resumeFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.resume, "resume", false, "go on with the run whose journal stands beside the output, after a crash: what has a result is kept, and the gap is marked")
}

// resumption reads what the journals of the run say. The options are those of the
// run that is to come.
func (f *replayFlags) resumption(cmd *cobra.Command, part *workloadPart, seed uint64, o replay.Options) (*replay.Resumption, error) {
	if part.loop != nil {
		return nil, usagef("--resume cannot go on with a run of several rounds: --loop")
	}
	if len(f.scrapes) > 0 || f.prometheus != "" {
		return nil, usagef("--resume measures nothing at servers, whose figures would have a gap: leave out --scrape and --prometheus")
	}
	again, err := f.schedule(o.Causal, seed) // arrivals of its own, to be read to their end
	if err != nil {
		return nil, err
	}
	o.Arrivals = again.Arrivals
	rows, err := part.reader()
	if err != nil {
		return nil, err
	}
	r, err := replay.ReadResumption(f.out, o, rows)
	var other *replay.Disagreement
	if errors.As(err, &other) {
		return nil, usagef("--resume: %v", err)
	}
	if err != nil {
		return nil, err
	}
	gap := r.Gap()
	notef(cmd, "resuming: %d rows have a result and keep it, %d that were due are sent again; the clock goes on at %v, %v after the journal was last written",
		gap.Kept, gap.Again, time.Duration(gap.AtNS).Round(time.Millisecond), time.Duration(gap.DownNS).Round(time.Second))
	return r, nil
}
