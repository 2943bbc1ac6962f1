package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/doc"
)

// A Plan says before the first round of a comparison which metric decides, how many rounds
// are made at most, and after which of them the verdict may come. It is made from
// pilot rounds, which are not in the test: so whatever was seen in them makes no difference to
// its error.
type Plan struct {
	Primary string  `json:"primary"`
	Chosen  bool    `json:"chosen"` // by the pilot rounds; else asked for, or the default
	Alpha   float64 `json:"alpha"`
	Pilot   int     `json:"pilot_rounds"`

	SD      *float64 `json:"sd"`       // of the differences of the primary metric in the pilot rounds; null without
	UpperSD *float64 `json:"sd_upper"` // that the rounds are planned with, see [upperSD]
	Detect  float64  `json:"detect,omitempty"`
	Needed  int      `json:"rounds_needed,omitempty"` // to find Detect with the power
	Power   *float64 `json:"power"`                   // with which the rounds find Detect

	// Clear is the p of the pilot rounds where they decide by themselves, see [clearAlpha]; null where they do not.
	Clear *float64 `json:"clear_p,omitempty"`

	Looks  []int     `json:"looks"`  // rounds after which the verdict may come; the last has all rounds
	Levels []float64 `json:"levels"` // the largest p that is a verdict at each

	Candidates []Candidate `json:"candidates,omitempty"` // what the pilot rounds say of each metric that could decide
}

// A Candidate is a metric that may decide, as pilot rounds show it.
type Candidate struct {
	Metric     string  `json:"metric"`
	SD         float64 `json:"sd"`         // of ln(B ÷ A)
	Detectable float64 `json:"detectable"` // the smallest change that [DefaultRounds] would find with the power
}

// Check refuses a plan that was damaged, and names its metric as it is printed now.
func (p *Plan) Check() error {
	primary, err := ParsePrimary(p.Primary)
	p.Primary = primary
	ok := err == nil && len(p.Looks) > 0 && len(p.Looks) == len(p.Levels) && p.Pilot >= 0 && p.Alpha > 0 && p.Alpha < 1
	for i := range p.Looks {
		ok = ok && p.Looks[i] >= 1 && p.Looks[i] <= MaxRounds && (i == 0 || p.Looks[i] > p.Looks[i-1])
	}
	if !ok {
		return errors.New("not a plan of a comparison")
	}
	return nil
}

// Rounds is how many rounds are made at most.
func (p *Plan) Rounds() int { return p.Looks[len(p.Looks)-1] }

// leastPilot is how many pilot rounds say anything of the spread.
const leastPilot = 3

// DefaultPilot is how many pilot rounds are made: their spread is known to some 30 %, and
// its upper bound is 1.46 times what was seen.
const DefaultPilot = 6

// planConfidence is that of the upper bound of the spread that rounds are planned with.
const planConfidence = 0.8

// upperSD is the upper confidence bound of the standard deviation of n normal values, by
// the distribution of chi squared. Planned with it, a test has its power with this
// confidence; planned with what was seen, in about half of the cases only. R. H. Browne
// (1995), On the use of a pilot sample for sample size determination.
func upperSD(sd float64, n int) float64 {
	of := distuv.ChiSquared{K: float64(n - 1)}
	return sd * math.Sqrt(float64(n-1)/of.Quantile(1-planConfidence))
}

// candidates are the metrics that pilot rounds may choose, the one that says most about a
// server first: latencies that a slower server makes longer by about as much as it is
// slower. Throughput is not among them, since in an open loop it is that of the arrivals; nor is
// session time, most of which users and tools take; nor ITL, which says what TPOT does.
func candidates() (out []metric) {
	for _, latency := range []*figure.Subject{figure.E2E, figure.TTFT, figure.TPOT} {
		for _, statistic := range []figure.Statistic{figure.Mean, figure.P50, figure.P90, figure.P95, figure.P99} {
			out = append(out, metricOf(figure.Of(statistic, latency)))
		}
	}
	return out
}

// alike is how many times the smallest spread another may have and still count as alike:
// what so few rounds cannot tell apart: two sample deviations of 6 normal values differ by more
// in 39 % of the cases. Among metrics that are alike the first of [candidates] is
// taken. E2E is first since it has every phase of a request in it; where a part of a latency
// is always the same, as the time of a network, it hides noise and change alike.
const alike = 1.5

