package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/datasets"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/synth/spec"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// synthFlags are the flags of synth.
type synthFlags struct {
	out      string
	mirror   bool
	seed     uint64
	kSwap    int
	requests int64
	duration time.Duration
	users    int
	shared   time.Duration
	speed    float64
	arrivals string
	text     flags.PromptText
	describe bool
	strict   bool

	wrote written // once it is
	off   error   // with strict: what does not hold of it
}

func synthCommand() *cobra.Command {
	var f synthFlags
	cmd := &cobra.Command{
		Use:   "synth TRACE|MODEL|SPEC|NAME -o WORKLOAD",
		Short: "Make a workload from a trace, a specification or a name",
		Long: `Synth makes a workload: from a trace, from a model that synth fit made of one, from a
YAML specification, or from a built-in workload by name.

From a trace, it keeps the hit ratio of a cache of any size, reuse categories, sessions,
lengths and bursts of arrivals. It fits a model: for each request the earlier one that it
builds on, its lengths and the gap before it, without ids, dates or text. Lengths and
gaps are exchanged among at least --k-swap similar requests, and sessions move as a whole,
so two fits of a trace differ; a model and a seed always give the same workload.
The result is measured as by "reprise fidelity". Where a figure is beyond its limit, other
swaps, seeds and half of --k-swap are tried, and one line says what is off; --strict makes
that exit code 3.

--users K adds independent copies of the trace's users, who share the common prefix and
compete for the cache. Each is busy at times of its own, unless --shared-above says that
they have one day. --speed K plays the same requests in less time. -n and --duration can
go beyond the trace.

--mirror keeps every row of a trace with its time and lengths, and renames blocks,
sessions and users. A mirror is as private as its trace.

The workload has the privacy tier of its trace. Replay generates the prompts from the
seed, with exactly these lengths and shared prefixes. They are random words unless
--text or --corpus is given.

A specification is a .yaml or .yml file; docs/workloads.md has its keys. -n, --duration
and --arrivals override it. --describe lists what a specification or a built-in workload
sets, and where its values are from.

Built-in workloads:
` + cli.HelpList(datasets.Workloads(), 21, func(name string) (string, string) {
			text, _ := datasets.Workload(name)
			s, err := spec.Parse(name, text)
			if err != nil {
				return name, ""
			}
			return name, s.About
		}),
		Example: `  reprise synth t.parquet -o w.parquet
  reprise synth fit t.parquet -o m.parquet
  reprise synth m.parquet -n 100 --seed 7 -o w.parquet
  reprise synth m.parquet --users 3 --speed 2 -o w.parquet
  reprise synth --mirror t.parquet --text words -o w.parquet
  reprise synth chat -n 100 --arrivals gamma:5,cv=2 -o w.parquet
  reprise synth agents --describe`,
		Args: flags.Wants(1, 1, "from which trace, model, specification or name?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fl := cmd.Flags()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	workload, workloadRest := flags.Sections(fl, "Workload")
	results.OutputVar(&f.out, "`file` for the workload; - is stdout")
	workload.BoolVar(&f.mirror, "mirror", false, "keep every row of the trace, with new ids")
	workload.Seed(&f.seed, "seed", 1, "seed of arrivals, ids and prompts; never of the swapping")
	workloadRest.IntVar(&f.kSwap, "k-swap", synth.DefaultKSwap,
		"when a trace is fitted, swap values among at least this many similar requests; 1 swaps none")
	workload.Int64VarP(&f.requests, "requests", "n", 0,
		"number of requests; by default as many as the trace has, times --users")
	workload.DurationVar(&f.duration, "duration", 0, "length of the workload, instead of -n")
	workload.IntVar(&f.users, "users", 1, "number of independent copies of the trace's users")
	workloadRest.DurationVar(&f.shared, "shared-above", 0,
		"give the rate of all --users one course, as far as it is slower than this, such as 1h; by default each has "+
			"its own phase")
	workload.FactorVar(&f.speed, "speed", 1, "divide times and think times by this factor")
	workload.StringVar(&f.arrivals, "arrivals", "",
		"arrival `process` of a specification's sessions, instead of its own, such as poisson:5")
	workloadRest.BoolVar(&f.describe, "describe", false,
		"list the parameters of a specification and their sources, and make nothing")
	workloadRest.BoolVar(&f.strict, "strict", false, strictHelp)
	flags.Details(fl)
	f.text.Register(cmd)
	results.Bool("json", false, "print the summary as JSON")
	results.Bool("quiet", false, "no progress")
	cmd.AddCommand(synthFitCommand())
	return cmd
}

// largeMemory is the heap size that the garbage collector aims to stay below for commands
// that hold more the longer a trace is, or hold much from the beginning.
const largeMemory = 1200 << 20

func (f *synthFlags) run(cmd *cobra.Command, path string) error {
	defer cli.LimitMemory(largeMemory)()
	if err := f.check(cmd); err != nil {
		return err
	}
	if !f.mirror {
		s, err := openSpec(path)
		switch {
		case f.describe && err == nil && s == nil:
			return cli.Usagef("--describe is for a specification or a built-in workload: profile says what a " +
				"trace is like")
		case f.describe && err == nil:
			return describeSpec(cmd, s)
		case s != nil || err != nil:
			return f.fromSpec(cmd, s, err)
		}
	}
	if f.arrivals != "" {
		return cli.Usagef("--arrivals needs a specification: a trace has its own arrivals")
	}
	if f.mirror {
		t, err := cli.OpenTrace(cmd, path)
		if err != nil {
			return err
		}
		defer t.Close()
		if err := f.text.Describe(cmd, &t.Meta, !t.Meta.IsWorkload()); err != nil {
			return err
		}
		return writeTallied(cmd, f.out, &f.wrote, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
			return mirrorTrace(t, f.seed, dst)
		})
	}
	draw, err := f.model(cmd, path)
	if err != nil {
		return err
	}
	err = writeTallied(cmd, f.out, &f.wrote, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		return f.generate(cmd, draw, dst)
	})
	return cmp.Or(err, f.off)
}

