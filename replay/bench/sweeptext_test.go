package bench

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/textpage"
)

// wideSweep has the widest figures that there are, and reasons of several lines.
func wideSweep(closed bool) SweepResult {
	r := SweepResult{Closed: closed, Contract: []string{"p99 ttft <= 200ms", "p95 tpot <= 20ms", "error_rate <= 1%"}, Hypothesis: strings.Repeat("it bends ", 20),
		Stopped: Stop{Text: strings.Repeat("a long reason ", 12)}}
	for i, role := range []string{roleLevel, roleLevel, roleConfirm, roleSustain} {
		l := Level{Name: fmt.Sprint(role, i), Role: role, Load: 1021 + float64(i), Outcome: outcomeSaturated, Why: strings.Repeat("p99 ttft is 871.4 ms ", 9)}
		for _, s := range []*report.Stat{&l.TTFTDue, &l.TTFTSent, &l.TPOT, &l.ITL, &l.E2E} {
			s.P50, s.P95, s.P99, s.Count = trace.Ptr(28.123), trace.Ptr(1234.5), trace.Ptr(10234.5), 123456
		}
		l.Flow = Flow{OfferedPerS: trace.Ptr(1021.44), AchievedPerS: trace.Ptr(1019.99), OutputPerS: trace.Ptr(123456.0), InFlight: trace.Ptr(1311.4)}
		l.InFlight, l.Requests.ErrorShare = trace.Ptr(99.0), trace.Ptr(0.0033333)
		r.Levels = append(r.Levels, l)
	}
	return r
}

// With details the text is as narrow as it was asked to be, and has every figure.
func TestSweepTextIsNarrow(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := wideSweep(closed)
		for _, width := range []int{60, 80, 100} {
			text := written(t, width, func(w io.Writer, o textpage.Options) error {
				o.Details = true
				return r.Page().WriteText(w, o)
			})
			for _, want := range []string{"saturated", "1,020", "28.1", "10,200", "123,456", "0.33 %", "1,310", "in flight", "confirm", "sustain", "without the drain"} {
				if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
					t.Errorf("closed %v: no %s in\n%s", closed, want, text)
				}
			}
			if strings.Contains(text, " 99 ") {
				t.Error("in flight is that of the whole run")
			}
		}
	}
}

// written is a text of a width, none of whose lines is wider.
func written(t *testing.T, width int, write func(io.Writer, textpage.Options) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b, textpage.Options{Width: width, Rest: "All figures: --details. Page with curves: --html FILE."}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width || strings.HasSuffix(line, " \n") {
			t.Errorf("%d columns of %d: %q", n, width, line)
		}
	}
	return b.String()
}

var update = flag.Bool("update", false, "rewrite the golden files")

