package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/peer"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/page"
)

// Values of --format.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatVLLM     = "vllm"
	formatDecision = "decision"
	formatCSV      = "csv"
)

// A summaryFormat is a way to write a summary.
type summaryFormat struct {
	name  string
	write func(io.Writer, report.Summary) error
}

// summaryFormats are those that take nothing but the summary.
var summaryFormats = []summaryFormat{
	{formatText, report.WriteText},
	{formatJSON, report.WriteJSON},
	{"markdown", report.WriteMarkdown},
	{formatCSV, report.WriteCSV},
	{"junit", report.WriteJUnit},
	{"prometheus", report.WritePrometheus},
}

// formatNames are all values of --format.
func formatNames() []string {
	var names []string
	for _, f := range summaryFormats {
		names = append(names, f.name)
	}
	return append(names, formatVLLM, formatDecision)
}

// checkFormat refuses what is no format, and what contradicts it.
func (f *judgeFlags) checkFormat() error {
	switch {
	case f.asJSON && f.format != "" && f.format != formatJSON:
		return cli.Usagef("--json and --format contradict each other")
	case f.format != "" && !slices.Contains(formatNames(), f.format):
		return cli.Usagef("--format: want one of %s", strings.Join(formatNames(), ", "))
	}
	decision := f.format == formatDecision
	switch {
	case !decision && f.why != "":
		return cli.Usagef("--why is for --format %s", formatDecision)
	case decision && (f.html != "" || f.push.url != "" || f.definitions != ownDefinitions):
		return cli.Usagef("--format %s writes one page of several runs, and takes no --html, --push or --definitions", formatDecision)
	}
	return nil
}

// writeSummary writes the summary as the flags say.
func (f *judgeFlags) writeSummary(w io.Writer, s report.Summary) error {
	name := f.format
	if f.asJSON {
		name = formatJSON
	}
	for _, format := range summaryFormats {
		if format.name == name {
			return format.write(w, s)
		}
	}
	return report.WriteText(w, s)
}

// pushFlags say where a summary is pushed to, and with which credentials: no flag
// takes those themselves.
type pushFlags struct {
	url             string
	credentialsEnv  string
	credentialsFile string
}

func (f *pushFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.url, "push", "", "`URL` of a Prometheus Pushgateway to push the summary to, as job reprise unless it ends in /metrics/job/…")
	fl.StringVar(&f.credentialsEnv, "push-credentials-env", "", "environment `variable` with user:password for it, or a bearer token")
	fl.StringVar(&f.credentialsFile, "push-credentials-file", "", "`file` with the same")
}

// pusher is nil without --push.
func (f *pushFlags) pusher() (*report.Pusher, error) {
	switch {
	case f.url == "" && (f.credentialsEnv != "" || f.credentialsFile != ""):
		return nil, cli.Usagef("--push-credentials-env and --push-credentials-file are for --push")
	case f.url == "":
		return nil, nil
	case f.credentialsEnv != "" && f.credentialsFile != "":
		return nil, cli.Usagef("give one of --push-credentials-env and --push-credentials-file")
	}
	p := &report.Pusher{URL: f.url}
	if err := p.Check(); err != nil {
		return nil, cli.Usagef("--push: %v", err)
	}
	switch {
	case f.credentialsEnv != "":
		if p.Credentials = os.Getenv(f.credentialsEnv); p.Credentials == "" {
			return nil, cli.Usagef("--push-credentials-env: the variable is not set")
		}
	case f.credentialsFile != "":
		b, err := os.ReadFile(f.credentialsFile)
		if err != nil {
			return nil, err
		}
		if p.Credentials = strings.TrimSpace(string(b)); p.Credentials == "" {
			return nil, cli.Usagef("--push-credentials-file: the file is empty")
		}
	}
	return p, nil
}

