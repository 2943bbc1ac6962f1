package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/trace/textpage"
)

// A variedSweep is the sweep of an engine with one setting.
type variedSweep struct {
	Setting string            `json:"setting"` // such as x=64
	Sweep   bench.SweepResult `json:"sweep"`
}

// vary makes a sweep of each setting of the engine, each in a directory of its own,
// and puts their highest loads side by side.
func (f *sweepFlags) vary(cmd *cobra.Command, path string, settings []flags.ServeSetting) error {
	if f.html != "" {
		return cli.Usagef("--html writes the page of one sweep, and --vary makes several: leave one out")
	}
	if f.dir != "" {
		_, digest, err := loadFile(cmd, &f.made, path, f.dir)
		if err != nil {
			return err
		}
		plan := sweepPlan{digest, about(cmd, flags.Measured)}
		if f.into, err = bench.Continue(f.dir, "sweep", plan, f.trust.Limits); err != nil {
			return err
		}
		defer f.into.Close()
	}
	var all []variedSweep
	var worst error
	for _, s := range settings {
		one := *f
		one.engine = &s
		cli.Notef(cmd, "%s", s.Name)
		r, err := one.sweep(cmd, path)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		all = append(all, variedSweep{s.Name, r})
		if err := keptSweep(&r); err != nil && (worst == nil || err.(*cli.ExitError).Code == cli.Untrusted) {
			worst = err
		}
	}
	w := cmd.OutOrStdout()
	if cli.On(cmd, "json") {
		if err := cli.WriteJSON(w, all); err != nil {
			return err
		}
		return worst
	}
	o := cli.TextOptions(cmd, "The sweep of each setting: --details.")
	p := textpage.New(o)
	var rows [][]string
	for i := range all {
		rows = append(rows, []string{all[i].Setting, all[i].Sweep.Headline()})
	}
	p.Columns([]string{"setting", "highest load"}, rows)
	p.Blank()
	if !o.Details {
		p.Line("", all[0].Sweep.Loosened().Beside(o.Rest)) // the limits of all
	}
	if _, err := p.WriteTo(w); err != nil {
		return err
	}
	for i := 0; i < len(all) && o.Details; i++ {
		if _, err := fmt.Fprintf(w, "%s\n\n", textpage.Plain(all[i].Setting)); err != nil {
			return err
		}
		if err := all[i].Sweep.Page().WriteText(w, o); err != nil {
			return err
		}
	}
	return worst
}
