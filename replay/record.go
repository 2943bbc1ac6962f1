package replay

import (
	"context"
	"errors"
	"os"

	"reprise/replay/result"
	"reprise/trace"
)

// Record runs r with a journal beside path, named [result.JournalName], and finishes
// that into a results file at path. A run that fails is recorded as far as it
// came. The journal goes when the results are whole, and stays when they cannot
// be written.
func (r *Runner) Record(ctx context.Context, rows trace.Reader[trace.Request], path string) (result.Run, error) {
	opt, err := r.Options.settled()
	if err != nil {
		return opt.About, err
	}
	name := result.JournalName(path)
	part := result.PartName(name, len(opt.About.Resumed))
	journal, err := result.CreateJournal(part, opt.About)
	if err != nil {
		return opt.About, err
	}
	meter, err := newMeter(r.Metering, path, &opt.About)
	if err != nil {
		return opt.About, errors.Join(err, journal.Close(), os.Remove(part))
	}
	metered := *r
	meter.prepare(ctx, &metered.Options)
	profiling, err := newProfiling(ctx, r.Profile, &metered.Options)
	if err != nil {
		return opt.About, errors.Join(err, meter.drop(), journal.Close(), os.Remove(part))
	}
	run, err := metered.Run(ctx, rows, journal)
	meter.over()
	profiling.end(ctx, &run)
	err = errors.Join(err, journal.Close(), meter.end(ctx, &run))
	return run, errors.Join(err, result.Finish(name, path, run))
}
