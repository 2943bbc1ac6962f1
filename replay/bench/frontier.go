package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/quantity"
)

// A Frontier crosses length classes with requests in flight, for several
// engines in virtual time and servers: throughput per GPU against interactivity, which is the
// output tokens per second that each user sees. Requests have nothing in common, and all
// engines get the same ones.
type Frontier struct {
	Engines []FrontierEngine
	Classes []LengthClass
	// Concurrencies are the requests in flight of the levels, ascending. Without any they double
	// from 1 until an engine's throughput no longer grows.
	Concurrencies []int
	Requests      int64 // the fewest that are measured of a level at a server
	Seed          uint64
	Told          func(curves int) // when set, is told how many are complete

	// Of servers: how runs are judged, where results are kept, and who is told of each level.
	Report    report.Options
	Dir       *Dir
	ToldLevel func(engine, class string, p FrontierPoint)
}

// A FrontierEngine is an engine in virtual time, or a server, on GPUs whose number, power and
// price are known or assumed.
type FrontierEngine struct {
	Name      string `json:"name"`
	Model     string `json:"model"`
	Simulated string `json:"simulated,omitempty"` // all of its settings, as results have them; "" of a server
	Endpoint  string `json:"endpoint,omitempty"`  // of a server
	Server    string `json:"server_version,omitempty"`
	Started   string `json:"started,omitempty"` // first run at the server
	GPU       string `json:"gpu,omitempty"`     // by the table of data sheets; "" is not known
	GPUs      int    `json:"gpus"`              // of all replicas together
	// Assumed tells that nothing says how many GPUs there are: one for each replica.
	Assumed bool `json:"gpus_assumed,omitempty"`
	// DataSheet tells that the watts are those of the GPU's board by its data sheet, which it
	// draws at most.
	DataSheet bool `json:"watts_from_data_sheet,omitempty"`
	// Bound tells that the engine is what a data sheet allows at most.
	Bound   bool   `json:"bound,omitempty"`
	Warning string `json:"warning,omitempty"`
	// Loosened are the limits by which a server's levels are trusted, as far as they allow more than their defaults.
	Loosened report.LoosenedLimits `json:"loosened_limits,omitempty"`
	// Metered tells that joules are by what the server's GPUs said of their power.
	Metered bool `json:"joules_measured,omitempty"`
	Prices

	Fleet  engine.FleetConfig `json:"-"`
	Covers *engine.Covers     `json:"-"` // what it was fitted to; nil is not known
	Target Target             `json:"-"` // of a server, in place of Fleet
	About  string             `json:"-"` // what the target is: levels of another are not taken up
}

// A LengthClass is the lengths of requests, as [arrival.ParseLength] reads them.
type LengthClass struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt_tokens"`
	Output string `json:"output_tokens"`
}

// DefaultLengths are the lengths of the built-in workload chat, and the three of InferenceMAX:
// 1k/1k, 1k/8k and 8k/1k.
func DefaultLengths() []string { return []string{"chat", "1024/1024", "1024/8192", "8192/1024"} }

// chatLengths are those of the built-in workload chat.
var chatLengths = LengthClass{"chat", "lognormal:500,sigma=0.8,50..4000", "lognormal:200,sigma=0.8,10..2000"}

// ParseLengthClass reads chat, or the most tokens of a prompt and of an output, such as
// 8192/1024. Lengths are then uniform from 80 % of it, as InferenceMAX draws them.
func ParseLengthClass(text string) (LengthClass, error) {
	if text == chatLengths.Name {
		return chatLengths, nil
	}
	prompt, output, ok := strings.Cut(text, "/")
	p, perr := quantity.Count(prompt)
	o, oerr := quantity.Count(output)
	if !ok || perr != nil || oerr != nil || p < 1 || p > mostTokens || o < 2 || o > mostTokens {
		return LengthClass{}, &quantity.Error{Text: text,
			Want: "a class of lengths: PROMPT/OUTPUT in tokens, 2 or more of output", Examples: [3]string{"chat",
				"1024/1024", "8k/1k"}}
	}
	from := func(most int64) string { return fmt.Sprintf("uniform:%d..%d", (4*most+4)/5, most) }
	return LengthClass{text, from(p), from(o)}, nil
}

// mostTokens bounds the lengths of a class.
const mostTokens = 1 << 20

