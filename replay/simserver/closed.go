package simserver

import "slices"

// ClosedLoop is a load of a fixed number of requests at once: each that ends is
// followed by the next, all of one size and with nothing in common.
type ClosedLoop struct {
	Concurrency, Requests int
	Prompt, Output        int // tokens of each
}

// ClosedResult is what a [ClosedLoop] measured, over all of its requests.
type ClosedResult struct {
	OutputPerS       float64 // output tokens per second, first arrival to last token
	TTFTP50, TTFTP99 float64 // ms
	ITLP50           float64 // ms, of gaps pooled over requests; 0 without any
	E2EP50           float64 // ms
}

// Run plays the load to a new engine in virtual time.
func (l ClosedLoop) Run(c EngineConfig) (ClosedResult, error) {
	e, err := NewEngine(c)
	if err != nil {
		return ClosedResult{}, err
	}
	m := &meter{last: map[*Job]Picos{}, began: map[*Job]Picos{}}
	sent := 0
	send := func(at Picos) error {
		j := &Job{ID: int64(sent), Prompt: l.Prompt, Output: l.Output}
		sent++
		m.began[j] = at
		return e.Add(j, at)
	}
	for range min(l.Concurrency, l.Requests) {
		if err := send(0); err != nil {
			return ClosedResult{}, err
		}
	}
	for now, over := Picos(0), 0; now < Never; {
		now, _ = e.Step(now, Never, m)
		for ; over < len(m.over); over++ {
			if sent < l.Requests {
				if err := send(m.over[over]); err != nil {
					return ClosedResult{}, err
				}
			}
		}
	}
	return m.result(e.Now(), int64(sent)*int64(l.Output)), nil
}

// A meter keeps the latencies of jobs.
type meter struct {
	began, last     map[*Job]Picos
	ttft, gaps, e2e []Picos
	over            []Picos
}

// Tokens implements [Sink].
func (m *meter) Tokens(j *Job, at []Picos) {
	for _, t := range at {
		if last, ok := m.last[j]; ok {
			m.gaps = append(m.gaps, t-last)
		} else {
			m.ttft = append(m.ttft, t-m.began[j])
		}
		m.last[j] = t
	}
}

// Finished implements [Sink].
func (m *meter) Finished(j *Job, at Picos) {
	m.over = append(m.over, at)
	m.e2e = append(m.e2e, at-m.began[j])
	delete(m.last, j)
	delete(m.began, j)
}

func (m *meter) result(end Picos, tokens int64) ClosedResult {
	for _, list := range [][]Picos{m.ttft, m.gaps, m.e2e} {
		slices.Sort(list)
	}
	ms := func(list []Picos, p float64) float64 {
		if len(list) == 0 {
			return 0
		}
		return quantile(list, p) / 1e9
	}
	return ClosedResult{OutputPerS: float64(tokens) / (float64(max(end, 1)) / 1e12),
		TTFTP50: ms(m.ttft, 0.5), TTFTP99: ms(m.ttft, 0.99), ITLP50: ms(m.gaps, 0.5), E2EP50: ms(m.e2e, 0.5)}
}
