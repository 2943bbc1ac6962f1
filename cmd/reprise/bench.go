package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/datasets"
	"reprise/replay/bench"
	"reprise/replay/report"
	"reprise/synth/spec"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
	"reprise/trace/textpage"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	out      string
	trial    runs.Trials
	models   []string // NAME=URL or NAME=preset:PRESET
	serve    flags.ServeCmd
	contract flags.Contract
	trust    flags.Trust
	slo      string

	rows     []string
	repeats  int
	load     string
	trace    string
	baseline string
	most     float64 // that a primary metric may be worse than the baseline's
	dry      bool
	list     bool
	show     string
	format   string
}

func benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench SUITE",
		Short: "Run a suite of workloads against one or several servers",
		Long: `Bench runs a suite: rows of a workload, a load and a contract. It prints a
table of all rows and one for each. A suite is built in, or a YAML file; docs/bench.md
has its keys.

The exit code is 4 if a run cannot be trusted, 3 if a contract fails or there is a
regression, and 4 if a contract cannot be judged.` + flags.ListsBegin + `

The target is --url, an engine that --serve-cmd starts, or with --preset an engine in
virtual time. --model NAME=URL, or NAME=preset:PRESET[,flag=value…], adds a column and
may be repeated; without = it is the model to request. A stopped suite continues with the
runs that are missing. --baseline DIR prints what changed since an earlier run of the suite;
it does not test significance. docs/bench.md says more.`,
		Example: `  reprise bench --list
  reprise bench serving --preset rtx5080-llama-3.2-3b -o results
  reprise bench serving --model static=preset:rtx5080-llama-3.2-3b,batching=static --model continuous=preset:rtx5080-llama-3.2-3b -o both
  reprise bench serving --preset rtx5080-llama-3.2-3b --max-num-seqs 16 -o wider --baseline results
  reprise bench load-test --url http://localhost:8000 -o load`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.list || f.show != "" {
				return flags.Wants(0, 0, "")(cmd, args)
			}
			return flags.Wants(1, 1, "which suite? reprise bench --list has them:")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list || slices.Equal(args, []string{"list"}):
				return f.writeList(cmd)
			case f.show != "":
				text, ok := bench.SuiteText(f.show)
				if !ok {
					return cli.Usagef("--show: there is no such suite; there are %s",
						strings.Join(bench.Suites(), ", "))
				}
				_, err := cmd.OutOrStdout().Write(text)
				return err
			}
			return f.run(cmd, args[0])
		},
	}
	f.register(cmd)
	return cmd
}

func (f *benchFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.trial.Register(cmd)
	f.trial.MeasureServers(fl)
	f.trial.Live.Deployment.Register(cmd)
	model := fl.Lookup("model")
	model.Value = &modelValue{model.Value, &f.models}
	model.Usage = "`NAME=URL` or NAME=preset:PRESET[,flag=value…]: a column of that name; may be repeated. Without " +
		"=, the model to ask for"
	f.serve.Register(cmd)
	f.contract.Register(cmd)
	f.trust.Register(cmd)
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	judgement, _ := flags.Sections(fl, flags.JudgementFlags)
	suite, _ := flags.Sections(fl, "Suite")
	running, _ := flags.Sections(fl, flags.RunningFlags)
	results.StringVarP(&f.out, "output", "o", "results", "`directory` for the runs")
	judgement.StringVar(&f.slo, "slo", "",
		"objectives that a request must meet to count as goodput, such as ttft:200ms,tpot:50ms,e2e:5s")
	suite.StringArrayVar(&f.rows, "row", nil, "run only the row of this `name`; repeatable")
	suite.IntVar(&f.repeats, "repeats", 0, "runs of each row, instead of the suite's")
	suite.StringVar(&f.load, "load", "",
		"`load` of each row, instead of the suite's: recorded, sequential, burst, concurrency:8 or a process such "+
			"as poisson:6")
	suite.StringVar(&f.trace, "trace", "", "trace `file` for rows whose workload is \"trace\"")
	suite.StringVar(&f.baseline, "baseline", "", "compare with an earlier run of the suite in this `directory`")
	suite.ShareVar(&f.most, "max-regression", 0,
		"exit with 3 if the primary metric of a row is worse than in --baseline by more than this share")
	running.BoolVar(&f.dry, "dry-run", false, dryRunUsage)
	suite.BoolVar(&f.list, "list", false, "print the built-in suites, and exit")
	suite.StringVar(&f.show, "show", "", "print a built-in `suite` as YAML, and exit")
	results.Bool("json", false, "print JSON")
	flags.Details(fl)
	results.StringVar(&f.format, "format", formatText, "text, markdown or json")
}

