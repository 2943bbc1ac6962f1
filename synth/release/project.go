package release

import (
	"math"
	"slices"
)

// A noisy table is its cells in units of privacy, with the standard deviation of their
// noise. What is made of it is post-processing and costs nothing.
type noisyTable struct {
	cells   []float64
	columns int
	sd      float64
}

func (t *noisyTable) row(i int) []float64 { return t.cells[i*t.columns : (i+1)*t.columns] }

func (t *noisyTable) rows() int { return len(t.cells) / max(1, t.columns) }

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// project is the nearest point to x with no cell below 0 and the sum total. It takes
// one threshold off all cells, so that noise adds no tail.
func project(x []float64, total float64) []float64 {
	out := make([]float64, len(x))
	down := slices.Clone(x)
	slices.Sort(down)
	slices.Reverse(down)
	upTo, cut, ok := -total, 0.0, false
	for i, v := range down {
		upTo += v
		if c := upTo / float64(i+1); v > c {
			cut, ok = c, true
		}
	}
	for i, v := range x {
		switch {
		case total <= 0 || !ok:
			out[i] = max(total, 1e-9) / float64(len(x))
		default:
			out[i] = max(0, v-cut)
		}
	}
	return out
}

// falling is x with densities that do not rise, but where the rise stands out of the
// noise, by pooling neighbours; width are the widths of the cells.
func falling(x, width []float64, sd float64) []float64 {
	type pool struct {
		mass, width float64
		cells       int
	}
	var pools []pool
	rises := func(a, b pool) bool {
		rise := b.mass/b.width - a.mass/a.width
		noise := sd * math.Hypot(math.Sqrt(float64(a.cells))/a.width, math.Sqrt(float64(b.cells))/b.width)
		return rise > 0 && rise < 4*noise
	}
	for i, v := range x {
		pools = append(pools, pool{v, width[i], 1})
		for n := len(pools); n > 1 && rises(pools[n-2], pools[n-1]); n = len(pools) {
			pools[n-2].mass += pools[n-1].mass
			pools[n-2].width += pools[n-1].width
			pools[n-2].cells += pools[n-1].cells
			pools = pools[:n-1]
		}
	}
	var out []float64
	for _, p := range pools {
		for range p.cells {
			out = append(out, p.mass/p.width*width[len(out)])
		}
	}
	return out
}

// top is the last cell of a table of lengths from which on the mass stands out of the
// noise, and that mass; none where none does.
func top(x []float64, sd float64) (cell int, mass float64) {
	for j := len(x) - 1; j >= 0; j-- {
		if mass += x[j]; mass > 4*sd*math.Sqrt(float64(len(x)-j)) {
			return j, mass
		}
	}
	return none, 0
}

const (
	tailFalls  = 0.2 // a usual tail, each octave
	tailVaries = 0.2 // how far off its mean is, as a share
)

// tailed makes the cells from the top on a tail that falls from cell to cell, with their
// mass and, as far as such a tail can have it, their mean; values are those of the cells.
// A top that stands out by itself stays, and the tail begins above it.
func tailed(x []float64, sd float64, values []float64) []float64 {
	j, mass := top(x, sd)
	if j <= 0 || sd == 0 {
		return x
	}
	if x[j] > 8*sd {
		j, mass = j+1, max(1e-9, mass-x[j])
	}
	mean, noise := 0.0, 0.0
	for i := j; i < len(x); i++ {
		mean += x[i] * values[i] / mass
		noise += math.Pow(sd*values[i]/mass, 2)
	}
	tail := func(by float64) (cells []float64, mean float64) {
		weight, w := 0.0, 1.0
		for i := j; i < len(x); i++ {
			cells = append(cells, w)
			weight, mean = weight+w, mean+w*values[i]
			w *= by
		}
		for i := range cells {
			cells[i] *= mass / weight
		}
		return cells, mean / weight
	}
	if j+1 < len(x) {
		_, usual := tail(math.Pow(tailFalls, math.Log2(values[j+1]/values[j])))
		mean = usual + (mean-usual)/(1+noise/math.Pow(tailVaries*usual, 2))
	}
	lo, hi := 0.0, 0.9
	for range 30 {
		if _, m := tail((lo + hi) / 2); m < mean {
			lo = (lo + hi) / 2
		} else {
			hi = (lo + hi) / 2
		}
	}
	cells, _ := tail(lo)
	return append(slices.Clone(x[:j]), cells...)
}

// middles are the means of the cells of a table between edges, each of so many.
func middles(edges []int64, each int) (out []float64) {
	for i := 0; i+each < len(edges); i += each {
		out = append(out, math.Sqrt(float64(edges[i])*float64(edges[i+each])))
	}
	return out
}

// refine divides coarse cells: by the fine counts where a cell is far above the noise
// of its fine cells and they agree with it, else in proportion to how many lengths
// each has, as an octave falls.
func refine(coarse []float64, t *noisyTable, sd float64, edges []int64) []float64 {
	out := make([]float64, len(t.cells))
	for i, c := range coarse {
		cells := slices.Clone(t.cells[i*fine : (i+1)*fine])
		flat := make([]float64, fine)
		for j := range cells {
			if lo, hi := edges[i*fine+j], edges[i*fine+j+1]; hi == lo {
				cells[j] = math.Inf(-1) // no length is here
			} else {
				flat[j] = math.Log2(float64(hi) / float64(lo))
			}
		}
		whole, there := sum(flat), 0.0
		for j := range cells {
			if flat[j] > 0 {
				there += cells[j]
				flat[j] *= c / whole
			} else {
				cells[j] = -1e18
			}
		}
		if c > 6*max(t.sd, sd, .1) && there > .7*c {
			flat = project(cells, c)
		}
		copy(out[i*fine:], flat)
	}
	return out
}

// alone are the rows of a table: the more by themselves the more they stand out of the
// noise, else what all rows together say. There is no step between the two, across which
// a little noise would change much.
func alone(t *noisyTable, values []float64) *noisyTable {
	clean := func(x []float64, sd float64) []float64 {
		total := max(1e-9, sum(x))
		if values != nil {
			x = tailed(x, sd, values)
		}
		return project(x, total)
	}
	all := make([]float64, t.columns)
	for i := range t.rows() {
		for j, v := range t.row(i) {
			all[j] += v
		}
	}
	all = clean(all, t.sd*math.Sqrt(float64(t.rows())))
	out := &noisyTable{columns: t.columns, sd: t.sd}
	whole := max(1e-9, sum(all))
	for i := range t.rows() {
		row := t.row(i)
		total := max(1, sum(row))
		own := credible(total, t.sd*float64(t.columns))
		for j, v := range clean(row, t.sd) {
			out.cells = append(out.cells, own*v+(1-own)*total*all[j]/whole)
		}
	}
	return out
}

// credible is how far, from 0 to 1, counts that add up to a mass are to be believed by
// themselves, when the noise of all their cells together is so much.
func credible(mass, noise float64) float64 {
	if noise == 0 {
		return 1
	}
	by := mass / noise
	return by * by / (1 + by*by)
}
