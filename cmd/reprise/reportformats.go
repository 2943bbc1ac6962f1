package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/objectstore"
)

// Values of --format.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatVLLM     = "vllm"
	formatDecision = "decision"
	formatCSV      = "csv"
)

// A summaryFormat is a way to write a summary.
type summaryFormat struct {
	name  string
	write func(io.Writer, report.Summary) error
}

// summaryFormats are those that take nothing but the summary.
var summaryFormats = []summaryFormat{
	{formatJSON, func(w io.Writer, s report.Summary) error { return cli.WriteJSON(w, s) }},
	{formatMarkdown, func(w io.Writer, s report.Summary) error { return report.Page(s).WriteMarkdown(w) }},
	{formatCSV, report.WriteCSV},
	{"junit", report.WriteJUnit},
	{"prometheus", report.WritePrometheus},
	{"benchmark-report", report.WriteBenchmarkReport},
}

// formatEndings say by the ending of a file in what format it is written. Else it is text.
var formatEndings = map[string]string{".json": formatJSON, ".csv": formatCSV, ".md": formatMarkdown, ".xml": "junit",
	".prom": "prometheus"}

// formatNames are all values of --format.
func formatNames() []string {
	names := []string{formatText}
	for _, f := range summaryFormats {
		names = append(names, f.name)
	}
	return append(names, formatVLLM, formatDecision)
}

// decided writes the record of a tuning from the results of its runs. It fails, as a
// report of the first would, when none of them is accepted.
func (f *reportFlags) decided(cmd *cobra.Command, paths []string) error {
	names, err := runNames(paths, f.names)
	if err != nil {
		return err
	}
	contract, err := f.Read()
	if err != nil {
		return err
	}
	price := f.Price
	if price == 0 && contract != nil {
		price = contract.PricePerGPUHour
	}
	var runs []report.Named
	d := report.Decision{Why: f.why, PricePerGPUHour: price}
	var refused error
	accepted := false
	for i, path := range paths {
		s, err := f.summarise(cmd, path, i, len(paths))
		if err != nil {
			return err
		}
		file, err := objectstore.Open(path)
		if err != nil {
			return err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		d.Digests = append(d.Digests, "sha256:"+hex.EncodeToString(hash.Sum(nil)))
		if err := kept(s); refused == nil {
			refused = err
		}
		accepted = accepted || s.Accepted()
		runs = append(runs, report.Named{Name: names[i], Summary: s})
	}
	mode := trace.TierMode(report.Tier(runs))
	p, err := report.DecisionRecord(runs, d)
	if err != nil {
		return err
	}
	if f.HTML != "" {
		if err := trace.WriteFile(f.HTML, mode, p.Write); err != nil {
			return err
		}
	}
	err = cli.WriteOutputMode(cmd, f.out, mode, p.WriteMarkdown)
	if err != nil || accepted {
		return err
	}
	return refused
}
