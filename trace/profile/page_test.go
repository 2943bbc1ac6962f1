package profile_test

import (
	"bytes"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/doc/pagetest"
	"reprise/trace/fleet"
	"reprise/trace/profile"
)

// fullProfile is of a trace with everything that a profile can tell.
func fullProfile(t testing.TB) (profile.Summary, []profile.HistogramRow) {
	t.Helper()
	s := shape{block: 4, system: true, output: true, statuses: true, sessions: true, people: true}
	rows := generate(7, 3000, s)
	annotate(rows, s.block, profile.Options{})
	for i := range rows {
		r := &rows[i]
		r.ReasoningTokens, r.ImageTokens, r.Images, r.MaxTokens = trace.Ptr(int32(3)), trace.Ptr(int32(4)), trace.Ptr(int32(1)), trace.Ptr(int32(9))
		r.ThinkNS, r.ToolNS = trace.Ptr(int64(1e9+i)), trace.Ptr(int64(i))
		r.TTFTNS, r.E2ENS = trace.Ptr(int64(1e8+i)), trace.Ptr(int64(2e9+i))
	}
	meta := trace.Meta{BlockSize: s.block, Sessions: "source", SourceFormat: "generated", Tokenizer: "bytes", Tier: "internal",
		Digest: "sha256:0123456789abcdef0123456789abcdef"}
	p := profileOf(t, rows, meta, profile.ProfilerOptions{ReuseOptions: profile.ReuseOptions{KVBytesPerToken: 1 << 17},
		Replicas: []int{2, 4}, ReplicaBlocks: 500})
	return p.Summary(), p.Histograms()
}

func titles(p *doc.Document) (list []string) {
	for _, s := range p.Sections {
		list = append(list, s.Title)
	}
	return list
}

func written(t testing.TB, p *doc.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// drop removes the rows of some metrics.
func drop(rows []profile.HistogramRow, metrics ...string) []profile.HistogramRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r profile.HistogramRow) bool { return slices.Contains(metrics, r.Metric) })
}

