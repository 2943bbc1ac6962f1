package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/contract"
	"reprise/replay/peer"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// judgeFlags say how results are summarised and judged, for report and replay.
type judgeFlags struct {
	definitions string
	steadyShare float64
	format      string // of report alone; "" is text
	out         string
	vllm        vllmResult
	asJSON      bool
	explain     string // of report alone
	why         string // of --format decision
	push        pushFlags
	html        string
	plots       string
	names       []string // of several results files, of report alone
	slo         string
	block       int
	trust       flags.Trust
	contractFlags
}

func (f *judgeFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.asJSON, "json", false, "print the summary as JSON")
	f.registerPages(fl)
	fl.StringVar(&f.slo, "slo", "", "what goodput asks of each request, such as ttft:200ms,tpot:50ms,e2e:5s")
	f.trust.Register(cmd)
	f.contractFlags.register(cmd)
	fl.StringVar(&f.definitions, "definitions", ownDefinitions, "whose definitions the figures have: "+ownDefinitions+", "+strings.Join(peer.Presets(), ", "))
	fl.Float64Var(&f.steadyShare, "steady-share", report.DefaultSteadyShare, "share of the peak of requests in flight from which the run counts as steady; 0 does not look for it")
	f.vllm.register(cmd)
}

// registerPages registers what asks for files beside the report.
func (f *judgeFlags) registerPages(fl *pflag.FlagSet) {
	fl.StringVar(&f.html, "html", "", "self-contained page to write")
	fl.StringVar(&f.plots, "plots", "", "directory to write each plot of the page to, as SVG and as CSV")
}

const ownDefinitions = "reprise"

// check refuses flags before anything is sent or read. A document of vLLM's is
// written when the flag says so that how names.
func (f *judgeFlags) check(document bool, how string) error {
	if f.definitions != ownDefinitions && !slices.Contains(peer.Presets(), f.definitions) {
		return cli.Usagef("--definitions: want %s or one of %s", ownDefinitions, strings.Join(peer.Presets(), ", "))
	}
	if !(f.steadyShare >= 0 && f.steadyShare <= 1) {
		return cli.Usagef("--steady-share: want a share from 0 to 1")
	}
	if err := f.checkFormat(); err != nil {
		return err
	}
	if _, err := f.push.pusher(); err != nil {
		return err
	}
	if err := f.vllm.check(document, how); err != nil {
		return err
	}
	_, err := f.options()
	return err
}

// defaults sets every flag to its default, for a caller that is no command line.
func (f *judgeFlags) defaults() { f.register(new(cobra.Command)) }

