package bench

import (
	"errors"
	"fmt"
	"math"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
)

// Demand is what is to be served, and by what.
type Demand struct {
	Rate            float64 `json:"target_requests_per_s,omitempty"`
	SessionRate     float64 `json:"target_sessions_per_s,omitempty"` // of whole sessions
	Sessions        float64 `json:"target_live_sessions,omitempty"`  // live at once
	GPUsPerInstance int     `json:"gpus_per_instance"`
	Headroom        float64 `json:"headroom"` // share on top, such as 0.2
	Prices
}

// Errors of [Plan].
var (
	errClosedLoop = errors.New("a closed-loop sweep does not show what rate a server sustains, since it sends no " +
		"faster than the server answers: sweep over rates")
	errNoTarget = errors.New("give one thing to serve: --target-rate 100 of requests, --target-sessions 500 live at " +
		"once, or --target-session-rate 2")
	ErrNoHighest = errors.New("the sweep found no load that meets the contract, so no number of instances is enough")
)

// A Capacity says how many instances serve a demand.
//
//	instances = ceil(target ÷ highest load within the contract)
//	with headroom = ceil(target × (1 + headroom) ÷ highest load within the contract)
//	GPUs = instances × GPUs of each
//
// It takes for granted that a router spreads the load evenly, and that instances do
// not help each other's caches.
type Capacity struct {
	Demand
	Unit        string  `json:"load_unit"`                        // of target and highest load: as in [SweepResult]
	Target      float64 `json:"target"`                           // of the demand, in that unit
	Highest     float64 `json:"highest"`                          // of an instance, in that unit
	HighestRate float64 `json:"highest_requests_per_s,omitempty"` // the same of requests
	// the sweep found no rate that fails, so that this is an upper bound of what is needed
	AtLeast    bool `json:"highest_is_at_least"`
	Sustained  bool `json:"highest_was_sustained"`
	Instances  int  `json:"instances"`
	GPUs       int  `json:"gpus"`
	WithMargin int  `json:"instances_with_headroom"`
	GPUsTotal  int  `json:"gpus_with_headroom"`
	// Fewest and Most are the instances without headroom if the highest rate is at
	// the ends of its interval. Null where the sweep has no such end.
	Fewest *int `json:"instances_fewest"`
	Most   *int `json:"instances_most"`
	// Confidence is that of the interval, 0.9 or more of a sweep with a precision; 0 is not
	// known: the ends are then loads at which a run held and failed.
	Confidence  float64  `json:"interval_confidence,omitempty"`
	Utilisation float64  `json:"utilisation"` // target ÷ what all instances hold, with headroom
	Contract    []string `json:"contract"`
	Tier        string   `json:"tier,omitempty"`
	// Loosened are the limits by which the sweep was trusted, as far as they allow more than their defaults.
	Loosened report.LoosenedLimits `json:"loosened_limits,omitempty"`
	// PresetWarning is that of the sweep, see [result.Run].
	PresetWarning string `json:"preset_warning,omitempty"`
	// Extrapolates are the bounds of what the engine was fitted to that the sweep passed.
	Extrapolates []result.Beyond `json:"extrapolates,omitempty"`

	Cost *Cost `json:"cost,omitempty"` // null without a price and watts
}

// Plan says how many instances of what was swept serve a demand.
func Plan(r *SweepResult, d Demand) (Capacity, error) {
	unit, target, err := d.target()
	c := Capacity{Demand: d, Unit: unit, Target: target, AtLeast: r.Highest.AtLeast, Sustained: r.Highest.Sustained,
		Contract: r.Contract, Tier: r.Tier, Loosened: r.Loosened(), PresetWarning: r.PresetWarning,
		Extrapolates: r.Extrapolates}
	switch {
	case err != nil:
		return c, err
	case unit == unitRate && r.Closed && !r.bySession():
		return c, errClosedLoop
	case unit != r.Unit && (r.Unit != "" || unit != unitRate):
		return c, fmt.Errorf("the sweep is over %s, and the target is of %s: %s", unitNames[r.Unit],
			unitNames[unit], unitSweeps[unit])
	case !(target > 0 && target < 1e9) || d.GPUsPerInstance < 1 || !(d.Headroom >= 0 && d.Headroom < 1e3):
		return c, errors.New("the rate and the GPUs must be above 0, and the headroom 0 or more")
	case r.Highest.Load == nil || !(*r.Highest.Load > 0):
		return c, ErrNoHighest
	case target / *r.Highest.Load > 1e6:
		return c, errors.New("it would take more than a million instances")
	}
	if c.Highest = *r.Highest.Load; unit == unitRate {
		c.HighestRate = c.Highest
	}
	if r.Precision > 0 {
		c.Confidence = 0.9
	}
	c.Instances = instances(target, c.Highest)
	c.WithMargin = instances(target*(1+d.Headroom), c.Highest)
	c.GPUs, c.GPUsTotal = c.Instances*d.GPUsPerInstance, c.WithMargin*d.GPUsPerInstance
	c.Utilisation = target / (float64(c.WithMargin) * c.Highest)
	if high := r.Highest.High; high != nil {
		c.Fewest = trace.Ptr(min(c.Instances, instances(target, *high)))
	}
	if low := r.Highest.Low; low != nil && target / *low <= 1e6 {
		c.Most = trace.Ptr(max(c.Instances, instances(target, *low)))
	}
	c.Cost, err = d.cost(&c, &r.Highest)
	return c, err
}

