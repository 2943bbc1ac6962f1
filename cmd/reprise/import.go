package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/importshard"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/objectstore"
)

// importFlags are the flags of import; demo fills them too.
type importFlags struct {
	flags.Log
	out      string
	tier     flags.Release
	arrivals string
	service  string
	think    string
	flags.Templates
	anyTimes bool                // of a source without: a load replaces them
	sessions int64               // of a source without times, how many are read from its start; 0 is all
	onlyLook bool                // --inspect
	asStep   func(datasets.Info) // told of what was read in place of the answer, where this is a step of a command
	shard    importshard.Import
}

func importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import LOG... -o TRACE",
		Short: "Turn a log into a trace, without its text",
		Example: `  reprise import mooncake_conversation.jsonl -o t.parquet
  reprise import sharegpt.json --arrivals poisson:2 --think lognormal:20s,1 -o t.parquet
  reprise import sharegpt.json --arrivals onoff:10,on=30s,off=2m -o t.parquet
  reprise import mooncake_conversation.jsonl --capture-begin 0s --capture-end 1h -o t.parquet
  reprise import --inspect gateway.jsonl
  reprise import gateway.jsonl --map time=ts --map input_tokens=usage.prompt_tokens -o t.parquet`,
		Args: flags.Wants(1, math.MaxInt, "which log?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := logFiles(cmd, args)
			if err != nil {
				return err
			}
			if err := f.FindZone(); err != nil {
				return err
			}
			if f.onlyLook {
				confine(cmd, f.reads(files), f.formatFileToWrite())
				return f.inspect(cmd, files)
			}
			switch on, err := f.inShards(); {
			case err != nil:
				return err
			case on:
				return f.runShard(cmd, files)
			}
			if f.KeepTemplates && objectstore.IsURL(f.out) {
				return errTemplatesInStore
			}
			if err := cli.CheckBeside(cmd, f.out, f.writes()...); err != nil {
				return err
			}
			writes := f.writes()
			if f.tier.Drawn() {
				ledger := ledgerOf(cmd, f.tier.Ledger, "")
				writes = append(writes, ledger.All()...)
			}
			f.tier.Confined = confine(cmd, f.reads(files), writes)
			return f.run(cmd, files)
		},
	}
	f.register(cmd)
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = importText()
		cmd.Root().HelpFunc()(cmd, args)
	})
	return cmd
}

// importText is what import does, and its long lists. It is made when somebody asks, since the files of
// formats take milliseconds to read.
func importText() string {
	return `Import turns a log or a public trace into a trace: when each request arrived and how
large it was, with keyed ids of its prefix blocks instead of its text.

A log is a file, a directory, a quoted pattern such as 'logs/*.jsonl.gz', or - for stdin,
plain, gzip or zstd. Several files are one source. Its format is detected by content.

For a log of another format, import lists its fields and proposes a --map; --inspect does
that for any log.` + flags.ListsBegin + `

Formats:
` + cli.HelpList(datasets.Formats(), 18, func(f datasets.Format) (string, string) { return f.Name, f.About }) + `
To export the spend logs of a LiteLLM gateway, run this in psql on its database:

  ` + strings.ReplaceAll(datasets.LiteLLMQuery(), "\n", "\n  ") + `

--capture-begin and --capture-end declare when the source was recorded, such as the times
at which its file was rotated, not of its first and last request. Times of the trace
then count from the begin; tiers partner and public need this. The end is exclusive, and
a request outside stops the import. Both are dates, in the zone of --tz if they have
none, or durations such as 0s and 1h if the source has no dates.

--shard i/n imports one of n shares of the files, under a key that all shards have
(--key-file). merge --finish makes of all shards the trace that one process would make.

A source without times, such as ShareGPT, needs --arrivals for the starts of its sessions.
Each later turn follows after --service and --think.

An arrival process is one of

` + cli.Wrapped(arrival.ProcessForms()) + `

A distribution, for --service and --think, is one of

` + cli.Wrapped(arrival.DistForms())
}