// A FrontierPoint is one level: an engine that answers requests of a class, so many in
// flight at all times. Tokens are of the requests that ended
// within the measured time.
//
//	per user    = 1 ÷ p50 of TPOT
//	per GPU     = tokens ÷ seconds ÷ GPUs
//	per million = price of a GPU-hour ÷ 3600 ÷ output tokens per second and GPU × 10⁶
//	joules      = watts of a GPU ÷ output tokens per second and GPU
type FrontierPoint struct {
	Concurrency     int      `json:"concurrency,omitempty"`
	Rate            float64  `json:"requests_per_s,omitempty"` // in place of Concurrency, by an earlier version
	Requests        int      `json:"measured_requests"`
	Seconds         float64  `json:"measured_s"`
	PerUser         float64  `json:"output_tokens_per_s_per_user"`
	OutputPerGPU    float64  `json:"output_tokens_per_s_per_gpu"`
	TotalPerGPU     float64  `json:"total_tokens_per_s_per_gpu"` // prompts too
	TTFT            float64  `json:"ttft_p50_ms"`
	TPOT            float64  `json:"tpot_p50_ms"`
	E2E             float64  `json:"e2e_p50_ms"`
	PerMillion      *float64 `json:"per_million_output_tokens"` // null without a price
	PerMillionTotal *float64 `json:"per_million_total_tokens"`
	JoulesPerToken  *float64 `json:"joules_per_output_token"` // null without watts
	// OnFront tells that no other level of the engine is as good at one of per user and per
	// GPU, and better at the other.
	OnFront bool `json:"on_front"`
	// Extrapolates are the bounds of what a simulated engine was fitted to that the level passed.
	Extrapolates []result.Beyond `json:"extrapolates,omitempty"`
}

// A FrontierCurve is all levels of an engine with the requests of one class.
type FrontierCurve struct {
	Engine   string          `json:"engine"`
	Points   []FrontierPoint `json:"points"`
	Stopped  string          `json:"stopped,omitempty"`
	Unserved string          `json:"unserved,omitempty"` // why it has no points
	// Untrusted says why the client was the limit at a level, which is no point of the curve.
	Untrusted string `json:"untrusted,omitempty"`
}

// A FrontierStretch is a range of interactivity at which one engine has the highest throughput
// per GPU, or the lowest cost, among the measured levels that are as fast or faster.
type FrontierStretch struct {
	Engine string        `json:"engine"`
	Above  float64       `json:"above_tokens_per_s_per_user"` // 0 from the slowest on
	To     float64       `json:"to_tokens_per_s_per_user"`
	At     FrontierPoint `json:"at"` // the slowest level of it, which has the highest throughput
}

// A FrontierClass is what all engines make of one class.
type FrontierClass struct {
	LengthClass
	Curves []FrontierCurve   `json:"curves"` // in the order of the engines
	Best   []FrontierStretch `json:"best"`   // from slow to fast
	// Cheapest are the same by the cost of a token, of the engines that have a price.
	Cheapest []FrontierStretch `json:"cheapest,omitempty"`
}

// A FrontierResult is what a [Frontier] came to.
type FrontierResult struct {
	Schema  string           `json:"schema"`
	Command string           `json:"command"`
	Seed    string           `json:"seed"`
	Engines []FrontierEngine `json:"engines"`
	Classes []FrontierClass  `json:"classes"`
}

const frontierSchema = "frontier/1"

// ServerRequests are the fewest requests that are measured of a level at a server unless more
// are asked for. With few in flight they take long: InferenceMAX has 8 with one in flight.
const ServerRequests = 8

// Levels of a frontier.
const (
	// requests that are measured, times those in flight: with the first and the last, 10 times, as InferenceMAX has it
	generations   = 8
	leastMeasured = 64      // requests
	leastGain     = 0.02    // of throughput; a level that gains less is the last
	mostInFlight  = 1 << 16 // at the last level
	mostAtServer  = 1 << 10 // at the last level that is found by doubling, of a server

	mostLevelRequests = 1 << 21 // of a run
	mostFrontierRuns  = 1024    // engines times classes
)

// Run measures every engine with every class.
func (f *Frontier) Run(ctx context.Context) (FrontierResult, error) {
	r := FrontierResult{Schema: frontierSchema, Seed: fmt.Sprint(f.Seed), Engines: f.Engines}
	if len(f.Engines) == 0 || len(f.Classes) == 0 || len(f.Engines)*len(f.Classes) > mostFrontierRuns {
		return r, fmt.Errorf("a frontier has engines and classes of lengths, and at most %d of one times the other",
			mostFrontierRuns)
	}
	if err := f.checkLevels(); err != nil {
		return r, err
	}
	for i := range f.Engines {
		if f.Engines[i].Target != nil {
			f.Engines[i].Loosened = f.Report.Limits.Loosened()
		}
	}
	for _, class := range f.Classes {
		c := FrontierClass{LengthClass: class}
		for i := range f.Engines {
			curve, err := f.curve(ctx, &class, &f.Engines[i])
			if err != nil {
				return r, fmt.Errorf("%s, %s: %w", f.Engines[i].Name, class.Name, err)
			}
			if c.Curves = append(c.Curves, curve); f.Told != nil {
				f.Told(len(r.Classes)*len(f.Engines) + i + 1)
			}
		}
		c.rank()
		r.Classes = append(r.Classes, c)
	}
	return r, r.served()
}

