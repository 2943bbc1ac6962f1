package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/client"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/synth"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/token"
)

// replayFlags are the flags of replay; demo fills them too.
type replayFlags struct {
	out     string
	prompts flags.Prompts
	verify  bool
	flags.Target
	flags.Load
	vllm vllmFlags
	flags.Wire
	modeFlags
	resumeFlags
	liveFlags
	flags.Abort
	serverFlags
	threadFlags
	verbatimFlags
	flags.Deployment
	serverBlock int
	judge       judgeFlags
}

func replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay WORKLOAD --url URL",
		Short: "Send a workload on time and measure every token of the answers",
		Long: `Replay sends each request of a workload, or of a trace, to an OpenAI-compatible
endpoint when it is due. Where the source told think or tool times, a later turn
is due when the turns it follows have been answered and that time has passed, as
with the users and agents of the source: a slow server moves it, and the report
says by how much. Everything else is due at its recorded time, whatever became of
the requests before it; with --open-loop that is so for every request.

Prompts are made from the seed just before they are sent. The answers are
streamed and every token event is timed.

--start, --end, --sample and --max-requests replay a part of the workload, --loop
all of it again and again. --dry-run prints what would be sent and sends nothing.

Every request gives one row in the results. They are journalled as they come,
beside the output, and finished to Parquet at the end; after a crash, or while
the run goes on, "reprise report" reads the journal, and after a crash --resume
goes on with the run.

The summary goes to stdout. The exit code is 4 when the run cannot be trusted, and
3 when it does not keep to its --contract.

Spellings of vllm bench serve are taken where they mean the same, such as
--base-url, --request-rate, --max-concurrency and --save-result.`,
		Example: `  reprise replay w.parquet --url http://localhost:8000 --speed 2 -o r.parquet`,
		Args:    func(cmd *cobra.Command, args []string) error { return f.vllm.args(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.vllm.apply(cmd, &f.judge.vllm); err != nil {
				return err
			}
			if (f.out == "" || f.out == cli.Standard) && !f.dry.run {
				return cli.Usagef("say where the results go: -o FILE.parquet")
			}
			if err := f.settle(); err != nil {
				return err
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			if err := f.judge.check(f.judge.vllm.saves(), "--save-result"); err != nil {
				return err
			}
			if err := f.judge.checkRuns(1); err != nil {
				return err
			}
			w, err := cli.OpenTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer w.Close()
			if err := f.openRaw(w); err != nil {
				return err
			}
			defer f.closeRaw()
			if f.dry.run {
				return f.dryRun(cmd, w)
			}
			if err := f.run(cmd, w); err != nil {
				return err
			}
			return f.judge.report(cmd, f.out)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *replayFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "results to write, Parquet")
	f.registerEndpoint(cmd)
	fl.BoolVar(&f.verify, "verify", false, "encode the prompts again beside the sending, as many as there is time for, and count those that have other tokens; it takes CPU")
	f.Load.Register(fl)
	fl.IntVar(&f.MaxInFlight, "max-in-flight", 0, "requests at once; 0 is no limit. One held back keeps its due time and is counted")
	f.modeFlags.register(cmd)
	f.resumeFlags.register(cmd)
	f.liveFlags.register(cmd)
	f.Abort.Register(cmd)
	f.threadFlags.register(cmd)
	f.verbatimFlags.register(cmd)
	f.Deployment.Register(fl)
	fl.Bool("quiet", false, "no progress")
	f.judge.register(cmd)
	f.judge.vllm.registerSave(cmd)
	f.vllm.register(cmd) // last: it looks for the flags that it stands for
}

// registerEndpoint registers to whom requests go, and how they are made and sent.
func (f *replayFlags) registerEndpoint(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.prompts.Register(fl, "tokenizer of the endpoint, a name or the path of a tokenizer.json; empty takes the workload's, else o200k_base",
		"seed of the prompts; empty takes the workload's, else 1")
	f.Target.Register(cmd)
	f.serverFlags.register(cmd)
	f.Wire.Register(cmd)
	fl.IntVar(&f.serverBlock, "server-block-size", profile.DefaultServerBlock, "tokens in a block of the endpoint's prefix cache, for the expected hit ratio")
}

// check refuses what cannot be done, before anything is.
func (f *replayFlags) check(cmd *cobra.Command) error {
	for _, check := range []func() error{
		f.Target.Check,
		f.Load.Check,
		func() error { return f.Wire.Check(max(f.Concurrency, f.MaxInFlight)) },
		f.checkConnections,
		func() error { return f.liveFlags.check(cmd) },
		f.Abort.Check,
		f.serverFlags.check,
		f.checkThreads,
		func() error { return f.checkVerbatim(cmd) },
		f.checkResume,
		f.checkExtras,
		func() error { _, err := f.Serving(); return err },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// defaults sets every flag to its default, for a caller that is no command line.
func (f *replayFlags) defaults() { f.register(new(cobra.Command)) }

// chosen is the part of the workload that the flags ask for, and what makes its
// prompts.
func (f *replayFlags) chosen(cmd *cobra.Command, w *trace.Trace) (*workloadPart, *flags.PromptMaker, error) {
	_, blockSize, err := workloadRows(w)
	if err != nil {
		return nil, nil, err
	}
	maker, err := f.prompts.Maker(cmd, w, blockSize)
	if err != nil {
		return nil, nil, err
	}
	part, err := f.part(cmd, w, maker.Seed)
	if err != nil {
		return nil, nil, err
	}
	maker.Tails = part.tails(maker.Tails)
	return part, maker, nil
}

// calibrate finds the endpoint's model and measures its templates, of each API that
// rows go to.
func (f *replayFlags) calibrate(cmd *cobra.Command, w *trace.Trace, endpoint *client.HTTP, m *flags.PromptMaker) (overheads map[string]int, err error) {
	apis, err := f.APIs(w)
	if err != nil {
		return nil, err
	}
	words := m.Tok.Words()
	var model string
	uncounted := map[string]bool{}
	err = f.vllm.whenReady(cmd.Context(), func() (err error) {
		overheads = map[string]int{}
		if model, err = endpoint.Probe(cmd.Context()); err != nil {
			return err
		}
		for _, api := range apis {
			if f.raw != nil {
				overheads[api] = 0 // no prompt is made to a length
				continue
			}
			overheads[api], err = endpoint.CalibrateAPI(cmd.Context(), api, words.Text[0], words.Bare[0])
			if uncounted[api] = errors.Is(err, client.ErrUncounted); err != nil && !uncounted[api] {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if f.raw != nil {
		cli.Notef(cmd, "endpoint: %s, model %s, prompts as in the source", strings.Join(endpoint.Endpoints(), ", "), model)
		return overheads, nil
	}
	for _, api := range apis {
		if uncounted[api] {
			cli.Notef(cmd, "endpoint: %s, %s, model %s; it sends no usage, so token counts are estimates: output by the tokenizer, prompts as they are made, without what a template adds to them",
				strings.Join(endpoint.Endpoints(), ", "), api, model)
			continue
		}
		cli.Notef(cmd, "endpoint: %s, %s, model %s, %d tokens of template around each prompt", strings.Join(endpoint.Endpoints(), ", "), api, model, overheads[api])
	}
	return overheads, nil
}

func (f *replayFlags) endpoint(tok *token.Encoding, extras client.RowExtras) (*client.HTTP, error) {
	o, err := f.Options()
	if err != nil {
		return nil, err
	}
	o.Rows, o.Connections, o.Replies = extras, f.Connections, f.thread
	o.Count = func(text string) int { return len(tok.Append(nil, text)) }
	e, err := client.New(o)
	if err != nil {
		err = cli.Exit(cli.Usage, err)
	}
	return e, err
}

// countedRows is a reader that knows how many rows it has.
type countedRows struct {
	trace.Reader[trace.Request]
	total int64
}

// workloadRows reads a workload. One without blocks gets blocks that nothing
// shares, so that its prompts are told apart.
func workloadRows(t *trace.Trace) (*countedRows, int, error) {
	rows, err := t.Reader()
	if err != nil {
		return nil, 0, err
	}
	if t.Meta.BlockSize > 0 {
		return &countedRows{rows, rows.Rows()}, t.Meta.BlockSize, nil
	}
	src := &synth.Unshared{Src: rows, BlockSize: unsharedBlock}
	return &countedRows{src, rows.Rows()}, unsharedBlock, nil
}

// withSimulator runs f against a simulated endpoint in this process.
func withSimulator(ctx context.Context, f func(url string) error) error {
	s, err := engine.NewServer(engine.DefaultServerConfig())
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- serve(ctx, l, s.Handler()) }()
	err = f(fmt.Sprintf("http://%s", l.Addr()))
	stop()
	if serr := <-done; err == nil {
		err = serr
	}
	return err
}

// A replayRun is a replay on its way from its flags to its results.
type replayRun struct {
	*replayFlags
	cmd *cobra.Command
	w   *trace.Trace

	part     *workloadPart
	maker    *flags.PromptMaker
	rows     *countedRows
	lineage  *replay.Lineage // nil where no turn waits for another
	endpoint *client.HTTP
	servers  *replayServers
	prompter flags.RowPrompter
	known    *profile.KnownPass
	about    result.Run

	closes []func() // what is to be closed at the end, in the order of opening
}

// run replays the workload into the results file that the flags name.
func (f *replayFlags) run(cmd *cobra.Command, w *trace.Trace) error {
	r := &replayRun{replayFlags: f, cmd: cmd, w: w}
	defer r.close()
	if err := r.open(); err != nil {
		return err
	}
	if err := r.fill(); err != nil {
		return err
	}

	defer replay.FewCollections()()
	r.about.Cores = runtime.GOMAXPROCS(0)
	defer replay.SpareProcessor()()
	options, err := r.options()
	if err != nil {
		return err
	}
	return r.send(options)
}

func (r *replayRun) close() {
	for i := len(r.closes) - 1; i >= 0; i-- {
		r.closes[i]()
	}
}

// open opens all that the run reads and sends to. Nothing is done to the servers yet
// but to ask them who they are.
func (r *replayRun) open() (err error) {
	if r.part, r.maker, err = r.chosen(r.cmd, r.w); err != nil {
		return err
	}
	if r.rows, err = r.part.reader(); err != nil {
		return err
	}
	if r.lineage, err = r.replayFlags.Lineage(r.cmd, r.part.turns); err != nil {
		return err
	}
	if r.thread && r.lineage == nil {
		return cli.Usagef("--thread: the workload has no turns with a think or tool time, so that none waits for a reply")
	}
	extras, closeExtras, err := r.OpenRowExtra(r.cmd, r.part.of)
	if err != nil {
		return err
	}
	r.closes = append(r.closes, func() { closeExtras() })
	if r.endpoint, err = r.replayFlags.endpoint(r.maker.Tok, extras); err != nil {
		return err
	}
	r.closes = append(r.closes, r.endpoint.Close)
	if r.servers, err = r.openServers(r.cmd, r.w, r.endpoint, r.maker); err != nil {
		return err
	}
	r.closes = append(r.closes, r.servers.admin.Close)
	if r.prompter, err = r.servers.prompter(); err != nil {
		return err
	}
	return r.part.spellable(r.prompter.Blocks())
}

// fill says what is known of the run, and brings the servers' caches to where it
// begins.
func (r *replayRun) fill() error {
	live, err := r.liveAtStart(r.cmd, r.part)
	if err != nil {
		return err
	}
	r.about = result.Run{
		Version: version,
		Load:    result.Load{Tokenizer: r.maker.Tok.Name()},
		Source:  result.Source{Workload: r.w.Meta.Digest, Tier: r.w.Meta.Tier, Seed: strconv.FormatUint(r.maker.Seed, 10), BlockSize: r.part.blockSize, ServerBlock: r.serverBlock},
	}
	if r.about.Privacy, err = privacyOf(&r.w.Meta); err != nil {
		return err
	}
	r.endpoint.Describe(&r.about)
	r.about.PromptText, r.about.Note = cmp.Or(r.w.Meta.Text, result.TextStable), r.note
	r.describeRaw(&r.about)
	if err := r.servers.describe(r.cmd.Context(), &r.about); err != nil {
		return err
	}
	if err := r.servers.warmUp(r.cmd, r.part, r.lineage); err != nil {
		return err
	}
	r.known = profile.NewKnownPass(r.part.blockSize, false, profile.WithTails(r.maker.Tails.Of))
	return r.fillCache(r.cmd, r.part, live, r.endpoint, r.servers.prompter, r.known)
}

// options are what the flags, the part and the servers make of the run.
func (r *replayRun) options() (replay.Options, error) {
	r.Requests = r.rows.total
	o, err := r.Schedule(r.lineage, r.servers.arrivalSeed)
	if err != nil {
		return o, err
	}
	if o.Abort, err = r.Conditions(); err != nil {
		return o, err
	}
	r.about.Rate, o.Realtime = r.Rate, r.Realtime
	if o.Thread, err = r.threading(r.cmd, r.part, r.lineage, r.endpoint, r.maker); err != nil {
		return o, err
	}
	o.About = r.about
	r.part.apply(&o)
	r.servers.attach(&o)
	if o.Known = r.known.Touch; r.cache == result.CacheWarm {
		o.Known = func(row *trace.Request) int32 { return row.InputTokens } // all of it, by the warm-up pass
	}
	if r.resume {
		if o.Resume, err = r.resumption(r.cmd, r.part, r.servers.arrivalSeed, o); err != nil {
			return o, err
		}
	}
	o.Then = r.determinism(r.cmd, r.w, r.endpoint, r.prompter)
	return o, nil
}

// send sends all of it, watched by who started it, and says what was odd.
func (r *replayRun) send(options replay.Options) error {
	runner := replay.Runner{Prompter: r.sends(r.prompter), Endpoint: r.endpoint, Options: options}
	verify := func() error { return nil }
	if r.verify {
		single, ok := r.prompter.(*prompt.Prompter)
		if !ok {
			return cli.Usagef("--verify has no meaning with --api auto where the APIs have different templates")
		}
		checker := prompt.NewChecker(single, r.maker.Tok)
		runner.Prompter, verify = checker, func() error { return verified(r.cmd, checker.Close(), r.out) }
	}
	watching := r.watch(r.cmd, liveAbout{"replay to " + strings.Join(r.endpoint.Endpoints(), ", "), r.rows.total, r.about.Cores, r.judge.trust.Limits})
	defer watching.end()
	runner.Progress = watching.progress
	told := context.AfterFunc(r.cmd.Context(), func() {
		if watching.stopping() {
			return
		}
		cli.Notef(r.cmd, "stopping: requests in flight have %v to end; a second interrupt ends at once, and leaves the journal", options.Grace)
	})
	defer told()
	run, err := runner.Record(r.cmd.Context(), r.rows, r.out)
	watching.end()
	if err == nil && run.EndedEarly != "" {
		cli.Notef(r.cmd, "ended early: %s; the results so far are in %s", run.EndedEarly, r.out)
	}
	noteOdd(r.cmd, run.Odd)
	r.replayFlags.Told(r.cmd, &run)
	noteThreads(r.cmd, run.Thread)
	if n := r.prompter.Filled(); n > 0 {
		cli.Notef(r.cmd, "corpus: %d tokens of the prompts are words, where it could not be cut", n)
	}
	if verr := verify(); err == nil {
		err = verr
	}
	return err
}

// verified says what came of encoding prompts again. One that has other tokens
// than asked for makes the run untrustworthy.
func verified(cmd *cobra.Command, v prompt.Verified, results string) error {
	cli.Notef(cmd, "verified: %d of %d prompts encoded again, %d tokens, %d of the prompts not as asked", v.Prompts, v.Prompts+v.Skipped, v.Tokens, v.Mismatches)
	if v.Mismatches > 0 {
		return cli.Exit(cli.Untrusted, fmt.Errorf("%d prompts do not have the tokens asked for; the results are in %s", v.Mismatches, results))
	}
	return nil
}

// determinism asks the endpoint again, when the run is over.
func (f *replayFlags) determinism(cmd *cobra.Command, w *trace.Trace, e *client.HTTP, p result.Prompter) func(context.Context, *result.Run) error {
	if f.CheckSame == 0 {
		return nil
	}
	return func(ctx context.Context, run *result.Run) error {
		rows, _, err := workloadRows(w)
		if err != nil {
			return err
		}
		d, err := e.CheckDeterminism(ctx, rows, rows.total, p, f.CheckSame)
		if err != nil {
			return fmt.Errorf("--check-deterministic: %w", err)
		}
		run.Determinism = &d
		cli.Notef(cmd, "determinism: %d of %d answers differ when asked twice at temperature 0", d.Differed, d.Compared)
		return nil
	}
}

// noteOdd says which answers were odd, though they were sound.
func noteOdd(cmd *cobra.Command, o result.Odd) {
	var says []string
	for _, c := range []struct {
		n    int64
		what string
	}{
		{o.RetryAfter, "errors with Retry-After, which is not followed"},
		{o.NoDone, "without [DONE]"},
		{o.DoneAgain, "with [DONE] twice"},
		{o.NoFinish, "without a finish reason"},
		{o.KeepAlives, "with keep-alives"},
		{o.Malformed, "with events that are no JSON object"},
		{o.Choices, "with several choices"},
		{o.NoUsage, "without usage"},
		{o.Uncounted, "with more or fewer tokens than events, so that gaps are not between tokens"},
	} {
		if c.n > 0 {
			says = append(says, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(says) > 0 {
		cli.Notef(cmd, "answers that were odd: %s", strings.Join(says, "; "))
	}
}

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
		return cli.Usagef("--dry-run and --resume contradict each other: the plan is that of the whole run")
	}
	return nil
}

// resumedCache says what was done to the servers' caches before the run that is to
// be resumed, and gives the prompts the seed that they then had. It is not done
// again: known tokens count what the servers hold of the run so far.
func (f *replayFlags) resumedCache(m *flags.PromptMaker) (*result.CacheDiscipline, error) {
	journal, err := result.Open(result.JournalName(f.out))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is nothing to resume: %w", err)
	}
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	was := journal.Run.Cache
	if was == nil || was.Asked != f.cache {
		return &result.CacheDiscipline{Asked: f.cache, Done: result.CacheNothing}, nil // which is refused as another setting
	}
	if was.Done == result.CacheNewSeed && f.prompts.Seed == "" {
		if m.Seed, err = strconv.ParseUint(journal.Run.Seed, 10, 64); err != nil {
			return nil, errors.New("--resume: the journal's seed is not a number")
		}
	}
	return was, nil
}

// resumption reads what the journals of the run say. The options are those of the
// run that is to come.
func (f *replayFlags) resumption(cmd *cobra.Command, part *workloadPart, seed uint64, o replay.Options) (*replay.Resumption, error) {
	again, err := f.Schedule(o.Causal, seed) // arrivals of its own, to be read to their end
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
		return nil, cli.Usagef("--resume: %v", err)
	}
	if err != nil {
		return nil, err
	}
	gap := r.Gap()
	cli.Notef(cmd, "resuming: %d rows have a result and keep it, %d that were due are sent again; the clock goes on at %v, %v after the journal was last written",
		gap.Kept, gap.Again, time.Duration(gap.AtNS).Round(time.Millisecond), time.Duration(gap.DownNS).Round(time.Second))
	return r, nil
}
