package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/replay/bench"
)

// capacityFlags are the flags of capacity: a demand, and those of the sweep that it
// makes when it is given none.
type capacityFlags struct {
	sweep    sweepFlags
	target   float64
	gpus     int
	headroom string
	watts    float64
	kwh      float64
	asJSON   bool
}

func capacityCommand() *cobra.Command {
	var f capacityFlags
	cmd := &cobra.Command{
		Use:   "capacity SWEEP.json|DIR|WORKLOAD --target-rate RATE",
		Short: "Say how many instances and GPUs serve a rate, and what that costs",
		Long: `Capacity divides a target rate by the highest rate within the contract that a sweep
found, rounds up to whole instances, adds headroom, and rounds up again:

  instances = ceil(target ÷ highest), with headroom = ceil(instances × (1 + headroom))

It says between which numbers of instances the answer lies, by the runs of the sweep
that held or failed beyond chance. Given a workload in place of a sweep it makes the
sweep first, with the flags of reprise sweep.

With a price or --watts it says what serving the target costs: all GPUs are paid for,
idle headroom included, and output tokens share it. The price is that of the sweep's
contract; --contract gives that of another file with the same clauses, and
--price-per-gpu-hour goes before both. Where the sweep had an --slo, the tokens of the
requests that met it alone share the cost as well.`,
		Example: `  reprise capacity chat --preset h100-llama-70b --contract contract.yaml --rates 20,25 --sustain 0s --target-rate 100 --gpus-per-instance 8
  reprise sweep chat --preset h100-llama-70b --rates 20,25 --sustain 0s -o swept
  reprise capacity swept --target-rate 100 --gpus-per-instance 8 --price-per-gpu-hour 2.5`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.sweep.register(cmd)
	fl := cmd.Flags()
	fl.Float64Var(&f.target, "target-rate", 0, "requests per second that are to be served")
	fl.IntVar(&f.gpus, "gpus-per-instance", 0, "GPUs of an instance; 0 takes those of the contract, else those that the sweep was measured on, else 1")
	fl.StringVar(&f.headroom, "headroom", "20%", "`share` of instances on top, such as 20% or 0.2")
	fl.Float64Var(&f.watts, "watts", 0, "watts that a GPU and its share of the machine draw")
	fl.Float64Var(&f.kwh, "price-per-kwh", 0, "price of a kWh, where it is not in that of the GPU-hour; takes --watts")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	cmd.AddCommand(predictCommand())
	return cmd
}

func (f *capacityFlags) run(cmd *cobra.Command, path string) error {
	d, err := f.demand()
	if err != nil {
		return err
	}
	r, err := f.measured(cmd, path)
	if err != nil {
		return err
	}
	if l := r.Untrusted(); l != nil {
		notef(cmd, "the sweep is not trustworthy: at %s the client was the limit", l.Name)
	}
	d.Prices.PerGPUHour = cmp.Or(d.Prices.PerGPUHour, r.PricePerGPUHour)
	d.GPUsPerInstance = cmp.Or(d.GPUsPerInstance, r.GPUs, r.Environment.GPUCount(), 1)
	c, err := bench.Plan(&r, d)
	switch {
	case errors.Is(err, bench.ErrNoHighest):
		return f.sweep.kept(&r)
	case err != nil:
		return &exitError{exitUsage, err}
	case f.asJSON:
		err = writeJSON(cmd.OutOrStdout(), c)
	default:
		err = c.WriteText(cmd.OutOrStdout())
	}
	if err != nil {
		return err
	}
	return f.sweep.kept(&r)
}

// demand is what the flags ask for.
func (f *capacityFlags) demand() (d bench.Demand, err error) {
	if !(f.target > 0) {
		return d, usagef("say how much is to be served: --target-rate 100, in requests per second")
	}
	digits, percent := strings.CutSuffix(f.headroom, "%")
	headroom, err := strconv.ParseFloat(digits, 64)
	if percent {
		headroom /= 100
	}
	if err != nil || !(headroom >= 0) {
		return d, usagef("--headroom: want a share such as 20%% or 0.2")
	}
	d = bench.Demand{Rate: f.target, GPUsPerInstance: f.gpus, Headroom: headroom}
	d.Prices = bench.Prices{PerGPUHour: f.sweep.price, Watts: f.watts, PerKWh: f.kwh}
	if f.sweep.path == "" { // the price is for this command alone
		f.sweep.price = 0
	}
	return d, nil
}

// measured is the sweep of a file or directory, or one that is made.
func (f *capacityFlags) measured(cmd *cobra.Command, path string) (r bench.SweepResult, err error) {
	if info, serr := os.Stat(path); serr == nil && info.IsDir() {
		path = filepath.Join(path, "sweep.json")
	}
	if !strings.HasSuffix(path, ".json") {
		return f.sweep.sweep(cmd, path)
	}
	if err := f.alone(cmd, path); err != nil {
		return r, err
	}
	in, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer in.Close()
	if r, err = bench.ReadSweep(path, in); err != nil || f.sweep.path == "" {
		return r, err
	}
	return r, f.reprice(&r)
}

// reprice takes the price of --contract for that of a sweep that was made.
func (f *capacityFlags) reprice(r *bench.SweepResult) error {
	c, err := f.sweep.contract()
	if err != nil {
		return err
	}
	if err := r.Reprice(c); err != nil {
		return usagef("--contract %s: %v. Its levels need not be measured again: the command that made the sweep, with this --contract and its -o DIR, judges them anew", f.sweep.path, err)
	}
	return nil
}

// ofDemand are the flags of capacity that are not those of a sweep.
var ofDemand = []string{"target-rate", "gpus-per-instance", "headroom", "watts", "price-per-kwh", "price-per-gpu-hour", "contract", "json", "quiet"}

// alone refuses flags of a sweep where there is one.
func (f *capacityFlags) alone(cmd *cobra.Command, path string) (err error) {
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if !slices.Contains(ofDemand, fl.Name) {
			err = usagef("--%s says how to sweep, and %s is a sweep that was made", fl.Name, path)
		}
	})
	return err
}
