package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/result"
	"reprise/synth"
	"reprise/synth/fidelity"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/profile"
)

// modeFlags say which part of a workload is replayed, how often, and whether at
// all.
type modeFlags struct {
	start, end       time.Duration
	prime            string
	primeTokens      int64
	primeConcurrency int
	sample           string
	maxRequests      int64
	loop             string
	loopSame         bool
	loopUnsaid       bool // of a trial, which is one of many
	dry              dryFlags
}

// Values of --prime.
const (
	primeLRU  = "lru"
	primeNone = "none"
)

// defaultPrimeTokens is about what the KV cache of one node of eight large
// accelerators holds for a 70-billion-parameter model.
const defaultPrimeTokens = 1_000_000

const defaultPrimeConcurrency = 8

func (f *modeFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.DurationVar(&f.start, "start", 0, "begin of the window of the workload to replay, from its start, that of its declared capture; 0s waits for the first request as long as the capture did; what was in a prefix cache by then is sent first, see --prime")
	fl.DurationVar(&f.end, "end", 0, "end of the window; 0 is the end of the workload")
	fl.StringVar(&f.prime, "prime", primeLRU, "what is in the server's cache at --start: lru (the prefixes that a cache of --prime-tokens would hold, sent before the run and not measured) or none")
	fl.Int64Var(&f.primeTokens, "prime-tokens", defaultPrimeTokens, "tokens of the cache that --prime fills")
	fl.IntVar(&f.primeConcurrency, "prime-concurrency", defaultPrimeConcurrency, "requests at once that prime the cache")
	fl.StringVar(&f.sample, "sample", "", "`share` of the sessions to replay, such as 10% or 0.1, whole and at their recorded times, so that the rate falls with it")
	fl.Int64Var(&f.maxRequests, "max-requests", 0, "replay only so many rows, the first; 0 is all")
	fl.StringVar(&f.loop, "loop", "", "play the workload again and again: a number of `rounds`, or for as long as a duration such as 2h")
	fl.BoolVar(&f.loopSame, "loop-same", false, "every round of --loop sends the prompts of the first, and finds them in the server's cache")
	f.dry.register(fl)
}

// check refuses flags that have no meaning, alone or together.
func (f *modeFlags) check() error {
	switch {
	case f.start < 0 || f.end < 0 || f.end > 0 && f.end <= f.start:
		return cli.Usagef("the window from %v to %v is empty", f.start, f.end)
	case f.prime != primeLRU && f.prime != primeNone:
		return cli.Usagef("--prime: want %s or %s", primeLRU, primeNone)
	case f.primeTokens < 1 || f.primeConcurrency < 1:
		return cli.Usagef("--prime-tokens and --prime-concurrency: want a number above 0; --prime none sends nothing before the run")
	case (f.prime != primeLRU || f.primeTokens != defaultPrimeTokens || f.primeConcurrency != defaultPrimeConcurrency) && f.start == 0:
		return cli.Usagef("--prime is for a window that begins in the workload: give --start")
	case f.maxRequests < 0:
		return cli.Usagef("--max-requests: want a number above 0")
	case f.loopSame && f.loop == "":
		return cli.Usagef("--loop-same is about the rounds of --loop")
	}
	if _, err := f.share(); err != nil {
		return err
	}
	if _, err := f.rounds(); err != nil {
		return err
	}
	return f.dry.check()
}

// share reads --sample; 1 is everything.
func (f *modeFlags) share() (float64, error) {
	if f.sample == "" {
		return 1, nil
	}
	digits, percent := strings.CutSuffix(f.sample, "%")
	share, err := strconv.ParseFloat(digits, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, cli.Usagef("--sample: want a share above 0, up to 1, such as 0.1 or 10%%")
	}
	return share, nil
}

