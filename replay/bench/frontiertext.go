package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/doc"
)

// says are sentences about which engine is best, and which is cheapest.
func (r *FrontierResult) says() []string {
	if len(r.Engines) == 1 {
		return []string{fmt.Sprintf("Output tokens/s per GPU by interactivity, of %s.", printable(r.Engines[0].Name))}
	}
	out := []string{"Highest throughput per GPU: " +
		r.leaders(func(c *FrontierClass) []FrontierStretch { return c.Best }) + "."}
	if cheap := r.leaders(func(c *FrontierClass) []FrontierStretch { return c.Cheapest }); cheap != "" {
		out = append(out, "Lowest cost: "+cheap+".")
	}
	return out
}

// leaders says which engines lead, and where. It is empty where none does.
func (r *FrontierResult) leaders(of func(*FrontierClass) []FrontierStretch) string {
	var parts []string
	leads := false
	for _, e := range r.Engines {
		everywhere, somewhere := 0, 0
		for i := range r.Classes {
			list := of(&r.Classes[i])
			leads = leads || len(list) > 0
			switch {
			case !slices.ContainsFunc(list, func(s FrontierStretch) bool { return s.Engine == e.Name }):
			case len(list) == 1:
				everywhere++
			default:
				somewhere++
			}
		}
		all := len(r.Classes)
		switch {
		case everywhere == all:
			return printable(e.Name) + " at every interactivity"
		case all == 1 && somewhere > 0:
			parts = append(parts, printable(e.Name)+" at some")
		case everywhere > 0 && somewhere > 0:
			parts = append(parts, fmt.Sprintf("%s at every interactivity in %d and at some in %d of %d length classes",
				printable(e.Name), everywhere, somewhere, all))
		case everywhere > 0:
			parts = append(parts, fmt.Sprintf("%s at every interactivity in %d of %d length classes",
				printable(e.Name), everywhere, all))
		case somewhere > 0:
			parts = append(parts, fmt.Sprintf("%s at some in %d of %d length classes",
				printable(e.Name), somewhere, all))
		}
	}
	if !leads {
		return ""
	}
	return strings.Join(parts, "; ")
}

// cautions are what to know before any figure.
func (r *FrontierResult) cautions() (out []doc.Note) {
	add := func(word, text string) {
		out = append(out, doc.Note{Level: doc.Warn, Word: word, Text: printable(text)})
	}
	by := map[string][]string{} // engines by what is said of their limits
	for _, e := range r.Engines {
		if says := e.Loosened.String(); says != "" {
			by[says] = append(by[says], e.Name)
		}
	}
	for _, says := range slices.Sorted(maps.Keys(by)) {
		add("Limits", strings.Join(by[says], ", ")+": "+says)
	}
	var bounds, assumed []string
	models := map[string]bool{}
	for _, e := range r.Engines {
		models[e.Model] = true
		if e.Bound {
			bounds = append(bounds, e.Name)
		} else if e.Warning != "" {
			add("Warning", e.Warning+".")
		}
		if e.Assumed {
			assumed = append(assumed, e.Name)
		}
	}
	for _, text := range r.extrapolating() {
		add("Warning", text)
	}
	if len(bounds) > 0 {
		which := strings.Join(bounds, ", ")
		if len(bounds) == len(r.Engines) {
			which = "all engines"
		}
		add("Bounds", which+": what data sheets allow. Real engines reach a part of it.")
	}
	if len(models) > 1 {
		add("Models",
			fmt.Sprintf("the engines serve %d models, and only engines of one model compare hardware.", len(models)))
	}
	if len(assumed) > 0 {
		add("GPUs", strings.Join(assumed, ", ")+
			": the number is not known, and one for each replica was taken.")
	}
	var unserved, missing, untrusted []string
	for _, c := range r.Classes {
		for _, curve := range c.Curves {
			switch {
			case curve.Untrusted != "":
				untrusted = append(untrusted, fmt.Sprintf("%s by %s: %s", c.Name, curve.Engine, curve.Untrusted))
			case curve.Unserved == unmeasured:
				missing = append(missing, c.Name+" by "+curve.Engine)
			case curve.Unserved != "":
				unserved = append(unserved, fmt.Sprintf("%s by %s: %s", c.Name, curve.Engine, curve.Unserved))
			}
		}
	}
	for _, about := range []struct {
		word string
		list []string
	}{{"Untrusted", untrusted}, {"Not served", unserved}, {"Not measured", missing}} {
		if len(about.list) > 0 {
			add(about.word, strings.Join(about.list, "; ")+".")
		}
	}
	return out
}

// extrapolating says which engines go how far beyond what they were fitted to.
func (r *FrontierResult) extrapolating() (out []string) {
	for _, e := range r.Engines {
		var beyond []result.Beyond
		levels, of := 0, 0
		for _, c := range r.Classes {
			for _, curve := range c.Curves {
				for _, p := range curve.Points {
					if curve.Engine != e.Name {
						continue
					}
					if of++; len(p.Extrapolates) > 0 {
						levels++
						beyond = result.JoinBeyond(beyond, p.Extrapolates)
					}
				}
			}
		}
		if says := report.Extrapolation(beyond); says != "" {
			out = append(out, fmt.Sprintf("%s: at %d of %s %s.", e.Name, levels, doc.Many(int64(of), "level"), says))
		}
	}
	return out
}

