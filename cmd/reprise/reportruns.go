package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/replay/report"
	"reprise/trace"
)

// runNames are the names of several runs: given, or those of their files. No two
// are the same, since a legend would not tell them apart.
func runNames(paths, given []string) ([]string, error) {
	if len(given) > 0 && len(given) != len(paths) {
		return nil, usagef("--name has %d names for %d results files", len(given), len(paths))
	}
	names := make([]string, len(paths))
	seen := map[string]int{}
	for i, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".parquet")
		if len(given) > 0 {
			if name = strings.TrimSpace(given[i]); name == "" {
				return nil, usagef("--name: name %d is empty", i+1)
			}
		}
		if seen[name]++; seen[name] > 1 {
			if len(given) > 0 {
				return nil, usagef("--name: %q is given twice", name)
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
			return 0, usagef("--gpus: want a number above zero, or one for each results file")
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
	return 0, usagef("--gpus has %d numbers for %d results files", len(f.gpus), n)
}

// setGPUs says how many GPUs run i of n had, to the contract as well. What the flags
// do not say, the contract may.
func (f *judgeFlags) setGPUs(o *report.Options, i, n int) (err error) {
	if o.GPUs, err = f.gpusOf(i, n); err != nil || o.Contract == nil {
		return err
	}
	if o.GPUs == 0 {
		o.GPUs = o.Contract.GPUs
		return nil
	}
	c := *o.Contract
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
		return usagef("--definitions is of one results file: it has no table of several runs")
	case !slices.Contains([]string{"", formatText, formatJSON}, f.format):
		return usagef("--format %s is of one results file", f.format)
	case f.push.url != "":
		return usagef("--push is of one results file")
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
	err = writeOutput(cmd, f.out, func(w io.Writer) error {
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
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	return exitFailure
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
	notef(cmd, "%d plots, as SVG and CSV: %s", n, f.plots)
	for _, r := range runs {
		if tier := trace.TierNote("directory of plots", r.Run.Tier); tier != "" {
			notef(cmd, "note: %s Images and CSV have no place to say so.", tier)
			break
		}
	}
	return nil
}
