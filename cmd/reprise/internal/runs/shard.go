package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/result"
	"reprise/replay/shard"
	"reprise/trace"
	"reprise/trace/doc"
)

// checkShard reads the share, which the load then has, and refuses what shards cannot do.
func (f *Replay) checkShard() error {
	if err := f.Shard.Check(); err != nil {
		return err
	}
	f.Load.Share = f.Shard.Share
	switch {
	case f.Shard.Share.Whole() && (f.Shard.ClockPeer != "" || f.Shard.ClockListen != ""):
		return cli.Usagef("--set clock-peer and --set clock-listen are for the shards of a load: give --shard too")
	case f.Shard.Share.Whole():
		return nil
	case f.Shard.StartAt.IsZero() && !f.Dry.Run:
		return cli.Usagef("--shard needs --start-clock, so that all shards start at one instant")
	case f.Scenario.Rules != nil:
		return cli.Usagef("--shard and --scenario cannot be used together: the rules of a published benchmark are " +
			"for one client")
	}
	return nil
}

// checkShare refuses a schedule that shards cannot have.
func (f *Replay) checkShare() error {
	o, err := f.Load.Schedule(nil, 0)
	if err != nil {
		return err
	}
	if err := o.CheckShare(); err != nil {
		return cli.Usagef("--shard: %s", strings.TrimPrefix(err.Error(), "replay: "))
	}
	return nil
}

// ShardDone says where the results of a shard are, and lets a verdict on them be: a shard is not
// judged by itself, and one that failed would end the jobs of the others.
func (f *Replay) ShardDone(cmd *cobra.Command, verdict error) error {
	var exit *cli.ExitError
	if errors.As(verdict, &exit) && (exit.Code == cli.Untrusted || exit.Code == cli.Check) {
		cli.Warnf(cmd, "shard %v: %v; the exit code is 0, since the load is judged as a whole", f.Shard.Share, verdict)
		verdict = nil
	}
	if verdict == nil {
		cli.Notef(cmd, "shard %v is in %s: reprise merge joins it with the others", f.Shard.Share, f.Out)
	}
	return verdict
}

// enough refuses more shards than there are sessions: one would have nothing to send.
func enough(share result.Share, sessions int64) error {
	if int64(share.Of) > sessions {
		return cli.Usagef("--shard %v: a session is sent by one shard, and there are only %d: %d shards at most", share,
			sessions, sessions)
	}
	return nil
}

// deal leaves the rows of the share. A load by session deals trees in their place.
func (p *workloadPart) deal(cmd *cobra.Command, load *flags.Load) error {
	share := load.Share
	if share.Whole() || load.BySession() {
		return nil
	}
	members, err := trace.Columns[trace.Member](p.w)
	if err != nil {
		return err
	}
	dealt, sessions, err := p.every.Deal(members, share.Has)
	if err != nil {
		return err
	}
	if err := enough(share, sessions); err != nil {
		return err
	}
	p.rows = dealt
	if p.loop != nil {
		p.loop.Rows = dealt.Len()
	}
	cli.Notef(cmd, "shard %v: %d of %s, %d of %s", share, dealt.Len(), doc.Many(p.every.Len(), "row"),
		share.Count(int(sessions)), doc.Many(sessions, "session"))
	return nil
}

// lineage reads which rows wait for which. Whether any does, and which rows have an arrival
// of --rate, is a question to the whole load.
func (p *workloadPart) lineage(cmd *cobra.Command, load *flags.Load) (*replay.Lineage, error) {
	whole, err := load.Lineage(cmd, func() (trace.Reader[replay.Turn], error) { return p.turns(&p.every) })
	if err != nil || load.Share.Whole() || load.BySession() {
		return whole, err
	}
	if load.Rate != "" {
		o, err := load.Schedule(nil, 0)
		if err != nil {
			return nil, err
		}
		rows, err := p.roundOf(&p.every)
		if err != nil {
			return nil, err
		}
		load.Thin, err = replay.ThinRows(o, whole, rows, func(i int64) bool {
			_, mine := p.rows.Index(p.every.Row(i))
			return mine
		})
		if err != nil {
			return nil, err
		}
	}
	if whole == nil {
		return nil, nil
	}
	turns, err := p.turns(&p.rows)
	if err != nil {
		return nil, err
	}
	return replay.ReadLineage(turns)
}