// A section is there when its data are, and with it its definitions; one whose
// data are missing takes no other with it.
func TestPageSections(t *testing.T) {
	full, rows := fullProfile(t)
	all := titles(profile.Page(full, rows))
	want := []string{"Lengths", "Arrivals", "Prefix reuse", "Where reuse is lost", "Cache size", "", "Reuse over time",
		"Reuse by category, model and client", "Reuse time and distance", "Top prefixes", "Working set", "Routing over replicas",
		"Sessions", "Recorded latency"}
	if !slices.Equal(all, want) {
		t.Fatalf("the sections are %q; want %q", all, want)
	}
	for _, c := range []struct {
		lost   []string
		term   string // defined on the full page, and not without the section
		remove func(*profile.Summary, *[]profile.HistogramRow)
	}{
		{[]string{"Lengths"}, "Spearman", func(s *profile.Summary, r *[]profile.HistogramRow) {
			s.Input, s.Output, s.Reasoning, s.Cached, s.ImageTokens, s.Images, s.MaxTokens = nil, nil, nil, nil, nil, nil, nil
			*r = drop(*r, profile.MetricInput, profile.MetricOutput)
		}},
		{[]string{"Arrivals"}, "metronome", func(s *profile.Summary, _ *[]profile.HistogramRow) { s.Arrivals.InterArrival = nil }},
		{[]string{"Prefix reuse", "Cache size", "", "Reuse over time", "Reuse by category, model and client"}, "Hit blocks, partial last ones included", func(s *profile.Summary, _ *[]profile.HistogramRow) {
			s.Reuse, s.ReuseWithGenerated, s.ByCategory, s.ByModel, s.ByClient = nil, nil, nil, nil, nil
		}},
		{[]string{"Where reuse is lost"}, "rounding loss", func(s *profile.Summary, _ *[]profile.HistogramRow) { s.Waterfalls = nil }},
		{[]string{"Reuse over time"}, "", func(s *profile.Summary, _ *[]profile.HistogramRow) { s.OverTime = nil }},
		{[]string{"Reuse by category, model and client"}, "the whole prompt was seen before", func(s *profile.Summary, _ *[]profile.HistogramRow) {
			s.ByCategory, s.ByModel, s.ByClient = nil, nil, nil
		}},
		{[]string{"Reuse time and distance"}, "distinct blocks touched since", func(_ *profile.Summary, r *[]profile.HistogramRow) {
			*r = drop(*r, profile.MetricReuseTime, profile.MetricReuseDistance)
		}},
		{[]string{"Top prefixes"}, "as long as it can be", func(s *profile.Summary, _ *[]profile.HistogramRow) { s.Prefixes = nil }},
		{[]string{"Working set"}, "Denning", func(s *profile.Summary, _ *[]profile.HistogramRow) { s.WorkingSet = nil }},
		{[]string{"Routing over replicas"}, "prefix-weighted", func(s *profile.Summary, _ *[]profile.HistogramRow) {
			s.Routing = nil
			s.Waterfalls = slices.DeleteFunc(slices.Clone(s.Waterfalls), func(w fleet.Waterfall) bool { return true })
			s.Waterfalls = []fleet.Waterfall{{Rows: "all", Replicas: 1, PromptTokens: 9, Steps: []fleet.Step{{Step: fleet.StepCeiling}}}}
		}},
		{[]string{"Sessions"}, "of a person, and of tools", func(s *profile.Summary, r *[]profile.HistogramRow) {
			s.Sessions, s.Think, s.Tool = nil, nil, nil
			*r = drop(*r, profile.MetricTurns, profile.MetricTurnGap, profile.MetricThink, profile.MetricTool)
		}},
		{[]string{"Recorded latency"}, "as the source recorded them", func(s *profile.Summary, _ *[]profile.HistogramRow) { s.TTFT, s.E2E = nil, nil }},
	} {
		s, r := full, rows
		c.remove(&s, &r)
		p := profile.Page(s, r)
		var left []string
		for _, title := range want {
			if !slices.Contains(c.lost, title) {
				left = append(left, title)
			}
		}
		if got := titles(p); !slices.Equal(got, left) {
			t.Errorf("without %q: %q", c.lost, got)
		}
		if strings.Contains(written(t, p), c.term) != (c.term == "") || !strings.Contains(written(t, profile.Page(full, rows)), c.term) {
			t.Errorf("without %q: %q is to be gone", c.lost, c.term)
		}
	}
}

func TestPagePlots(t *testing.T) {
	full, rows := fullProfile(t)
	plots := map[string]doc.Plot{}
	for _, s := range profile.Page(full, rows).Sections {
		for _, p := range s.Plots {
			plots[p.Title] = p
		}
	}
	for title, series := range map[string][]string{
		"Length distributions":                      {"prompts", "outputs"},
		"Prompt lengths by reuse category":          {"cold", "duplicate", "continuation", "template", "branch"},
		"Prompt lengths":                            {"requests"},
		"Output lengths":                            {"requests"},
		"Requests over time":                        {"requests"},
		"Dispersion of counts":                      {"IDC", "Poisson process"},
		"Prompt tokens over time":                   {"prompt tokens"},
		"Output tokens over time":                   {"output tokens"},
		"Time between requests":                     {"gaps"},
		"Distribution of the time between requests": {"gaps"},
		"Hit ratio of an LRU cache, by token":       {"whole trace", "steady state", "whole trace, generated KV too"},
		"Hit ratio of an LRU cache, by block":       {"whole trace", "steady state", "whole trace, generated KV too"},
		"Hit ratio over time":                       {"by token", "by block", "server, by token"},
		"Time since the last touch":                 {"hit blocks"},
		"Distance since the last touch":             {"hit blocks"},
		"Reuse time by category":                    {"duplicate", "continuation", "template", "branch"},
		"Reuse distance by category":                {"duplicate", "continuation", "template", "branch"},
		"Turns of a session":                        {"sessions"},
		"Turn gap":                                  {"gaps"},
		"Think time":                                {"turns"},
		"Tool time":                                 {"turns"},
	} {
		var names []string
		for _, s := range plots[title].Series {
			names = append(names, s.Name)
		}
		if !slices.Equal(names, series) {
			t.Errorf("%s: series %q; want %q", title, names, series)
		}
		delete(plots, title)
	}
	for title := range plots {
		t.Errorf("%s is a plot that no test knows", title)
	}
}

