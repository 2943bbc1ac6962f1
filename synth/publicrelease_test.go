package synth

import (
	"encoding/json"
	"testing"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// aPublicModel is a small model with a card.
func aPublicModel(t testing.TB) *Model {
	t.Helper()
	m := &Model{kSwap: 1, span: 100, meta: trace.Meta{Tier: TierPublic, Unit: UnitUser}, cells: &cellModel{requests: 9}}
	m.cells.tables[tableTime] = cellTable{every([]cell{{0, 99, 1}})}
	m.cells.tables[tableInput] = cellTable{every([]cell{{1, 9, 1}})}
	m.cells.tables[tableOutput] = cellTable{every([]cell{{1, 9, 1}})}
	m.setCard(cardOf(t, nil))
	return m
}

// cardOf is the card of a release that change has changed.
func cardOf(t testing.TB, change func(r *Release)) string {
	t.Helper()
	r := &Release{Statement: dp.Statement{Unit: UnitUser, Budget: dp.Budget{Epsilon: 0.5, Delta: 1e-7}, Mechanism: "discrete Laplace",
		Contribution: dp.Contribution{Records: 8, PerCell: 2}, Dropped: 0.125,
		Measurements: []dp.NoiseSpec{{Measurement: dp.Measurement{Name: "a", L1: 3, L2Squared: 5}}, {Measurement: dp.Measurement{Name: "b", L1: 7, L2Squared: 49}}}}}
	if change != nil {
		change(r)
	}
	b, err := json.Marshal(card{TierPublic, r})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPublicKeysOfARelease(t *testing.T) {
	want := map[string]string{"reprise.epsilon": "0.5", "reprise.delta": "1e-07", "reprise.mechanism": "discrete Laplace",
		"reprise.records_per_unit": "8", "reprise.records_per_unit_and_cell": "2", "reprise.dropped_share": "0.125",
		"reprise.sensitivities": `[{"name":"a","l1":3,"l2_squared":5},{"name":"b","l1":7,"l2_squared":49}]`, "reprise.privacy_note": publicNote}
	got := aPublicModel(t).Release().publicKeys()
	if len(got) != len(want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	for _, kv := range got {
		if want[kv[0]] != kv[1] {
			t.Errorf("%s is %q, want %q", kv[0], kv[1], want[kv[0]])
		}
	}
}

// A public model takes another card of the same release, and the digest covers it. A
// card of another release changes nothing.
func TestSetCard(t *testing.T) {
	m := aPublicModel(t)
	before := m.Meta()
	for name, text := range map[string]string{
		"no card":           "none",
		"another tier":      `{"tier":"internal","public":{}}`,
		"no release":        `{"tier":"public"}`,
		"another unit":      cardOf(t, func(r *Release) { r.Unit = UnitSession }),
		"another epsilon":   cardOf(t, func(r *Release) { r.Budget.Epsilon = 0.25 }),
		"other noise":       cardOf(t, func(r *Release) { r.Measurements[1].L1 = 8 }),
		"another mechanism": cardOf(t, func(r *Release) { r.Mechanism = "none" }),
	} {
		if err := m.SetCard(text); err == nil || err.Error() != "the privacy card belongs to another release" || m.Meta() != before {
			t.Errorf("%s: %v, and the metadata are %+v", name, err, m.Meta())
		}
	}
	more := cardOf(t, func(r *Release) { r.Ledger = &dp.Total{Releases: 2} })
	if err := m.SetCard(more); err != nil || m.Meta().Card != more || m.Meta().CardHash == before.CardHash || m.Meta().Digest == before.Digest {
		t.Errorf("%v, and the metadata are %+v", err, m.Meta())
	}
	if got, err := read(written(t, m)); err != nil || got.Release().Ledger.Releases != 2 {
		t.Errorf("the file: %v", err)
	}
	for _, m := range []*Model{{meta: m.meta}, {cells: m.cells, meta: trace.Meta{Tier: "internal", Card: more}}, {cells: m.cells, meta: trace.Meta{Tier: TierPublic}}} {
		if err := m.SetCard(more); err == nil || err.Error() != "only a public model has a card of its own" || m.Release() != nil {
			t.Errorf("%+v: %v", m.meta, err)
		}
	}
}

// The metadata of a file must say of its privacy what the card says.
func TestReleaseAgreesWithMetadata(t *testing.T) {
	good := aPublicModel(t)
	if _, err := read(rewrittenCells(t, good, nil, nil)); err != nil {
		t.Fatal(err)
	}
	other := *good
	other.setCard(cardOf(t, func(r *Release) { r.Budget.Epsilon = 0 }))
	for name, m := range map[string]struct {
		m    *Model
		meta map[string]string
	}{
		"no budget":        {&other, nil},
		"the hash":         {good, map[string]string{"reprise.card_sha256": "00"}},
		"the epsilon":      {good, map[string]string{"reprise.epsilon": "0.25"}},
		"the delta":        {good, map[string]string{"reprise.delta": "0"}},
		"the mechanism":    {good, map[string]string{"reprise.mechanism": "another"}},
		"the records":      {good, map[string]string{"reprise.records_per_unit": "9"}},
		"the note":         {good, map[string]string{"reprise.privacy_note": ""}},
		"what is measured": {good, map[string]string{"reprise.sensitivities": "[]"}},
	} {
		if _, err := read(rewrittenCells(t, m.m, nil, m.meta)); err == nil || err.Error() != "the model's metadata contradict its privacy card" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
