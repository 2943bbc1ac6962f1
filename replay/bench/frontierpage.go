package bench

import (
	"fmt"
	"strings"

	"reprise/trace/doc"
)

// Page lays the frontier out for a browser: which engine is best at which interactivity, and for
// each class of lengths the curves of all engines over each other.
func (r *FrontierResult) Page() *doc.Document {
	p := &doc.Document{Title: "Throughput and interactivity", Headline: r.headline(), Verdict: r.cautions(),
		Table: r.engineTable()}
	if says := r.says(); says[0] != p.Headline {
		p.Lead = strings.Join(says, " ")
	} else {
		p.Lead = strings.Join(says[1:], " ")
	}
	throughput := r.plots("tokens/s per GPU", "tok/s", func(q *FrontierPoint) *float64 { return &q.OutputPerGPU })
	if len(throughput) > 0 {
		p.Plot, throughput = &throughput[0], throughput[1:]
		p.Plot.Text = "Output tokens/s per GPU against the tokens/s that each user sees, under growing load. Right " +
			"and up is better."
	}
	section := func(title, text string, plots []doc.Plot) {
		if len(plots) > 0 {
			p.Sections = append(p.Sections, doc.Section{Title: title, Text: []string{text}, Plots: plots})
		}
	}
	section("Throughput per GPU",
		"The other classes of lengths. Levels that another level of the engine beats at both are not drawn.",
		throughput)
	section("Cost", "Of a million output tokens; all GPUs are paid for, busy or not.",
		r.plots("cost per million output tokens", "", func(q *FrontierPoint) *float64 { return q.PerMillion }))
	section("Energy", strings.TrimSpace("Of an output token."+r.powerNote()),
		r.plots("energy per output token", "J", func(q *FrontierPoint) *float64 { return q.JoulesPerToken }))
	section("With the tokens of prompts",
		"Prompt and output tokens together, as the main plot of InferenceMAX has them.",
		r.plots("all tokens/s per GPU", "tok/s", func(q *FrontierPoint) *float64 { return &q.TotalPerGPU }))
	levels := doc.Section{Title: "Levels",
		Text: []string{"Load is requests in flight. * = another level of the engine is as good at both interactivity " +
			"and throughput, and better at one."}}
	for i := range r.Classes {
		c := &r.Classes[i]
		levels.Tables = append(levels.Tables, r.pointTable(c))
		for _, line := range c.remarks() {
			levels.Text = append(levels.Text, c.Name+", "+line+".")
		}
	}
	p.Sections = append(p.Sections, levels)
	p.About = r.provenance()
	return p
}

// headline is the engine that is best everywhere, where one is.
func (r *FrontierResult) headline() string {
	engines := map[string]bool{}
	for _, c := range r.Classes {
		for _, s := range c.Best {
			engines[s.Engine] = true
		}
	}
	if len(engines) == 1 {
		return r.says()[0]
	}
	return "The engine with the highest throughput per GPU depends on lengths and interactivity"
}

// plots are a plot for each class of lengths, with the fronts of all engines.
func (r *FrontierResult) plots(label, unit string, of func(*FrontierPoint) *float64) []doc.Plot {
	const colours = 6 // of series
	var out []doc.Plot
	for _, c := range r.Classes {
		p := doc.Plot{Title: c.Name, Kind: doc.Line, XLabel: "interactivity", XUnit: "tok/s", YLabel: label,
			YUnit: unit, LogY: true}
		for i, curve := range c.Curves {
			s := doc.Series{Name: printable(curve.Engine), Tone: i%colours + 1}
			for j := range curve.Points {
				q := &curve.Points[j]
				if v := of(q); v != nil && q.OnFront {
					s.X, s.Y = append(s.X, q.PerUser), append(s.Y, *v)
				}
			}
			p.Series = append(p.Series, s)
		}
		out = append(out, p)
	}
	return doc.Drawn(out...)
}

// provenance is what the engines are, and what their GPUs cost and draw.
func (r *FrontierResult) provenance() []doc.Group {
	first := doc.Group{Title: "Frontier"}
	first.Add("Command", r.Command, "")
	first.Add("Seed", r.Seed, "")
	groups := []doc.Group{first}
	for _, e := range r.Engines {
		g := doc.Group{Title: printable(e.Name)}
		put := func(label, value, note string) {
			g.Add(label, printable(value), note)
		}
		put("Model", e.Model, "")
		gpus := fmt.Sprint(e.GPUs)
		if e.GPU != "" {
			gpus += " × " + e.GPU
		}
		put("GPUs", gpus, "")
		if e.Metered {
			put("Power of a GPU", "as measured", "by the servers' metrics")
		} else if e.Watts > 0 {
			note := ""
			if e.DataSheet {
				note = "by the data sheet"
			}
			put("Power of a GPU", doc.Number(e.Watts)+" W", note)
		}
		if e.PerGPUHour > 0 {
			put("Price of a GPU-hour", doc.Number(e.PerGPUHour), "")
		}
		for _, fact := range [][2]string{{"Simulated", e.Simulated}, {"Endpoint", e.Endpoint}, {"Server", e.Server},
			{"Measured", e.Started}} {
			put(fact[0], fact[1], "")
		}
		groups = append(groups, g)
	}
	return groups
}
