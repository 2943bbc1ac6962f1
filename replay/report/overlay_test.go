package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// named are runs of n requests each; of says what makes each one another.
func named(t *testing.T, n, runs int, of func(run int, r *result.Run, o *Options) (ttft, gap int64)) []Named {
	t.Helper()
	var out []Named
	for k := range runs {
		run := result.Run{Load: result.Load{Timing: result.OpenLoop, Speed: 1, Model: "m"}, Source: result.Source{Workload: "sha256:aa", Tier: "public"}, Sending: result.Sending{Requests: int64(n)}}
		var o Options
		ttft, gap := of(k, &run, &o)
		var results []result.Result
		for i := range int64(n) {
			results = append(results, answer(i, i*10, 0, ttft+i%3, ttft+gap+i%3, ttft+2*gap+i%3))
		}
		out = append(out, Named{fmt.Sprintf("run-%c", 'a'+k), summarise(t, run, o, results...)})
	}
	return out
}

func noteTexts(notes []doc.Note) string {
	var out []string
	for _, n := range notes {
		out = append(out, n.Text)
	}
	return strings.Join(out, "\n")
}

// Each plot has a series for each run, under its name; every number is defined.
func TestOverlay(t *testing.T) {
	runs := named(t, 200, 3, func(k int, _ *result.Run, _ *Options) (int64, int64) { return int64(20 + 10*k), int64(5 + k) })
	p := Overlay(runs)
	holdDefined(t, p)
	plots := plotsOf(p)
	for _, title := range []string{"TTFT distribution", "TTFT distribution, from schedule", "ITL distribution", "TPOT distribution", "E2E distribution", "Arrivals", "In flight",
		"Prompt tokens over time", "Output tokens over time", "Send lag distribution"} {
		var names []string
		for _, s := range plots[title].Series {
			names = append(names, s.Name)
		}
		if !slices.Equal(names, []string{"run-a", "run-b", "run-c"}) {
			t.Errorf("%s: series %q", title, names)
		}
	}
	if x := plots["TTFT distribution"].Series[2].X; x[0] != 40 {
		t.Errorf("the fastest first token of run-c took %v ms, want 40", x[0])
	}
	for _, row := range p.Sections[0].Tables[0].Rows {
		if row[0] == "TTFT from sent, p50" && !slices.Equal(row[1:], []string{"21", "31", "41"}) {
			t.Errorf("medians %v", row)
		}
	}
	if got := noteTexts(p.Verdict); strings.Contains(got, "differ") {
		t.Errorf("equal workloads: %s", got)
	}
	one := Overlay(runs[:1])
	if one.Title != "Replay report" {
		t.Errorf("one run has the page %q", one.Title)
	}
}