const formatMarkdown = "markdown"

// openSuite reads a suite by its file, or a built-in one by its name, with its text.
func openSuite(arg string) (bench.Suite, []byte, error) {
	text, ok := bench.SuiteText(arg)
	if _, err := objectstore.Stat(arg); ok && errors.Is(err, fs.ErrNotExist) {
		s, err := bench.ParseSuite(arg+".yaml", text)
		return s, text, err
	}
	s, err := bench.ReadSuite(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil, cli.Usagef("there is no suite %s: name a YAML file, or one of %s", arg,
			strings.Join(bench.Suites(), ", "))
	case errors.As(err, new(*fs.PathError)):
		return s, nil, err
	case err != nil:
		return s, nil, cli.Exit(cli.Usage, err)
	}
	text, err = objectstore.ReadFile(arg)
	return s, text, err
}

// writeList prints the built-in suites.
func (f *benchFlags) writeList(cmd *cobra.Command) error {
	type listed struct {
		Name  string   `json:"name"`
		About string   `json:"about"`
		Rows  []string `json:"rows"`
	}
	var all []listed
	for _, name := range bench.Suites() {
		s, _, err := openSuite(name)
		if err != nil {
			return err
		}
		one := listed{Name: name, About: s.About}
		for _, row := range s.Rows {
			one.Rows = append(one.Rows, row.Name)
		}
		all = append(all, one)
	}
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), all)
	}
	o := cli.TextOptions(cmd, "Workloads of each, and all it says: --details. As YAML: --show SUITE.")
	p := textpage.New(o)
	for _, s := range all {
		p.LineAtMost(o.AtMost(2), fmt.Sprintf("%-18s", s.Name), s.About)
		if o.Details {
			p.Line(fmt.Sprintf("%18s", ""), "Workloads: "+strings.Join(s.Rows, ", "))
		}
	}
	if !o.Details {
		p.Line("", o.Rest)
	}
	_, err := p.WriteTo(cmd.OutOrStdout())
	return err
}

// writePlan prints the runs that a suite would make.
func (f *benchFlags) writePlan(cmd *cobra.Command, plan []bench.PlannedRun) error {
	o := cli.TextOptions(cmd, "All runs and their directories: --details.")
	t := doc.Table{Head: []string{"run", "load", "", "workload"}}
	if o.Details {
		t.Head = append(t.Head, "directory")
	}
	complete := 0
	for _, r := range plan {
		row := []string{r.Row, r.Load, "", r.Workload, r.Dir}[:len(t.Head)]
		if len(f.models) > 1 {
			row[0] = r.Model + ", " + r.Row
		}
		if r.Complete {
			complete++
			row[2] = "complete"
		}
		t.Rows = append(t.Rows, row)
	}
	p := doc.Document{Title: "Runs", Table: &t, Headline: fmt.Sprintf("Dry run: nothing was sent. %s, %d of them "+
		"complete", doc.Many(int64(len(plan)), "run"), complete)}
	return p.WriteText(cmd.OutOrStdout(), o)
}