// rounds reads --loop. The zero Span is one round.
func (f *modeFlags) rounds() (replay.Span, error) {
	s, err := replay.ParseSpan(f.loop)
	if err != nil || f.loop != "" && s == (replay.Span{}) || s.Requests > math.MaxInt32 {
		return s, cli.Usagef("--loop: want a number of rounds, such as 3, or a duration, such as 2h")
	}
	return s, nil
}

// settle has a loop for a duration end with it.
func (f *replayFlags) settle() error {
	if err := f.modeFlags.check(); err != nil {
		return err
	}
	loop, err := f.rounds()
	if loop.Time > 0 && (f.Duration == 0 || loop.Time < f.Duration) {
		f.Duration = loop.Time
	}
	return err
}

// A workloadPart is what is replayed of a workload, and how often.
type workloadPart struct {
	w         *trace.Trace
	blockSize int
	rows      trace.Part
	of        int64 // rows of the workload
	fromNS    int64
	loop      *replay.Loop // nil for once
	endless   bool

	about result.Selection
}

// part chooses what the flags ask for: first the window, then the sample of it,
// then the first rows of that, and then how often.
func (f *modeFlags) part(cmd *cobra.Command, w *trace.Trace, seed uint64) (*workloadPart, error) {
	all, blockSize, err := workloadRows(w)
	if err != nil {
		return nil, err
	}
	p := &workloadPart{w: w, blockSize: blockSize, rows: trace.Whole(all.total), of: all.total, fromNS: int64(f.start)}
	if f.start > 0 || f.end > 0 {
		if err := p.cut(int64(f.start), int64(f.end)); err != nil {
			return nil, err
		}
		cli.Notef(cmd, "window: %d of %d rows, from %v on", p.rows.Len(), p.of, f.start)
	}
	if w.Meta.Capture.Declared() && !cmd.Flags().Changed("start") {
		if err := p.skipLead(cmd); err != nil {
			return nil, err
		}
	}
	if share, err := f.share(); err != nil {
		return nil, err
	} else if share < 1 {
		if err := p.sample(cmd, share, seed); err != nil {
			return nil, err
		}
	}
	if f.maxRequests > 0 {
		p.rows = p.rows.Head(f.maxRequests)
	}
	if p.rows.Len() == 0 && p.of > 0 {
		return nil, cli.Usagef("none of the %d rows of the workload is chosen", p.of)
	}
	if err := p.repeat(cmd, f); err != nil {
		return nil, err
	}
	p.about.Rows, p.about.OfRows = p.rows.Len(), p.of
	p.about.FromNS, p.about.ToNS, p.about.MaxRequests = int64(f.start), int64(f.end), f.maxRequests
	return p, nil
}

// whole says that every row is replayed, once.
func (p *workloadPart) whole() bool {
	return p.rows.Len() == p.of && p.about.FromNS == 0 && p.loop == nil
}

// all says that a round is the workload as it stands.
func (p *workloadPart) all() bool { return p.rows.Len() == p.of && p.fromNS == 0 }

// skipLead begins with the first row that is chosen. A declared capture may have
// begun long before, and that is no reason to send nothing for as long.
func (p *workloadPart) skipLead(cmd *cobra.Command) error {
	arrivals, err := trace.Columns[trace.Arrival](p.w)
	if err != nil || p.rows.Len() == 0 {
		return err
	}
	one := make([]trace.Arrival, 1)
	n, err := trace.Pick(arrivals, p.rows, nil).Read(one)
	if n == 0 {
		return err
	}
	if p.fromNS = one[0].ArrivalNS; p.fromNS >= int64(time.Second) {
		cli.Notef(cmd, "the first request is %v after the capture began: the replay begins with it; --start 0s waits", time.Duration(p.fromNS).Round(time.Millisecond))
	}
	return nil
}

// selection is what the results say of the part; nil for the whole.
func (p *workloadPart) selection() *result.Selection {
	if p.whole() {
		return nil
	}
	return &p.about
}

// cut makes the part a window.
func (p *workloadPart) cut(from, to int64) error {
	arrivals, err := trace.Columns[trace.Arrival](p.w)
	if err != nil {
		return err
	}
	p.rows, err = trace.Window(arrivals, from, to)
	return err
}

