package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/contract"
	"reprise/replay/engine"
	"reprise/replay/hardware"
	"reprise/replay/report"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
	"reprise/trace/quantity"
	"reprise/trace/textpage"
)

// capacityFlags are the flags of capacity: a demand, and how the levels of a sweep are judged.
type capacityFlags struct {
	flags.Contract
	target   float64
	live     float64 // target of live sessions
	starts   float64 // target of sessions that start each second
	gpus     int
	headroom string
	watts    float64
	kwh      float64
	html     string
}

func capacityCommand() *cobra.Command {
	var f capacityFlags
	cmd := &cobra.Command{
		Use:   "capacity DIR|SWEEP.json --target-rate RATE",
		Short: "Compute instances, GPUs and cost for a rate, or for live sessions",
		Long: `Capacity computes how many instances serve a target: a rate of requests, a number of live
sessions or a rate of sessions, divided by the highest load within the contract that a sweep
of the same kind found, rounded up, with headroom, and rounded up again:

  instances = ceil(target ÷ highest)
  with headroom = ceil(instances × (1 + headroom))` + flags.ListsBegin + `

DIR is what sweep -o wrote. Runs that bench or compare made of one server and workload at
several rates are read as a sweep too. With a price or --watts it computes the cost: all GPUs
are paid for, idle headroom included, and output tokens share it. --contract judges the levels
anew where the sweep had another. docs/capacity.md says more.`,
		Example: `  reprise sweep chat --preset document-h100-llama-70b --rates 20,25 --sustain 0s -o swept
  reprise capacity swept --target-rate 100 --gpus-per-instance 8 --price-per-gpu-hour 2.5
  reprise capacity swept --target-rate 100 --contract contract.yaml`,
		Args: flags.Wants(1, 1, "which sweep?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.Contract.Register(cmd)
	f.Contract.Alone = true
	fl := cmd.Flags()
	demand, demandRest := flags.Sections(fl, "Demand")
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	demand.RateVar(&f.target, "target-rate", 0, "rate to serve, in requests per second")
	demand.NumberVar(&f.live, "target-sessions", 0,
		"sessions to serve that are live at once, by a sweep over --sessions")
	demandRest.RateVar(&f.starts, "target-session-rate", 0,
		"rate of whole sessions to serve, by a sweep over --session-rates")
	demand.IntVar(&f.gpus, "gpus-per-instance", 0,
		"GPUs of an instance; 0 uses the contract's, else the sweep's, else 1")
	demand.StringVar(&f.headroom, "headroom", "20%", "`share` of instances to add, such as 20% or 0.2")
	demandRest.NumberVar(&f.watts, "watts", 0, "power of a GPU and its share of the machine, in watts")
	demandRest.NumberVar(&f.kwh, "price-per-kwh", 0, "price of a kWh, if not part of the GPU price; needs --watts")
	results.Bool("json", false, "print JSON")
	results.FileVar(&f.html, "html", "write a self-contained HTML `page`")
	flags.Details(fl)
	cmd.AddCommand(predictCommand())
	return cmd
}

func (f *capacityFlags) run(cmd *cobra.Command, path string) error {
	if f.target == 0 && f.live == 0 && f.starts == 0 {
		return cli.Usagef("give what to serve: --target-rate 100 in requests per second, --target-sessions 500 live " +
			"at once, or --target-session-rate 2")
	}
	headroom, err := quantity.Share(f.headroom)
	if err != nil {
		return cli.Usagef("--headroom: %v", err)
	}
	d := bench.Demand{Rate: f.target, Sessions: f.live, SessionRate: f.starts, GPUsPerInstance: f.gpus,
		Headroom: headroom}
	d.Prices = bench.Prices{PerGPUHour: f.Price, Watts: f.watts, PerKWh: f.kwh}
	c, err := f.Read()
	if err != nil {
		return err
	}
	r, err := readSweep(cmd, path, c)
	if err != nil {
		return err
	}
	if l := r.Untrusted(); l != nil {
		cli.Warnf(cmd, "the sweep is not trustworthy: at %s the client was the limit", l.Name)
	}
	d.Prices.PerGPUHour = cmp.Or(d.Prices.PerGPUHour, r.PricePerGPUHour)
	d.GPUsPerInstance = cmp.Or(d.GPUsPerInstance, r.GPUs, r.Environment.GPUCount(), 1)
	made, err := bench.Plan(&r, d)
	switch {
	case errors.Is(err, bench.ErrNoHighest):
		if says := r.Loosened().String(); says != "" {
			cli.Notef(cmd, "%s", says)
		}
		return keptSweep(&r)
	case err != nil:
		return cli.Exit(cli.Usage, err)
	}
	err = cli.Finding{Tier: made.Tier, Page: made.Page(), JSON: made, HTML: f.html,
		Rest: "How it is computed: --details. Page: --html FILE."}.Write(cmd)
	if err != nil {
		return err
	}
	return keptSweep(&r)
}

// readSweep reads the sweep of a file or directory, and judges its levels anew where it had another contract
// than the one that is given; nil is none.
func readSweep(cmd *cobra.Command, path string, c *contract.Contract) (r bench.SweepResult, err error) {
	file := path
	info, err := objectstore.Stat(path)
	if err != nil {
		return r, err
	}
	if info.IsDir() {
		file = objectstore.Join(path, sweepFile)
	}
	in, err := objectstore.Open(file)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return r, err
	}
	if !missing {
		defer in.Close()
		if !info.IsDir() && !strings.HasSuffix(path, ".json") {
			return r, cli.Usagef("%s is no sweep: name the folder or sweep.json that reprise sweep -o DIR wrote", path)
		}
		if r, err = bench.ReadSweep(file, in); err != nil || c == nil {
			return r, err
		}
		if r.SameContract(c) == nil {
			return r, r.Reprice(c)
		}
	}
	if !info.IsDir() {
		return r, cli.Usagef("%v. Name the folder of the sweep, and its levels are judged anew", r.SameContract(c))
	}

	e, err := bench.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, cli.Usagef("%s has no sweep: reprise sweep WORKLOAD -o DIR writes one", path)
	}
	if err != nil {
		return r, err
	}
	o := report.Options{Limits: e.Limits()}
	if c != nil {
		o.Contract = c
	}
	if r, err = e.Sweep(cmd.Context(), o); err != nil {
		err = cli.Exit(cli.Usage, err)
	}
	return r, err
}

