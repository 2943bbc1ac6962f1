package bench

import (
	"fmt"
	"time"

	"reprise/replay"
	"reprise/trace/doc"
)

// A Beginning says of a run of a [Sweep], before it is made, what is measured and how long that takes.
type Beginning struct {
	What      string // such as level 8 req/s
	Lasts     time.Duration
	Requests  int64  // that are expected; 0 where the server decides how many there are
	Parts     string // what is measured and what is not, and the flags that set how long each is
	Untrusted string // why the run before it, of the same load, says nothing of the server; "" of a first one
}

// String is the beginning in a sentence.
func (b Beginning) String() string {
	if b.Untrusted != "" {
		return fmt.Sprintf("%s was not trustworthy (%s): again, the 2nd and last time", b.What, b.Untrusted)
	}
	if b.Requests == 0 {
		return fmt.Sprintf("%s: about %v (%s)", b.What, b.Lasts.Round(time.Second), b.Parts)
	}
	return fmt.Sprintf("%s: %s, about %v (%s)", b.What, doc.Many(b.Requests, "request"), b.Lasts.Round(time.Second),
		b.Parts)
}

// beginning describes a trial at a load before it is made.
func (s *Sweep) beginning(r *SweepResult, role string, load float64, t *Trial, m *measurement) Beginning {
	b := Beginning{What: map[string]string{roleLevel: "level ", roleConfirm: "confirming ",
		roleSustain: "sustaining "}[role] + r.load(load), Lasts: t.Duration}
	if m.runs > 0 {
		b.What += fmt.Sprintf(", run %d", m.runs+1)
	}
	if s.Sessions != nil {
		b.Parts = fmt.Sprintf("%s measured after a warm-up; it ends at the latest then",
			doc.Many(t.Session.Window.Trees, "session"))
		return b
	}

	asked, flag := s.Duration, "--level-duration"
	if role == roleSustain && s.Sustain > s.Duration {
		asked, flag = s.Sustain, "--sustain"
	}
	warm := s.warmTime(t, load)
	measured := t.Duration - warm
	if s.Closed() {
		b.Parts = fmt.Sprintf("a warm-up of %s, --warmup; %s %v measured", t.Warmup, flag, measured)
		return b
	}
	n := int64(measured.Seconds()*load + 0.5)
	b.Requests = n + int64(warm.Seconds()*load+0.5)
	longer := ""
	if measured >= asked+time.Second && m.runs == 0 {
		n = s.Requests
		longer = fmt.Sprintf(", --level-requests, which takes longer than %s %v", flag, asked)
		if s.For != "" {
			longer = fmt.Sprintf(", which %s takes, longer than %s %v: --level-requests allows fewer", s.For, flag,
				asked)
		}
		b.Requests = n + int64(warm.Seconds()*load+0.5)
	} else if m.runs == 0 {
		longer = fmt.Sprintf(", %s %v", flag, asked)
	}
	b.Parts = fmt.Sprintf("%d of warm-up, --warmup; %d measured%s", b.Requests-n, n, longer)
	return b
}

// warmTime is how long the warm-up of a trial lasts, in which requests come at a rate.
func (s *Sweep) warmTime(t *Trial, rate float64) time.Duration {
	span, err := replay.ParseSpan(t.Warmup)
	switch {
	case err != nil: // it was read before
		return 0
	case span.Requests > 0 && !s.Closed():
		return time.Duration(float64(span.Requests) / rate * 1e9)
	}
	return span.Time
}
