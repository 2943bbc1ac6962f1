package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/peer"
	"reprise/replay/peerfile"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
	"reprise/trace/textpage"
)

// reportFlags are the flags of report. Replay and simulate report with those of
// judging alone.
type reportFlags struct {
	flags.Judge
	format  string // "" is text
	out     string
	explain string
	why     string   // of --format decision
	names   []string // of several results files
}

func reportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report RESULTS...",
		Short: "Print what a replay measured, and whether it can be trusted",
		Long: `Report reads the results of a replay, or the journal of one that is still running or was
killed. It prints whether the run can be trusted, and every metric, from when a request
was sent and from when it was due. Server metrics beside the results (r.metrics.parquet
for r.parquet) are included. A directory stands for the one results file in it.

--definitions computes the metrics as another tool does, and --format vllm writes the
JSON of vllm bench serve --save-result. --explain defines a metric. --format decision
writes the record of a tuning from several results: settings, figures and cost of each,
and which of them the contract accepts.

Results of vLLM bench serve (--save-detailed), SGLang, AIPerf (profile_export.jsonl),
GuideLLM and inference-perf are read as well, and the report says what they lack. Of a
file with several runs, FILE#2 is the second.

Several results files become one report, with a column for each run. It does not test
whether differences are significant: reprise compare does.

The exit code is 4 if a run cannot be trusted, 3 if a clause of the --contract fails,
and 4 if none fails and one cannot be judged.`,
		Example: `  reprise report r.parquet --slo ttft:500ms,tpot:50ms --html r.html
  reprise report r.parquet r.parquet --name before,after --html both.html
  reprise report r.parquet --contract contract.yaml
  reprise report r.parquet --definitions aiperf
  reprise report r.parquet --format vllm -o vllm.json
  reprise report r.parquet --explain p99_ttft
  reprise report r.parquet --format decision --slo ttft:500ms -o decision.md`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.explain != "" {
				return flags.Wants(0, 1, "")(cmd, args)
			}
			return flags.Wants(1, math.MaxInt, "which results?")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd, args)
		},
	}
	f.Register(cmd)
	results, resultsRest := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	_, cachesRest := flags.Sections(cmd.Flags(), flags.CachesFlags)
	results.StringVar(&f.format, "format", "", strings.Join(formatNames(), ", ")+"; by default text")
	resultsRest.StringVar(&f.why, "why", "",
		"rationale in --format decision: `text` that says why this setting was chosen")
	results.StringVar(&f.explain, "explain", "",
		"explain a `metric`, such as p99_ttft, goodput or a path in the JSON; with results, give its value. "+
			"list prints all")
	resultsRest.StringSliceVar(&f.names, "name", nil,
		"names of the runs, one for each results file; by default the file names")
	results.OutputVar(&f.out, "`file` to write; by default stdout")
	cachesRest.IntVar(&f.ServerBlock, "server-block-size", 0,
		"block size of the endpoint's prefix cache in tokens; 0 uses the replay's")
	return cmd
}

// check refuses flags that go against each other, and chooses a format by the ending of --output.
func (f *reportFlags) check() error {
	if f.format == "" && !f.AsJSON && f.explain == "" {
		f.format = formatEndings[strings.ToLower(filepath.Ext(f.out))]
		if f.HTML == "" && strings.EqualFold(filepath.Ext(f.out), ".html") {
			f.HTML, f.out = f.out, ""
		}
	}

	decision := f.format == formatDecision
	f.Contract.Alone = decision
	switch {
	case f.AsJSON && f.format != "" && f.format != formatJSON:
		return cli.Usagef("--json and --format cannot be used together")
	case f.format != "" && !slices.Contains(formatNames(), f.format):
		return cli.Usagef("--format: want one of %s", strings.Join(formatNames(), ", "))
	case !decision && f.why != "":
		return cli.Usagef("--why is for --format %s", formatDecision)
	case decision && f.Definitions != flags.OwnDefinitions:
		return cli.Usagef("--format %s writes one record of several runs, and takes no --definitions", formatDecision)
	}

	return f.Check(f.format == formatVLLM, "--format vllm")
}

