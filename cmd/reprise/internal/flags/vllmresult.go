package flags

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/peer"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/quantity"
)

// VLLMResult holds the flags of `vllm bench serve` that say what its JSON holds
// and where it goes, with vLLM's spelling and meaning.
type VLLMResult struct {
	save, appends bool
	dir, name     string

	detailed    bool
	Metadata    []string
	label       string
	metrics     string
	percentiles string
	goodput     []string

	Backend, Model string // as the spellings of vLLM name them

	replaces func() bool // whether --overwrite is given
}

// register adds what a document holds, for report and replay.
func (f *VLLMResult) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	_, rest := Sections(fl, VLLMFlags)
	rest.BoolVar(&f.detailed, "save-detailed", false, "include per-request arrays in vLLM's JSON")
	rest.StringArrayVar(&f.Metadata, "metadata", nil, "add `KEY=VALUE` to vLLM's JSON; repeatable")
	rest.StringVar(&f.label, "label", "", "label in vLLM's JSON and in its file name")
	rest.StringVar(&f.metrics, "percentile-metrics", "",
		"metrics with statistics in vLLM's JSON: ttft,tpot,itl,e2el (default the first three)")
	rest.StringVar(&f.percentiles, "metric-percentiles", "",
		"percentiles in vLLM's JSON, such as 50,90,99 (default 99)")
	rest.StringArrayVar(&f.goodput, "goodput", nil,
		"objective for vLLM's JSON, as `NAME:MS` with ttft, tpot or e2el; repeatable. Without --slo, also "+
			"for the report")
}

// RegisterSave adds where a replay saves it.
func (f *VLLMResult) RegisterSave(cmd *cobra.Command) {
	fl := cmd.Flags()
	everyday, rest := Sections(fl, VLLMFlags)
	everyday.BoolVar(&f.save, "save-result", false, "also write the JSON of vllm bench serve --save-result")
	rest.BoolVar(&f.appends, "append-result", false, "append that JSON to the file, on a line of its own")
	rest.StringVar(&f.dir, "result-dir", "", "directory for vLLM's JSON; by default the current one")
	f.replaces = func() bool { return cli.On(cmd, "overwrite") }
	rest.StringVar(&f.name, "result-filename", "",
		"file name of vLLM's JSON; by default label, rate, model and time, as vLLM does")
}

// Saves says whether a replay writes the document.
func (f *VLLMResult) Saves() bool { return f.save || f.appends }

// check refuses what would be ignored: without a document nothing can be in it.
func (f *VLLMResult) check(written bool, how string) error {
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"save-detailed", f.detailed}, {"metadata", f.Metadata != nil}, {"label", f.label != ""},
		{"percentile-metrics", f.metrics != ""}, {"metric-percentiles", f.percentiles != ""},
		{"result-dir", f.dir != ""}, {"result-filename", f.name != ""},
	} {
		if flag.given && !written {
			return cli.Usagef("--%s is about vLLM's JSON, which is written with %s", flag.name, how)
		}
	}
	if f.save && !f.appends && f.name != "" && !f.replaces() {
		path := filepath.Join(f.dir, f.name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return cli.Usagef("%s exists: name another file with --result-filename, add to it with --append-result, "+
				"or replace it with --overwrite", path)
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
func (f *VLLMResult) options(run result.Run) (peer.VLLMOptions, error) {
	o := peer.VLLMOptions{Backend: f.Backend, Label: f.label, Model: f.Model, Detailed: f.detailed}
	for _, pair := range f.Metadata {
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
	rate, err := quantity.Rate(fields[0])
	switch {
	case process == "" || process == allAtOnce:
	case kind == rampUpKind:
		if r, err := parseRampUp(process); err == nil {
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

// Write writes the document of a results file.
func (f *VLLMResult) Write(w io.Writer, results *result.File) error {
	o, err := f.options(results.Run)
	if err != nil {
		return err
	}
	return peer.WriteVLLM(w, results.Run, results.Reader, o)
}

// Store saves the document where the flags say, and returns its path.
func (f *VLLMResult) Store(results *result.File) (string, error) {
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
	write := func(w io.Writer) error { return f.Write(w, results) }
	mode := trace.TierMode(results.Run.Tier)
	if f.appends {
		return name, appendLine(name, mode, write)
	}
	return name, trace.WriteFile(name, mode, write)
}

// appendLine writes a further line to a file, which it makes with a mode. Where that fails, the file
// is left as it was.
func appendLine(name string, mode os.FileMode, write func(io.Writer) error) (err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, mode)
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
