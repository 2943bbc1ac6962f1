package synth

import (
	"fmt"
	"math"
	"strconv"

	"reprise/anonymize/dp"
)

// maxPredictedError is the predicted error of total tokens or of a 99th
// percentile above which no public model is made.
const maxPredictedError = 0.10

// PublicErrors are predicted against the sampled requests: what 19 of 20 fits
// stay below. They follow from the noise and the noisy counts alone, so they
// tell nothing more of the trace. What sampling a unit's requests left out they do
// not know, and where within a cell of a fifth of its value the values lie only as
// far as the cells beside it tell.
type PublicErrors = dp.Errors

// worstOf is the greatest of the errors, by name.
func worstOf(e PublicErrors) (name string, worst float64) {
	for _, x := range []struct {
		name string
		at   float64
	}{{"total input", e.InputTotal}, {"total output", e.OutputTotal}, {"the 99th percentile of input", e.InputP99}, {"the 99th percentile of output", e.OutputP99}} {
		if !(x.at <= worst) {
			name, worst = x.name, x.at
		}
	}
	return name, worst
}

// A TooNoisy error is why [FitPublic] made no model.
type TooNoisy struct {
	Errors  PublicErrors
	Epsilon float64
	Records int64
	Unit    string
}

// Error implements error.
func (e *TooNoisy) Error() string {
	name, worst := worstOf(e.Errors)
	size := "above 1000 %"
	if worst < 10 {
		size = strconv.FormatFloat(100*worst, 'f', 0, 64) + " %"
	}
	return fmt.Sprintf("%d records are too few for ε=%g with a %s as the unit of privacy: predicted error of %s %s, and at most %.0f %% is published; "+
		"a longer trace helps, and so do lower public limits of the lengths (--max-input, --max-output)", e.Records, e.Epsilon, e.Unit, name, size, 100*maxPredictedError)
}

// predict returns the errors of the lengths.
func (s *shaper) predict() PublicErrors {
	requests := s.noisy[ofRequests]
	count := requests.spec.SD / math.Max(1, float64(requests.cells[0]))
	var e PublicErrors
	e.InputTotal, e.InputP99 = s.noisy[ofInput].errors(s.fineIn, count, float64(s.model.requests))
	e.OutputTotal, e.OutputP99 = s.noisy[ofOutput].errors(s.fineOut, count, float64(s.model.requests))
	return e
}

// errors are those of the total and of the 99th percentile of a histogram of
// which the cells that do not stand out are left out. count is the relative
// standard deviation of the number of requests, and n how many are generated.
//
// What was left out is in the noisy counts of the cells, without bias, give or
// take two standard deviations; and it was not less than nothing.
func (h *noisy) errors(sc scale, count, n float64) (total, p99 float64) {
	clean, sum := h.line(), 0.0
	for _, x := range clean {
		sum += x
	}
	kept := shares(clean)
	if kept == nil {
		return math.Inf(1), math.Inf(1)
	}
	mean, square := 0.0, 0.0
	for i, p := range kept {
		mean += p * sc.middle(i)
		square += p * sc.middle(i) * sc.middle(i)
	}
	var noise float64              // of what was kept, squared
	var above, below, a, b float64 // of what was left out beyond the mean: tokens, and their noise squared
	for i, x := range clean {
		d := (sc.middle(i) - mean) / mean
		switch {
		case x > 0:
			noise += d * d
		case d > 0:
			above, a = above+d*float64(h.cells[i])/sum, a+d*d
		default:
			below, b = below-d*float64(h.cells[i])/sum, b+d*d
		}
	}
	sd := h.spec.SD / sum
	variance := noise*sd*sd + (square/mean/mean-1)/n + count*count
	total = math.Max(2*math.Sqrt(variance), math.Max(above+2*math.Sqrt(variance+a*sd*sd), below+2*math.Sqrt(variance+b*sd*sd)))
	bias := 0.0 // values are drawn evenly within cells, and lie unevenly there
	for i, p := range kept {
		lo, hi := sc.edges(i)
		bias += p * float64(hi+1-lo) * slope(sc, kept, i) / 12 / mean
	}
	return total + math.Abs(bias), h.tailError(sc, kept, sum, n)
}

// slope is by how much the density of values changes from one end of a cell to the
// other, as a share of that in its middle, judged by the cells beside it. A linear
// density is at most 2 steep; its mean is slope/12 of the cell's width off the
// middle, and a quantile at u of the cell slope·u(1−u)/2.
func slope(sc scale, kept []float64, i int) float64 {
	if i == 0 || i+1 >= len(kept) || kept[i-1] == 0 || kept[i] == 0 || kept[i+1] == 0 {
		return 0
	}
	width := func(i int) float64 { lo, hi := sc.edges(i); return float64(hi + 1 - lo) }
	density := func(i int) float64 { return kept[i] / width(i) }
	run := sc.middle(i+1) - sc.middle(i-1)
	return max(-2, min(2, width(i)*(density(i+1)-density(i-1))/run/density(i)))
}

// tailError is the error of the 99th percentile: from the lowest to the highest
// value above which a hundredth of the requests may lie, by the same reasoning
// about the cells above each value.
func (h *noisy) tailError(sc scale, kept []float64, sum, n float64) float64 {
	const tail = 0.01
	low, high := make([]float64, len(kept)), make([]float64, len(kept)) // shares of the cells when the tail is light, and heavy
	sd := h.spec.SD / sum
	var stays, cells, left, leftCells float64 // from the cell on
	before := [2]float64{}
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i] > 0 {
			stays, cells = stays+kept[i], cells+1
		} else {
			left, leftCells = left+float64(h.cells[i])/sum, leftCells+1
		}
		spread := 2 * math.Sqrt(cells*sd*sd+tail/n)
		most := stays + math.Max(spread, left+2*math.Sqrt((cells+leftCells)*sd*sd+tail/n))
		now := [2]float64{math.Max(before[0], stays-spread), math.Max(before[1], most)}
		low[i], high[i] = now[0]-before[0], now[1]-before[1]
		before = now
	}
	got := quantile(sc, kept, tail)
	at := sc.cellOf(int64(got))
	lo, hi := sc.edges(at)
	u := (got - float64(lo)) / float64(hi+1-lo)
	uneven := math.Abs(slope(sc, kept, at)) * u * (1 - u) / 2 * float64(hi+1-lo) / got
	return uneven + math.Max(quantile(sc, high, tail)/got-1, 1-quantile(sc, low, tail)/got)
}

// quantile is the value above which a share of the requests lies.
func quantile(sc scale, shares []float64, tail float64) float64 {
	sum := 0.0
	for i := len(shares) - 1; i >= 0; i-- {
		if sum+shares[i] >= tail {
			lo, hi := sc.edges(i)
			return float64(lo) + float64(hi+1-lo)*(1-(tail-sum)/shares[i])
		}
		sum += shares[i]
	}
	return float64(sc.lows[0])
}