// check refuses what does not go together.
func (f *synthFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case f.mirror && f.describe:
		return cli.Usagef("--describe is for a specification or a built-in workload")
	case f.mirror && (given("requests") || given("duration") || given("users") || given("speed") || given("k-swap")):
		return cli.Usagef("--mirror keeps every row as it is: it takes no -n, --duration, --users, --speed or --k-swap")
	case given("requests") && given("duration"):
		return cli.Usagef("-n and --duration cannot be used together: each follows from the other by the trace's rate")
	case given("requests") && f.requests < 1, given("duration") && f.duration <= 0, f.users < 1, !(f.speed > 0):
		return cli.Usagef("-n, --duration, --users and --speed must be above 0")
	case f.kSwap < 1:
		return cli.Usagef("--k-swap must be 1 or more")
	case given("shared-above") && (f.shared <= 0 || f.users < 2):
		return cli.Usagef("--shared-above needs a duration above 0 and --users 2 or more: it makes the rate of " +
			"several copies of the users one course")
	}
	return f.text.Describe(cmd, new(trace.Meta), true) // what is wrong with it shows before the work
}

// A workload is what a model draws: [synth.Workload], or [release.Release].
type workload interface {
	Meta() trace.Meta
	Rows() int64
	Reader() trace.Reader[trace.Request]
}

