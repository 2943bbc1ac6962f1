package audit

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

// fitted is a model as the program makes it.
func fitted(ctx context.Context, path, tier string) ([]byte, error) {
	t, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	rows, err := t.Reader()
	if err != nil {
		return nil, err
	}
	m, _, err := release.Fit(ctx, rows, t.Meta, release.Options{Tier: tier, Budget: dp.Budget{Epsilon: 50, Delta: 1e-6}, Unit: synth.UnitUser, MaxInput: 4096, MaxOutput: 1024})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = m.Write(&b)
	return b.Bytes(), err
}

// Two processes that draw the same noise are told, of both tiers.
func TestSeeds(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{anonymize.Partner, anonymize.Public} {
		c := ofGame(t, requests(20), ofRequests)
		c.SpillDir = t.TempDir()
		c.Output.Meta["tier"] = tier
		var made []byte
		c.Fit = func(ctx context.Context, path, tier string) (model []byte, err error) {
			made, err = fitted(ctx, path, tier)
			return made, err
		}
		if f := seeds(t.Context(), c); f.Status != Pass {
			t.Errorf("%s: %s: %s", tier, f.Status, f.Why)
		}
		c.Fit = func(context.Context, string, string) ([]byte, error) { return made, nil } // as from one seed
		if f := seeds(t.Context(), c); f.Status != Fail || !strings.Contains(f.Why, "drew the same noise for ") {
			t.Errorf("%s, one seed: %s: %s", tier, f.Status, f.Why)
		}
	}
	c := ofGame(t, requests(20), ofRequests)
	if f := seeds(t.Context(), c); f.Status != Skipped {
		t.Errorf("without a process: %s: %s", f.Status, f.Why)
	}
	for _, said := range []struct {
		model []byte
		err   error
	}{{nil, errors.New("refused")}, {[]byte("no model"), nil}} {
		c.Fit = func(context.Context, string, string) ([]byte, error) { return said.model, said.err }
		if f := seeds(t.Context(), c); !f.broken {
			t.Errorf("%v: %s: %s", said, f.Status, f.Why)
		}
	}
	c.Output = &Output{Kind: kindTrace, Meta: map[string]string{"tier": anonymize.Partner}}
	if f := seeds(t.Context(), c); f.Status != Skipped {
		t.Errorf("rows without noise: %s: %s", f.Status, f.Why)
	}
}