func (f *benchFlags) run(cmd *cobra.Command, arg string) error {
	if cli.On(cmd, "json") {
		f.format = formatJSON
	}
	if !slices.Contains([]string{formatText, formatMarkdown, formatJSON}, f.format) {
		return cli.Usagef("--format: want text, markdown or json")
	}
	suite, text, err := openSuite(arg)
	if err != nil {
		return err
	}
	if err := f.change(cmd, &suite); err != nil {
		return err
	}
	specs, err := rowSpecs(cmd, &suite, arg, f.trace)
	if err != nil {
		return err
	}
	r := bench.SuiteRun{Suite: suite, Text: text, Dir: f.out, Trace: f.trace,
		Note: func(s string) { cli.Notef(cmd, "%s", s) },
		Workload: func(_ context.Context, row *bench.Row, seed uint64, path string) error {
			return specs.write(cmd, row, seed, path)
		}}
	if r.Options, err = f.options(); err != nil {
		return err
	}
	if r.Columns, err = f.columns(cmd); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return cli.Usagef("%v", err)
	}
	if !cmd.Flags().Changed("max-regression") {
		f.most = -1
	} else if f.baseline == "" {
		return cli.Usagef("--max-regression needs --baseline DIRECTORY, an earlier run of the suite")
	}
	var before bench.SuiteResult
	if f.baseline != "" {
		e, err := bench.Open(f.baseline)
		if err == nil {
			before, err = e.Table(r.Options) // before hours of work
		}
		if err != nil {
			return fmt.Errorf("--baseline %s: %w", f.baseline, err)
		}
	}
	if f.dry {
		plan, estimate, err := r.Plan(cmd.Context())
		if err != nil {
			return err
		}
		if estimate.Runs > 0 {
			cli.Notef(cmd, "estimate: %s", estimate)
		}
		if f.format == formatJSON {
			return cli.WriteJSON(cmd.OutOrStdout(), plan)
		}
		return f.writePlan(cmd, plan)
	}
	result, err := r.Run(cmd.Context())
	if err != nil {
		if cmd.Context().Err() != nil {
			return errors.New("interrupted: run the same command again to continue with the incomplete runs")
		}
		return err
	}
	if f.baseline != "" {
		result.Against(f.baseline, before, f.most)
	}
	if err := trace.WriteFile(filepath.Join(f.out, "index.html"), trace.TierMode(result.Tier),
		result.Page(f.out).Write); err != nil {
		return err
	}
	if err := f.write(cmd, &result); err != nil {
		return err
	}
	return keptSuite(&result)
}

// keptSuite is the error of runs that cannot be trusted, of a contract that is not met, of a regression, or of a
// contract that cannot be judged: the first of them, in this order.
func keptSuite(r *bench.SuiteResult) error {
	switch {
	case !r.Trustworthy():
		return cli.Exit(cli.Untrusted, errors.New("a run is not trustworthy: the tables say which and why"))
	case r.Broken():
		return cli.Exit(cli.Check, errors.New("a contract is not met: the tables say by how much"))
	case r.Regressed():
		return cli.Exit(cli.Check,
			errors.New("a regression: a row is worse than the baseline by more than --max-regression; the tables say "+
				"by how much"))
	case r.Unjudged():
		return cli.Exit(cli.Untrusted, errors.New("a contract cannot be judged: the tables say why"))
	}
	return nil
}

// change puts what the flags say into the suite.
func (f *benchFlags) change(cmd *cobra.Command, s *bench.Suite) error {
	if cmd.Flags().Changed("repeats") && f.repeats < 1 {
		return cli.Usagef("--repeats: want 1 or more")
	}
	var load *bench.Load
	if f.load != "" {
		l, err := bench.ParseLoad(f.load)
		if err != nil {
			return cli.Usagef("--load: %v", err)
		}
		load = &l
	}
	for _, name := range f.rows {
		if s.Row(name) == nil {
			return cli.Usagef("--row: the suite has no row %s", name)
		}
	}
	var rows []bench.Row
	for _, row := range s.Rows {
		switch {
		case len(f.rows) > 0 && !slices.Contains(f.rows, row.Name):
			continue
		case row.Workload.Trace && f.trace == "" && len(f.rows) == 0:
			cli.Warnf(cmd, "row %s sends a trace and is left out: give --trace FILE", row.Name)
			continue
		}
		if f.repeats > 0 {
			row.Repeats = f.repeats
		}
		if load != nil {
			row.Load = *load
		}
		rows = append(rows, row)
	}
	if s.Rows = rows; len(rows) == 0 {
		return cli.Usagef("no row is left to run")
	}
	return nil
}

