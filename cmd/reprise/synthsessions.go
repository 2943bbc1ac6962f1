package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
	"reprise/trace/page"
)

// fitSessions makes the model of --tier partner and public, from which sessions are drawn. What
// it costs is in the ledger before noise is drawn, so that commands at once count each other,
// and before anything is written.
func fitSessions(cmd *cobra.Command, f *flags.Release, path string, t *trace.Trace) (m *release.Model, notes []string, err error) {
	ledger, entry, warning, err := beginNoisy(cmd, f, path, t)
	if err != nil {
		return nil, nil, err
	}
	src, err := t.Reader()
	if err != nil {
		return nil, nil, err
	}
	bar := cli.NewProgress(cmd)
	bar.Start("fit", "requests", src.Rows())
	m, spent, err := release.Fit(cmd.Context(), src, t.Meta, release.Options{Tier: f.Tier, Budget: f.Budget, Unit: f.Unit,
		MaxInput: f.MaxInput, MaxOutput: f.MaxOutput, Progress: bar.Set})
	bar.End()
	if entry.Release, entry.Mechanism = "refused", dp.Gaussian; !spent {
		entry.Release, entry.Budget, entry.Mechanism = dp.Cancelled, dp.Budget{}, ""
	}
	var card func(dp.Total) anonymize.Card
	if m != nil {
		s := m.Statement()
		if entry.Rho = s.Rho; s.Trunks != nil {
			entry.Selection = s.Trunks.Delta
		}
		card = func(total dp.Total) anonymize.Card {
			s.Ledger = &total
			of := m.Meta()
			of.Keys = t.Meta.Keys
			c := anonymize.SessionsCard(s, of)
			c.Confined = f.Confined
			return c
		}
	}
	if err := enterLedger(ledger, entry, m, card); err != nil {
		return nil, nil, err
	}
	var noisy *release.TooNoisy
	switch {
	case errors.As(err, &noisy):
		return nil, nil, cli.Exit(cli.Check, fmt.Errorf("%w; the ledger counts the attempt", cli.InFile(path, err)))
	case err != nil:
		return nil, nil, cli.InFile(path, err)
	}
	s := m.Statement()
	said := []string{"protects " + s.Protects}
	if s.Unit == synth.UnitRequest {
		said = append(said, "WARNING: ONE REQUEST IS PROTECTED, NOT A PERSON")
	}
	said = append(said, fmt.Sprintf("ε=%g, δ=%g by %s", s.Budget.Epsilon, s.Budget.Delta, s.Mechanism))
	if s.Trunks != nil {
		said = append(said, fmt.Sprintf("prefixes that sessions share: %s", page.Count(int64(s.Trunks.Selected))))
	}
	e := s.Predicted
	said = append(said, fmt.Sprintf("predicted errors at most: requests %s, total input %s, total output %s, hit ratio %.3f",
		page.Percent(e.Requests), page.Percent(e.Input), page.Percent(e.Output), e.Hit))
	return m, append(said, warning...), nil
}

// writeSessions fits and writes the model of --tier partner and public.
func writeSessions(cmd *cobra.Command, f *flags.Release, path, out string) error {
	t, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return err
	}
	defer t.Close()
	m, notes, err := fitSessions(cmd, f, path, t)
	if err != nil {
		return err
	}
	if err := cli.WriteOutputMode(cmd, out, m.Meta().Mode(), func(w io.Writer) error { return m.Write(w) }); err != nil {
		return err
	}
	return sayModel(cmd, out, m.Meta(), m.Sessions(), "session", 0, notes)
}
