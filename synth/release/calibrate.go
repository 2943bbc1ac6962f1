package release

import (
	"math"
	"slices"
)

const (
	calibrationLeast = 1 << 12 // sessions of a drawing whose sums are compared
	calibrationMost  = 1 << 15
	calibrationSteps = 5
	mostTilt         = 2.0
	stepTilt         = 0.5
	// unmeasured is how far off the sums of a drawing are without calibration, as a share.
	// Sums with more noise than that are followed less.
	unmeasured = 0.2
	// limitsMatched is up to how many limits the sums of drawings are moved. What is above
	// one is taken to be off as what is below it is.
	limitsMatched = 3
)

// laterSums are the tokens of the prompts of later turns: those in blocks that turns before
// carried, and the others.
type laterSums struct{ there, fresh int64 }

func (s *laterSums) add(input, hit int64) {
	hit = min(hit, input)
	s.there, s.fresh = s.there+hit, s.fresh+input-hit
}

// clipped are parts of a weight: the sums over a limit, both made smaller where together
// they are above it. They are rounded to the nearest, for rounded down the small sums of
// many sessions would be missed; together they are at most the weight.
func (s laterSums) clipped(limit, weight int64) (there, fresh int64) {
	limit = max(limit, s.there+s.fresh)
	there = mulDiv(2*weight, s.there, limit) - mulDiv(weight, s.there, limit)
	fresh = mulDiv(2*weight, s.fresh, limit) - mulDiv(weight, s.fresh, limit)
	return there, min(fresh, weight-there)
}

// mostSummed is the largest limit of the sums of a session: two prompts of the largest size.
func (l *layout) mostSummed() int64 { return 2 * l.maxIn }

// Limits of the sums of a session: so many times what one is expected to have, for above that
// are few, and never below some prompts. A limit far above the sums drowns them in noise.
const (
	sumsExpected = 8
	leastSummed  = 1 << 12
)

// limitSums is the limit of the sums of a session, as noisy counts of first inputs and turns
// say: a power of two. What a session adds is clipped at it, and so is what is drawn.
func (f *fit) limitSums() int64 {
	table := func(t int) []float64 {
		cells := make([]float64, len(f.noisy[t]))
		for i, w := range f.noisy[t] {
			cells[i] = float64(w) / unit
		}
		return project(cells, max(1, float64(f.noisy[ofSessions][0])/unit))
	}
	turns := make([]float64, len(turnEdges)-1)
	for i := range turns {
		turns[i] = float64(turnEdges[i])
	}
	expected := mean(table(ofInput), middles(f.input, fine)) * mean(table(ofTurns), turns)
	limit := int64(leastSummed)
	for float64(limit) < sumsExpected*expected && limit < f.mostSummed() {
		limit *= 2
	}
	return min(limit, f.mostSummed())
}

// A tilt moves the weights of tables: towards more new tokens, typed in a turn of a long
// session or in a branch that grows, and towards branches that keep more of the prompt
// before them.
type tilt [2]float64

// slopes are how much the logarithm of each sum grows by each tilt.
type slopes [2][2]float64

