package bench

import (
	"fmt"
	"strings"

	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/doc"
)

// Page lays the capacity out for a browser: the instances and GPUs as the headline,
// beside the instances over the target rate.
func (c *Capacity) Page() *doc.Document {
	p := &doc.Document{Title: "Capacity", Tag: trace.TierNote("result", c.Tier),
		Lead: fmt.Sprintf("An instance holds %s%s, %s.", c.load(c.Highest), c.within(), c.confirmed()),
		Headline: fmt.Sprintf("%s on %s for %s, with %s headroom", doc.Many(int64(c.WithMargin), "instance"),
			doc.Many(int64(c.GPUsTotal), "GPU"), c.load(c.Target), doc.Percent(c.Headroom)),
		Plot: c.plot(),
		Table: &doc.Table{Head: []string{"", "instances", "GPUs"},
			Align: []doc.Align{doc.Left, doc.Right, doc.Right}}}
	row := func(what string, n int) {
		p.Table.Rows = append(p.Table.Rows,
			[]string{what, doc.Count(int64(n)), doc.Count(int64(n * c.GPUsPerInstance))})
	}
	row("for the target", c.Instances)
	if c.Fewest != nil {
		row("at the fewest, "+c.sureness(), *c.Fewest)
	}
	if c.Most != nil {
		row("at the most, "+c.sureness(), *c.Most)
	}
	row(fmt.Sprintf("with %s headroom", doc.Percent(c.Headroom)), c.WithMargin)

	var facts doc.Group
	put := facts.Add
	put("Utilisation", doc.Number(c.Utilisation*100)+" %", "at the target, with headroom")
	if k := c.Cost; k != nil {
		if k.PerHour != nil {
			put("Cost per hour", doc.Number(*k.PerHour), c.paid(c.GPUsTotal))
			if k.PerSession != nil {
				put("Per session", cell(k.PerSession), doc.Number(*k.SessionsPerS)+" a second at the target")
			}
			put("Per million tokens", cell(k.PerMillion),
				"of output; 1 buys "+doc.OrDash(k.TokensPerPrice, doc.Number))
		}
		put("Output", doc.Number(k.OutputPerS)+" tok/s", k.each()+" as measured")
		if k.PerMillionGood != nil {
			put("Per million good tokens", cell(k.PerMillionGood),
				doc.OrDash(k.GoodShare, doc.Percent)+" met every objective")
		}
		if k.KilowattHours != nil {
			put("Energy", doc.Number(*k.KilowattHours)+" kWh/h", cell(k.JoulesPerToken)+" J per output token")
		}
	}
	p.Facts = facts.Facts
	if says := c.Loosened.String(); says != "" {
		p.Verdict = append(p.Verdict, doc.Note{Level: doc.Warn, Text: says})
	}
	if warning := report.Warned(c.PresetWarning, c.Extrapolates); warning != "" {
		p.Verdict = append(p.Verdict, doc.Note{Level: doc.Warn, Text: printable(warning) + "."})
	}
	p.Sections = []doc.Section{{Title: "How it is computed", Text: c.formulas()}}
	return p
}

// within is what the highest rate keeps to.
func (c *Capacity) within() string {
	if len(c.Contract) == 0 {
		return ""
	}
	return " within " + strings.Join(c.Contract, "; ")
}

// plot is how many instances each target takes, up to twice that which was asked for.
func (c *Capacity) plot() *doc.Plot {
	const most = 400 // steps that are drawn
	bare, margin := doc.Series{Name: "for the target"}, doc.Series{Name: "with headroom"}
	each := 1
	if steps := 2 * c.Target / c.Highest; steps > most {
		each = ceil(steps / most)
	}
	for n := 0; float64(n)*c.Highest < 2*c.Target; n += each {
		at := n + each
		bare.X, bare.Y = append(bare.X, float64(n)*c.Highest), append(bare.Y, float64(at))
		margin.X, margin.Y = append(margin.X, float64(n)*c.Highest),
			append(margin.Y, float64(ceil(float64(at)*(1+c.Headroom))))
	}
	end := 2 * c.Target
	bare.X, bare.Y = append(bare.X, end), append(bare.Y, bare.Y[len(bare.Y)-1])
	margin.X, margin.Y = append(margin.X, end), append(margin.Y, margin.Y[len(margin.Y)-1])
	label, unit := "target rate", "req/s"
	switch c.Unit {
	case unitSessionRate:
		label, unit = "target rate of sessions", "1/s"
	case unitLiveSessions:
		label, unit = "live sessions", ""
	}
	return &doc.Plot{Title: "Instances over the target", Kind: doc.Step, XLabel: label, XUnit: unit,
		YLabel: "instances",
		Series: []doc.Series{bare, margin},
		Marks:  []doc.Mark{{Axis: doc.AxisX, At: c.Target, Label: "target " + doc.Number(c.Target)}}}
}