// NewPlan plans a comparison of so many rounds at most; 0 makes as many as the change of
// [Options.Detect] needs. The pilot arms are two, or none, and then the primary metric is that of
// the options.
func NewPlan(pilot []Arm, options Options, rounds int) (Plan, error) {
	o, err := options.complete()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Primary: o.Primary, Alpha: o.Alpha, Detect: o.Detect}
	if len(pilot) > 0 {
		p.Pilot = len(pilot[0].Runs)
		if len(pilot) != 2 || p.Pilot < leastPilot || len(pilot[1].Runs) != p.Pilot {
			return p, fmt.Errorf("a pilot has %d rounds of two servers at least", leastPilot)
		}
		if err := p.choose(pilot[0].Runs, pilot[1].Runs, options); err != nil {
			return p, err
		}
	}
	if p.Clear != nil {
		p.Looks, p.Levels = []int{p.Pilot}, []float64{clearAlpha}
		return p, nil
	}
	var d design
	if p.Detect > 0 {
		if p.SD == nil {
			return p, errors.New("how many rounds find a change is planned from pilot rounds, and there are none")
		}
		shift := math.Inf(1)
		if *p.UpperSD > 0 {
			shift = math.Log1p(p.Detect) / *p.UpperSD
		}
		p.Needed, d = plannedRounds(shift, p.Alpha)
		rounds = cmp.Or(rounds, p.Needed)
		if rounds > MaxRounds {
			return p, fmt.Errorf("a change of %s in %s needs about %s at alpha %s, and a comparison has %d at most: "+
				"make the rounds longer, detect a larger change, or give --rounds and accept less power",
				doc.Percent(p.Detect), labelOf(p.Primary), doc.Many(int64(p.Needed), "round"),
				doc.Number(p.Alpha), MaxRounds)
		}
		if rounds != p.Needed {
			d = newDesign(rounds, p.Alpha)
		}
		p.Power = report.Rounded(d.power(shift), 1e9)
	} else {
		if rounds < 1 || rounds > MaxRounds {
			return p, fmt.Errorf("a comparison has 1 to %d rounds", MaxRounds)
		}
		d = newDesign(rounds, p.Alpha)
	}
	p.Looks, p.Levels = d.looks, d.levels
	return p, nil
}

// choose takes the primary metric, if none is asked for: one whose differences spread least,
// or no more than [alike], and which so finds a change of a given size in the fewest rounds.
func (p *Plan) choose(a, b []report.Summary, options Options) error {
	asked := options.Primary
	of := map[string]float64{}
	at := detectable(DefaultRounds, p.Alpha)
	// differ is false where both sides of every round were the same.
	each := map[string][]float64{}
	spreadOf := func(m *metric) (sd float64, ok, differ bool) {
		var differences []float64
		for i := range a {
			if d, ok := m.difference(a[i].Figure(m.Figure), b[i].Figure(m.Figure)); ok {
				differences = append(differences, d)
			}
		}
		if len(differences) < len(a) {
			return 0, false, false
		}
		_, sd = stat.MeanStdDev(differences, nil)
		each[m.name] = differences
		return sd, true, sd > 0 || differences[0] != 0
	}
	least := math.Inf(1)
	for _, m := range candidates() {
		if sd, _, differ := spreadOf(&m); differ {
			least = min(least, sd)
			of[m.name] = sd
			p.Candidates = append(p.Candidates,
				Candidate{m.name, *report.Rounded(sd, 1e9), *report.Rounded(min(math.Expm1(at*sd), 1e9), 1e9)})
		}
	}
	switch {
	case asked != "":
		f, err := figure.Parse(asked, comparable)
		if err != nil {
			return err
		}
		m := metricOf(f)
		sd, ok, _ := spreadOf(&m)
		switch {
		case ok && !m.share():
			of[m.name] = sd
		case p.Detect > 0 && m.share():
			return fmt.Errorf("%s is a share: --detect plans for metrics that change by a factor", m.label)
		case p.Detect > 0:
			return fmt.Errorf("%s has no value in some of the pilot rounds, so that there is nothing to plan with: a "+
				"p99 needs 100 successful requests in a run", m.label)
		}
	case len(p.Candidates) > 0:
		at := slices.IndexFunc(p.Candidates, func(c Candidate) bool { return of[c.Metric] <= alike*least })
		p.Primary, p.Chosen = p.Candidates[at].Metric, true
	}
	p.Clear = clear(each[p.Primary], len(p.Candidates))
	if f, err := figure.Parse(p.Primary, comparable); err == nil && options.Gate &&
		(stat.Mean(each[p.Primary], nil) > 0) == (f.Better == figure.Higher) {
		p.Clear = nil // B is better, and may be worse in what users feel
	}
	if sd, ok := of[p.Primary]; ok {
		p.SD, p.UpperSD = report.Rounded(sd, 1e9), report.Rounded(upperSD(sd, p.Pilot), 1e9)
	} else if p.Detect > 0 { // every round was the same on both sides
		p.SD, p.UpperSD = trace.Ptr(0.0), trace.Ptr(0.0)
	}
	return nil
}