// run reports on results files, or on a directory of several runs.
func (f *reportFlags) run(cmd *cobra.Command, args []string) error {
	several, err := severalRuns(args)
	if err != nil {
		return err
	}
	if several != nil {
		return f.reportExperiment(cmd, several)
	}
	if args, err = resultsNamed(cmd, args); err != nil {
		return err
	}

	if err := cli.KeepInputs(args, f.out, f.HTML); err != nil {
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
}

// report prints the summary of a results file, writes its page, and fails with
// exit code 4 when the run cannot be trusted, or 3 when it does not keep to its
// contract.
func (f *reportFlags) report(cmd *cobra.Command, path string) error {
	s, err := f.summarise(cmd, path, 0, 1)
	if err != nil {
		return err
	}
	if err := f.writePage(report.Named{Summary: s}); err != nil {
		return err
	}
	if err := f.write(cmd, path, s); err != nil {
		return err
	}
	return kept(s)
}

// write writes the report in its format, and the document of vLLM that a replay
// saves.
func (f *reportFlags) write(cmd *cobra.Command, path string, s report.Summary) error {
	results, err := cli.OpenResults(path)
	if err != nil {
		return err
	}
	defer results.Close()
	err = cli.WriteOutputMode(cmd, f.out, trace.TierMode(s.Run.Tier), func(w io.Writer) error {
		if f.format == formatVLLM {
			if err := f.VLLM.Write(w, results); err != nil {
				return err
			}
			_, err := io.WriteString(w, "\n")
			return err
		}
		name := f.format
		if f.AsJSON {
			name = formatJSON
		}
		for _, format := range summaryFormats {
			if format.name == name {
				return format.write(w, s)
			}
		}
		o := cli.TextOptions(cmd, f.rest(path))
		if cmd.Name() == "replay" { // which said before what the endpoint is
			o.Lines = textpage.AnswerLines - 3
		}
		return report.Page(s).WriteText(w, o)
	})
	if tier := trace.TierNote("file", s.Run.Tier); tier != "" &&
		(f.format == formatVLLM || f.format == formatCSV || f.VLLM.Saves()) {
		cli.Warnf(cmd, "note: %s Neither vLLM's JSON nor CSV has a place to say so.", tier)
	}
	if err != nil || !f.VLLM.Saves() {
		return err
	}
	name, err := f.VLLM.Store(results)
	if err == nil {
		cli.Notef(cmd, "vLLM's JSON: %s", name)
	}
	return err
}

// rest says where more than the answer is.
func (f *reportFlags) rest(path string) string {
	if f.HTML != "" {
		return fmt.Sprintf("Page: %s. All tables: reprise report %s --details.", f.HTML, path)
	}
	return fmt.Sprintf("All tables: reprise report %s --details (page: --html FILE)", path)
}

// summarise reads results file i of n.
func (f *reportFlags) summarise(cmd *cobra.Command, path string, i, n int) (report.Summary, error) {
	o, err := f.Options()
	if err != nil {
		return report.Summary{}, err
	}
	if err := f.SetGPUs(&o, i, n); err != nil {
		return report.Summary{}, err
	}
	results, err := cli.OpenResults(path)
	if err != nil {
		return report.Summary{}, err
	}
	defer results.Close()
	metrics, err := result.OpenMetrics(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // nothing was measured at the servers
	case err != nil:
		return report.Summary{}, err
	default:
		defer metrics.Close()
		if metrics.Started == results.Run.Started {
			o.Metrics = metrics.Reader
		} else { // a file of the same name that an earlier run left
			cli.Warnf(cmd, "%s is of another run, and left out", result.MetricsName(path))
		}
	}
	var s report.Summary
	if f.NoSteady {
		if err := o.AddSteady(results.Run, results.Reader); err != nil {
			return report.Summary{}, err
		}
		s, err = report.Summarise(results.Run, results.Reader(), o)
	} else {
		s, err = report.SummariseSteady(results.Run, results.Reader, o)
	}
	if err == nil && f.Definitions != flags.OwnDefinitions {
		var figures report.Peer
		figures, err = peer.Under(f.Definitions, results.Run, results.Reader, o)
		s.Peer = &figures
	}
	return s, err
}

// untrusted is the error of a run that cannot be trusted.
func untrusted(v report.Verdict) error {
	if v.Trustworthy {
		return nil
	}
	return cli.Exit(cli.Untrusted, errors.New("the run is not trustworthy; the report says why"))
}

// kept is the error of a run that cannot be trusted, of a contract that is not met, or of
// one that cannot be judged: the first of them, in this order. A clause that fails is
// sure, whatever becomes of the others.
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
	case c.Fails():
		return cli.Exit(cli.Check, errors.New(c.String()))
	}
	return cli.Exit(cli.Untrusted, errors.New(c.String()))
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
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), result.JournalName("")), ".parquet")
		if dir := filepath.Base(filepath.Dir(path)); name == "results" && dir != "." {
			name = dir // as trials of several runs are kept
		}
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

