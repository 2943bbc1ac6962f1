// Command reprise-beam imports a log on a cluster, as a pipeline of Apache Beam: for those who run
// Flink, Spark or Dataflow. Without settings it runs in its own process, on Prism.
//
// # Files
//
//   - main.go: the command; a worker of an engine, which is this binary too
//   - pipeline.go: the pipeline: which stage runs where, and what crosses the engine
//   - engineflags.go: the flags of Beam, in this command's help
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"
	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/beam/internal/stage"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/trace"
	"reprise/trace/shard"
)

func main() {
	if slices.ContainsFunc(os.Args[1:], func(a string) bool {
		return strings.TrimLeft(a, "-") == "worker" || strings.TrimLeft(a, "-") == "worker=true"
	}) {
		flag.Parse()
		go endWithParent()
		beam.Init() // does not return: this is a worker that an engine started
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// endWithParent ends a worker when the program that started it is gone: Beam's worker stays for ever where an engine
// kills that program, as Flink does at the end of a job.
func endWithParent() {
	for parent := os.Getppid(); os.Getppid() == parent; {
		time.Sleep(5 * time.Second)
	}
	os.Exit(1)
}

// run is the whole program but for the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := command()
	began := false
	cmd.PreRun = func(*cobra.Command, []string) { began = true }
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return cli.Good
	}
	code := cli.Failure
	if exit := (*cli.ExitError)(nil); errors.As(err, &exit) {
		code = exit.Code
	} else if !began {
		code = cli.Usage
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted; no trace was written")
	}
	cli.Message(stderr, "reprise-beam: "+cli.PlainError(err))
	return code
}

// options are the flags beside those of the log and of Beam.
type options struct {
	log    flags.Log
	job    stage.Job
	asJSON bool
	logged string // --engine-log
	level  slog.Level
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "reprise-beam LOG... --key-file FILE -o TRACE",
		Short: "Import a log on Flink, Spark or Dataflow, without its text",
		Long: `Reprise-beam imports a log as reprise import does, as a pipeline of Apache Beam. The trace has
the digest that one process would have given it, whatever the engine and the number of shards.

Workers import the files in shards, measure lengths and arrivals, and make the LRU curve of a sample of the
blocks. One worker then makes the trace of all shards. Names of files cross the engine, and rows without
text; lines never do. All workers must see the log, the key file, and the folders of the shards
and the trace under one path, such as on a shared volume.

Without --runner the pipeline runs in this process. With --endpoint it runs on the engine whose
job server listens there.`,
		Example: `  reprise-beam logs/ --key-file key -o t.parquet
  reprise-beam /mnt/logs --key-file /run/reprise/key -o /mnt/t.parquet --runner universal --endpoint flink:8099 --environment_type PROCESS --environment_config '{"command":"/opt/boot"}'`,
		Version:       cli.Version,
		Args:          flags.Wants(1, math.MaxInt, "which log?"),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          o.run,
	}
	fl := cmd.Flags()
	results, rest := flags.Sections(fl, flags.ResultsFlags)
	machines, machinesRest := flags.Sections(fl, flags.ShardFlags)
	results.OutputVar(&o.job.Out, "`folder` for the trace in partitions, or a file NAME.parquet, as workers see it")
	rest.IntVar(&o.job.Parts, "partitions", 0, "partitions of the trace; by default as many as shards")
	results.BoolVar(&o.asJSON, "json", false, "print the profile as JSON")
	rest.StringVar(&o.logged, "engine-log", "",
		"print messages of the engine from this `level` on: debug, info, warn or error; by default none")
	machines.StringVar(&o.job.KeyFile, "key-file", "",
		"`file` with the key of the import, 64 hexadecimal digits, as workers see it. openssl rand -hex 32 makes one")
	machines.IntVar(&o.job.Shards, "shards", 0,
		"shards of the log, of whole files; by default as many as files, up to 32")
	machinesRest.StringVar(&o.job.Work, "work", "",
		"`folder` for the shards, as workers see it; by default NAME.shards beside the trace. Shards are "+
			"removed at the end")
	machinesRest.IntVar(&o.job.OneIn, "one-in", 1,
		"take one block in so many for the LRU curve, where the references to an eighth of all blocks do not fit in "+
			"the memory of a worker")
	o.log.Register(fl)
	engineFlags(fl)
	cmd.SetFlagErrorFunc(flags.Mistake)
	flags.Help(cmd)
	return cmd
}

