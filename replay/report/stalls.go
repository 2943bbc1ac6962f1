package report

import (
	"errors"
	"slices"
	"sort"
	"time"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// Values of [Options].Instants.
const (
	InstantsRead = "read" // when the client read an event
	// InstantsKernel is when the kernel received its last segment. Events that came with
	// others in one read, after a stall of the client or more than 2 ms late, have
	// no certain instant: latencies that need it are left out, and counted.
	InstantsKernel = "kernel"
)

// errNoStamps says that there is nothing to take the kernel's instants from.
var errNoStamps = errors.New("report: the results have no receive timestamps of the kernel: Linux gives them over " +
	"HTTP/1.1 without TLS or a proxy, to runs of this version or a later one")

// heldUpBy are the checks of how late the client read: the latencies that each is about, and its limit in --trust.
var heldUpBy = map[string]struct {
	of  []*figure.Subject
	key string
}{
	codeStalledTTFT: {[]*figure.Subject{figure.TTFT, figure.TPOT}, "max-stall-ttft"},
	codeStalledGap:  {[]*figure.Subject{figure.ITL, figure.TokenITL, figure.TPOT}, "max-stall-gap"},
	codeLateFirst:   {[]*figure.Subject{figure.TTFT, figure.TPOT}, "max-stall-ttft"},
	codeLateLast:    {[]*figure.Subject{figure.E2E, figure.TPOT}, "max-stall-ttft"},
}

// Doubts are the latencies that may be off for this reason, and its limit in --trust. None is every figure of the run:
// the load was not the one asked for, or the answers were not. Of a late reader TTFT and E2E can only be too long,
// since each ends with one read.
func (r *Reason) Doubts() (of []*figure.Subject, key string) {
	return heldUpBy[r.Code].of, heldUpBy[r.Code].key
}

// lateRead is how much later than the kernel's timestamp a read may be. What is above is
// the client's doing. Waking a goroutine takes some 0.1 ms.
const lateRead = 2 * time.Millisecond

// A stallMeter holds requests against the delays of the client: its stalls, which are in
// order and apart, and the time from the kernel's receive timestamps to its reads.
type stallMeter struct {
	watched bool // stalls were recorded
	kernel  bool // the kernel's instants are asked for
	stalls  []result.Stall
	before  []int64 // ns stalled before each
	met     []int32 // requests that were due or in flight from the stall of the same index on, less those until then

	ttft, covered float64 // ns, of all requests
	touched       int64   // requests
	gaps          int64
	shares        [shareSteps + 1]int64 // gaps by the part that stalls cover, rounded up

	events, inStall int64         // token events; those of them that stalls may have delayed
	delays          sample.Values // ns from the kernel's timestamp to the read
	late, lateEnd   sample.Values // ns by which first and last token events were read late
	uncertain       int64         // token events
	uncertainFirst  int64         // first ones of a request
	widest          int64         // ns within which an uncertain event came
}

// shareSteps is how finely the covered part of a gap is told.
const shareSteps = 1000

func newStallMeter(s *result.Stalls, opts *Options) *stallMeter {
	m := &stallMeter{watched: s != nil, kernel: opts.Instants == InstantsKernel}
	m.delays.Limit, m.late.Limit, m.lateEnd.Limit = opts.Exact, opts.Exact, opts.Exact
	if s == nil {
		return m
	}
	m.stalls, m.before, m.met = s.Intervals, make([]int64, len(s.Intervals)), make([]int32, len(s.Intervals)+1)
	for i, x := range s.Intervals[:max(len(s.Intervals)-1, 0)] {
		m.before[i+1] = m.before[i] + x.ToNS - x.FromNS
	}
	return m
}

// until is how long the client stood still before an instant.
func (m *stallMeter) until(at int64) int64 {
	i := sort.Search(len(m.stalls), func(i int) bool { return m.stalls[i].FromNS >= at }) - 1
	if i < 0 {
		return 0
	}
	return m.before[i] + min(at, m.stalls[i].ToNS) - m.stalls[i].FromNS
}

// within is how long the client stood still between two instants.
func (m *stallMeter) within(from, to int64) int64 { return m.until(to) - m.until(from) }

// meet takes the time of a request that was due, until its end or that of the run.
func (m *stallMeter) meet(r *result.Result) {
	if len(m.stalls) == 0 {
		return
	}
	done := int64(MaxInstant)
	if r.DoneNS != nil {
		done = *r.DoneNS
	}
	from := sort.Search(len(m.stalls), func(i int) bool { return m.stalls[i].ToNS > r.DueNS })
	to := sort.Search(len(m.stalls), func(i int) bool { return m.stalls[i].FromNS >= done })
	if from < to {
		m.met[from]++
		m.met[to]--
	}
}

// kernelInstants returns r with the instants at which the kernel received its token
// events, where that is known, in their order. It leaves r as it is.
func (m *stallMeter) kernelInstants(r *result.Result) *result.Result {
	if r.FirstTokenNS == nil || r.Events == 0 || len(r.ReadDelaysUS) != int(r.Events) {
		return r
	}
	out := *r
	out.Uncertain = m.marked(r, nil)
	out.GapsNS = make([]int64, len(r.GapsNS))
	read, before := *r.FirstTokenNS, *r.SentNS
	for i := range r.ReadDelaysUS {
		if i > 0 {
			read += r.GapsNS[i-1]
		}
		delay, _ := r.ReadDelay(i)
		at := max(read-delay, before)
		if i == 0 {
			out.FirstTokenNS = &at
		} else {
			out.GapsNS[i-1] = at - before
		}
		if r.FirstContentNS != nil && *r.FirstContentNS == read && out.FirstContentNS == r.FirstContentNS {
			out.FirstContentNS = trace.Ptr(at)
		}
		before = at
	}
	out.LastTokenNS = &before
	return &out
}

// marked tells which token events have no certain instant, nil that all have; found, where
// it is not nil, has for each of them the time within which it came.
//
// The timestamp of a read is that of the last segment. An event with more behind it in
// the same read may have come sooner, after the read before: that is so where the client
// was late, by its heartbeat or by the timestamp. Where the client stood still as it sent,
// the request may have left later than it says: its ends are not certain.
func (m *stallMeter) marked(r *result.Result, found func(event int, ns int64)) (marks []bool) {
	read, before := *r.FirstTokenNS, *r.SentNS
	if r.FirstEventNS != nil {
		before = max(before, min(*r.FirstEventNS, read))
		if before == read { // of the same read
			before = *r.SentNS
		}
	}
	mark := func(event int, ns int64) {
		if marks == nil {
			marks = make([]bool, r.Events)
		}
		if !marks[event] && found != nil {
			found(event, ns)
		}
		marks[event] = true
	}
	if late := m.within(*r.SentNS, *r.SentNS+int64(lateRead)); late > 0 {
		mark(0, late)
		mark(int(r.Events)-1, late)
	}
	for i := range r.ReadDelaysUS {
		if i > 0 && r.GapsNS[i-1] > 0 {
			before, read = read, read+r.GapsNS[i-1]
		}
		delay, last := r.ReadDelay(i)
		if last || delay <= int64(lateRead) && m.within(before, read) == 0 {
			continue
		}
		mark(i, max(read-delay-before, 0))
	}
	return marks
}

// add takes a successful request, with the instants of its reads.
func (m *stallMeter) add(r *result.Result) {
	first := r.FirstTokenNS
	if r.API == result.APIEmbeddings {
		first = r.DoneNS
	}
	if first == nil {
		return
	}
	stamped := r.FirstTokenNS != nil && r.Events > 0 && len(r.ReadDelaysUS) == int(r.Events)
	var marks []bool
	if stamped {
		for i := range r.ReadDelaysUS {
			delay, _ := r.ReadDelay(i)
			m.delays.Add(delay)
		}
		marks = m.marked(r, func(event int, ns int64) {
			m.uncertain++
			m.widest = max(m.widest, ns)
			if event == 0 {
				m.uncertainFirst++
			}
		})
	}
	uncertain := func(event int) bool { return marks != nil && marks[event] }
	// part is how much of a time that ends with an event is the client's: what stalls cover,
	// or by how much it was read late; of the kernel's instants all or nothing.
	part := func(from, to int64, event int, unknown bool) int64 {
		switch {
		case stamped && m.kernel && unknown:
			return to - from
		case stamped && m.kernel:
			return 0
		case stamped:
			delay, _ := r.ReadDelay(event)
			return min(max(m.within(from, to), delay-int64(lateRead)), to-from)
		}
		return m.within(from, to)
	}
	// note takes how late an event was read. One with more behind it in the same read was
	// there for its delay at least, and for what stalls cover at most.
	note := func(late *sample.Values, event int, covered int64) {
		if !stamped || m.kernel {
			return
		}
		delay, last := r.ReadDelay(event)
		if !last {
			delay = max(delay, covered)
		}
		late.Add(delay)
	}
	m.ttft += float64(*first - *r.SentNS)
	m.events += max(int64(r.Events), 1)
	covered := part(*r.SentNS, *first, 0, uncertain(0))
	if covered > 0 {
		m.covered += float64(covered)
		m.touched++
		m.inStall++
	}
	note(&m.late, 0, covered)
	m.gaps += int64(len(r.GapsNS))
	from := *first
	for i, gap := range r.GapsNS {
		step, unknown := int64(0), uncertain(i) || uncertain(i+1)
		switch {
		case gap > 0:
			covered = part(from, from+gap, i+1, unknown) // else that of the same read
			step = (covered*shareSteps + gap - 1) / gap
		case m.kernel && unknown:
			step = shareSteps
		}
		if covered > 0 {
			m.inStall++
		}
		m.shares[step]++
		from += gap
	}
	note(&m.lateEnd, len(r.GapsNS), covered)
}

// summary is nil where the run was not watched.
func (m *stallMeter) summary() *Stalled {
	if !m.watched {
		return nil
	}
	s := &Stalled{StalledRequests: m.touched}
	if m.ttft > 0 {
		s.TTFTShare = Rounded(m.covered/m.ttft, 1e9)
	}
	if m.events > 0 {
		s.EventShare = Rounded(float64(m.inStall)/float64(m.events), 1e9)
	}
	if m.gaps > 0 {
		step, above := shareSteps, int64(0)
		for ; step > 0 && 100*(above+m.shares[step]) <= m.gaps; step-- {
			above += m.shares[step]
		}
		s.GapP99Share = Rounded(float64(step)/shareSteps, 1e9)
	}
	var durations []int64
	open, longest := int32(0), int64(0)
	for i, x := range m.stalls {
		durations = append(durations, x.ToNS-x.FromNS)
		if open += m.met[i]; open > 0 {
			longest = max(longest, x.ToNS-x.FromNS)
		}
	}
	s.InFlightMax = milliseconds(float64(longest))
	first, _ := StatOf(&m.late)
	last, _ := StatOf(&m.lateEnd)
	s.TTFTLateP99, s.E2ELateP99 = first.P99, last.P99
	if len(durations) > 0 {
		slices.Sort(durations)
		order := sample.Sorted(durations)
		s.P50, s.P99 = milliseconds(float64(order.At(1, 2))), milliseconds(float64(order.At(99, 100)))
		s.Max = milliseconds(float64(durations[len(durations)-1]))
	}
	return s
}

// receipt is nil where the kernel gave no timestamps.
func (m *stallMeter) receipt() *Receipt {
	if m.delays.N == 0 {
		return nil
	}
	out := &Receipt{Instants: InstantsRead, Stamped: Ratio(m.delays.N, m.events), Uncertain: m.uncertain,
		UncertainFirst: m.uncertainFirst}
	if m.kernel {
		out.Instants = InstantsKernel
	}
	out.Delay, _ = StatOf(&m.delays)
	if m.uncertain > 0 {
		out.Widest = milliseconds(float64(m.widest))
	}
	return out
}
