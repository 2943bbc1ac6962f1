package synth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"reprise/anonymize/dp"
)

// A Release is the privacy card of a public model: what was measured, with which
// noise. It goes with the model and with what is generated from it. All of it
// is public, or comes from noisy counts.
type Release struct {
	Tier         string           `json:"tier"`
	Unit         string           `json:"unit"`
	Protects     string           `json:"protects"` // the unit in plain words
	Budget       dp.Budget        `json:"budget"`
	Mechanism    string           `json:"mechanism"`
	Rho          float64          `json:"rho_zcdp,omitempty"`
	Contribution dp.Contribution  `json:"contribution"`
	Clip         int64            `json:"requests_per_unit"` // at most, where only their number counts
	MaxInput     int32            `json:"max_input_tokens"`
	MaxOutput    int32            `json:"max_output_tokens"`
	Dropped      float64          `json:"dropped_share"` // of the requests, those whose input length was not counted; from noisy counts
	Selection    *PublicSelection `json:"prefix_selection,omitempty"`
	Measurements []dp.NoiseSpec   `json:"measurements"`
	Predicted    PublicErrors     `json:"predicted_errors"`

	// Exact says what was left out. It is for whoever holds the trace, and is
	// not written.
	Exact Exact `json:"-"`
}

// PublicSelection is how public prefixes were selected.
type PublicSelection struct {
	dp.Selection
	Budget       dp.Budget `json:"budget"`
	NodesPerUnit int       `json:"nodes_per_unit"`
	Nodes        int       `json:"nodes"` // selected
}

// Exact are counts without noise: never publish them.
type Exact struct {
	Requests, Units int64
	NotSampled      int64            // requests above those of a unit that are kept
	NotCounted      map[string]int64 // of those kept, by histogram: above those of a unit in one cell
}

var protects = map[string]string{
	UnitUser:    "one user with all requests; requests that name no user are one user's",
	UnitSession: "one session with all its requests, and a person with several sessions less; requests without a session are one session's",
	UnitRequest: "one request, not a person",
}

func (f *publicFit) release(predicted PublicErrors) *Release {
	o := &f.options
	r := &Release{Tier: TierPublic, Unit: o.Unit, Protects: protects[o.Unit], Budget: o.Budget, Mechanism: f.plan.Mechanism,
		Rho: f.plan.Rho, Contribution: o.Contribution, Clip: f.clip, MaxInput: o.MaxInput, MaxOutput: o.MaxOutput,
		Measurements: f.plan.Noise, Predicted: predicted}
	if f.size > 0 {
		r.Selection = &PublicSelection{Selection: f.nodes.selection, NodesPerUnit: nodesPerUnit, Nodes: len(f.nodes.list),
			Budget: dp.Budget{Epsilon: o.Budget.Epsilon * selectionShare, Delta: o.Budget.Delta / 2}}
	}
	counted := 0.0
	for _, n := range f.noisy[ofInput].cells {
		counted += float64(n)
	}
	all := float64(max(1, f.noisy[ofRequests].cells[0]))
	r.Dropped = math.Round(1000*math.Min(1, math.Max(0, 1-counted/all))) / 1000
	r.Exact = Exact{Requests: f.source.rows, Units: int64(len(f.source.units)), NotCounted: map[string]int64{}}
	for i := range f.source.units {
		r.Exact.NotSampled += f.source.units[i].Seen - int64(len(f.source.units[i].Kept))
	}
	for _, h := range []int{ofLengths, ofInput, ofOutput} {
		r.Exact.NotCounted[histogramNames[h]] = f.dropped[h]
	}
	return r
}

// attach puts the card into the model's metadata.
func (m *Model) attach(r *Release) error {
	b, err := json.Marshal(r)
	if err != nil {
		return errors.New("the privacy card has a number that JSON cannot write")
	}
	sum := sha256.Sum256(b)
	m.meta.Card, m.meta.CardHash = string(b), hex.EncodeToString(sum[:])
	return nil
}

// cellsNote goes with a model of histograms.
const cellsNote = "Made of the histograms of a profile, without noise: independent lengths by category, and as private as the trace that was profiled."

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

// Release is the privacy card of a public model, nil for any other.
func (m *Model) Release() *Release {
	if m.cells == nil || m.meta.Tier != TierPublic || m.meta.Card == "" {
		return nil
	}
	var r Release
	if json.Unmarshal([]byte(m.meta.Card), &r) != nil {
		return nil
	}
	return &r
}

// describeRelease writes what the model is worth for privacy.
func (m *Model) describeRelease(set func(key, value string)) {
	r := m.Release()
	if r == nil {
		set(keyPrivacy, cellsNote)
		return
	}
	for _, kv := range r.publicKeys() {
		set(kv[0], kv[1])
	}
}

// checkRelease holds the metadata of a model that says it is private against
// its card.
func (m *Model) checkRelease(lookup func(string) (string, bool)) error {
	if _, private := lookup("reprise.epsilon"); !private {
		return nil
	}
	bad := errors.New("the model's metadata do not agree with its privacy card")
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