// sample makes the part a sample of its sessions, and says how they differ.
func (p *workloadPart) sample(cmd *cobra.Command, share float64, seed uint64) error {
	members, err := trace.Columns[trace.Member](p.w)
	if err != nil {
		return err
	}
	window := p.rows
	var took trace.Sampled
	if p.rows, took, err = window.Sample(members, share, seed); err != nil {
		return err
	}
	p.about.Sample = &result.Sample{Share: share, Seed: strconv.FormatUint(seed, 10), Sessions: took.Sessions, OfSessions: took.OfSessions,
		Rows: took.Rows, OfRows: took.OfRows, Measures: []result.Measure{}}
	cli.Notef(cmd, "sample: %d of %d sessions, %d of %d rows, at their recorded times, so that the rate falls with it", took.Sessions, took.OfSessions, took.Rows, took.OfRows)
	if took.Rows == 0 {
		return nil
	}
	return p.compare(cmd, &window)
}

// compare sets the sample beside the window that it is of, in one pass over it.
func (p *workloadPart) compare(cmd *cobra.Command, window *trace.Part) error {
	src, err := p.w.Reader()
	if err != nil {
		return err
	}
	whole, sample := fidelity.NewSignature(p.w.Meta, fidelity.Options{}), fidelity.NewSignature(p.w.Meta, fidelity.Options{})
	var one [1]trace.Request
	err = trace.Each(trace.Pick(src, *window, nil), func(i int64, r *trace.Request) error {
		one[0] = *r
		if _, err := whole.Write(one[:]); err != nil {
			return err
		}
		if _, ok := p.rows.Index(window.Row(i)); !ok {
			return nil
		}
		_, err := sample.Write(one[:])
		return err
	})
	if err != nil {
		return err
	}
	found, err := fidelity.Compare(whole, sample)
	if err != nil {
		return fmt.Errorf("the sample cannot be set beside the whole: %w", err)
	}
	p.about.Sample.Measures = sampleMeasures(found)
	for _, m := range p.about.Sample.Measures {
		cli.Notef(cmd, "  %-22s %s", sampleWords[m.Name], sayMeasure(m))
	}
	return nil
}

// sampleWords say what is measured of a sample, in the order of sampleMeasures.
var sampleWords = map[string]string{
	"rate": "requests per second", "input_tokens_mean": "prompt tokens, mean", "output_tokens_mean": "output tokens, mean",
	"input_ks": "prompt lengths", "output_ks": "output lengths", "turns_ks": "turns of sessions",
	"hit_by_token": "hit ratio by token", "hit_by_block": "hit ratio by block", "mrc_mae": "hit ratio of LRU caches",
}

// sampleMeasures picks what tells of a sample. Hits fall with it, since sessions
// that share prefixes are fewer.
func sampleMeasures(f fidelity.Report) []result.Measure {
	values := map[string]fidelity.Measure{}
	for _, m := range f.Measures {
		values[m.Name] = m
	}
	out := []result.Measure{}
	per := func(name, what string, by, bySample *float64) {
		a := values[what]
		m := result.Measure{Name: name, Whole: quotient(a.Ref, by), Sample: quotient(a.Cand, bySample)}
		if m.Whole != nil && m.Sample != nil && *m.Whole != 0 {
			m.Distance = trace.Ptr(math.Abs(*m.Sample / *m.Whole - 1))
		}
		out = append(out, m)
	}
	n, span := values["requests"], values["duration_s"].Ref
	per("rate", "requests", span, span) // of the sample too: it lasts as long but for chance
	per("input_tokens_mean", "input_tokens", n.Ref, n.Cand)
	per("output_tokens_mean", "output_tokens", n.Ref, n.Cand)
	for _, name := range []string{"input_ks", "output_ks", "turns_ks", "hit_by_token", "hit_by_block", "mrc_mae"} {
		if m := values[name]; m.Distance != nil {
			out = append(out, result.Measure{Name: name, Whole: m.Ref, Sample: m.Cand, Distance: m.Distance})
		}
	}
	return out
}