func reportCommand() *cobra.Command {
	var f judgeFlags
	cmd := &cobra.Command{
		Use:   "report RESULTS...",
		Short: "Say what a replay measured, and whether it can be trusted",
		Long: `Report reads the results of a replay, or the journal of one that is still
running or was killed, and prints a verdict and every metric, each from when a
request was sent and from when it was due. With --definitions it says what another
tool would have said of the same recording; with --format vllm it writes the JSON
that vllm bench serve --save-result writes. What was measured at the servers is in
a file beside the results (r.metrics.parquet for r.parquet); when it is there, it
is part of the report.

With --explain it says what a number means. With --format decision it writes the
record of a tuning from several results: settings, figures and cost of each, and
which the contract accepts; the exit code is then that of a report where none is
accepted.

Several results files become one report, with a column for each run, their plots
over each other, and what each gives of its hardware against what a user gets. It
shows the figures as they are: whether a difference is more than noise, it does
not say.

A directory stands for the one results file in it, such as demo or a row of bench.

With --contract each run has to keep to clauses such as p95 ttft <= 1s.

The exit code is 4 when a run cannot be trusted, or the contract not be judged,
and 3 when the contract does not hold.`,
		Example: `  reprise report r.parquet --slo ttft:500ms,tpot:50ms --html r.html
  reprise report r.parquet r.parquet --name before,after --html both.html --plots plots
  reprise report r.parquet --contract contract.yaml
  reprise report r.parquet --definitions aiperf
  reprise report r.parquet --format vllm -o vllm.json
  reprise report r.parquet --explain p99_ttft
  reprise report r.parquet --format decision --slo ttft:500ms -o decision.md`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.explain != "" {
				return cobra.MaximumNArgs(1)(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.contractFlags.alone = f.format == formatDecision
			if err := f.check(f.format == formatVLLM, "--format vllm"); err != nil {
				return err
			}
			args, err := resultsNamed(args)
			if err != nil {
				return err
			}
			if err := cli.KeepInputs(args, f.out, f.html); err != nil {
				return err
			}
			if f.explain != "" {
				return f.explained(cmd, args)
			}
			if f.format == formatDecision {
				return f.decided(cmd, args)
			}
			if err := f.checkRuns(len(args)); err != nil {
				return err
			}
			if len(args) > 1 || len(f.names) > 0 {
				return f.reportRuns(cmd, args)
			}
			return f.report(cmd, args[0])
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.format, "format", "", strings.Join(formatNames(), ", ")+"; empty is text")
	f.push.register(cmd)
	cmd.Flags().StringVar(&f.why, "why", "", "why the tuning stopped, `text` for --format decision")
	cmd.Flags().StringVar(&f.explain, "explain", "", "say what a `number` means, such as p99_ttft, goodput or a path in the JSON, and with results what it is in them; list lists them all")
	cmd.Flags().StringSliceVar(&f.names, "name", nil, "names of the runs, one for each results file; otherwise those of the files")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "file to write; empty is stdout")
	cmd.Flags().IntVar(&f.block, "server-block-size", 0, "tokens in a block of the endpoint's prefix cache; 0 takes the replay's")
	return cmd
}

// report prints the summary of a results file, writes its page, and fails with
// exit code 4 when the run cannot be trusted, or 3 when it does not keep to its
// contract.
func (f *judgeFlags) report(cmd *cobra.Command, path string) error {
	s, err := f.summarise(cmd, path, 0, 1)
	if err != nil {
		return err
	}
	if err := f.writePages(cmd, report.Named{Summary: s}); err != nil {
		return err
	}
	if err := f.write(cmd, path, s); err != nil {
		return err
	}
	if err := f.pushed(cmd, s); err != nil {
		return err
	}
	return kept(s)
}

// write writes the report in its format, and the document of vLLM that a replay
// saves.
func (f *judgeFlags) write(cmd *cobra.Command, path string, s report.Summary) error {
	results, err := result.Open(path)
	if err != nil {
		return err
	}
	defer results.Close()
	err = cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
		if f.format == formatVLLM {
			if err := f.vllm.write(w, results); err != nil {
				return err
			}
			_, err := io.WriteString(w, "\n")
			return err
		}
		return f.writeSummary(w, s)
	})
	if tier := trace.TierNote("file", s.Run.Tier); tier != "" && (f.format == formatVLLM || f.format == formatCSV || f.vllm.saves()) {
		cli.Notef(cmd, "note: %s Neither vLLM's JSON nor CSV has a place to say so.", tier)
	}
	if err != nil || !f.vllm.saves() {
		return err
	}
	name, err := f.vllm.store(results)
	if err == nil {
		cli.Notef(cmd, "vLLM's JSON: %s", name)
	}
	return err
}

// pushed pushes the summary where the flags say.
func (f *judgeFlags) pushed(cmd *cobra.Command, s report.Summary) error {
	p, err := f.push.pusher()
	if err != nil || p == nil {
		return err
	}
	if err := p.Push(cmd.Context(), s); err != nil {
		return fmt.Errorf("--push: %w", err)
	}
	cli.Notef(cmd, "pushed to the gateway")
	return nil
}

