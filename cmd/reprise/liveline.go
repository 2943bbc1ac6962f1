package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/replay"
)

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
	return h.over(func(p *replay.Progress) int64 { return p.Sent }), h.over(func(p *replay.Progress) int64 { return p.Due })
}

func (h *liveHistory) tokens() float64 {
	return h.over(func(p *replay.Progress) int64 { return p.Tokens })
}

// series is the p99 of the last n intervals; one without values is not a number.
func (h *liveHistory) series(of func(*replay.Quantiles) replay.Distribution, n int) []float64 {
	var out []float64
	for _, p := range h.seen[max(len(h.seen)-n, 0):] {
		v := math.NaN()
		if d := of(&p.Interval); d.Count > 0 {
			v = d.P99.Seconds()
		}
		out = append(out, v)
	}
	return out
}

// sparkline draws values from 0 to their largest; what is no number is a blank.
func sparkline(values []float64) string {
	most := 0.0
	for _, v := range values {
		most = math.Max(most, cmpNaN(v))
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

func cmpNaN(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
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

func bar(n, of int64, width int) string {
	full := 0
	if of > 0 {
		full = int(min(n, of) * int64(width) / of)
	}
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// toSend is how many requests a run has; 0 where it has no end. Rows that are left
// out are known once they are read, so that it falls to what is really sent.
func (a liveAbout) toSend(p *replay.Progress) int64 { return max(a.total-p.LeftOut, 0) }

// done says how many of the requests are over.
func done(about liveAbout, p *replay.Progress) string {
	of := about.toSend(p)
	if of == 0 {
		return fmt.Sprintf("%d requests", p.Done)
	}
	out := fmt.Sprintf("%d of %d (%.0f %%)", p.Done, of, 100*float64(p.Done)/float64(of))
	if p.LeftOut > 0 {
		out += fmt.Sprintf(", %d left out", p.LeftOut)
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

// liveLine is a report in one line.
func liveLine(about liveAbout, h *liveHistory) string {
	p := h.last()
	sent, due := h.rates()
	q := &p.Total
	out := fmt.Sprintf("replay %s: %s, sent %.1f/s of %.1f/s due, %d in flight, %.0f tok/s, TTFT p50 %s p99 %s, ITL p50 %s p99 %s, lag p50 %s p99 %s, CPU %.2f, errors: %s",
		p.Elapsed.Round(time.Second), done(about, &p), sent, due, p.InFlight, h.tokens(),
		span(q.TTFT, q.TTFT.P50), span(q.TTFT, q.TTFT.P99), span(q.ITL, q.ITL.P50), span(q.ITL, q.ITL.P99),
		span(q.Lag, q.Lag.P50), span(q.Lag, q.Lag.P99), p.CPU, errorsByClass(&p))
	if why := liveReasons(&p, about); len(why) > 0 {
		out += "; not trustworthy so far: " + strings.Join(why, "; ")
	}
	return out
}
