package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// A fittedPreset is a preset beside the figures that it was fitted to.
type fittedPreset struct {
	Name        string            `json:"name"`
	Model       string            `json:"model"`
	About       string            `json:"about"`
	Warning     string            `json:"warning,omitempty"`
	Engine      engine.Config     `json:"engine"`
	Costs       string            `json:"costs"`
	StaticCosts string            `json:"costs_static,omitempty"` // of static batching, where they are others
	RMSE        *float64          `json:"rmse_log"`               // over all figures of the source; null without any
	Fitted      *float64          `json:"rmse_log_fitted"`        // over those that the costs were fitted to
	Fit         []engine.FitPoint `json:"fit"`
}

// fitPreset plays the published loads to a preset.
func fitPreset(p *engine.Preset) (f fittedPreset, err error) {
	f = fittedPreset{Name: p.Name, Model: p.Model, About: p.About, Warning: p.Warning, Engine: p.Engine, Costs: p.Engine.Costs.String(), Fit: []engine.FitPoint{}}
	if p.Static != nil {
		f.StaticCosts = p.Static.String()
	}
	points, err := p.Fit()
	if err != nil || len(points) == 0 {
		return f, err
	}
	all, fitted := engine.RMSE(points), engine.RMSE(engine.Fitted(points))
	f.RMSE, f.Fitted, f.Fit = &all, &fitted, points
	return f, nil
}

// writePresets plays the published loads to every preset and prints how far
// each comes from its source: a line for each, then every row of every source.
func writePresets(cmd *cobra.Command, asJSON bool) error {
	var all []fittedPreset
	for _, p := range engine.Presets() {
		f, err := fitPreset(&p)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	if asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), all)
	}
	o := cli.TextOptions(cmd, "Published and simulated values, costs and sources: --details.")
	p := textpage.New(o)
	var rows [][]string
	for i := range all {
		f := &all[i]
		name := f.Name
		if f.Warning != "" {
			name += " !"
		}
		worst := "–"
		if at := f.worst(); at != nil {
			worst = errorOf(at)
		}
		rows = append(rows, []string{name, fmt.Sprint(len(f.Fit)), page.OrDash(f.Fitted, page.Percent), page.OrDash(f.RMSE, page.Percent), worst})
	}
	p.Columns([]string{"preset", "figures", "error, fitted", "all", "worst"}, rows)
	p.Blank()
	p.Line("", "Figures are those of the source; errors are root mean squares of logarithms, over the figures that were fitted and over all. "+
		"! = not to be taken for that hardware. Below is each row of each source with the error of simulated over published, in ( ) where it was not fitted. "+o.Rest)
	for i := range all {
		all[i].write(p, o.Details)
	}
	_, err := p.WriteTo(cmd.OutOrStdout())
	return err
}

// worst is the figure that is farthest from its source, of logarithms; nil without any.
func (f *fittedPreset) worst() (worst *engine.FitPoint) {
	far := func(at *engine.FitPoint) float64 { return math.Abs(math.Log(at.Simulated / at.Published)) }
	for i := range f.Fit {
		if worst == nil || far(&f.Fit[i]) > far(worst) {
			worst = &f.Fit[i]
		}
	}
	return worst
}

// errorOf is how far a simulated figure is from the published one, such as +3.1 %.
func errorOf(at *engine.FitPoint) string { return fmt.Sprintf("%+.1f %%", 100*at.Error()) }

// write writes the rows of a preset's source, each with its errors; with details also
// what the preset is, and the figures themselves.
func (f *fittedPreset) write(p *textpage.Page, details bool) {
	p.Blank()
	p.Line("", f.Name)
	if f.Warning != "" {
		p.Line("  ", "Warning: "+f.Warning+".")
	}
	if details || len(f.Fit) == 0 {
		p.Line("  ", f.Model+". "+f.About)
	}
	if details {
		p.Line("  ", f.Costs)
		if f.StaticCosts != "" {
			p.Line("  ", "static: "+f.StaticCosts)
		}
	}
	for from := 0; from < len(f.Fit); {
		to := from
		var figures []string
		for ; to < len(f.Fit) && f.Fit[to].Load == f.Fit[from].Load; to++ {
			at := &f.Fit[to]
			text := errorOf(at)
			if details {
				text = fmt.Sprintf("%s → %s %s", page.Number(at.Published), page.Number(at.Simulated), text)
			}
			if !at.Fitted {
				text = "(" + text + ")"
			}
			figures = append(figures, strings.TrimSuffix(at.Metric, ", ms")+" "+text)
		}
		p.Line("  ", f.Fit[from].Load)
		p.Line("    ", strings.Join(figures, ", "))
		from = to
	}
	if f.RMSE != nil {
		p.Line("  ", fmt.Sprintf("Root mean square error over all %d figures: %.1f %% (of logarithms), the worst %s.", len(f.Fit), 100**f.RMSE, errorOf(f.worst())))
		if n := len(engine.Fitted(f.Fit)); n < len(f.Fit) {
			p.Line("  ", fmt.Sprintf("Over the %d that were fitted: %.1f %%.", n, 100**f.Fitted))
		}
	}
}
