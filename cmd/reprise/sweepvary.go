package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/replay/bench"
)

// A variedSweep is the sweep of an engine with one setting.
type variedSweep struct {
	Setting string            `json:"setting"` // such as x=64
	Sweep   bench.SweepResult `json:"sweep"`
}

// serveFor has the engine started that the flags name, if they name one.
func (f *sweepFlags) serveFor(cmd *cobra.Command, s *bench.Sweep) error {
	engine := f.engine
	if engine == nil {
		settings, err := f.serve.settings(cmd)
		switch {
		case err != nil || len(settings) == 0:
			return err
		case len(settings) > 1:
			return usagef("--vary: one sweep is of one setting")
		}
		engine = &settings[0]
	}
	served, err := f.serve.served(cmd, *engine, f.trial.live, filepath.Join(s.Dir, "engine.log"))
	s.Target, s.About = served, s.About+" of "+replay.Redact(engine.command.String())
	return err
}

// vary makes a sweep of each setting of the engine, each in a directory of its own,
// and puts their highest loads side by side.
func (f *sweepFlags) vary(cmd *cobra.Command, path string, settings []serveSetting) error {
	if f.html != "" {
		return usagef("--html is a page of one sweep: --vary makes several")
	}
	var all []variedSweep
	var worst error
	for _, s := range settings {
		one := *f
		one.engine = &s
		if f.dir != "" {
			one.dir = filepath.Join(f.dir, directoryName(s.name))
		}
		notef(cmd, "%s", s.name)
		r, err := one.sweep(cmd, path)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, variedSweep{s.name, r})
		if err := f.kept(&r); err != nil && (worst == nil || err.(*exitError).code == exitUntrusted) {
			worst = err
		}
	}
	if err := f.writeVaried(cmd, all); err != nil {
		return err
	}
	return worst
}

func (f *sweepFlags) writeVaried(cmd *cobra.Command, all []variedSweep) error {
	w := cmd.OutOrStdout()
	if f.asJSON {
		return writeJSON(w, all)
	}
	for i := range all {
		fmt.Fprintf(w, "%s\n\n", all[i].Setting)
		if err := all[i].Sweep.WriteText(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "setting\thighest load\t")
	for _, v := range all {
		highest := "none"
		if l := v.Sweep.Highest.Load; l != nil {
			highest = strconv.FormatFloat(*l, 'g', 4, 64)
		}
		fmt.Fprintf(t, "%s\t%s\t\n", v.Setting, highest)
	}
	return t.Flush()
}
