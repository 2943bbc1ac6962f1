package audit

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/trace"
)

// Outputs of one source are judged together: ε adds up, a model and what is drawn of it
// count once, and releases of rows in other grids are joined.
func TestComposition(t *testing.T) {
	public := func(epsilon float64, dropped float64, captures string) *Output {
		card := anonymize.PublicCard(dp.Statement{Unit: anonymize.UnitUser, Budget: dp.Budget{Epsilon: epsilon, Delta: 1e-6}, Dropped: dropped}, trace.Meta{})
		text, hash, err := card.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return &Output{Kind: kindModel, Meta: map[string]string{"tier": anonymize.Public, "card": text, "card_sha256": hash, "capture_ids": captures}}
	}
	rng := rand.New(rand.NewPCG(4, 4))
	var rows []trace.Request
	at := 0.0
	for i := range int64(3000) {
		at += rng.ExpFloat64() * 2
		rows = append(rows, trace.Request{ArrivalNS: int64(at * 1e9), InputTokens: int32(100 + rng.ExpFloat64()*800), OutputTokens: int32(10 + rng.ExpFloat64()*100), User: trace.Ptr(i % 500), Status: trace.StatusOK})
	}
	src := linkTrace(t, trace.Meta{Tier: anonymize.Internal, Capture: trace.RelativeCapture(0, 3*time.Hour)}, rows)
	partner := func(perOctave int, quantum time.Duration) *Output {
		return linkReleased(t, src, anonymize.PartnerPolicy{Unit: anonymize.UnitUser, PerOctave: perOctave, Quantum: quantum}, nil).Output
	}
	for name, c := range map[string]struct {
		of   []*Output
		want Status
		says string
	}{
		"one alone":                      {[]*Output{public(1, 0, "")}, Skipped, "other outputs"},
		"within the limit":               {[]*Output{public(4, 0, "a"), public(4, .1, "a")}, Pass, "2 releases have ε = 8 together"},
		"beyond the limit":               {[]*Output{public(4, 0, "a"), public(4, .1, "b,a"), public(4, .2, "")}, Fail, "3 releases of one source have ε = 12 together, above the limit of 10"},
		"a model and what was drawn":     {[]*Output{public(6, 0, "a"), public(6, 0, "a")}, Pass, "1 releases have ε = 6"},
		"different captures":             {[]*Output{public(6, 0, "a"), public(6, .1, "b")}, Inconclusive, "different captures"},
		"the same grid twice":            {[]*Output{partner(2, time.Second), partner(2, time.Second)}, Pass, "rows of 2 releases that are joined stay in classes of 11"},
		"two grids":                      {[]*Output{partner(2, time.Second), partner(3, time.Second)}, Fail, "each grid hides what the other shows"},
		"three grids and other quanta":   {[]*Output{partner(1, time.Second), partner(3, 2*time.Second), partner(5, time.Second)}, Fail, "rows of 3 releases can be joined"},
		"rows and noise":                 {[]*Output{partner(2, time.Second), public(4, 0, "")}, Pass, "ε = 4 of 1 releases; rows of 1"},
		"rows in two grids, and noise":   {[]*Output{partner(2, time.Second), public(4, 0, ""), partner(3, time.Second)}, Fail, "rows of 2 releases"},
		"with the internal trace beside": {[]*Output{partner(2, time.Second), tinyTrace(t, trace.Meta{Tier: anonymize.Internal})}, Inconclusive, "could not be run"},
	} {
		f := composition(t.Context(), &Case{Output: c.of[0], Others: c.of[1:]})
		if f.Status != c.want || !strings.Contains(f.Why, c.says) {
			t.Errorf("%s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
}
