package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/bench"
	"reprise/replay/contract"
	"reprise/trace/doc"
	"reprise/trace/quantity"
)

// ladder is the loads that the flags name, or how they are searched for.
func (f *sweepFlags) ladder() (bench.Ladder, error) {
	closed := f.closed || len(f.concurrencies) > 0
	l := bench.Ladder{From: f.from, Resolution: f.resolution, Whole: closed, Past: f.past}
	flag, list := "rates", f.rates
	if closed {
		flag, list = "concurrencies", f.concurrencies
	}
	switch {
	case closed && len(f.rates) > 0:
		return l, cli.Usagef("--rates and --concurrencies cannot be used together: a closed loop has no rate")
	case f.adaptive && len(list) > 0:
		return l, cli.Usagef("--adaptive finds the loads itself: give it, or --%s", flag)
	case f.adaptive:
		if l.From == 0 {
			l.From = f.firstLoad(closed)
		}
		return l, nil
	case len(list) == 0 && closed:
		l.Loads = bench.DefaultConcurrencies
	case len(list) == 0:
		l.Loads = bench.DefaultRates
	}
	for _, s := range list {
		load, err := quantity.Rate(s)
		if err != nil {
			return l, cli.Usagef("--%s: %v", flag, err)
		}
		l.Loads = append(l.Loads, load)
	}
	return l, nil
}

// firstLoad is where a search begins: with one request in flight, or with the lowest rate at which a level takes no
// longer than at a higher one. At half of that rate a level takes twice as long.
func (f *sweepFlags) firstLoad(closed bool) float64 {
	if closed || f.duration <= 0 {
		return 1
	}
	return max(1, float64(f.requests)/f.duration.Seconds())
}

// estimate says how long a sweep of a server takes, after which a dry run is over. A simulation takes no time of its
// own.
func estimate(cmd *cobra.Command, s *bench.Sweep, dry bool) (err error) {
	if dry {
		defer func() { err = cmp.Or(err, sayDry(cmd)) }()
	}
	if _, simulated := s.Target.(runs.SimulatedTarget); simulated {
		return nil
	}
	s.Begins = func(b bench.Beginning) { cli.Notef(cmd, "%v", b) }
	if len(s.Ladder.Loads) == 0 {
		first, least, err := s.EstimateSearch()
		if err == nil {
			ends := ""
			if s.Confirm && s.Precision == 0 {
				ends = fmt.Sprintf("; then come runs that confirm the highest load, --sustain %v", s.Sustain)
			}
			cli.Notef(cmd, "estimate: at most %v for the first level (--set from=LOAD begins elsewhere); how many "+
				"follow is found by the answers, often 8 to 12, of %v each at least%s", first.Round(time.Second),
				least.Round(time.Second), ends)
		}
		return err
	}
	e, err := s.Estimate()
	if err == nil {
		sooner := "fewer where the server is saturated before"
		if contract.Of(s.Report) != nil && !s.Closed() {
			sooner += ". --adaptive finds the highest rate within a contract in fewer"
		}
		sayEstimate(cmd, e, sooner)
	}
	return err
}

// sayLevel says how a level ended.
func sayLevel(cmd *cobra.Command, l *bench.Level) {
	if l.Sessions != nil {
		cli.Notef(cmd, "%s: %s, session time p50 %s, p95 %s ms, TTFT p99 %s ms", l.Name, l.Outcome,
			doc.OrDash(l.Sessions.Time.P50, doc.Number), doc.OrDash(l.Sessions.Time.P95, doc.Number),
			doc.OrDash(l.TTFTDue.P99, doc.Number))
		return
	}
	if l.NotHeld() {
		cli.Notef(cmd, "%s: %s: %s", l.Name, l.Outcome, l.Why)
		return
	}
	cli.Notef(cmd, "%s: %s, TTFT p50 %s, p99 %s ms", l.Name, l.Outcome, doc.OrDash(l.TTFTDue.P50, doc.Number),
		doc.OrDash(l.TTFTDue.P99, doc.Number))
}

const dryRunUsage = "send nothing: print the runs and how long they take"

// sayDry ends a command that has said how long it would take.
func sayDry(cmd *cobra.Command) error {
	cli.Message(cmd.OutOrStdout(), "Dry run: nothing was sent.")
	return flags.ErrPrinted
}

// sayEstimate says before several runs how long they send, and what ends them sooner.
func sayEstimate(cmd *cobra.Command, e bench.Estimate, sooner string) {
	if e.Runs > 1 {
		cli.Notef(cmd, "estimate: %s; %s", e, sooner)
	}
}
