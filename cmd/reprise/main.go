// Command reprise turns production LLM traffic into a benchmark that you can
// share, and replays it with its original timing.
//
// Each subcommand is one step of the flow, or one look at its result:
//
//	datasets  public traces by name, fetched and verified
//	import    a source log becomes a trace, without its text
//	record    live traffic, through a proxy, becomes the parts of a trace
//	merge     the shards of a replay become one run; parts of a recording, or shards of an import, a trace
//	profile   lengths, arrivals and prefix reuse of a trace
//	slice     a window of a trace
//	anonymize a trace that you can share, with its privacy card
//	audit     attacks on an output before it is shared
//	synth     a workload with fresh ids that shares prefixes as the trace does
//	fidelity  how close a workload is to a trace
//	export    a trace in another tool's format or ready to publish, results as a table
//	check     what a server is, and what a replay can measure at it
//	serve     a simulated endpoint to replay against
//	simulate  a workload answered by an engine model in virtual time
//	calibrate an engine model fitted to recorded results
//	validate  how far later results are from what an engine predicts
//	replay    a workload sent on time, every token of the answers timed
//	job       what a cluster starts for a replay in shards
//	report    what a replay measured, and whether it can be trusted
//	compare   two servers under the same workload, and whether one is slower
//	sweep     one load after another, up to the highest that meets a contract
//	bench     a suite of replays, of one server or several
//	capacity  instances, GPUs and cost for a rate
//	demo      all of it, on an embedded log
//	version   the version and the commit
//
// This package holds flags and wiring only, a file for each subcommand and for each
// idea that several share. The command job and the merge of shards are in
// internal/machines, datasets in internal/sets, export --to hf in internal/publication.
//
// # Files
//
//   - main.go: the tree of commands, exit codes, interrupts, and taking network and files
//     from commands that read text
//   - import.go: import: its flags, the trace's metadata, times for sources without them; the
//     trace of an import in shards
//   - inspect.go: import: the fields of a log that is not recognised, and the command line
//     that imports it
//   - counts.go: import: what it says; token counts of the text beside the source's, and requests
//     whose text is not the prompt that was sent
//   - record.go: record: the proxy, its ports and its end; the recorded requests
//   - recordshadow.go: record: --shadow, the results of two servers
//   - recordadmin.go: record: --admin-listen, the profile so far and the counts
//   - merge.go: merge: what its inputs are; a trace of the parts of a recording, or of the shards of
//     an import
//   - written.go: what a command says of the trace that it wrote, in a line or as JSON
//   - source.go: import and others: the files of a source, the digest of a published one, the
//     declared capture in words, the raw file and the file of templates beside a trace
//   - profile.go: profile: options, histograms and tables
//   - slice.go: slice: a window of a trace
//   - anonymize.go: anonymize: tiers partner and public, and the risks that it names
//   - ledger.go: the ledgers in which a release counts: their places, by what a trace is known in
//     them, and the words about it
//   - card.go: privacy cards: writing one beside a trace, anonymize --card, names of a
//     card and of a public model
//   - audit.go: audit: canaries, a log and an internal trace to judge by, --release;
//     a model that this program makes in another process
//   - synth.go, synthfit.go, synthsessions.go: synth: workloads from a trace, a model, a
//     specification or a mirror; synth fit: models, the ledger of a privacy budget; models
//     of sessions for a partner or the public
//   - synthgate.go: the workload of a trace, measured, and the line about it
//   - fidelity.go: fidelity: two traces compared, and the limits of --max
//   - export.go: export: another tool's format, and the command line to run it with; the
//     results of runs as a table
//   - check.go: check: how the server is reached, exit codes
//   - serve.go: serve: the simulated endpoint, its quirks and faults
//   - simulate.go: simulate: engines in virtual time, routers side by side, the published
//     figures of --presets
//   - calibrate.go: calibrate and validate: the results that they read, the file of an engine
//   - load.go: what replay, simulate, sweep and compare send: a trace, a specification, a built-in
//     name, requests that flags make, a file of prompts
//   - replay.go: replay: the command, with the report that follows
//   - report.go: report: one run or several, finding results files in directories, exit
//     codes, --explain, pages
//   - reportformats.go: report: --format: text, JSON, Markdown, CSV, JUnit, Prometheus,
//     vLLM, a tuning's decision
//   - compare.go: compare: recorded runs, production, --gate, names of the sides
//   - rounds.go, roundplan.go: compare: making rounds against two servers, their order, the directory
//     that keeps them; how many rounds, and which metric decides
//   - sweep.go, sweepladder.go: sweep: contract and workload, the ladder; how long it takes, and how each level ended
//   - commandline.go: the command line that makes a level again, without secrets
//   - sweepvary.go: sweep --vary: a sweep for each setting of an engine
//   - bench.go, benchmodels.go: bench: suites, their workloads, --list and --dry-run; the
//     servers, engines and presets that --model names
//   - capacity.go: capacity: instances and cost from a sweep; capacity predict
//   - version.go: version: the version, the commit, and what it was built with
//   - completion.go: the values of flags and the arguments that a shell completes
//   - demo.go: demo: all stages on an embedded log
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/machines"
	"reprise/cmd/reprise/internal/sets"
	"reprise/trace/crash"
	"reprise/trace/objectstore"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == objectstore.FetchCommand {
		os.Exit(objectstore.Main())
	}
	crash.Handle(func(words string) { // in a goroutine other than the command's own
		cli.Message(os.Stderr, "reprise: "+brokeDown(words, os.Args[1:]))
		os.Exit(cli.Failure)
	})

	ctx := cli.WithState(withConfine(interruptible(context.Background()), anonymize.Confine), cli.UserState())
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// interruptible is a context that SIGINT or SIGTERM ends. Signals within
// [cli.SameSignal] of the first are the same one: timeout, and some shells, signal the
// process and its group. A later one ends the process at once.
func interruptible(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer crash.Caught()
		<-signals
		cancel()
		<-time.After(cli.SameSignal)
		signal.Stop(signals)
	}()
	return ctx
}