// predictFlags are the flags of capacity predict.
type predictFlags struct {
	r         engine.Roofline
	params    string
	bandwidth string
	flops     string
	kv        string
	never     flags.Hardware // a model and a data sheet in place of the numbers
}

func predictCommand() *cobra.Command {
	var f predictFlags
	cmd := &cobra.Command{
		Use:   "predict [RESULTS]",
		Short: "Compute the latency floor of a GPU, beside measured latencies",
		Long: `Predict computes the shortest possible time of an output token, and with --flops and
--prompt-tokens of TTFT: decoding reads all weights once a step, for the whole batch,
and the KV of each sequence. --efficiency is the share of the peaks that is reached; 1 is
the data sheet.

--model-config and --hardware take the numbers from the config.json beside a model's
weights and from a data sheet, and add the memory: weights, KV tokens that fit.

Given results, it puts the measured medians beside the floor, and says which regime
(memory or compute) the ratio suggests and which measurement would confirm it. --batch
then defaults to the mean of requests in flight, --prompt-tokens to the mean prompt.`,
		Example: `  reprise capacity predict --params 8B --bytes-per-param 2 --bandwidth 600GB
  reprise capacity predict --model-config config.json --hardware h100 --tp 8 --dtype fp8 --batch 64
  reprise capacity predict r.parquet --params 0.5B --bandwidth 300GB --flops 121T --efficiency 0.7`,
		Args: flags.Wants(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	model, _ := flags.Sections(fl, "Model")
	gpu, _ := flags.Sections(fl, "GPU")
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	model.StringVar(&f.params, "params", "",
		"parameters read for a token, such as 8B; for a mixture of experts the active ones")
	model.NumberVar(&f.r.BytesPerParam, "bytes-per-param", 2,
		"bytes of a parameter: 2 for BF16, 1 for FP8, 0.5 for INT4")
	gpu.StringVar(&f.bandwidth, "bandwidth", "", "memory bandwidth of a GPU in bytes per second, such as 3.35TB")
	gpu.StringVar(&f.flops, "flops", "",
		"operations per second of a GPU at this precision, such as 989T; by default compute is left out")
	gpu.IntVar(&f.r.GPUs, "gpus", 1, "GPUs for each layer (tensor parallelism)")
	gpu.ShareVar(&f.r.Efficiency, "efficiency", 1, "share of the peak bandwidth and operations that is reached")
	model.StringVar(&f.kv, "kv-bytes-per-token", "0", "KV bytes of a token over all layers, such as 320KB")
	model.NumberVar(&f.r.Context, "context-tokens", 0, "mean length of a sequence in tokens")
	model.NumberVar(&f.r.Batch, "batch", 1, "sequences that decode together")
	model.NumberVar(&f.r.Prompt, "prompt-tokens", 0, "prompt length in tokens, for TTFT")
	f.never.Register(fl)
	results.Bool("json", false, "print JSON")
	flags.Details(fl)
	return cmd
}

// setup is that of --model-config and --hardware, nil without them, with its memory.
func (f *predictFlags) setup(cmd *cobra.Command) (*hardware.Setup, *hardware.Memory, error) {
	if !f.never.Given() {
		return nil, nil, nil
	}
	for _, name := range []string{"params", "bytes-per-param", "bandwidth", "flops", "kv-bytes-per-token", "gpus"} {
		if cmd.Flags().Changed(name) {
			return nil, nil, cli.Usagef("--%s cannot be used with --model-config and --hardware, which say it", name)
		}
	}
	s, err := f.never.Setup()
	if err != nil {
		return nil, nil, err
	}
	m, err := s.Fit()
	if err != nil {
		return nil, nil, cli.Exit(cli.Usage, err)
	}
	return &s, &m, nil
}

func (f *predictFlags) run(cmd *cobra.Command, args []string) error {
	setup, memory, err := f.setup(cmd)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		flag, text string
		into       *float64
	}{{"params", f.params, &f.r.Params}, {"bandwidth", f.bandwidth, &f.r.Bandwidth}, {"flops", f.flops, &f.r.FLOPS},
		{"kv-bytes-per-token", f.kv, &f.r.KVPerToken}} {
		if q.text == "" && q.flag == "flops" || setup != nil {
			continue
		}
		v, ok := magnitude(q.text)
		if !ok {
			return cli.Usagef("--%s: want a number, such as 8B, 600GB or 989T", q.flag)
		}
		*q.into = v
	}
	var s *report.Summary
	if len(args) > 0 {
		named, err := resultsNamed(cmd, args)
		if err != nil {
			return err
		}
		got, err := bench.Summarise(named[0], report.Options{})
		if err != nil {
			return err
		}
		s = &got
		f.take(cmd, s)
	}
	if setup != nil {
		r := engine.FloorOf(setup, int(math.Round(f.r.Batch)))
		r.Efficiency, r.Context, r.Batch, r.Prompt = f.r.Efficiency, f.r.Context, f.r.Batch, f.r.Prompt
		f.r = r
	}
	p, err := f.r.Predict()
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	c := bench.Comparison{Prediction: p, Hints: []bench.Hint{}}
	if s != nil {
		c = bench.Compare(p, s)
	}
	text := func(w io.Writer, o textpage.Options) error {
		err := c.WriteText(w, o)
		if err == nil && memory != nil {
			cli.Message(w, fmt.Sprintf("%s. Memory of each GPU: %s. KV fits %s tokens.\n", setup, memory,
				doc.Count(int64(memory.KVTokens))))
		}
		return err
	}
	err = cli.Finding{Text: text, JSON: predicted{c, memory}, Rest: "All hints: --details."}.Write(cmd)
	if err == nil && s != nil {
		err = untrusted(s.Verdict)
	}
	return err
}

// predicted is a prediction, with the memory where a model and a GPU are known.
type predicted struct {
	bench.Comparison
	Memory *hardware.Memory `json:"memory,omitempty"`
}

// take takes from results what the flags do not say.
func (f *predictFlags) take(cmd *cobra.Command, s *report.Summary) {
	if m := s.InFlight.Mean; m != nil && !cmd.Flags().Changed("batch") {
		f.r.Batch = max(*m, 1)
	}
	if n := s.Requests.Succeeded; n > 0 && !cmd.Flags().Changed("prompt-tokens") {
		f.r.Prompt = float64(s.Tokens.Prompt) / float64(n)
	}
}

// magnitude reads a number with a decimal suffix: K, M, G or B, T, and with it bytes
// per second or none.
func magnitude(s string) (float64, bool) {
	s = strings.TrimSuffix(strings.TrimSpace(s), "/s")
	for _, unit := range []struct {
		suffix string
		of     float64
	}{{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"B", 1e9},
		{"T", 1e12}, {"", 1}} {
		if digits, ok := strings.CutSuffix(s, unit.suffix); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			return v * unit.of, err == nil
		}
	}
	return 0, false
}