// checkRuns refuses what makes no sense of several runs.
func (f *reportFlags) checkRuns(n int) error {
	if _, err := f.GPUsOf(0, n); err != nil || n == 1 {
		return err
	}
	switch {
	case f.Definitions != flags.OwnDefinitions:
		return cli.Usagef("--definitions takes one results file")
	case !slices.Contains([]string{"", formatText, formatJSON}, f.format):
		return cli.Usagef("--format %s takes one results file", f.format)
	}
	return nil
}

// reportRuns reports several runs as one.
func (f *reportFlags) reportRuns(cmd *cobra.Command, paths []string) error {
	names, err := runNames(paths, f.names)
	if err != nil {
		return err
	}
	var runs []report.Named
	var untrusted, unmet, unjudged error // of the first run each
	for i, path := range paths {
		s, err := f.summarise(cmd, path, i, len(paths))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := kept(s); err != nil {
			first := &unjudged
			if !s.Verdict.Trustworthy {
				first = &untrusted
			} else if s.Contract.Fails() {
				first = &unmet
			}
			*first = cmp.Or(*first, fmt.Errorf("%s: %w", names[i], err))
		}
		runs = append(runs, report.Named{Name: names[i], Summary: s})
	}
	if err := f.writePage(runs...); err != nil {
		return err
	}
	err = cli.WriteOutputMode(cmd, f.out, trace.TierMode(report.Tier(runs)), func(w io.Writer) error {
		if f.AsJSON || f.format == formatJSON {
			return cli.WriteJSON(w, runs)
		}
		return report.Overlay(runs).WriteText(w,
			cli.TextOptions(cmd, "All figures: --details. Page with plots: --html FILE."))
	})
	if err != nil {
		return err
	}
	return cmp.Or(untrusted, unmet, unjudged)
}

// writePage writes the page of one or several runs, if it is asked for.
func (f *reportFlags) writePage(runs ...report.Named) error {
	if f.HTML == "" {
		return nil
	}
	return trace.WriteFile(f.HTML, trace.TierMode(report.Tier(runs)), report.Overlay(runs).Write)
}

// severalRuns opens the directory that the one argument names. It is nil for a file and for a single run.
func severalRuns(args []string) (*bench.Experiment, error) {
	if len(args) != 1 {
		return nil, nil
	}
	if info, err := objectstore.Stat(args[0]); err != nil || !info.IsDir() {
		return nil, nil
	}
	e, err := bench.Open(args[0])
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(e.Trials) < 2 {
		return nil, nil
	}
	return &e, err
}

// reportExperiment prints the runs of a directory: a row for each workload and load, a column for each server.
func (f *reportFlags) reportExperiment(cmd *cobra.Command, e *bench.Experiment) error {
	format := f.format
	if f.AsJSON {
		format = formatJSON
	}
	switch {
	case !slices.Contains([]string{"", formatText, formatJSON, formatMarkdown}, format):
		return cli.Usagef("--format %s takes one results file", format)
	case f.explain != "" || len(f.names) > 0 || f.Definitions != flags.OwnDefinitions:
		return cli.Usagef("a directory of several runs takes no --explain, --name or --definitions: name one " +
			"results file in it")
	}
	f.Trust.Keep(*e)
	o, err := f.Options()
	if err != nil {
		return err
	}
	r, err := e.Table(o)
	if err != nil {
		return err
	}
	if f.HTML != "" {
		if err := trace.WriteFile(f.HTML, trace.TierMode(r.Tier), r.Page("").Write); err != nil {
			return err
		}
	}
	err = cli.WriteOutputMode(cmd, f.out, trace.TierMode(r.Tier), func(w io.Writer) error {
		return writeSuite(cmd, w, &r, format, "Page: --html FILE.")
	})
	if err != nil {
		return err
	}
	return keptSuite(&r)
}

