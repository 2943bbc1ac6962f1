package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
)

// releaseSteps are the steps of a release, with the seconds that they took of 3.3 million requests. A model alone ends
// after the first two.
var releaseSteps = []cli.Step{{Name: "fit", Part: 4}, {Name: "measure", Part: 4}, {Name: "generate", Part: 9},
	{Name: "write", Part: 3}}

// fitSessions makes the model of --tier partner and public, from which sessions are drawn, to
// the files outs. What it costs is in the ledger when noise is drawn, and not before: what ends
// earlier, however it ends, has cost nothing and left nothing. paid says after an error what
// was spent all the same.
func fitSessions(cmd *cobra.Command, bar *cli.Progress, f *flags.Release, path string, t *trace.Trace,
	outs ...string) (m *release.Model, notes []string, paid func(error) error, err error) {
	free := func(err error) error { return err }
	decided, err := anonymize.DecidedOf(t.Meta)
	if err != nil {
		return nil, nil, free, cli.Exit(cli.Usage, cli.InFile(path, err))
	}
	ledger, entry, err := beginNoisy(cmd, f, path, t)
	if err != nil {
		return nil, nil, free, err
	}
	src, err := t.Reader()
	if err != nil {
		return nil, nil, free, err
	}
	defer bar.End()
	bar.Start("fit", "requests", src.Rows())
	var words []string
	var total dp.Total
	commit := func(rho, selection float64) error {
		bar.End()
		if err := roomFor(src.Rows(), outs); err != nil {
			return err
		}
		entry.Rho, entry.Selection = rho, selection
		var before []dp.Release
		unwritten, err := ledger.Enter(cmd.Context(), &entry, func(list []dp.Release) error {
			before = list
			return afford(ledger, &entry, before, f.Understood)
		})
		words, total = ledgerWords(ledger, &entry, before, unwritten), dp.Spent(append(before, entry))
		bar.Start("measure", "requests", 0)
		return err
	}
	m, spent, err := release.Fit(cmd.Context(), src, t.Meta,
		release.Options{Tier: f.Tier, Budget: f.Budget, Unit: f.Unit,
			MaxInput: f.MaxInput, MaxOutput: f.MaxOutput, Progress: bar.Set, Commit: commit})
	paid = free
	if spent {
		paid = func(err error) error {
			return fmt.Errorf("%w; noise was drawn by then, so ε=%g is spent, and the ledger counts the attempt (%s)",
				err, entry.Epsilon, ledger)
		}
	}
	if err == nil {
		err = cardOfSessions(m, t.Meta, total, f.Confined, decided)
	}
	switch {
	case err == nil:
		entry.Release = m.Meta().Digest
	case spent:
		entry.Release = "refused"
	}
	if spent {
		// The entry counts as it is; this only says what came of it.
		if _, err := ledger.Enter(context.WithoutCancel(cmd.Context()), &entry,
			func([]dp.Release) error { return nil }); err != nil {
			words = append(words, fmt.Sprintf("warning: %s counts the release, and not under its digest: %v", ledger,
				err))
		}
	}
	var noisy *release.TooNoisy
	switch {
	case errors.As(err, &noisy):
		return nil, nil, paid, cli.Exit(cli.Check, paid(cli.InFile(path, err)))
	case err != nil:
		return nil, nil, paid, paid(cli.InFile(path, err))
	}
	return m, sessionsWords(m, t.Meta, words), paid, nil
}

// sessionsWords are the notes on a model of sessions: its protection, its expected errors, and the words of the
// ledger.
func sessionsWords(m *release.Model, source trace.Meta, ledger []string) []string {
	if _, keys := anonymize.SharedKeys(source); keys > 1 {
		ledger = append([]string{
			fmt.Sprintf("warning: it was recorded with %d keys: a user whom several recordings saw counts as "+
				"several, and is protected less", keys)}, ledger...)
	}
	s := m.Statement()
	said := []string{"protects " + s.Protects}
	if s.Unit == synth.UnitRequest {
		said = append(said, "WARNING: ONE REQUEST IS PROTECTED, NOT A PERSON")
	}
	said = append(said, fmt.Sprintf("ε=%g, δ=%g by %s", s.Budget.Epsilon, s.Budget.Delta, s.Mechanism))
	if s.Trunks != nil {
		said = append(said, fmt.Sprintf("prefixes that sessions share: %s", doc.Count(int64(s.Trunks.Selected))))
	}
	e := s.Predicted
	said = append(said, fmt.Sprintf("errors by the noise alone are up to: requests %s, total input %s, total output "+
		"%s, hit ratio %.3f; more where few users send much of all, and prefixes that few share are lost besides",
		doc.Percent(e.Requests), doc.Percent(e.Input), doc.Percent(e.Output), e.Hit))
	return append(said, ledger...)
}

// cardOfSessions gives a model its card, with what all releases cost together.
func cardOfSessions(m *release.Model, source trace.Meta, total dp.Total, confined *anonymize.Confinement,
	decided []anonymize.Decision) error {
	s, of := m.Statement(), m.Meta()
	s.Ledger, of.Keys = &total, source.Keys
	card := anonymize.SessionsCard(s, of)
	card.Confined, card.Decided, card.Tool = confined, decided, tool()
	text, _, err := card.JSON()
	if err != nil {
		return err
	}
	return m.SetCard(text)
}

// roomFor finds out whether the folders of outputs have room for a release of so many
// requests, before it costs anything.
func roomFor(requests int64, outs []string) error {
	const (
		each  = 32 // bytes of a request, more than a release has
		most  = 256 << 20
		least = 1 << 20
	)
	for _, out := range outs {
		if out == "" || out == cli.Standard || objectstore.IsURL(out) {
			continue
		}
		if info, err := os.Stat(out); err == nil && !info.Mode().IsRegular() {
			continue // such as a pipe
		}
		if err := fits(filepath.Dir(out), max(least, min(most, each*requests))); err != nil {
			return fmt.Errorf("%s: no room for the release, so no noise was drawn and nothing is spent: %w",
				filepath.Dir(out), err)
		}
	}
	return nil
}

// fits writes so many bytes to a file without a name.
func fits(folder string, bytes int64) error {
	probe, err := trace.TempFile(folder)
	if err != nil {
		return err
	}
	_, err = io.CopyN(probe, zeros{}, bytes)
	return errors.Join(err, probe.Close())
}

type zeros struct{}

// Read implements [io.Reader].
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// writeSessions fits and writes the model of --tier partner and public.
func writeSessions(cmd *cobra.Command, f *flags.Release, path, out string) error {
	t, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return err
	}
	defer t.Close()
	m, notes, paid, err := fitSessions(cmd, cli.NewProgress(cmd, releaseSteps[:2]...), f, path, t, out)
	if err != nil {
		return err
	}
	if err := cli.WriteOutputMode(cmd, out, m.Meta().Mode(), func(w io.Writer) error {
		return m.Write(w)
	}); err != nil {
		return paid(err)
	}
	return sayModel(cmd, out, m.Meta(), m.Sessions(), "session", 0, notes)
}
