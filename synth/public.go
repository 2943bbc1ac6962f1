package synth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// FitPublic makes a differentially private model of a trace, which may be
// published: of the rows nothing is kept but noisy counts.
//
//  1. The trace must have a declared capture, else the error is [ErrNoCapture]: its
//     times count from the begin of that, and periods divide it, so that neither
//     the first request nor the last moves a cell.
//  2. A unit of privacy is chosen: a user, or a session. Of each unit at most
//     C=8 requests are kept, drawn uniformly.
//  3. The prefixes that count as known to all are selected by noisy counts of
//     the units that carry them. From then on they are public.
//  4. The kept requests are counted in cells that are public as well: lengths,
//     the time, reuse category and depth against the public prefixes and against
//     the unit's own past, turns and pauses. No unit changes the cells of
//     another's requests, so the sensitivity of each histogram is C, see
//     [dp.Contribution].
//  5. Noise is added to every cell, as [dp.NewPlan] divides the budget.
//  6. Cells that do not stand out of the noise are left out, the rest made to
//     agree with each other, and the result is the tables of a model.
//
// When the predicted error of total tokens or of a 99th percentile is above
// [maxPredictedError] the error is [*TooNoisy]. The trace was measured all the
// same: who tries until it passes publishes a choice among all attempts, so each
// counts in a ledger. spent tells whether noise was drawn.
//
// What must be public: the length of the capture, the block size and the limits.
// Lost: users, models and settings of requests; bursts within a period (arrivals
// are Poisson there); reuse that few users share; a unit's requests
// beyond C.
func FitPublic(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta, o PublicOptions) (m *Model, r *Release, spent bool, err error) {
	if err := o.defaults(meta); err != nil {
		return nil, nil, false, err
	}
	c, err := o.collect(ctx, src, meta, func(int64) *dp.Noise { return o.Noise })
	if err != nil {
		return nil, nil, false, err
	}
	f := publicFit{options: o, layout: newLayout(&o, meta, c.sessions), source: c}
	m, r, err = f.fit(meta)
	return m, r, true, err
}

// collect reads the trace into samples of its units, which noise draws.
func (o *PublicOptions) collect(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta, noise func(unit int64) *dp.Noise) (*collector, error) {
	sourced := meta.Sessions == sessionsOfSource
	if o.Unit == UnitSession && !sourced {
		return nil, ErrNoUnit
	}
	key, err := unitKey(o.Unit)
	if err != nil {
		return nil, err
	}
	c := &collector{key: key, size: meta.BlockSize, sessions: sourced && o.Unit != UnitRequest, alone: o.Unit == UnitRequest, end: int64(meta.Capture.Length()),
		bound: o.Contribution, noise: noise}
	if err := c.read(ctx, src, o.Progress); err != nil {
		return nil, err
	}
	if _, rest := c.index[nobody]; o.Unit != UnitRequest && (len(c.units) == 0 || len(c.units) == 1 && rest) {
		return nil, ErrNoUnit
	}
	return c, nil
}

// read takes all rows.
func (c *collector) read(ctx context.Context, src trace.Reader[trace.Request], progress func(int64)) error {
	c.index, c.known, c.last = map[int64]int32{}, map[ownBlock]int32{}, map[ownSession]pastTurn{}
	return trace.Each(src, func(row int64, r *trace.Request) error {
		if row%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(row)
			}
		}
		return c.addRow(row, r)
	})
}

// A publicFit is one fit under way.
type publicFit struct {
	*layout
	options PublicOptions
	source  *collector
	plan    dp.Plan
	noisy   [histograms]*noisy
	dropped [histograms]int64
}

// fit measures the trace, makes tables of what was measured, and states how.
func (f *publicFit) fit(meta trace.Meta) (*Model, *Release, error) {
	if err := f.measure(); err != nil {
		return nil, nil, err
	}
	requests := max(1, f.noisy[ofRequests].cells[0])
	cells := &cellModel{requests: min(requests, math.MaxInt32), sessions: f.sessions}
	s := shaper{layout: f.layout, noisy: f.noisy, model: cells}
	end, categories := s.times()
	in := s.fit(s.noisy[ofInput].line(), s.fineIn, s.in)
	out := s.fit(s.noisy[ofOutput].line(), s.fineOut, s.out)
	s.lengths(categories, in, out)
	s.shared()
	s.turns()
	s.distances(end)
	predicted := s.predict()
	r := f.release(predicted)
	if _, worst := worstOf(predicted); worst > maxPredictedError {
		return nil, r, &TooNoisy{Errors: predicted, Epsilon: f.options.Budget.Epsilon, Records: f.source.rows, Unit: f.options.Unit}
	}
	m := &Model{kSwap: 1, span: end, cells: cells, meta: f.meta(meta)}
	b, err := json.Marshal(card{TierPublic, r})
	if err != nil {
		return nil, nil, errors.New("the privacy card has a number that JSON cannot write")
	}
	m.setCard(string(b))
	m.finish()
	return m, r, nil
}

