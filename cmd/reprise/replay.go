package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/replay/simserver"
	"reprise/synth"
	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/token"
)

// replayFlags are the flags of replay; demo fills them too.
type replayFlags struct {
	out     string
	prompts promptFlags
	verify  bool
	targetFlags
	scheduleFlags
	vllm vllmFlags
	wireFlags
	modeFlags
	resumeFlags
	liveFlags
	abortFlags
	serverFlags
	threadFlags
	verbatimFlags
	deploymentFlags
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
			if (f.out == "" || f.out == standard) && !f.dry.run {
				return usagef("say where the results go: -o FILE.parquet")
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
			w, err := openTrace(cmd, args[0])
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
	f.scheduleFlags.register(fl)
	fl.IntVar(&f.maxInFlight, "max-in-flight", 0, "requests at once; 0 is no limit. One held back keeps its due time and is counted")
	f.modeFlags.register(cmd)
	f.resumeFlags.register(cmd)
	f.liveFlags.register(cmd)
	f.abortFlags.register(cmd)
	f.threadFlags.register(cmd)
	f.verbatimFlags.register(cmd)
	f.deploymentFlags.register(fl)
	fl.Bool("quiet", false, "no progress")
	f.judge.register(cmd)
	f.judge.vllm.registerSave(cmd)
	f.vllm.register(cmd) // last: it looks for the flags that it stands for
}

// registerEndpoint registers to whom requests go, and how they are made and sent.
func (f *replayFlags) registerEndpoint(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.prompts.tokenizer, "tokenizer", "", "tokenizer of the endpoint, a name or the path of a tokenizer.json; empty takes the workload's, else o200k_base")
	fl.StringVar(&f.prompts.seed, "seed", "", "seed of the prompts; empty takes the workload's, else 1")
	fl.StringVar(&f.prompts.corpus, "corpus", "", corpusUsage)
	f.targetFlags.register(cmd)
	f.serverFlags.register(cmd)
	f.wireFlags.register(cmd)
	fl.IntVar(&f.serverBlock, "server-block-size", profile.DefaultServerBlock, "tokens in a block of the endpoint's prefix cache, for the expected hit ratio")
}

// check refuses what cannot be done, before anything is.
func (f *replayFlags) check(cmd *cobra.Command) error {
	for _, check := range []func() error{
		f.targetFlags.check,
		f.scheduleFlags.check,
		func() error { return f.wireFlags.check(max(f.concurrency, f.maxInFlight)) },
		f.checkConnections,
		func() error { return f.liveFlags.check(cmd) },
		f.abortFlags.check,
		f.serverFlags.check,
		f.checkThreads,
		func() error { return f.checkVerbatim(cmd) },
		f.checkResume,
		f.checkExtras,
		func() error { _, err := f.deployment(); return err },
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
func (f *replayFlags) chosen(cmd *cobra.Command, w *trace.Trace) (*workloadPart, *promptMaker, error) {
	_, blockSize, err := workloadRows(w)
	if err != nil {
		return nil, nil, err
	}
	maker, err := f.prompts.maker(cmd, w, blockSize)
	if err != nil {
		return nil, nil, err
	}
	part, err := f.part(cmd, w, maker.seed)
	if err != nil {
		return nil, nil, err
	}
	maker.tails = part.tails(maker.tails)
	return part, maker, nil
}

// calibrate finds the endpoint's model and measures its templates, of each API that
// rows go to.
func (f *replayFlags) calibrate(cmd *cobra.Command, w *trace.Trace, endpoint *replay.HTTP, m *promptMaker) (overheads map[string]int, err error) {
	apis, err := f.apis(w)
	if err != nil {
		return nil, err
	}
	words := m.tok.Words()
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
			if uncounted[api] = errors.Is(err, replay.ErrUncounted); err != nil && !uncounted[api] {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if f.raw != nil {
		notef(cmd, "endpoint: %s, model %s, prompts as in the source", strings.Join(endpoint.Endpoints(), ", "), model)
		return overheads, nil
	}
	for _, api := range apis {
		if uncounted[api] {
			notef(cmd, "endpoint: %s, %s, model %s; it sends no usage, so token counts are estimates: output by the tokenizer, prompts as they are made, without what a template adds to them",
				strings.Join(endpoint.Endpoints(), ", "), api, model)
			continue
		}
		notef(cmd, "endpoint: %s, %s, model %s, %d tokens of template around each prompt", strings.Join(endpoint.Endpoints(), ", "), api, model, overheads[api])
	}
	return overheads, nil
}

func (f *replayFlags) endpoint(tok *token.Encoding, extras replay.RowExtras) (*replay.HTTP, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	o.Rows, o.Connections, o.Replies = extras, f.connections, f.thread
	o.Count = func(text string) int { return len(tok.Append(nil, text)) }
	e, err := replay.NewHTTP(o)
	if err != nil {
		err = &exitError{exitUsage, err}
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
	s, err := simserver.New(simserver.DefaultConfig())
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
