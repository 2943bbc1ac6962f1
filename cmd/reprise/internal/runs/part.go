package runs

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/synth"
	"reprise/synth/fidelity"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/profile"
)

// A workloadPart is what is replayed of a workload, and how often.
type workloadPart struct {
	w         *trace.Trace
	blockSize int
	rows      trace.Part // of the share that is sent
	every     trace.Part // of all shares
	of        int64      // rows of the workload
	fromNS    int64
	outputs   replay.Outputs
	apart     bool // no row has a session
	seed      uint64
	loop      *replay.Loop // nil for once
	endless   bool

	about result.Selection
}

// partOf chooses what the flags ask for: first the window, then the sample of it, then the first turns and the first
// rows of that, and then how often.
func partOf(cmd *cobra.Command, w *trace.Trace, f *flags.Workload, seed uint64) (*workloadPart, error) {
	all, blockSize, err := OpenRows(w)
	if err != nil {
		return nil, err
	}
	outputs, err := f.Outputs()
	if err != nil {
		return nil, err
	}
	p := &workloadPart{w: w, blockSize: blockSize, outputs: outputs, apart: f.Apart, seed: seed,
		rows: trace.Whole(all.Total), of: all.Total, fromNS: int64(f.Start)}
	if f.Start > 0 || f.End > 0 {
		arrivals, err := trace.Columns[trace.Arrival](w)
		if err != nil {
			return nil, err
		}
		if p.rows, err = trace.Window(arrivals, int64(f.Start), int64(f.End)); err != nil {
			return nil, err
		}
		cli.Notef(cmd, "window: %d of %d rows, from %v on", p.rows.Len(), p.of, f.Start)
	}
	if w.Meta.Capture.Declared() && !cmd.Flags().Changed("start") && p.rows.Len() > 0 {
		// A declared capture may have begun long before the first row that is chosen, and
		// that is no reason to send nothing for as long.
		arrivals, err := trace.Columns[trace.Arrival](w)
		if err != nil {
			return nil, err
		}
		one := make([]trace.Arrival, 1)
		if n, err := trace.Pick(arrivals, p.rows, nil).Read(one); n == 0 && err != nil {
			return nil, err
		} else if n > 0 {
			if p.fromNS = one[0].ArrivalNS; p.fromNS >= int64(time.Second) {
				cli.Notef(cmd, "the first request is %v after the capture began: the replay begins with it; "+
					"--start 0s waits", time.Duration(p.fromNS).Round(time.Millisecond))
			}
		}
	}
	if share, err := f.Share(); err != nil {
		return nil, err
	} else if share < 1 {
		if err := p.sample(cmd, share, seed); err != nil {
			return nil, err
		}
	}
	if f.Turns > 0 || f.Apart {
		if err := p.chooseTurns(cmd, f); err != nil {
			return nil, err
		}
	}
	if f.MaxRequests > 0 {
		p.rows = p.rows.Head(f.MaxRequests)
	}
	if p.rows.Len() == 0 && p.of > 0 {
		return nil, cli.Usagef("the selection has none of the workload's %d rows: reprise profile %s prints its length",
			p.of, w.Name())
	}
	if err := p.checkOutputs(cmd); err != nil {
		return nil, err
	}
	if err := p.repeat(cmd, f); err != nil {
		return nil, err
	}
	p.every = p.rows
	if p.about.Rows = p.rows.Len(); !f.Apart || f.MaxRequests == 0 { // else the rest of a file of prompts was not read
		p.about.OfRows = &p.of
	}
	p.about.FromNS, p.about.ToNS, p.about.MaxRequests = int64(f.Start), int64(f.End), f.MaxRequests
	p.about.Turns = f.Turns
	return p, nil
}

// chooseTurns leaves out later turns than --turns says, and says of a file of prompts that it has some.
func (p *workloadPart) chooseTurns(cmd *cobra.Command, f *flags.Workload) error {
	members, err := trace.Columns[trace.Member](p.w)
	if err != nil {
		return err
	}
	of := p.rows.Len()
	first, numbered, err := p.rows.Turns(members, max(f.Turns, 1))
	switch {
	case err != nil:
		return err
	case f.Turns > 0 && numbered == 0:
		return cli.Usagef("--turns: the workload has no conversations, only single requests; --input-tokens 550 "+
			"--turns %d makes sessions", f.Turns)
	case f.Turns > 0:
		p.rows = first
		cli.Notef(cmd, "turns: %d of %d rows, up to turn %d of each conversation", first.Len(), of, f.Turns)
	case first.Len() < of:
		cli.Notef(cmd, "turns: later turns of conversations are prompts by themselves, with all that was said before "+
			"them; --turns 1 sends first turns alone, --as-sessions one turn after the other")
	}
	return nil
}

