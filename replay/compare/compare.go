package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// schema names the layout of a [Comparison] as JSON.
const schema = "comparison/2"

// DefaultRounds are enough for a verdict at an alpha of 0.01, and for one of the
// other metrics after Holm at 0.05.
const DefaultRounds = 10

// An Arm is one of the sides of a comparison: run i of every arm is of round i.
type Arm struct {
	Name     string
	Runs     []report.Summary
	Files    []string  // of the runs' results, to name in messages; may be fewer
	Clusters *Clusters // the runs' requests, for the resampling; nil does none
}

// Options say how arms are compared. The zero value is good.
type Options struct {
	Primary     string  // the metric that decides; empty is [DefaultPrimary]
	Alpha       float64 // of the primary metric; 0 is 0.01
	FamilyAlpha float64 // of all others together; 0 is 0.05
	Detect      float64 // a change, such as 0.03, to find the rounds for; 0 is none
	Gate        bool    // it is for finding out whether the second arm is worse in anything
	Plan        *Plan   // of the rounds, made before the first; it names the primary metric and alpha
}

// A Comparison says what tells servers apart, and what does not. A change is
// relative (0.1: B is 10 % above A), of shares absolute. What cannot be said is
// null. Its JSON names are stable.
type Comparison struct {
	Schema      string  `json:"schema"` // [schema]
	Kind        string  `json:"kind"`   // rounds, single or production
	Primary     string  `json:"primary"`
	Alpha       float64 `json:"alpha"`        // of the primary metric
	FamilyAlpha float64 `json:"family_alpha"` // of the others, after Holm
	Confidence  float64 `json:"confidence"`   // of every interval: 1 − alpha
	Power       float64 `json:"power"`        // of what is detectable
	LeastRounds int     `json:"least_rounds"` // with which the primary metric can be significant

	A        string                `json:"a"`
	Versus   []Versus              `json:"versus"` // the other arms, each against A
	Runs     []Run                 `json:"runs"`
	Loosened report.LoosenedLimits `json:"loosened_limits"` // by which the runs are trusted or not
	Warnings []report.Warning      `json:"warnings"`
	Tier     string                `json:"tier"`           // the strictest of the runs
	Plan     *Plan                 `json:"plan,omitempty"` // null where the rounds were made without one

	settings map[string]string // of each arm, what of its settings differs from the others'
	curves   []doc.Series      // the distribution of the primary metric's latency in each arm
}

// Kinds of a [Comparison].
const (
	kindRounds     = "rounds"     // pairs of runs
	kindSingle     = "single"     // one run each: there is no verdict
	kindProduction = "production" // what a trace recorded against a replay of it: there is no verdict
)

// Decisions of a [Versus].
const (
	Worse     = "worse"
	better    = "better"
	notFound  = "not_found" // no difference was found
	undecided = "undecided" // too few rounds, or too few values, for a verdict
)

// Versus is an arm against the first.
type Versus struct {
	B        string     `json:"b"`
	Rounds   int        `json:"rounds"`
	Decision string     `json:"decision"` // by the primary metric, and worse by any guarded one
	Text     string     `json:"text"`     // the decision in words
	Others   []string   `json:"others"`   // differences of the other metrics, in words
	Metrics  []Contrast `json:"metrics"`  // the primary one first

	Uncovered []string `json:"uncovered"` // guarded metrics that have a value on one side only
}

// Decided says whether a difference was found.
func (v *Versus) Decided() bool { return v.Decision == Worse || v.Decision == better }

// Run is a run that was compared.
type Run struct {
	Arm         string          `json:"arm"`
	Round       int             `json:"round"` // from 1
	Trustworthy bool            `json:"trustworthy"`
	Reasons     []report.Reason `json:"reasons"`
	Simulated   bool            `json:"simulated"`
	Model       string          `json:"model"`
	Workload    string          `json:"workload_digest"`
	Seed        string          `json:"seed"` // of the prompts, decimal
	Started     string          `json:"started"`
	Requests    int64           `json:"requests"` // measured
	WarmUp      int64           `json:"warm_up"`  // requests that are not measured: warm-up and cool-down
	File        string          `json:"file,omitempty"`
}

// Trustworthy says whether all runs are.
func (c *Comparison) Trustworthy() bool { return len(c.untrusted()) == 0 }

func (c *Comparison) untrusted() []Run {
	return slices.DeleteFunc(slices.Clone(c.Runs), func(r Run) bool { return r.Trustworthy })
}

// untrustedRuns says how many runs are not trustworthy; "" where all are.
func (c *Comparison) untrustedRuns() string {
	n := len(c.untrusted())
	if n == 0 {
		return ""
	}
	return report.UntrustedRuns(int64(n), int64(len(c.Runs)))
}

