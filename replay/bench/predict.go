package bench

import (
	"fmt"
	"io"
	"math"

	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// near is how far from the prediction a measurement may be and still count as the
// regime that it is of: the efficiency is seldom known better.
const near = 1.25

// A Comparison is a prediction beside a measurement, and what their ratio hints at.
type Comparison struct {
	Prediction engine.Prediction `json:"prediction"`
	TPOTMS     *float64          `json:"measured_tpot_p50_ms"`
	TPOTRatio  *float64          `json:"tpot_ratio"` // measured ÷ predicted
	TTFTMS     *float64          `json:"measured_ttft_p50_ms"`
	TTFTRatio  *float64          `json:"ttft_ratio"`
	OutputPerS *float64          `json:"measured_output_tokens_per_s"`
	InFlight   *float64          `json:"measured_in_flight"`
	Hints      []Hint            `json:"hints"`
}

// A Hint is a regime that the figures speak for, and what would confirm it. It is no
// finding: the ratio is as sure as the efficiency that was given.
type Hint struct {
	Regime  string `json:"regime"`
	Because string `json:"because"`
	Confirm string `json:"confirm"`
}

// Compare sets a summary beside a prediction.
func Compare(p engine.Prediction, s *report.Summary) Comparison {
	c := Comparison{Prediction: p, TPOTMS: s.Latency.TPOT.P50, TTFTMS: s.Latency.FromSent.TTFT.P50,
		OutputPerS: s.Throughput.OutputTokensPerS, InFlight: s.InFlight.Mean, Hints: []Hint{}}
	over := func(measured *float64, predicted float64) *float64 {
		if measured == nil || predicted <= 0 {
			return nil
		}
		return new(*measured / predicted)
	}
	c.TPOTRatio = over(c.TPOTMS, p.TPOTMS)
	if p.TTFTMS != nil {
		c.TTFTRatio = over(c.TTFTMS, *p.TTFTMS)
	}
	for _, r := range s.Verdict.Reasons {
		c.Hints = append(c.Hints, Hint{"a run that is not trustworthy", r.Text,
			"Another run, of a client with room to spare: the figures below may be the client's."})
	}
	c.decode()
	c.prefill()
	return c
}

// decode judges the time of a token.
func (c *Comparison) decode() {
	if c.TPOTRatio == nil {
		return
	}
	ratio, b := *c.TPOTRatio, fmt.Sprintf("TPOT p50 is %s ms, %s times the floor of %s ms", cell(c.TPOTMS),
		cell(c.TPOTRatio), doc.Number(c.Prediction.TPOTMS))
	together := " A run at concurrency 1 with equal prompts takes queue and batch away."
	if c.alone() {
		together = ""
	}
	switch {
	case ratio < 1/near:
		c.Hints = append(c.Hints, Hint{"faster than the floor", b,
			"Check parameters, bytes and bandwidth; speculative decoding, or several tokens in an event, " +
				"also do this."})
	case ratio <= near && c.Prediction.Bound == "memory":
		c.Hints = append(c.Hints, Hint{"memory-bound decode", b,
			"Memory bandwidth counters near their peak; TPOT that hardly rises with the batch."})
	case ratio <= near:
		c.Hints = append(c.Hints, Hint{"compute-bound decode", b,
			"Compute utilisation near its peak; TPOT that rises in proportion to the batch."})
	default:
		c.Hints = append(c.Hints, Hint{"not bandwidth alone", b,
			"Memory bandwidth counters: low ones speak for host, kernels, clocks or prefill between the steps, high " +
				"ones for more KV than was given." + together})
	}
}

// prefill judges the time to the first token.
func (c *Comparison) prefill() {
	if c.TTFTRatio == nil {
		return
	}
	b := fmt.Sprintf("TTFT p50 (service time) is %s ms, %s times the floor of %s ms", cell(c.TTFTMS), cell(c.TTFTRatio),
		cell(c.Prediction.TTFTMS))
	switch ratio := *c.TTFTRatio; {
	case ratio < 1/near:
		c.Hints = append(c.Hints,
			Hint{"prompts not computed whole", b, "The share of cached tokens: a prefix cache does this."})
	case ratio <= near:
		c.Hints = append(c.Hints, Hint{"compute-bound prefill", b,
			"GPU compute utilisation during prefill; TTFT in proportion to the prompt at concurrency 1."})
	case c.alone():
		c.Hints = append(c.Hints, Hint{"work beside the prefill", b + ", and no other request was in flight",
			"A run with prompts of a few tokens, whose TTFT is what each request costs whatever its length; the " +
				"engine's log for tokenisation, scheduling and cache misses."})
	default:
		c.Hints = append(c.Hints, Hint{"a queue, or work beside the prefill", b,
			"Requests waiting at the server; a run at concurrency 1, where TTFT that stays as high is no queue."})
	}
}

// alone tells that requests were in flight one at a time.
func (c *Comparison) alone() bool { return c.InFlight != nil && *c.InFlight <= 1.1 }

// WriteText writes the comparison for people: what bounds decoding, and the floor beside
// what was measured. Without a measurement it is the prediction alone.
func (c *Comparison) WriteText(w io.Writer, o textpage.Options) error {
	b := &c.Prediction
	p := textpage.New(o)
	kept := "KV"
	if b.State > 0 {
		kept = "KV and states"
	}
	bound := fmt.Sprintf("Decoding is bound by %s: a step reads %s GB of weights and %s GB of %s.", b.Bound,
		doc.Number(b.WeightBytes/1e9), doc.Number(b.KVBytes/1e9), kept)
	if b.ComputeBoundB != nil {
		bound += fmt.Sprintf(" From %s sequences on it is bound by compute.", doc.Number(math.Ceil(*b.ComputeBoundB)))
	}
	p.Line("", bound)
	var rows [][]string
	line := func(what string, floor, measured, ratio *float64) {
		rows = append(rows, []string{what, cell(floor), cell(measured), cell(ratio)})
	}
	line("TPOT, ms", &b.TPOTMS, c.TPOTMS, c.TPOTRatio)
	line("output tokens/s of a stream", &b.StreamPerS, inverse(1e3, c.TPOTMS), inverse(1, c.TPOTRatio))
	line("output tokens/s", &b.OutputPerS, c.OutputPerS, nil)
	line("batch, in flight", &b.Batch, c.InFlight, nil)
	if b.TTFTMS != nil {
		line("TTFT, ms", b.TTFTMS, c.TTFTMS, c.TTFTRatio)
	}
	p.Columns([]string{"", "floor", "measured", "ratio"}, rows)
	p.Blank()
	for i, h := range c.Hints {
		if n := len(c.Hints) - i; i == 2 && n > 1 && !o.Details {
			p.Line("", fmt.Sprintf("and %s. %s", doc.Many(int64(n), "more hint"), o.Rest))
			break
		}
		p.Line("Hint: ", fmt.Sprintf("%s. %s. To confirm: %s", h.Regime, h.Because, h.Confirm))
	}
	_, err := p.WriteTo(w)
	return err
}

// inverse is one ÷ v: with 1e3, tokens per second from milliseconds of a token.
func inverse(one float64, v *float64) *float64 {
	if v == nil || *v <= 0 {
		return nil
	}
	return new(one / *v)
}