// Answers have 25 lines at most, whatever the width, but for sweeps and suites, which show every
// level, every row and every reason. All are in testdata whole.
func TestAnswers(t *testing.T) {
	rising, wide, closed, none := risingSweep(), wideSweep(false), wideSweep(true), risingSweep()
	none.Highest = Highest{}
	plan, err := Plan(&rising, Demand{Rate: 1000, GPUsPerInstance: 8, Headroom: 0.2, Prices: Prices{PerGPUHour: 2.5, Watts: 700}})
	if err != nil {
		t.Fatal(err)
	}
	floor, err := (&engine.Roofline{Params: 8e9, BytesPerParam: 2, Bandwidth: 600e9, GPUs: 1, Efficiency: 1, Batch: 1}).Predict()
	if err != nil {
		t.Fatal(err)
	}
	measured := Compare(floor, &report.Summary{Latency: report.Latency{TPOT: report.Stat{Count: 100, P50: trace.Ptr(80.)}}})
	suite := SuiteResult{Suite: "serving", Models: []string{"a", "b"}, Baseline: "before", PresetWarnings: []string{strings.Repeat("slow ", 40), "again"}}
	for i := range 20 {
		row := RowResult{Row: fmt.Sprint("workload_", i), Load: "burst"}
		for _, model := range suite.Models {
			row.Models = append(row.Models, ModelResult{Model: model, Runs: 1, Requests: 100, Succeeded: 99, Trustworthy: i != 3, Reasons: slices.Repeat([]string{"the client was late"}, max(0, i-17)),
				Figures: []Figure{{Metric: "output_tokens_per_s", V: 1234.5}, {Metric: "p50_ttft", V: 37}, {Metric: "p99_ttft", V: 12345, Largest: true}, {Metric: "p99_itl", V: 12}}})
		}
		suite.Rows = append(suite.Rows, row)
	}
	for _, width := range []int{60, 80, 100} {
		var all strings.Builder
		for _, c := range []struct {
			name  string
			write func(io.Writer, textpage.Options) error
		}{
			{"sweep", rising.Page().WriteText}, {"sweep of wide figures", wide.Page().WriteText}, {"closed loop",
				closed.Page().WriteText}, {"no load", none.Page().WriteText},
			{"capacity", plan.Page().WriteText}, {"floor", measured.WriteText},
			{"suite", suite.WriteText},
		} {
			text := written(t, width, c.write)
			if n := strings.Count(text, "\n"); n > textpage.AnswerLines && (c.name == "capacity" || c.name == "floor") {
				t.Errorf("%s: %d lines at %d columns", c.name, n, width)
			}
			fmt.Fprintf(&all, "--- %s ---\n%s", c.name, text)
		}
		path := filepath.Join("testdata", fmt.Sprintf("answers%d.txt", width))
		if *update {
			if err := os.WriteFile(path, []byte(all.String()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != all.String() {
			t.Errorf("%v, %s\nwant\n%s", err, all.String(), want)
		}
	}
}

// In flight is a mean over the half of a level that the rates are of: neither what was
// sent before counts whole, nor the drain.
func TestFlowInFlight(t *testing.T) {
	const s = int64(1e9)
	var rows []result.Result
	for i := range int64(11) { // due each second, and 2 s long, but the last: it takes a minute to drain
		r := result.Result{DueNS: i * s, SentNS: trace.Ptr(i * s), DoneNS: trace.Ptr((i + 2) * s)}
		if i == 10 {
			r.DoneNS = trace.Ptr(70 * s)
		}
		rows = append(rows, r)
	}
	rows[7].SentNS = trace.Ptr(8 * s) // held back by the client: it is not in flight
	f, err := flowOf(&result.Run{}, func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{Rows: rows} })
	if err != nil || f.InFlight == nil || *f.InFlight != 1.8 || f.Seconds != 5 {
		t.Errorf("%+v, %v", f, err)
	}
}

// That no longer run was made is no failure, and a load that was asked for is said beside what came out.
func TestSweepSaysWhatWasTried(t *testing.T) {
	of := func(roles ...string) (r SweepResult) {
		r.Unit, r.Contract, r.Highest = unitRate, []string{"p99 ttft <= 1s"}, Highest{Load: trace.Ptr(7.33), Level: "last"}
		for _, role := range roles {
			r.Levels = append(r.Levels, Level{Role: role, Load: 8, Name: "last"})
		}
		return r
	}
	for want, r := range map[string]SweepResult{
		"not tried (no further run was made at that load)":         of(roleLevel),
		"not tried (--sustain 5m makes a longer run at that load)": of(roleLevel, roleConfirm),
		"no (the longer run did not hold)":                         of(roleLevel, roleConfirm, roleSustain),
	} {
		text := written(t, 100, r.Page().WriteText)
		if !strings.Contains(text, want) || !strings.HasPrefix(text, "7.33 req/s within the contract (asked for 8 "+
			"req/s, reached 7.33).") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	short := of(roleLevel)
	short.Levels[0].Flow.OfferedPerS = trace.Ptr(7.)
	if says := " (arrivals drawn at 8 req/s came to 7.33: longer levels come closer)"; short.askedFor() != says {
		t.Errorf("%q, want %q", short.askedFor(), says)
	}
	r := of(roleLevel, roleConfirm, roleSustain)
	if r.Highest.Sustained, r.Highest.Load = true, trace.Ptr(8.); r.Headline() != "8 req/s within the contract" || !strings.Contains(written(t, 100, r.Page().WriteText),
		"yes (by a longer run") {
		t.Errorf("%s\n%s", r.Headline(), written(t, 100, r.Page().WriteText))
	}
}