// listNames is the value of --explain that lists all names.
const listNames = "list"

// explain says what the number that --explain names means, and with results what it
// is in them. As in any report, the exit code is 4 where those cannot be trusted.
func (f *reportFlags) explained(cmd *cobra.Command, results []string) error {
	if f.format != "" || f.HTML != "" {
		return cli.Usagef("--explain takes --json and -o, but no other flags of a report's output")
	}
	if f.explain == listNames {
		return cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
			if f.AsJSON {
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
		doubt = cli.Exit(cli.Untrusted,
			errors.New("the run is not trustworthy, so neither is this number; the report says why"))
	}
	err = cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
		if f.AsJSON {
			return cli.WriteJSON(w, e)
		}
		return report.WriteExplanation(w, e, cli.TextOptions(cmd, ""))
	})
	if err != nil {
		return err
	}
	return doubt
}

// resultsNamed replaces a directory by the results file in it, and results that a run did
// not finish by its journal. A directory that has none, or several, is refused with what
// to name instead: which of them belong together the directory does not say.
func resultsNamed(cmd *cobra.Command, paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = path
		info, err := objectstore.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			if out[i], err = journalOf(cmd, path); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil || !info.IsDir() || trace.IsPartitioned(path) {
			continue // what cannot be read is said when it is opened
		}
		if e, err := bench.Open(path); err == nil && len(e.Trials) == 1 { // and maybe the rest of a stopped one
			out[i] = e.Path(e.Trials[0])
			continue
		}
		found, journals, err := resultsBelow(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && len(journals) == 1 {
			if out[i], err = journalOf(cmd, journals[0]); err != nil {
				return nil, err
			}
			continue
		}
		switch len(found) {
		case 0:
			return nil, cli.Usagef("%s",
				path+" is a directory without results: name the file that replay or simulate wrote with -o")
		case 1:
		default:
			return nil, cli.Usagef("%s is a directory with %d results files: name one, or several to be set side by "+
				"side, such as %s", path, len(found), strings.Join(found[:2], " "))
		}
		out[i] = found[0]
	}
	return out, nil
}

// resultsBelow are the results files in a directory and below it, in order, and what those
// of unfinished runs would be called.
func resultsBelow(dir string) (found, journals []string, err error) {
	err = objectstore.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		finished, isJournal := strings.CutSuffix(path, result.JournalName(""))
		if err != nil || d.IsDir() || filepath.Ext(finished) != ".parquet" && !peerfile.Recognised(path) {
			return err
		}
		f, err := peerfile.Open(path)
		switch {
		case err != nil: // other Parquet is no concern of a report
			return nil
		case isJournal:
			journals = append(journals, finished)
		default:
			found = append(found, path)
		}
		return f.Close()
	})
	return found, journals, err
}

// journalOf names the journal of results that do not exist, and says what it holds and
// how to run it whole. Without a journal it names the results.
func journalOf(cmd *cobra.Command, path string) (string, error) {
	name := result.JournalName(path)
	j, err := result.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("%s does not exist, and its journal cannot be read: %w", path, err)
	}
	defer j.Close()
	state, next := "its run ended early", "To run it whole, repeat its command with --overwrite."
	switch last, err := result.LastWritten(name); {
	case errors.Is(err, result.ErrRunning):
		state, next = "its run is still going on", "The figures are of the run so far."
	case err == nil:
		state = "its run ended at " + last.Format(time.DateTime)
	}
	cli.Warnf(cmd, "%s is not finished: %s. Read from its journal: %s. %s", path, state,
		doc.Many(j.Rows(), "request"), next)
	return name, nil
}
