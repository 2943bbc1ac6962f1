package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"reprise/replay/engine"
)

// Where the value of a [Parameter] is from.
const (
	fromFit    = "fitted"
	fromServer = "stated" // by the operator, or by the server when it was recorded
	// the records do not tell it: it has no effect in them, or none that is told from another
	fromDefault = "not identified"
)

// A Parameter is a setting of the engine with how well it is known.
type Parameter struct {
	Name  string `yaml:"name" json:"name"`
	Value string `yaml:"value" json:"value"`
	From  string `yaml:"from" json:"from"` // fitted, stated or not identified
	// Low and High are the ends of the 95 % interval of what was fitted. What was not
	// identified has only the end up to which the records allow it, or from which.
	Low  string `yaml:"low,omitempty" json:"low,omitempty"`
	High string `yaml:"high,omitempty" json:"high,omitempty"`

	halfWidth float64 // of the interval of a cost, as a logarithm
}

// widest is how wide half of an interval may be for a cost to be identified: a factor of 2.
const widest = math.Ln2

// batches are the parts of a record whose misses are taken as independent of each other:
// what follows in time is alike.
const batches = 10

// A fitted is an engine that was fitted to the requests of a part.
type fitted struct {
	ctx     context.Context
	records []*Record
	of      part
	config  engine.Config
	loss    float64
	stated  map[string]bool         // settings that were not fitted
	told    map[string]bool         // settings beside the costs that the records tell
	names   []string                // costs that are identified
	most    map[string]engine.Picos // of the others, the largest that the records allow; 0 is any
	half    map[string]float64      // half widths of the intervals
}

// requests is how many are compared.
func (f *fitted) requests() (n int) {
	for _, r := range f.records {
		for i := range r.requests {
			if r.requests[i].measured && f.of(r, i) {
				n++
			}
		}
	}
	return n
}

// exact is a mean square below which misses are nothing: one in a thousand, squared.
const exact = 1e-6

// same tells whether a loss is no more than least by what chance does: the misses of some
// twenty requests on end are about as good as one.
func (f *fitted) same(loss, least float64) bool {
	return loss <= least*(1+min(20/float64(max(f.requests(), 1)), 0.2))+exact
}

// dropUnidentified leaves out costs that the records do not tell, one after another, each
// time the one with the widest interval, as long as the others explain the records as well
// without it. Those that are left are f.names.
func (f *fitted) dropUnidentified() error {
	for _, name := range slices.Clone(f.names) { // what is not missed at all, whatever its interval
		without := f.config
		was := *without.Costs.Of(name)
		*without.Costs.Of(name) = 0
		if l := f.lossOf(without); len(f.names) > 1 && f.same(l, f.loss) {
			f.config, f.loss = without, min(l, f.loss)
			f.names = slices.DeleteFunc(f.names, func(n string) bool { return n == name })
			f.most[name] = f.largest(name, was)
		}
	}
	for {
		half, err := f.halfWidths(f.names)
		if err != nil {
			return err
		}
		f.half = map[string]float64{}
		wide := slices.Clone(f.names)
		slices.SortFunc(wide, func(a, b string) int {
			return cmp.Compare(half[slices.Index(f.names, b)], half[slices.Index(f.names, a)])
		})
		for i, name := range f.names {
			f.half[name] = half[i]
		}
		dropped := false
		for _, name := range wide {
			if f.half[name] <= widest || len(f.names) == 1 {
				break
			}
			without := slices.DeleteFunc(slices.Clone(f.names), func(n string) bool { return n == name })
			start := f.config.Costs
			*start.Of(name) = 0
			c, l, err := f.fitCosts(f.config, without, []engine.Costs{start})
			if err != nil {
				return err
			}
			if !f.same(l, f.loss) {
				continue // the records need it, little as they say how much of it
			}
			was := *f.config.Costs.Of(name)
			f.config, f.loss, f.names, dropped = c, min(l, f.loss), without, true
			f.most[name] = f.largest(name, was)
			break
		}
		if !dropped {
			return nil
		}
	}
}

// largest is how large a cost that was dropped may be before the records say that it is
// not; 0 is any.
func (f *fitted) largest(name string, from engine.Picos) engine.Picos {
	fits := func(v engine.Picos) bool {
		c := f.config
		*c.Costs.Of(name) = v
		return f.same(f.lossOf(c), f.loss)
	}
	v := max(from, 1000)
	for range 24 {
		if fits(v) {
			break
		}
		v = v * 2 / 3
	}
	for range 24 {
		next := v * 3 / 2
		if next > 1e13 {
			return 0
		}
		if !fits(next) {
			return v
		}
		v = next
	}
	return 0
}

// nudge is by how much a cost is changed to see what it does, as a logarithm.
const nudge = 0.02

// sensitivity is how the misses change with the logarithm of each named cost, by central
// differences: for each record a row for each miss.
func sensitivity(records []*Record, c engine.Config, names []string, of part) ([][][]float64, error) {
	base, err := misses(records, c, of)
	if err != nil {
		return nil, err
	}
	out := make([][][]float64, len(records))
	for k := range base {
		out[k] = make([][]float64, len(base[k]))
		for i := range out[k] {
			out[k][i] = make([]float64, len(names))
		}
	}
	for j, name := range names {
		var sides [2][][]miss
		for side, sign := range []float64{nudge, -nudge} {
			moved := c
			moved.Costs = c.Costs.Scaled([]string{name}, []float64{sign})
			if sides[side], err = misses(records, moved, of); err != nil {
				return nil, err
			}
		}
		for k := range base {
			for i := range base[k] {
				out[k][i][j] = (sides[0][k][i].log - sides[1][k][i].log) / (2 * nudge)
			}
		}
	}
	return out, nil
}