// options say how runs are judged.
func (f *benchFlags) options() (o report.Options, err error) {
	o.Limits = f.trust.Limits
	if f.slo != "" {
		if o.SLO, err = report.ParseSLO(f.slo); err != nil {
			return o, cli.Usagef("--slo: %v", err)
		}
	}
	c, err := f.contract.Read()
	if err != nil {
		return o, err
	}
	if c != nil {
		o.Contract = c
	}
	if err = o.Check(); err != nil {
		err = cli.Usagef("%v", err)
	}
	return o, err
}

func (f *benchFlags) write(cmd *cobra.Command, r *bench.SuiteResult) error {
	return writeSuite(cmd, cmd.OutOrStdout(), r, f.format, "Page: "+filepath.Join(f.out, "index.html")+".")
}

// writeSuite writes the table of several runs.
func writeSuite(cmd *cobra.Command, w io.Writer, r *bench.SuiteResult, format, page string) error {
	switch format {
	case formatJSON:
		return cli.WriteJSON(w, r)
	case formatMarkdown:
		return r.Page("").WriteMarkdown(w)
	}
	return r.WriteText(w, cli.TextOptions(cmd, "A table of each workload: --details. "+page))
}

// suiteSpecs are the specifications of a suite's workloads, by row.
type suiteSpecs map[string]*spec.Spec

// rowSpecs reads the specification of every row that has one, and looks whether the
// others, and --trace, name traces, before anything runs.
func rowSpecs(cmd *cobra.Command, s *bench.Suite, suite, given string) (suiteSpecs, error) {
	out := suiteSpecs{}
	for i := range s.Rows {
		row := &s.Rows[i]
		var one *spec.Spec // stays nil where the row names a trace
		var err error
		switch w := row.Workload; {
		case w.Spec != "":
			one, err = spec.Parse(suite, []byte(w.Spec))
		case w.Name != "":
			text, ok := datasets.Workload(w.Name)
			if !ok {
				return nil, cli.Usagef("%s, row %s: there is no workload %s; reprise synth --help-all lists them",
					suite, row.Name, w.Name)
			}
			one, err = spec.Parse(w.Name, text)
		case w.File != "":
			one, err = openSpec(w.File)
		}
		path := row.Workload.File
		if row.Workload.Trace {
			path = given
		}
		if one == nil && err == nil && path != "" { // a trace, which is opened now, and not after hours of other rows
			var t *trace.Trace
			if t, err = cli.OpenTrace(cmd, path); err == nil {
				err = t.Close()
			}
		}
		if err != nil {
			return nil, cli.Exit(cli.Usage, err)
		}
		if one == nil {
			continue
		}
		// The workload that the row names goes before the specification's.
		switch {
		case row.Requests > 0:
			one.Requests, one.Duration = row.Requests, 0
		case row.Duration > 0 && row.Load == (bench.Load{Speed: row.Load.Speed}):
			one.Requests, one.Duration = 0, row.Duration
		}
		if row.Input != "" {
			one.Lengths.Input, one.Lengths.Own = row.Input, ""
		}
		if row.Output != "" {
			one.Lengths.Output = row.Output
			if one.Lengths.MaxTokens != "" {
				one.Lengths.MaxTokens = row.Output
			}
		}
		if err := one.Check(); err != nil {
			return nil, cli.Usagef("%s, row %s: %w", suite, row.Name, err)
		}
		out[row.Name] = one
	}
	return out, nil
}

// write makes the workload of a row. Its prompts are in English.
func (specs suiteSpecs) write(cmd *cobra.Command, row *bench.Row, seed uint64, path string) error {
	s := specs[row.Name]
	return trace.Create(path, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		return writeSpec(cmd, s, seed, &flags.PromptText{Text: trace.TextWords}, dst)
	})
}