func (f *importFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	results.ParquetVar(&f.out, "`file` for the trace; - is stdout")
	f.Log.Register(fl)
	source, _ := flags.Sections(fl, "Source")
	madeUp, _ := flags.Sections(fl, "Sources without times")
	f.tier.Register(fl, anonymize.Internal,
		"privacy tier of the trace: internal, partner, public, or raw, which is internal with the text kept beside "+
			"it in NAME.raw.parquet")
	madeUp.StringVar(&f.arrivals, "arrivals", "",
		"arrival `process` of sessions, such as poisson:2 or ramp:1-10,60s,cv=3, if the source has no times")
	madeUp.StringVar(&f.service, "service", "lognormal:5s,1", "`distribution` of the time to answer a turn")
	madeUp.StringVar(&f.think, "think", "lognormal:30s,1.5", "`distribution` of the time until the next turn")
	madeUp.Seed(&f.Seed, "seed", 1, "seed of generated times and expanded pools; never of keys")
	f.Templates.Register(fl)
	source.BoolVar(&f.onlyLook, "inspect", false,
		"list the fields of the log, without text, propose a --map, and exit; with -o mine.yaml that is written as a "+
			"file for --format")
	results.Bool("json", false, "print the summary as JSON")
	f.shard.Register(fl)
	flags.Details(fl)
	results.Bool("quiet", false, flags.QuietUsage)
}

// inShards reads the flags of a shard, and reports whether this is one.
func (f *importFlags) inShards() (on bool, err error) {
	s := &f.shard
	s.Out, s.MaxBad, s.Tool = f.out, f.MaxBad, tool()
	if on, err = s.Check(); !on || err != nil {
		return on, err
	}
	switch {
	case f.tier.Tier != anonymize.Internal:
		return on, cli.Usagef("--shard imports tier %s: merge the shards, and release or anonymize the trace; --tier "+
			"raw keeps text in one process alone", anonymize.Internal)
	case f.arrivals != "":
		return on, cli.Usagef("--arrivals makes times up one after the other: import such a source in one process")
	}
	return on, nil
}

// runShard imports a share of the files.
func (f *importFlags) runShard(cmd *cobra.Command, files []datasets.File) error {
	f.tier.Confined = confine(cmd, append(f.reads(files), f.shard.KeyFile), []string{f.shard.Path()})
	defer cli.LimitMemory(importMemory)()
	var err error
	if f.shard.Mapping, err = f.Mapping(); err != nil {
		return err
	}
	watched, read := readShare(files)
	from, to := 0, 0 // the files of this share
	f.shard.Open = func(share *datasets.Share) (*datasets.Source, error) {
		src, err := f.Open(watched, share)
		if err == nil {
			_, from, to = src.ShareFiles()
		}
		return src, f.explainFields(cmd, files, err)
	}
	f.shard.Policy = func(info datasets.Info) (anonymize.Policy, error) {
		if err := f.Capture.Check(info, false); err != nil {
			return anonymize.Policy{}, err
		}
		p, err := f.policy(info)
		if err == nil {
			p.KTemplate, err = f.LeastUsers(cmd.Flags(), f.shard.Path(), f.tier.Tier, info)
		}
		return p, err
	}
	bar := cli.NewProgress(cmd, cli.Step{Name: "import", Part: 1, Done: func() float64 { return read(from, to) }})
	m, info, err := f.shard.Write(cmd.Context(), importshard.SetOptions(cmd.Flags()), bar.Step)
	bar.End()
	if err != nil {
		return f.explainFields(cmd, files, err)
	}
	return f.shard.Say(cmd, m, info)
}

// finishShards makes a trace of the shards at paths.
func finishShards(cmd *cobra.Command, m *importshard.Merge, paths []string, out string) error {
	confine(cmd, append(slices.Clone(paths), m.KeyFile),
		append(outputsOf(&flags.Release{Tier: anonymize.Internal}, out), templatesName(out)))
	if err := m.Open(paths); err != nil {
		return err
	}
	f := &importFlags{out: out, Log: flags.Log{Capture: flags.Capture{Declared: m.Policy.Capture}},
		tier: flags.Release{Tier: anonymize.Internal}}
	if f.KeepTemplates = m.Policy.KTemplate > 0; f.KeepTemplates && (out == "" || out == cli.Standard) {
		return cli.Usagef("the shards keep system prompts, for a file beside the trace: give -o FILE.parquet")
	}
	if f.KeepTemplates && objectstore.IsURL(out) {
		return errTemplatesInStore
	}
	if err := cli.CheckBeside(cmd, out, f.writes()...); err != nil {
		return err
	}
	defer cli.LimitMemory(importMemory)()
	var card anonymize.Card
	bar, progress := takeProgress(cmd, "merge", shareOf(m.Requests()))
	err := writeCarded(cmd, out, func(dst trace.Writer[trace.Request]) (meta trace.Meta, err error) {
		card, err = m.Write(cmd.Context(), progress, dst)
		bar.End()
		if err != nil {
			return meta, err
		}
		card.Tool = tool()
		meta, err = flags.ImportedMeta(card, m.Info, m.Policy.Capture, "")
		meta.Captures = m.Captures
		return meta, err
	})
	if err == nil && card.Templates != nil {
		err = writeTemplates(cmd, templatesName(out), card.Templates)
	}
	if err != nil {
		return err
	}
	m.Info.Notes = append(m.Info.Notes, m.Notes...)
	return f.say(cmd, m.Info, card, m.Policy, "")
}