// halfWidths are half of the 95 % intervals of the logarithms of named costs: those of
// least squares with the covariance that misses in batches have (the sandwich of Huber,
// 1967, with clusters). A cost without any effect has an infinite one.
func (f *fitted) halfWidths(names []string) ([]float64, error) {
	slopes, err := sensitivity(f.records, f.config, names, f.of)
	if err != nil {
		return nil, err
	}
	all, err := misses(f.records, f.config, f.of)
	if err != nil {
		return nil, err
	}
	n := len(names)
	bread, meat := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	clusters := 0
	for k := range all {
		weight := 1 / float64(max(len(all[k]), 1))
		count := min(batches, max(len(all[k])/timesOf/5, 1))
		score := make([][]float64, count)
		for i, m := range all[k] {
			b := i * count / len(all[k])
			if score[b] == nil {
				score[b] = make([]float64, n)
			}
			for x := range n {
				score[b][x] += weight * slopes[k][i][x] * m.log
				for y := x; y < n; y++ {
					bread.SetSym(x, y, bread.At(x, y)+weight*slopes[k][i][x]*slopes[k][i][y])
				}
			}
		}
		for _, s := range score {
			if s != nil {
				clusters++
				meat.SymRankOne(meat, 1, mat.NewVecDense(n, s))
			}
		}
	}
	return widthsOf(bread, meat, clusters), nil
}

// widthsOf are half widths from the parts of a sandwich.
func widthsOf(bread, meat *mat.SymDense, clusters int) []float64 {
	n := bread.SymmetricDim()
	half := make([]float64, n)
	largest := 0.0
	for i := range n {
		half[i] = math.Inf(1)
		largest = max(largest, bread.At(i, i))
	}
	for i := range n { // so that what has no effect can be inverted, to something immense
		bread.SetSym(i, i, bread.At(i, i)+largest*1e-9)
	}
	var inverse, left, cov mat.Dense
	if err := inverse.Inverse(bread); err != nil && largest == 0 {
		return half
	}
	left.Mul(&inverse, meat)
	cov.Mul(&left, &inverse)
	free := max(clusters-n, 1)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(free)}.Quantile(0.975)
	for i := range n {
		if bread.At(i, i) <= largest*2e-9 {
			continue
		}
		variance := cov.At(i, i) * float64(clusters) / float64(free)
		// The misses of an exact fit are those of rounding; the nudge bounds what is known then.
		half[i] = max(t*math.Sqrt(max(variance, 0)), nudge/20)
	}
	return half
}

func (f *fitted) measureIntervals() error {
	half, err := f.halfWidths(f.names)
	for i, name := range f.names {
		f.half[name] = half[i]
	}
	return err
}

// parameters says what was found of each.
func (f *fitted) parameters() []Parameter {
	var out []Parameter
	for _, name := range f.config.Costs.Names() {
		v := *f.config.Costs.Of(name)
		p := Parameter{Name: name, Value: v.Text(), From: fromFit, halfWidth: f.half[name]}
		if most, dropped := f.most[name]; dropped {
			p.From, p.halfWidth = fromDefault, math.Inf(1)
			if most > 0 {
				p.High = "at most " + rounded(most).Text()
			}
		} else {
			p.Low, p.High = rounded(engine.Picos(float64(v)*math.Exp(-p.halfWidth))).Text(),
				rounded(engine.Picos(float64(v)*math.Exp(p.halfWidth))).Text()
		}
		out = append(out, p)
	}
	var top peak
	for _, r := range f.records {
		at := r.peak()
		top = peak{max(top.inFlight, at.inFlight), max(top.decoding, at.decoding), max(top.kv, at.kv)}
	}
	for _, s := range []struct {
		name  string
		value int
		least int // that the records had
	}{{"kv_tokens", f.config.KVTokens, top.kv}, {"max_num_seqs", f.config.MaxSeqs, top.decoding},
		{"max_num_batched_tokens", f.config.MaxBatchTokens, 0}} {
		p := Parameter{Name: s.name, Value: strconv.Itoa(s.value), From: fromDefault}
		switch {
		case f.stated[s.name]:
			p.From = fromServer
		case f.told[s.name]:
			p.From = fromFit
		case s.least > 0:
			p.Low = fmt.Sprintf("at least %d", s.least)
		}
		out = append(out, p)
	}
	caching := Parameter{Name: "prefix_caching", Value: strconv.FormatBool(f.config.PrefixCaching), From: fromDefault}
	switch {
	case f.stated[caching.Name]:
		caching.From = fromServer
	case f.told[caching.Name]:
		caching.From = fromFit
	}
	return append(out, caching)
}

// rounded keeps four digits.
func rounded(p engine.Picos) engine.Picos {
	unit := engine.Picos(1)
	for p/unit >= 10_000 {
		unit *= 10
	}
	return (p + unit/2) / unit * unit
}