// clearAlpha is the largest p by which pilot rounds decide, after a correction for all metrics that they may choose
// from: a change of some seven times the spread of six rounds. It is what such an end adds to alpha.
const clearAlpha = 1e-4

// clear is the p of the t-test of the differences in pilot rounds, corrected for as many metrics; nil where more
// rounds have to tell.
func clear(differences []float64, metrics int) *float64 {
	t := pairedT(differences)
	if t == nil || len(differences) < minRounds {
		return nil
	}
	if p := t.P * float64(max(metrics, 1)); p <= clearAlpha {
		return &p
	}
	return nil
}

// labelOf is a metric for people.
func labelOf(name string) string {
	f, err := figure.Parse(name, comparable)
	if err != nil {
		return name
	}
	return f.Title()
}

// String says what is planned, in one or two sentences.
func (p *Plan) String() string {
	var s strings.Builder
	label := labelOf(p.Primary)
	switch {
	case p.Chosen && len(p.Candidates) > 1:
		fmt.Fprintf(&s, "%s decides: over %s its change varied by %s, and no change of %d metrics by clearly less.",
			label, doc.Many(int64(p.Pilot), "pilot round"), hundredths(*p.SD)+" %", len(p.Candidates))
	case p.SD != nil:
		fmt.Fprintf(&s, "%s decides; it varies by %s over %s.", label, hundredths(*p.SD)+" %",
			doc.Many(int64(p.Pilot), "pilot round"))
	default:
		fmt.Fprintf(&s, "%s decides.", label)
	}
	if p.Clear != nil {
		return s.String() + fmt.Sprintf(" The change in the pilot rounds is so much larger (p %s by the t-test) "+
			"that they are the verdict, and no other rounds are made.", equals(p.Clear))
	}
	s.WriteString(" Being significantly worse in " + guardNames() + ", decides too.")
	if p.Detect > 0 {
		fmt.Fprintf(&s, " A change of %s needs %s (power %s, alpha %s, SD of at most %s).", doc.Percent(p.Detect),
			doc.Many(int64(p.Needed), "round"), doc.Number(power), doc.Number(p.Alpha), hundredths(*p.UpperSD)+" %")
		if p.Rounds() < p.Needed {
			fmt.Fprintf(&s, " With %s the power is %s.", doc.Many(int64(p.Rounds()), "round"), doc.Number(*p.Power))
		}
	}
	if len(p.Looks) > 1 {
		fmt.Fprintf(&s, " At most %s, and fewer if it is decided after %s.", doc.Many(int64(p.Rounds()), "round"),
			orList(p.Looks[:len(p.Looks)-1]))
	}
	return s.String()
}

// orList joins what is there for a choice: 8, 12 or 16.
func orList[T any](of []T) string {
	var words []string
	for _, one := range of {
		words = append(words, fmt.Sprint(one))
	}
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// level is the largest p that is a verdict after so many rounds: 0 where none may come
// then, such as between two looks.
func (p *Plan) level(rounds int) float64 {
	if i := slices.Index(p.Looks, rounds); i >= 0 {
		return p.Levels[i]
	}
	return 0
}

// next is the look after so many rounds; 0 when there is none.
func (p *Plan) next(rounds int) int {
	for _, n := range p.Looks {
		if n > rounds {
			return n
		}
	}
	return 0
}