// model reads a model, or fits one to a trace. draw draws from it.
func (f *synthFlags) model(cmd *cobra.Command,
	path string) (draw func(progress func(int64)) (workload, error), err error) {
	in, size, err := cli.OpenInput(cmd, path)
	if errors.Is(err, fs.ErrNotExist) && filepath.Ext(path) == "" {
		return nil, fmt.Errorf("there is neither a file %s nor a built-in workload of that name; there are %s", path,
			strings.Join(datasets.Workloads(), ", "))
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	m, err := synth.ReadModel(in, size)
	var sessions *release.Model
	if errors.Is(err, synth.ErrNotModel) {
		if sessions, err = release.Read(in, size); errors.Is(err, release.ErrNotModel) {
			err = synth.ErrNotModel
		}
	}
	if err == nil && cmd.Flags().Changed("k-swap") {
		return nil, cli.Usagef("--k-swap is used when a model is fitted, and %s is already a model", path)
	}
	switch {
	case err == nil && sessions != nil:
		return func(func(int64)) (workload, error) { return f.sessions(cmd, path, sessions) }, nil
	case errors.Is(err, synth.ErrNotModel):
		t, err := cli.TraceIn(path, in, size)
		if err != nil {
			return nil, err
		}
		defer t.Close()
		best, err := fitJudged(cmd, path, t, f.seed, f.kSwap)
		if err != nil {
			return nil, err
		}
		what := "a workload as long as the trace"
		if f.asLong() {
			what = "the workload"
		}
		f.off = strictly(f.strict, best.Checks, what, &f.wrote.Notes)
		return func(progress func(int64)) (workload, error) {
			if f.asLong() {
				return best.Workload, nil
			}
			return best.Model.Generate(cmd.Context(), f.options(best.Seed, progress))
		}, nil
	case err != nil:
		return nil, cli.InFile(path, err)
	}
	return func(progress func(int64)) (workload, error) {
		w, err := m.Generate(cmd.Context(), f.options(f.seed, progress))
		if err != nil || !f.asLong() {
			return w, err
		}
		checks, err := judgeStated(m, w)
		f.off = strictly(f.strict, checks, "the workload", &f.wrote.Notes)
		return w, err
	}, nil
}

// asLong tells whether the workload is as long as the trace, of as many users.
func (f *synthFlags) asLong() bool {
	return f.requests == 0 && f.duration == 0 && f.users == 1 && f.speed == 1
}

// options are those of generating from a model.
func (f *synthFlags) options(seed uint64, progress func(int64)) synth.Options {
	return synth.Options{Seed: seed, Requests: f.requests, Duration: f.duration, Users: f.users, SharedAbove: f.shared,
		Speed: f.speed, Progress: progress}
}

// sessions draws from a model of sessions: about as many requests as asked for, since
// sessions are whole.
func (f *synthFlags) sessions(cmd *cobra.Command, path string, m *release.Model) (workload, error) {
	if f.strict {
		return nil, cli.Usagef("--strict: %s was made with noise, and what is drawn from it is not measured "+
			"against the trace", path)
	}
	if given := cmd.Flags().Changed; given("duration") || given("users") || given("speed") {
		return nil, cli.Usagef("%s is a model of sessions within a capture window: it takes -n, and no --duration, "+
			"--users or --speed; replay has --speed", path)
	}
	d := release.Drawing{Seed: f.seed}
	w, err := m.Generate(d)
	if f.requests == 0 || err != nil {
		return w, err
	}
	d.Scale = float64(f.requests) / float64(w.Rows())
	return m.Generate(d)
}

// generate writes the workload that a model draws.
func (f *synthFlags) generate(cmd *cobra.Command, draw func(progress func(int64)) (workload, error),
	dst trace.Writer[trace.Request]) (trace.Meta, error) {
	bar := cli.NewProgress(cmd)
	bar.Start("synth", "requests", 0)
	defer bar.End()
	w, err := draw(bar.Set)
	if err != nil {
		return trace.Meta{}, err
	}
	meta := w.Meta()
	if err := f.text.Describe(cmd, &meta, true); err != nil {
		return meta, err
	}
	src := w.Reader()
	if meta.BlockSize == 0 {
		meta.BlockSize, meta.Convention = runs.UnsharedBlock, trace.PartialTail
		src = &synth.Unshared{Src: src, BlockSize: runs.UnsharedBlock}
	}
	bar.Start("write", "requests", w.Rows())
	_, err = trace.Copy(dst, bar.Watch(cmd, src))
	return meta, err
}

// mirrorTrace writes the mirror of t to dst. A trace without blocks gets blocks
// that nothing shares.
func mirrorTrace(t *trace.Trace, seed uint64, dst trace.Writer[trace.Request]) (trace.Meta, error) {
	meta := t.Meta
	rows, err := t.Reader()
	if err != nil {
		return meta, err
	}
	ids, err := synth.Count(rows)
	if err != nil {
		return meta, err
	}
	if rows, err = t.Reader(); err != nil {
		return meta, err
	}
	m := synth.NewMirror(seed, ids)
	src := m.Reader(rows)
	if meta.BlockSize == 0 {
		meta.BlockSize, meta.Convention = runs.UnsharedBlock, trace.PartialTail
		src = &synth.Unshared{Src: src, BlockSize: runs.UnsharedBlock, Next: ids.Blocks}
	}
	_, err = trace.Copy(dst, src)
	return m.Meta(meta), err
}

// openSpec opens a specification, which is a YAML file or the name of a
// built-in workload. It returns nil when the argument is neither.
func openSpec(arg string) (*spec.Spec, error) {
	if ext := strings.ToLower(filepath.Ext(arg)); ext == ".yaml" || ext == ".yml" {
		f, err := objectstore.Open(arg)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, spec.MaxText+1)) // one more is refused
		if err != nil {
			return nil, err
		}
		return spec.Parse(arg, text)
	}
	if _, err := objectstore.Stat(arg); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a file of that name goes first
	}
	text, ok := datasets.Workload(arg)
	if !ok {
		return nil, nil
	}
	return spec.Parse(arg, text)
}