// options are what the flags ask for; replay checks them before it sends.
func (f *judgeFlags) options() (report.Options, error) {
	o := report.Options{ServerBlock: f.block, Limits: f.trust.Limits}
	var err error
	if f.slo == "" {
		if o.SLO, err = peer.ParseGoodput(f.vllm.goodput); err != nil {
			return o, cli.Usagef("--goodput: %v", err)
		}
	} else if o.SLO, err = report.ParseSLO(f.slo); err != nil {
		return o, cli.Usagef("--slo: %v", err)
	}
	c, err := f.contract()
	if err != nil || c == nil {
		return o, err
	}
	o.Contract = c
	if err := o.Check(); err != nil {
		return o, cli.Usagef("%s: %v", f.path, err)
	}
	return o, nil
}

// summarise reads results file i of n.
func (f *judgeFlags) summarise(cmd *cobra.Command, path string, i, n int) (report.Summary, error) {
	o, err := f.options()
	if err != nil {
		return report.Summary{}, err
	}
	if err := f.setGPUs(&o, i, n); err != nil {
		return report.Summary{}, err
	}
	results, err := result.Open(path)
	if err != nil {
		return report.Summary{}, err
	}
	defer results.Close()
	metrics, err := openMetrics(cmd, path, results.Run.Started)
	if err != nil {
		return report.Summary{}, err
	}
	if metrics != nil {
		defer metrics.Close()
		o.Metrics = metrics.Reader
	}
	s, err := report.Summarise(results.Run, results.Reader(), o)
	if err == nil && f.steadyShare > 0 {
		var steady report.Steady
		steady, err = report.FindSteady(results.Run, results.Reader, f.steadyShare, o)
		s.Steady = &steady
	}
	if err == nil && f.definitions != ownDefinitions {
		var figures report.Peer
		figures, err = peer.Under(f.definitions, results.Run, results.Reader, o)
		s.Peer = &figures
	}
	return s, err
}

// openMetrics opens what was measured at the servers during the run that started
// then, nil when nothing was. A file of the same name that an earlier run left is
// not taken for it.
func openMetrics(cmd *cobra.Command, results, started string) (*result.MetricsFile, error) {
	m, err := result.OpenMetrics(results)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Started != started {
		cli.Notef(cmd, "%s is of another run, and left out", result.MetricsName(results))
		return nil, m.Close()
	}
	return m, nil
}

// untrusted is the error of a run that cannot be trusted.
func untrusted(v report.Verdict) error {
	if v.Trustworthy {
		return nil
	}
	return cli.Exit(cli.Untrusted, errors.New("the run is not trustworthy; the report says why"))
}

// contractFlags say what a run has to keep to.
type contractFlags struct {
	path  string
	gpus  []int
	price float64
	alone bool               // GPUs and price have a meaning without a contract
	read  *contract.Contract // once, before anything is sent
}

func (f *contractFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.path, "contract", "", "contract that the run has to keep to, YAML with clauses such as p95 ttft <= 1s; the exit code is 3 when it does not")
	fl.IntSliceVar(&f.gpus, "gpus", nil, "GPUs that served the run, for output per GPU and a contract about cost; for several results files one number for all, or one for each; otherwise the contract's, or output is per instance")
	fl.Float64Var(&f.price, "price-per-gpu-hour", 0, "price of a GPU for an hour, for the same; 0 takes the contract's")
}

// contract is what the flags name, nil when they name none.
func (f *contractFlags) contract() (*contract.Contract, error) {
	switch {
	case !(f.price >= 0):
		return nil, cli.Usagef("--price-per-gpu-hour: want a number above zero")
	case f.path == "" && !f.alone && f.price > 0:
		return nil, cli.Usagef("--price-per-gpu-hour is what a contract computes cost from: give --contract FILE")
	case f.path == "" || f.read != nil:
		return f.read, nil
	}
	c, err := contract.Read(f.path)
	if errors.As(err, new(*fs.PathError)) {
		return nil, err
	}
	if err != nil {
		return nil, cli.Exit(cli.Usage, err)
	}
	if len(f.gpus) > 0 {
		c.GPUs = f.gpus[0]
	}
	if f.price > 0 {
		c.PricePerGPUHour = f.price
	}
	f.read = &c
	return f.read, nil
}

