package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"github.com/spf13/cobra"

	"reprise/replay/report"
)

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
	err = writeOutput(cmd, f.out, func(w io.Writer) error {
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
