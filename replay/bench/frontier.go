package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/replay"
	"reprise/replay/engine"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/page"
	"reprise/trace/quantity"
	"reprise/trace/sample"
)

// A Frontier crosses length classes with requests in flight, for several engines in virtual
// time: throughput per GPU against interactivity, which is the output tokens per second that
// each user sees. Requests have nothing in common, and all engines get the same ones.
type Frontier struct {
	Engines []FrontierEngine
	Classes []LengthClass
	// Concurrencies are the requests in flight of the levels, ascending; without any they
	// double from 1 until an engine's throughput no longer grows.
	Concurrencies []int
	Seed          uint64
	Told          func(curves int) // when set, is told how many are complete
}

// A FrontierEngine is an engine in virtual time on GPUs whose number, power and price are
// known or assumed.
type FrontierEngine struct {
	Name      string `json:"name"`
	Model     string `json:"model"`
	Simulated string `json:"simulated"`     // all of its settings, as results have them
	GPU       string `json:"gpu,omitempty"` // by the table of data sheets; "" is not known
	GPUs      int    `json:"gpus"`          // of all replicas together
	// Assumed tells that nothing says how many GPUs there are: one for each replica.
	Assumed bool `json:"gpus_assumed,omitempty"`
	// DataSheet tells that the watts are those of the GPU's board by its data sheet, which it
	// draws at most.
	DataSheet bool `json:"watts_from_data_sheet,omitempty"`
	// Bound tells that the engine is what a data sheet allows at most.
	Bound   bool   `json:"bound,omitempty"`
	Warning string `json:"warning,omitempty"`
	Prices

	Fleet engine.FleetConfig `json:"-"`
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
		return LengthClass{}, &quantity.Error{Text: text, Want: "a class of lengths: PROMPT/OUTPUT in tokens, 2 or more of output", Examples: [3]string{"chat", "1024/1024", "8k/1k"}}
	}
	from := func(most int64) string { return fmt.Sprintf("uniform:%d..%d", (4*most+4)/5, most) }
	return LengthClass{text, from(p), from(o)}, nil
}

// mostTokens bounds the lengths of a class.
const mostTokens = 1 << 20

// rows are n requests of the class, of a level of so many in flight.
func (c *LengthClass) rows(n int, seed uint64, concurrency int) ([]trace.Request, error) {
	prompt, err := arrival.ParseLength(c.Prompt)
	if err != nil {
		return nil, err
	}
	output, err := arrival.ParseLength(c.Output)
	if err != nil {
		return nil, err
	}
	rng := arrival.Stream(seed, fmt.Sprintf("frontier %s %d", c.Name, concurrency))
	p, o := prompt.New(rng), output.New(rng)
	rows := make([]trace.Request, n)
	for i := range rows {
		rows[i].InputTokens, rows[i].OutputTokens = p.Draw(), o.Draw()
	}
	return rows, nil
}

// A FrontierPoint is one level: an engine that answers requests of a class, so many in
// flight at all times. Tokens are of the requests that ended within the measured time.
//
//	per user    = 1 ÷ p50 of TPOT
//	per GPU     = tokens ÷ seconds ÷ GPUs
//	per million = price of a GPU-hour ÷ 3600 ÷ output tokens per second and GPU × 10⁶
//	joules      = watts of a GPU ÷ output tokens per second and GPU
type FrontierPoint struct {
	Concurrency     int      `json:"concurrency"`
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
}