// kept is the error of a run that cannot be trusted, of a contract that cannot be
// judged, or of one that does not hold: the first of them, in this order.
func kept(s report.Summary) error {
	err := untrusted(s.Verdict)
	c := s.Contract
	switch {
	case c == nil || err == nil && c.Holds:
		return err
	case err != nil && c.Fails():
		return cli.Exit(cli.Untrusted, errors.New(err.Error()+"; "+c.String()))
	case err != nil:
		return err
	case !c.Judged:
		return cli.Exit(cli.Untrusted, errors.New(c.String()))
	}
	return cli.Exit(cli.Check, errors.New(c.String()))
}

// runNames are the names of several runs: given, or those of their files. No two
// are the same, since a legend would not tell them apart.
func runNames(paths, given []string) ([]string, error) {
	if len(given) > 0 && len(given) != len(paths) {
		return nil, cli.Usagef("--name has %d names for %d results files", len(given), len(paths))
	}
	names := make([]string, len(paths))
	seen := map[string]int{}
	for i, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".parquet")
		if len(given) > 0 {
			if name = strings.TrimSpace(given[i]); name == "" {
				return nil, cli.Usagef("--name: name %d is empty", i+1)
			}
		}
		if seen[name]++; seen[name] > 1 {
			if len(given) > 0 {
				return nil, cli.Usagef("--name: %q is given twice", name)
			}
			name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
		names[i] = name
	}
	return names, nil
}

// gpusOf is how many GPUs the servers of run i of n had, 0 when that was not said.
func (f *judgeFlags) gpusOf(i, n int) (int, error) {
	for _, g := range f.gpus {
		if g < 1 {
			return 0, cli.Usagef("--gpus: want a number above zero, or one for each results file")
		}
	}
	switch len(f.gpus) {
	case 0:
		return 0, nil
	case 1:
		return f.gpus[0], nil
	case n:
		return f.gpus[i], nil
	}
	return 0, cli.Usagef("--gpus has %d numbers for %d results files", len(f.gpus), n)
}

// setGPUs says how many GPUs run i of n had, to the contract as well. What the flags
// do not say, the contract may.
func (f *judgeFlags) setGPUs(o *report.Options, i, n int) (err error) {
	given := contract.Of(*o)
	if o.GPUs, err = f.gpusOf(i, n); err != nil || given == nil {
		return err
	}
	if o.GPUs == 0 {
		o.GPUs = given.GPUs
		return nil
	}
	c := *given
	c.GPUs = o.GPUs
	o.Contract = &c
	return nil
}

// checkRuns refuses what makes no sense of several runs.
func (f *judgeFlags) checkRuns(n int) error {
	if _, err := f.gpusOf(0, n); err != nil || n == 1 {
		return err
	}
	switch {
	case f.definitions != ownDefinitions:
		return cli.Usagef("--definitions is of one results file: it has no table of several runs")
	case !slices.Contains([]string{"", formatText, formatJSON}, f.format):
		return cli.Usagef("--format %s is of one results file", f.format)
	case f.push.url != "":
		return cli.Usagef("--push is of one results file")
	}
	return nil
}

// reportRuns reports several runs as one.
func (f *judgeFlags) reportRuns(cmd *cobra.Command, paths []string) error {
	names, err := runNames(paths, f.names)
	if err != nil {
		return err
	}
	var runs []report.Named
	var worst error
	for i, path := range paths {
		s, err := f.summarise(cmd, path, i, len(paths))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := kept(s); err != nil && (worst == nil || exitCode(err) > exitCode(worst)) {
			worst = fmt.Errorf("%s: %w", names[i], err) // 4 goes before 3
		}
		runs = append(runs, report.Named{Name: names[i], Summary: s})
	}
	if err := f.writePages(cmd, runs...); err != nil {
		return err
	}
	err = cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
		if f.asJSON || f.format == formatJSON {
			return report.WriteJSONRuns(w, runs)
		}
		return report.WriteTextRuns(w, runs)
	})
	if err != nil {
		return err
	}
	return worst
}

