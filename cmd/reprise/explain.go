package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"reprise/replay/report"
)

// listNames is the value of --explain that lists all names.
const listNames = "list"

// explain says what the number that --explain names means, and with results what it
// is in them. As in any report, the exit code is 4 where those cannot be trusted.
func (f *judgeFlags) explained(cmd *cobra.Command, results []string) error {
	if f.format != "" || f.html != "" || f.push.url != "" {
		return usagef("--explain is no report, and takes --json and -o of what says how one is written")
	}
	if f.explain == listNames {
		return writeOutput(cmd, f.out, func(w io.Writer) error {
			if f.asJSON {
				return writeJSON(w, report.Definitions())
			}
			return report.WriteNames(w)
		})
	}
	e, err := report.Explain(f.explain)
	if err != nil {
		return usagef("--explain: %v. --explain list has them all", err)
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
		doubt = &exitError{exitUntrusted, errors.New("the run is not trustworthy, and so is this number; the report says why")}
	}
	err = writeOutput(cmd, f.out, func(w io.Writer) error {
		if f.asJSON {
			return writeJSON(w, e)
		}
		return report.WriteExplanation(w, e)
	})
	if err != nil {
		return err
	}
	return doubt
}
