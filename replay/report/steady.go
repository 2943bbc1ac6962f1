package report

import (
	"errors"
	"fmt"
	"math"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/page"
	"reprise/trace/sample"
)

// DefaultSteadyShare is the share of the peak of requests in flight from which
// a run counts as steady, and MinSteady how many requests a steady state needs:
// as many as a p99 does.
const (
	DefaultSteadyShare = 0.8
	minSteady          = 100
)

// A Steady is the longest stretch of a run in which the requests in flight
// stayed at or above a share of their peak: without the ramp at its begin and
// the drain at its end. Figures are null where Reason says why there are none.
//
// In flight counts every request that was sent and ended, a warm-up included,
// at instants ResolutionS apart, between which it may have been lower. Latencies
// are of the measured, successful requests that were sent and finished inside.
// Throughput counts what happened inside, whatever was only partly there:
// requests by their end, output tokens by the instants of their events, prompt
// tokens by the first token.
type Steady struct {
	Share       float64  `json:"share"` // of the peak
	Peak        int64    `json:"peak_requests"`
	AtLeast     int64    `json:"at_least_requests"` // share × peak
	ResolutionS *float64 `json:"resolution_s"`

	Window *Stretch `json:"window"`

	Inside   int64 `json:"inside_requests"`   // sent and finished inside: those of the latencies
	Finished int64 `json:"finished_requests"` // inside, successfully

	RequestsPerS     *float64 `json:"requests_per_s"`
	PromptTokensPerS *float64 `json:"prompt_tokens_per_s"`
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`

	TTFT     *Stat `json:"ttft"`
	TPOT     *Stat `json:"tpot"`
	ITLChunk *Stat `json:"itl_chunk"`
	E2E      *Stat `json:"e2e"`

	Reason string `json:"reason,omitempty"`
}

// A Stretch is a stretch of the run, in seconds from its start.
type Stretch struct {
	FromS     float64 `json:"from_s"`
	ToS       float64 `json:"to_s"`
	DurationS float64 `json:"duration_s"`
}

// FindSteady reads the results twice: for the requests in flight over time, and
// for what the steady stretch holds. Its memory does not grow with the run.
func FindSteady(run result.Run, reread Reread, share float64, opts Options) (Steady, error) {
	if !(share > 0 && share <= 1) {
		return Steady{}, errors.New("report: the share of the peak is above 0 and at most 1")
	}
	opts, err := opts.complete()
	if err != nil {
		return Steady{}, err
	}
	var c Curve
	err = trace.Each(reread(), func(_ int64, r *result.Result) error {
		if err := CheckResult(r); err != nil {
			return err
		}
		if r.SentNS != nil && r.DoneNS != nil {
			c.Add(*r.SentNS, *r.DoneNS)
		}
		return nil
	})
	if err != nil {
		return Steady{}, err
	}
	s := Steady{Share: share}
	window, ok := c.steady(&s)
	if !ok {
		return s, nil
	}
	in := &inside{run: run, window: window}
	for _, values := range []*sample.Values{&in.ttft, &in.tpot, &in.itl, &in.e2e} {
		values.Limit = opts.Exact
	}
	err = trace.Each(reread(), func(_ int64, r *result.Result) error {
		in.add(r)
		return nil
	})
	if err != nil {
		return Steady{}, err
	}
	in.finish(&s)
	return s, nil
}

// steady finds the stretch between the first and the last of the longest row
// of edges of bins with enough requests in flight.
func (c *Curve) steady(s *Steady) (Interval, bool) {
	for _, open := range c.levels {
		s.Peak = max(s.Peak, open)
	}
	if s.Peak == 0 {
		s.Reason = "no request was in flight at any of the instants that are looked at"
		return Interval{}, false
	}
	s.AtLeast = int64(math.Ceil(s.Share * float64(s.Peak)))
	s.ResolutionS = Seconds(c.width)
	first, most := -1, Interval{}
	for i, open := range c.levels {
		if open < s.AtLeast {
			first = -1
			continue
		}
		if first < 0 {
			first = i
		}
		// The end of bin i is the edge i+1.
		if w := (Interval{int64(first+1) * c.width, int64(i+1) * c.width}); w.to-w.from > most.to-most.from {
			most = w
		}
	}
	if most.to == most.from {
		s.Reason = fmt.Sprintf("the requests in flight reached %s, %s of their peak, for an instant only", page.Brief(s.AtLeast), page.Percent(s.Share))
		return Interval{}, false
	}
	s.Window = &Stretch{*Seconds(most.from), *Seconds(most.to), *Seconds(most.to - most.from)}
	return most, true
}

// inside adds up what happened in a stretch.
type inside struct {
	run                  result.Run
	window               Interval
	finished, sent       int64
	prompt               int64
	output               float64
	ttft, tpot, itl, e2e sample.Values
}

func (in *inside) add(r *result.Result) {
	if end, _ := OutcomeOf(r); end != Succeeded {
		return
	}
	done := in.window.Contains(*r.DoneNS)
	if done {
		in.finished++
	}
	in.addTokens(r)
	before, after := in.run.Window.Holds(r)
	if before || after || !done || !in.window.Contains(*r.SentNS) {
		return
	}
	in.sent++
	l := Derive(r)
	addSpan(&in.ttft, l.TTFT[FromSent])
	addSpan(&in.e2e, l.E2E[FromSent])
	addSpan(&in.tpot, l.TPOT)
	for _, gap := range r.GapsNS {
		in.itl.Add(gap)
	}
}

// addTokens counts the tokens of the events inside. Where the server did not
// say how many each carried, all of a request's carried as many.
func (in *inside) addTokens(r *result.Result) {
	if r.FirstTokenNS == nil || r.Events == 0 {
		return
	}
	if in.window.Contains(*r.FirstTokenNS) {
		in.prompt += int64(InputTokens(r))
	}
	exact := len(r.EventTokens) == int(r.Events)
	each := 0.0
	if r.Output != nil {
		each = float64(*r.Output) / float64(r.Events)
	}
	at := *r.FirstTokenNS
	for i := range int(r.Events) {
		if i > 0 {
			at += r.GapsNS[i-1]
		}
		switch {
		case !in.window.Contains(at):
		case exact:
			in.output += float64(r.EventTokens[i])
		default:
			in.output += each
		}
	}
}

func (in *inside) finish(s *Steady) {
	s.Inside, s.Finished = in.sent, in.finished
	if in.sent < minSteady {
		s.Reason = fmt.Sprintf("%s %s sent and finished in the %s s from %s s on in which at least %s were in flight; %d are needed",
			page.Many(in.sent, "request"), page.Was(in.sent), page.Number(s.Window.DurationS), page.Number(s.Window.FromS), page.Brief(s.AtLeast), minSteady)
		return
	}
	ns := in.window.to - in.window.from
	s.RequestsPerS = PerSecond(in.finished, ns)
	s.PromptTokensPerS = PerSecond(in.prompt, ns)
	s.OutputTokensPerS = Rounded(in.output/float64(ns)*1e9, 1e6)
	for _, m := range []struct {
		into **Stat
		of   *sample.Values
	}{{&s.TTFT, &in.ttft}, {&s.TPOT, &in.tpot}, {&s.ITLChunk, &in.itl}, {&s.E2E, &in.e2e}} {
		st, _ := StatOf(m.of)
		*m.into = &st
	}
}

// steadyRows is the table of a steady state: nothing without one.
func steadyRows(s *Steady) [][]string {
	if s == nil || s.TTFT == nil {
		return nil
	}
	var rows [][]string
	for _, m := range []struct {
		label string
		stat  *Stat
	}{{"TTFT from sent", s.TTFT}, {"Chunk ITL", s.ITLChunk}, {"TPOT", s.TPOT}, {"E2E from sent", s.E2E}} {
		rows = append(rows, statRow(m.label, m.stat))
	}
	return rows
}

// saySteady says which stretch it was and what the server did in it.
func saySteady(s *Steady) []string {
	switch {
	case s == nil:
		return nil
	case s.Reason != "":
		return []string{"No steady state: " + s.Reason + "."}
	}
	out := fmt.Sprintf("Steady from %s s to %s s: at least %s requests in flight, %s of the peak of %s. %s requests, %s prompt tokens and %s output tokens per second; %s sent and finished inside have the latencies.",
		page.Number(s.Window.FromS), page.Number(s.Window.ToS), page.Brief(s.AtLeast), page.Percent(s.Share), page.Brief(s.Peak),
		page.Number(*s.RequestsPerS), page.Number(*s.PromptTokensPerS), page.Number(*s.OutputTokensPerS), page.Many(s.Inside, "request"))
	return []string{out}
}

func steadySection(s *Steady) page.Section {
	sec := page.Section{Text: saySteady(s)}
	if len(sec.Text) > 0 {
		sec.Title = "Steady state"
	}
	if rows := steadyRows(s); rows != nil {
		sec.Tables = []page.Table{{Caption: "Latency in ms, of requests sent and finished inside", Head: latencyHead, Rows: rows, HeadTerms: repeat(termOf("latencies of the steady state"), len(latencyHead))}}
	}
	return sec
}
