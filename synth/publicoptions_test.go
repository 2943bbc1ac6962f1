package synth

import (
	"errors"
	"testing"
	"testing/iotest"
	"time"

	"reprise/anonymize/dp"
	"reprise/trace"
)

var aCapture = trace.RelativeCapture(0, time.Hour)

func TestPublicDefaults(t *testing.T) {
	user := PublicOptions{Unit: UnitUser, Budget: dp.Budget{Epsilon: 1, Delta: 1e-6}, Contribution: dp.Contribution{Records: 8, PerCell: 2}, MaxInput: 131072, MaxOutput: 16384}
	request := user
	request.Unit, request.Contribution = UnitRequest, dp.Contribution{Records: 1, PerCell: 1}
	own := PublicOptions{Unit: UnitSession, Budget: dp.Budget{Epsilon: 2}, Contribution: dp.Contribution{Records: 3, PerCell: 3}, MaxInput: 1 << 24, MaxOutput: 1}
	for _, c := range []struct{ o, want PublicOptions }{
		{PublicOptions{Unit: UnitUser}, user},
		{PublicOptions{Unit: UnitRequest, Contribution: dp.Contribution{Records: 5, PerCell: 2}}, request},
		{own, own},
	} {
		if err := c.o.defaults(trace.Meta{Capture: aCapture}); err != nil || c.o.Noise == nil {
			t.Errorf("%s: %v, noise %v", c.o.Unit, err, c.o.Noise)
		}
		if c.o.Noise, c.o.Progress = nil, nil; c.o.Unit != c.want.Unit || c.o.Budget != c.want.Budget || c.o.Contribution != c.want.Contribution ||
			c.o.MaxInput != c.want.MaxInput || c.o.MaxOutput != c.want.MaxOutput {
			t.Errorf("got %+v, want %+v", c.o, c.want)
		}
	}
	noise := noiseOf(1)
	if o := (PublicOptions{Unit: UnitUser, Noise: noise}); o.defaults(trace.Meta{Capture: aCapture}) != nil || o.Noise != noise {
		t.Error("the source of noise that was given is not used")
	}
}

func TestPublicOptionsRefused(t *testing.T) {
	const limits = "the public limits of lengths must be 1 to 16,777,216 tokens"
	const bound = "a unit must contribute at least one record, and no more in a cell than overall"
	good := trace.Meta{Capture: aCapture}
	for _, c := range []struct {
		o    PublicOptions
		meta trace.Meta
		want string
	}{
		{PublicOptions{MaxInput: -1}, good, limits},
		{PublicOptions{MaxOutput: -1}, good, limits},
		{PublicOptions{MaxInput: 1<<24 + 1}, good, limits},
		{PublicOptions{MaxOutput: 1<<24 + 1}, good, limits},
		{PublicOptions{MaxInput: 1, MaxOutput: 1 << 24}, good, ""},
		{PublicOptions{Contribution: dp.Contribution{Records: 0, PerCell: 1}}, good, bound},
		{PublicOptions{Contribution: dp.Contribution{Records: 1, PerCell: 0}}, good, bound},
		{PublicOptions{Contribution: dp.Contribution{Records: 1, PerCell: 2}}, good, bound},
		{PublicOptions{Contribution: dp.Contribution{Records: 1, PerCell: 1}}, good, ""},
		{PublicOptions{}, trace.Meta{}, ErrNoCapture.Error()},
		{PublicOptions{}, trace.Meta{Capture: aCapture, Tier: "internal"}, ""},
		{PublicOptions{}, trace.Meta{Capture: aCapture, Tier: "public"}, "it is already public"},
		{PublicOptions{}, trace.Meta{Tier: "partner"}, "its tier is partner: its rows depend on those of other users, " +
			"so noise for one user would not protect that user. Fit the trace of tier internal"},
	} {
		got := ""
		if err := c.o.defaults(c.meta); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v of tier %q: %q, want %q", c.o, c.meta.Tier, got, c.want)
		}
	}
}

// A trace that cannot be read has no unit, and the error says why.
func TestChooseUnitReads(t *testing.T) {
	broken := errors.New("broken")
	src := &failing{rows: []trace.Request{{}}, err: broken}
	if unit, err := ChooseUnit(src, trace.Meta{Sessions: sessionsOfSource}); unit != "" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", unit, err)
	}
	if unit, err := ChooseUnit(&failing{rows: []trace.Request{{User: trace.Ptr(int64(0))}}, err: broken}, trace.Meta{}); unit != UnitUser || err != nil {
		t.Errorf("a user before what is broken: %q, %v", unit, err)
	}
	_, _, spent, err := FitPublic(t.Context(), &failing{err: broken}, trace.Meta{Capture: aCapture}, PublicOptions{Unit: UnitUser})
	if spent || !errors.Is(err, broken) {
		t.Errorf("a fit: %v, spent %v", err, spent)
	}
}

// failing reads some rows, then fails.
type failing struct {
	rows []trace.Request
	err  error
}

func (f *failing) Read(rows []trace.Request) (int, error) {
	n := copy(rows, f.rows)
	if f.rows = f.rows[n:]; len(f.rows) > 0 {
		return n, nil
	}
	return n, f.err
}

// Without randomness there is no release, wherever it ends, and what was drawn before
// counts as spent.
func TestPublicWithoutRandomness(t *testing.T) {
	rows, meta := aDay()
	broken := errors.New("no randomness")
	for _, c := range []struct {
		size, records int
		spent         bool
	}{{16, 20, true}, {16, 8, false}, {0, 20, true}} { // beyond 8 of 11 requests a draw chooses
		if meta.BlockSize = c.size; c.size == 0 {
			for i := range rows {
				rows[i].Blocks = nil
			}
		}
		o := PublicOptions{Unit: UnitUser, Contribution: dp.Contribution{Records: c.records, PerCell: 2}, Noise: dp.NewNoiseFrom(iotest.ErrReader(broken))}
		m, _, spent, err := FitPublic(t.Context(), cloned(rows), meta, o)
		if !errors.Is(err, broken) || spent != c.spent || m != nil {
			t.Errorf("%d records: %v, spent %v", c.records, err, spent)
		}
	}
}
