package main

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"reprise/replay/report"
)

// contractFlags say what a run has to keep to.
type contractFlags struct {
	path  string
	gpus  []int
	price float64
	alone bool             // GPUs and price have a meaning without a contract
	read  *report.Contract // once, before anything is sent
}

func (f *contractFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.path, "contract", "", "contract that the run has to keep to, YAML with clauses such as p95 ttft <= 1s; the exit code is 3 when it does not")
	fl.IntSliceVar(&f.gpus, "gpus", nil, "GPUs that served the run, for output per GPU and a contract about cost; for several results files one number for all, or one for each; otherwise the contract's, or output is per instance")
	fl.Float64Var(&f.price, "price-per-gpu-hour", 0, "price of a GPU for an hour, for the same; 0 takes the contract's")
}

// contract is what the flags name, nil when they name none.
func (f *contractFlags) contract() (*report.Contract, error) {
	switch {
	case !(f.price >= 0):
		return nil, usagef("--price-per-gpu-hour: want a number above zero")
	case f.path == "" && !f.alone && f.price > 0:
		return nil, usagef("--price-per-gpu-hour is what a contract computes cost from: give --contract FILE")
	case f.path == "" || f.read != nil:
		return f.read, nil
	}
	c, err := report.ReadContract(f.path)
	if errors.As(err, new(*fs.PathError)) {
		return nil, err
	}
	if err != nil {
		return nil, &exitError{exitUsage, err}
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
		return &exitError{exitUntrusted, errors.New(err.Error() + "; " + c.String())}
	case err != nil:
		return err
	case !c.Judged:
		return &exitError{exitUntrusted, errors.New(c.String())}
	}
	return &exitError{exitCheck, errors.New(c.String())}
}