// What the plots show adds up to what the summary says.
func TestPagePlotsAddUp(t *testing.T) {
	full, rows := fullProfile(t)
	for _, section := range profile.Page(full, rows).Sections {
		for _, p := range section.Plots {
			y := p.Series[0].Y
			sum := 0.0
			for _, v := range y {
				sum += v
			}
			switch p.Title {
			case "Prompt lengths", "Output lengths":
				if sum != float64(full.Requests) {
					t.Errorf("%s: %v requests; want %d", p.Title, sum, full.Requests)
				}
			case "Requests over time":
				bins := full.OverTime.Bins
				var requests int64
				for _, b := range bins[:len(y)-1] { // one that is cut short may be missing; the last point closes the line
					requests += b.Requests
				}
				got := 0.0
				for i := range len(y) - 1 {
					got += y[i] * (p.Series[0].X[i+1] - p.Series[0].X[i])
				}
				if math.Abs(got-float64(requests)) > 1e-6*got || len(bins) > len(y) {
					t.Errorf("%v requests under the rate; want %d", got, requests)
				}
			case "Hit ratio of an LRU cache, by token":
				if last := y[len(y)-1]; math.Abs(last-100**full.Reuse.HitRatios.ByToken) > 1e-9 {
					t.Errorf("the LRU curve ends at %v", last)
				}
			}
			if p.YLabel == "share at most" {
				for _, s := range p.Series {
					if p.Kind != doc.CDF || math.Abs(s.Y[len(s.Y)-1]-1) > 1e-9 || !slices.IsSorted(s.Y) || !slices.IsSorted(s.X) {
						t.Errorf("%s: %s is no distribution", p.Title, s.Name)
					}
				}
			}
		}
	}
}

// The waterfall has every step once, and the points of the summary.
func TestPageWaterfall(t *testing.T) {
	full, rows := fullProfile(t)
	for _, section := range profile.Page(full, rows).Sections {
		if section.Title != "Where reuse is lost" {
			continue
		}
		if len(section.Tables) != 2 {
			t.Fatalf("%d tables; want one of all requests and one of the recorded ones", len(section.Tables))
		}
		steps := full.Waterfalls[0].Steps
		for i, row := range section.Tables[0].Rows[:len(steps)] {
			left, err := strconv.ParseFloat(row[1], 64)
			if err != nil || math.Abs(left-100**steps[i].HitRatio) > 0.005 {
				t.Errorf("step %d: %s points are left; want %v", i, row[1], 100**steps[i].HitRatio)
			}
		}
		var first []string
		for _, table := range section.Tables {
			for _, row := range table.Rows {
				first = append(first, row[0])
			}
		}
		// Two that all begin with; a cache and four routers for each number of replicas.
		if n := len(section.Tables[0].Rows); n != 2+2*5 {
			t.Errorf("%d steps: %q", n, first)
		}
		if n := len(section.Tables[1].Rows); n != 2+2*5+1 || first[len(first)-1] != "recorded cached tokens" {
			t.Errorf("%d recorded steps: %q", n, first)
		}
		return
	}
	t.Error("no waterfall")
}