// prepare checks the flags and makes the job of them.
func (o *options) prepare(cmd *cobra.Command, args []string) (err error) {
	j := &o.job
	j.Tool, j.Flags = "reprise-beam "+cli.Version, stage.FlagsOf(cmd.Flags())
	switch {
	case j.Out == "" || j.Out == cli.Standard:
		return cli.Usagef("name a folder for the trace: -o FOLDER, or -o FILE.parquet for one file")
	case j.Parts > trace.MaxPartitions:
		return cli.Usagef("--partitions: want 1 to %d", trace.MaxPartitions)
	case j.KeyFile == "":
		return cli.Usagef("--key-file FILE is needed: all workers hash under one key. openssl rand -hex 32 >FILE " +
			"makes one; chmod 600 FILE")
	case j.OneIn < 1 || j.OneIn > 1<<16:
		return cli.Usagef("--one-in: want 1 to %d", 1<<16)
	}
	if o.logged != "" && o.level.UnmarshalText([]byte(o.logged)) != nil {
		return cli.Usagef("--engine-log: want debug, info, warn or error")
	}
	if j.Work == "" {
		j.Work = strings.TrimSuffix(filepath.Clean(j.Out), ".parquet") + ".shards"
	}
	for _, path := range []*string{&j.Out, &j.KeyFile, &j.Work} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	for _, arg := range args {
		if arg, err = filepath.Abs(arg); err != nil {
			return err
		}
		j.Logs = append(j.Logs, arg)
	}
	if remote() && j.Shards == 0 {
		return cli.Usagef("--shards: say how many, since this machine may not see the files that workers do")
	}
	if !remote() {
		if _, err := anonymize.OpenSharedKey(j.KeyFile); err != nil {
			return cli.Exit(cli.Usage, fmt.Errorf("--key-file: %w", err))
		}
		files, err := j.Files()
		if err != nil {
			return err
		}
		j.Shards = cmp.Or(j.Shards, max(1, min(len(files), mostShards)))
		if err := j.Check(); err != nil {
			return err
		}
	}
	if j.Parts == 0 && !strings.HasSuffix(j.Out, ".parquet") {
		if err := cmd.Flags().Set("partitions", strconv.Itoa(min(j.Shards, trace.MaxPartitions))); err != nil {
			return err
		}
	}
	if remote() {
		return nil
	}
	return cli.CheckOutputs(cmd, args)
}

// mostShards by default: each looks at the beginning of every file.
const mostShards = 32

// remote tells whether workers run elsewhere.
func remote() bool {
	return *jobopts.Endpoint != "" && !jobopts.IsLoopback()
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := o.prepare(cmd, args); err != nil {
		return err
	}
	// Beam leaves files behind in the folder for temporary ones.
	temporary, err := os.MkdirTemp("", "reprise-beam-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if before, set := os.LookupEnv("TMPDIR"); set {
		defer os.Setenv("TMPDIR", before)
	} else {
		defer os.Unsetenv("TMPDIR")
	}
	if err := os.Setenv("TMPDIR", temporary); err != nil {
		return err
	}
	beam.Init()
	if slog.SetDefault(slog.New(slog.DiscardHandler)); o.logged != "" {
		slog.SetDefault(slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: o.level})))
	}
	if *jobopts.WorkerBinary == "" && remote() {
		if *jobopts.WorkerBinary, err = os.Executable(); err != nil {
			return err
		}
	}
	p := beam.NewPipeline()
	build(p.Root(), o.job)
	if err := beamx.Run(cmd.Context(), p); err != nil {
		if !remote() {
			err = errors.Join(err, o.removeShards())
		}
		return cause(err)
	}
	return o.say(cmd)
}

// cause is what a stage said, without the plan of the engine around it.
func cause(err error) error {
	const before = " failed:\n"
	text := err.Error()
	if at := strings.LastIndex(text, before); at >= 0 && strings.Contains(text, "DoFn[") {
		return errors.New(strings.TrimSpace(text[at+len(before):]))
	}
	return err
}

// removeShards removes the shards, and their folder unless somebody has other files in it.
func (o *options) removeShards() (err error) {
	for i := range o.job.Shards {
		if fault := os.Remove(filepath.Join(o.job.Work, shard.Name(i, o.job.Shards))); fault != nil &&
			!errors.Is(fault, fs.ErrNotExist) {
			err = errors.Join(err, fault)
		}
	}
	os.Remove(o.job.Work)
	return err
}

// say prints what was found, and removes the shards.
func (o *options) say(cmd *cobra.Command) error {
	text, err := os.ReadFile(o.job.Profile())
	if errors.Is(err, fs.ErrNotExist) {
		cli.Warnf(cmd, "workers wrote %s and its profile, which this machine does not see; remove the shards in %s "+
			"and the key", o.job.Out, o.job.Work)
		return nil
	}
	if err != nil {
		return err
	}
	if err := o.removeShards(); err != nil {
		return err
	}
	if o.asJSON {
		_, err := cmd.OutOrStdout().Write(text)
		return err
	}
	var s stage.Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%s: %w", o.job.Profile(), err)
	}
	if err := s.WriteText(cmd.OutOrStdout()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "trace: %s; delete the key: it is no longer needed\n", o.job.Out)
	return nil
}
