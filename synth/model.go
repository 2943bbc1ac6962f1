package synth

import (
	"slices"

	"reprise/trace"
	"reprise/trace/arrival"
)

// A Model is what [Fit] keeps of a trace: a place for each request in their
// order, without ids, dates or text, and the arrivals. It is immutable and
// safe for concurrent use.
//
// It is not differentially private. With k-anonymous swapping, see
// [FitOptions], each request's size and output and the gaps between requests are exchanged with those of at
// least k alike, and bursts move; every part still is one that occurred, but for a few tokens.
type Model struct {
	meta      trace.Meta // of the trace; Digest is that of the model
	kSwap     int
	span      int64 // ns that the arrivals take
	places    []place
	templates []template
	labels    []label
	ends      []end
	arrivals  *arrival.Cascade
	// By place, ns since the arrival before it, blurred. A workload of one user that
	// is as long as the trace arrives by them, any other by the cascade; copies of a sample are in their order.
	gaps    []int64
	sampled *sampledTrees // nil for a model of a whole trace
	sourced bool          // the places join the source's own sessions
	swapped swapFigures

	cells *cellModel // in place of places and arrivals, nil for a model of places
}

// DefaultKSwap is the number of requests among which swapping mixes.
const DefaultKSwap = 10

// finish derives what the places tell.
func (m *Model) finish() {
	m.sourced = slices.ContainsFunc(m.places, func(p place) bool { return p.join != joinless })
}

// progressRows is how often the long loops look up from their work.
const progressRows = 4096

// Requests is how many requests the model was fitted to.
func (m *Model) Requests() int {
	if m.cells != nil {
		return int(m.cells.requests)
	}
	return len(m.places)
}

// Meta describes the trace that the model was fitted to, with the digest of the
// model in place of the trace's.
func (m *Model) Meta() trace.Meta { return m.meta }

// KSwap is the k of the swapping, 1 for none.
func (m *Model) KSwap() int { return m.kSwap }

// FewRequests is how many requests a fit to a trace wants at least. Fewer are swapped
// among requests less alike, and keep the course of the rate in fewer parts.
const FewRequests = 2000

// few tells whether a model was fitted to fewer requests than FewRequests, which one of histograms
// never is.
func (m *Model) few() bool { return m.cells == nil && len(m.places) < FewRequests }
