package runs

import (
	"errors"
	"os"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// checkJournal refuses to begin when the journal of another run is beside the output:
// nothing else is left of that run. An empty journal holds nothing.
func (f *Replay) checkJournal() error {
	name := result.JournalName(f.Out)
	if info, err := os.Stat(name); err != nil || info.Size() == 0 {
		return nil
	}
	if _, err := result.LastWritten(name); errors.Is(err, result.ErrRunning) {
		return cli.Usagef("a running replay writes %s: name another file with -o", name)
	}
	held := "it"
	metrics := result.JournalName(result.MetricsName(f.Out))
	if _, err := os.Stat(metrics); err == nil {
		held = "it and " + metrics
	}
	return cli.Usagef("%s is from a run that did not finish: read it with reprise report %s, or delete %s to "+
		"begin again", name, f.Out, held)
}
