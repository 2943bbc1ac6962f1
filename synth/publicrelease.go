package synth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"

	"reprise/anonymize/dp"
)

// A Release says how a public model was made. The statement is the private part of
// the privacy card, which goes with the model and with what is generated from it.
type Release struct {
	dp.Statement

	// Exact says what was left out. It is for whoever holds the trace, and is
	// not written.
	Exact Exact `json:"-"`
}

// Exact are counts without noise: never publish them.
type Exact struct {
	Requests, Units int64
	Unnamed         int64            // requests that name no unit, and are one unit's together
	NotSampled      int64            // requests above those of a unit that are kept
	NotCounted      map[string]int64 // of those kept, by histogram: above those of a unit in one cell
}

// A card is what synth reads of a privacy card.
type card struct {
	Tier   string   `json:"tier"`
	Public *Release `json:"public"`
}

// setCard puts a privacy card into the metadata, and renews the digest.
func (m *Model) setCard(card string) {
	sum := sha256.Sum256([]byte(card))
	m.meta.Card, m.meta.CardHash = card, hex.EncodeToString(sum[:])
	m.meta.Digest = m.cellDigest()
}

// SetCard gives a public model a privacy card, which must hold a statement of its
// release under the key "public". The digest of the model covers the card.
func (m *Model) SetCard(text string) error {
	was := m.Release()
	if was == nil {
		return errors.New("only a public model has a card of its own")
	}
	before := m.meta
	m.setCard(text)
	if now := m.Release(); now == nil || now.Unit != was.Unit || !reflect.DeepEqual(now.publicKeys(), was.publicKeys()) {
		m.meta = before
		return errors.New("the privacy card belongs to another release")
	}
	return nil
}

// publicNote goes with a public model.
const publicNote = "Differentially private for the unit and the budget that stand here: noisy counts, and nothing else of any request. " +
	"Other releases of the same source add up with this one."

// publicKeys are metadata that say the most important of the card in the open.
func (r *Release) publicKeys() [][2]string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	type sensitivity struct {
		Name      string `json:"name"`
		L1        int64  `json:"l1"`
		L2Squared int64  `json:"l2_squared"`
	}
	var list []sensitivity
	for _, m := range r.Measurements {
		list = append(list, sensitivity{m.Name, m.L1, m.L2Squared})
	}
	b, _ := json.Marshal(list) // of strings and whole numbers, so there is no error
	return [][2]string{
		{"reprise.epsilon", number(r.Budget.Epsilon)}, {"reprise.delta", number(r.Budget.Delta)}, {"reprise.mechanism", r.Mechanism},
		{"reprise.records_per_unit", strconv.Itoa(r.Contribution.Records)}, {"reprise.records_per_unit_and_cell", strconv.Itoa(r.Contribution.PerCell)},
		{"reprise.dropped_share", number(r.Dropped)}, {"reprise.sensitivities", string(b)}, {keyPrivacy, publicNote},
	}
}

// Release is what the privacy card of a public model says, nil for any other.
func (m *Model) Release() *Release {
	if m.cells == nil || m.meta.Tier != TierPublic || m.meta.Card == "" {
		return nil
	}
	var c card
	if json.Unmarshal([]byte(m.meta.Card), &c) != nil || c.Tier != TierPublic {
		return nil
	}
	return c.Public
}

// checkRelease holds the metadata of a model that says it is private against
// its card.
func (m *Model) checkRelease(lookup func(string) (string, bool)) error {
	if _, private := lookup("reprise.epsilon"); !private {
		return nil
	}
	bad := errors.New("the model's metadata contradict its privacy card")
	r := m.Release()
	sum := sha256.Sum256([]byte(m.meta.Card))
	if r == nil || hex.EncodeToString(sum[:]) != m.meta.CardHash || r.Unit != m.meta.Unit || !(r.Budget.Epsilon > 0) {
		return bad
	}
	for _, kv := range r.publicKeys() {
		if got, _ := lookup(kv[0]); got != kv[1] {
			return bad
		}
	}
	return nil
}
