package bench

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// wideSweep has the widest figures that there are, and reasons of several lines.
func wideSweep(closed bool) SweepResult {
	r := SweepResult{Closed: closed, Contract: []string{"p99 ttft <= 200ms", "p95 tpot <= 20ms", "error_rate <= 1%"}, Hypothesis: strings.Repeat("it bends ", 20),
		Stopped: Stop{Text: strings.Repeat("a long reason ", 12)}}
	for i, role := range []string{roleLevel, roleLevel, roleConfirm, roleSustain} {
		l := Level{Name: fmt.Sprint(role, i), Role: role, Load: 1021 + float64(i), Outcome: outcomeSaturated, Why: strings.Repeat("p99 ttft is 871.4 ms ", 9)}
		for _, s := range []*report.Stat{&l.TTFTDue, &l.TTFTSent, &l.TPOT, &l.ITL} {
			s.P50, s.P99, s.Count = trace.Ptr(28.123), trace.Ptr(10234.5), 123456
		}
		l.Flow = Flow{OfferedPerS: trace.Ptr(1021.44), AchievedPerS: trace.Ptr(1019.99), OutputPerS: trace.Ptr(123456.0), InFlight: trace.Ptr(1311.4)}
		l.InFlight, l.Requests.ErrorShare = trace.Ptr(99.0), trace.Ptr(0.0033333)
		r.Levels = append(r.Levels, l)
	}
	return r
}

// The text fits a window of 110 columns, and has every figure that decides.
func TestSweepTextIsNarrow(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := wideSweep(closed)
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 110 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		for _, want := range []string{"saturated", "1020", "28.1", "10200", "123456", "0.33 %", "1310", "flight", "confirm", "sustain", "without the drain"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("closed %v: no %s in\n%s", closed, want, b.String())
			}
		}
		if strings.Contains(b.String(), " 99 ") {
			t.Error("in flight is that of the whole run")
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