func quotient(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	return trace.Ptr(*a / *b)
}

// sayMeasure is a measure for people. Distances between distributions are shares;
// the others are beside their values.
func sayMeasure(m result.Measure) string {
	switch {
	case m.Name == "mrc_mae":
		return fmt.Sprintf("off by %s on average over capacities", cli.Figure(m.Distance, 4))
	case m.Name == "input_ks" || m.Name == "output_ks" || m.Name == "turns_ks":
		return fmt.Sprintf("Kolmogorov-Smirnov distance %s", cli.Figure(m.Distance, 4))
	}
	return fmt.Sprintf("%s in the whole, %s in the sample", cli.Figure(m.Whole, 4), cli.Figure(m.Sample, 4))
}

// repeat makes the loop that the flags ask for.
func (p *workloadPart) repeat(cmd *cobra.Command, f *modeFlags) error {
	rounds, err := f.rounds()
	if err != nil || rounds == (replay.Span{}) {
		return err
	}
	arrivals, err := trace.Columns[trace.Arrival](p.w)
	if err != nil {
		return err
	}
	first, last := int64(-1), int64(0)
	err = trace.Each(trace.Pick(arrivals, p.rows, nil), func(_ int64, a *trace.Arrival) error {
		if first < 0 {
			first = a.ArrivalNS
		}
		last = a.ArrivalNS
		return nil
	})
	if err != nil {
		return err
	}
	p.loop = &replay.Loop{Open: p.once, Rows: p.rows.Len(), PeriodNS: replay.Period(first, last, p.rows.Len()), Rounds: rounds.Requests}
	p.endless = rounds.Requests == 0
	prompts := "each with prompts of its own, so that it does not hit the cache of those before it (--loop-same)"
	if f.loopSame {
		prompts = "with the same prompts"
	} else if p.loop.Blocks, err = p.blocks(); err != nil {
		return err
	}
	p.about.Loop = &result.Rounds{Rounds: rounds.Requests, PeriodNS: p.loop.PeriodNS, Same: f.loopSame}
	if f.loopUnsaid {
		return nil
	}
	times := fmt.Sprintf("%d rounds", rounds.Requests)
	if p.endless {
		times = fmt.Sprintf("rounds for %v", rounds.Time)
	}
	cli.Notef(cmd, "loop: %s of %d rows and %v, %s", times, p.rows.Len(), time.Duration(p.loop.PeriodNS).Round(time.Millisecond), prompts)
	return nil
}

// blocks is one more than the greatest block id of the workload, in one pass over
// its rows.
func (p *workloadPart) blocks() (uint64, error) {
	all, _, err := workloadRows(p.w)
	if err != nil {
		return 0, err
	}
	ids, err := synth.Count(all)
	return max(ids.Blocks, 1), err
}

// spellable refuses rounds whose blocks the prompts have no words to tell apart.
func (p *workloadPart) spellable(limit uint64) error {
	if p.loop == nil || p.loop.Blocks == 0 {
		return nil
	}
	most := limit / p.loop.Blocks
	if p.loop.Rounds > 0 && uint64(p.loop.Rounds) > most {
		return cli.Usagef("--loop: there are words for the prompts of %d rounds only; --loop-same repeats those of the first", most)
	}
	return nil
}

// tails are those of the workload in every round.
func (p *workloadPart) tails(t *prompt.Tails) *prompt.Tails {
	if p.loop == nil {
		return t
	}
	return t.Repeat(p.loop.Blocks)
}

// once reads the rows of one round.
func (p *workloadPart) once() (trace.Reader[trace.Request], error) {
	all, _, err := workloadRows(p.w)
	if err != nil || p.all() {
		return all, err
	}
	return trace.Pick(all.Reader, p.rows, p.rows.Edit(p.fromNS)), nil
}

