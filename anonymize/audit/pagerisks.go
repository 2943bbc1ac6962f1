package audit

import (
	"context"
	"fmt"
	"slices"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/doc"
)

// totals are the lengths and the reuse of a trace, and its turns.
type totals struct {
	anonymize.Reuse
	sessions map[int64]struct{}
	turns    int64 // rows of sessions
}

func totalsOf(ctx context.Context, size int, open func() (trace.Reader[trace.Request], error)) (totals, error) {
	t := totals{sessions: map[int64]struct{}{}}
	rows, err := open()
	if err != nil {
		return t, err
	}
	return t, trace.Each(rows, func(row int64, r *trace.Request) error {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t.Count(r, size)
		if r.Session != nil {
			t.sessions[*r.Session] = struct{}{}
			t.turns++
		}
		return nil
	})
}

// change sets the totals of the source and of the output side by side.
func (s *sheet) change(ctx context.Context) (doc.Section, error) {
	o := s.c.Output.Trace
	if o == nil || s.c.Internal == nil && s.c.Log == nil {
		return doc.Section{}, nil
	}
	src, err := s.c.Before(ctx)
	if err != nil {
		return doc.Section{}, err
	}
	before, err := totalsOf(ctx, src.Meta.BlockSize, src.Open)
	if err != nil {
		return doc.Section{}, err
	}
	after, err := totalsOf(ctx, o.Meta.BlockSize, sourceOf(o).Open)
	if err != nil {
		return doc.Section{}, err
	}
	t := doc.Table{Head: []string{"", "source", "output", "change"},
		Align: []doc.Align{doc.Left, doc.Right, doc.Right, doc.Right}}
	add := func(name string, a, b int64) {
		change := ""
		if a > 0 {
			change = fmt.Sprintf("%+.1f\u00a0%%", 100*float64(b-a)/float64(a))
		}
		t.Rows = append(t.Rows, []string{name, doc.Count(a), doc.Count(b), change})
	}
	add("Requests", before.Requests, after.Requests)
	add("Input tokens", before.InputTokens, after.InputTokens)
	add("Output tokens", before.OutputTokens, after.OutputTokens)
	if a, b := before.HitRatio(), after.HitRatio(); a != nil && b != nil {
		t.Rows = append(t.Rows, []string{"Hit ratio by block", doc.Percent(*a), doc.Percent(*b),
			fmt.Sprintf("%+.1f points", 100*(*b-*a))})
	}
	if src.Meta.Sessions == "source" {
		add("Turns linked to one before", before.turns-int64(len(before.sessions)),
			after.turns-int64(len(after.sessions)))
	}
	return doc.Section{Title: "Before and after",
		Text: []string{"What the release cost. These are exact counts of the source: with them this page is no more " +
			"public than that."}, Tables: []doc.Table{t}}, nil
}

