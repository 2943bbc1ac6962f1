package report

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/doc/pagetest"
	"reprise/trace/textpage"
)

func plotsOf(p *doc.Document) map[string]doc.Plot {
	out := map[string]doc.Plot{}
	for _, plot := range p.Plots() {
		out[plot.Title] = *plot
	}
	return out
}

func TestPage(t *testing.T) {
	run, results, opts := smallRun()
	p := Page(summarise(t, run, opts, results...))
	plots := plotsOf(p)
	for title, series := range map[string][]string{
		"TTFT distribution":       {"from sent", "from schedule"},
		"Latency over time":       {"TTFT", "E2E"},
		"ITL distribution":        {"between events (chunk ITL)", "per token (token-normalised ITL)"},
		"Prompt tokens over time": {"prompt tokens"},
		"Output tokens over time": {"output tokens"},
		"Hit ratio over time":     {"measured", "expected of a cache without limit"},
		"TPOT distribution":       {"TPOT"},
		"E2E distribution":        {"from sent", "from schedule"},
		"Arrivals":                {"due", "sent"},
		"In flight":               {"in flight"},
		"Send lag distribution":   {"sent − due"},
		"Send lag over time":      {"a request"},
		"Prompt lengths":          {"prompt tokens"},
		"Output lengths":          {"output tokens", "as the workload asks"},
	} {
		var names []string
		for _, s := range plots[title].Series {
			names = append(names, s.Name)
		}
		if !slices.Equal(names, series) {
			t.Errorf("%s: series %q, want %q", title, names, series)
		}
		delete(plots, title)
	}
	if len(plots) > 0 {
		t.Errorf("plots that no test knows: %v", plots)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"internal: not for release", "sha256:5c3f", "o200k_base", "Llama-3.2-3B", "pooled", "× 2", "2 cores", "Seed", "Trustworthy"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The tier is said whatever it is, and a released one is not called internal.
func TestPageTier(t *testing.T) {
	for tier, want := range map[string]string{"internal": "This report is internal: not for release", "": "No tier is stated", "partner": "This report is of tier partner", "public": ""} {
		got := Page(summarise(t, result.Run{Source: result.Source{Tier: tier}}, Options{}, answer(0, 0, 0, 1))).Tag
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("tier %q: %q", tier, got)
		}
	}
}

// However long the run, the series stay short; what they show stays true.
func TestSeriesAreBounded(t *testing.T) {
	var results []result.Result
	for i := range int64(50_000) {
		results = append(results, answer(i, i*997, i%5, 10+i%100, 20+i%100))
	}
	s := summarise(t, result.Run{}, Options{Exact: 1000}, results...)
	for title, plot := range plotsOf(Page(s)) {
		for _, series := range plot.Series {
			if len(series.X) > 2050 {
				t.Errorf("%s, %s: %d points", title, series.Name, len(series.X))
			}
		}
	}
	total := 0.0
	for _, rate := range s.Series.DuePerS.Y {
		total += rate * s.Series.BinS
	}
	near(t, "requests under the arrival curve", &total, 50_000, 1e-9)
	if y := s.Series.InFlight.Y; y[len(y)-1] != 0 {
		t.Errorf("%v requests in flight at the end", y[len(y)-1])
	}
}

// A page may be made and written by many at once.
func TestPageIsSafeForConcurrentUse(t *testing.T) {
	run, results, opts := smallRun()
	s := summarise(t, run, opts, results...)
	var pages [4]bytes.Buffer
	var wg sync.WaitGroup
	for i := range pages {
		wg.Go(func() {
			if err := Page(s).Write(&pages[i]); err != nil {
				t.Error(err)
			}
			if err := Page(s).WriteText(&bytes.Buffer{}, textpage.Options{Details: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range pages {
		if !bytes.Equal(pages[i].Bytes(), pages[0].Bytes()) {
			t.Error("the same summary gives two pages")
		}
	}
}

// Definitions are whole, each name has one, and they are on the page.
func TestDefinitions(t *testing.T) {
	defined := map[string]bool{}
	for _, d := range Definitions() {
		if d.Name == "" || d.Unit == "" || d.Definition == "" || d.Formula == "" {
			t.Errorf("incomplete: %+v", d)
		}
		for _, name := range strings.Split(d.Name, ", ") {
			if defined[name] {
				t.Errorf("%s is defined twice", name)
			}
			defined[name] = true
		}
	}

	var b bytes.Buffer
	if err := Page(summarise(t, result.Run{}, Options{})).Write(&b); err != nil || !strings.Contains(b.String(), "coordinated omission") {
		t.Errorf("the definitions are not on the page: %v", err)
	}
}

// The first screen answers: is it trustworthy, how long did it take, how much came out,
// what failed; and shows latency over time.
func TestFirstScreen(t *testing.T) {
	run, results, opts := smallRun()
	pagetest.FirstScreen(t, "report", Page(summarise(t, run, opts, results...)),
		"Trustworthy: the client kept to its schedule and the run is complete.", "TTFT\t77.8\t78.0\t124\t126", "ITL\t8.26", "E2E\t103", "19.9 req/s", "8 of 1,200 requests", "Latency over time")
	run, results, opts = brokenRun()
	s := summarise(t, run, opts, results...)
	pagetest.FirstScreen(t, "report-broken", Page(s), "Not trustworthy: these figures may not describe the server.", s.Verdict.Reasons[0].Text)
	pagetest.FirstScreen(t, "report-runs", Overlay(named(t, 400, 3, func(k int, _ *result.Run, _ *Options) (int64, int64) { return int64(20 + 10*k), 5 })),
		"Each of the 3 runs is trustworthy by itself", "TTFT from sent, p99\t22\t32\t42", "TTFT distribution")
}
