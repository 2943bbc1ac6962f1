package flags

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace/quantity"
)

// Shard says which share of a load a replay sends, and by what clock.
type Shard struct {
	Share       result.Share  // of --shard; the whole without it
	StartAt     time.Time     // of --start-clock; zero without it
	ClockPeer   string        // clock-peer, empty for none
	ClockListen string        // clock-listen, empty for none
	MaxOffset   time.Duration // max-clock-offset, 0 for no limit

	shard, startClock string
}

// Register adds the flags.
func (f *Shard) Register(cmd *cobra.Command) {
	_, rest := Sections(cmd.Flags(), ShardFlags)
	rest.StringVar(&f.shard, "shard", "",
		"send only this share of the sessions: `i/n`, numbered from 0. /n takes i from JOB_COMPLETION_INDEX or "+
			"SLURM_ARRAY_TASK_ID. reprise merge joins the results")
	rest.StringVar(&f.startClock, "start-clock", "",
		"start at this `instant` of the wall clock: RFC 3339, or +30s, which is rounded up to the next ten seconds. "+
			"Exit code 4 where it is over before all is ready")
	rest.StringVar(&f.ClockPeer, "clock-peer", "", "")
	rest.StringVar(&f.ClockListen, "clock-listen", "", "")
	rest.DurationVar(&f.MaxOffset, "max-clock-offset", 0, "")
}

// Check implements [Group].
func (f *Shard) Check() (err error) {
	if f.shard != "" {
		if f.Share.Index, f.Share.Of, err = ParseShare(f.shard); err != nil {
			return err
		}
	}
	if f.startClock != "" {
		if f.StartAt, err = parseStartClock(f.startClock, time.Now()); err != nil {
			return err
		}
	}
	if f.MaxOffset > 0 && f.ClockPeer == "" {
		return cli.Usagef("--set max-clock-offset needs --set clock-peer, whose clock it is about")
	}
	return nil
}

// startRound is what a relative start is rounded up to, so that processes that are started
// together have the same.
const startRound = 10 * time.Second

// parseStartClock reads an instant as RFC 3339, or as a time from now with a plus, which is
// rounded up to the next ten seconds.
func parseStartClock(text string, now time.Time) (time.Time, error) {
	if after, relative := strings.CutPrefix(text, "+"); relative {
		if d, err := quantity.Duration(after); err == nil && d > 0 {
			at := now.Add(d).UTC().Round(0)
			if whole := at.Truncate(startRound); whole.Before(at) {
				at = whole.Add(startRound)
			}
			return at, nil
		}
	} else if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.UTC(), nil
	}
	return time.Time{}, cli.Usagef("--start-clock: %s is no instant: write 2026-05-01T12:00:00Z, or +30s",
		quantity.Quote(text))
}
