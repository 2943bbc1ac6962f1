package runs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/result"
)

// checkJournal refuses to begin when the journal of another run is beside the output:
// nothing else is left of that run. An empty journal holds nothing.
func (f *Replay) checkJournal() error {
	name := result.JournalName(f.Out)
	if info, err := os.Stat(name); err != nil || info.Size() == 0 {
		return nil
	}
	if _, err := result.LastWritten(name); errors.Is(err, result.ErrRunning) {
		return cli.Usagef("a running replay writes %s: name another file with -o", name)
	}
	return cli.Usagef("%s is from a run that did not finish: continue that run with --resume, read it with reprise report %s, or delete it to begin again", name, f.Out)
}

// resumedCache says what was done to the servers' caches before the run that is to
// be resumed, and gives the prompts the seed that they then had. It is not done
// again: known tokens count what the servers hold of the run so far.
func (f *Replay) resumedCache(m *flags.PromptMaker) (*result.CacheDiscipline, error) {
	journal, err := result.Open(result.JournalName(f.Out))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is nothing to resume: %w", err)
	}
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	was := journal.Run.Cache
	if was == nil || was.Asked != f.Servers.Cache {
		return &result.CacheDiscipline{Asked: f.Servers.Cache, Done: result.CacheNothing}, nil // which is refused as another setting
	}
	if was.Done == result.CacheNewSeed && f.Prompts.Seed == "" {
		if m.Seed, err = strconv.ParseUint(journal.Run.Seed, 10, 64); err != nil {
			return nil, errors.New("--resume: the journal's seed is not a number")
		}
	}
	return was, nil
}

// resumption reads what the journals of the run say. The options are those of the
// run that is to come.
func (f *Replay) resumption(cmd *cobra.Command, part *workloadPart, seed uint64, o replay.Options) (*replay.Resumption, error) {
	again, err := f.Load.Schedule(o.Causal, seed) // arrivals of its own, to be read to their end
	if err != nil {
		return nil, err
	}
	o.Arrivals, o.Sessions = again.Arrivals, again.Sessions
	rows, err := part.reader()
	if err != nil {
		return nil, err
	}
	r, err := replay.ReadResumption(f.Out, o, rows)
	var other *replay.Disagreement
	if errors.As(err, &other) {
		return nil, cli.Usagef("--resume: %v", err)
	}
	if err != nil {
		return nil, err
	}
	gap := r.Gap()
	if t := gap.Twice; t != nil && t.Requests > 0 {
		cli.Notef(cmd, "resuming: %d requests had been sent and have no result; they are sent again, so the server sees them twice, %d prompt tokens in all (rows %s)",
			t.Requests, t.PromptTokens, rowList(t.Rows, t.Requests))
	}
	cli.Notef(cmd, "resuming: %d rows have a result and keep it, %d that were due are sent again; the clock goes on at %v, %v after the journal was last written",
		gap.Kept, gap.Again, time.Duration(gap.AtNS).Round(time.Millisecond), time.Duration(gap.DownNS).Round(time.Second))
	return r, nil
}

// rowList lists the first rows of so many, such as "4, 5, 6 and 20 more".
func rowList(rows []int64, of int64) string {
	var b strings.Builder
	shown := rows[:min(len(rows), 5)]
	for i, row := range shown {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, row)
	}
	if rest := of - int64(len(shown)); rest > 0 {
		fmt.Fprintf(&b, " and %d more", rest)
	}
	return b.String()
}
