package synth

import (
	"context"
	"errors"
	"strings"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// Tiers that a model may be of, beside those it inherits.
const (
	TierPublic  = "public"
	tierPartner = "partner"
)

// Units of privacy: what may be added to a trace or taken away without being
// noticed.
const (
	UnitUser    = "user"
	UnitSession = "session"
	UnitRequest = "request" // protects one request, not a person
)

// ε above WarnEpsilon protects little; above MaxEpsilon, for all releases of one
// source together, it hardly protects.
const (
	WarnEpsilon = 4
	MaxEpsilon  = 10
)

// PublicOptions are the settings of [FitPublic]. But for Unit the zero value of
// each stands for its default.
type PublicOptions struct {
	Budget       dp.Budget       // ε = 1, δ = 1e-6
	Unit         string          // [UnitUser], [UnitSession] or [UnitRequest], see [ChooseUnit]; it has no default
	Contribution dp.Contribution // [dp.DefaultContribution]; of [UnitRequest], one record
	MaxInput     int32           // public limit of input tokens, such as the context window: 131072
	MaxOutput    int32           // of output tokens: 16384
	// Noise is nil, for the system's randomness. Only tests set it: whoever knows
	// the noise can take it off.
	Noise *dp.Noise
	// Progress, when not nil, is called with the number of rows read.
	Progress func(rows int64)
}

// ErrNoUnit is the error of [FitPublic] for a trace without users and sessions.
var ErrNoUnit = errors.New("the trace names neither users nor sessions of its source, so nothing says which requests are one person's; " +
	"the unit request would protect one request, not a person")

// ErrNoCapture is the error of [FitPublic] for a trace without a declared capture.
var ErrNoCapture = errors.New("the trace has no declared capture window: its times count from the first request, which is one person's, " +
	"so that noise for one user would not hide that user. Import the source anew with its window: reprise import … --capture-begin T --capture-end T")

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
// [MaxPredictedError] the error is [*TooNoisy]. The trace was measured all the
// same: who tries until it passes publishes a choice among all attempts, so each
// counts in a ledger. spent tells whether noise was drawn.
//
// What must be public: the length of the capture, the block size and the limits.
// Lost: users, models and settings of requests; bursts within a period (arrivals
// are Poisson there); reuse that few users share; what of a unit's requests is
// above C.
func FitPublic(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta, o PublicOptions) (m *Model, r *Release, spent bool, err error) {
	if err := o.defaults(meta); err != nil {
		return nil, nil, false, err
	}
	c, err := o.collect(ctx, src, meta)
	if err != nil {
		return nil, nil, false, err
	}
	f := publicFit{options: o, layout: newLayout(&o, meta, c.sessions), source: c}
	m, r, err = f.fit(meta)
	return m, r, true, err
}

func (o *PublicOptions) defaults(meta trace.Meta) error {
	if o.Budget == (dp.Budget{}) {
		o.Budget = dp.Budget{Epsilon: 1, Delta: 1e-6}
	}
	if o.Contribution == (dp.Contribution{}) {
		o.Contribution = dp.DefaultContribution
	}
	if o.Unit == UnitRequest {
		o.Contribution = dp.Contribution{Records: 1, PerCell: 1}
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
	case o.Contribution.Records < 1 || o.Contribution.PerCell < 1 || o.Contribution.PerCell > o.Contribution.Records:
		return errors.New("a unit contributes at least one record, and in a cell no more than in all")
	case o.MaxInput < 1 || o.MaxOutput < 1 || o.MaxInput > 1<<24 || o.MaxOutput > 1<<24:
		return errors.New("the public limits of the lengths are from 1 to 16,777,216 tokens")
	}
	return Publishable(meta)
}

// Publishable says why no public model can be made of the trace that meta
// describes, whatever its rows: of its tier, or [ErrNoCapture].
func Publishable(meta trace.Meta) error {
	switch {
	case meta.Tier == tierPartner:
		return errors.New("its tier is partner: what a row of it says depends on other users' rows, so noise for one user would not protect that user; fit the trace of tier internal")
	case meta.Tier == TierPublic:
		return errors.New("it is public already")
	case !meta.Capture.Declared():
		return ErrNoCapture
	}
	return nil
}

// collect reads the trace into samples of its units.
func (o *PublicOptions) collect(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta) (*collector, error) {
	sourced := meta.Sessions == sessionsOfSource
	if o.Unit == UnitSession && !sourced {
		return nil, ErrNoUnit
	}
	key, err := unitKey(o.Unit)
	if err != nil {
		return nil, err
	}
	c := &collector{key: key, size: meta.BlockSize, sessions: sourced && o.Unit != UnitRequest, alone: o.Unit == UnitRequest, end: int64(meta.Capture.Length()),
		bound: o.Contribution, noise: func(int64) *dp.Noise { return o.Noise }}
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
		return c.add(row, r)
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

func (f *publicFit) fit(meta trace.Meta) (*Model, *Release, error) {
	if err := f.measure(); err != nil {
		return nil, nil, err
	}
	s := shaper{layout: f.layout, noisy: f.noisy}
	cells, end := s.shape()
	predicted := s.predict()
	r := f.release(predicted)
	if _, worst := worstOf(predicted); worst > MaxPredictedError {
		return nil, r, &TooNoisy{Errors: predicted, Epsilon: f.options.Budget.Epsilon, Records: f.source.rows, Unit: f.options.Unit}
	}
	// A workload's format names the digest of the model that it came from, and
	// that model may be anything but public.
	format, _, _ := strings.Cut(meta.SourceFormat, ",")
	m := &Model{kSwap: 1, span: end, cells: cells, meta: trace.Meta{BlockSize: meta.BlockSize, Tokenizer: meta.Tokenizer,
		Template: meta.Template, SourceFormat: format, Tier: TierPublic, Unit: f.options.Unit}}
	if err := m.attach(r); err != nil {
		return nil, nil, err
	}
	m.finish()
	return m, r, nil
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

// ChooseUnit says what a trace can protect: users, else sessions of its source.
func ChooseUnit(src trace.Reader[trace.Request], meta trace.Meta) (string, error) {
	found := errors.New("found")
	err := trace.Each(src, func(_ int64, r *trace.Request) error {
		if r.User != nil {
			return found
		}
		return nil
	})
	switch {
	case errors.Is(err, found):
		return UnitUser, nil
	case err != nil:
		return "", err
	case meta.Sessions == sessionsOfSource:
		return UnitSession, nil
	}
	return "", ErrNoUnit
}
