package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"reprise/replay"
)

// resumeFlags say whether a replay goes on with a run that was killed.
type resumeFlags struct{ resume bool }

func (f *resumeFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.resume, "resume", false, "go on with the run whose journal stands beside the output, after a crash: what has a result is kept, and the gap is marked")
}

// checkResume refuses what a resumed run cannot have, before a server is asked for
// anything.
func (f *replayFlags) checkResume() error {
	switch {
	case !f.resume:
	case f.dry.run:
		return usagef("--dry-run and --resume contradict each other: the plan is that of the whole run")
	}
	return nil
}

// resumedCache says what was done to the servers' caches before the run that is to
// be resumed, and gives the prompts the seed that they then had. It is not done
// again: known tokens count what the servers hold of the run so far.
func (f *replayFlags) resumedCache(m *promptMaker) (*replay.CacheDiscipline, error) {
	journal, err := replay.OpenResults(replay.JournalName(f.out))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is nothing to resume: %w", err)
	}
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	was := journal.Run.Cache
	if was == nil || was.Asked != f.cache {
		return &replay.CacheDiscipline{Asked: f.cache, Done: replay.CacheNothing}, nil // which is refused as another setting
	}
	if was.Done == replay.CacheNewSeed && f.prompts.seed == "" {
		if m.seed, err = strconv.ParseUint(journal.Run.Seed, 10, 64); err != nil {
			return nil, errors.New("--resume: the journal's seed is not a number")
		}
	}
	return was, nil
}

// resumption reads what the journals of the run say. The options are those of the
// run that is to come.
func (f *replayFlags) resumption(cmd *cobra.Command, part *workloadPart, seed uint64, o replay.Options) (*replay.Resumption, error) {
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