// target is the one load that is to be served, with its unit.
func (d *Demand) target() (unit string, of float64, err error) {
	for _, t := range []struct {
		unit string
		of   float64
	}{{unitRate, d.Rate}, {unitSessionRate, d.SessionRate}, {unitLiveSessions, d.Sessions}} {
		switch {
		case t.of == 0:
		case unit != "":
			return unit, of, errNoTarget
		default:
			unit, of = t.unit, t.of
		}
	}
	if unit == "" {
		return unitRate, 0, errNoTarget
	}
	return unit, of, nil
}

// unitNames name the loads of a sweep, and unitSweeps say which sweep has them.
var (
	unitNames = map[string]string{unitRate: "rates of requests", unitInFlight: "requests in flight",
		unitSessionRate: "rates of sessions", unitLiveSessions: "live sessions"}
	unitSweeps = map[string]string{unitRate: "sweep over --rates", unitSessionRate: "sweep over --session-rates",
		unitLiveSessions: "sweep over --sessions"}
)

// load prints a load with its unit.
func (c *Capacity) load(v float64) string {
	r := SweepResult{Unit: c.Unit}
	return r.load(v)
}

func instances(rate, each float64) int { return max(ceil(rate/each), 1) }

// ceil rounds up, but not for the last bits of a product: 5 × 1.2 is 6.
func ceil(v float64) int { return int(math.Ceil(v - 1e-9)) }

// confirmed says how sure the highest rate is.
func (c *Capacity) confirmed() string {
	says := "not sustained by a longer run"
	if c.Sustained {
		says = "sustained by a longer run"
	}
	if c.AtLeast {
		says += "; no load failed, so it may hold more, and fewer may do"
	}
	return says
}

// formulas say how the capacity is computed.
func (c *Capacity) formulas() []string {
	return []string{
		fmt.Sprintf("instances = ⌈target ÷ highest load⌉ = ⌈%s ÷ %s⌉ = %d.", spelled(c.Target),
			spelled(c.Highest), c.Instances),
		fmt.Sprintf("with headroom = ⌈target × (1 + headroom) ÷ highest load⌉ = ⌈%s × %s ÷ %s⌉ = %d, on %s each.",
			spelled(c.Target), doc.Number(1+c.Headroom), spelled(c.Highest), c.WithMargin,
			doc.Many(int64(c.GPUsPerInstance), "GPU")),
		"This assumes that a router spreads the load evenly, and that instances do not help each other's caches.",
	}
}

// sureness is what the range of instances comes from.
func (c *Capacity) sureness() string {
	if c.Confidence == 0 {
		return "by the bounds of the sweep"
	}
	return doc.Percent(c.Confidence) + " interval"
}

// Prices say what GPUs cost. 0 is not known.
type Prices struct {
	PerGPUHour float64 `json:"price_per_gpu_hour,omitempty"` // in any currency
	// drawn by a GPU and its share of the machine, loaded or not
	Watts  float64 `json:"watts_per_gpu,omitempty"`
	PerKWh float64 `json:"price_per_kwh,omitempty"` // on top of the GPU-hours
}

