package release

import (
	"context"
	"errors"
	"fmt"
	"math"

	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/trace"
)

// Options are the settings of [Fit]. The zero value of each stands for its default.
type Options struct {
	Tier   string    // that it makes releases of: partner, or public
	Budget dp.Budget // ε = 8, and 1 of tier public; δ = 1e-6
	// Unit is [synth.UnitUser], [synth.UnitSession] or [synth.UnitRequest]; see
	// [ChooseUnit]. It has no default.
	Unit string
	// TrunkBlocks is how many leading blocks sessions may share with others, as the
	// operator declares it: 64 where the source names sessions. Elsewhere a session is
	// the rows that share one block more than that, and it is 1. Below 0 it is none.
	TrunkBlocks int
	MaxInput    int32 // public limit of input tokens, such as the context window: 131072
	MaxOutput   int32 // of output tokens: 16384

	// Noise is nil, for the system's randomness. Only tests and audits set it: whoever
	// knows the noise can take it off.
	Noise *dp.Noise
	// Unchecked makes a model however large its predicted errors are. Only tests and
	// audits set it.
	Unchecked bool
	// Progress, when not nil, is called with the number of rows read.
	Progress func(rows int64)
	// Commit, when not nil, is called once before noise is drawn, when all rows are read and
	// nothing that can be known without noise stands against the model. It gets what all
	// noise together costs: its ρ, and the part of δ with which prefixes are selected. If
	// it fails, no noise is drawn.
	Commit func(rho, selection float64) error
}

const (
	sourceTrunk = 64
	prefixTrunk = 1
	maxTrunk    = 1 << 16
)

