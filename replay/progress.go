package replay

import (
	"maps"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"reprise/replay/host"
	"reprise/replay/result"
)

// Progress says how far a run is, and how its requests have fared so far. Requests are
// counted and timed when they are over.
type Progress struct {
	Elapsed time.Duration // since the start of the run
	Done    int64         // requests that are over
	Failed  int64         // of them, those with an error other than a planned cancellation
	// rows read so far that are not sent: failed in the source, after a turn that failed, or due after the duration
	LeftOut  int64
	InFlight int

	Sent   int64 // requests that were sent
	Due    int64 // requests that were due: those sent, and those prepared and late
	Tokens int64 // output tokens

	Errors   map[string]int64 // failed requests by class
	Refused  int64            // of them, HTTP 429 and 503
	Interval Quantiles        // since the last report
	Total    Quantiles
	CPU      float64       // mean cores used since the last report
	CPUTotal float64       // and since the start of this process's part of the run
	Stalled  time.Duration // in which the client stood still
}

// Quantiles are of the TTFT, from when a request was sent, and the chunk ITL of successful
// requests, and of the send lag of all requests.
type Quantiles struct{ TTFT, ITL, Lag Distribution }

// A Distribution describes values, to within 1 %. It is zero when there are none.
type Distribution struct {
	Count         int64
	P50, P99, Max time.Duration
}

// A latencyMeter feeds the histograms of one latency: of an interval, and of all. Values
// are microseconds, up to a day, to two digits.
type latencyMeter struct{ interval, total *hdr.Histogram }

const meterMost = int64(24 * time.Hour / time.Microsecond)

func newLatencyMeter() latencyMeter { return latencyMeter{newHistogram(), newHistogram()} }

func newHistogram() *hdr.Histogram { return hdr.New(1, meterMost, 2) }

func (m *latencyMeter) add(ns int64) {
	// Within the bounds there is no error.
	_ = m.interval.RecordValue(min(max(ns/1000, 0), meterMost))
}

// endInterval adds the interval to the total. The caller resets it.
func (m *latencyMeter) endInterval() (interval, total Distribution) {
	m.total.Merge(m.interval)
	return distribution(m.interval), distribution(m.total)
}

func distribution(h *hdr.Histogram) Distribution {
	if h.TotalCount() == 0 {
		return Distribution{}
	}
	at := func(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
	return Distribution{h.TotalCount(), at(h.ValueAtQuantile(50)), at(h.ValueAtQuantile(99)), at(h.Max())}
}

// meters are fed by the collector, which is one goroutine and not that which sends.
// Reports are made from them each second.
type meters struct {
	ttft, itl, lag latencyMeter
	tokens         int64
	errors         map[string]int64
	refused        int64

	begun, last  time.Time
	cpu, lastCPU time.Duration
}

func newMeters() *meters {
	now, cpu := time.Now(), host.CPUTime()
	return &meters{ttft: newLatencyMeter(), itl: newLatencyMeter(), lag: newLatencyMeter(), errors: map[string]int64{},
		begun: now, last: now, cpu: cpu, lastCPU: cpu}
}

// add takes a result. A nil meters takes none.
func (m *meters) add(r *result.Result) {
	if m == nil {
		return
	}
	if r.Failed() {
		m.errors[r.Error]++
		if s := r.HTTPStatus; s != nil && (*s == 429 || *s == 503) {
			m.refused++
		}
	}
	if r.SentNS == nil {
		return
	}
	m.lag.add(*r.SentNS - r.DueNS)
	if r.Error != "" {
		return
	}
	if r.FirstTokenNS != nil {
		m.ttft.add(*r.FirstTokenNS - *r.SentNS)
	}
	for _, gap := range r.Gaps {
		m.itl.add(gap)
	}
	if r.Output != nil {
		m.tokens += int64(*r.Output)
	}
}

// report fills in what is measured, ends the interval and begins the next.
func (m *meters) report(p *Progress) {
	p.Interval.TTFT, p.Total.TTFT = m.ttft.endInterval()
	p.Interval.ITL, p.Total.ITL = m.itl.endInterval()
	p.Interval.Lag, p.Total.Lag = m.lag.endInterval()
	p.Tokens, p.Refused = m.tokens, m.refused
	p.Errors = make(map[string]int64, len(m.errors))
	maps.Copy(p.Errors, m.errors)
	now, cpu := time.Now(), host.CPUTime()
	p.CPU, p.CPUTotal = perWall(cpu-m.lastCPU, now.Sub(m.last)), perWall(cpu-m.cpu, now.Sub(m.begun))
	m.last, m.lastCPU = now, cpu
	for _, h := range []*hdr.Histogram{m.ttft.interval, m.itl.interval, m.lag.interval} {
		h.Reset()
	}
}

func perWall(cpu, wall time.Duration) float64 {
	if wall <= 0 {
		return 0
	}
	return float64(cpu) / float64(wall)
}