// A Cost is what serving a demand costs, with all GPUs paid for, idle headroom
// included.
//
//	cost per hour = GPUs × (price of a GPU-hour + watts ÷ 1000 × price of a kWh)
//	output tokens per hour = target rate × output tokens per request × 3600
//	sessions per second = target rate of sessions, or target of live sessions × sessions/s ÷ live sessions at the highest load
//
// The good tokens are the same with the share of requests that met every objective.
// That takes good requests to be as long as others: where long answers miss their
// objectives, there are fewer.
type Cost struct {
	PerHour          *float64 `json:"per_hour"`                            // null without a price
	OutputPerRequest float64  `json:"output_tokens_per_request,omitempty"` // measured at the highest rate
	OutputPerSession *float64 `json:"output_tokens_per_session,omitempty"` // the same of a load by session
	SessionsPerS     *float64 `json:"sessions_per_s,omitempty"`            // at the target, of a load by session
	PerSession       *float64 `json:"per_session,omitempty"`               //
	OutputPerS       float64  `json:"output_tokens_per_s"`                 // at the target
	PerMillion       *float64 `json:"per_million_output_tokens"`           //
	TokensPerPrice   *float64 `json:"output_tokens_per_price"`             // per dollar, or whatever the price is in
	GoodShare        *float64 `json:"goodput_share"`                       // null without objectives
	PerMillionGood   *float64 `json:"per_million_good_output_tokens"`      //
	GoodPerPrice     *float64 `json:"good_output_tokens_per_price"`        //
	KilowattHours    *float64 `json:"kwh_per_hour"`                        // null without watts
	JoulesPerToken   *float64 `json:"joules_per_output_token"`             //
}

// cost is null when nothing is known of prices.
func (p *Prices) cost(c *Capacity, h *Highest) (*Cost, error) {
	switch {
	case !(p.PerGPUHour >= 0 && p.Watts >= 0 && p.PerKWh >= 0):
		return nil, errors.New("prices and watts cannot be negative")
	case p.PerKWh > 0 && p.Watts == 0:
		return nil, errors.New("a price of energy needs the watts of a GPU")
	case p.PerGPUHour == 0 && p.Watts == 0:
		return nil, nil
	}
	out := &Cost{GoodShare: h.GoodShare}
	if err := out.output(c, h); err != nil {
		return nil, err
	}
	gpus := float64(c.GPUsTotal)
	if p.Watts > 0 {
		kw := gpus * p.Watts / 1000
		joules := kw * 1000 / out.OutputPerS
		out.KilowattHours, out.JoulesPerToken = &kw, &joules
	}
	if perHour := gpus * (p.PerGPUHour + p.Watts/1000*p.PerKWh); perHour > 0 {
		out.PerHour = &perHour
		if out.SessionsPerS != nil && *out.SessionsPerS > 0 {
			out.PerSession = trace.Ptr(perHour / (*out.SessionsPerS * 3600))
		}
		out.PerMillion, out.TokensPerPrice = shared(perHour, out.OutputPerS*3600)
		if h.GoodShare != nil {
			out.PerMillionGood, out.GoodPerPrice = shared(perHour, out.OutputPerS*3600**h.GoodShare)
		}
	}
	return out, nil
}

// output takes over the output tokens at the highest load, and what they are at the target.
func (k *Cost) output(c *Capacity, h *Highest) error {
	if c.Unit == unitRate {
		if h.OutputPerRequest == nil || *h.OutputPerRequest == 0 {
			return errors.New("the sweep has no output tokens to share the cost")
		}
		k.OutputPerRequest, k.OutputPerS = *h.OutputPerRequest, c.Target**h.OutputPerRequest
		return nil
	}
	if h.OutputPerSession == nil || *h.OutputPerSession == 0 || h.SessionsPerS == nil {
		return errors.New("the sweep has no sessions that ended at its highest load, to share the cost")
	}
	rate := c.Target
	if c.Unit == unitLiveSessions {
		rate *= *h.SessionsPerS / c.Highest
	}
	k.OutputPerSession, k.SessionsPerS, k.OutputPerS = h.OutputPerSession, &rate, rate**h.OutputPerSession
	return nil
}

// each is the output of a request, or of a session.
func (k *Cost) each() string {
	if k.OutputPerSession != nil {
		return doc.Number(*k.OutputPerSession) + " per session"
	}
	return doc.Number(k.OutputPerRequest) + " per request"
}

// shared is the price of a million tokens, and the tokens of a unit of price; null
// where there are none.
func shared(price, tokens float64) (perMillion, perPrice *float64) {
	if tokens <= 0 {
		return nil, nil
	}
	a, b := price/tokens*1e6, tokens/price
	return &a, &b
}

// paid says what the cost of an hour is of.
func (p *Prices) paid(gpus int) string {
	out := "of all GPUs"
	if p.PerGPUHour > 0 {
		out = fmt.Sprintf("%d × %s a GPU-hour", gpus, doc.Number(p.PerGPUHour))
	}
	if p.PerKWh > 0 {
		out += ", with energy"
	}
	return out + ", idle headroom included"
}
