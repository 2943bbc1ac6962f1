package synth

import (
	"errors"
	"math"
	"testing"

	"reprise/anonymize/dp"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestWorstError(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		e    PublicErrors
		name string
		at   float64
	}{
		{PublicErrors{InputTotal: 4, OutputTotal: 3, InputP99: 2, OutputP99: 1}, "total input", 4},
		{PublicErrors{InputTotal: 4, OutputTotal: 5, InputP99: 2, OutputP99: 1}, "total output", 5},
		{PublicErrors{InputTotal: 4, OutputTotal: 5, InputP99: 6, OutputP99: 6}, "the 99th percentile of input", 6},
		{PublicErrors{InputTotal: 4, OutputTotal: 5, InputP99: 6, OutputP99: 7}, "the 99th percentile of output", 7},
	} {
		if name, at := worstOf(c.e); name != c.name || at != c.at {
			t.Errorf("%+v: %s, %g; want %s, %g", c.e, name, at, c.name, c.at)
		}
	}
	if name, at := worstOf(PublicErrors{OutputP99: nan}); name != "the 99th percentile of output" || !math.IsNaN(at) {
		t.Errorf("what cannot be computed: %s, %g", name, at)
	}
}

func TestTooNoisySays(t *testing.T) {
	for worst, want := range map[float64]string{
		0.256: "26 %", 9.999: "1000 %", 10: "above 1000 %", math.Inf(1): "above 1000 %",
	} {
		err := &TooNoisy{Errors: PublicErrors{InputTotal: 0.05, InputP99: worst}, Epsilon: 0.5, Records: 120, Unit: UnitSession}
		if got := err.Error(); got != "120 records are too few for ε=0.5 with a session as the unit of privacy: predicted error of the 99th percentile of input "+want+
			", and at most 10 % is published; a longer trace helps, and so do lower public limits of the lengths (--max-input, --max-output)" {
			t.Errorf("%g: %s", worst, got)
		}
	}
}

// The error of the total: of what stands out, the noise and the draw of the
// requests; of what was left out, what it may add above or below the mean.
func TestErrorOfTotals(t *testing.T) {
	sc := octaves(127) // 0, 1, 2-3, 4-7, 8-15, 16-31, 32-63, 64-127 with middles 0, 1, 2.5, 5.5, 11.5, 23.5, 47.5, 95.5
	spec := func(sd float64) dp.NoiseSpec {
		return dp.NoiseSpec{SD: sd, Variance: 1, Measurement: dp.Measurement{Cells: 8}}
	}
	// 3,000 requests of 5.5 tokens and 1,000 of 23.5: a mean of 10, and a mean of the
	// squares of 160.75.
	for name, c := range map[string]struct {
		cells    []int64
		sd       float64
		count, n float64
		want     float64
	}{
		"the draw alone":      {[]int64{0, 0, 0, 3000, 0, 1000, 0, 0}, 0, 0, 100, 2 * math.Sqrt(0.6075/100)},
		"and their number":    {[]int64{0, 0, 0, 3000, 0, 1000, 0, 0}, 0, 0.3, 100, 2 * math.Sqrt(0.6075/100+0.09)},
		"left out above":      {[]int64{0, 0, 0, 3000, 0, 1000, 40, 0}, 20, 0, 1e9, 3.75*0.01 + 2*math.Sqrt(0.6075/1e9+(0.45*0.45+1.35*1.35+0.15*0.15+3.75*3.75+8.55*8.55)*0.005*0.005)},
		"left out below":      {[]int64{40, 40, 40, 3000, -40, 1000, 0, -40}, 20, 0, 1e9, (1+0.9+0.75)*0.01 + 2*math.Sqrt(0.6075/1e9+(0.45*0.45+1.35*1.35+1+0.9*0.9+0.75*0.75)*0.005*0.005)},
		"nothing is left out": {[]int64{0, 0, 0, 3000, 0, 1000, -400, -400}, 20, 0, 1e9, 2 * math.Sqrt(0.6075/1e9+(0.45*0.45+1.35*1.35+1+0.9*0.9+0.75*0.75)*0.005*0.005)},
	} {
		h := &noisy{spec(c.sd), c.cells}
		if total, _ := h.errors(sc, c.count, c.n); !near(total, c.want) {
			t.Errorf("%s: %.9f, want %.9f", name, total, c.want)
		}
	}
	// Values lie unevenly within a cell between two others: those of 8 to 15 are as
	// dense as its neighbours tell, at most 2 steep.
	h := &noisy{spec(0), []int64{0, 0, 0, 400, 400, 400, 0, 0}}
	mean := (5.5 + 11.5 + 23.5) / 3
	square := (5.5*5.5 + 11.5*11.5 + 23.5*23.5) / 3
	steep := 8 * (1.0/16 - 1.0/4) / 18 / (1.0 / 8)
	want := 2*math.Sqrt((square/mean/mean-1)/100) - 8*steep/3/12/mean
	if total, _ := h.errors(sc, 0, 100); !near(total, want) {
		t.Errorf("uneven: %.9f, want %.9f", total, want)
	}
}