var errTemplatesInStore = cli.Usagef(
	"system prompts are text, which goes into no store: give -o a file of this machine")

// importMemory is the heap size that the garbage collector aims to stay below. It is more than what
// five million requests take with 24 blocks each: at the limit the collector never rests.
const importMemory = 1200 << 20

// takeProgress shows how far a command is that takes requests in by a step and then writes them; share tells how much of
// the step is done. Writing takes next to nothing after a log of text, and nearly as long as reading after a log of
// hashes: a quarter of the whole lies between.
func takeProgress(cmd *cobra.Command, step string,
	share func(taken int64) float64) (*cli.Progress, func(step string, done int64)) {
	var taken, written atomic.Int64
	bar := cli.NewProgress(cmd,
		cli.Step{Name: step, Part: 3, Done: func() float64 { return share(taken.Load()) }},
		cli.Step{Name: "write", Part: 1,
			Done: func() float64 { return float64(written.Load()) / float64(max(1, taken.Load())) }})
	return bar, func(step string, done int64) {
		if step == "write" {
			written.Store(done)
		} else {
			taken.Store(done)
		}
		bar.Step(step, done)
	}
}

// shareOf is how much of a number of requests was taken in; 0 where the number is unknown.
func shareOf(all int64) func(taken int64) float64 {
	return func(taken int64) float64 {
		if all <= 0 {
			return 0
		}
		return float64(taken) / float64(all)
	}
}

// run imports files into the trace that the flags name.
func (f *importFlags) run(cmd *cobra.Command, files []datasets.File) error {
	if cli.On(cmd, "json") && f.out == cli.Standard {
		return cli.Usagef("--json and -o - both write to stdout: give -o FILE")
	}
	if err := cli.KeepInputs(append(f.inputs(files), f.tier.Ledger), f.writes()...); err != nil {
		return err
	}
	f.Bodies = f.tier.Tier == anonymize.Raw
	watched, share := readShare(files)
	src, err := f.Open(watched, nil)
	if err != nil {
		return f.explainFields(cmd, files, err)
	}
	defer src.Close()
	if err := f.tier.Check(cmd); err != nil {
		return err
	}
	if !src.Empty() {
		if err := f.Capture.Check(src.Info(), f.tier.Drawn()); err != nil {
			return err
		}
	}
	if err := f.checkRelease(files); err != nil {
		return err
	}
	policy, err := f.policy(src.Info())
	if err != nil {
		return err
	}
	if policy.KTemplate, err = f.LeastUsers(cmd.Flags(), f.out, f.tier.Tier, src.Info()); err != nil {
		return err
	}
	entries, timing, err := f.timed(src)
	if err != nil {
		return f.explainTimes(cmd, files, src, err)
	}
	// What import holds is bounded, and small beside what a collector that waits
	// for the heap to double would let pile up.
	defer cli.LimitMemory(importMemory)()
	bar, progress := takeProgress(cmd, "import", func(int64) float64 { return share(0, len(files)) })
	policy.Progress = progress
	raw, err := f.keepRaw(src.Info(), &policy)
	if err != nil {
		return err
	}
	if raw != nil {
		defer raw.Abort()
	}
	var card anonymize.Card
	rows := func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		var err error
		if card, err = anonymize.Run(cmd.Context(), policy, entries, dst); err != nil {
			return trace.Meta{}, cli.UsageIf(f.explainFields(cmd, files, err), datasets.ErrUsage)
		}
		card.Tool = tool()
		meta, err := flags.ImportedMeta(card, src.Info(), f.Capture.Declared, timing)
		if err == nil {
			meta.Source, err = publishedDigest(cmd.Context(), files, src.Info())
		}
		meta.Captures = randomID() // so that whatever is made of this trace is known for it
		return meta, err
	}
	var says []string
	if f.tier.Drawn() {
		says, err = f.release(cmd, rows, bar)
	} else if err = writeCarded(cmd, f.out, rows); err == nil && raw != nil {
		err = raw.Commit() // the text appears once its trace has
	}
	bar.End()
	if err == nil && card.Templates != nil {
		err = writeTemplates(cmd, templatesName(f.out), card.Templates)
	}
	if err != nil {
		return err
	}
	if f.asStep != nil {
		f.asStep(src.Info())
		return nil
	}
	return f.say(cmd, src.Info(), card, policy, timing, says...)
}