func exitCode(err error) int {
	var exit *cli.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return cli.Failure
}

// writePages writes the page of one or several runs, and its plots as files of
// their own, as far as they are asked for.
func (f *judgeFlags) writePages(cmd *cobra.Command, runs ...report.Named) error {
	if f.html == "" && f.plots == "" {
		return nil
	}
	p := report.Overlay(runs)
	if f.html != "" {
		if err := trace.WriteFile(f.html, 0o644, p.Write); err != nil {
			return err
		}
	}
	if f.plots == "" {
		return nil
	}
	n, err := writePlots(f.plots, p)
	if err != nil {
		return err
	}
	cli.Notef(cmd, "%d plots, as SVG and CSV: %s", n, f.plots)
	for _, r := range runs {
		if tier := trace.TierNote("directory of plots", r.Run.Tier); tier != "" {
			cli.Notef(cmd, "note: %s Images and CSV have no place to say so.", tier)
			break
		}
	}
	return nil
}

// listNames is the value of --explain that lists all names.
const listNames = "list"

// explain says what the number that --explain names means, and with results what it
// is in them. As in any report, the exit code is 4 where those cannot be trusted.
func (f *judgeFlags) explained(cmd *cobra.Command, results []string) error {
	if f.format != "" || f.html != "" || f.push.url != "" {
		return cli.Usagef("--explain is no report, and takes --json and -o of what says how one is written")
	}
	if f.explain == listNames {
		return cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
			if f.asJSON {
				return cli.WriteJSON(w, report.Definitions())
			}
			return report.WriteNames(w)
		})
	}
	e, err := report.Explain(f.explain)
	if err != nil {
		return cli.Usagef("--explain: %v. --explain list has them all", err)
	}
	var doubt error
	for _, path := range results {
		s, err := f.summarise(cmd, path, 0, 1)
		if err != nil {
			return err
		}
		if err := e.Measure(s); err != nil {
			return err
		}
		doubt = untrusted(s.Verdict)
	}
	if doubt != nil {
		doubt = cli.Exit(cli.Untrusted, errors.New("the run is not trustworthy, and so is this number; the report says why"))
	}
	err = cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
		if f.asJSON {
			return cli.WriteJSON(w, e)
		}
		return report.WriteExplanation(w, e)
	})
	if err != nil {
		return err
	}
	return doubt
}

// resultsNamed replaces a directory by the results file in it. One that has none, or
// several, is refused with what to name instead: which of them belong together the
// directory does not say.
func resultsNamed(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = path
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue // what cannot be read is said when it is opened
		}
		found, err := resultsIn(path)
		if err != nil {
			return nil, err
		}
		if len(found) != 1 {
			return nil, cli.Usagef("%s", severalResults(path, found))
		}
		out[i] = found[0]
	}
	return out, nil
}

// resultsIn finds the results files in a directory and those below it, in order.
func resultsIn(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		if f, err := result.Open(path); err == nil { // other Parquet is no concern of a report
			found = append(found, path)
			return f.Close()
		}
		return nil
	})
	return found, err
}

// severalResults says what to name of a directory.
func severalResults(dir string, found []string) string {
	if len(found) == 0 {
		return dir + " is a directory without results: name the file that replay or simulate wrote with -o"
	}
	out := fmt.Sprintf("%s is a directory with %d results files: name one, or several to be set side by side, such as %s",
		dir, len(found), strings.Join(found[:2], " "))
	if _, err := os.Stat(filepath.Join(dir, roundsName)); err == nil {
		out += fmt.Sprintf(`; "reprise compare %s" says whether the two sides differ`, dir)
	}
	return out
}
