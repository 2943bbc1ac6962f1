package runs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/bubbletea/v2"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/doc"
)

// liveStopping says that the sending is being ended, liveOver that all is over.
type (
	liveStopping struct{}
	liveOver     struct{}
)

type liveModel struct {
	about    liveAbout
	history  liveHistory
	width    int
	stopping time.Time // since when; zero while it goes on
	over     bool
	kill     bool   // the process is to end
	stop     func() // ends the sending; called again, the process
}

func (m liveModel) Init() tea.Cmd { return nil }

func (m liveModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case replay.Progress:
		m.history = m.history.with(msg)
	case tea.WindowSizeMsg:
		m.width = msg.Width
	case liveStopping:
		m.stopping = time.Now()
	case liveOver:
		m.over = true
		return m, tea.Quit
	case tea.KeyPressMsg:
		if key := msg.String(); key != "q" && key != "ctrl+c" {
			return m, nil
		}
		if !m.stopping.IsZero() {
			if time.Since(m.stopping) < cli.SameSignal { // a key that was held down
				return m, nil
			}
			m.kill = true // once the terminal is given back
			return m, tea.Quit
		}
		m.stopping = time.Now()
		return m, func() tea.Msg { m.stop(); return nil }
	}
	return m, nil
}

func (m liveModel) View() tea.View { return tea.NewView(m.text()) }

// liveWidth bounds the lines of the view.
const liveWidth = 100

func (m liveModel) text() string {
	width := min(cmp.Or(m.width, 80), liveWidth)
	if len(m.history.seen) == 0 {
		return clip(m.about.title+": preparing", width) + "\n"
	}
	p := m.history.last()
	var b strings.Builder
	line := func(name, format string, args ...any) {
		b.WriteString(clip(fmt.Sprintf("%-10s", name)+fmt.Sprintf(format, args...), width) + "\n")
	}
	b.WriteString(clip(m.about.title, width) + "\n")
	said := done(m.about, &p)
	line(p.Elapsed.Round(time.Second).String(), "%s %s",
		bar(m.about.share(&p), max(min(width-40, width-11-len(said)), 5)), said)
	sent, due := m.history.rates()
	if m.about.closed {
		line("sent", "%.1f/s", sent)
	} else {
		line("sent", "%.1f/s of %.1f/s due, %d behind", sent, due, p.Due-p.Sent)
	}
	line("in flight", "%d", p.InFlight)
	line("output", "%.0f tok/s", m.history.tokens())
	for _, q := range liveQuantities {
		all := q.of(&p.Total)
		var recent []float64 // the p99 of the last intervals; one without values is not a number
		for _, seen := range m.history.seen[max(len(m.history.seen)-max(min(60, width-48), 1), 0):] {
			v := math.NaN()
			if d := q.of(&seen.Interval); d.Count > 0 {
				v = d.P99.Seconds()
			}
			recent = append(recent, v)
		}
		line(q.name, "p50 %-9s p99 %-9s %s", span(all, all.P50), span(all, all.P99), sparkline(recent))
	}
	line("client", "%.2f of %d cores", p.CPU, m.about.cores)
	line("errors", "%s", errorsByClass(&p))
	if why := liveReasons(&p, m.about); len(why) == 0 {
		line("verdict", "trustworthy so far%s; the end judges stalls, token counts and cache hits",
			looser(m.about.limits))
	} else {
		line("verdict", "not trustworthy so far%s", looser(m.about.limits))
		for _, reason := range why {
			line("", "- %s", reason)
		}
	}
	switch {
	case m.over:
	case !m.stopping.IsZero():
		b.WriteString(clip("stopping: requests in flight have "+flags.StopGrace.String()+
			" to end; q again ends at once, and leaves the journal", width) + "\n")
	default:
		b.WriteString("q stops\n")
	}
	return b.String()
}

var liveQuantities = []struct {
	name string
	of   func(*replay.Quantiles) replay.Distribution
}{

	{"TTFT", func(q *replay.Quantiles) replay.Distribution { return q.TTFT }},
	{"ITL", func(q *replay.Quantiles) replay.Distribution { return q.ITL }},
	{"send lag", func(q *replay.Quantiles) replay.Distribution { return q.Lag }},
}

// looser says how many limits of a verdict allow more than their defaults; the report names them.
func looser(l report.Limits) string {
	if n := int64(len(l.Loosened())); n > 0 {
		return " (" + doc.Many(n, "limit") + " loosened)"
	}
	return ""
}