// decided writes the record of a tuning from the results of its runs. It fails, as a
// report of the first would, when none of them is accepted.
func (f *judgeFlags) decided(cmd *cobra.Command, paths []string) error {
	names, err := runNames(paths, f.names)
	if err != nil {
		return err
	}
	contract, err := f.contract()
	if err != nil {
		return err
	}
	price := f.price
	if price == 0 && contract != nil {
		price = contract.PricePerGPUHour
	}
	var runs []report.Tried
	var refused error
	accepted := false
	for i, path := range paths {
		s, err := f.summarise(cmd, path, i, len(paths))
		if err != nil {
			return err
		}
		digest, err := digestOf(path)
		if err != nil {
			return err
		}
		run := report.Tried{Name: names[i], Digest: digest, Summary: s}
		if err := kept(s); refused == nil {
			refused = err
		}
		accepted = accepted || run.Accepted()
		runs = append(runs, run)
	}
	err = cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
		return report.WriteDecision(w, runs, report.Decision{Why: f.why, PricePerGPUHour: price})
	})
	if err != nil || accepted {
		return err
	}
	return refused
}

// digestOf is that of a file's bytes.
func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// vllmResult are the flags of `vllm bench serve` that say what its JSON holds
// and where it goes, with vLLM's spelling and meaning.
type vllmResult struct {
	save, appends bool
	dir, name     string

	detailed    bool
	metadata    []string
	label       string
	metrics     string
	percentiles string
	goodput     []string

	backend, model string // as the spellings of vLLM name them
}

// register adds what a document holds, for report and replay.
func (f *vllmResult) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.detailed, "save-detailed", false, "in vLLM's JSON, the arrays with an element for each request too")
	fl.StringArrayVar(&f.metadata, "metadata", nil, "`KEY=VALUE` to hold in vLLM's JSON; may be repeated")
	fl.StringVar(&f.label, "label", "", "label in vLLM's JSON and its name")
	fl.StringVar(&f.metrics, "percentile-metrics", "", "metrics with statistics in vLLM's JSON, of ttft,tpot,itl,e2el; empty is the first three")
	fl.StringVar(&f.percentiles, "metric-percentiles", "", "percentiles in vLLM's JSON, such as 50,90,99; empty is 99")
	fl.StringArrayVar(&f.goodput, "goodput", nil, "objective as vLLM writes it, `NAME:MS` of ttft, tpot and e2el; may be repeated. Without --slo, ours too")
}

// registerSave adds where a replay saves it.
func (f *vllmResult) registerSave(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.save, "save-result", false, "also write the JSON that vllm bench serve --save-result writes")
	fl.BoolVar(&f.appends, "append-result", false, "the same, on a further line of the file")
	fl.StringVar(&f.dir, "result-dir", "", "directory for vLLM's JSON; empty is the current one")
	fl.StringVar(&f.name, "result-filename", "", "name of vLLM's JSON; empty makes one of label, rate, model and time as vLLM does")
}

func (f *vllmResult) saves() bool { return f.save || f.appends }

// check refuses what would be ignored: without a document nothing can be in it.
func (f *vllmResult) check(written bool, how string) error {
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"save-detailed", f.detailed}, {"metadata", f.metadata != nil}, {"label", f.label != ""},
		{"percentile-metrics", f.metrics != ""}, {"metric-percentiles", f.percentiles != ""},
		{"result-dir", f.dir != ""}, {"result-filename", f.name != ""},
	} {
		if flag.given && !written {
			return cli.Usagef("--%s says something of vLLM's JSON, which is written with %s", flag.name, how)
		}
	}
	o, err := f.options(result.Run{})
	if err == nil && written {
		// What vLLM's document cannot hold is found before anything is sent.
		_, err = peer.VLLMFilename(result.Run{}, o)
	}
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	return nil
}