// served is an error where there is no level at all.
func (r *FrontierResult) served() error {
	for _, c := range r.Classes {
		for _, curve := range c.Curves {
			if len(curve.Points) > 0 || curve.Untrusted != "" {
				return nil
			}
		}
	}
	first := r.Classes[0].Curves[0]
	return fmt.Errorf("no engine serves any of these lengths: %s, %s: %s", first.Engine, r.Classes[0].Name,
		cmp.Or(first.Unserved, first.Stopped))
}

// rank says which engine is best, and which is cheapest, at which interactivity.
func (c *FrontierClass) rank() {
	c.Best = bestStretches(c.Curves, func(p *FrontierPoint) float64 { return p.OutputPerGPU })
	c.Cheapest = bestStretches(c.Curves, func(p *FrontierPoint) float64 {
		if p.PerMillion == nil {
			return 0
		}
		return 1 / *p.PerMillion
	})
}

// curve measures an engine at one level after another.
func (f *Frontier) curve(ctx context.Context, class *LengthClass, e *FrontierEngine) (FrontierCurve, error) {
	c := FrontierCurve{Engine: e.Name, Points: []FrontierPoint{}}
	defer func() { markFront(c.Points) }()
	best := 0.0
	for _, n := range f.levels(e) {
		at := fmt.Sprintf("with %d in flight ", n)
		p, end, err := f.measure(ctx, class, e, n)
		switch {
		case err != nil:
			return c, err
		case end.untrusted != "":
			c.Untrusted = at + "the client was the limit: " + end.untrusted
			c.Stopped = c.Untrusted
			return c, nil
		case end.refused != "" && len(c.Points) == 0:
			c.Unserved = end.refused
			return c, nil
		case end.refused != "":
			c.Stopped = at + end.refused
			return c, nil
		}
		c.Points = append(c.Points, p)
		if f.ToldLevel != nil {
			f.ToldLevel(e.Name, class.Name, p)
		}
		if f.Searches() && p.OutputPerGPU < best*(1+leastGain) {
			c.Stopped = at + "throughput grew by less than " + doc.Percent(leastGain)
			return c, nil
		}
		best = max(best, p.OutputPerGPU)
	}
	return c, nil
}

// Searches tells whether the levels are found by doubling.
func (f *Frontier) Searches() bool { return len(f.Concurrencies) == 0 }

// markFront marks the levels that are on the Pareto front of interactivity and throughput.
func markFront(points []FrontierPoint) {
	order := make([]*FrontierPoint, len(points))
	for i := range points {
		order[i] = &points[i]
	}
	slices.SortStableFunc(order, func(a, b *FrontierPoint) int {
		return cmp.Or(cmp.Compare(b.PerUser, a.PerUser), cmp.Compare(b.OutputPerGPU, a.OutputPerGPU))
	})
	best, at := math.Inf(-1), math.Inf(1)
	for _, p := range order { // from the fastest on
		p.OnFront = p.OutputPerGPU > best || p.OutputPerGPU == best && p.PerUser == at
		if p.OnFront {
			best, at = p.OutputPerGPU, p.PerUser
		}
	}
}

// bestStretches says which engine has the highest score at which interactivity, from slow to
// fast. Of two that are equal it is the one that comes first. A score of 0 is none.
func bestStretches(curves []FrontierCurve, score func(*FrontierPoint) float64) []FrontierStretch {
	out := []FrontierStretch{}
	for _, c := range curves {
		for _, p := range c.Points {
			if p.OnFront && score(&p) > 0 {
				out = append(out, FrontierStretch{Engine: c.Engine, To: p.PerUser, At: p})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b FrontierStretch) int {
		return cmp.Or(cmp.Compare(b.To, a.To), cmp.Compare(score(&b.At), score(&a.At)))
	})
	best := 0.0
	out = slices.DeleteFunc(out, func(s FrontierStretch) bool { // from the fastest on
		behind := score(&s.At) <= best
		best = max(best, score(&s.At))
		return behind
	})
	slices.Reverse(out)
	merged := out[:0]
	for _, s := range out {
		if last := len(merged) - 1; last >= 0 && merged[last].Engine == s.Engine {
			merged[last].To = s.To
			continue
		} else if last >= 0 {
			s.Above = merged[last].To
		}
		merged = append(merged, s)
	}
	return merged
}
