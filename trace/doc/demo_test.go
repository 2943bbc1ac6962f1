package doc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// demo is a page as a replay would write it: six plots of 200 to 20,000 points.
func demo() *Document {
	rng := rand.New(rand.NewPCG(1, 2))
	return &Document{
		Title: "Replay of conversation.workload.parquet",
		Lead:  "12,031 requests over 59 minutes against an OpenAI-compatible endpoint, sent open-loop at their recorded times.",
		Facts: []Fact{
			{Label: "Requests", Value: "12,031", Note: "12,020 completed, 11 failed"},
			{Label: "Duration", Value: "58:59", Note: ""},
			{Label: "Mean rate", Value: "3.40 /s", Note: "peak 21 /s"},
			{Label: "Goodput", Value: "3.31 /s", Note: "97.4 % met TTFT ≤ 2 s and TPOT ≤ 50 ms"},
			{Label: "TTFT p50 / p99", Value: "212 / 1,840 ms", Note: ""},
			{Label: "TPOT p50 / p99", Value: "18.2 / 41.0 ms", Note: ""},
			{Label: "Output tokens", Value: "4,126,633", Note: "1,166 /s"},
			{Label: "Prefix hits", Value: "36.6 %", Note: "of prompt tokens; 38.1 % expected"},
		},
		Notes: []Note{{Level: Good, Text: "The run is trustworthy: 99 % of the requests were sent within 0.4 ms of their due time."}},
		Sections: []Section{
			{
				Title: "Latency",
				Text:  []string{"Times to the first token from the instant a request was sent, and from the instant it was due. The second has no coordinated omission: a client that falls behind cannot hide it."},
				Notes: []Note{{Level: Warn, Text: "p99.9 rests on 12 requests; read it as an order of magnitude."}},
				Tables: []Table{{
					Caption: "Latency (ms)",
					Head:    []string{"Metric", "Mean", "p50", "p90", "p95", "p99", "p99.9"},
					Rows: [][]string{
						{"TTFT from send", "301.2", "212.0", "611.4", "874.9", "1,840.3", "4,112.0"},
						{"TTFT from schedule", "301.9", "212.4", "612.0", "875.8", "1,843.1", "4,118.5"},
						{"ITL", "18.9", "17.8", "22.4", "26.1", "44.0", "–"},
						{"TPOT", "19.3", "18.2", "24.8", "29.3", "41.0", "–"},
					},
				}},
				Plots: []Plot{demoCDF(rng), demoITL(rng)},
			},
			{Title: "Traffic", Plots: []Plot{demoLengths(rng), demoArrivals(rng)}},
			{
				Title: "The client itself",
				Notes: []Note{{Level: Info, Text: "Send lag is the time from schedule to the write on the socket."}, {Level: Bad, Text: "Garbage collection paused the client for 12 ms at 31:07."}},
				Plots: []Plot{demoLag(rng)},
			},
			{
				Title:  "Prefix cache",
				Plots:  []Plot{demoLRU()},
				Tables: []Table{{Caption: "Hit ratios", Head: []string{"Ratio", "Expected", "Measured"}, Rows: [][]string{{"by token", "38.1 %", "36.6 %"}, {"by block", "39.0 %", "n/a"}}}},
			},
		},
	}
}

func demoCDF(rng *rand.Rand) Plot {
	p := Plot{Title: "Time to first token", Text: "Share of requests whose first token came within the time.", XLabel: "TTFT", XUnit: "ms", YLabel: "Share of requests", YUnit: "%", LogX: true, Kind: Line}
	for _, arm := range []struct {
		name  string
		scale float64
	}{{"this run", 212}, {"baseline", 260}} {
		x := make([]float64, 12020)
		y := make([]float64, len(x))
		for i := range x {
			x[i] = arm.scale * math.Exp(0.8*rng.NormFloat64())
			y[i] = 100 * float64(i+1) / float64(len(x))
		}
		sort.Float64s(x)
		p.Series = append(p.Series, Series{Name: arm.name, X: x, Y: y})
	}
	return p
}

func demoITL(rng *rand.Rand) Plot {
	s := Series{Name: "p99 ITL"}
	for t := 0.0; t < 3540; t += 10 {
		y := 40 + 12*math.Sin(t/400) + 6*rng.ExpFloat64()
		if t > 1200 && t < 1400 {
			y = math.NaN()
		}
		s.X, s.Y = append(s.X, t), append(s.Y, y)
	}
	return Plot{Title: "Inter-token latency over the run", Text: "The 99th percentile of each ten seconds.", XLabel: "Time since start", XUnit: "s", YLabel: "ITL", YUnit: "ms", Kind: Line, Series: []Series{s}}
}

func demoLengths(rng *rand.Rand) Plot {
	s := Series{Name: "prompts"}
	count := map[int]float64{}
	for range 12031 {
		count[int(math.Log10(900*math.Exp(1.1*rng.NormFloat64()))*20)]++
	}
	for b := 0; b < 120; b++ {
		if count[b] > 0 {
			s.X = append(s.X, math.Pow(10, float64(b)/20))
			s.Hi = append(s.Hi, math.Pow(10, float64(b+1)/20))
			s.Y = append(s.Y, count[b])
		}
	}
	return Plot{Title: "Prompt lengths", XLabel: "Input tokens", YLabel: "Requests", LogX: true, Kind: Bars, Series: []Series{s}}
}

func demoArrivals(rng *rand.Rand) Plot {
	s := Series{Name: "arrivals"}
	for t := range 3540 {
		rate := 3.4 + 1.5*math.Sin(float64(t)/500)
		if t > 2200 && t < 2230 {
			rate = 16
		}
		n := 0.0
		for u := rng.ExpFloat64(); u < rate; u += rng.ExpFloat64() {
			n++
		}
		s.X, s.Y = append(s.X, float64(t)), append(s.Y, n)
	}
	return Plot{Title: "Arrivals", XLabel: "Time since start", XUnit: "s", YLabel: "Requests per second", Kind: Step, Series: []Series{s}}
}

func demoLag(rng *rand.Rand) Plot {
	s := Series{Name: "send lag"}
	for range 12031 {
		s.X = append(s.X, 3540*rng.Float64())
		y := 0.08 * math.Exp(0.6*rng.NormFloat64())
		if rng.Float64() < 0.002 {
			y *= 80
		}
		s.Y = append(s.Y, y)
	}
	s.Y[5], s.Y[6] = 0, 0
	return Plot{Title: "Send lag", Text: "One point for each request.", XLabel: "Time since start", XUnit: "s", YLabel: "Lag", YUnit: "ms", LogY: true, Kind: Points, Series: []Series{s}}
}

func demoLRU() Plot {
	p := Plot{Title: "Hit ratio by cache size", Text: "What an LRU cache of that many blocks would have reached on this trace.", XLabel: "Capacity", XUnit: "blocks", YLabel: "Hit ratio", YUnit: "%", LogX: true, Kind: Line}
	for i, name := range []string{"by token", "by block", "mean over requests"} {
		var s Series
		for c := 1000.0; c <= 2e6; c *= 1.3 {
			s.X, s.Y = append(s.X, c), append(s.Y, (38-4*float64(i))*(1-math.Exp(-c/float64(90000+40000*i))))
		}
		s.Name = fmt.Sprint(name)
		p.Series = append(p.Series, s)
	}
	return p
}
