package synth

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A lagEnergy says how far the lags of links are from those of the trace: the sum, over fine
// and coarse bins of their logarithm, of how much more or less they are. Lags are measured in blocks
// that are referenced between, as an LRU cache feels them, and in time; and they are
// counted by links, and by the blocks that these reuse.
type lagEnergy struct {
	links, blocks [lagWays][]float64 // more than in the trace, by bin
	perBlock      float64            // links for each reused block
}

// A lagMove adds the lag of a link, or takes it away.
type lagMove struct {
	bins   [lagWays]int
	reused float64
	by     float64
}

const (
	lagMeasures = 2               // of a lag: in blocks, in time
	lagWays     = 2 * lagMeasures // to count it: by each measure in fine and in coarse bins
	coarseBins  = 4               // fine bins in a coarse one
	lagBins     = 256             // of each kind of links
)

func newLagEnergy(links int, reused float64) lagEnergy {
	e := lagEnergy{perBlock: float64(links) / max(1, reused)}
	for way := range lagWays {
		e.links[way], e.blocks[way] = make([]float64, 2*lagBins), make([]float64, 2*lagBins)
	}
	return e
}

// bin is that of a lag of a kind of links.
func (e *lagEnergy) bin(kind int, lag float64) int {
	return kind*lagBins + min(lagBins-1, int(lagsOctave*math.Log(lag+1)))
}

// coarse is the coarse bin of a fine one.
func (e *lagEnergy) coarse(bin int) int { return bin/lagBins*lagBins + bin%lagBins/coarseBins }

// cost is how much moves add to the energy, where 1 is that of one link.
func (e *lagEnergy) cost(moves []lagMove) float64 {
	cost := 0.0
	for way := range lagWays {
		for i := range moves { // each bin once
			links, blocks, first := 0.0, 0.0, true
			bin := moves[i].bins[way]
			for j := range moves {
				if o := &moves[j]; o.bins[way] == bin {
					first = first && j >= i
					links += o.by
					blocks += o.by * o.reused
				}
			}
			if first {
				l, b := e.links[way][bin], e.blocks[way][bin]
				cost += math.Abs(l+links) - math.Abs(l) + (math.Abs(b+blocks)-math.Abs(b))*e.perBlock
			}
		}
	}
	return cost / lagMeasures
}

func (e *lagEnergy) apply(moves ...lagMove) {
	for i := range moves {
		m := &moves[i]
		for way, bin := range m.bins {
			e.links[way][bin] += m.by
			e.blocks[way][bin] += m.by * m.reused
		}
	}
}

// clone is a copy that may be changed.
func (e *lagEnergy) clone() lagEnergy {
	out := *e
	for way := range lagWays {
		out.links[way], out.blocks[way] = slices.Clone(e.links[way]), slices.Clone(e.blocks[way])
	}
	return out
}

// A turnEnergy says how far the numbers of sessions with at least so many turns are from
// what is wanted, in about their standard deviations.
type turnEnergy struct {
	have, want []float64 // by turns
	weight     []float64
}

func newTurnEnergy(have, want []int32) turnEnergy {
	top := 2*max(slices.Max(have), slices.Max(want)) + 2
	tally := func(turns []int32) []float64 {
		c := make([]float64, top+1)
		for _, n := range turns {
			c[n]++
		}
		for n := top - 1; n >= 0; n-- {
			c[n] += c[n+1]
		}
		return c
	}
	e := turnEnergy{have: tally(have), want: tally(want)}
	for _, w := range e.want {
		e.weight = append(e.weight, 1/math.Sqrt(w+.25))
	}
	return e
}

// change lets a session have other turns than before, and returns what that adds to the
// energy.
func (e *turnEnergy) change(from, to int32) float64 {
	cost, by := 0.0, 1.0
	if to < from {
		from, to, by = to, from, -1
	}
	for n := from + 1; n <= to; n++ {
		n := min(int(n), len(e.have)-1)
		off := e.have[n] - e.want[n]
		cost += e.weight[n] * (math.Abs(off+by) - math.Abs(off))
		e.have[n] += by
	}
	return cost
}

// tailNoise is the standard deviation of the logarithm of a redrawn number of turns.
const tailNoise = .05

// redrawn returns the numbers of turns that are wanted: those of the k longest sessions
// come from a generalised Pareto tail that has the mean and the second moment of the 2k
// longest (Hosking and Wallis, "Parameter and quantile estimation for the generalized
// Pareto distribution", Technometrics 1987). It is Pareto, exponential or bounded,
// whichever these ask for.
func redrawn(turns []int32, k int, r *rand.Rand) []int32 {
	t := slices.Clone(turns)
	slices.SortFunc(t, func(a, b int32) int { return int(b) - int(a) })
	k = min(k, (len(t)-1)/2)
	if k < 1 || t[0] == t[2*k] {
		return t
	}
	least, n := float64(t[2*k]), float64(2*k)
	mean, square := 0.0, 0.0
	for _, turns := range t[:2*k] {
		mean += (float64(turns) - least) / n
		square += (float64(turns) - least) * (float64(turns) - least) / n
	}
	ratio := mean * mean / max(1e-9, square-mean*mean)
	shape, scale := max(-.5, min((1-ratio)/2, .45)), mean*(1+ratio)/2
	// What the fit leaves of the second moment of the k longest is made up for.
	drawn, want, longest, above := make([]float64, k), 0.0, 2*float64(t[0]), float64(t[k])
	sum := 0.0
	for j := range k {
		rank := (float64(j) + .5) / n
		x := least - scale*math.Log(rank)
		if math.Abs(shape) > 1e-6 {
			x = least + scale/shape*(math.Pow(rank, -shape)-1)
		}
		drawn[j] = max(0, x-above)
		sum += drawn[j] * drawn[j]
		want += (float64(t[j]) - above) * (float64(t[j]) - above)
	}
	for j, x := range drawn {
		x = (above + x*math.Sqrt(want/max(1e-9, sum))) * math.Exp(tailNoise*r.NormFloat64())
		t[j] = max(int32(above), int32(math.Round(min(x, longest))))
	}
	slices.SortFunc(t[:k], func(a, b int32) int { return int(b) - int(a) })
	return t
}
