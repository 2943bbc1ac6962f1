package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/datasets"
	"reprise/replay/bench"
	"reprise/synth/spec"
	"reprise/trace"
)

// suiteSpecs are the specifications of a suite's workloads, by row.
type suiteSpecs map[string]*spec.Spec

// rowSpecs reads the specification of every row that has one, before anything runs.
func rowSpecs(s *bench.Suite, suite string) (suiteSpecs, error) {
	out := suiteSpecs{}
	for i := range s.Rows {
		row := &s.Rows[i]
		spec, err := rowSpec(row, suite)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		if spec == nil {
			continue
		}
		changeSpec(spec, row)
		if err := spec.Check(); err != nil {
			return nil, usagef("%s, row %s: %w", suite, row.Name, err)
		}
		out[row.Name] = spec
	}
	return out, nil
}

// rowSpec is the specification that a row names, nil where it names a trace.
func rowSpec(row *bench.Row, suite string) (*spec.Spec, error) {
	w := row.Workload
	switch {
	case w.Spec != "":
		return spec.Parse(suite, []byte(w.Spec))
	case w.Name != "":
		text, ok := datasets.Workload(w.Name)
		if !ok {
			return nil, fmt.Errorf("%s, row %s: there is no workload %s; reprise synth --help lists those that there are", suite, row.Name, w.Name)
		}
		return spec.Parse(w.Name, text)
	case w.File != "":
		return openSpec(w.File)
	}
	return nil, nil
}

// changeSpec puts what a row says of its workload into it.
func changeSpec(s *spec.Spec, row *bench.Row) {
	switch {
	case row.Requests > 0:
		s.Requests, s.Duration = row.Requests, 0
	case row.Duration > 0 && row.Load.Rate == "" && row.Load.Concurrency == 0:
		s.Requests, s.Duration = 0, row.Duration
	}
	if row.Input != "" {
		s.Lengths.Input, s.Lengths.Own = row.Input, ""
	}
	if row.Output != "" {
		s.Lengths.Output = row.Output
		if s.Lengths.MaxTokens != "" {
			s.Lengths.MaxTokens = row.Output
		}
	}
}

// write makes the workload of a row. Its prompts are in English.
func (specs suiteSpecs) write(cmd *cobra.Command, row *bench.Row, seed uint64, path string) error {
	s := specs[row.Name]
	return trace.Create(path, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		rows, err := s.Rows(seed)
		if err != nil {
			return trace.Meta{}, err
		}
		meta := s.Meta(seed)
		if err := (&textFlags{text: trace.TextWords}).describe(cmd, &meta, true); err != nil {
			return meta, err
		}
		_, err = trace.Copy(dst, &watched{Reader: rows, cmd: cmd, bar: newProgress(cmd)})
		return meta, err
	})
}