func TestSlope(t *testing.T) {
	sc := octaves(31) // cells of 1, 1, 2, 4, 8 and 16 values
	for _, c := range []struct {
		kept []float64
		want float64
	}{
		{[]float64{0, 0, 2, 4, 8, 0}, 0},
		{[]float64{0, 0, 4, 4, 8, 0}, 4 * (1.0 - 2) / 9 / 1},
		{[]float64{0, 0, 8, 4, 8, 0}, 4 * (1.0 - 4) / 9 / 1},
		{[]float64{0, 0, 80, 4, 8, 0}, -2},
		{[]float64{0, 0, 2, 4, 80, 0}, 2},
		{[]float64{0, 0, 0, 4, 8, 0}, 0},
		{[]float64{0, 0, 2, 0, 8, 0}, 0},
		{[]float64{0, 0, 2, 4, 0, 0}, 0},
	} {
		if got := slope(sc, c.kept, 3); !near(got, c.want) {
			t.Errorf("%v: %g, want %g", c.kept, got, c.want)
		}
	}
	all := []float64{1, 2, 4, 8, 16, 64}
	if slope(sc, all, 0) != 0 || slope(sc, all, 5) != 0 || slope(sc, all, 1) == 0 || slope(sc, all, 4) == 0 {
		t.Errorf("at the ends: %g, %g, %g, %g", slope(sc, all, 0), slope(sc, all, 1), slope(sc, all, 4), slope(sc, all, 5))
	}
}

func TestQuantile(t *testing.T) {
	sc := octaves(31)
	for _, c := range []struct {
		shares []float64
		tail   float64
		want   float64
	}{
		{[]float64{0, 0, 0, 0.5, 0.5, 0}, 0.25, 12},
		{[]float64{0, 0, 0, 0.5, 0.5, 0}, 0.5, 8},
		{[]float64{0, 0, 0, 0.5, 0.5, 0}, 0.625, 7},
		{[]float64{0, 0, 0, 0.5, 0.25, 0.25}, 0.125, 24},
		{[]float64{0, 0, 0, 0.5, 0, 0.25}, 0.9, 0},
	} {
		if got := quantile(sc, c.shares, c.tail); !near(got, c.want) {
			t.Errorf("%g of %v lie above %g, want %g", c.tail, c.shares, got, c.want)
		}
	}
}

// The error of the 99th percentile: how far it moves when as much more, or as much
// less, lies above it as the noise, the draw and what was left out allow.
func TestErrorOfPercentiles(t *testing.T) {
	sc := octaves(31)
	spec := dp.NoiseSpec{SD: 4, Variance: 1}
	// Of 1,000 requests 980 have 4 to 7 tokens and 20 have 16 to 31; in between 10
	// were left out. One in a hundred lies above 24.
	h := &noisy{spec, []int64{0, 0, 0, 980, 10, 20}}
	kept := []float64{0, 0, 0, 0.98, 0, 0.02}
	const n = 1e6
	sd := 4.0 / 1000
	spread := 2 * math.Sqrt(sd*sd+0.01/n)
	// The heavy tail has all of its hundredth in the last cell, the light one too.
	heavy, light := 16+16*(1-0.01/(0.02+spread)), 16+16*(1-0.01/(0.02-spread))
	want := max(heavy/24-1, 1-light/24)
	if got := h.tailError(sc, kept, 1000, n); !near(got, want) {
		t.Errorf("%.9f, want %.9f", got, want)
	}
	// With nothing certain above 7 tokens, what was left out there decides.
	h = &noisy{spec, []int64{0, 0, 0, 1000, 10, 0}}
	kept = []float64{0, 0, 0, 1, 0, 0}
	got := 4 + 4*(1-0.01)
	above := 2 * math.Sqrt(sd*sd+0.01/n)                 // in the last cell, where nothing was counted
	more := 0.01 + 2*math.Sqrt(2*sd*sd+0.01/n)           // and in that of 8 to 15 tokens
	heavy = 8 + 8*(1-(0.01-above)/(more-above))          // above is less than a hundredth, more is more
	light = 4 + 4*(1-0.01/(1-2*math.Sqrt(sd*sd+0.01/n))) // the rest has lost what the noise may have added
	want = max(heavy/got-1, 1-light/got)
	if e := h.tailError(sc, kept, 1000, n); !near(e, want) || above >= 0.01 || more <= 0.01 {
		t.Errorf("%.9f, want %.9f; above %g, more %g", e, want, above, more)
	}
}

// A model is refused when one of its errors is above a tenth.
func TestPublicRefusesAboveATenth(t *testing.T) {
	rows, meta := aDay()
	for _, budget := range []dp.Budget{{Epsilon: 1e9, Delta: 1e-6}, {Epsilon: 3, Delta: 1e-6}, {Epsilon: 0.3, Delta: 1e-6}} {
		m, r, _, err := FitPublic(t.Context(), cloned(rows), meta, PublicOptions{Unit: UnitUser, Budget: budget, MaxInput: 100, MaxOutput: 400, Noise: noiseOf(1)})
		if r == nil {
			t.Fatal(err)
		}
		_, worst := worstOf(r.Predicted)
		var noisy *TooNoisy
		if refused := errors.As(err, &noisy); refused != (worst > 0.1) || refused == (m != nil) {
			t.Errorf("ε %g: a worst error of %g, and %v", budget.Epsilon, worst, err)
		} else if refused && *noisy != (TooNoisy{r.Predicted, budget.Epsilon, 12012, UnitUser}) {
			t.Errorf("ε %g: %+v", budget.Epsilon, *noisy)
		}
	}
}
