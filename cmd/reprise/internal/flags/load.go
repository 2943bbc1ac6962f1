package flags

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// Load says when the rows of a replay are due, and how many are in flight.
type Load struct {
	Speed         float64 // --speed, 1 is as recorded
	OpenLoop      bool    // --open-loop
	keepThink     bool
	Rate          string // --rate, empty for recorded times
	Concurrency   int    // --concurrency, 0 for an open loop
	rampUp        time.Duration
	Duration      time.Duration // --duration, 0 for the whole workload
	warmup        string
	cooldown      string
	MaxInFlight   int // --max-in-flight, 0 for no limit
	includeFailed bool
	Requests      int64 // of the workload, for a rate that grows with them

	Share result.Share     // that is sent of the load
	Thin  *replay.Thinning // that leaves the arrivals of the share, nil for all
	SessionLoad
}

// Register adds the flags, but for --max-in-flight, which only a replay has.
func (f *Load) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	everyday, rest := Sections(fl, LoadFlags)
	everyday.FactorVar(&f.Speed, "speed", 1, "replay this much faster: 2 or 2x halves recorded, think and tool times")
	everyday.BoolVar(&f.OpenLoop, "open-loop", false,
		"recorded times, even if earlier turns are unfinished")
	rest.BoolVar(&f.keepThink, "keep-think", false, "")
	everyday.RateFlag(&f.Rate, "arrivals in place of recorded times: 5 (per second), 300/min, or a `process` such as "+
		"gamma:5,cv=2, ramp:1-10,60s or inf (all at once). For sessions, the rate of first turns")
	everyday.IntVar(&f.Concurrency, "concurrency", 0,
		"closed loop: keep this many requests in flight. Latencies then hide saturation")
	f.SessionLoad.Register(everyday, rest)
	rest.DurationVar(&f.rampUp, "ramp-up", 0, "")
	everyday.DurationVar(&f.Duration, "duration", 0, "stop sending after this time; 0 sends the whole workload")
	everyday.StringVar(&f.warmup, "warmup", "",
		"leave the first requests out of all figures: a number, or a `span` such as 30s; of a load by session also "+
			"20sessions, until so many have ended")
	rest.StringVar(&f.cooldown, "cooldown", "", "")
	rest.BoolVar(&f.includeFailed, "include-failed", false, "")
}

// Paced tells whether the flags say when requests are sent, whatever times a workload has.
func (f *Load) Paced() bool { return f.Rate != "" || f.Concurrency > 0 || f.BySession() }

// ErrUnpaced is the error for requests without times where the flags say none.
var ErrUnpaced = cli.Usagef("say how fast the requests are sent, such as --rate 4 (per second) or --concurrency 10")

// Lineage reads which rows wait for which. It is nil for an open loop: when that
// is asked for, or the workload has no turn with a think or tool time.
func (f *Load) Lineage(cmd *cobra.Command, open func() (trace.Reader[replay.Turn], error)) (*replay.Lineage, error) {
	SayRate(cmd)
	if f.BySession() {
		return nil, nil
	}
	if f.OpenLoop || f.Concurrency > 0 {
		return nil, f.noSpeedWithRate()
	}
	turns, err := open()
	if err != nil {
		return nil, err
	}
	l, err := replay.ReadLineage(turns)
	if err != nil {
		return nil, err
	}
	if l.Timed() == 0 {
		if f.keepThink {
			return nil, cli.Usagef("--set keep-think: the workload has no think or tool times")
		}
		return nil, f.noSpeedWithRate()
	}
	cli.Notef(cmd, "causal: %d turns wait for earlier turns and a think or tool time; --open-loop sends at "+
		"recorded times", l.Timed())
	if n := l.Backward(); n > 0 {
		cli.Warnf(cmd, "%d parents stand below their turns in the file and are not waited for", n)
	}
	return l, nil
}

// noSpeedWithRate refuses a speed that has nothing to divide.
func (f *Load) noSpeedWithRate() error {
	if f.Rate != "" && f.Speed != 1 {
		return cli.Usagef("--rate and --speed cannot be used together when no turn waits for another: the rate " +
			"replaces the recorded times")
	}
	return nil
}

