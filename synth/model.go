package synth

import (
	"fmt"

	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/page"
)

// A Model is what [Fit] keeps of a trace: a tuple for each request in their
// order, without ids, times or text, and the arrivals of its clients as
// cascades. It is immutable and safe for concurrent use.
//
// It is not differentially private. With k-anonymous swapping, see
// [FitOptions], a request's lengths are mixed with those of at least k−1 alike;
// every unit of a tuple still is one that occurred.
type Model struct {
	meta    trace.Meta // of the trace; Digest is that of the model
	kSwap   int
	span    int64 // ns that the arrivals take
	tuples  []tuple
	labels  []label
	ends    []end
	clients []client
	sourced bool // the tuples join the source's own sessions

	cells *cellModel // in place of tuples and clients, nil for a model of tuples
}

// A client is a source of requests with arrivals of its own: one user with many
// requests, or all others together.
type client struct {
	user     int64 // none for all others
	arrivals *arrival.Cascade
}

// DefaultKSwap is the number of requests among which swapping mixes.
const DefaultKSwap = 10

// finish derives what the tuples tell.
func (m *Model) finish() {
	m.sourced = m.cells != nil && m.cells.sessions || joined(m.tuples)
}

// progressRows is how often the long loops look up from their work.
const progressRows = 4096

// Requests is how many requests the model was fitted to.
func (m *Model) Requests() int {
	if m.cells != nil {
		return int(m.cells.requests)
	}
	return len(m.tuples)
}

// Meta describes the trace that the model was fitted to, with the digest of the
// model in place of the trace's.
func (m *Model) Meta() trace.Meta { return m.meta }

// KSwap is the k of the swapping, 1 for none.
func (m *Model) KSwap() int { return m.kSwap }

// FewRequests is how many requests a fit to a trace wants at least. Fewer are not one
// window of the swapping, so that it mixes all of the time; and a cascade keeps the
// course of the rate in 32 parts from 2,048 on, in half as many from half of them, and
// so on.
const FewRequests = swapWindow

// Few says what is lost when a model was fitted to fewer requests than FewRequests.
// It is empty for other models, and for those of histograms.
func (m *Model) Few() string {
	n := len(m.tuples)
	if m.cells != nil || n >= FewRequests {
		return ""
	}
	lost := "the course of their rate is coarse"
	if m.kSwap > 1 {
		lost = fmt.Sprintf("swapping among %d alike mixes all of the time, and ", m.kSwap) + lost
	}
	return fmt.Sprintf("the model was fitted to %s requests, and wants %s or more: %s", page.Count(int64(n)), page.Count(FewRequests), lost)
}