// An outputRow is what tells whether a row has to have an output length.
type outputRow struct {
	trace.Row `parquet:"-"`

	Kind         string `parquet:"kind,optional,dict"`
	Status       string `parquet:"status,optional,dict"`
	OutputTokens *int32 `parquet:"output_tokens,optional,zstd"`
	MaxTokens    *int32 `parquet:"max_tokens,optional,zstd"`
}

// checkOutputs refuses rows without an output length where nothing is to stand for it.
func (p *workloadPart) checkOutputs(cmd *cobra.Command) error {
	src, err := trace.Columns[outputRow](p.w)
	if err != nil {
		return err
	}
	filled, replaced := int64(0), int64(0)
	err = trace.Each(trace.Pick(src, p.rows, nil), func(_ int64, r *outputRow) error {
		if p.outputs.Replace(r.OutputTokens, r.MaxTokens) && r.Status != trace.StatusFailed {
			filled++
			if r.OutputTokens != nil || r.MaxTokens != nil {
				replaced++
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case filled == 0:
		if p.outputs.Given() && !p.outputs.ByServer() && !cmd.Flags().Changed("input-tokens") { // which makes requests
			cli.WarnOncef(cmd, "--output-tokens changes nothing: every request has an output length in the workload")
		}
		return nil
	case !p.outputs.Given():
		return cli.Usagef("%d of %d requests have no output length: give one with --output-tokens 256, a "+
			"distribution such as --output-tokens lognormal:300,1.2, or let the server end within a bound with "+
			"--output-tokens server:4096", filled, p.rows.Len())
	}
	by, why := "by --output-tokens "+p.outputs.String(), "which have none in the workload"
	if replaced > 0 {
		why = fmt.Sprintf("%d of them in place of the file's own", replaced)
	}
	if !cmd.Flags().Changed("output-tokens") {
		by = "as the server ends its answers (--output-tokens " + p.outputs.String() + ", the default)"
	}
	cli.Notef(cmd, "output lengths: %s for %d of %d requests, %s", by, filled, p.rows.Len(), why)
	p.about.Outputs = p.outputs.String()
	return nil
}

// open reads all rows of the workload, with what stands for unknown output lengths.
func (p *workloadPart) open() (*Rows, error) {
	rows, _, err := OpenRows(p.w)
	if err != nil {
		return nil, err
	}
	rows.Reader = p.outputs.Fill(rows.Reader, p.seed)
	if p.apart {
		rows.Reader = apart{rows.Reader}
	}
	return rows, nil
}

// apart reads requests without sessions, each of which comes by itself.
type apart struct{ trace.Reader[trace.Request] }

// Read implements [trace.Reader].
func (a apart) Read(rows []trace.Request) (int, error) {
	n, err := a.Reader.Read(rows)
	for i := range rows[:n] {
		r := &rows[i]
		r.Session, r.Thread, r.Turn, r.Parents, r.ThinkNS, r.ToolNS = nil, nil, nil, nil, nil, nil
	}
	return n, err
}

// whole says that every row is replayed, once.
func (p *workloadPart) whole() bool {
	return p.every.Len() == p.of && p.about.FromNS == 0 && p.about.Outputs == "" && p.loop == nil
}

// all says that a round of some rows is the workload as it stands.
func (p *workloadPart) all(rows *trace.Part) bool { return rows.Len() == p.of && p.fromNS == 0 }

// selection is what the results say about the part; nil for the whole.
func (p *workloadPart) selection() *result.Selection {
	if p.whole() {
		return nil
	}
	return &p.about
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
	p.about.Sample = &result.Sample{Share: share, Seed: strconv.FormatUint(seed, 10), Sessions: took.Sessions,
		OfSessions: took.OfSessions,
		Rows:       took.Rows, OfRows: took.OfRows, Measures: []result.Measure{}}
	cli.Notef(cmd, "sample: %d of %d sessions, %d of %d rows, at their recorded times, so that the rate falls with it",
		took.Sessions, took.OfSessions, took.Rows, took.OfRows)
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
	brief := fidelity.Options{Brief: true}
	whole, sample := fidelity.NewSignature(p.w.Meta, brief), fidelity.NewSignature(p.w.Meta, brief)
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
		return fmt.Errorf("the sample cannot be compared with the whole: %w", err)
	}
	// Only measures that describe a sample are kept. Hits fall, since sessions that share
	// prefixes are fewer.
	values := map[string]fidelity.Measure{}
	for _, m := range found.Measures {
		values[m.Name] = m
	}
	per := func(name, what string, by, bySample *float64) {
		a := values[what]
		m := result.Measure{Name: name, Whole: report.Quotient(a.Ref, by), Sample: report.Quotient(a.Cand, bySample)}
		if m.Whole != nil && m.Sample != nil && *m.Whole != 0 {
			m.Distance = trace.Ptr(math.Abs(*m.Sample / *m.Whole - 1))
		}
		p.about.Sample.Measures = append(p.about.Sample.Measures, m)
	}
	n, span := values["requests"], values["duration_s"].Ref
	per("rate", "requests", span, span) // of the sample too: it lasts as long but for chance
	per("input_tokens_mean", "input_tokens", n.Ref, n.Cand)
	per("output_tokens_mean", "output_tokens", n.Ref, n.Cand)
	for _, name := range []string{"input_ks", "output_ks", "turns_ks", "hit_by_token", "hit_by_block", "mrc_mae"} {
		if m := values[name]; m.Distance != nil {
			p.about.Sample.Measures = append(p.about.Sample.Measures,
				result.Measure{Name: name, Whole: m.Ref, Sample: m.Cand, Distance: m.Distance})
		}
	}
	for _, m := range p.about.Sample.Measures {
		// Distances between distributions are shares; the others are beside their values.
		said := fmt.Sprintf("%s in the whole, %s in the sample", cli.Figure(m.Whole, 4), cli.Figure(m.Sample, 4))
		switch m.Name {
		case "mrc_mae":
			said = fmt.Sprintf("off by %s on average over capacities", cli.Figure(m.Distance, 4))
		case "input_ks", "output_ks", "turns_ks":
			said = fmt.Sprintf("Kolmogorov-Smirnov distance %s", cli.Figure(m.Distance, 4))
		}
		cli.Notef(cmd, "  %-22s %s", sampleWords[m.Name], said)
	}
	return nil
}

// sampleWords say what is measured of a sample, by the name of the measure.
var sampleWords = map[string]string{
	"rate": "requests per second", "input_tokens_mean": "prompt tokens, mean",
	"output_tokens_mean": "output tokens, mean",
	"input_ks":           "prompt lengths", "output_ks": "output lengths", "turns_ks": "turns of sessions",
	"hit_by_token": "hit ratio by token", "hit_by_block": "hit ratio by block", "mrc_mae": "hit ratio of LRU caches",
}

// repeat makes the loop that the flags ask for.
func (p *workloadPart) repeat(cmd *cobra.Command, f *flags.Workload) error {
	rounds, err := f.Rounds()
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
	p.loop = &replay.Loop{Open: p.once, Rows: p.rows.Len(), PeriodNS: replay.Period(first, last, p.rows.Len()),
		Rounds: rounds.Requests}
	p.endless = rounds.Requests == 0
	prompts := "with new prompts in each round, which no cache holds (--set loop-same sends the same)"
	if f.LoopSame {
		prompts = "with the same prompts in each round"
	} else {
		all, err := p.open()
		if err != nil {
			return err
		}
		ids, err := synth.Count(all)
		if err != nil {
			return err
		}
		p.loop.Blocks = max(ids.Blocks, 1) // one more than the greatest id
	}
	p.about.Loop = &result.Rounds{Rounds: rounds.Requests, PeriodNS: p.loop.PeriodNS, Same: f.LoopSame}
	if f.LoopQuiet {
		return nil
	}
	times := fmt.Sprintf("%d times", rounds.Requests)
	if p.endless {
		times = fmt.Sprintf("for %v, again where that is longer than they last", rounds.Time)
	}
	cli.Notef(cmd, "loop: the %s are sent %s, %s", doc.Many(p.rows.Len(), "request"), times, prompts)
	return nil
}

// An imageRow is what a row says of its images.
type imageRow struct {
	trace.Row `parquet:"-"`

	ImageTokens *int32 `parquet:"image_tokens,optional"`
}

// countImages counts the rows with image tokens, nil for none, and says that text stands for them.
func (p *workloadPart) countImages(cmd *cobra.Command) (*result.ImageLoad, error) {
	rows, err := trace.Columns[imageRow](p.w)
	if err != nil {
		return nil, err
	}
	var sum result.ImageLoad
	err = trace.Each(trace.Pick(rows, p.rows, nil), func(_ int64, r *imageRow) error {
		if r.ImageTokens != nil && *r.ImageTokens > 0 {
			sum.Requests++
			sum.Tokens += int64(*r.ImageTokens)
		}
		return nil
	})
	if err != nil || sum.Requests == 0 {
		return nil, err
	}
	cli.Warnf(cmd, "images: %d of %d requests have images, which are not sent: text stands for their %s",
		sum.Requests, p.rows.Len(), doc.Many(sum.Tokens, "token"))
	return &sum, nil
}

// spellable refuses rounds whose blocks the prompts have no words to tell apart.
func (p *workloadPart) spellable(limit uint64) error {
	if p.loop == nil || p.loop.Blocks == 0 {
		return nil
	}
	most := limit / p.loop.Blocks
	if p.loop.Rounds > 0 && uint64(p.loop.Rounds) > most {
		return cli.Usagef("--loop: there are words for the prompts of %d rounds only; --set loop-same repeats the "+
			"prompts of the first", most)
	}
	return nil
}

// once reads the rows of one round.
func (p *workloadPart) once() (trace.Reader[trace.Request], error) { return p.roundOf(&p.rows) }

func (p *workloadPart) roundOf(rows *trace.Part) (trace.Reader[trace.Request], error) {
	all, err := p.open()
	if err != nil || p.all(rows) {
		return all, err
	}
	return trace.Pick(all.Reader, *rows, rows.Edit(p.fromNS)), nil
}

// reader reads the rows of all rounds. Their number is 0 where there is no end.
func (p *workloadPart) reader() (*Rows, error) {
	if p.loop != nil {
		again := *p.loop
		return &Rows{&again, p.rows.Len() * p.loop.Rounds}, nil
	}
	rows, err := p.once()
	return &Rows{rows, p.rows.Len()}, err
}

// turns reads which rows of a round wait for which.
func (p *workloadPart) turns(rows *trace.Part) (trace.Reader[replay.Turn], error) {
	turns, err := trace.Columns[replay.Turn](p.w)
	if err != nil || p.all(rows) {
		return turns, err
	}
	return trace.Pick(turns, *rows, func(t *replay.Turn) { t.Parents = rows.Parents(t.Parents) }), nil
}

// apply has a run know the rows of the workload by their numbers there.
func (p *workloadPart) apply(o *replay.Options) {
	if !p.whole() || p.rows.Len() < p.every.Len() {
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
func (p *workloadPart) liveAtStart(cmd *cobra.Command, f *flags.Workload) ([]trace.Request, error) {
	if f.Prime == flags.PrimeNone || p.rows.First() == 0 {
		return nil, nil
	}
	all, err := p.open()
	if err != nil {
		return nil, err
	}
	before := trace.Pick(all.Reader, trace.Whole(p.rows.First()), nil)
	cache := profile.NewLive(p.blockSize, f.PrimeTokens)
	err = trace.Each(before, func(_ int64, r *trace.Request) error {
		cache.Touch(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	prompts := cache.Prompts()
	sum := result.Primed{CapacityTokens: f.PrimeTokens, LiveTokens: cache.Tokens(), Prompts: int64(len(prompts))}
	for i := range prompts {
		sum.Tokens += int64(prompts[i].InputTokens)
	}
	p.about.Prime = &sum
	cli.Notef(cmd, "prime: a cache of %d tokens (--set prime-tokens) holds %d of them at %v, in %d prefixes of %d "+
		"tokens in all", f.PrimeTokens, cache.Tokens(), f.Start, len(prompts), sum.Tokens)
	return prompts, nil
}

// fillCache sends what is live to the endpoint before the run, and makes what was
// answered known.
func (p *workloadPart) fillCache(cmd *cobra.Command, concurrency int, share result.Share, prompts []trace.Request,
	endpoint result.Endpoint, makes func() (flags.RowPrompter, error), known *profile.KnownPass) error {
	if len(prompts) == 0 {
		return nil
	}
	prompter, err := makes() // of its own, since the run's counts what it makes
	if err != nil {
		return err
	}
	var mine []trace.Request // the other shards send the others
	for i := range prompts {
		if share.Has(int64(i)) {
			mine = append(mine, prompts[i])
		} else {
			known.Touch(&prompts[i])
		}
	}
	prompts = mine
	bar := cli.NewProgress(cmd)
	bar.Start("prime", "requests", int64(len(prompts)))
	defer bar.End()
	primer := replay.Primer{Prompter: prompter, Endpoint: endpoint, Concurrency: concurrency, Progress: bar.Set}
	sent, failures, err := primer.Prime(cmd.Context(), prompts)
	sent.CapacityTokens, sent.LiveTokens = p.about.Prime.CapacityTokens, p.about.Prime.LiveTokens
	p.about.Prime = &sent
	if err != nil {
		return err
	}
	for i := range prompts {
		if failures[i] == "" {
			known.Touch(&prompts[i])
		}
	}
	cli.Notef(cmd, "prime: %d prompts with %d tokens sent in %v, %d failed", sent.Prompts, sent.Tokens,
		time.Duration(sent.TookNS).Round(time.Millisecond), sent.Failed)
	return nil
}
