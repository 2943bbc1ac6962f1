package runs

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/engine"
	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/profile"
)

// A Simulation says what simulated engines are sent, and where the results go.
type Simulation struct {
	Out string
	flags.Fleet
	flags.Load
	flags.Workload // of trials: the command plays the whole workload once
	note           string
	Timeout        time.Duration
	Seed           uint64
}

// Record simulates into a results file.
func (f *Simulation) Record(cmd *cobra.Command, w *trace.Trace, c engine.FleetConfig,
	model string) (engine.FleetSummary, error) {
	about := result.Run{
		Schema:  result.Schema,
		Version: cli.Version,
		Source: result.Source{Workload: w.Meta.Digest, Tier: w.Meta.Tier, Seed: strconv.FormatUint(f.Seed, 10),
			BlockSize: w.Meta.BlockSize, ServerBlock: c.Engine.BlockSize},
		Load: result.Load{Tokenizer: w.Meta.Tokenizer, Model: model, Rate: f.Rate},
		Note: f.note,
		Simulation: result.Simulation{Simulated: f.Describe(c), PresetWarning: f.Engine.Warning(cmd, c.Engine),
			Instances: c.Replicas, PrefixCaching: trace.Ptr(c.Engine.PrefixCaching)},
		Environment: &result.Environment{Host: host.This()},
	}
	var err error
	if about.Privacy, err = PrivacyOf(&w.Meta); err != nil {
		return engine.FleetSummary{}, err
	}
	name := result.JournalName(f.Out)
	journal, err := result.CreateJournal(name, about)
	if err != nil {
		return engine.FleetSummary{}, err
	}
	s, run, err := f.Play(cmd, w, c, about, journal)
	run.Extrapolates = f.Engine.Beyond(cmd, s.Reached)
	if cerr := journal.Close(); err == nil {
		err = cerr
	}
	if err == nil { // the rows of the journal are put in order
		var j *result.File
		if j, err = result.Open(name); err == nil {
			err = result.Write(f.Out, run, j.Reader())
			j.Close()
		}
	}
	if rerr := os.Remove(name); err == nil {
		err = rerr // what can be computed again is not kept half done
	}
	return s, err
}

// Play sends a workload to a fleet. Without a journal the results are counted
// and not kept.
func (f *Simulation) Play(cmd *cobra.Command, w *trace.Trace, c engine.FleetConfig, about result.Run,
	journal *result.Journal) (none engine.FleetSummary, run result.Run, err error) {
	part, err := partOf(cmd, w, &f.Workload, f.Seed)
	if err != nil {
		return none, run, err
	}
	if part.outputs.ByServer() {
		return none, run, cli.Usagef("--output-tokens %s: a simulated engine does not end answers by itself: give a "+
			"length or a distribution", part.outputs)
	}
	rows, err := part.reader()
	if err != nil {
		return none, run, err
	}
	closeTrees, err := part.readTrees(cmd, &f.Load, f.Seed)
	defer closeTrees()
	if err != nil {
		return none, run, err
	}
	lineage, err := part.lineage(cmd, &f.Load)
	if err != nil {
		return none, run, err
	}
	options, err := f.Schedule(lineage, f.Seed)
	if err != nil {
		return none, run, err
	}
	options.About = about
	part.apply(&options)
	sim := bench.Simulation{Fleet: c, Rows: rows, BlockSize: part.blockSize, Options: options, Timeout: f.Timeout}
	if journal != nil {
		sim.Results = journal
		if w.Meta.BlockSize > 0 {
			known := profile.NewKnownPass(w.Meta.BlockSize, false)
			sim.Options.Known = func(_ int64, row *trace.Request) int32 { return known.Touch(row) }
		}
	}
	bar := cli.NewProgress(cmd)
	bar.Start("simulate "+c.Router, "requests", rows.Total)
	defer bar.End()
	sim.Progress = bar.Set
	s, run, err := sim.Run(cmd.Context())
	bar.End()
	if f.Window == nil { // else the trial is one of many
		tellSessions(cmd, run.Sessions)
	}
	return s, run, err
}