// reader reads the rows of all rounds. Their number is 0 where there is no end.
func (p *workloadPart) reader() (*countedRows, error) {
	if p.loop != nil {
		again := *p.loop
		return &countedRows{&again, p.rows.Len() * p.loop.Rounds}, nil
	}
	rows, err := p.once()
	return &countedRows{rows, p.rows.Len()}, err
}

// before reads the rows of the workload before the window.
func (p *workloadPart) before() (trace.Reader[trace.Request], error) {
	all, _, err := workloadRows(p.w)
	if err != nil {
		return nil, err
	}
	return trace.Pick(all.Reader, trace.Whole(p.rows.First()), nil), nil
}

// turns reads which rows of a round wait for which.
func (p *workloadPart) turns() (trace.Reader[replay.Turn], error) {
	turns, err := trace.Columns[replay.Turn](p.w)
	if err != nil || p.all() {
		return turns, err
	}
	return trace.Pick(turns, p.rows, func(t *replay.Turn) { t.Parents = p.rows.Parents(t.Parents) }), nil
}

// apply has a run know the rows of the workload by their numbers there.
func (p *workloadPart) apply(o *replay.Options) {
	if !p.whole() {
		o.Origin = replay.Origin(p.rows.Len(), p.rows.Row)
	}
	o.Endless = p.endless
	if p.loop != nil && o.Causal != nil {
		o.Causal.Repeat()
	}
	o.About.Selection = p.selection()
}

// liveAtStart finds what is in a prefix cache when the window begins. It is nil where
// nothing is to be primed.
func (f *modeFlags) liveAtStart(cmd *cobra.Command, p *workloadPart) ([]trace.Request, error) {
	if f.prime == primeNone || p.rows.First() == 0 {
		return nil, nil
	}
	src, err := p.before()
	if err != nil {
		return nil, err
	}
	cache := profile.NewLive(p.blockSize, f.primeTokens)
	err = trace.Each(src, func(_ int64, r *trace.Request) error {
		cache.Touch(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	prompts := cache.Prompts()
	sum := result.Primed{CapacityTokens: f.primeTokens, LiveTokens: cache.Tokens(), Prompts: int64(len(prompts))}
	for i := range prompts {
		sum.Tokens += int64(prompts[i].InputTokens)
	}
	p.about.Prime = &sum
	cli.Notef(cmd, "prime: a cache of %d tokens (--prime-tokens) holds %d of them at %v, in %d prefixes of %d tokens in all", f.primeTokens, cache.Tokens(), f.start, len(prompts), sum.Tokens)
	return prompts, nil
}

// fillCache sends what is live to the endpoint before the run, and makes what was
// answered known.
func (f *modeFlags) fillCache(cmd *cobra.Command, p *workloadPart, prompts []trace.Request, endpoint result.Endpoint, makes func() (flags.RowPrompter, error), known *profile.KnownPass) error {
	if len(prompts) == 0 {
		return nil
	}
	prompter, err := makes() // of its own, since the run's counts what it makes
	if err != nil {
		return err
	}
	bar := cli.NewProgress(cmd)
	bar.Start("prime", "requests", int64(len(prompts)))
	defer bar.End()
	primer := replay.Primer{Prompter: prompter, Endpoint: endpoint, Concurrency: f.primeConcurrency, Progress: bar.Set}
	sent, answered, err := primer.Prime(cmd.Context(), prompts)
	sent.CapacityTokens, sent.LiveTokens = p.about.Prime.CapacityTokens, p.about.Prime.LiveTokens
	p.about.Prime = &sent
	if err != nil {
		return err
	}
	for i := range prompts {
		if answered[i] {
			known.Touch(&prompts[i])
		}
	}
	cli.Notef(cmd, "prime: %d prompts with %d tokens sent in %v, %d failed", sent.Prompts, sent.Tokens, time.Duration(sent.TookNS).Round(time.Millisecond), sent.Failed)
	return nil
}
