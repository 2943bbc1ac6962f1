package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"reprise/trace/page"
	"reprise/trace/textpage"
)

// WriteText writes which engine is best at which interactivity, for each class of lengths, in
// [textpage.AnswerLines] lines at most. With details it has every level of every engine.
func (r *FrontierResult) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	p.LineAtMost(o.AtMost(2), "", r.answer())
	foot := textpage.New(o)
	for _, n := range r.cautions() {
		foot.LineAtMost(o.AtMost(2), n.Word+": ", n.Text)
	}
	foot.Blank()
	about := []string{"tok/s/GPU, cost of a million output tokens and J per output token are at the lowest interactivity of a row." + r.powerNote()}
	if !o.Details {
		about = append(about, o.Rest)
	}
	foot.LineAtMost(o.AtMost(3), "", strings.Join(about, " "))
	head, rows := r.bestTable()
	more := 0
	if room := textpage.AnswerLines - p.Lines() - foot.Lines() - 4; !o.Details && len(rows) > max(room, 1) {
		more = len(rows) - max(room, 1)
	}
	p.Columns(head, rows[:len(rows)-more])
	if more > 0 {
		p.Line("", "and "+page.Many(int64(more), "more row"))
	}
	if o.Details {
		for i := range r.Classes {
			c := &r.Classes[i]
			head, rows := r.pointTable(c)
			p.Table(c.title(), head, rows)
			for _, line := range c.remarks() {
				p.Line("  - ", line)
			}
		}
	}
	p.Blank()
	if _, err := p.WriteTo(w); err != nil {
		return err
	}
	_, err := foot.WriteTo(w)
	return err
}

// answer says in how many classes an engine is best at every interactivity, and which ones never
// are.
func (r *FrontierResult) answer() string {
	alone := map[string]int{}
	wins := map[string]bool{}
	for _, c := range r.Classes {
		for _, s := range c.Best {
			wins[s.Engine] = true
		}
		if len(c.Best) == 1 {
			alone[c.Best[0].Engine]++
		}
	}
	if len(r.Engines) == 1 {
		return fmt.Sprintf("Output tokens/s per GPU by the interactivity, of %s.", printable(r.Engines[0].Name))
	}
	var parts, never []string
	for _, e := range r.Engines {
		switch n := alone[e.Name]; {
		case n > 0 && n == len(r.Classes):
			parts = append(parts, e.Name+" at every interactivity")
		case n > 0:
			parts = append(parts, fmt.Sprintf("%s at every interactivity in %d of %d length classes", e.Name, n, len(r.Classes)))
		}
		if !wins[e.Name] {
			never = append(never, e.Name)
		}
	}
	if len(parts) == 0 {
		parts = []string{"which engine has it depends on the interactivity"}
	}
	out := "Highest throughput per GPU: " + strings.Join(parts, ", ") + "."
	if len(never) > 0 {
		out += " Never: " + strings.Join(never, ", ") + "."
	}
	return printable(out)
}

// cautions are what to know before any figure.
func (r *FrontierResult) cautions() (out []page.Note) {
	add := func(level page.Level, word, text string) {
		out = append(out, page.Note{Level: level, Word: word, Text: printable(text)})
	}
	var bounds, assumed []string
	models := map[string]bool{}
	for _, e := range r.Engines {
		models[e.Model] = true
		if e.Bound {
			bounds = append(bounds, e.Name)
		} else if e.Warning != "" {
			add(page.Warn, "Warning", e.Warning+".")
		}
		if e.Assumed {
			assumed = append(assumed, e.Name)
		}
	}
	if len(bounds) > 0 {
		add(page.Warn, "Bounds", strings.Join(bounds, ", ")+": what the data sheet allows, and no measurement. Real engines reach a part of it.")
	}
	if len(models) > 1 {
		add(page.Warn, "Models", fmt.Sprintf("the engines serve %d models, and only engines of one model compare hardware.", len(models)))
	}
	if len(assumed) > 0 {
		add(page.Warn, "GPUs", strings.Join(assumed, ", ")+": the number is not known, and one for each replica was taken.")
	}
	for _, c := range r.Classes {
		for _, curve := range c.Curves {
			if curve.Unserved != "" {
				add(page.Warn, "Not served", fmt.Sprintf("%s by %s: %s.", c.Name, curve.Engine, curve.Unserved))
			}
		}
	}
	return out
}

// powerNote says what the joules are.
func (r *FrontierResult) powerNote() string {
	for _, e := range r.Engines {
		if e.DataSheet {
			return " Power is the most that a GPU draws by its data sheet, without its host: a bound."
		}
	}
	return ""
}

// bestTable has a row for each stretch of interactivity.
func (r *FrontierResult) bestTable() (head []string, rows [][]string) {
	head = []string{"lengths", "tok/s/user", "best engine", "tok/s/GPU"}
	cost, joules := r.knows()
	if cost {
		head = append(head, "cost/M")
	}
	if joules {
		head = append(head, "J/token")
	}
	for _, c := range r.Classes {
		for i, s := range c.Best {
			users := figure(s.Above) + "–" + figure(s.To)
			if i == 0 {
				users = "to " + figure(s.To)
			}
			row := []string{c.Name, users, printable(s.Engine), figure(s.At.OutputPerGPU)}
			if cost {
				row = append(row, cell(s.At.PerMillion))
			}
			if joules {
				row = append(row, cell(s.At.JoulesPerToken))
			}
			rows = append(rows, row)
		}
	}
	return head, rows
}

// knows tells whether any engine has a price, and a power.
func (r *FrontierResult) knows() (cost, joules bool) {
	return slices.ContainsFunc(r.Engines, func(e FrontierEngine) bool { return e.PerGPUHour > 0 }),
		slices.ContainsFunc(r.Engines, func(e FrontierEngine) bool { return e.Watts > 0 })
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
func (r *FrontierResult) pointTable(c *FrontierClass) (head []string, rows [][]string) {
	head = []string{"engine", "in flight", "tok/s/user", "tok/s/GPU", "with prompts", "TTFT p50, ms", "TPOT p50, ms", "E2E p50, ms"}
	cost, joules := r.knows()
	if cost {
		head = append(head, "cost/M")
	}
	if joules {
		head = append(head, "J/token")
	}
	for _, curve := range c.Curves {
		for i := range curve.Points {
			p := &curve.Points[i]
			flight := page.Count(int64(p.Concurrency))
			if !p.OnFront {
				flight += " *"
			}
			row := []string{printable(curve.Engine), flight, figure(p.PerUser), figure(p.OutputPerGPU), figure(p.TotalPerGPU), figure(p.TTFT), figure(p.TPOT), figure(p.E2E)}
			if cost {
				row = append(row, cell(p.PerMillion))
			}
			if joules {
				row = append(row, cell(p.JoulesPerToken))
			}
			rows = append(rows, row)
		}
	}
	return head, rows
}