// What keeps runs from being compared is said.
func TestOverlayDifferences(t *testing.T) {
	for want, change := range map[string]func(r *result.Run){
		"The workloads differ (digests sha256:aa, sha256:bb)": func(r *result.Run) { r.Workload = "sha256:bb" },
		"The schedules differ":                                func(r *result.Run) { r.Speed = 2 },
		"simulated and some were measured":                    func(r *result.Run) { r.Simulated = "a model" },
		"different APIs (none, chat)":                         func(r *result.Run) { r.API = "chat" },
		"This report is internal: not for release":            func(r *result.Run) { r.Tier = "internal" },
		"run-b is not trustworthy: the run ended early":       func(r *result.Run) { r.EndedEarly = "interrupted" },
	} {
		runs := named(t, 40, 2, func(k int, r *result.Run, _ *Options) (int64, int64) {
			if k == 1 {
				change(r)
			}
			return 20, 5
		})
		p := Overlay(runs)
		if got := noteTexts(append(p.Verdict, p.Notes...)) + p.Tag; !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

// fastest is a contract with the one clause that the largest TTFT from schedule is at most
// 25 ms.
type fastest struct{}

func (fastest) Check(SLO) error                                         { return nil }
func (fastest) NeedsSteady() bool                                       { return false }
func (fastest) Judge(*result.Run, SLO, *Steady, func() *Evidence) Judge { return fastest{} }
func (fastest) Scopes(*result.Result) uint64                            { return 0 }

func (fastest) Add(*result.Result, bool) {}
func (fastest) Result(all *Evidence, _ int64, _ bool) *ContractResult {
	got := float64(all.Values(Timing{figure.TTFT, FromDue}).Max) / 1e6
	c := ClauseResult{Clause: "max ttft <= 25ms", From: "due", Outcome: Holds, Measured: &got, Allowed: 25, Unit: "ms", Margin: trace.Ptr((25 - got) / 25)}
	if got > 25 {
		c.Outcome = Fails
	}
	return &ContractResult{Holds: got <= 25, Judged: true, Clauses: []ClauseResult{c}}
}

// A contract is held against each run, and the one that fails it is named.
func TestOverlayContract(t *testing.T) {
	runs := named(t, 100, 2, func(k int, _ *result.Run, o *Options) (int64, int64) {
		o.Contract = fastest{}
		return int64(20 + 10*k), 5
	})
	p := Overlay(runs)
	holdDefined(t, p)
	if row := p.Sections[0].Tables[0].Rows[1]; !slices.Equal(row, []string{"Contract", "holds", "fails"}) {
		t.Errorf("%q", row)
	}
	if got := p.Verdict; len(got) != 1 || got[0].Word != "run-b" || !strings.Contains(got[0].Text, "max ttft") {
		t.Error(got)
	}
}

// A run that another beats at both is off the line; without the number of GPUs the
// axis says so.
func TestPareto(t *testing.T) {
	gaps, gpus := []int64{10, 20, 25, 5}, []int{8, 4, 8, 32}
	runs := named(t, 200, 4, func(k int, _ *result.Run, o *Options) (int64, int64) { o.GPUs = gpus[k]; return 20, gaps[k] })
	sec := paretoSection(runs)
	plot := sec.Plots[0]
	front := plot.Series[len(plot.Series)-1]
	if plot.YLabel != "output tokens per second per GPU" || !slices.Equal(front.X, []float64{50, 100, 200}) {
		t.Errorf("%s: the front is at %v", plot.YLabel, front.X)
	}
	if says := strings.Join(sec.Text, " "); !strings.Contains(says, "run-c is beaten by run-a at both") && !strings.Contains(says, "run-c is beaten by run-b at both") {
		t.Error(says)
	}
	unknown := named(t, 200, 2, func(k int, _ *result.Run, _ *Options) (int64, int64) { return 20, gaps[k] })
	if sec := paretoSection(unknown); sec.Plots[0].YLabel != "output tokens per second per instance" || !strings.Contains(strings.Join(sec.Text, " "), "not known") {
		t.Errorf("%+v", sec)
	}
	unknown[0].Efficiency.GPUsFrom = gpusGiven
	if sec := paretoSection(unknown); len(sec.Plots) > 0 || !strings.Contains(strings.Join(sec.Text, " "), "of some runs only") {
		t.Errorf("a GPU is held against an instance: %+v", sec)
	}
	if got := *runs[0].Efficiency.PerGPU * 8; got < *runs[0].Throughput.OutputTokensPerS-1e-4 || got > *runs[0].Throughput.OutputTokensPerS+1e-4 {
		t.Errorf("%v per second over 8 GPUs", got)
	}
	if e := efficiency(&Summary{Run: result.Run{Routing: result.Routing{Endpoints: []string{"a", "b"}}}}, 0); e.GPUs != 2 || e.GPUsFrom != gpusInstances {
		t.Errorf("two endpoints: %+v", e)
	}
}

// As text, runs stand in tables that fit the width, however long their names; as
// JSON they are an array that reads back.
func TestWriteRuns(t *testing.T) {
	runs := named(t, 50, 7, func(k int, r *result.Run, _ *Options) (int64, int64) { return 1e8, 1e7 })
	runs[0].Name = strings.Repeat("long", 20) + "\x1b[31m"
	var text, data bytes.Buffer
	if err := Overlay(runs).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	holdWidth(t, text.String())
	if n := strings.Count(text.String(), "Verdict"); n != 3 {
		t.Errorf("%d tables for 7 runs", n)
	}
	if err := writeJSON(&data, runs); err != nil {
		t.Fatal(err)
	}
	var back []Named
	if err := json.Unmarshal(data.Bytes(), &back); err != nil || len(back) != 7 || back[3].Name != "run-d" || *back[3].Latency.FromSent.TTFT.P50 != *runs[3].Latency.FromSent.TTFT.P50 {
		t.Errorf("%d runs came back: %v", len(back), err)
	}
}
