package profile

import (
	"fmt"
	"math"

	"reprise/trace/page"
)

func (h *sheet) lengths() page.Section {
	plain := func(v float64) string { return page.Fixed(v, 0) }
	return page.Section{Title: "Lengths", Text: h.sayLengths(),
		Tables: statsTable("Tokens", plain, namedStats{"prompt", h.Input}, namedStats{"output", h.Output},
			namedStats{"reasoning", h.Reasoning}, namedStats{"cached, as recorded", h.Cached}, namedStats{"image tokens", h.ImageTokens},
			namedStats{"images", h.Images}, namedStats{"max_tokens", h.MaxTokens}),
		Plots: page.Drawn(
			cumulative("Length distributions", "The share of requests that are at most so long.", "length", "tokens",
				h.cdf("prompts", MetricInput, "", 1), h.cdf("outputs", MetricOutput, "", 1)),
			h.byCategory("Prompt lengths by reuse category", "Which kind of request has the long prompts.", MetricInput, "length", "tokens", 1),
			h.histogram("Prompt lengths", MetricInput, "requests", "prompt", "tokens", 1),
			h.histogram("Output lengths", MetricOutput, "requests", "output", "tokens", 1)),
	}
}

// byCategory draws a metric for each category that has values, when two have.
func (h *sheet) byCategory(title, about, metric, label, unit string, per float64) page.Plot {
	var series []page.Series
	for _, c := range h.Categories {
		if s := h.cdf(c.Category, metric, c.Category, per); len(s.X) > 0 {
			series = append(series, s)
		}
	}
	if len(series) < 2 {
		return page.Plot{}
	}
	return cumulative(title, about, label, unit, series...)
}

func (h *sheet) sayLengths() []string {
	if h.Input == nil || h.Output == nil {
		return nil
	}
	says := []string{fmt.Sprintf(
		"Half of the prompts have at most %s tokens and one in a hundred more than %s; half of the outputs have at most %s and one in a hundred more than %s (p50 and p99 of prompt and output tokens).",
		figure(h.Input.P50), figure(h.Input.P99), figure(h.Output.P50), figure(h.Output.P99))}
	if h.OutputTotal > 0 {
		says = append(says, fmt.Sprintf("There are %s prompt tokens for each output token (prompt and output tokens in all).",
			figure(float64(h.InputTotal)/float64(h.OutputTotal))))
	}
	if rho := h.InputOutput.Rho; rho != nil {
		what := "say little about how long their outputs are"
		switch {
		case *rho >= 0.5:
			what = "have long outputs"
		case *rho >= 0.2:
			what = "tend to have longer outputs"
		case *rho <= -0.2:
			what = "tend to have shorter outputs"
		}
		says = append(says, fmt.Sprintf("Long prompts %s (Spearman's rank correlation of prompt and output tokens, %s).", what, figure(math.Round(*rho*1000)/1000)))
	}
	return says
}

// latency is what the source's server took.
func (h *sheet) latency() page.Section {
	s := page.Section{Title: "Recorded latency",
		Tables: statsTable("As recorded in production", lasting, namedStats{"TTFT", h.TTFT}, namedStats{"E2E", h.E2E})}
	if h.TTFT != nil {
		s.Text = append(s.Text, fmt.Sprintf("In production, half of the requests had their first token within %s and 99 %% within %s (p50 and p99 of TTFT over %s).",
			lasting(h.TTFT.P50), lasting(h.TTFT.P99), page.Many(h.TTFT.Count, "request")))
	}
	if h.E2E != nil {
		s.Text = append(s.Text, fmt.Sprintf("In production, half of the requests were done within %s and 99 %% within %s (p50 and p99 of E2E over %s).",
			lasting(h.E2E.P50), lasting(h.E2E.P99), page.Many(h.E2E.Count, "request")))
	}
	return s
}