// A FrontierCurve is all levels of an engine with the requests of one class.
type FrontierCurve struct {
	Engine   string          `json:"engine"`
	Points   []FrontierPoint `json:"points"`
	Stopped  string          `json:"stopped,omitempty"`
	Unserved string          `json:"unserved,omitempty"` // why it has no points
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

// Levels of a frontier.
const (
	generations      = 8       // requests that are measured, times those in flight: with the first and the last, 10 times, as InferenceMAX has it
	leastMeasured    = 64      // requests
	leastGain        = 0.02    // of throughput; a level that gains less is the last
	mostInFlight     = 1 << 16 // at the last level
	mostFrontierRuns = 1024    // engines times classes
)

// Run measures every engine with every class.
func (f *Frontier) Run(ctx context.Context) (FrontierResult, error) {
	r := FrontierResult{Schema: frontierSchema, Seed: fmt.Sprint(f.Seed), Engines: f.Engines}
	if len(f.Engines) == 0 || len(f.Classes) == 0 || len(f.Engines)*len(f.Classes) > mostFrontierRuns {
		return r, fmt.Errorf("a frontier has engines and classes of lengths, and at most %d of one times the other", mostFrontierRuns)
	}
	for i, n := range f.Concurrencies {
		if n < 1 || n > mostInFlight || i > 0 && n <= f.Concurrencies[i-1] {
			return r, fmt.Errorf("requests in flight are from 1 to %d, in ascending order", mostInFlight)
		}
	}
	served := false
	for _, class := range f.Classes {
		c := FrontierClass{LengthClass: class}
		for i := range f.Engines {
			curve, err := f.curve(ctx, &class, &f.Engines[i])
			if err != nil {
				return r, fmt.Errorf("%s, %s: %w", f.Engines[i].Name, class.Name, err)
			}
			served = served || len(curve.Points) > 0
			if c.Curves = append(c.Curves, curve); f.Told != nil {
				f.Told(len(r.Classes)*len(f.Engines) + i + 1)
			}
		}
		c.Best = bestStretches(c.Curves, func(p *FrontierPoint) float64 { return p.OutputPerGPU })
		c.Cheapest = bestStretches(c.Curves, func(p *FrontierPoint) float64 {
			if p.PerMillion == nil {
				return 0
			}
			return 1 / *p.PerMillion
		})
		r.Classes = append(r.Classes, c)
	}
	if !served {
		first := r.Classes[0].Curves[0]
		return r, fmt.Errorf("no engine serves any of these lengths: %s, %s: %s", first.Engine, r.Classes[0].Name, first.Unserved)
	}
	return r, nil
}

// curve measures an engine at one level after another.
func (f *Frontier) curve(ctx context.Context, class *LengthClass, e *FrontierEngine) (FrontierCurve, error) {
	c := FrontierCurve{Engine: e.Name, Points: []FrontierPoint{}}
	levels := f.Concurrencies
	if levels == nil {
		for n := 1; n <= mostInFlight; n *= 2 {
			levels = append(levels, n)
		}
	}
	best := 0.0
	for _, n := range levels {
		p, refused, err := f.measure(ctx, class, e, n)
		switch {
		case err != nil:
			return c, err
		case refused != "" && len(c.Points) == 0:
			c.Unserved = refused
			return c, nil
		case refused != "":
			c.Stopped = fmt.Sprintf("with %d in flight %s", n, refused)
		case f.Concurrencies == nil && p.OutputPerGPU < best*(1+leastGain):
			c.Stopped = fmt.Sprintf("with %d in flight throughput grew by less than %s", n, page.Percent(leastGain))
		}
		if refused == "" {
			c.Points = append(c.Points, p)
			best = max(best, p.OutputPerGPU)
		}
		if c.Stopped != "" {
			break
		}
	}
	markFront(c.Points)
	return c, nil
}

// measure plays one level. refused says why the engine does not answer all requests.
func (f *Frontier) measure(ctx context.Context, class *LengthClass, e *FrontierEngine, n int) (p FrontierPoint, refused string, err error) {
	rows, err := class.rows(n*(2+max(generations, (leastMeasured+n-1)/n)), f.Seed, n)
	if err != nil {
		return p, "", err
	}
	var ended endedRequests
	s := Simulation{Fleet: e.Fleet, Rows: &trace.SliceReader[trace.Request]{Rows: rows}, Options: replay.Options{Concurrency: n}, Results: &ended}
	if _, _, err := s.Run(ctx); err != nil {
		return p, "", err
	}
	if ended.failed != "" {
		return p, ended.failed, nil
	}
	p, err = ended.point(n, e)
	return p, "", err
}

// endedRequests keeps of results what a level is computed from, and not their gaps.
type endedRequests struct {
	all    []endedRequest
	failed string // why one was refused
}

// An endedRequest has instants and durations in nanoseconds.
type endedRequest struct {
	done, ttft, tpot, e2e int64
	prompt, output        int64
}

// Write implements [trace.Writer].
func (w *endedRequests) Write(rows []result.Result) (int, error) {
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Error == openai.KindTooLong:
			w.failed = "requests are longer than the KV memory"
			continue
		case r.Error == openai.KindRateLimited:
			w.failed = "the queue is full"
			continue
		case r.Error != "" || r.FirstTokenNS == nil || *r.Output < 2:
			return i, fmt.Errorf("a request was not answered: %s", cmp.Or(r.Error, "no tokens"))
		}
		w.all = append(w.all, endedRequest{done: *r.DoneNS, ttft: *r.FirstTokenNS - *r.SentNS, e2e: *r.LastTokenNS - *r.SentNS,
			tpot: int64(math.Round(float64(*r.LastTokenNS-*r.FirstTokenNS) / float64(*r.Output-1))), prompt: int64(*r.Input), output: int64(*r.Output)})
	}
	return len(rows), nil
}

// point computes a level with n in flight. The first n requests to end fill the engine, and
// the last n drain it: the others are measured, from the end of the n-th on. So the engine is
// full all the time, and requests that began together count as whole generations.
func (w *endedRequests) point(n int, e *FrontierEngine) (FrontierPoint, error) {
	slices.SortStableFunc(w.all, func(a, b endedRequest) int { return cmp.Compare(a.done, b.done) })
	measured := w.all[n : len(w.all)-n]
	p := FrontierPoint{Concurrency: n, Requests: len(measured), Seconds: float64(measured[len(measured)-1].done-w.all[n-1].done) / 1e9}
	var prompt, output int64
	var ttft, tpot, e2e []int64
	for _, r := range measured {
		prompt, output = prompt+r.prompt, output+r.output
		ttft, tpot, e2e = append(ttft, r.ttft), append(tpot, r.tpot), append(e2e, r.e2e)
	}
	median := func(values []int64) float64 {
		slices.Sort(values)
		order := sample.Sorted(values)
		return float64(order.At(1, 2)) / 1e6
	}
	p.TTFT, p.TPOT, p.E2E = median(ttft), median(tpot), median(e2e)
	if !(p.TPOT > 0) || !(p.Seconds > 0) {
		return p, errors.New("the engine takes no time: its costs are 0")
	}
	p.PerUser = 1e3 / p.TPOT
	p.OutputPerGPU = float64(output) / p.Seconds / float64(e.GPUs)
	p.TotalPerGPU = float64(prompt+output) / p.Seconds / float64(e.GPUs)
	if e.PerGPUHour > 0 {
		p.PerMillion, _ = shared(e.PerGPUHour, p.OutputPerGPU*3600)
		p.PerMillionTotal, _ = shared(e.PerGPUHour, p.TotalPerGPU*3600)
	}
	if e.Watts > 0 {
		p.JoulesPerToken = trace.Ptr(e.Watts / p.OutputPerGPU)
	}
	return p, nil
}

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
