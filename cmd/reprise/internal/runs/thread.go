package runs

import (
	"errors"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay"
	"reprise/replay/client"
	"reprise/trace"
	"reprise/trace/profile"
)

// threading has the run put replies into prompts. It is nil unless asked for.
func (r *replayRun) threading() (*replay.Threading, error) {
	if !r.thread {
		return nil, nil
	}
	cmd, m := r.cmd, r.maker
	words := m.Words
	overhead, err := r.endpoint.CalibrateTurn(cmd.Context(), words.Text[0])
	if errors.Is(err, client.ErrUncounted) {
		cli.Warnf(cmd, "threads: the server sends no usage, so what its template adds with a turn is not known and "+
			"not left room for")
		err = nil
	}
	if err != nil {
		return nil, err
	}
	t := &replay.Threading{Encode: m.Tok.Append, Decode: m.Tok.AppendText, Word: words.Text[0], TurnOverhead: overhead,
		After: r.servers.templates[r.Target.API].After,
		Whole: profile.NewKnownPass(m.BlockSize, true, profile.WithTails(m.Tails.Of)).Touch}
	// If no block stands in two rows, the blocks were made up for want of others: the least
	// that turns of a session share is how their prompts begin.
	shares := false
	if r.w.Meta.BlockSize > 0 {
		rows, err := r.w.Reader()
		if err != nil {
			return nil, err
		}
		var ids trace.Renumber
		err = trace.Each(rows, func(_ int64, row *trace.Request) error {
			for _, id := range row.Blocks {
				known := uint64(ids.Len())
				shares = shares || ids.ID(id) < known
			}
			if shares {
				return errShares
			}
			return nil
		})
		if err != nil && !shares {
			return nil, err
		}
	}
	if shares {
		t.BlockSize = m.BlockSize
	} else {
		cli.Warnf(cmd, "threads: no two requests of the workload share a block, so it tells nothing of what turns "+
			"repeat: every turn that is long enough goes on from the reply before it")
	}
	return t, nil
}

var errShares = errors.New("a block is shared") // ends the reading