// Check refuses flags that cannot be used together.
func (f *Load) Check() error {
	if !(f.Speed > 0 && f.Speed <= 1e9) {
		return cli.Usagef("--speed: a number above 0, up to 1,000,000,000")
	}
	if f.OpenLoop && f.keepThink {
		return cli.Usagef("--set keep-think cannot be used with --open-loop, which has no think times")
	}
	for _, other := range []struct {
		name  string
		given bool
	}{
		{"open-loop", f.OpenLoop}, {"set keep-think", f.keepThink}, {"rate", f.Rate != ""}, {"speed", f.Speed != 1},
		{"max-in-flight", f.MaxInFlight != 0},
	} {
		if f.Concurrency != 0 && other.given && other.name == "rate" {
			return cli.Usagef("--concurrency and --rate are two loads: give one of them. For a rate with at most %d "+
				"in flight: --rate %s --max-in-flight %[1]d", f.Concurrency, f.Rate)
		}
		if f.Concurrency != 0 && other.given {
			return cli.Usagef("--concurrency and --%s cannot be used together: in a closed loop a request is sent "+
				"when another ends", other.name)
		}
	}
	if err := f.checkSessions(f); err != nil {
		return err
	}
	if f.rampUp > 0 && f.Concurrency == 0 && f.Sessions == 0 {
		return cli.Usagef("--set ramp-up needs --concurrency or --sessions; for arrivals, use --rate ramp:1-10,60s")
	}
	_, err := f.Schedule(nil, 0)
	return err
}

// StopGrace is how long requests in flight may take to end after an interrupt.
const StopGrace = 5 * time.Second

// Schedule says when rows are due, with a seed for random arrivals.
func (f *Load) Schedule(lineage *replay.Lineage, seed uint64) (o replay.Options, err error) {
	o = replay.Options{Grace: StopGrace, Speed: f.Speed, MaxInFlight: f.MaxInFlight, IncludeFailed: f.includeFailed,
		Causal: lineage, KeepThink: f.keepThink, Concurrency: f.Concurrency, RampUp: f.rampUp,
		Duration: f.Duration, Share: f.Share}
	if f.Rate != "" {
		if o.Arrivals, err = arrivals(f.Rate, arrival.Stream(seed, bench.ArrivalStream), f.Requests); err != nil {
			return o, cli.Usagef("--rate: %v", err)
		}
		o.Arrivals = f.Thin.Of(o.Arrivals)
	}
	trees := int64(1)
	if f.Trees != nil {
		trees = f.Trees.Whole()
	}
	if o.Sessions, err = f.sessions(seed, trees); err != nil {
		return o, err
	}
	if o.Sessions != nil && o.Sessions.Arrivals != nil {
		o.Sessions.Arrivals = f.Thin.Of(o.Sessions.Arrivals)
	}
	if o.Warmup, err = replay.ParseSpan(f.warmup); err != nil {
		return o, cli.Usagef("--warmup: %v", err)
	}
	if o.Warmup.Sessions > 0 && !f.BySession() {
		return o, cli.Usagef("--warmup of sessions needs --sessions or --session-rate")
	}
	if o.Cooldown, err = replay.ParseSpan(f.cooldown); err != nil {
		return o, cli.Usagef("--set cooldown: %v", err)
	}
	return o, nil
}

// Abort says what ends a replay early.
type Abort struct{ abortOn string }

// Register adds the flag.
func (f *Abort) Register(cmd *cobra.Command) {
	_, rest := Sections(cmd.Flags(), RunningFlags)
	rest.StringVar(&f.abortOn, "abort-on", "",
		"stop the run when one of these `conditions` holds for 10 s and 20 requests: "+
			"error_rate>5%,in_flight>100,p99_ttft>10s")
}

// Check refuses conditions that cannot be read.
func (f *Abort) Check() error {
	_, err := f.Conditions()
	return err
}

// Conditions are those of --abort-on, nil without one.
func (f *Abort) Conditions() ([]replay.Condition, error) {
	if f.abortOn == "" {
		return nil, nil
	}
	c, err := replay.ParseConditions(f.abortOn)
	if err != nil {
		return nil, cli.Usagef("--abort-on: %v", err)
	}
	return c, nil
}

// Take takes over the load of a trial.
func (f *Load) Take(t bench.Trial) {
	f.Rate, f.Concurrency, f.Duration, f.warmup, f.cooldown = t.Load.Rate, t.Load.Concurrency, t.Duration,
		t.Warmup, t.Cooldown
	f.Speed, f.rampUp = cmp.Or(t.Load.Speed, f.Speed), t.Load.RampUp
	f.Sessions, f.SessionRate, f.Window = t.Load.Sessions, t.Load.SessionRate, nil
	if t.Session != nil {
		f.SessionSettings, f.Window = t.Session.SessionSettings, t.Session.Window
	}
}
