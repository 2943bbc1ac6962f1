package runs

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/sample"
)

// readTrees reads the session trees of the part, where the load is by session. Where whole
// trees are measured, the seed draws which comes first. What it returns closes them.
func (p *workloadPart) readTrees(cmd *cobra.Command, load *flags.Load, seed uint64) (closing func(), err error) {
	closing = func() {}
	if !load.BySession() {
		return closing, nil
	}
	rows, err := p.once()
	if err != nil {
		return closing, err
	}
	// Blocks that were made up for want of others tell nothing of what turns repeat.
	if load.Trees, err = replay.ReadTrees(rows, p.w.Meta.BlockSize, load.Salted(), ""); err != nil {
		return closing, err
	}
	closing = func() { load.Trees.Close() }
	if load.Trees.Len() == 0 {
		return closing, cli.Usagef("the workload has no rows, so that there are no sessions to play")
	}
	if load.Window != nil && load.Trees.Len() == load.Trees.Rows() {
		return closing, cli.Usagef("the workload tells no sessions of more than one request: sweep over --rates or " +
			"--concurrencies, or import it with sessions")
	}
	if load.Window != nil { // the trial is one of many
		load.Trees.Begin(int64(sample.Mix64(seed) % uint64(load.Trees.Len())))
		return closing, nil
	}
	if share := load.Share; !share.Whole() {
		if err := enough(share, load.Trees.Len()); err != nil {
			return closing, err
		}
		load.Thin = replay.ThinTrees(share, load.Trees.Len())
		load.Trees.Deal(share)
		cli.Notef(cmd, "shard %v: %s of %d", share, doc.Many(load.Trees.Len(), "session"), load.Trees.Whole())
	}
	cli.Notef(cmd, "sessions: %s of %s, %.1f each on average", doc.Many(load.Trees.Len(), "session"),
		doc.Many(load.Trees.Rows(), "request"),
		float64(load.Trees.Rows())/float64(load.Trees.Len()))
	return closing, nil
}

// endless says whether a load of sessions plays them again and again, until its time is over.
func endless(o *replay.Options) bool { return o.Sessions != nil && o.Sessions.Endless(o) }

// warmTrajectories brings the servers' caches to where the first sessions begin, and makes
// what it sends known.
func (r *replayRun) warmTrajectories(o *replay.Options) error {
	if o.Sessions == nil || o.Sessions.Start == nil {
		return nil
	}
	all, took, about, err := o.WarmRequests()
	if err != nil {
		return err
	}
	rows, at := make([]trace.Request, len(all)), make([]time.Duration, len(all))
	for i := range all {
		rows[i], at[i] = all[i].Row, all[i].At
		r.known.Touch(&rows[i])
	}
	cli.Notef(r.cmd, "trajectory warm-up: %s under way in %s, %d prompt tokens over %v; %s before them are history "+
		"and not sent",
		doc.Many(about.Streams, "thread"), doc.Many(about.Trees, "session"), about.Tokens, took.Round(time.Second),
		doc.Many(about.History, "request"))
	if len(rows) > 0 {
		prompter, err := r.servers.prompter() // of its own, since the run's counts what it makes
		if err != nil {
			return err
		}
		bar := cli.NewProgress(r.cmd)
		bar.Start("trajectory warm-up", "requests", int64(len(rows)))
		defer bar.End()
		primer := replay.Primer{Prompter: prompter, Endpoint: r.endpoint, Concurrency: len(rows), At: at, Least: took,
			Progress: bar.Set}
		sent, failures, err := primer.Prime(r.cmd.Context(), rows)
		if r.cmd.Context().Err() != nil {
			return err
		}
		for i, why := range failures {
			if why != "" {
				return cli.Exit(cli.Untrusted,
					fmt.Errorf("the trajectory warm-up failed, so that the server's cache is not where the sessions "+
						"begin and nothing was measured: %d of %s, first the one of session %s: %s",
						sent.Failed, doc.Many(int64(len(rows)), "request"), sessionName(&rows[i]), why))
			}
		}
		about.TookNS = sent.TookNS
	}
	o.Sessions.Warmed = &about
	return nil
}

func sessionName(r *trace.Request) string {
	if r.Session == nil {
		return "(none)"
	}
	return fmt.Sprint(*r.Session)
}

// tellSessions says in a line what became of a load of sessions.
func tellSessions(cmd *cobra.Command, s *result.Sessions) {
	if s == nil || s.Counts == nil {
		return
	}
	c := s.Counts
	live := ""
	if l := c.LiveTrees; l != nil {
		live = fmt.Sprintf(", %d to %d live at once, %.4g on average", l.Min, l.Max, l.Mean)
	}
	cli.Notef(cmd, "sessions: %d started, %d finished%s; each was played %s", c.Started, c.Finished, live,
		times(c.MinPlays, c.MaxPlays))
	if n := c.Gaps.Ends + c.Gaps.Starts + c.Gaps.Offsets; n > 0 {
		cli.Notef(cmd, "sessions: %d waits are think and tool times as recorded; %d were taken from recorded ends, "+
			"%d from recorded starts, since neither was recorded, and %d are distances from the first request "+
			"of a session",
			c.Gaps.Recorded, c.Gaps.Ends, c.Gaps.Starts, c.Gaps.Offsets)
	}
	if c.Gaps.Implied > 0 {
		cli.Notef(cmd, "sessions: the workload names no parents of %s, only the session; each waited for the "+
			"turn before it", doc.Many(c.Gaps.Implied, "turn"))
	}
	for _, cap := range []struct {
		flag string
		result.Capped
	}{{"gap-cap", c.GapCap}, {"idle-cap", c.IdleCap}, {"session-idle-cap", c.TreeCap}} {
		if cap.Times > 0 {
			cli.Notef(cmd, "sessions: %s shortened %s, by %v in all", cap.flag, doc.Many(cap.Times, "wait"),
				time.Duration(cap.NS).Round(time.Millisecond))
		}
	}
	if c.HeldBack > 0 {
		cli.Notef(cmd, "sessions: %d were held back by --set max-sessions, for %v in all, at most %v", c.HeldBack,
			time.Duration(c.HeldNS).Round(time.Millisecond), time.Duration(c.HeldMostNS).Round(time.Millisecond))
	}
}

func times(least, most int64) string {
	if least == most {
		return doc.Many(least, "time")
	}
	return fmt.Sprintf("%d to %s", least, doc.Many(most, "time"))
}
