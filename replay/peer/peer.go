// Package peer reads the recording of a run under the definitions of other
// benchmark tools: what vLLM, SGLang, AIPerf, GuideLLM, GenAI-Perf or
// inference-perf would have printed of the same instants and counts.
//
//   - [Under] gives the figures of one of the [Presets], each with the definition
//     and the formula of that tool. What a recording cannot give is listed with
//     the reason.
//   - [WriteVLLM] writes the JSON document of vllm bench serve, key for key.
//
// Both need passes of their own over the results, and keep as little as the
// passes of package report: memory does not grow with the run.
//
// # Files
//
//   - peer.go: reading a run under another tool's definitions: success, goodput,
//     quantiles
//   - definitions.go: the figures of each tool: vLLM, SGLang, AIPerf, GuideLLM,
//     GenAI-Perf, inference-perf, with their formulas
//   - requests.go: how each tool sees one request: its begin, first token, end, lengths,
//     gaps and rates
//   - peaks.go: vLLM's peaks: the most requests at once, and the most chunks in a second
//   - vllm.go: the JSON of vllm bench serve: its keys, details, metadata, file name, and
//     the values of its --goodput
//
// Exported names may change in any release.
package peer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// Presets lists the peers whose definitions a recording can be read under.
func Presets() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

var presets = []*preset{&vllmPreset, &sglangPreset, &aiperfPreset, &guidellmPreset, &genaiPreset, &inferencePreset}

// Under reads a recording under a peer's definitions. The results are read
// once; for vllm, which prints peaks over time, some times more, see [WriteVLLM].
func Under(name string, run result.Run, reread report.Reread, opts report.Options) (report.Peer, error) {
	i := slices.Index(Presets(), name)
	if i < 0 {
		return report.Peer{}, errors.New("peer: unknown definitions: want one of " + strings.Join(Presets(), ", "))
	}
	p := presets[i]
	if err := opts.Check(); err != nil {
		return report.Peer{}, err
	}
	pass := newPeerPass(p, run, opts)
	if err := pass.read(reread); err != nil {
		return report.Peer{}, err
	}
	out := report.Peer{Definitions: p.name, Source: p.source}
	for i, m := range p.measures {
		metric := report.PeerMetric{Name: m.name, Unit: m.unit, Definition: m.definition, Formula: m.formula,
			Values: []report.PeerValue{}, Missing: m.missing}
		switch {
		case m.due && run.Read != nil && !run.Read.Due:
			metric.Missing = "the file that was read does not say when requests were due"
		case m.total != nil:
			metric.Values = append(metric.Values, report.PeerValue{Value: m.total(&pass.totals)})
		case m.each != nil:
			s := &pass.samples[i]
			metric.Count = trace.Ptr(s.N)
			q, per := s.Order(), cmp.Or(m.per, 1e6)
			for _, stat := range m.stats {
				metric.Values = append(metric.Values, report.PeerValue{Stat: stat, Value: pass.stat(s, &q, stat, per)})
			}
		}
		out.Metrics = append(out.Metrics, metric)
	}
	return out, nil
}

// A peerPass is one reading of a recording under a preset.
type peerPass struct {
	preset  *preset
	run     result.Run
	totals  totals
	samples []sample.Values // one for each measure
	flow    report.Curve    // of the successful requests, for the peaks
	view    view
}

func newPeerPass(p *preset, run result.Run, opts report.Options) *peerPass {
	pass := &peerPass{preset: p, run: run, samples: make([]sample.Values, len(p.measures))}
	pass.totals.slo = opts.SLO
	for i := range pass.samples {
		pass.samples[i].Limit = cmp.Or(opts.Exact, report.DefaultExact)
	}
	return pass
}

// read makes the passes.
func (p *peerPass) read(reread report.Reread) error {
	err := trace.Each(reread(), func(_ int64, r *result.Result) error {
		if err := report.CheckResult(r); err != nil {
			return err
		}
		p.add(r)
		return nil
	})
	if err != nil || !p.preset.peaks {
		return err
	}
	return p.findPeaks(reread, peakEvents)
}

