package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
)

// A Trial is one measured run to make.
type Trial struct {
	Name     string // for people
	Workload string // file of the trace or workload that is sent
	Load     Load
	Seed     string        // of prompts and arrivals; "" takes the workload's
	ColdSeed string        // of the prompts in place of Seed, where the cache is to be cold and the server cannot empty it; "" is one that no run had
	Duration time.Duration // nothing is sent that is due later; 0 is the whole workload
	Loop     bool          // play the workload again and again until Duration is over
	Rows     int64         // send only so many, the first; 0 is all

	Warmup, Cooldown string        // requests or times that are not measured, see [replay.ParseSpan]
	Timeout          time.Duration // of one request; 0 is the target's own, of an engine in virtual time none
	Cache            string        // what the prefix cache holds before: see [result.CacheCold]; "" is as it is
	Note             string        // to keep in the results

	Results string // Parquet file to write
}

// A Target makes trials.
type Target interface {
	// Run makes the trial and writes its results, whole or not at all. That the
	// results cannot be trusted is no error: they say so themselves.
	Run(ctx context.Context, t Trial) error
}

// Measure makes a trial and summarises its results.
func Measure(ctx context.Context, target Target, t Trial, o report.Options) (report.Summary, error) {
	if err := target.Run(ctx, t); err != nil {
		return report.Summary{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	return Summarise(t.Results, o)
}

// Summarise summarises a results file and, when there is one beside it, what was
// measured at the servers.
func Summarise(path string, o report.Options) (report.Summary, error) {
	results, err := result.Open(path)
	if err != nil {
		return report.Summary{}, err
	}
	defer results.Close()
	switch metrics, err := result.OpenMetrics(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return report.Summary{}, err
	default:
		defer metrics.Close()
		if metrics.Started == results.Run.Started { // else an earlier run left it
			o.Metrics = metrics.Reader
		}
	}
	return report.Summarise(results.Run, results.Reader(), o)
}