// release writes sessions that are drawn with noise from the imported rows. Until then a private file has the rows.
func (f *importFlags) release(cmd *cobra.Command, rows func(trace.Writer[trace.Request]) (trace.Meta, error),
	bar *cli.Progress) (says []string, err error) {
	internal, err := trace.Private("", rows)
	bar.End()
	if err != nil {
		return nil, err
	}
	defer internal.Close()

	says, _, err = releaseTrace(cmd, &f.tier, "", internal, f.out)
	return says, err
}

// checkRelease refuses a release of noise that could not be published, or has no ledger of its own: there is no trace
// for the ledger to stand beside.
func (f *importFlags) checkRelease(files []datasets.File) error {
	if !f.tier.Drawn() {
		return nil
	}
	if err := publishable(&f.tier, f.out); err != nil {
		return err
	}
	switch ledger := f.tier.Ledger; {
	case ledger == "":
		return cli.Usagef("name the ledger of the source: --ledger FILE")
	case slices.Contains(f.inputs(files), ledger):
		return cli.Usagef("--ledger: %s is the log", ledger)
	}
	return nil
}

// explainTimes says of a source without times with which flags it is imported.
func (f *importFlags) explainTimes(cmd *cobra.Command, files []datasets.File, src *datasets.Source, err error) error {
	if f.arrivals != "" || src.Empty() {
		return err
	}
	how := importCommandLine(cmd, &datasets.Inspection{File: files[0].Name, Flags: madeUpTimes}, nil)
	return cli.Exit(cli.Usage, fmt.Errorf("%w\nTo import it:\n%s", err, strings.TrimRight(how, "\n")))
}

// policy is how a source is imported, to the tier of the flags.
func (f *importFlags) policy(info datasets.Info) (anonymize.Policy, error) {
	switch t := f.tier.Tier; t {
	case anonymize.Internal, anonymize.Partner, anonymize.Public, anonymize.Raw:
	default:
		return anonymize.Policy{}, cli.Usagef("--tier %s is not available: want %s, %s, %s or %s", t,
			anonymize.Internal, anonymize.Partner, anonymize.Public, anonymize.Raw)
	}
	p, err := f.Policy(info)
	p.Confined = f.tier.Confined
	return p, err
}

var errNoTimes = errors.New("has no times")

// timed gives times to a source that has none, or starts to its sessions, and
// says how.
func (f *importFlags) timed(src *datasets.Source) (trace.EntryReader, string, error) {
	info := src.Info()
	switch {
	case src.Empty():
		none := "it has no record"
		if n := info.Records + info.Bad; n > 0 {
			none = fmt.Sprintf("none of the %d records is a request", n)
		}
		return nil, "", fmt.Errorf("%s: %s: %s", info.Format, none,
			strings.Join(append(info.Notes, "import --inspect lists the fields"), "; "))
	case info.HasTimes && !info.SessionTimes && f.arrivals != "":
		return nil, "", cli.Usagef("%s has times: --arrivals is for sources without", info.Format)
	case info.HasTimes && !info.SessionTimes:
		return src, "", nil
	case f.arrivals == "" && f.anyTimes:
		f.arrivals = "constant:1"
	case info.SessionTimes && f.arrivals == "":
		return nil, "", cli.Usagef("%s %w but times from the start of each session: give the arrivals of sessions, "+
			"such as --arrivals poisson:2", info.Format, errNoTimes)
	case f.arrivals == "":
		return nil, "", cli.Usagef("%s %w: give the arrivals of sessions, such as --arrivals poisson:2",
			info.Format, errNoTimes)
	}
	process, err := arrival.ParseProcess(f.arrivals)
	if err != nil {
		return nil, "", cli.Usagef("--arrivals: %v", err)
	}
	stream := func(name string) *rand.Rand { return arrival.Stream(f.Seed, name) }
	if info.SessionTimes {
		timing := fmt.Sprintf("of sessions made up: %s, seed %d", process, f.Seed)
		return datasets.Spread(src, process.New(stream("arrivals"))), timing, nil
	}
	service, err := arrival.ParseDist(f.service)
	if err != nil {
		return nil, "", cli.Usagef("--service: %v", err)
	}
	think, err := arrival.ParseDist(f.think)
	if err != nil {
		return nil, "", cli.Usagef("--think: %v", err)
	}
	timing := fmt.Sprintf("made up: sessions %s, service %s, think %s, seed %d", process, service, think, f.Seed)
	var entries trace.EntryReader = src
	if f.sessions > 0 {
		entries = &firstSessions{src, f.sessions}
	}
	return datasets.Timed(entries, process.New(stream("arrivals")), service.New(stream("service")),
		think.New(stream("think"))), timing, nil
}