// measured tells whether a result lies in the run's window.
func (p *peerPass) measured(r *result.Result) bool {
	before, after := p.run.Window.Holds(r)
	return !before && !after
}

// look reads one result; ok is success under the preset.
func (p *peerPass) look(r *result.Result) (v *view, ok bool) {
	p.view = view{gaps: p.view.gaps[:0], tokenGaps: p.view.tokenGaps[:0]}
	if end, _ := report.OutcomeOf(r); end != report.Succeeded {
		return &p.view, false
	}
	return &p.view, p.preset.see(r, &p.view)
}

func (p *peerPass) add(r *result.Result) {
	if !p.measured(r) {
		return
	}
	t := &p.totals
	t.rows++
	end, _ := report.OutcomeOf(r)
	if end == report.NotSent {
		return
	}
	if r.SentNS != nil {
		if t.sent == 0 {
			t.first, t.last = *r.SentNS, *r.SentNS
		}
		t.sent++
		t.first = min(t.first, *r.SentNS)
		if r.DoneNS != nil {
			t.last = max(t.last, *r.DoneNS)
		}
	}
	v, ok := p.look(r)
	switch {
	case end == report.Cancelled:
		t.cancelled++
		return
	case !ok:
		t.failed++
		return
	}
	if t.completed == 0 {
		t.okFirst, t.okEnd, t.okClosed = v.start, v.end, v.closed
	}
	t.completed++
	t.okFirst, t.okEnd, t.okClosed = min(t.okFirst, v.start), max(t.okEnd, v.end), max(t.okClosed, v.closed)
	t.in += v.in
	t.out += max(v.out, 0)
	t.latency.Add(v.latency)
	if p.preset.peaks {
		p.flow.Add(v.start, v.end)
	}
	for i := range p.preset.measures {
		if each := p.preset.measures[i].each; each != nil {
			each(v, p.samples[i].Add)
		}
	}
	if p.good(v) {
		t.good++
	}
}

// good tells whether a request meets the objectives in the peer's terms: its
// time to the first token, per token and to the end. Where an answer has no
// time per token, peers that fill zeroes in take it as met, the others as missed.
func (p *peerPass) good(v *view) bool {
	s := &p.totals.slo
	if s.TTFT != nil && (!v.streamed || v.ttft > int64(*s.TTFT)) || s.E2E != nil && v.latency > int64(*s.E2E) {
		return false
	}
	if s.TPOT == nil {
		return true
	}
	tpot := p.preset.tpot
	if tpot == nil {
		tpot = perOutput
	}
	each, ok := tpot(v)
	return ok && each <= float64(*s.TPOT) || !ok && p.preset.zeroes
}

// stat computes a statistic by its name.
func (p *peerPass) stat(s *sample.Values, q *sample.Order, name string, per float64) *float64 {
	if s.N == 0 {
		if p.preset.zeroes {
			return new(float64)
		}
		return nil
	}
	scaled := func(v float64) *float64 { return report.Rounded(v/per, 1e9) }
	switch name {
	case "mean", "avg":
		return scaled(s.Mean())
	case "std":
		return scaled(s.SD())
	case "min":
		return scaled(float64(s.Min))
	case "max":
		return scaled(float64(s.Max))
	case "median":
		name = "p50"
	}
	var percent float64
	if _, err := fmt.Sscanf(name, "p%g", &percent); err != nil {
		return nil // no table has such a name; a test holds that
	}
	return scaled(float64(p.quantile(q, percent)))
}

// percentDen is the denominator of a percentile with six decimals.
const percentDen = 100_000_000

func (p *peerPass) quantile(q *sample.Order, percent float64) int64 {
	num := int64(percent*(percentDen/100) + 0.5)
	if !p.preset.stepwise {
		return q.At(num, percentDen)
	}
	// The least rank k with k/n >= p.
	whole, rest := q.N/percentDen*num, q.N%percentDen*num
	k := whole + (rest+percentDen-1)/percentDen
	return q.Rank(min(max(k-1, 0), q.N-1))
}
