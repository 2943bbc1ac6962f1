package report

import (
	"strings"
	"time"

	"reprise/trace/page"
)

// Page lays the summary out for a browser: verdict, key figures and provenance,
// what the numbers say and the checklist, tables and plots, and the definitions
// of all of it. A plot without a value is left out.
func Page(s Summary) *page.Page {
	p := &page.Page{
		Title:   "Replay report",
		Lead:    "What a replay measured, with every latency from when a request was sent and from when it was due.",
		Verdict: verdictNotes(&s),
		Facts:   keyFigures(&s),
		Notes:   pageNotes(&s),
		About:   provenanceGroups(&s),
		Terms:   pageTerms(),
	}
	if s.Run.Simulated != "" {
		p.Title, p.Lead = "Simulation report", "What a model of an engine would do with a workload, in virtual time; there was no client whose sending could be late."
	}
	for _, section := range []page.Section{
		contractSection(&s), methodSection(&s), peerSection(s.Peer), overviewSection(&s), steadySection(s.Steady), ttftSection(&s), itlSection(&s), e2eSection(&s),
		loadSection(&s), serverSection(&s), lengthSection(&s), cacheSection(&s), classSection(&s), partSection(&s), errorSection(&s),
	} {
		if len(section.Text)+len(section.Tables)+len(section.Plots) > 0 {
			p.Sections = append(p.Sections, section)
		}
	}
	return p
}

// ShortDigest keeps enough of a digest to tell workloads apart by eye.
func ShortDigest(d string) string {
	const enough = len("sha256:") + 12
	if len(d) <= enough {
		return d
	}
	return d[:enough] + "…"
}

// ToSecond drops the fraction of an RFC 3339 instant, and nothing else.
func ToSecond(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.Format("2006-01-02 15:04:05 MST")
}

// methodSection says what the figures come to, and how far they carry.
func methodSection(s *Summary) page.Section {
	sec := page.Section{Title: "What the numbers say", Text: sayOverview(s)}
	for _, d := range s.Diagnoses {
		sec.Notes = append(sec.Notes, page.Note{Level: page.Info, Text: d.Text + " To confirm: " + d.Confirm + "."})
	}
	t := page.Table{Caption: "Checklist of the method", Head: checklistHead, Rows: checklistRows(s.Checklist),
		Align: []page.Align{page.Left, page.Left, page.Left}, HeadTerms: repeat(termOf("checklist"), len(checklistHead))}
	for i := range t.Rows {
		t.Rows[i][1] = s.Checklist[i].Status.sign()
	}
	checks := page.Table{Caption: "What the verdict rests on", Head: checkHead, Rows: checkRows(s),
		HeadTerms: []string{"", termOf("verdict.checks"), termOf("verdict.checks")}}
	sec.Tables = []page.Table{t, checks}
	return sec
}

func overviewSection(s *Summary) page.Section {
	run := page.Table{Caption: "Run", Head: []string{"", "figure", "note"}, Rows: overview(s), Align: []page.Align{page.Left, page.Right, page.Left}}
	for _, row := range run.Rows {
		run.RowTerms = append(run.RowTerms, termOf(overviewTerms[row[0]]))
	}
	return page.Section{Title: "Figures", Tables: []page.Table{run, latencyTable(s)}}
}

// latencyTable has every latency that has a value.
func latencyTable(s *Summary) page.Table {
	t := page.Table{Caption: "Latency in ms, of successful requests; send lag of all that were sent",
		Head:      []string{"metric", "n", "mean", "sd", "min"},
		HeadTerms: []string{"", termOf("count"), termOf("mean"), termOf("sd"), termOf("min")}}
	for _, p := range percentiles {
		t.Head, t.HeadTerms = append(t.Head, p.name), append(t.HeadTerms, termOf(strings.ReplaceAll(p.name, ".", "_")))
	}
	t.Head = append(t.Head, "max", "p99 ÷ p50")
	t.HeadTerms = append(t.HeadTerms, termOf("max"), termOf("tail_ratio"))
	near := 0
	for _, m := range s.Latency.metrics() {
		st := m.stat
		if st.Count == 0 {
			continue
		}
		if st.Method == HDR {
			near++
		}
		row := []string{m.label, page.Brief(st.Count), page.OrDash(st.Mean, page.Short), page.OrDash(st.SD, page.Short), page.OrDash(st.Min, page.Short)}
		for _, p := range percentiles {
			row = append(row, page.OrDash(*p.of(st), page.Short))
		}
		t.Rows = append(t.Rows, append(row, page.OrDash(st.Max, page.Short), page.OrDash(st.TailRatio, page.Short)))
		t.RowTerms = append(t.RowTerms, termOf(m.name[strings.LastIndex(m.name, ".")+1:]))
	}
	if near > 0 {
		t.Caption += "; percentiles of more than a million values are within 0.1 %"
	}
	return t
}
