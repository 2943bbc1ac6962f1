package bench

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"reprise/trace"
)

// Demand is what is to be served, and by what.
type Demand struct {
	Rate            float64 `json:"target_requests_per_s"`
	GPUsPerInstance int     `json:"gpus_per_instance"`
	Headroom        float64 `json:"headroom"` // share on top, such as 0.2
	Prices
}

// Errors of [Plan].
var (
	ErrClosedLoop = errors.New("a closed loop says nothing of the rate that a server holds, since it sends no faster than is answered: sweep over rates")
	ErrNoHighest  = errors.New("the sweep found no load that holds, so that no number of instances is enough")
)

// A Capacity says how many instances serve a demand.
//
//	instances = ceil(target rate ÷ highest rate within the contract)
//	with headroom = ceil(instances × (1 + headroom))
//	GPUs = instances × GPUs of each
//
// It takes for granted that a router spreads the load evenly, and that instances do
// not help each other's caches.
type Capacity struct {
	Demand
	HighestRate float64 `json:"highest_requests_per_s"` // of an instance
	AtLeast     bool    `json:"highest_is_at_least"`    // the sweep found no rate that fails, so that this is an upper bound of what is needed
	Sustained   bool    `json:"highest_was_sustained"`
	Instances   int     `json:"instances"`
	GPUs        int     `json:"gpus"`
	WithMargin  int     `json:"instances_with_headroom"`
	GPUsTotal   int     `json:"gpus_with_headroom"`
	// Fewest and Most are the instances without headroom if the highest rate is at
	// the ends of its interval. Null where the sweep has no such end.
	Fewest      *int     `json:"instances_fewest"`
	Most        *int     `json:"instances_most"`
	Utilisation float64  `json:"utilisation"` // target rate ÷ what all instances hold, with headroom
	Contract    []string `json:"contract"`
	Tier        string   `json:"tier,omitempty"`
	// PresetWarning is that of the sweep, see [result.Run].
	PresetWarning string `json:"preset_warning,omitempty"`

	Cost *Cost `json:"cost,omitempty"` // null without a price and watts
}

// Plan says how many instances of what was swept serve a demand.
func Plan(r *SweepResult, d Demand) (Capacity, error) {
	c := Capacity{Demand: d, AtLeast: r.Highest.AtLeast, Sustained: r.Highest.Sustained, Contract: r.Contract, Tier: r.Tier, PresetWarning: r.PresetWarning}
	switch {
	case r.Closed:
		return c, ErrClosedLoop
	case !(d.Rate > 0 && d.Rate < 1e9) || d.GPUsPerInstance < 1 || !(d.Headroom >= 0 && d.Headroom < 1e3):
		return c, errors.New("a demand has a rate and GPUs above 0, and a headroom of 0 or more")
	case r.Highest.Load == nil || !(*r.Highest.Load > 0):
		return c, ErrNoHighest
	case d.Rate / *r.Highest.Load > 1e6:
		return c, errors.New("it would take more than a million instances")
	}
	c.HighestRate = *r.Highest.Load
	c.Instances = instances(d.Rate, c.HighestRate)
	c.WithMargin = ceil(float64(c.Instances) * (1 + d.Headroom))
	c.GPUs, c.GPUsTotal = c.Instances*d.GPUsPerInstance, c.WithMargin*d.GPUsPerInstance
	c.Utilisation = d.Rate / (float64(c.WithMargin) * c.HighestRate)
	if high := r.Highest.High; high != nil {
		c.Fewest = trace.Ptr(min(c.Instances, instances(d.Rate, *high)))
	}
	if low := r.Highest.Low; low != nil && d.Rate / *low <= 1e6 {
		c.Most = trace.Ptr(max(c.Instances, instances(d.Rate, *low)))
	}
	var err error
	c.Cost, err = d.cost(&c, &r.Highest)
	return c, err
}

func instances(rate, each float64) int { return max(ceil(rate/each), 1) }

// ceil rounds up, but not for the last bits of a product: 5 × 1.2 is 6.
func ceil(v float64) int { return int(math.Ceil(v - 1e-9)) }

// WriteText writes the capacity for people.
func (c *Capacity) WriteText(w io.Writer) error {
	var b strings.Builder
	if tier := trace.TierNote("table", c.Tier); tier != "" {
		fmt.Fprintln(&b, tier)
	}
	if c.PresetWarning != "" {
		wrap(&b, "Warning: "+c.PresetWarning+".")
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(what, value, note string) { fmt.Fprintf(t, "%s\t%s\t%s\n", what, value, note) }
	line("Target", figure(c.Rate)+" req/s", "")
	note := "not sustained by a longer run"
	if c.Sustained {
		note = "confirmed and sustained"
	}
	if c.AtLeast {
		note += "; no rate failed, so it may be higher and the instances fewer"
	}
	if len(c.Contract) > 0 {
		note += "; " + strings.Join(c.Contract, "; ")
	}
	line("Highest rate of an instance", figure(c.HighestRate)+" req/s", note)
	line("Instances", fmt.Sprint(c.Instances), fmt.Sprintf("⌈%s ÷ %s⌉%s", figure(c.Rate), figure(c.HighestRate), c.between()))
	line("GPUs", fmt.Sprint(c.GPUs), fmt.Sprintf("%d × %d", c.Instances, c.GPUsPerInstance))
	line("Instances with headroom", fmt.Sprint(c.WithMargin), fmt.Sprintf("%s %% on top, rounded up; used to %s %%", figure(c.Headroom*100), figure(c.Utilisation*100)))
	line("GPUs with headroom", fmt.Sprint(c.GPUsTotal), fmt.Sprintf("%d × %d", c.WithMargin, c.GPUsPerInstance))
	if c.Cost != nil {
		c.Cost.lines(c.paid(c.GPUsTotal), line)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// between says how sure the number of instances is.
func (c *Capacity) between() string {
	end := func(n *int) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	if c.Fewest == nil && c.Most == nil {
		return "; the sweep bounds it on neither side"
	}
	if c.Fewest != nil && c.Most != nil && *c.Fewest == *c.Most {
		return "; by the runs that held or failed beyond chance as well"
	}
	return fmt.Sprintf("; %s to %s by the runs that held or failed beyond chance", end(c.Fewest), end(c.Most))
}
