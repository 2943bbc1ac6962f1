package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/datasets"
	"reprise/synth/spec"
	"reprise/trace"
)

// openSpec opens a specification, which is a YAML file or the name of a
// built-in workload. It returns nil when the argument is neither.
func openSpec(arg string) (*spec.Spec, error) {
	if ext := strings.ToLower(filepath.Ext(arg)); ext == ".yaml" || ext == ".yml" {
		f, err := os.Open(arg)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, spec.MaxText+1)) // one more is refused
		if err != nil {
			return nil, err
		}
		return spec.Parse(arg, text)
	}
	if _, err := os.Stat(arg); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a file of that name goes first
	}
	text, ok := datasets.Workload(arg)
	if !ok {
		return nil, nil
	}
	return spec.Parse(arg, text)
}

// fromSpec writes the workload of a specification, if it could be read.
func (f *synthFlags) fromSpec(cmd *cobra.Command, s *spec.Spec, err error) error {
	given := cmd.Flags().Changed
	switch {
	case err != nil:
		return err
	case given("users") || given("speed") || given("k-swap"):
		return usagef("--users, --speed and --k-swap are for traces and models: a specification says its own rate")
	case given("requests"):
		s.Requests = f.requests
	case given("duration"):
		s.Requests, s.Duration = 0, f.duration
	}
	if f.arrivals != "" {
		s.Arrivals = f.arrivals
	}
	if err := s.Check(); err != nil {
		return usagef("%w", err)
	}
	return writeTrace(cmd, f.out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		rows, err := s.Rows(f.seed)
		if err != nil {
			return trace.Meta{}, err
		}
		meta := s.Meta(f.seed)
		if err := f.text.describe(cmd, &meta, true); err != nil {
			return meta, err
		}
		_, err = trace.Copy(dst, rows)
		return meta, err
	})
}

// workloadsHelp lists the built-in workloads.
func workloadsHelp() string {
	var b strings.Builder
	b.WriteString("Built-in workloads:\n")
	for _, name := range datasets.Workloads() {
		text, _ := datasets.Workload(name)
		if s, err := spec.Parse(name, text); err == nil {
			b.WriteString("  " + name + strings.Repeat(" ", max(1, 22-len(name))) + s.About + "\n")
		}
	}
	return b.String()
}
