package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

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

	cells *cellModel  // in place of tuples and clients, nil for a model of tuples
	parts []drawnPart // by population: its tuples, once they are drawn from cells
}

// A client is a source of requests with arrivals of its own: one user with many
// requests, or all others together.
type client struct {
	user     int64 // none for all others
	arrivals *arrival.Cascade
}

// DefaultKSwap is the number of requests among which swapping mixes.
const DefaultKSwap = 10

// FitOptions are the settings of [Fit].
type FitOptions struct {
	// KSwap is how many requests at least are mixed with each other; 1 keeps
	// every tuple as it is, and 0 means [DefaultKSwap].
	KSwap int
	// Entropy drives the swapping. Nil means crypto/rand; only tests set it,
	// since whoever can repeat the swapping can undo it.
	Entropy io.Reader
	// Progress, when not nil, is called with the number of rows read, now and
	// then.
	Progress func(rows int64)
}

// Fit makes a model of the trace that meta describes. Rows that failed are left
// out. A trace with a block behind two different prefixes cannot be fitted, nor
// can one without requests; errors name the row, counted from 0.
//
// Memory is about 200 bytes for each request and 24 for each distinct block.
func Fit(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta, opts FitOptions) (*Model, error) {
	if opts.KSwap < 0 {
		return nil, errors.New("k of the swapping cannot be negative")
	}
	if opts.KSwap == 0 {
		opts.KSwap = DefaultKSwap
	}
	e := extractor{size: meta.BlockSize}
	err := trace.Each(src, func(row int64, r *trace.Request) error {
		if row%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if opts.Progress != nil {
				opts.Progress(row)
			}
		}
		return e.add(row, r)
	})
	if err != nil {
		return nil, err
	}
	if len(e.tuples) < 2 {
		return nil, errors.New("the trace has fewer than two requests that are load: there is no traffic to fit")
	}
	if len(e.labels.values) > math.MaxUint16 {
		return nil, errTooManyLabels
	}
	if meta.Sessions == sessionsInferred {
		e.forgetSessions()
	}
	e.finish()
	m := &Model{meta: meta, kSwap: opts.KSwap, tuples: e.tuples, labels: e.labels.values, ends: e.ends.values}
	if err := m.fitArrivals(e.times); err != nil {
		return nil, err
	}
	if m.kSwap > 1 {
		if err := m.swap(opts.Entropy); err != nil {
			return nil, err
		}
	}
	m.renumber()
	m.finish()
	m.meta.Seed, m.meta.Breakers = "", ""
	m.meta.Capture = trace.Capture{} // arrivals are drawn: what is generated was never captured
	m.meta.Digest = m.digest()
	return m, nil
}

// renumber gives labels and ends the order in which the tuples name them, which
// is the order that a file gives them.
func (m *Model) renumber() {
	var labels numbering[label]
	var ends numbering[end]
	for i := range m.tuples {
		t := &m.tuples[i]
		t.label, t.end = labels.of(m.labels[t.label]), ends.of(m.ends[t.end])
	}
	m.labels, m.ends = labels.values, ends.values
}

// finish derives what the tuples tell.
func (m *Model) finish() {
	m.sourced = m.cells != nil && m.cells.sessions || joined(m.tuples)
}

// progressRows is how often the long loops look up from their work.
const progressRows = 4096

// Requests is how many requests the model was fitted to, for a public model by a
// noisy count.
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

// Rules for clients of their own. A cascade of fewer arrivals would keep little
// but the places of its coarse bins, and superposing many clients is smooth in
// any case.
const (
	clientRequests = 1000
	maxClients     = 64
)

// fitArrivals fits a cascade to the arrivals of each of the users with the most
// requests, at most maxClients with clientRequests each, and one to all others.
func (m *Model) fitArrivals(times []int64) error {
	first, last := times[0], times[len(times)-1]
	if first < 0 || last-first < 0 || last-first > math.MaxInt64/2 {
		return errors.New("the trace's times are not between 0 and 2^62 nanoseconds")
	}
	// The process ends a mean gap behind its last arrival, and a cascade wants
	// a microsecond at least.
	m.span = max(last-first+(last-first)/int64(max(len(times)-1, 1))+1, 1000)
	own := m.ownClients()
	var rest []int64
	by := make([][]int64, len(own))
	place := map[int64]int{}
	for i, u := range own {
		place[u] = i
	}
	for i := range m.tuples {
		at := times[i] - first
		if c, ok := place[m.tuples[i].user]; ok {
			by[c] = append(by[c], at)
		} else {
			rest = append(rest, at)
		}
	}
	if n := len(by); len(rest) == 1 && n > 0 {
		// One arrival is no process: it joins the least busy of the clients.
		i, _ := slices.BinarySearch(by[n-1], rest[0])
		by[n-1], own[n-1] = slices.Insert(by[n-1], i, rest[0]), none
	} else if len(rest) > 0 {
		by, own = append(by, rest), append(own, none)
	}
	for i, times := range by {
		c, err := arrival.FitCascade(times, m.span)
		if err != nil {
			return fmt.Errorf("arrivals: %w", err)
		}
		m.clients = append(m.clients, client{own[i], c})
	}
	return nil
}

// ownClients lists the users that are clients of their own, the busiest first.
func (m *Model) ownClients() []int64 {
	var counts []int
	for i := range m.tuples {
		if u := m.tuples[i].user; u != none {
			for int(u) >= len(counts) {
				counts = append(counts, 0)
			}
			counts[u]++
		}
	}
	var own []int64
	for u, n := range counts {
		if n >= clientRequests {
			own = append(own, int64(u))
		}
	}
	slices.SortStableFunc(own, func(a, b int64) int { return cmp.Compare(counts[b], counts[a]) })
	return own[:min(len(own), maxClients)]
}

// clientOf tells which of the clients each tuple is of.
func (m *Model) clientOf() func(t *tuple) int {
	place := map[int64]int{}
	rest := 0
	for i, c := range m.clients {
		if c.user == none {
			rest = i
		} else {
			place[c.user] = i
		}
	}
	return func(t *tuple) int {
		if c, ok := place[t.user]; ok {
			return c
		}
		return rest
	}
}

const nsPerMS = 1_000_000

// GeneratedSource begins [trace.Meta].SourceFormat of what was generated.
const GeneratedSource = "synth of "

// FewRequests is how many requests a fit to a trace wants at least. Fewer are not one
// window of the swapping, so that it mixes all of the time; and a cascade keeps the
// course of the rate in 32 parts from 2,048 on, in half as many from half of them, and
// so on.
const FewRequests = swapWindow

// Few says what is lost when a model was fitted to fewer requests than FewRequests.
// It is empty for other models, and for those of histograms and public ones.
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

// describe says in one line where a workload comes from: with 12 digits of the
// model's digest, what was asked for beside the seed, and of how many requests the
// model is if they are few.
func (m *Model) describe(o Options) string {
	s := GeneratedSource + cmp.Or(m.meta.SourceFormat, "a trace") + ", model " + strings.TrimPrefix(m.meta.Digest, "sha256:")[:12]
	if m.cells == nil {
		s += ", k_swap " + strconv.Itoa(m.kSwap)
	}
	if m.Few() != "" {
		s += fmt.Sprintf(", fitted to %d requests (few: below %d)", len(m.tuples), FewRequests)
	}
	if o.Users > 1 {
		s += ", users " + strconv.Itoa(o.Users)
	}
	if o.Speed != 1 {
		s += ", speed " + strconv.FormatFloat(o.Speed, 'g', -1, 64)
	}
	return s
}
