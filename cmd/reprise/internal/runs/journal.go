package runs

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// checkJournal refuses to begin when the journal of another run is beside the output, unless it may be replaced:
// nothing else is left of that run. An empty journal holds nothing.
func (f *Replay) checkJournal(cmd *cobra.Command) error {
	name := result.JournalName(f.Out)
	if info, err := os.Stat(name); err != nil || info.Size() == 0 {
		return nil
	}
	if _, err := result.LastWritten(name); errors.Is(err, result.ErrRunning) {
		return cli.Usagef("a running replay writes %s: name another file with -o", name)
	}
	if cli.On(cmd, "overwrite") {
		return nil
	}
	return cli.Usagef("%s is from a run that did not finish: read it with reprise report %s, or begin again with "+
		"--overwrite", name, f.Out)
}

// dropJournal removes the journal of another run, which --overwrite allows, once the run that replaces it begins.
func (f *Replay) dropJournal(cmd *cobra.Command) error {
	if !cli.On(cmd, "overwrite") {
		return nil
	}

	for _, journal := range []string{result.JournalName(f.Out), result.JournalName(result.MetricsName(f.Out))} {
		if err := os.Remove(journal); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
