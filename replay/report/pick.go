package report

import (
	"cmp"
	"slices"

	"reprise/trace/page"
	"reprise/trace/sample"
)

// A pick is one request of a [picks].
type pick struct {
	hash      uint64
	due, sent int64
	ttft, e2e Span
}

func (p *pick) lag() int64 { return p.sent - p.due }

// picks is a uniform sample of at most maxPicks requests: those whose row
// numbers have the smallest hashes. A reservoir over a random stream was
// rejected: it would depend on the order of the results.
type picks struct {
	held []pick
	full bool   // held has been cut, so the bound below is valid
	top  uint64 // largest hash among the kept
}

const maxPicks = 2000

func (p *picks) add(row int64, q pick) {
	q.hash = sample.Mix64(uint64(row) + sample.Golden)
	if p.full && q.hash > p.top {
		return
	}
	p.held = append(p.held, q)
	if len(p.held) == 2*maxPicks {
		p.cut()
	}
}

// cut keeps the smallest hashes. Results of one row tie, and are distinguished by
// their instants.
func (p *picks) cut() {
	slices.SortFunc(p.held, func(a, b pick) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.due, b.due),
			cmp.Compare(a.sent, b.sent), cmp.Compare(a.ttft.NS, b.ttft.NS), cmp.Compare(a.e2e.NS, b.e2e.NS))
	})
	if len(p.held) > maxPicks {
		p.held = p.held[:maxPicks]
		p.full, p.top = true, p.held[maxPicks-1].hash
	}
}

// finish cuts the sample and puts it in order of due time.
func (p *picks) finish() {
	p.cut()
	slices.SortStableFunc(p.held, func(a, b pick) int { return cmp.Compare(a.due, b.due) })
}

// minDrift is how many requests a drift needs: ten in each quarter.
const minDrift = 40

// drift is the median lag of the last quarter of the sample, by due time,
// minus that of the first. A slope by least squares was rejected: one stall
// near the end would tilt it.
func (p *picks) drift() Span {
	quarter := len(p.held) / 4
	if len(p.held) < minDrift {
		return Span{}
	}
	median := func(part []pick) int64 {
		lags := make([]int64, len(part))
		for i := range part {
			lags[i] = part[i].lag()
		}
		slices.Sort(lags)
		q := sample.Sorted(lags)
		return q.At(1, 2)
	}
	return Span{median(p.held[len(p.held)-quarter:]) - median(p.held[:quarter]), true}
}

// points draws a duration of the sampled requests, in milliseconds, over an
// instant, in seconds.
func (p *picks) points(name string, at func(pick) int64, of func(pick) Span) page.Series {
	s := page.Series{Name: name}
	for _, q := range p.held {
		if d := of(q); d.OK {
			s.X = append(s.X, float64(at(q))/1e9)
			s.Y = append(s.Y, float64(d.NS)/1e6)
		}
	}
	return s
}