// The library keeps this setting for the whole process, in which tests run commands side by side: it is set once.
func init() {
	cobra.EnableCommandSorting = false
}

// run is the whole program but for the process: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand(stdout)
	began := false
	var staged *cli.Staged
	ctx, end := context.WithCancel(cli.Once(ctx)) // what serves a command ends with it
	defer end()
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.Configure(cmd, os.Environ()); err != nil {
			return err
		}
		began = true
		keepSecrets(cmd)
		err := cli.CheckOutputs(cmd, args)
		if err == nil {
			staged, err = cli.Stage(cmd, cli.StateFolder(cmd))
		}
		return err
	}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeIn(root, completedValues())
	}
	root.SetArgs(flags.RepeatLists(args))
	root.SetIn(stdin)
	root.SetErr(stderr)

	err := flags.Detached(root, args)
	if err == nil {
		err = execute(ctx, root, args)
	}
	said := root.ErrOrStderr()
	if perr := staged.End(); perr != nil {
		if err != nil && !errors.Is(err, flags.ErrPrinted) {
			cli.Message(said, "reprise: "+cli.PlainError(err))
		}
		err, said = perr, stderr // it names the place on the machine
	}
	if err == nil || errors.Is(err, flags.ErrPrinted) {
		return cli.Good
	}
	if name, ok := strings.CutPrefix(err.Error(), "unknown command "); ok && !began {
		name, _, _ = strings.Cut(name, " for ")
		err = flags.UnknownCommand(root, name)
	}
	var exit *cli.ExitError
	code := cli.Failure
	switch {
	case errors.As(err, &exit):
		code = exit.Code
	case !began: // cobra's own errors: unknown commands, flags and arguments
		code = cli.Usage
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted; nothing was written")
	}
	cli.Message(said, "reprise: "+cli.PlainError(err))
	if code == cli.Usage && !errors.Is(err, cli.ErrExists) {
		tellHelp(stderr, root, args, err)
	}
	return code
}

// tellHelp names the help of the command that was typed, unless the error has a command line to paste.
func tellHelp(w io.Writer, root *cobra.Command, args []string, mistake error) {
	cmd, _, err := root.Find(args)
	if err != nil {
		cmd = root
	}
	if !strings.Contains(mistake.Error(), cmd.CommandPath()+" ") {
		fmt.Fprintf(w, "Help and examples: %s --help\n", cmd.CommandPath())
	}
}

// execute runs a command. A panic in it is a fault of the program, and no mistake of who called it:
// it becomes an error.
func execute(ctx context.Context, root *cobra.Command, args []string) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = errors.New(brokeDown(crash.Words(panicked), args))
		}
	}()
	return root.ExecuteContext(ctx)
}

