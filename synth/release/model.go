package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/trace"
)

// A Model is tables that sessions are drawn from. It is differentially private, and so
// is everything that is drawn.
type Model struct {
	layout
	weights [tables][]int64 // of cells, row by row; empty where a table was not measured
	units   int64           // sessions to draw
	meta    trace.Meta
	about   dp.SessionStatement
}

// Statement is what the privacy card says of the model.
func (m *Model) Statement() dp.SessionStatement { return m.about }

// Meta is the metadata of the model.
func (m *Model) Meta() trace.Meta { return m.meta }

// Sessions is how many sessions are drawn at scale 1.
func (m *Model) Sessions() int64 { return m.units }

var protects = map[string]string{
	synth.UnitUser:    "one user with all requests; requests that name no user are one user's",
	synth.UnitSession: "one session with all its requests, and a person with several sessions less",
	synth.UnitRequest: "one request, not a person",
}

// weightOne is the integer weight of one unit in a shaped table.
const weightOne = 1 << 10

// maxWeight keeps products of a sum of weights and a number of sessions within 63 bits.
const maxWeight = 1 << 35

// model makes a model of the noisy tables.
func (f *fit) model(meta trace.Meta) (*Model, error) {
	var noisy [tables]noisyTable
	for t := range tables {
		_, columns := f.shape(t)
		noisy[t] = noisyTable{columns: columns, sd: f.specs[t].SD / unit}
		for _, w := range f.noisy[t] {
			noisy[t].cells = append(noisy[t].cells, float64(w)/unit)
		}
	}
	m, known := f.drawable(noisy, nil)
	m.meta = f.modelMeta(meta)
	m.about = f.statement()
	noise := f.predict(m, noisy, known)
	m.about.Predicted = typical(noise)
	if err := m.card(); err != nil {
		return nil, err
	}
	if worst := worstOf(noise); worst != "" && !f.options.Unchecked {
		return nil, &TooNoisy{Errors: noise, Why: worst, Epsilon: f.options.Budget.Epsilon, Unit: f.options.Unit}
	}
	return m, nil
}

// modelMeta is the metadata of a model of the trace that meta describes, without its card.
func (f *fit) modelMeta(meta trace.Meta) trace.Meta {
	// a workload's names the digest of a model, which may be internal
	format, _, _ := strings.Cut(meta.SourceFormat, ",")
	return trace.Meta{BlockSize: meta.BlockSize, Tokenizer: meta.Tokenizer, Template: meta.Template,
		SourceFormat: format, Captures: meta.Captures, Tier: f.options.Tier, Unit: f.options.Unit,
		Capture: meta.Capture.Undated()}
}

// releases tells whether a tier is one of releases.
func releases(tier string) bool { return tier == synth.TierPartner || tier == synth.TierPublic }

// card puts a card with nothing but the statement into the metadata.
func (m *Model) card() error {
	text, err := json.Marshal(cardOf{Tier: m.meta.Tier, Sessions: &m.about})
	if err != nil {
		return fmt.Errorf("the statement of the release has a number that JSON cannot write: %w", err)
	}
	m.setCard(string(text))
	return nil
}

// cardOf is what this package reads of a privacy card.
type cardOf struct {
	Tier     string               `json:"tier"`
	Sessions *dp.SessionStatement `json:"sessions"`
}

func (m *Model) setCard(text string) {
	sum := sha256.Sum256([]byte(text))
	m.meta.Card, m.meta.CardHash = text, hex.EncodeToString(sum[:])
	m.meta.Digest = m.digest()
}

// SetCard gives the model a privacy card, which must hold a statement of its release under
// the key "sessions". The digest of the model covers the card.
func (m *Model) SetCard(text string) error {
	var c cardOf
	if json.Unmarshal([]byte(text), &c) != nil || c.Tier != m.meta.Tier || c.Sessions == nil ||
		c.Sessions.Unit != m.about.Unit || c.Sessions.Budget != m.about.Budget {
		return errors.New("the privacy card belongs to another release")
	}
	m.about = *c.Sessions
	m.setCard(text)
	return nil
}

// drawable makes a model of noisy tables. known are slopes of its calibration, or nil.
func (l *layout) drawable(noisy [tables]noisyTable, known *slopes) (*Model, *slopes) {
	shaped := l.shaped(noisy)
	if !l.later {
		return l.whole(shaped), nil
	}
	return l.calibrated(shaped, &noisy, known)
}

// whole makes integer weights of shaped tables. Nothing after this uses floating point,
// so that every machine draws the same.
func (l *layout) whole(shaped [tables][]float64) *Model {
	m := &Model{layout: *l}
	for t := range tables {
		rows, columns := l.drawn(t)
		m.weights[t] = make([]int64, rows*columns)
		for i := range shaped[t] {
			m.weights[t][i] = int64(min(maxWeight/float64(rows*columns), math.Round(shaped[t][i]*weightOne)))
		}
	}
	m.units = max(1, m.weights[ofSessions][0]/weightOne)
	return m
}

func (f *fit) statement() dp.SessionStatement {
	o := &f.options
	public := []string{
		fmt.Sprintf("the capture window of %v that the operator declared, from whose begin all times count",
			time.Duration(f.span)),
		fmt.Sprintf("the limits of %d input and %d output tokens; longer requests count as these", f.maxIn, f.maxOut),
		fmt.Sprintf("the edges of all cells, and that %d later turns of a session count", turnsCounted),
		fmt.Sprintf("the limit of %d tokens in %d turns of a session together, as noisy counts say",
			f.sums, turnsSummed),
		"that the source names " + map[bool]string{true: "sessions", false: "no sessions"}[f.sourced],
		"whether the source has text, and so a tokenizer and a chat template",
	}
	if f.size > 0 {
		public = append(public, fmt.Sprintf("the block size of %d tokens, and that a trunk has %d blocks at most",
			f.size, f.depth))
	}
	s := dp.SessionStatement{Unit: o.Unit, Protects: protects[o.Unit], Budget: o.Budget, Mechanism: dp.Gaussian,
		Rho: f.rho, CaptureNS: f.span,
		MaxInput: f.maxIn, MaxOutput: f.maxOut, Public: public}
	if !f.sourced && o.Unit == synth.UnitSession {
		s.Protects = fmt.Sprintf("one session: all requests whose prompts share the first %s, since the source "+
			"names no sessions; a person with several sessions less",
			map[bool]string{true: "block", false: fmt.Sprintf("%d blocks", f.depth+1)}[f.depth == 0])
	}
	if f.selection != nil {
		s.Trunks = &dp.Trunks{Selection: *f.selection, Blocks: f.depth, Delta: f.selectionDelta(),
			Selected: len(f.trunks)}
	}
	for t := range tables {
		if f.noisy[t] != nil {
			s.Tables = append(s.Tables, dp.Table{Name: tableNames[t], Cells: f.specs[t].Cells,
				Sigma: f.specs[t].SD / unit, Rho: f.specs[t].Rho})
		}
	}
	return s
}
