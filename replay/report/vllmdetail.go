package report

import (
	"reprise/replay/result"
	"reprise/trace"
)

// details are the arrays with an element for each request that vLLM would have
// sent, in the order of the results. A failed request has its prompt as asked
// for, no output, and zeroes.
var details = []struct {
	key string
	of  func(r *result.Result, v *view, ok bool) any
}{
	{"input_lens", func(r *result.Result, v *view, ok bool) any {
		if !ok {
			return r.WantInput
		}
		return v.in
	}},
	{"output_lens", func(_ *result.Result, v *view, ok bool) any { return v.out }},
	{"ttfts", func(_ *result.Result, v *view, ok bool) any { return inSeconds(v.ttft) }},
	{"itls", func(_ *result.Result, v *view, ok bool) any {
		gaps := make([]float64, len(v.gaps))
		for i, gap := range v.gaps {
			gaps[i] = inSeconds(gap)
		}
		return gaps
	}},
	{"latencies", func(_ *result.Result, v *view, ok bool) any { return inSeconds(v.latency) }},
	{"start_times", func(r *result.Result, _ *view, _ bool) any {
		if r.SentNS == nil {
			return 0.0
		}
		return inSeconds(*r.SentNS)
	}},
	{"queue_times", func(r *result.Result, _ *view, _ bool) any {
		if r.SentNS == nil {
			return 0.0
		}
		return inSeconds(*r.SentNS - r.DueNS)
	}},
	{"generated_texts", func(*result.Result, *view, bool) any { return "" }},
	{"errors", func(r *result.Result, _ *view, ok bool) any {
		if _, class := outcomeOf(r); class != "" || ok {
			return class
		}
		return noEvent
	}},
}

// noEvent is the error of a stream that ended well without an event, which
// vLLM counts as failed.
const noEvent = "no_event"

// arrays writes the details, each by a pass over the results.
func (o *object) arrays(p *peerPass, reread Reread) error {
	for _, d := range details {
		o.key(d.key)
		separator := "["
		err := trace.Each(reread(), func(_ int64, r *result.Result) error {
			end, _ := outcomeOf(r)
			if !p.measured(r) || end == notSent || end == cancelled {
				return nil
			}
			o.raw(separator)
			separator = ", "
			v, ok := p.look(r)
			if !ok {
				*v = view{gaps: v.gaps[:0]}
			}
			o.value(d.of(r, v, ok))
			return o.err
		})
		if err != nil {
			return err
		}
		if separator == "[" {
			o.raw("[")
		}
		o.raw("]")
	}
	return nil
}