// brokeDown says that a command panicked, with the files that it was given.
func brokeDown(words string, args []string) string {
	files := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		_, err := os.Stat(arg)
		return err != nil
	})
	if len(files) > 0 {
		words += "; the files were " + strings.Join(files, ", ")
	}
	return "a fault of this program at " + words + ". Please report it with these words"
}

// rootCommand is the tree of commands, which print to stdout.
func rootCommand(stdout io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "reprise",
		Short: "Turn LLM traffic into a benchmark that you can share, and replay it on time",
		Long: `Reprise imports production LLM logs and public traces, without their text,
synthesises prompts that share prefixes as the real ones did, and replays them
with their original timing against any OpenAI-compatible endpoint.

Begin with:  reprise demo`,
		Version:       cli.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(flags.Mistake)
	root.AddGroup(&cobra.Group{ID: "prepare", Title: "Make a workload"}, &cobra.Group{ID: "measure", Title: "Measure"},
		&cobra.Group{ID: "judge", Title: "Report and decide"}, &cobra.Group{ID: "other", Title: "Other"})
	root.AddCommand(sets.Command(), importCommand(), recordCommand(), mergeCommand(), profileCommand(), sliceCommand(),
		anonymizeCommand(), auditCommand(), synthCommand(), fidelityCommand(), exportCommand(),
		checkCommand(), serveCommand(), simulateCommand(), calibrateCommand(), validateCommand(), replayCommand(),
		reportCommand(), compareCommand(), sweepCommand(), benchCommand(),
		machines.JobCommand(func(cmd *cobra.Command) {
			new(importFlags).register(cmd)
		}), capacityCommand(), demoCommand(), versionCommand())
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = func(_ *cobra.Command, args []string) error {
			if found, _, err := root.Find(args); err != nil || found == nil {
				return flags.UnknownCommand(root, strconv.Quote(strings.Join(args, " ")))
			}
			return nil
		}
	}
	root.SetOut(stdout)
	flags.Completion(root)
	for id, names := range map[string][]string{
		"prepare": {"datasets", "import", "record", "merge", "profile", "slice", "anonymize", "audit", "synth",
			"fidelity", "export"},
		"measure": {"demo", "check", "serve", "simulate", "calibrate", "validate", "replay", "job", "sweep", "bench"},
		"judge":   {"report", "compare", "capacity"},
		"other":   {"version", "completion", "help"},
	} {
		for _, name := range names {
			cmd, _, _ := root.Find([]string{name})
			cmd.GroupID = id
		}
	}
	flags.Config(root)
	flags.Help(root)
	return root
}

// A confiner confines the process for good, see [anonymize.Confine].
type confiner func(read, write []string) anonymize.Confinement

type confinerKey struct{}

// withConfine has commands that look at text confine the process. Only main does,
// whose process ends with the command: tests run many in one.
func withConfine(ctx context.Context, f confiner) context.Context {
	return context.WithValue(ctx, confinerKey{}, f)
}

// secretFlags name files with a key, or with text, that the process then has in memory.
var secretFlags = []string{"key-file", "verbatim", "source"}

// keepSecrets switches core dumps off before a secret is read. Commands that give up more
// do so later, see [confine].
func keepSecrets(cmd *cobra.Command) {
	_, alone := cmd.Context().Value(confinerKey{}).(confiner)
	if alone && (cmd.Name() == "record" || slices.ContainsFunc(secretFlags, cmd.Flags().Changed)) {
		if err := anonymize.NoCoreDumps(); err != nil && cmd.Name() != "record" { // which says so itself
			cli.Warnf(cmd, "not confined: core dumps not available: %v", err)
		}
	}
}

// confine leaves the process the files that a command needs, and says what could
// not be applied. It returns nil where nothing is to be confined.
func confine(cmd *cobra.Command, read, write []string) *anonymize.Confinement {
	f, ok := cmd.Context().Value(confinerKey{}).(confiner)
	if !ok {
		return nil
	}
	named := func(paths []string) (out []string) {
		for _, p := range paths {
			if p != "" && p != cli.Standard {
				out = append(out, p)
			}
		}
		return out
	}
	if err := objectstore.Start(append(named(read), named(write)...)...); err != nil {
		cli.Warnf(cmd, "%v", err)
	}
	c := f(named(read), named(write))
	for _, m := range c.Missing() {
		cli.Warnf(cmd, "not confined: %s", m)
	}
	return &c
}