// options are what a document says beside the run.
func (f *vllmResult) options(run result.Run) (peer.VLLMOptions, error) {
	o := peer.VLLMOptions{Backend: f.backend, Label: f.label, Model: f.model, Detailed: f.detailed}
	for _, pair := range f.metadata {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return o, errors.New("--metadata: want KEY=VALUE")
		}
		o.Metadata = append(o.Metadata, peer.Pair{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value)})
	}
	if f.metrics != "" {
		o.Metrics = strings.Split(f.metrics, ",")
	}
	if f.percentiles != "" {
		for _, p := range strings.Split(f.percentiles, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
			if err != nil {
				return o, errors.New("--metric-percentiles: want numbers such as 50,90,99.9")
			}
			o.Percentiles = append(o.Percentiles, v)
		}
	}
	var err error
	if o.Goodput, err = peer.ParseGoodput(f.goodput); err != nil {
		return o, fmt.Errorf("--goodput: %w", err)
	}
	setRate(&o, run.Rate)
	return o, nil
}

// setRate tells vLLM's rate and burstiness from an arrival process. Requests at
// recorded times and in a closed loop have vLLM's default, inf.
func setRate(o *peer.VLLMOptions, process string) {
	kind, rest, _ := strings.Cut(process, ":")
	fields := strings.Split(rest, ",")
	rate, err := strconv.ParseFloat(fields[0], 64)
	switch {
	case process == "" || process == flags.AllAtOnce:
	case kind == flags.RampUpKind:
		if r, err := flags.ParseRampUp(process); err == nil {
			o.RampUp = &peer.RampUp{Strategy: r.Strategy, Start: r.Start, End: r.End}
			o.Burstiness = r.Burstiness
		}
	case kind == "poisson" && err == nil:
		o.RequestRate = rate
	case kind == "constant" && err == nil:
		o.RequestRate, o.Burstiness = rate, math.Inf(1)
	case kind == "gamma" && err == nil && len(fields) == 2:
		o.RequestRate = rate
		name, value, named := strings.Cut(fields[1], "=")
		if !named {
			name, value = "cv", name
		}
		v, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "burstiness":
			o.Burstiness = v
		default:
			o.Burstiness = 1 / (v * v) // the CV of a gamma distribution is 1/√shape
		}
	default:
		o.Process = process
	}
}

// write writes the document of a results file.
func (f *vllmResult) write(w io.Writer, results *result.File) error {
	o, err := f.options(results.Run)
	if err != nil {
		return err
	}
	return peer.WriteVLLM(w, results.Run, results.Reader, o)
}

// store saves the document where the flags say, and returns its path.
func (f *vllmResult) store(results *result.File) (string, error) {
	name := f.name
	if name == "" {
		o, err := f.options(results.Run)
		if err != nil {
			return "", err
		}
		if name, err = peer.VLLMFilename(results.Run, o); err != nil {
			return "", err
		}
	}
	if f.dir != "" {
		if err := os.MkdirAll(f.dir, 0o755); err != nil {
			return "", err
		}
		name = filepath.Join(f.dir, name)
	}
	write := func(w io.Writer) error { return f.write(w, results) }
	if f.appends {
		return name, appendLine(name, write)
	}
	return name, trace.WriteFile(name, 0o644, write)
}

// appendLine writes a further line to a file. Where that fails, the file is left
// as it was.
func appendLine(name string, write func(io.Writer) error) (err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > 0 {
		_, err = io.WriteString(file, "\n")
	}
	if err == nil {
		err = write(file)
	}
	if err != nil {
		return errors.Join(err, file.Truncate(size))
	}
	return nil
}

// writePlots writes each plot of a page as an image and as its points, under a
// name made of its title, and says how many there were.
func writePlots(dir string, p *page.Page) (int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	n := 0
	seen := map[string]int{}
	for i := range p.Sections {
		for j := range p.Sections[i].Plots {
			plot := &p.Sections[i].Plots[j]
			name := slug(plot.Title)
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s-%d", name, seen[name])
			}
			path := filepath.Join(dir, name)
			if err := trace.WriteFile(path+".svg", 0o644, plot.WriteSVG); err != nil {
				return n, err
			}
			if err := trace.WriteFile(path+".csv", 0o644, plot.WriteCSV); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// slug makes a file name of a title: letters and digits, the rest as hyphens.
func slug(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), "-")
}