func TestPageWithoutBlocks(t *testing.T) {
	rows := generate(3, 400, shape{block: 4, people: true})
	for i := range rows {
		rows[i].Blocks = nil
	}
	p := profileOf(t, rows, trace.Meta{SourceFormat: "azure-2023", Tier: "internal"}, profile.ProfilerOptions{Replicas: []int{2}})
	got := profile.Page(p.Summary(), p.Histograms())
	if want := []string{"Lengths", "Arrivals", "Requests by model and client"}; !slices.Equal(titles(got), want) {
		t.Errorf("the sections are %q; want %q", titles(got), want)
	}
	html := written(t, got)
	for _, absent := range []string{"Hit ratio", "Block<", "by token", "NaN"} {
		if strings.Contains(html, absent) {
			t.Errorf("%q is on the page of a trace without blocks", absent)
		}
	}
	if !strings.Contains(html, "unknown, not 0") {
		t.Error("no word of the missing blocks")
	}
}

// Traces of no request, of one, and of one instant have a page that says so.
func TestPageOfLittle(t *testing.T) {
	meta := trace.Meta{BlockSize: 4, Tier: "internal"}
	one := generate(1, 1, shape{block: 4})
	annotate(one, 4, profile.Options{})
	same := slices.Concat(one, one, one)
	failed := slices.Clone(one)
	failed[0].Status = trace.StatusFailed
	for name, c := range map[string]struct {
		rows   []trace.Request
		titles []string
	}{
		"no rows":     {nil, nil},
		"failed only": {failed, nil},
		"one row": {one, []string{"Lengths", "Prefix reuse", "Where reuse is lost", "Cache size", "",
			"Reuse by category, model and client", "Working set"}},
		"one instant": {same, []string{"Lengths", "Arrivals", "Prefix reuse", "Where reuse is lost", "Cache size", "",
			"Reuse by category, model and client", "Reuse time and distance", "Top prefixes", "Working set"}},
	} {
		p := profileOf(t, c.rows, meta, profile.ProfilerOptions{})
		got := profile.Page(p.Summary(), p.Histograms())
		if !slices.Equal(titles(got), c.titles) {
			t.Errorf("%s: the sections are %q", name, titles(got))
		}
		if html := written(t, got); strings.Contains(html, "NaN") || strings.Contains(html, "%!") || strings.Contains(html, "Inf ") {
			t.Errorf("%s: a number that is none", name)
		}
	}
	if got := profile.Page(profile.Summary{}, nil); len(got.Sections) > 0 {
		t.Errorf("the sections of nothing are %q", titles(got))
	}
}

// The tier is on the face of the page whatever it is; a released one is not
// called internal.
func TestPageTier(t *testing.T) {
	for tier, want := range map[string]string{"internal": "This report is internal: not for release", "": "No tier is stated",
		"partner": "This report is of tier partner: for a partner under contract", "public": ""} {
		if got := profile.Page(profile.Summary{Tier: tier}, nil).Tag; !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("tier %q: %q", tier, got)
		}
	}
}

// The first screen has the answer, the lengths and the main plot.
func TestPageFirstScreen(t *testing.T) {
	full, rows := fullProfile(t)
	p := profile.Page(full, rows)
	if p.Plot == nil || p.Plot.Title != "Hit ratio of an LRU cache, by token" || len(p.Table.Rows) < 2 {
		t.Fatalf("%+v, %+v", p.Plot, p.Table)
	}
	pagetest.FirstScreen(t, "profile", p, "a prefix cache in blocks of ", "\tmean\tp50\tp95\tp99\tmax",
		"Hit ratio of an LRU cache")
}

func TestPageFactsAndWarnings(t *testing.T) {
	full, rows := fullProfile(t)
	p := profile.Page(full, rows)
	labels := map[string]string{}
	for _, f := range append(p.Facts, p.About[0].Facts...) {
		labels[f.Label] = f.Value
	}
	for _, label := range []string{"Duration", "Prompt tokens", "Output tokens", "Hit ratio, steady", "Distinct blocks", "Sessions",
		"Rows", "Block", "KV cache", "Tier", "Tokenizer", "Source format", "CV of gaps", "Categories", "With KV of outputs", "Digest"} {
		if labels[label] == "" {
			t.Errorf("no fact %s", label)
		}
		delete(labels, label)
	}
	if len(labels) > 0 {
		t.Errorf("facts that no test knows: %v", labels)
	}
	if len(full.Warnings) < 3 || len(p.Notes) != 1+len(full.Warnings) {
		t.Errorf("%d notes of %d warnings", len(p.Notes), len(full.Warnings))
	}
	for i, w := range full.Warnings {
		if got := p.Notes[1+i].Text; !strings.EqualFold(got, w.Message+".") || !regexp.MustCompile(`^[A-Z0-9]`).MatchString(got) {
			t.Errorf("warning %q is the note %q", w.Message, got)
		}
	}
}