// knownOfAll is [replay.Options].Known by touch, which is told the rows of the other shards
// too, each before the first of the share that stands below it: they are taken to be sent in
// the order of the workload. In a load by session it is told those of the share alone.
func (p *workloadPart) knownOfAll(touch func(*trace.Request) int32, o *replay.Options) func(int64,
	*trace.Request) int32 {
	if o.Share.Whole() || o.Sessions != nil {
		return func(_ int64, row *trace.Request) int32 { return touch(row) }
	}
	others := &othersRows{part: p, failed: o.IncludeFailed, batch: make([]trace.Request, 64)}
	return func(id int64, row *trace.Request) int32 {
		others.upTo(id, touch)
		return touch(row)
	}
}

// othersRows reads the rows of all shards beside a run of one.
type othersRows struct {
	part   *workloadPart
	failed bool // rows that failed in the source are sent
	rows   trace.Reader[trace.Request]
	batch  []trace.Request
	ready  []trace.Request
	next   int64 // number of the first of ready, over all rounds
	over   bool
}

// upTo tells of the rows of other shards before the id-th of this one.
func (r *othersRows) upTo(id int64, touch func(*trace.Request) int32) {
	p := r.part
	round := id / p.rows.Len()
	index, _ := p.every.Index(p.rows.Row(id % p.rows.Len()))
	for until := round*p.every.Len() + index; r.next < until; r.next++ {
		if !r.fill() {
			return
		}
		row := &r.ready[0]
		r.ready = r.ready[1:]
		if _, mine := p.rows.Index(p.every.Row(r.next % p.every.Len())); !mine &&
			(r.failed || row.Status != trace.StatusFailed) {
			touch(row)
		}
	}
}

// fill sees that a row is ready. The workload was read whole before the run: an error here,
// like its end, leaves the others unknown.
func (r *othersRows) fill() bool {
	if r.rows == nil {
		p := r.part
		open := func() (trace.Reader[trace.Request], error) { return p.roundOf(&p.every) }
		if p.loop != nil {
			all := *p.loop
			all.Open, all.Rows = open, p.every.Len()
			r.rows = &all
		} else if rows, err := open(); err == nil {
			r.rows = rows
		} else {
			r.over = true
		}
	}
	for len(r.ready) == 0 && !r.over {
		n, err := r.rows.Read(r.batch)
		r.ready, r.over = r.batch[:n], err != nil && (err == io.EOF || n == 0)
	}
	return len(r.ready) > 0
}

// listenClock tells others the time until the run is over.
func (r *replayRun) listenClock() error {
	if r.Shard.ClockListen == "" {
		return nil
	}
	clock, err := shard.ListenClock(r.Shard.ClockListen)
	if err != nil {
		return fmt.Errorf("--set clock-listen: %w", err)
	}
	r.closes = append(r.closes, func() { clock.Close() })
	return nil
}

// clockPatience is how long a peer may take to answer where no start is given.
const clockPatience = 10 * time.Second

// measureClock measures the clock against the peer's, and refuses one that may be too far off.
func (r *replayRun) measureClock() error {
	if r.Shard.ClockPeer == "" {
		return nil
	}
	until := r.Shard.StartAt
	if until.IsZero() {
		until = time.Now().Add(clockPatience)
	}
	ctx, cancel := context.WithDeadline(r.cmd.Context(), until)
	defer cancel()
	offset, err := shard.MeasureClock(ctx, r.Shard.ClockPeer)
	if err != nil {
		return cli.Exit(cli.Untrusted, fmt.Errorf("--set clock-peer: %w", err))
	}
	off, uncertain := time.Duration(offset.OffsetNS), time.Duration(offset.UncertaintyNS)
	cli.Notef(r.cmd, "clock: %s is %v ahead, ± %v (%d exchanges)", offset.Peer, off.Round(time.Microsecond),
		uncertain.Round(time.Microsecond), offset.Exchanges)
	if most := r.Shard.MaxOffset; most > 0 && off.Abs()+uncertain > most {
		return cli.Exit(cli.Untrusted,
			fmt.Errorf("--set max-clock-offset: the clock may be %v from the clock of %s, and %v is allowed: "+
				"nothing was sent. Set the clocks, such as by chrony", (off.Abs()+uncertain).Round(time.Microsecond),
				offset.Peer, most))
	}
	r.about.Shard = &result.Shard{Clock: &offset}
	return nil
}