// Untrusted says how many runs are not trustworthy, and of the first of them which command says why; "" where all are.
func (c *Comparison) Untrusted() string {
	out := c.untrustedRuns()
	if bad := c.untrusted(); out != "" && bad[0].File != "" {
		out += ": reprise report " + bad[0].File + " says why"
	}
	return out
}

// untrustedWarning is Untrusted with the first reason of the first run.
func (c *Comparison) untrustedWarning() string {
	bad := c.untrusted()
	if len(bad) == 0 || len(bad[0].Reasons) == 0 {
		return c.Untrusted()
	}
	round := ""
	if c.Kind == kindRounds {
		round = fmt.Sprintf("round %d of ", bad[0].Round)
	}
	return fmt.Sprintf("%s. In %s%s, %s", c.Untrusted(), round, textpage.Plain(bad[0].Arm), bad[0].Reasons[0].Text)
}

// A Contrast is one metric in two arms.
type Contrast struct {
	Metric   string `json:"metric"`
	Label    string `json:"label"`
	Unit     string `json:"unit"`
	Primary  bool   `json:"primary"`
	Higher   bool   `json:"higher_is_better"`
	Relative bool   `json:"relative"` // changes are; else they are differences

	Rounds int        `json:"rounds"`   // pairs that have a value in both
	A      *float64   `json:"a_median"` // over those pairs; of kind single, of all
	B      *float64   `json:"b_median"`
	AEach  []*float64 `json:"a_by_round"`
	BEach  []*float64 `json:"b_by_round"`

	Change      *Interval   `json:"change"`      // Hodges-Lehmann
	Shift       *float64    `json:"shift"`       // Hodges-Lehmann, in the unit
	Wilcoxon    *SignedRank `json:"wilcoxon"`    // null below two pairs
	P           *float64    `json:"p"`           // Wilcoxon's after Holm, of all primary metrics or of all others
	T           *PairedT    `json:"paired_t"`    //
	Significant bool        `json:"significant"` // p is at most the alpha of its family, of MinRounds pairs at least
	Detectable  *float64    `json:"detectable"`  // the smallest change that so many rounds would find with the power
	// of the primary metric, that find the change that was asked about with the power
	RoundsFor *int       `json:"rounds_for"`
	Noise     *Noise     `json:"noise"`     //
	Resampled *Resampled `json:"resampled"` // null without the requests

	Guarded bool     `json:"guarded"` // being worse in it decides, whatever the primary metric says
	GuardP  *float64 `json:"guard_p"` // corrected for all guarded metrics, by flipped signs
	// the smallest change for the worse that would be found so with the power
	GuardDetectable *float64 `json:"guard_detectable"`
	Regressed       bool     `json:"regressed"` // it is guarded, and B significantly worse in it

	differences []float64
	byRound     []float64 // differences; NaN of a round without
}

// Noise is how far a metric moves when nothing was changed, as a change: the
// standard deviation of its differences.
type Noise struct {
	From string  `json:"from"` // successive_rounds of A
	N    int     `json:"n"`    // differences
	SD   float64 `json:"sd"`   // of them; of ratios, of their logarithms
}

// Check refuses options that make no sense.
func (o Options) Check() error {
	_, err := o.complete()
	return err
}

// level is the largest p of the primary metric that is a verdict after so many rounds.
func (o *Options) level(rounds int) float64 {
	if o.Plan == nil {
		return o.Alpha
	}
	return o.Plan.level(rounds)
}

func (o Options) complete() (Options, error) {
	if p := o.Plan; p != nil {
		o.Primary, o.Alpha = p.Primary, p.Alpha
	}
	o.Primary = cmp.Or(o.Primary, DefaultPrimary)
	o.Alpha, o.FamilyAlpha = cmp.Or(o.Alpha, 0.01), cmp.Or(o.FamilyAlpha, 0.05)
	for _, alpha := range []float64{o.Alpha, o.FamilyAlpha} {
		if !(alpha >= 1e-6 && alpha <= 0.2) {
			return o, errors.New("alpha: want a probability from 0.000001 to 0.2")
		}
	}
	if !(o.Detect >= 0 && o.Detect < 10) || o.Detect > 0 && o.Detect < 1e-6 {
		return o, errors.New("the change to detect: want a share below 10, such as 0.03")
	}
	primary, err := ParsePrimary(o.Primary)
	if err != nil {
		return o, fmt.Errorf("the primary metric: %w", err)
	}
	o.Primary = primary
	return o, nil
}

