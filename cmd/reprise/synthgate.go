package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/synth"
	"reprise/synth/fidelity"
	"reprise/trace"
	"reprise/trace/sample"
)

// An attempt is one way to make a workload of a trace.
type attempt struct {
	fit    bool // with a swap of its own
	halfK  bool // among half as many requests
	reseed bool // with another seed
	chance bool // it only helps what another draw may keep
}

// attempts are made in this order, until the figures of one are within their limits. The closest
// one counts, which tells at most two bits about the swaps.
var attempts = []attempt{{fit: true}, {reseed: true, chance: true}, {fit: true, chance: true}, {fit: true, halfK: true}}

// forAttempts is the first of the streams of a seed that give the seeds of other attempts.
const forAttempts = 100

// attemptedRequests is up to how many requests a trace has of which several workloads are tried. Two
// of a longer trace hardly differ, and each takes minutes.
const attemptedRequests = 1 << 18

// A fitted is a model of a trace with what was measured of its workload as long as the trace.
type fitted struct {
	model    *synth.Model
	seed     uint64
	workload *synth.Workload
	checks   []fidelity.Check
}

// fitJudged fits models to a trace until one makes a workload within the limits of fidelity, and
// keeps the closest. A k that is given is kept as it is.
func fitJudged(cmd *cobra.Command, path string, t *trace.Trace, seed uint64, kSwap int) (best fitted, err error) {
	src, err := t.Reader()
	if err != nil {
		return best, err
	}
	many := src.Rows() > attemptedRequests
	bar := cli.NewProgress(cmd)
	var judge *fidelity.Judge
	var m *synth.Model
	for i, a := range attempts {
		k, from := kSwap, seed
		switch {
		case i > 0 && (many || a.chance && !fidelity.ByChance(best.checks)):
			continue
		case a.fit && i > 0 && kSwap == 1: // it would be the same
			continue
		case a.halfK && cmd.Flags().Changed("k-swap"):
			continue
		case a.halfK:
			k = kSwap / 2
		case a.reseed:
			from = sample.Key(seed, forAttempts+uint64(i))
		}
		if a.fit {
			if m, err = fitTrace(cmd, path, t, k); err != nil {
				return best, err
			}
		}
		if judge == nil {
			if judge, err = judgeOf(cmd, bar, t); err != nil {
				return best, cli.InFile(path, err)
			}
		}
		one := fitted{model: m, seed: from}
		if one.workload, err = m.Generate(cmd.Context(), synth.Options{Seed: from}); err != nil {
			return best, err
		}
		bar.Start("measure", "requests", one.workload.Rows())
		one.checks, err = judge.Judge(one.workload.Meta(), bar.Watch(cmd, one.workload.Reader()), kSwap == 1)
		bar.End()
		if err != nil {
			return best, err
		}
		if best.model == nil || fidelity.Closer(one.checks, best.checks) {
			best = one
		}
		if len(fidelity.Failures(best.checks)) == 0 {
			break
		}
	}
	return best, nil
}

// judgeOf reads the trace that workloads are held against.
func judgeOf(cmd *cobra.Command, bar *cli.Progress, t *trace.Trace) (*fidelity.Judge, error) {
	src, err := t.Reader()
	if err != nil {
		return nil, err
	}
	bar.Start("measure the trace", "requests", src.Rows())
	defer bar.End()
	return fidelity.NewJudge(t.Meta, bar.Watch(cmd, src))
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
	off = fmt.Sprintf("%s differs from its trace: %s; synth --mirror keeps every row of the trace, with new ids", what, off)
	if strict {
		return cli.Exit(cli.Check, errors.New(off))
	}
	*notes = append(*notes, off)
	return nil
}
