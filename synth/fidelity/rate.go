package fidelity

import (
	"fmt"
	"math"

	"reprise/trace"
)

// Rates are those of whole seconds.
var (
	rateWindows = [...]int{1, 3, 10, 30, 60, 300} // s
	rateLags    = [...]int{1, 3, 10, 30, 60, 300} // s
)

const (
	leastRateWindows = 5       // of a width, to compare by
	shownLag         = 1       // index of the lag whose autocorrelation stands beside the distance
	mostRateSeconds  = 1 << 23 // 97 days, of 8 bytes each
)

// rates has the input tokens and the requests of each whole second of the rows that count.
func (k *keptRows) rates() (tokens, requests []float64) {
	start := k.at[k.from]
	seconds := int(min(k.at[len(k.at)-1]-start, mostRateSeconds+1))
	if seconds > mostRateSeconds {
		return nil, nil
	}
	tokens, requests = make([]float64, seconds), make([]float64, seconds)
	for row := k.from; row < len(k.at); row++ {
		if s := int(k.at[row] - start); s < seconds {
			tokens[s] += float64(k.in[row])
			requests[s]++
		}
	}
	return tokens, requests
}

// meanAndVariance of values; the variance is that of a sample.
func meanAndVariance(values []float64) (mean, variance float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(max(1, len(values)-1))
}

// dispersion gives the CV and the index of dispersion of the sums over whole windows of so
// many seconds; nil with too few windows, or of nothing.
func dispersion(rate []float64, width int) (cv, idc *float64) {
	if len(rate)/width < leastRateWindows {
		return nil, nil
	}
	sums := make([]float64, len(rate)/width)
	for i := range sums {
		for _, v := range rate[i*width : (i+1)*width] {
			sums[i] += v
		}
	}
	mean, variance := meanAndVariance(sums)
	if mean == 0 {
		return nil, nil
	}
	return trace.Ptr(math.Sqrt(variance) / mean), trace.Ptr(variance / mean)
}

// autocorrelation of the rate at a lag in seconds; nil when less than three of the lag fit.
func autocorrelation(rate []float64, mean, variance float64, lag int) *float64 {
	if lag >= len(rate)/3 {
		return nil
	}
	var sum float64
	for i := range len(rate) - lag {
		sum += (rate[i] - mean) * (rate[i+lag] - mean)
	}
	return trace.Ptr(sum / max(variance, 1e-9) / float64(len(rate)))
}

// Below these, counts and loads are even: arrivals at a constant rate have an IDC of about 0, and one of 0.001 or
// 0.01 makes no request wait, though one is ten times the other.
const (
	evenIDC = 0.1
	evenCV  = 0.01
)

// scaleDistance is the mean of [log2Ratio] over the windows that both sides have. Values below even count as even.
type scaleDistance struct {
	even   float64
	sum    float64
	scales int
}

func (d *scaleDistance) add(ref, cand *float64) {
	if ref != nil && cand != nil {
		d.sum += log2Ratio(max(*ref, d.even), max(*cand, d.even))
		d.scales++
	}
}

func (d *scaleDistance) mean() *float64 {
	if d.scales == 0 {
		return nil
	}
	return trace.Ptr(d.sum / float64(d.scales))
}

// tokenRates compares how the rates vary, and how long that of input tokens stays as it is.
func (c *comparison) tokenRates() {
	ref, refRequests := c.ref.kept.rates()
	cand, candRequests := c.cand.kept.rates()
	cv, idc := scaleDistance{even: evenCV}, scaleDistance{even: evenIDC}
	var refIDC, candIDC, refACF, candACF *float64 // beside the distances
	for _, width := range rateWindows {
		p := RatePair{Seconds: width}
		p.RefCV, _ = dispersion(ref, width)
		p.CandCV, _ = dispersion(cand, width)
		_, p.RefIDC = dispersion(refRequests, width)
		_, p.CandIDC = dispersion(candRequests, width)
		cv.add(p.RefCV, p.CandCV)
		idc.add(p.RefIDC, p.CandIDC)
		if p.RefIDC != nil { // the widest windows that there are
			refIDC = p.RefIDC
		}
		if p.CandIDC != nil {
			candIDC = p.CandIDC
		}
		c.f.Rates = append(c.f.Rates, p)
	}
	seconds := fmt.Sprintf("%d s of requests with tokens, or too many", leastRateWindows)
	c.add("token_cv_log2", c.f.Rates[0].RefCV, c.f.Rates[0].CandCV, cv.mean(), seconds)
	c.add("rate_idc_log2", refIDC, candIDC, idc.mean(), seconds)

	refMean, refVariance := meanAndVariance(ref)
	candMean, candVariance := meanAndVariance(cand)
	var worst *float64
	for i, lag := range rateLags {
		p := &c.f.Rates[i] // lags are as long as windows
		p.RefACF = autocorrelation(ref, refMean, refVariance, lag)
		p.CandACF = autocorrelation(cand, candMean, candVariance, lag)
		if d := difference(p.RefACF, p.CandACF); d != nil && (worst == nil || *d > *worst) {
			worst = d
		}
		if i == shownLag || refACF == nil {
			refACF = p.RefACF
		}
		if i == shownLag || candACF == nil {
			candACF = p.CandACF
		}
	}
	c.add("token_acf", refACF, candACF, worst, fmt.Sprintf("%d s of requests, or too many", 2*3*rateLags[0]))
}

// A clockTicks says how gaps between arrivals sit on a clock, as shares.
type clockTicks struct {
	zero   float64 // of the gaps that are 0
	onMode float64 // of the others, those within 10 ms of the most frequent one
}

const tickReach = 10 // ms

// ticks finds the clock of the rows that count; nil with fewer than two.
func (k *keptRows) ticks() *clockTicks {
	n := k.counted() - 1
	if n < 1 {
		return nil
	}
	zero, mode, most := 0, 0, 0
	var gaps []int // ms
	times := map[int]int{}
	for row := k.from + 1; row < len(k.at); row++ {
		gap := int(math.RoundToEven((k.at[row] - k.at[row-1]) * 1000))
		if gap == 0 {
			zero++
			continue
		}
		gaps = append(gaps, gap)
		times[hundreds(gap)]++
	}
	for _, gap := range gaps { // of equals, that which came first
		if h := hundreds(gap); times[h] > most {
			mode, most = h, times[h]
		}
	}
	on := 0
	for _, gap := range gaps {
		if gap >= mode-tickReach && gap <= mode+tickReach {
			on++
		}
	}
	return &clockTicks{float64(zero) / float64(n), float64(on) / float64(max(1, len(gaps)))}
}

// hundreds rounds to a multiple of 100, halves to an even one.
func hundreds(n int) int { return 100 * int(math.RoundToEven(float64(n)/100)) }

// ticksCount is the share of gaps on a clock above which the clock is compared.
const ticksCount = 0.5

// clockTicks compares the clocks of arrivals.
func (c *comparison) clockTicks() {
	ref, cand := c.ref.kept.ticks(), c.cand.kept.ticks()
	on := func(t *clockTicks) *float64 {
		if t == nil {
			return nil
		}
		return &t.onMode
	}
	var d *float64
	if ref != nil && cand != nil {
		d = trace.Ptr(math.Abs(ref.zero - cand.zero))
		if ref.onMode > ticksCount {
			*d = max(*d, math.Abs(ref.onMode-cand.onMode))
		}
	}
	c.add("ticks", on(ref), on(cand), d, "second request")
}
