package bench

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the suite out for a browser: the table across rows, and for each row its
// table, its hypothesis with what became of it, and links to the pages of its runs, as
// far as they are in the directory of the suite. The page is to lie there too.
func (r *SuiteResult) Page(dir string) *page.Page {
	out := &page.Page{Title: "Suite " + r.Suite, Lead: r.About, Verdict: r.verdict()}
	p := suitePage{html: out}
	p.heading("All workloads", 2)
	p.across(r)
	for i := range r.Rows {
		p.row(r, &r.Rows[i])
		p.section().Links = r.links(os.DirFS(dir), r.Rows[i].Row)
	}
	out.Sections = append(out.Sections, page.Section{Title: "Where it was made", Tables: []page.Table{r.environments()}})
	note := func(given bool, level page.Level, text string) {
		if given {
			out.Notes = append(out.Notes, page.Note{Level: level, Text: text})
		}
	}
	tier := trace.TierNote("page", r.Tier)
	note(tier != "", page.Warn, tier)
	for _, w := range r.PresetWarnings {
		note(true, page.Warn, w)
	}
	note(p.largest, page.Info, "* the largest value: there are too few requests for the percentile.")
	note(r.Baseline != "", page.Info, "Changes are against "+r.Baseline+". They may be chance: reprise compare decides that.")
	out.Facts = []page.Fact{{Label: "Rows", Value: strconv.Itoa(len(r.Rows))}, {Label: "Models", Value: strconv.Itoa(len(r.Models))}, {Label: "Runs", Value: strconv.Itoa(r.runs())}}
	return out
}

// environments are where and by what the first run of each model was made, side by
// side.
func (r *SuiteResult) environments() page.Table {
	t := page.Table{Head: []string{""}, Align: []page.Align{page.Left}}
	for i, model := range r.Models {
		t.Head, t.Align = append(t.Head, model), append(t.Align, page.Left)
		for _, f := range r.made[i] {
			row := slices.IndexFunc(t.Rows, func(row []string) bool { return row[0] == f.Label })
			if row < 0 {
				row = len(t.Rows)
				t.Rows = append(t.Rows, append([]string{f.Label}, make([]string, len(r.Models))...))
			}
			t.Rows[row][i+1] = f.Value
		}
	}
	return t
}

// verdict is what to know before any figure.
func (r *SuiteResult) verdict() []page.Note {
	switch {
	case !r.Trustworthy():
		return []page.Note{{Level: page.Bad, Text: "A run is not trustworthy; its row says which and why."}}
	case r.Unjudged():
		return []page.Note{{Level: page.Warn, Text: "A contract cannot be judged; its row says why."}}
	case r.Broken():
		return []page.Note{{Level: page.Bad, Text: "A contract does not hold; its row says by how much."}}
	}
	return []page.Note{{Level: page.Good, Text: "Every run is trustworthy."}}
}

func (r *SuiteResult) runs() (n int) {
	for i := range r.Rows {
		for j := range r.Rows[i].Models {
			n += r.Rows[i].Models[j].Runs
		}
	}
	return n
}

// links are the pages of the runs of a row.
func (r *SuiteResult) links(dir fs.FS, row string) (out []page.Link) {
	for _, model := range r.Models {
		found, _ := fs.Glob(dir, path.Join(model, row, "repeat-*", reportName)) // the pattern is good: names have no marks
		if whole := path.Join(model, row, reportName); len(found) == 0 {
			found = []string{whole}
		}
		for _, name := range found {
			if _, err := fs.Stat(dir, name); err != nil {
				continue
			}
			text := "Report of " + model
			if run := path.Base(path.Dir(name)); run != row {
				text += ", " + run
			}
			out = append(out, page.Link{Text: text, Path: name})
		}
	}
	return out
}