// hiding shows what the check of linkage measured.
func (s *sheet) hiding() doc.Section {
	i := slices.IndexFunc(s.r.Findings, func(f Finding) bool { return f.Check == "linkage" })
	if i < 0 {
		return doc.Section{}
	}
	fig := s.r.Findings[i].Figures
	sets, _ := fig["sets"].([]setRisk)
	if len(sets) == 0 {
		return doc.Section{}
	}
	t := doc.Table{Head: []string{"Somebody who knows", "unique", fmt.Sprintf("in classes below %d", sets[0].K),
		"smallest class", "risk at most", "risk on average"},
		Align: []doc.Align{doc.Left, doc.Right, doc.Right, doc.Right, doc.Right, doc.Right}}
	for _, r := range sets {
		t.Rows = append(t.Rows, []string{r.Known + ", of " + r.Of, doc.Percent(r.Unique), doc.Percent(r.BelowK),
			fmt.Sprint(r.Smallest), doc.Percent(r.MaxRisk), doc.Percent(r.Average)})
	}
	columns := doc.Table{Caption: "Which column makes requests unique: how many are by all of these together, and " +
		"how many still are without one", Head: []string{"Left out", "unique"},
		Align: []doc.Align{doc.Left, doc.Right}}
	list, _ := fig["columns"].([]columnRisk)
	for _, c := range list {
		name := c.Column
		if name == "" {
			name = "none"
		}
		columns.Rows = append(columns.Rows, []string{name, doc.Percent(c.Unique)})
	}
	known := doc.Table{Caption: "How many sessions a few of their requests single out, among sessions with so many",
		Head:  []string{"Known of each", "requests", "singled out", "at least", "at most"},
		Align: []doc.Align{doc.Left, doc.Right, doc.Right, doc.Right, doc.Right}}
	points, _ := fig["points"].([]pointRisk)
	for _, r := range points {
		known.Rows = append(known.Rows, []string{r.Known, fmt.Sprint(r.Points), doc.Percent(r.Unique),
			doc.Percent(r.Low), doc.Percent(r.High)})
	}
	out := doc.Section{Title: "How well requests hide", Tables: []doc.Table{t, columns}, Plots: pointPlots(points),
		Text: []string{"Requests that look the same to somebody who knows so much of them are a class. Who is alone " +
			"in a class can be found; in a class of eleven a guess is right once in eleven times."}}
	if len(points) > 0 {
		out.Tables = append(out.Tables, known)
	}
	return out
}

// pointPlots draws how many sessions are singled out by a few requests of theirs.
func pointPlots(points []pointRisk) []doc.Plot {
	p := doc.Plot{Title: "Sessions that a few requests single out", XLabel: "Requests that are known",
		YLabel: "Sessions singled out", YUnit: "%",
		Text: "Of the sessions that have so many requests. In places, four points single out nearly everybody."}
	for _, r := range points {
		i := slices.IndexFunc(p.Series, func(s doc.Series) bool { return s.Name == r.Known })
		if i < 0 {
			i = len(p.Series)
			p.Series = append(p.Series, doc.Series{Name: r.Known})
		}
		one := &p.Series[i]
		one.X, one.Y = append(one.X, float64(r.Points)), append(one.Y, 100*r.Unique)
	}
	if !slices.ContainsFunc(p.Series, func(s doc.Series) bool { return len(s.X) > 1 }) {
		return nil // nothing to draw from one point
	}
	return []doc.Plot{p}
}

// The three questions of opinion 05/2014, and what each asks.
var criteria = []struct{ name, question string }{
	{"Singling out", "Can records of one person be distinguished from all others?"},
	{"Linkability", "Can two records of one person be found to belong together?"},
	{"Inference", "Can something be concluded of a person that the person did not tell?"},
}

// opinion answers these in the words of the card.
func (s *sheet) opinion() doc.Section {
	if !s.carded {
		return doc.Section{}
	}
	w := s.card.WP29
	answers := []string{w.SinglingOut, w.Linkability, w.Inference}
	if slices.Contains(answers, "") {
		return doc.Section{}
	}
	t := doc.Table{Head: []string{"", "Question", "Answer"}, Align: []doc.Align{doc.Left, doc.Left, doc.Left}}
	for i, c := range criteria {
		t.Rows = append(t.Rows, []string{c.name, c.question, answers[i]})
	}
	return doc.Section{Title: "The three questions", Tables: []doc.Table{t},
		Text: []string{"Opinion 05/2014 of the Article 29 working party on anonymisation techniques asks these of " +
			"every release. Data for which one answer is yes are pseudonymous for that purpose, and stay " +
			"personal data."}}
}

// risks are what the card says is left.
func (s *sheet) risks() doc.Section {
	out := doc.Section{Title: "What risks are left"}
	for _, risk := range s.card.Risks {
		out.Notes = append(out.Notes, doc.Note{Level: doc.Warn, Text: sentence(risk)})
	}
	if !s.carded {
		out.Notes = append(out.Notes,
			doc.Note{Level: doc.Warn,
				Text: "The file carries no privacy card that could be read, so it is not known how it was made."})
	}
	return out
}
