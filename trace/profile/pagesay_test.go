package profile_test

import (
	"regexp"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/profile"
)

// Sentences are whole, and name the figures that they rest on.
func TestPageSentences(t *testing.T) {
	full, rows := fullProfile(t)
	n := 0
	for _, section := range profile.Page(full, rows).Sections {
		if section.Title == "Definitions" {
			continue
		}
		if len(section.Text) == 0 && section.Title != "" {
			t.Errorf("%s says nothing", section.Title)
		}
		for _, line := range section.Text {
			n++
			if !strings.HasSuffix(line, ".") || strings.Contains(line, "%!") || strings.Contains(line, "–") || strings.Contains(line, "NaN") ||
				!strings.Contains(line, "(") || !regexp.MustCompile(`[0-9]`).MatchString(line) {
				t.Errorf("%s: %s", section.Title, line)
			}
		}
	}
	if n < 25 {
		t.Errorf("only %d sentences", n)
	}
	made := full
	made.Warnings = []profile.Warning{{Code: "made_up_times", Message: "x"}}
	if text := strings.Join(profile.Page(made, rows).Sections[1].Text, " "); !strings.Contains(text, "made up at import") {
		t.Errorf("made-up times are spoken of as if they were real: %s", text)
	}
}

// said is all text of a section, with plain spaces.
func said(s profile.Summary, title string) string {
	for _, section := range profile.Page(s, nil).Sections {
		if section.Title == title {
			return strings.ReplaceAll(strings.Join(section.Text, " "), "\u00a0", " ")
		}
	}
	return "no section " + title
}

func idc(window float64, windows int64, v float64, artefact bool) profile.IDC {
	return profile.IDC{WindowS: window, Windows: windows, IDC: &v, TickArtefact: artefact}
}

// Dispersion is spoken of where windows hold requests, are enough, and show the
// traffic rather than the clock.
func TestPageSaysDispersion(t *testing.T) {
	for want, c := range map[string]struct {
		rate float64
		idc  []profile.IDC
		tick []profile.IDC
	}{
		"Over windows of 1 s and of 60 s the counts are burstier than a Poisson process (IDC 2 and 9).": {
			rate: 2, idc: []profile.IDC{idc(0.1, 999, 1, false), idc(1, 99, 2, false), idc(60, 10, 9, false), idc(300, 9, 80, false)}},
		"Over windows of 10 s the counts are more regular than a Poisson process (IDC 0.1), over windows of 60 s " +
			"burstier than one (IDC 4).": {
			rate: 2, idc: []profile.IDC{idc(1, 99, 7, true), idc(10, 99, 7, true), idc(60, 99, 3, false)},
			tick: []profile.IDC{idc(10, 99, 0.1, false), idc(60, 99, 4, false)}},
		"Over windows of 60 s the counts are about as dispersed as a Poisson process (IDC 1.2).": {
			rate: 0.1, idc: []profile.IDC{idc(1, 99, 1, false), idc(60, 99, 1.2, false)}},
		"": {rate: 1e-4, idc: []profile.IDC{idc(1, 99, 1, false), idc(60, 99, 5, false)}},
	} {
		s := profile.Summary{Rate: &c.rate, Arrivals: profile.Arrivals{InterArrival: &profile.Stats{}, IDC: c.idc}}
		if c.tick != nil {
			s.Arrivals.Clock = &profile.Clock{IDC: c.tick}
		}
		_, got, _ := strings.Cut(said(s, "Arrivals"), "(rate). ")
		if got != want {
			t.Errorf("it says %q; want %q", got, want)
		}
	}
}

func TestPageSays(t *testing.T) {
	group := func(name string, requests, hit, prompt int64) profile.GroupReuse {
		return profile.GroupReuse{Name: name, Whole: profile.TrafficReuse{Requests: requests, InputTokens: prompt, HitTokens: hit}}
	}
	few, more, all := 0.2, 0.37, 0.4
	point := func(blocks int64, ratio *float64) profile.CurvePoint {
		return profile.CurvePoint{CapacityBlocks: &blocks, CapacityTokens: trace.Ptr(512 * blocks), HitRatioByToken: ratio}
	}
	cost := func(step, router string, points float64) fleet.Step {
		return fleet.Step{Step: step, Router: router, HitRatio: &few, CostPoints: &points}
	}
	s := profile.Summary{
		ByModel: &profile.GroupedReuse{Distinct: 2, Groups: []profile.GroupReuse{group("small", 60, 10, 100), group("large", 40, 30, 300)}},
		Reuse: &profile.ReuseSummary{HitRatios: profile.HitRatios{ByToken: &all}, LRUCurve: []profile.CurvePoint{{}},
			LRUCurveDense: []profile.CurvePoint{point(10, trace.Ptr(0.1)), point(1000, &few), point(4000, &more), point(9000, &all)}},
		Server:  &profile.ServerReuseSummary{BlockSizeTokens: 16},
		Routing: &fleet.Summary{ReplicaBlocks: trace.Ptr(int64(500))},
		Waterfalls: []fleet.Waterfall{{Rows: "all", Replicas: 2, Steps: []fleet.Step{{Step: fleet.StepCeiling, HitRatio: &all},
			cost(fleet.StepCapacity, "", 12), cost(fleet.StepRouting, fleet.RoundRobin, 5.5),
			cost(fleet.StepRouting, fleet.Prefix, -0.25), cost(fleet.StepRouting, "session", 1)}}},
	}
	for title, want := range map[string]string{
		"Reuse by category, model and client": "Model large brings the most reuse: 75 % of all hit tokens, with 40 % of the requests and 75 % of the prompt tokens (by model).",
		"Cache size":                          "One LRU cache reaches half of the 40 % that a cache without limit would find with 512,000 tokens (1,000 blocks), and nine tenths of it with 2.0 M tokens (4,000 blocks) (by token, whole trace).",
		"Where reuse is lost":                 "Memory of 1,000 blocks in all costs 12.00 points; spreading the cache over 2 replicas gains 0.25 points with prefix routing and costs 5.50 points with round-robin routing (lost to it).",
	} {
		if got := said(s, title); got != want {
			t.Errorf("%s says\n%q; want\n%q", title, got, want)
		}
	}
	s.Reuse, s.Server, s.Waterfalls = nil, nil, nil
	s.ByModel.Groups[0].Whole.HitTokens, s.ByModel.Groups[1].Whole.HitTokens = 0, 0
	if got, want := said(s, "Requests by model and client"), "Most requests, 60 %, are of model small (share, by model)."; got != want {
		t.Errorf("without blocks it says %q; want %q", got, want)
	}
}
