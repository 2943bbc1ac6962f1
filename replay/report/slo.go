package report

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"reprise/trace/quantity"
)

// An SLO is what one request has to meet to count as good. Objectives that are
// nil are not asked for. A request that has no TPOT or no gaps, because it
// answered with one token, meets those objectives; one that failed meets none.
type SLO struct {
	TTFT *time.Duration `json:"ttft_ns,omitempty"` // to the first token
	TPOT *time.Duration `json:"tpot_ns,omitempty"` // per output token
	ITL  *time.Duration `json:"itl_ns,omitempty"`  // the longest gap between token events of the request
	E2E  *time.Duration `json:"e2e_ns,omitempty"`  // to the last token
}

// objective is a named part of an SLO, for the loops over all of them.
type objective struct {
	name  string
	limit **time.Duration
}

func (s *SLO) objectives() []objective {
	return []objective{{"ttft", &s.TTFT}, {"tpot", &s.TPOT}, {"itl", &s.ITL}, {"e2e", &s.E2E}}
}

// ParseSLO reads objectives such as "ttft:200ms,tpot:50ms,e2e:5s": names out of
// ttft, tpot, itl and e2e (also e2el, vLLM's name for it), each once, with a
// duration above zero. The unit is required, because the tools that leave it
// out disagree on it: vLLM means milliseconds, inference-perf seconds.
func ParseSLO(s string) (SLO, error) {
	var out SLO
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	if len(parts) == 0 {
		return out, errors.New("an SLO names at least one objective, such as ttft:200ms")
	}
	for i, part := range parts {
		if err := out.Set(part); err != nil {
			return SLO{}, fmt.Errorf("objective %d of the SLO: %w", i+1, err)
		}
	}
	return out, nil
}

// Set adds one objective, written as name:duration as for [ParseSLO]. It refuses a
// metric that has an objective already.
func (s *SLO) Set(part string) error {
	name, value, ok := strings.Cut(part, ":")
	if !ok {
		return errors.New("write it as name:duration, such as ttft:200ms")
	}
	if name == "e2el" {
		name = "e2e"
	}
	for _, o := range s.objectives() {
		if o.name != name {
			continue
		}
		d, err := quantity.Latency(value)
		switch {
		case err != nil:
			return errors.New("write the duration with its unit, such as 200ms or 5s")
		case d <= 0:
			return errors.New("the duration must be above zero")
		case *o.limit != nil:
			return errors.New("this metric has an objective already")
		}
		*o.limit = &d
		return nil
	}
	return errors.New("the metric is not one of ttft, tpot, itl, e2e")
}

// String writes the objectives as [ParseSLO] reads them; empty without any.
func (s SLO) String() string {
	var parts []string
	for _, o := range s.objectives() {
		if *o.limit != nil {
			parts = append(parts, o.name+":"+(*o.limit).String())
		}
	}
	return strings.Join(parts, ",")
}

// Empty tells whether there is no objective.
func (s SLO) Empty() bool { return s == SLO{} }

func (s SLO) check() error {
	for _, o := range s.objectives() {
		if *o.limit != nil && **o.limit <= 0 {
			return fmt.Errorf("report: the objective for %s must be above zero", o.name)
		}
	}
	return nil
}
