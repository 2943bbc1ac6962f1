package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"reprise/trace/quantity"
)

// Noise is what makes two runs of an engine differ though nothing was changed. Without
// it a virtual engine gives the same figures again and again, and every difference
// between two of them counts. The zero value is without noise.
//
// A run is faster or slower as a whole (clocks, temperature, memory layout, neighbours),
// some of that stays from one run to the next, and requests are late by chance on their
// way to the scheduler.
type Noise struct {
	Speed float64       // SD of the natural logarithm of a run's step times, drawn anew for each run
	Drift float64       // SD of what is added to that logarithm from one run to the next, and stays
	Late  time.Duration // mean of how late the scheduler sees a request, exponential
}

// measuredName is the text that stands for [measuredNoise].
const measuredName = "measured"

// maxNoise bounds both deviations: beyond, a run may be twice as slow as the one before.
const maxNoise = 0.3

// ParseNoise reads the noise of a run: "2%" is the speed alone, "speed=2%,drift=0.5%,late=1ms"
// names each, and "measured" is [measuredNoise].
func ParseNoise(text string) (n Noise, err error) {
	if text == measuredName {
		return measuredNoise(), nil
	}
	wrong := &quantity.Error{Text: text, Want: "a noise, with shares of at most 30 %",
		Examples: [3]string{measuredName, "2%", "speed=2%,drift=0.5%,late=1ms"}}
	for part := range strings.SplitSeq(text, ",") {
		name, value, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			name, value = "speed", name
		}
		switch name {
		case "speed", "drift":
			share, err := quantity.Share(value)
			if err != nil || share > maxNoise || !strings.HasSuffix(value, "%") {
				return Noise{}, wrong
			}
			if name == "speed" {
				n.Speed = share
			} else {
				n.Drift = share
			}
		case "late":
			if n.Late, err = quantity.Latency(value); err != nil || n.Late > time.Second {
				return Noise{}, wrong
			}
		default:
			return Noise{}, wrong
		}
	}
	return n, nil
}

// String writes the noise as [ParseNoise] reads it; "" is none.
func (n Noise) String() string {
	if n == (Noise{}) {
		return ""
	}
	return fmt.Sprintf("speed=%.4g%%,drift=%.4g%%,late=%v", 100*n.Speed, 100*n.Drift, n.Late)
}

// measuredNoise is that of a real engine: vLLM on a GB10 that did nothing else, decoding at 35.3,
// 35.7, 34.7, 35.2, 36.1 and 37.1 tokens a second in six runs of which nothing was changed, medians of
// requests. The logarithms have a standard deviation of 2.3 %. How much of that is drift, six runs do
// not tell; how late requests are was not published.
//
// Source: https://github.com/0xBakeer/qwen38-flash-next-spark/issues/6
func measuredNoise() Noise { return Noise{Speed: 0.023} }

// A RunNoise is the noise of one run. The zero value is without.
type RunNoise struct {
	Factor float64 // by which every cost is longer; 0 is 1
	Late   Picos   // mean of how late the scheduler sees a request
	Seed   uint64  // of the single requests
}

// Run draws the noise of one run of a series. Runs of the same seed have their drift in
// common up to the earlier one.
func (n Noise) Run(seed, run uint64) RunNoise {
	if n == (Noise{}) {
		return RunNoise{}
	}
	walk, drift := rand.New(rand.NewPCG(seed, 1)), 0.0
	for range run {
		drift += n.Drift * walk.NormFloat64()
	}
	own := rand.New(rand.NewPCG(seed, run+2))
	return RunNoise{Factor: math.Exp(drift + n.Speed*own.NormFloat64()), Late: picosOf(n.Late), Seed: own.Uint64()}
}

// Times are costs that all take factor times as long.
func (c Costs) Times(factor float64) Costs {
	for _, f := range c.fields() {
		*f.value = Picos(math.Round(min(float64(*f.value)*factor, float64(maxStep))))
	}
	return c
}