// Arms compares two arms or more, each with the first. With one run in every
// arm it is of kind single: only the spread between requests is known, nothing of
// that between runs, and there is no verdict.
func Arms(arms []Arm, options Options) (Comparison, error) {
	o, err := options.complete()
	if err != nil {
		return Comparison{}, err
	}
	if len(arms) < 2 {
		return Comparison{}, errors.New("a comparison needs at least two arms")
	}
	n := len(arms[0].Runs)
	switch {
	case n == 0:
		return Comparison{}, errors.New("an arm has no runs")
	case n > MaxRounds:
		return Comparison{}, fmt.Errorf("a comparison can have at most %d rounds", MaxRounds)
	}
	for _, arm := range arms[1:] {
		if len(arm.Runs) != n {
			return Comparison{}, fmt.Errorf(
				"%s has %s and %s has %s: give as many of each, since they are paired in order",
				arms[0].Name, doc.Many(int64(n), "run"), arm.Name, doc.Many(int64(len(arm.Runs)), "run"))
		}
	}
	c := Comparison{Schema: schema, Kind: kindRounds, Primary: o.Primary, Alpha: o.Alpha, FamilyAlpha: o.FamilyAlpha,
		Confidence: 1 - o.Alpha, Power: power, LeastRounds: LeastRounds(o.Alpha, len(arms)-1), A: arms[0].Name,
		Warnings: []report.Warning{}}
	if n == 1 {
		c.Kind = kindSingle
	}
	if p := o.Plan; p != nil {
		if len(arms) != 2 || n > p.Rounds() {
			return Comparison{}, fmt.Errorf("the plan is of two servers and at most %s",
				doc.Many(int64(p.Rounds()), "round"))
		}
		if c.Plan = p; p.Clear != nil {
			c.LeastRounds = p.Pilot
		}
	}
	c.Tier = arms[0].Runs[0].Run.Tier
	for _, arm := range arms {
		for i := range arm.Runs {
			run := runOf(arm.Name, i+1, &arm.Runs[i])
			if i < len(arm.Files) {
				run.File = arm.Files[i]
			}
			c.Runs = append(c.Runs, run)
			c.Loosened = arm.Runs[i].Verdict.Loosened
			c.Tier = trace.Stricter(c.Tier, arm.Runs[i].Run.Tier)
		}
	}
	for _, arm := range arms[1:] {
		c.Versus = append(c.Versus, contrasts(arms[0], arm, o))
	}
	c.settings = settingsOf(arms)
	for _, arm := range arms {
		if arm.Clusters != nil {
			c.curves = append(c.curves, arm.Clusters.spreads[c.drawnSpread()].curve(arm.Name))
		}
	}
	c.correct()
	for i := range c.Versus {
		c.Versus[i].guard(o.guardLevel(n) / float64(len(c.Versus)))
	}
	c.plan(o)
	c.Warnings = append(c.Warnings, runWarnings(arms)...)
	if says := c.untrustedWarning(); says != "" {
		c.Warnings = append(c.Warnings, report.Warning{Code: warnUntrusted, Text: says})
	}
	c.resultWarnings()
	c.decide()
	return c, nil
}

func runOf(arm string, round int, s *report.Summary) Run {
	return Run{Arm: arm, Round: round, Trustworthy: s.Verdict.Trustworthy, Reasons: s.Verdict.Reasons,
		Simulated: s.Run.Simulated != "",
		Model:     s.Run.Model, Workload: s.Run.Workload, Seed: s.Run.Seed, Started: s.Run.Started,
		Requests: s.Requests.Rows, WarmUp: s.Requests.WarmUp + s.Requests.CoolDown}
}