// meta is that of the model. A workload's format names the digest of the model that it
// came from, and that model may be anything but public.
func (f *publicFit) meta(of trace.Meta) trace.Meta {
	format, _, _ := strings.Cut(of.SourceFormat, ",")
	return trace.Meta{BlockSize: of.BlockSize, Tokenizer: of.Tokenizer, Template: of.Template, SourceFormat: format, Captures: of.Captures,
		Tier: TierPublic, Unit: f.options.Unit}
}

// measure draws all noise.
func (f *publicFit) measure() error {
	budget := f.options.Budget
	if f.size > 0 {
		part := dp.Budget{Epsilon: budget.Epsilon * selectionShare, Delta: budget.Delta / 2}
		budget = dp.Budget{Epsilon: budget.Epsilon - part.Epsilon, Delta: budget.Delta - part.Delta}
		nodes, err := selectNodes(f.source.units, part, f.options.Noise)
		if err != nil {
			return err
		}
		f.nodes = nodes
	}
	ms, which := f.measurements()
	var err error
	if f.plan, err = dp.NewPlan(budget, ms); err != nil {
		return err
	}
	for i, h := range which {
		cells, dropped := f.count(h, f.source.units)
		if err := f.plan.Noise[i].Add(f.options.Noise, cells); err != nil {
			return err
		}
		f.noisy[h], f.dropped[h] = &noisy{f.plan.Noise[i], cells}, dropped
	}
	return nil
}

var protects = map[string]string{
	UnitUser:    "one user with all requests; requests that name no user are one user's",
	UnitSession: "one session with all its requests, and a person with several sessions less; requests without a session are one session's",
	UnitRequest: "one request, not a person",
}

// release says how the model was made, and with which predicted errors.
func (f *publicFit) release(predicted PublicErrors) *Release {
	o := &f.options
	// What the cells depend on beside noisy counts. It must be known to everybody anyway.
	public := []string{
		fmt.Sprintf("the capture window of %v that the operator declared, from whose begin all times count", time.Duration(f.span)),
		fmt.Sprintf("the limits of %d input and %d output tokens; longer requests are cut to these", o.MaxInput, o.MaxOutput),
		fmt.Sprintf("the edges of all cells: powers of two, quarter octaves for single lengths, %d equal periods of the capture window", periods),
		"that the source names " + map[bool]string{true: "sessions", false: "no sessions"}[f.sessions],
	}
	if f.size > 0 {
		public = append(public, fmt.Sprintf("the block size of %d tokens", f.size))
	}
	r := &Release{Statement: dp.Statement{Unit: o.Unit, Protects: protects[o.Unit], Budget: o.Budget, Mechanism: f.plan.Mechanism,
		Rho: f.plan.Rho, Contribution: o.Contribution, Clip: f.clip, CaptureNS: f.span, MaxInput: o.MaxInput, MaxOutput: o.MaxOutput,
		Public: public, Measurements: f.plan.Noise, Predicted: predicted}}
	if f.size > 0 {
		r.Selection = &dp.Selected{Selection: f.nodes.selection, NodesPerUnit: nodesPerUnit, Nodes: len(f.nodes.list),
			Budget: dp.Budget{Epsilon: o.Budget.Epsilon * selectionShare, Delta: o.Budget.Delta / 2}}
	}
	counted := 0.0
	for _, n := range f.noisy[ofInput].cells {
		counted += float64(n)
	}
	all := float64(max(1, f.noisy[ofRequests].cells[0]))
	r.Dropped = math.Round(1000*math.Min(1, math.Max(0, 1-counted/all))) / 1000
	r.Exact = Exact{Requests: f.source.rows, Units: int64(len(f.source.units)), NotCounted: map[string]int64{}}
	if u, ok := f.source.index[nobody]; ok && o.Unit != UnitRequest {
		r.Exact.Unnamed = f.source.units[u].Seen
	}
	for i := range f.source.units {
		r.Exact.NotSampled += f.source.units[i].Seen - int64(len(f.source.units[i].Kept))
	}
	for _, h := range []int{ofLengths, ofInput, ofOutput} {
		r.Exact.NotCounted[histogramNames[h]] = f.dropped[h]
	}
	return r
}
