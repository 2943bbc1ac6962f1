package report

import (
	"cmp"
	"fmt"
	"slices"

	"reprise/trace/page"
)

// A spot is a run on the plane of what a GPU gives and what a user gets.
type spot struct {
	name          string
	user, gpu     float64
	beaten        string // a run that is better at both, or at one and as good at the other
	gpus          int
	gpusAreCounts bool
}

// spots are the runs that have both figures.
func spots(runs []Named) (out []spot, known bool) {
	known = true
	for _, r := range runs {
		e := r.Efficiency
		known = known && e.GPUsFrom == GPUsGiven
		if e.PerGPU != nil && e.PerUser != nil {
			out = append(out, spot{name: Plain(r.Name), user: *e.PerUser, gpu: *e.PerGPU, gpus: e.GPUs, gpusAreCounts: e.GPUsFrom == GPUsGiven})
		}
	}
	for i := range out {
		for _, o := range out {
			if a := &out[i]; o.user >= a.user && o.gpu >= a.gpu && (o.user > a.user || o.gpu > a.gpu) {
				a.beaten = o.name
				break
			}
		}
	}
	return out, known
}

// perWhat names the second axis. Where one run's GPUs are not known, those of no
// two can be held against each other, and all are per what they are.
func perWhat(known bool) string {
	if known {
		return "GPU"
	}
	return "instance"
}

// sayPareto says which runs no other beats.
func sayPareto(runs []Named) []string {
	all, known := spots(runs)
	if len(all) < 2 {
		return nil
	}
	if mixed(all) {
		return []string{"The number of GPUs is known of some runs only, so that what a GPU gives does not compare: give --gpus for each."}
	}
	user := slices.MaxFunc(all, func(a, b spot) int { return cmp.Compare(a.user, b.user) })
	gpu := slices.MaxFunc(all, func(a, b spot) int { return cmp.Compare(a.gpu, b.gpu) })
	says := []string{fmt.Sprintf("%s gives its users most, %s tokens per second each, and %s has most of its hardware, %s output tokens per second and %s (tokens per second per user, output tokens per second per %s).",
		user.name, page.Number(user.user), gpu.name, page.Number(gpu.gpu), perWhat(known), perWhat(known))}
	for _, s := range all {
		if s.beaten != "" {
			says = append(says, fmt.Sprintf("%s is beaten by %s at both: %s tokens per second per user, %s per %s.", s.name, s.beaten, page.Number(s.user), page.Number(s.gpu), perWhat(known)))
		}
	}
	if !known {
		says = append(says, "The number of GPUs is not known, so output is per instance: an engine or an endpoint, whatever its size. --gpus gives the number.")
	}
	return says
}

// mixed says that some spots are per GPU and some per instance.
func mixed(all []spot) bool {
	return slices.ContainsFunc(all, func(s spot) bool { return s.gpusAreCounts != all[0].gpusAreCounts })
}

// paretoSection draws the runs on both axes, with a line through those that no
// other beats.
func paretoSection(runs []Named) page.Section {
	all, known := spots(runs)
	sec := page.Section{Title: "Users and hardware", Text: sayPareto(runs)}
	if len(all) < 2 || mixed(all) {
		return sec
	}
	plot := page.Plot{Title: "Output per " + perWhat(known) + " against speed per user", Kind: page.Line,
		Text:   "Up and to the right is better. Larger batches go up and to the left. The line joins the runs that none beats at both.",
		XLabel: "tokens per second per user", YLabel: "output tokens per second per " + perWhat(known)}
	front := page.Series{Name: "not beaten"}
	for _, s := range all { // in the order of the runs, which so have their colours of the other plots
		plot.Series = append(plot.Series, page.Series{Name: s.name, X: []float64{s.user}, Y: []float64{s.gpu}})
	}
	slices.SortStableFunc(all, func(a, b spot) int { return cmp.Compare(a.user, b.user) })
	for _, s := range all {
		if s.beaten == "" {
			front.X, front.Y = append(front.X, s.user), append(front.Y, s.gpu)
		}
	}
	plot.Series = append(plot.Series, front)
	sec.Plots = defined("output_tokens_per_s_per_gpu", plot)
	t := page.Table{Caption: "The same in figures", Head: []string{"run", "tokens/s per user", "output tokens/s per " + perWhat(known), perWhat(known) + "s", "beaten by"},
		HeadTerms: []string{"", termOf("tokens_per_s_per_user"), termOf("output_tokens_per_s_per_gpu"), termOf("output_tokens_per_s_per_gpu"), termOf("output_tokens_per_s_per_gpu")},
		Align:     []page.Align{page.Left, page.Right, page.Right, page.Right, page.Left}}
	for _, s := range all {
		by := s.beaten
		if by == "" {
			by = "none"
		}
		t.Rows = append(t.Rows, []string{s.name, page.Number(s.user), page.Number(s.gpu), page.Brief(int64(s.gpus)), by})
	}
	sec.Tables = []page.Table{t}
	return sec
}