// Fit counts the sessions of a trace in tables, adds noise to each cell, and makes a
// model of the noisy tables. spent says whether noise was drawn, which [Options.Commit]
// allowed: what was measured counts, even if the model is refused as [*TooNoisy].
func Fit(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta,
	o Options) (m *Model, spent bool, err error) {
	if err := o.defaults(meta); err != nil {
		return nil, false, err
	}
	f := newFit(meta, o)
	defer f.source.close()
	if err := f.plan(); err != nil {
		return nil, false, err
	}
	if err := f.source.read(ctx, src, o.Progress); err != nil {
		return nil, false, err
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if o.Commit != nil {
		if err := o.Commit(f.rho, f.selectionDelta()); err != nil {
			return nil, false, err
		}
	}
	if err := f.measure(); err != nil {
		return nil, true, err
	}
	m, err = f.model(meta)
	return m, true, err
}

// newFit lays out what is public before anything is read.
func newFit(meta trace.Meta, o Options) *fit {
	f := &fit{options: o, layout: layout{span: int64(meta.Capture.Length()), size: meta.BlockSize,
		users:   o.Unit == synth.UnitUser,
		sourced: meta.Sessions == sessionsOfSource, maxIn: int64(o.MaxInput), maxOut: int64(o.MaxOutput)}}
	f.later = o.Unit != synth.UnitRequest && (f.sourced || f.size > 0)
	if f.size > 0 {
		f.depth = max(0, o.TrunkBlocks)
	}
	f.sums = f.mostSummed()
	f.edges()
	f.source = collector{size: f.size, depth: f.depth, user: f.users, request: !f.later, sourced: f.sourced,
		most: mostGathered}
	return f
}

func (o *Options) defaults(meta trace.Meta) error {
	if o.Tier == "" {
		o.Tier = synth.TierPartner
	}
	if o.Budget == (dp.Budget{}) {
		o.Budget = dp.Budget{Epsilon: map[string]float64{synth.TierPartner: 8, synth.TierPublic: 1}[o.Tier],
			Delta: 1e-6}
	}
	if o.TrunkBlocks == 0 {
		o.TrunkBlocks = prefixTrunk
		if meta.Sessions == sessionsOfSource {
			o.TrunkBlocks = sourceTrunk
		}
	}
	if o.MaxInput == 0 {
		o.MaxInput = 131072
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = 16384
	}
	if o.Noise == nil {
		o.Noise = dp.NewNoise()
	}
	switch {
	case !releases(o.Tier):
		return errors.New("the tier of a release must be partner or public")
	case o.MaxInput < 2 || o.MaxOutput < 2 || o.MaxInput > 1<<24 || o.MaxOutput > 1<<24:
		return errors.New("the public limits of lengths must be 2 to 16,777,216 tokens")
	case o.TrunkBlocks > maxTrunk:
		return fmt.Errorf("a trunk must have at most %d blocks", maxTrunk)
	case !(o.Budget.Epsilon > 0 && o.Budget.Epsilon <= 100) || !(o.Budget.Delta > 0 && o.Budget.Delta < 0.01):
		return errors.New("epsilon must be above 0 and at most 100, and delta above 0 and below 0.01")
	case o.Unit == synth.UnitSession && meta.Sessions != sessionsOfSource && meta.BlockSize == 0:
		return synth.ErrNoUnit
	case o.Unit != synth.UnitUser && o.Unit != synth.UnitSession && o.Unit != synth.UnitRequest:
		return errors.New("the unit of privacy must be user, session or request")
	}
	if err := synth.Publishable(meta); err != nil {
		return err
	}
	if meta.Capture.Length() < 1e9 {
		return errors.New("the capture window must be a second or longer")
	}
	return nil
}

// A fit is one under way.
type fit struct {
	layout
	options   Options
	source    collector
	rho       float64 // of everything together
	shares    float64 // of all that is measured, of which each part has its own of ρ
	selection *dp.Selection
	selected  []node
	numbers   map[node]int32 // of the selected, the trunk of each
	specs     [tables]dp.NoiseSpec
	noisy     [tables][]int64 // weights
}

// selectionDelta is the part of δ for the selection of trunks.
func (f *fit) selectionDelta() float64 {
	if f.depth > 0 {
		return trunkDelta * f.options.Budget.Delta
	}
	return 0
}

// plan divides the budget, and says what stands against that whatever the rows are.
func (f *fit) plan() error {
	b := f.options.Budget
	f.rho, f.shares, f.rate = dp.Rho(b.Epsilon, b.Delta-f.selectionDelta()), 0, startCells
	var measured []int
	for t := range tables {
		if rows, _ := f.shape(t); rows > 0 || t == ofTrunks && f.depth > 0 {
			f.shares += shares[t]
			measured = append(measured, t)
		}
	}
	if f.depth > 0 {
		f.shares += shares[ofTrunks]
		if _, err := f.planTrunks(); err != nil {
			return err
		}
	}
	for _, t := range measured {
		if _, err := noiseOfTable(tableNames[t], 1, f.share(t)); err != nil {
			return err
		}
	}
	return nil
}

// share is the part of ρ for a table.
func (f *fit) share(table int) float64 { return f.rho * shares[table] / f.shares }

// measure draws all noise: the selection of trunks first, then the number of units,
// which says how many cells the arrivals have, then everything else.
func (f *fit) measure() error {
	noise := f.options.Noise
	f.rate = startCells
	units, votes, err := f.source.votes()
	if err != nil {
		return err
	}
	if f.depth > 0 {
		s, err := f.planTrunks()
		if err != nil {
			return err
		}
		selected, err := selectTrunks(s, votes, noise)
		if err != nil {
			return err
		}
		f.takeTrunks(selected)
		f.selection, f.selected = &s, selected
	}
	for t := range tables {
		rows, columns := f.shape(t)
		if rows == 0 {
			continue
		}
		var err error
		if f.specs[t], err = noiseOfTable(tableNames[t], rows*columns, f.share(t)); err != nil {
			return err
		}
		f.noisy[t] = make([]int64, rows*columns)
		if t == ofSessions {
			f.noisy[t][0] = unit * units
			if err := f.specs[t].Add(noise, f.noisy[t]); err != nil {
				return err
			}
			n := float64(f.noisy[t][0]) / unit
			sd := 1 / math.Sqrt(2*f.share(ofRate))
			f.rate = 1 << min(8, max(4, int(math.Floor(math.Log2(max(1, n/(8*sd)))))))
		}
	}
	if err := f.count(); err != nil {
		return err
	}
	for t := ofSessions + 1; t < tables; t++ {
		if f.noisy[t] == nil {
			continue
		}
		if t == ofLaterInput {
			f.sums = f.limitSums()
			if err := f.countSums(); err != nil {
				return err
			}
		}
		if err := f.specs[t].Add(noise, f.noisy[t]); err != nil {
			return err
		}
	}
	return nil
}

// noiseOfTable is the noise of a table of so many cells at a share of ρ.
func noiseOfTable(name string, cells int, rho float64) (dp.NoiseSpec, error) {
	return dp.Measurement{Name: name, L2Squared: unit * unit, Cells: cells}.WithRho(rho)
}

// count fills the tables, but for the number of units, with exact weights.
func (f *fit) count() error { return f.fill(func(table int) bool { return true }) }

// countSums counts the sums of later turns anew, by the limit that there is by now.
func (f *fit) countSums() error {
	clear(f.noisy[ofLaterInput])
	return f.fill(func(table int) bool { return table == ofLaterInput })
}

// fill adds what all sessions add to some of the tables.
func (f *fit) fill(counts func(table int) bool) error {
	columns := [tables]int{}
	for t := range tables {
		_, columns[t] = f.shape(t)
	}
	add := func(table, row, column int, w int64) {
		if counts(table) {
			f.noisy[table][row*columns[table]+column] += w
		}
	}
	return f.source.each(func(c *collector) error {
		for i := range c.sessions {
			f.findTrunk(&c.sessions[i])
		}
		for _, sessions := range c.units {
			if f.users {
				add(ofPerUnit, 0, at(userEdges, int64(len(sessions))), unit)
			}
			for i, s := range sessions {
				if w := part(unit, len(sessions), i); w > 0 {
					f.contribute(&c.sessions[s], w, add)
				}
			}
		}
		return nil
	})
}
