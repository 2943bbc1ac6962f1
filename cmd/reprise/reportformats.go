package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/replay/report"
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
	{formatText, report.WriteText},
	{formatJSON, report.WriteJSON},
	{"markdown", report.WriteMarkdown},
	{formatCSV, report.WriteCSV},
	{"junit", report.WriteJUnit},
	{"prometheus", report.WritePrometheus},
}

// formatNames are all values of --format.
func formatNames() []string {
	var names []string
	for _, f := range summaryFormats {
		names = append(names, f.name)
	}
	return append(names, formatVLLM, formatDecision)
}

// checkFormat refuses what is no format, and what contradicts it.
func (f *judgeFlags) checkFormat() error {
	switch {
	case f.asJSON && f.format != "" && f.format != formatJSON:
		return usagef("--json and --format contradict each other")
	case f.format != "" && !slices.Contains(formatNames(), f.format):
		return usagef("--format: want one of %s", strings.Join(formatNames(), ", "))
	}
	decision := f.format == formatDecision
	switch {
	case !decision && f.why != "":
		return usagef("--why is for --format %s", formatDecision)
	case decision && (f.html != "" || f.push.url != "" || f.definitions != ownDefinitions):
		return usagef("--format %s writes one page of several runs, and takes no --html, --push or --definitions", formatDecision)
	}
	return nil
}

// writeSummary writes the summary as the flags say.
func (f *judgeFlags) writeSummary(w io.Writer, s report.Summary) error {
	name := f.format
	if f.asJSON {
		name = formatJSON
	}
	for _, format := range summaryFormats {
		if format.name == name {
			return format.write(w, s)
		}
	}
	return report.WriteText(w, s)
}

// pushFlags say where a summary is pushed to, and with which credentials: no flag
// takes those themselves.
type pushFlags struct {
	url             string
	credentialsEnv  string
	credentialsFile string
}

func (f *pushFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.url, "push", "", "`URL` of a Prometheus Pushgateway to push the summary to, as job reprise unless it ends in /metrics/job/…")
	fl.StringVar(&f.credentialsEnv, "push-credentials-env", "", "environment `variable` with user:password for it, or a bearer token")
	fl.StringVar(&f.credentialsFile, "push-credentials-file", "", "`file` with the same")
}

// pusher is nil without --push.
func (f *pushFlags) pusher() (*report.Pusher, error) {
	switch {
	case f.url == "" && (f.credentialsEnv != "" || f.credentialsFile != ""):
		return nil, usagef("--push-credentials-env and --push-credentials-file are for --push")
	case f.url == "":
		return nil, nil
	case f.credentialsEnv != "" && f.credentialsFile != "":
		return nil, usagef("give one of --push-credentials-env and --push-credentials-file")
	}
	p := &report.Pusher{URL: f.url}
	if err := p.Check(); err != nil {
		return nil, usagef("--push: %v", err)
	}
	switch {
	case f.credentialsEnv != "":
		if p.Credentials = os.Getenv(f.credentialsEnv); p.Credentials == "" {
			return nil, usagef("--push-credentials-env: the variable is not set")
		}
	case f.credentialsFile != "":
		b, err := os.ReadFile(f.credentialsFile)
		if err != nil {
			return nil, err
		}
		if p.Credentials = strings.TrimSpace(string(b)); p.Credentials == "" {
			return nil, usagef("--push-credentials-file: the file is empty")
		}
	}
	return p, nil
}
