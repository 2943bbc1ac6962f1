package bench

import (
	"errors"
	"fmt"

	"reprise/trace/page"
)

// Prices say what GPUs cost. 0 is not known.
type Prices struct {
	PerGPUHour float64 `json:"price_per_gpu_hour,omitempty"` // in any currency
	Watts      float64 `json:"watts_per_gpu,omitempty"`      // drawn by a GPU and its share of the machine, loaded or not
	PerKWh     float64 `json:"price_per_kwh,omitempty"`      // on top of the GPU-hours
}

// A Cost is what serving a demand costs, with all GPUs paid for, idle headroom
// included.
//
//	cost per hour = GPUs × (price of a GPU-hour + watts ÷ 1000 × price of a kWh)
//	output tokens per hour = target rate × output tokens per request × 3600
//
// The good tokens are the same with the share of requests that met every objective.
// That takes good requests to be as long as others: where long answers miss their
// objectives, there are fewer.
type Cost struct {
	PerHour          *float64 `json:"per_hour"`                       // null without a price
	OutputPerRequest float64  `json:"output_tokens_per_request"`      // measured at the highest rate
	OutputPerS       float64  `json:"output_tokens_per_s"`            // at the target rate
	PerMillion       *float64 `json:"per_million_output_tokens"`      //
	TokensPerPrice   *float64 `json:"output_tokens_per_price"`        // per dollar, or whatever the price is in
	GoodShare        *float64 `json:"goodput_share"`                  // null without objectives
	PerMillionGood   *float64 `json:"per_million_good_output_tokens"` //
	GoodPerPrice     *float64 `json:"good_output_tokens_per_price"`   //
	KilowattHours    *float64 `json:"kwh_per_hour"`                   // null without watts
	JoulesPerToken   *float64 `json:"joules_per_output_token"`        //
}

// cost is null when nothing is known of prices.
func (p *Prices) cost(c *Capacity, h *Highest) (*Cost, error) {
	switch {
	case !(p.PerGPUHour >= 0 && p.Watts >= 0 && p.PerKWh >= 0):
		return nil, errors.New("prices and watts are 0 or more")
	case p.PerKWh > 0 && p.Watts == 0:
		return nil, errors.New("a price of energy takes the watts of a GPU")
	case p.PerGPUHour == 0 && p.Watts == 0:
		return nil, nil
	case h.OutputPerRequest == nil || *h.OutputPerRequest == 0:
		return nil, errors.New("the sweep has no output tokens to share the cost")
	}
	out := &Cost{OutputPerRequest: *h.OutputPerRequest, OutputPerS: c.Rate * *h.OutputPerRequest, GoodShare: h.GoodShare}
	gpus := float64(c.GPUsTotal)
	if p.Watts > 0 {
		kw := gpus * p.Watts / 1000
		joules := kw * 1000 / out.OutputPerS
		out.KilowattHours, out.JoulesPerToken = &kw, &joules
	}
	if perHour := gpus * (p.PerGPUHour + p.Watts/1000*p.PerKWh); perHour > 0 {
		out.PerHour = &perHour
		out.PerMillion, out.TokensPerPrice = shared(perHour, out.OutputPerS*3600)
		if h.GoodShare != nil {
			out.PerMillionGood, out.GoodPerPrice = shared(perHour, out.OutputPerS*3600**h.GoodShare)
		}
	}
	return out, nil
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
		out = fmt.Sprintf("%d × %s a GPU-hour", gpus, figure(p.PerGPUHour))
	}
	if p.PerKWh > 0 {
		out += ", with energy"
	}
	return out + ", idle headroom included"
}

func (c *Cost) lines(paid string, line func(what, value, note string)) {
	line("Output tokens", figure(c.OutputPerS)+" /s", fmt.Sprintf("%s per request, as measured at the highest rate", figure(c.OutputPerRequest)))
	if c.PerHour != nil {
		line("Cost per hour", figure(*c.PerHour), paid)
		line("Cost per million output tokens", cell(c.PerMillion), fmt.Sprintf("%s tokens for 1 of the price's currency", cell(c.TokensPerPrice)))
	}
	if c.PerMillionGood != nil {
		line("Cost per million good output tokens", cell(c.PerMillionGood), fmt.Sprintf("%s tokens for 1; %s of the requests met every objective", cell(c.GoodPerPrice), page.OrDash(c.GoodShare, page.Percent)))
	}
	if c.KilowattHours != nil {
		line("Energy", figure(*c.KilowattHours)+" kWh per hour", fmt.Sprintf("%s J per output token", cell(c.JoulesPerToken)))
	}
}
