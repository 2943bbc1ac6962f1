package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/synth"
	"reprise/synth/fidelity"
	"reprise/trace"
)

// synthSteps take about so long beside each other, by a million requests of 24 blocks and 150,000 of two. Most traces
// need one attempt.
var synthSteps = []cli.Step{{Name: "survey", Part: 1}, {Name: "fit", Part: 4}, {Name: "swap", Part: 9},
	{Name: "measure the trace", Part: 4}, {Name: "generate", Part: 1}, {Name: "measure", Part: 1},
	{Name: "compare", Part: 15}}

// fitJudged fits models to a trace, and keeps the one whose workload is closest.
func fitJudged(cmd *cobra.Command, path string, t *trace.Trace, seed uint64, kSwap int) (fidelity.Made, error) {
	src, err := t.Reader()
	if err != nil {
		return fidelity.Made{}, err
	}
	bar := cli.NewProgress(cmd, synthSteps...)
	defer bar.End()
	return fidelity.Attempted{Meta: t.Meta, Requests: src.Rows(), KSwap: kSwap,
		GivenK: cmd.Flags().Changed("k-swap"), Seed: seed,
		Rows: func() (trace.Reader[trace.Request], error) { return t.Reader() },
		Fit:  func(k int) (*synth.Model, error) { return fitTrace(cmd, bar, path, t, k) },
		Step: func(step string, rows int64) { bar.Start(step, "requests", rows) },
		Watch: func(src trace.Reader[trace.Request]) trace.Reader[trace.Request] {
			return bar.Watch(cmd, src)
		}}.Closest(cmd.Context())
}

// judgeStated holds a workload as long as the trace of its model against what the model states of
// that trace.
func judgeStated(m *synth.Model, w *synth.Workload) ([]fidelity.Check, error) {
	hits, stated := m.StatedHits()
	if !stated {
		return nil, nil
	}
	return fidelity.JudgeHits(hits, w.Meta().BlockSize, w.Reader())
}

const strictHelp = "exit with code 3 where a figure is beyond its limit; the file is written all the same"

// strictly says which figures of a workload are off and what to do: as an error with --strict, and
// else as a note.
func strictly(strict bool, checks []fidelity.Check, what string, notes *[]string) error {
	off := fidelity.Off(checks)
	if off == "" {
		return nil
	}
	switch alike := fidelity.TooAlike(checks); len(alike) {
	case len(fidelity.Failures(checks)):
		off = fmt.Sprintf("%s repeats more of its trace than chance does: %s; a greater --k-swap mixes more of it",
			what, off)
	case 0:
		off = fmt.Sprintf("%s differs from its trace: %s; synth --mirror keeps every row of the trace, with new ids",
			what, off)
	default:
		off = fmt.Sprintf("%s differs from its trace: %s; synth --mirror keeps every row of the trace, with new ids. "+
			"By %s it repeats more of the trace than chance does: a greater --k-swap mixes more of it", what, off,
			strings.Join(alike, ", "))
	}
	if strict {
		return cli.Exit(cli.Check, errors.New(off))
	}
	*notes = append(*notes, off)
	return nil
}