// calibrated is a model of shaped tables whose drawings have the sums of later turns that
// were measured, as far as a tilt of the tables can give them: what noise did to many
// cells, each of little weight, is taken off their sum. known are the slopes of a model
// much like it, or nil.
func (l *layout) calibrated(shaped [tables][]float64, noisy *[tables]noisyTable, known *slopes) (*Model, *slopes) {
	m := l.whole(shaped)
	have, n := m.meanSums(l.sums), max(1, noisy[ofSessions].cells[0])
	from := m.meanSums(limitsMatched * l.sums)
	var want [2]float64 // in logarithms
	for i, x := range noisy[ofLaterInput].cells {
		if have[i] <= 0 { // such as what is there before, of a log without blocks
			continue
		}
		off := max(0.2, min(5, x/n/have[i]))
		sd := noisy[ofLaterInput].sd / n / have[i] / unmeasured
		want[i] = math.Log(from[i]) + math.Log(off)/(1+sd*sd)
	}
	short := func(m *Model) (d [2]float64) {
		for i, x := range m.meanSums(limitsMatched * l.sums) {
			if have[i] > 0 {
				d[i] = want[i] - math.Log(max(1e-12, x))
			}
		}
		return d
	}
	const step = 0.2
	var at tilt
	left := short(m)
	if known == nil {
		known = &slopes{}
		for j := range at {
			var near tilt
			near[j] = step
			for i, x := range short(l.whole(l.tilted(shaped, near))) {
				known[i][j] = (left[i] - x) / step
			}
		}
	}
	by := 1.0
	for range calibrationSteps {
		more := leastSquares(known, left)
		if math.Abs(more[0])+math.Abs(more[1]) < 0.01 {
			break
		}
		next := at
		for j := range at {
			next[j] = max(-mostTilt, min(mostTilt, at[j]+by*max(-stepTilt, min(stepTilt, more[j]))))
		}
		nearer := l.whole(l.tilted(shaped, next))
		if d := short(nearer); d[0]*d[0]+d[1]*d[1] < left[0]*left[0]+left[1]*left[1] {
			m, at, left = nearer, next, d
		} else {
			by /= 2
		}
	}
	return m, known
}

// leastSquares solves a·x = b, but for what hardly moves b.
func leastSquares(a *slopes, b [2]float64) (x [2]float64) {
	const damping = 1e-3
	dot := func(i, j int) float64 { return a[0][i]*a[0][j] + a[1][i]*a[1][j] }
	p, q, r := dot(0, 0)+damping, dot(0, 1), dot(1, 1)+damping
	u, v := a[0][0]*b[0]+a[1][0]*b[1], a[0][1]*b[0]+a[1][1]*b[1]
	return [2]float64{(u*r - v*q) / (p*r - q*q), (v*p - u*q) / (p*r - q*q)}
}

// meanSums are the mean sums of a drawn session, over their limit.
func (m *Model) meanSums(limit int64) (mean [2]float64) {
	p := m.draw(1, int(max(calibrationLeast, min(calibrationMost, 4*m.units))))
	const whole = 1 << 40
	for s, trunk := range p.trunk {
		var sums laterSums
		turns := p.turns[p.first[s]:p.first[s+1]]
		depth := int32(0)
		if trunk != none {
			depth = int32(m.trunks[trunk].depth)
		}
		for _, t := range turns[1:min(len(turns), turnsSummed)] {
			sums.add(int64(t.input), int64(max(t.keep, depth))*int64(m.size))
		}
		there, fresh := sums.clipped(limit, whole)
		mean[0], mean[1] = mean[0]+float64(there), mean[1]+float64(fresh)
	}
	for i := range mean {
		mean[i] /= float64(len(p.trunk)) * whole
	}
	return mean
}

// tilted are tables whose columns are multiplied by powers of e; the sums of their rows
// stay.
func (l *layout) tilted(shaped [tables][]float64, by tilt) [tables][]float64 {
	move := func(table int, power func(row, column int) float64) {
		_, columns := l.drawn(table)
		out := slices.Clone(shaped[table])
		for i := 0; i < len(out); i += columns {
			row := out[i : i+columns]
			was := sum(row)
			for j := range row {
				row[j] *= math.Exp(power(i/columns, j))
			}
			is := max(1e-12, sum(row))
			for j := range row {
				row[j] *= was / is
			}
		}
		shaped[table] = out
	}
	move(ofTyped, func(row, octave int) float64 {
		if row < turnRows-2 {
			return 0
		}
		return by[0] * float64(octave) / 2
	})
	move(ofRatio, func(_, size int) float64 {
		return by[0] * math.Log2(float64(sizeEdges[size]+sizeEdges[size+1])/20000) / 2
	})
	move(ofKept, func(_, share int) float64 { return by[1] * float64(keptEdges[share]+keptEdges[share+1]) / 1000 })
	return shaped
}
