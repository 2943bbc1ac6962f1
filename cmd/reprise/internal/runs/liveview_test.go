package runs

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"charm.land/bubbletea/v2"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/report"
)

var liveUpdate = flag.Bool("update-live", false, "rewrite the golden files of the live view")

func liveGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "live", name)
	if *liveUpdate {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update-live and read the difference. Got:\n%s", name, got)
	}
}

// liveRun is a run of which the first is sound and the second is not.
func liveRun(bad bool, n int64) replay.Progress {
	ms := func(v int64) time.Duration { return time.Duration(v) * time.Millisecond }
	d := func(count, p50, p99 int64) replay.Distribution {
		return replay.Distribution{Count: count, P50: ms(p50), P99: ms(p99), Max: ms(2 * p99)}
	}
	p := replay.Progress{
		Elapsed: time.Duration(n) * time.Second, Done: 18 * n, InFlight: int(2 * n), Sent: 20 * n, Due: 20 * n, Tokens: 1800 * n,
		Interval: replay.Quantiles{TTFT: d(18, 30, 40+n*n), ITL: d(1782, 15, 20+n%5), Lag: d(18, 0, n%3)},
		Total:    replay.Quantiles{TTFT: d(18*n, 30, 40+n*n/2), ITL: d(1782*n, 15, 22), Lag: d(18*n, 0, 2)},
		CPU:      0.25, CPUTotal: 0.2,
	}
	if n == 3 {
		p.Interval = replay.Quantiles{}
	}
	if bad {
		p.Due += 5 * n
		p.Failed, p.Refused = 3*n, 2*n
		p.Errors = map[string]int64{openai.KindRateLimited: 2 * n, openai.KindConnect: n}
		p.Total.Lag = d(18*n, 12, 3400)
		p.CPUTotal = 1.9
	}
	return p
}

func liveAboutTest() liveAbout {
	return liveAbout{"replay to http://127.0.0.1:8000", 1000, 0, false, 2, report.DefaultLimits()}
}

func TestLiveView(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   bool
		n     int64
		width int
	}{{"preparing", false, 0, 80}, {"first", false, 1, 80}, {"good", false, 12, 80}, {"bad", true, 40, 100}, {"narrow", true, 40, 30}, {"long", false, 300, 0}} {
		var m tea.Model = liveModel{about: liveAboutTest(), stop: func() {}}
		if c.width > 0 {
			m, _ = m.Update(tea.WindowSizeMsg{Width: c.width, Height: 30})
		}
		for n := range c.n {
			m, _ = m.Update(liveRun(c.bad, n+1))
		}
		text := m.(liveModel).text()
		if m.View().Content != text {
			t.Errorf("%s: another view", c.name)
		}
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > max(c.width, 30) && c.width > 0 {
				t.Errorf("%s: a line of %d columns", c.name, n)
			}
		}
		liveGolden(t, c.name+".txt", text)
		if h := m.(liveModel).history; len(h.seen) > liveSeen {
			t.Errorf("%d reports are kept", len(h.seen))
		}
	}
}

// A load that lasts for a time shows how much of it is over, and in a closed loop nothing is due.
func TestLiveViewOfATime(t *testing.T) {
	about := liveAboutTest()
	about.total, about.lasts, about.closed = 0, 48*time.Second, true

	var m tea.Model = liveModel{about: about, stop: func() {}}
	for n := range int64(12) {
		m, _ = m.Update(liveRun(false, n+1))
	}
	liveGolden(t, "time.txt", m.(liveModel).text())
}

// The first press ends the sending, a second the process, after the terminal is given
// back; but none within a second, and any other key does nothing.
func TestLiveKeys(t *testing.T) {
	for _, key := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		stopped := 0
		var m tea.Model = liveModel{about: liveAboutTest(), stop: func() { stopped++ }}
		m, _ = m.Update(liveRun(false, 5))
		m, cmd := m.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
		if cmd != nil {
			t.Error("x does something")
		}
		m, cmd = m.Update(key)
		if cmd == nil || cmd() != nil || stopped != 1 || !strings.Contains(m.(liveModel).text(), "stopping") {
			t.Errorf("%v: stopped %d times", key, stopped)
		}
		if m, cmd = m.Update(key); cmd != nil || m.(liveModel).kill {
			t.Errorf("%v held down: %+v", key, m)
		}
		began := m.(liveModel)
		began.stopping = began.stopping.Add(-cli.SameSignal)
		m, cmd = began.Update(key)
		if _, quits := cmd().(tea.QuitMsg); !quits || !m.(liveModel).kill || stopped != 1 {
			t.Errorf("%v again: %+v", key, m)
		}
	}
	// An interrupt from elsewhere counts as the first press; the end is quiet.
	var m tea.Model = liveModel{about: liveAboutTest(), stop: func() { t.Error("stopped") }}
	m, _ = m.Update(liveStopping{})
	m, cmd := m.Update(liveOver{})
	if _, quits := cmd().(tea.QuitMsg); !quits || m.(liveModel).kill {
		t.Errorf("at the end: %+v", m)
	}
}

func TestLiveLine(t *testing.T) {
	var out strings.Builder
	for _, bad := range []bool{false, true} {
		w := watcher{about: liveAboutTest(), lines: &out}
		for n := range int64(25) {
			w.progress(liveRun(bad, n))
		}
		w.end()
	}
	liveGolden(t, "lines.txt", out.String())
}

func TestSparkline(t *testing.T) {
	nan := func() float64 { var z float64; return z / z }()
	for want, values := range map[string][]float64{
		"": nil, "▁▁": {0, 0}, "▁▂▃▄▅▆▇█": {0, 1, 2, 3, 4, 5, 6, 8}, "█ █": {5, nan, 5}, " ": {nan},
	} {
		if got := sparkline(values); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}

// Rows that are left out are no part of what is to be done: the last line of a run
// of which every request is over says 100 %.
func TestLiveLineEndsAtTheWhole(t *testing.T) {
	var out strings.Builder
	about := liveAboutTest()
	about.total = 242
	w := watcher{about: about, lines: &out}
	for _, p := range []replay.Progress{
		{Elapsed: 10 * time.Second, Done: 121, LeftOut: 0}, {Elapsed: 20 * time.Second, Done: 236, LeftOut: 6},
	} {
		w.progress(p)
	}
	if got := out.String(); !strings.Contains(got, "121 of 242 (50 %),") || !strings.Contains(got, "236 of 236 (100 %), 6 left out,") {
		t.Error(got)
	}
	var m tea.Model = liveModel{about: about, stop: func() {}}
	m, _ = m.Update(replay.Progress{Elapsed: 2 * time.Second, Done: 236, LeftOut: 6})
	if got := m.(liveModel).text(); !strings.Contains(got, "236 of 236 (100 %), 6 left out") || strings.Contains(got, "░") {
		t.Error(got)
	}
}