// No string of a row reaches the page but the names of models and categories.
func TestPageLeaksNothing(t *testing.T) {
	const secret = "patient-4711"
	s := shape{block: 4, system: true, people: true, sessions: true, statuses: true}
	rows := generate(5, 500, s)
	annotate(rows, s.block, profile.Options{})
	hidden := 0
	for i := range rows {
		v := reflect.ValueOf(&rows[i]).Elem()
		for j := range v.NumField() {
			switch name := v.Type().Field(j).Name; {
			case name == "Model" || name == "Category" || name == "Status":
			case v.Field(j).Kind() == reflect.String:
				v.Field(j).SetString(secret)
				hidden++
			case v.Field(j).Type() == reflect.TypeFor[*string]():
				v.Field(j).Set(reflect.ValueOf(trace.Ptr(secret)))
				hidden++
			}
		}
		rows[i].Model = `<script>"` + rows[i].Model
	}
	if hidden < 4*len(rows) {
		t.Fatalf("only %d strings were set", hidden)
	}
	p := profileOf(t, rows, trace.Meta{BlockSize: 4, Sessions: "source"}, profile.ProfilerOptions{Replicas: []int{2}})
	html := written(t, profile.Page(p.Summary(), p.Histograms()))
	if strings.Contains(html, secret) {
		t.Error("a string of the rows is on the page")
	}
	if strings.Contains(html, `<script>"`) || !strings.Contains(html, `&lt;script&gt;&#34;small`) {
		t.Error("the name of a model is not there, or not escaped")
	}
}

// Every ratio that a head or a row of a table names is defined on the page.
func TestPageDefinitions(t *testing.T) {
	full, rows := fullProfile(t)
	defined := map[string]bool{}
	for _, term := range profile.Page(full, rows).Terms {
		for _, name := range strings.Split(term.Name, ", ") {
			if defined[name] {
				t.Errorf("%s is defined twice", name)
			}
			defined[name] = true
		}
		if term.Text == "" {
			t.Errorf("%s has no definition", term.Name)
		}
	}
	for _, name := range []string{"by block", "by token", "mean over requests", "full blocks only", "whole trace", "steady state", "generated KV too",
		"touched once", "server hit ratio", "rounding loss", "left", "lost to it", "recorded cached tokens", "capacity", "IDC", "rate", "p50", "p99.9",
		"cold", "duplicate", "continuation", "template", "branch", "share of hit tokens", "reuse time", "reuse distance", "saved tokens", "its own",
		"working set", "one cache", "of one cache", "most / mean", "round-robin", "session", "prefix-weighted", "share with a session",
		"turn gap", "think time", "tool time", "TTFT", "E2E"} {
		if !defined[name] {
			t.Errorf("%s is not defined", name)
		}
	}
}

// A page may be made by many at once, and is the same each time.
func TestPageIsSafeForConcurrentUse(t *testing.T) {
	full, rows := fullProfile(t)
	var pages [3]string
	var wg sync.WaitGroup
	for i := range pages {
		wg.Go(func() {
			var b bytes.Buffer
			if err := profile.Page(full, rows).Write(&b); err != nil {
				t.Error(err)
			}
			pages[i] = b.String()
		})
	}
	wg.Wait()
	if pages[0] != pages[1] || pages[0] != pages[2] {
		t.Error("the same summary gives two pages")
	}
}