// liveReasons holds what is known so far against the limits of the run.
func liveReasons(p *replay.Progress, about liveAbout) (why []string) {
	l := about.limits
	late := func(name string, d time.Duration, limit time.Duration) {
		if p.Total.Lag.Count > 0 && limit >= 0 && d > limit {
			why = append(why, fmt.Sprintf("%s %s, allowed %s", name, span(p.Total.Lag, d), limit))
		}
	}
	late("send lag p50", p.Total.Lag.P50, l.LagP50)
	late("send lag p99", p.Total.Lag.P99, l.LagP99)
	share := func(name string, n int64, limit float64) {
		if p.Done > 0 && limit >= 0 && float64(n) > limit*float64(p.Done) {
			why = append(why, fmt.Sprintf("%s %.1f %%, allowed %g %%", name, 100*float64(n)/float64(p.Done), 100*limit))
		}
	}
	share("errors", p.Failed, l.Errors)
	share("refused", p.Refused, l.Refused)
	share("no connection", p.Errors[result.KindConnect], l.Connect)
	if c := p.CPUTotal / float64(max(about.cores, 1)); l.CPU >= 0 && c >= l.CPU {
		why = append(why, fmt.Sprintf("CPU %.0f %%, allowed below %.0f %%", 100*c, 100*l.CPU))
	}
	return why
}

// errorsByClass lists failures, the most frequent first.
func errorsByClass(p *replay.Progress) string {
	if p.Failed == 0 {
		return "none"
	}
	type count struct {
		class string
		n     int64
	}
	var counts []count
	for class, n := range p.Errors {
		counts = append(counts, count{class, n})
	}
	slices.SortFunc(counts, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.class, b.class))
	})
	var parts []string
	for _, c := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", c.class, c.n))
	}
	return strings.Join(parts, ", ")
}

// liveSeen is how many reports are kept for rates and sparklines: two minutes.
const liveSeen = 120

// rateOver is how many reports a rate is taken over.
const rateOver = 10

// A liveHistory holds the last reports of a run.
type liveHistory struct{ seen []replay.Progress }

// with is the history with a further report; the old one stays as it is.
func (h liveHistory) with(p replay.Progress) liveHistory {
	h.seen = append(slices.Clone(h.seen[max(len(h.seen)-liveSeen+1, 0):]), p)
	return h
}

func (h *liveHistory) add(p replay.Progress) { *h = h.with(p) }

func (h *liveHistory) last() replay.Progress { return h.seen[len(h.seen)-1] }

// over is the change of a count each second, over the last reports, or since the
// beginning of the run when there is one alone.
func (h *liveHistory) over(of func(*replay.Progress) int64) float64 {
	last, from := h.last(), replay.Progress{}
	if n := len(h.seen); n > 1 {
		from = h.seen[max(n-1-rateOver, 0)]
	}
	took := (last.Elapsed - from.Elapsed).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(of(&last)-of(&from)) / took
}

func (h *liveHistory) rates() (sent, due float64) {
	return h.over(func(p *replay.Progress) int64 { return p.Sent }),
		h.over(func(p *replay.Progress) int64 { return p.Due })
}

func (h *liveHistory) tokens() float64 {
	return h.over(func(p *replay.Progress) int64 { return p.Tokens })
}

// sparkline draws values from 0 to their largest; what is no number is a blank.
func sparkline(values []float64) string {
	most := 0.0
	for _, v := range values {
		if v > most { // no number is greater than none
			most = v
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case most == 0:
			b.WriteRune('▁')
		default:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[min(int(8*v/most), 7)])
		}
	}
	return b.String()
}

// span prints a time to three digits. A distribution without values has none.
func span(d replay.Distribution, v time.Duration) string {
	switch {
	case d.Count == 0:
		return "–"
	case v < time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(v)/1e6)
	case v < time.Second:
		return fmt.Sprintf("%.3g ms", min(float64(v)/1e6, 999))
	}
	return fmt.Sprintf("%.*f s", map[bool]int{true: 0, false: 2}[v >= 100*time.Second], v.Seconds())
}

// bar draws a share of what is to be done.
func bar(share float64, width int) string {
	full := int(share * float64(width))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// share is how much of a run is over: of its requests or of its time, by what ends it first.
func (a liveAbout) share(p *replay.Progress) (share float64) {
	if of := a.toSend(p); of > 0 {
		share = float64(p.Done) / float64(of)
	}
	if a.lasts > 0 {
		share = max(share, p.Elapsed.Seconds()/a.lasts.Seconds())
	}
	return min(share, 1)
}

// done says how many of the requests are over, and how long the rest takes.
func done(about liveAbout, p *replay.Progress) string {
	of := about.toSend(p)
	out := doc.Many(p.Done, "request")
	if of > 0 {
		out = fmt.Sprintf("%d of %d (%.0f %%)", p.Done, of, 100*float64(p.Done)/float64(of))
	}
	if p.LeftOut > 0 {
		out += fmt.Sprintf(", %d left out", p.LeftOut)
	}
	if share := about.share(p); share > 0 && share < 1 && (of == 0 || p.Done < of) {
		left := p.Elapsed.Seconds() * (1 - share) / share
		out += fmt.Sprintf(", about %v left", time.Duration(left+0.5)*time.Second)
	}
	return out
}

// clip cuts a line at a width in columns; all that is shown has one for each rune.
func clip(line string, width int) string {
	if r := []rune(line); len(r) > width {
		return string(r[:max(width-1, 0)]) + "…"
	}
	return line
}