// fromSpec writes the workload of a specification, if it could be read.
func (f *synthFlags) fromSpec(cmd *cobra.Command, s *spec.Spec, err error) error {
	given := cmd.Flags().Changed
	switch {
	case err != nil:
		return err
	case given("users") || given("speed") || given("k-swap"):
		return cli.Usagef("--users, --speed and --k-swap need a trace or a model: a specification has its own rate")
	case f.strict:
		return cli.Usagef("--strict needs a trace or a model: there is nothing that a specification could differ from")
	case given("requests"):
		s.Requests = f.requests
	case given("duration"):
		s.Requests, s.Duration = 0, f.duration
	}
	if f.arrivals != "" {
		s.Arrivals = f.arrivals
	}
	if err := s.Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	return writeTallied(cmd, f.out, &f.wrote, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		rows, err := s.Rows(f.seed)
		if err != nil {
			return trace.Meta{}, err
		}
		meta := s.Meta(f.seed)
		if err := f.text.Describe(cmd, &meta, true); err != nil {
			return meta, err
		}
		_, err = trace.Copy(dst, rows)
		return meta, err
	})
}

// describeSpec prints what a specification sets, and where its values are from: with a
// source first, and all with --details.
func describeSpec(cmd *cobra.Command, s *spec.Spec) error {
	parameters := s.Parameters()
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), struct {
			Name       string           `json:"name"`
			About      string           `json:"about"`
			Parameters []spec.Parameter `json:"parameters"`
		}{s.Name, s.About, parameters})
	}
	o := cli.TextOptions(cmd, "")
	p := textpage.New(o)
	p.LineAtMost(2, "", fmt.Sprintf("%s: %s", s.Name, s.About))
	shown := 0
	for _, one := range parameters {
		if one.Source == "" && len(s.Sources) > 0 && !o.Details {
			continue
		}
		if !o.Details && p.Lines() > textpage.AnswerLines-4 {
			break
		}
		shown++
		p.LineAtMost(o.AtMost(1), "", one.Key+": "+one.Value)
		if one.Source != "" {
			p.LineAtMost(o.AtMost(1), "    ", one.Source)
		}
	}
	if more := len(parameters) - shown; more > 0 {
		p.Line("", fmt.Sprintf("and %s: --details", page.Many(int64(more), "more parameter")))
	}
	_, err := p.WriteTo(cmd.OutOrStdout())
	return err
}