// powerNote says what the joules are.
func (r *FrontierResult) powerNote() string {
	sheet, metered := false, false
	for _, e := range r.Engines {
		sheet, metered = sheet || e.DataSheet && !e.Metered, metered || e.Metered
	}
	switch {
	case sheet && metered:
		return " Power is as measured at the GPUs, and where it is not the data sheet's, a bound."
	case sheet:
		return " Power is the data sheet's, a bound."
	case metered:
		return " Power is as measured at the GPUs."
	}
	return ""
}

// engineTable has a row for each engine and class: where it is best, and its highest
// throughput.
func (r *FrontierResult) engineTable() *doc.Table {
	t := doc.Table{Head: []string{"lengths", "engine", "best at", "tok/s/GPU"},
		Align:   []doc.Align{doc.Left, doc.Left, doc.Right, doc.Right},
		Caption: "Best at so many tok/s of each user; the other figures are at the highest throughput."}
	if len(r.Engines) == 1 {
		t.Head[2], t.Caption = "tok/s/user", "Figures are at the highest throughput."
	}
	t.Caption += r.powerNote()
	t.Head = append(t.Head, r.priced(nil)...)
	for i := range r.Classes {
		c := &r.Classes[i]
		for j := range c.Curves {
			if most := c.Curves[j].most(); most != nil { // else it is said why
				t.Rows = append(t.Rows, append([]string{c.Name, printable(c.Curves[j].Engine),
					c.bestAt(c.Curves[j].Engine), doc.Number(most.OutputPerGPU)}, r.priced(most)...))
			}
		}
	}
	return &t
}

// priced are the cells of cost and energy of a level, as far as any engine has a price or a power; of
// nil the heads of their columns.
func (r *FrontierResult) priced(p *FrontierPoint) (cells []string) {
	put := func(known func(FrontierEngine) bool, head string, of func(*FrontierPoint) *float64) {
		switch {
		case !slices.ContainsFunc(r.Engines, known):
		case p == nil:
			cells = append(cells, head)
		default:
			cells = append(cells, cell(of(p)))
		}
	}
	put(func(e FrontierEngine) bool { return e.PerGPUHour > 0 }, "cost/M",
		func(p *FrontierPoint) *float64 { return p.PerMillion })
	put(func(e FrontierEngine) bool { return e.Watts > 0 || e.Metered }, "J/token",
		func(p *FrontierPoint) *float64 { return p.JoulesPerToken })
	return cells
}

// users prints the range, such as "to 45" of the first one, or "45–190".
func (s *FrontierStretch) users(first bool) string {
	if first {
		return "to " + doc.Number(s.To)
	}
	return doc.Number(s.Above) + "–" + doc.Number(s.To)
}

// bestAt is where an engine is best, such as "to 45" or "45–190".
func (c *FrontierClass) bestAt(engine string) string {
	var ranges []string
	for i, s := range c.Best {
		if s.Engine == engine {
			ranges = append(ranges, s.users(i == 0))
		}
	}
	return cmp.Or(strings.Join(ranges, ", "), doc.OrDash(nil, doc.Number))
}

// most is the level with the highest throughput, nil without any.
func (c *FrontierCurve) most() (most *FrontierPoint) {
	for i := range c.Points {
		if p := &c.Points[i]; most == nil || p.OutputPerGPU > most.OutputPerGPU {
			most = p
		}
	}
	return most
}

// title is the class with its lengths.
func (c *LengthClass) title() string {
	return fmt.Sprintf("%s: prompts %s, outputs %s", c.Name, c.Prompt, c.Output)
}

// remarks say where the curves of a class end, and why.
func (c *FrontierClass) remarks() (out []string) {
	for _, curve := range c.Curves {
		if curve.Stopped != "" {
			out = append(out, printable(curve.Engine)+": "+curve.Stopped)
		}
	}
	return out
}

// pointTable has every level of a class. * is a level that another one of its engine beats.
func (r *FrontierResult) pointTable(c *FrontierClass) doc.Table {
	t := doc.Table{Caption: c.title(), Head: append([]string{"engine", "load", "tok/s/user", "tok/s/GPU",
		"with prompts", "TTFT p50, ms", "TPOT p50, ms", "E2E p50, ms"}, r.priced(nil)...)}
	for _, curve := range c.Curves {
		for i := range curve.Points {
			p := &curve.Points[i]
			load := doc.Count(int64(p.Concurrency))
			if p.Rate > 0 {
				load = doc.Number(p.Rate) + "/s"
			}
			if !p.OnFront {
				load += " *"
			}
			t.Rows = append(t.Rows, append([]string{printable(curve.Engine), load, doc.Number(p.PerUser),
				doc.Number(p.OutputPerGPU), doc.Number(p.TotalPerGPU), doc.Number(p.TTFT), doc.Number(p.TPOT),
				doc.Number(p.E2E)}, r.priced(p)...))
		}
	}
	return t
}
