package synth

import (
	"encoding/json"
	"errors"
)

// swapFigures says what swapping did to a trace, by figures of the whole.
type swapFigures struct {
	// share of the trace's blocks that hit without limit, or of those of the sample of its trees
	TraceHits float64 `json:"trace_hits"`
}

func (s *swapFigures) text() string {
	b, _ := json.Marshal(s) // of numbers alone: there is no error
	return string(b)
}

func parseSwapped(text string) (s swapFigures, err error) {
	if json.Unmarshal([]byte(text), &s) != nil {
		return s, errors.New("its metadata " + keySwapped + " do not describe a swap")
	}
	return s, nil
}

// StatedHits is the share of the blocks of the trace that a cache without limit hits, where the model
// states it. A workload that is as long as the trace is to have it too.
func (m *Model) StatedHits() (hits float64, stated bool) {
	hits = m.swapped.TraceHits
	if hits == 0 || m.meta.BlockSize == 0 {
		return 0, false
	}
	if m.sampled != nil {
		hits -= m.sampled.Hits
	}
	return hits, true
}
