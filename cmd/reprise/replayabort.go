package main

import (
	"github.com/spf13/cobra"

	"reprise/replay"
)

// abortFlags say what ends a replay early.
type abortFlags struct{ abortOn string }

func (f *abortFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.abortOn, "abort-on", "", "`conditions`, any of which ends the sending when it holds over 10 s with 20 requests, such as errors>5%,queue>100,ttft-p99>10s; queue is the requests in flight")
}

func (f *abortFlags) check() error {
	_, err := f.conditions()
	return err
}

func (f *abortFlags) conditions() ([]replay.Condition, error) {
	if f.abortOn == "" {
		return nil, nil
	}
	c, err := replay.ParseConditions(f.abortOn)
	if err != nil {
		return nil, usagef("--abort-on: %v", err)
	}
	return c, nil
}