// contrasts computes everything about two arms that needs no other arm.
func contrasts(a, b Arm, o Options) Versus {
	v := Versus{B: b.Name, Rounds: len(a.Runs), Uncovered: []string{}}
	resampled := resample(a.Clusters, b.Clusters, o.Alpha)
	for _, m := range metricsWith(o.Primary) {
		c := Contrast{Metric: m.name, Label: m.label, Unit: m.unit, Primary: m.name == o.Primary, Guarded: m.guarded(),
			Higher: m.Better == figure.Higher, Relative: !m.share()}
		var as, bs, plain []float64
		for i := range a.Runs {
			of, to := a.Runs[i].Figure(m.Figure), b.Runs[i].Figure(m.Figure)
			c.AEach, c.BEach = append(c.AEach, of), append(c.BEach, to)
			d, ok := m.difference(of, to)
			c.byRound = append(c.byRound, math.NaN())
			if ok {
				c.byRound[i] = d
				as, bs = append(as, *of), append(bs, *to)
				c.differences, plain = append(c.differences, d), append(plain, *to-*of)
			}
		}
		c.Rounds = len(c.differences)
		if c.Rounds == 0 && !c.Primary {
			if c.Guarded && slices.ContainsFunc(slices.Concat(c.AEach, c.BEach),
				func(v *float64) bool { return v != nil }) {
				v.Uncovered = append(v.Uncovered, c.Label)
			}
			continue // such as goodput without objectives
		}
		c.Noise = noiseOf(&m, a.Runs)
		if c.Rounds > 0 {
			slices.Sort(as)
			slices.Sort(bs)
			c.A, c.B = report.Rounded(middle(as), 1e9), report.Rounded(middle(bs), 1e9)
			level := o.Alpha
			if c.Primary {
				level = o.level(len(a.Runs))
			}
			estimate, low, high := shift(c.differences, level)
			c.Change = &Interval{Estimate: *report.Rounded(m.change(estimate), 1e9), Low: m.bound(low),
				High: m.bound(high)}
			absolute, _, _ := shift(plain, o.Alpha)
			c.Shift = report.Rounded(absolute, 1e9)
			if c.Resampled = resampled.of(&m); len(a.Runs) == 1 {
				c.Resampled = c.Resampled.of(c.A, c.B, c.Change)
			}
		} else if len(a.Runs) == 1 {
			c.A, c.B = c.AEach[0], c.BEach[0]
		}
		if c.Rounds > 1 {
			w := signedRank(c.differences)
			c.Wilcoxon, c.T = &w, pairedT(c.differences)
		}
		v.Metrics = append(v.Metrics, c)
	}
	slices.SortStableFunc(v.Metrics, func(a, b Contrast) int {
		return cmp.Compare(b2i(b.Primary), b2i(a.Primary))
	})
	return v
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bound is a bound of an interval as a change.
func (m *metric) bound(difference *float64) *float64 {
	if difference == nil {
		return nil
	}
	return report.Rounded(m.change(*difference), 1e9)
}

// correct gives every metric its p after Holm: the primary metrics of all arms are
// one family, all others another.
func (c *Comparison) correct() {
	for _, family := range []struct {
		primary bool
		alpha   float64
	}{{true, c.Alpha}, {false, c.FamilyAlpha}} {
		var members []*Contrast
		var p []float64
		c.each(func(_ *Versus, m *Contrast) {
			if m.Wilcoxon != nil && m.Primary == family.primary {
				members, p = append(members, m), append(p, m.Wilcoxon.P)
			}
		})
		for i, adjusted := range holm(p) {
			members[i].P = &adjusted
			alpha := family.alpha
			if c.Plan != nil && family.primary {
				alpha = c.Plan.level(len(members[i].AEach))
				members[i].P = cmp.Or(c.Plan.Clear, members[i].P)
			}
			members[i].Significant = *members[i].P <= alpha*(1+1e-9) && members[i].Rounds >= minRounds
		}
	}
}

func (c *Comparison) each(f func(*Versus, *Contrast)) {
	for i := range c.Versus {
		for j := range c.Versus[i].Metrics {
			f(&c.Versus[i], &c.Versus[i].Metrics[j])
		}
	}
}

// plan says what the rounds could have found, and how many would find what was
// asked about: at the alpha of the first step of Holm, which every metric passes
// that is the only one to differ.
func (c *Comparison) plan(o Options) {
	sizes := map[bool]int{}
	c.each(func(_ *Versus, m *Contrast) {
		if m.Wilcoxon != nil {
			sizes[m.Primary]++
		}
	})
	type key struct {
		rounds  int
		primary bool
	}
	known := map[key]float64{}
	c.each(func(_ *Versus, m *Contrast) {
		if m.Wilcoxon == nil {
			return
		}
		alpha := c.FamilyAlpha / float64(sizes[false])
		if m.Primary {
			alpha = c.Alpha / float64(sizes[true])
			if c.Plan != nil {
				alpha = cmp.Or(c.Plan.level(len(m.AEach)), alpha)
			}
		}
		_, sd := stat.MeanStdDev(m.differences, nil)
		k := key{m.Rounds, m.Primary}
		if _, ok := known[k]; !ok {
			known[k] = detectable(m.Rounds, alpha)
		}
		size := known[k] * sd
		asked := o.Detect
		if m.Relative {
			size, asked = math.Expm1(size), math.Log1p(asked)
		}
		if m.Rounds >= minRounds {
			m.Detectable = report.Rounded(size, 1e9)
		}
		if asked > 0 && sd > 0 && m.Primary {
			m.RoundsFor = trace.Ptr(roundsFor(asked/sd, alpha))
		}
	})
}

// noiseOf is the noise of a metric, from each round of A to the next.
func noiseOf(m *metric, runs []report.Summary) *Noise {
	var differences []float64
	for i := 1; i < len(runs); i++ {
		if d, ok := m.difference(runs[i-1].Figure(m.Figure), runs[i].Figure(m.Figure)); ok {
			differences = append(differences, d)
		}
	}
	if len(differences) < 2 {
		return nil
	}
	_, sd := stat.MeanStdDev(differences, nil)
	return &Noise{From: "successive_rounds", N: len(differences), SD: *report.Rounded(sd, 1e9)}
}
