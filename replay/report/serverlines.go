package report

import (
	"math"

	"reprise/replay/result"
	"reprise/trace/page"
)

// serverLines follow the metrics that have a role over time, each series in at
// most maxSlots bins, which are 24 kB. A bin is as wide as a scrape interval at least, so that
// each has a value.
type serverLines struct {
	from, to int64                    // the measured part
	first    int64                    // width of a bin to begin with
	of       map[string][]*serverLine // by role, in the order in which they came
	known    map[lineKey]*serverLine
}

type lineKey struct{ role, target, metric, labels string }

// A serverLine is one series: a gauge's values, or the rates of a counter
// between one sample and the next.
type serverLine struct {
	width int64
	bins  []lineBin

	last   float64 // of a counter
	lastAt int64
	begun  bool

	sum  float64 // of a gauge, in the measured part
	n    int64
	most float64
}

type lineBin struct{ num, den, most float64 }

func newServerLines(run *result.Run, from, to int64) *serverLines {
	l := &serverLines{from: from, to: to, first: 1e9, of: map[string][]*serverLine{}, known: map[lineKey]*serverLine{}}
	switch s := run.Server; {
	case s != nil && s.EveryNS > 0:
		l.first = s.EveryNS
	case s != nil && s.Prometheus != nil:
		l.first = int64(s.Prometheus.Step)
	}
	l.first = max(l.first, firstSlot)
	return l
}

// Add takes a sample. Those of a series come in order of time.
func (l *serverLines) add(m *result.Metric) {
	if secondary(m.Labels) || math.IsNaN(m.Value) || math.IsInf(m.Value, 0) || m.AtNS > MaxInstant {
		return
	}
	for _, name := range rolesOf(m.Name) {
		r := roles[name]
		if r.busy && m.Value == 0 {
			continue
		}
		key := lineKey{name, m.Target, m.Name, m.Labels}
		line := l.known[key]
		if line == nil {
			line = &serverLine{width: l.first}
			l.known[key] = line
			l.of[name] = append(l.of[name], line)
		}
		value := m.Value
		if r.scale != 0 {
			value *= r.scale
		}
		if m.Kind == result.Counter {
			line.count(m.AtNS, value)
		} else {
			line.level(m.AtNS, value, m.AtNS >= l.from && m.AtNS <= l.to)
		}
	}
}

func (s *serverLine) level(at int64, value float64, measured bool) {
	if measured {
		if s.n == 0 || value > s.most {
			s.most = value
		}
		s.sum, s.n = s.sum+value, s.n+1
	}
	if at >= 0 {
		s.put(at, value, 1, value)
	}
}

// count puts the growth since the last sample where this one is.
func (s *serverLine) count(at int64, value float64) {
	grown, took := value-s.last, at-s.lastAt
	if value < s.last { // its server started anew
		grown = value
	}
	if s.begun && at >= 0 && took > 0 {
		s.put(at, grown, float64(took)/1e9, grown*1e9/float64(took))
	}
	s.last, s.lastAt, s.begun = value, at, true
}

func (s *serverLine) put(at int64, num, den, most float64) {
	for at/s.width >= maxSlots {
		s.fold()
	}
	for int64(len(s.bins)) <= at/s.width {
		s.bins = append(s.bins, lineBin{})
	}
	s.bins[at/s.width].join(lineBin{num, den, most})
}

func (b *lineBin) join(o lineBin) {
	if o.den == 0 {
		return
	}
	if b.den == 0 || o.most > b.most {
		b.most = o.most
	}
	b.num, b.den = b.num+o.num, b.den+o.den
}

func (s *serverLine) fold() {
	s.bins = halve(s.bins, (*lineBin).join)
	s.width *= 2
}

// level sums a gauge up over the measured part: the mean of the series' means, or
// their sum; and the largest of any bin, all series at once, since their peaks
// need not fall together.
func (l *serverLines) level(name string) *Level {
	r, out := roles[name], &Level{Max: math.Inf(-1)}
	known := 0
	for _, s := range l.of[name] {
		if s.n == 0 {
			continue
		}
		known++
		out.Mean += s.sum / float64(s.n)
	}
	if known == 0 {
		return nil
	}
	if r.fold == foldMean {
		out.Mean /= float64(known)
	}
	if known == 1 {
		for _, s := range l.of[name] {
			if s.n > 0 {
				out.Max = s.most
			}
		}
	} else {
		width, tops := l.join(name, func(b lineBin) float64 { return b.most })
		for i, top := range tops {
			if begin := int64(i) * width; !math.IsNaN(top) && begin+width > l.from && begin <= l.to {
				out.Max = max(out.Max, top)
			}
		}
	}
	out.Mean, out.Max = *Rounded(out.Mean, 1e9), *Rounded(max(out.Max, out.Mean), 1e9)
	return out
}

// join folds the series of a role into one value for each bin, NaN where no
// series had begun. A series keeps its last value where a bin has none.
func (l *serverLines) join(name string, of func(lineBin) float64) (width int64, out []float64) {
	lines := l.of[name]
	for _, s := range lines {
		width = max(width, s.width)
	}
	n := 0
	for _, s := range lines {
		for s.width < width {
			s.fold()
		}
		n = max(n, len(s.bins))
	}
	sums, known := make([]float64, n), make([]float64, n)
	for _, s := range lines {
		last, begun := 0.0, false
		for i := range n {
			if i < len(s.bins) && s.bins[i].den > 0 {
				last, begun = of(s.bins[i]), true
			}
			if begun {
				sums[i] += last
				known[i]++
			}
		}
	}
	for i := range sums {
		switch {
		case known[i] == 0:
			sums[i] = math.NaN()
		case roles[name].fold == foldMean:
			sums[i] /= known[i]
		}
	}
	return width, sums
}

// series draws a role over time, each value in the middle of its bin.
func (l *serverLines) series(name, label string) page.Series {
	s := page.Series{Name: label}
	width, values := l.join(name, func(b lineBin) float64 { return b.num / b.den })
	for i, v := range values {
		if !math.IsNaN(v) {
			s.X = append(s.X, (float64(i)+0.5)*float64(width)/1e9)
			s.Y = append(s.Y, v)
		}
	}
	return s
}

// draw fills in what the page draws of the servers.
func (l *serverLines) draw(p *Series) {
	p.Running, p.Waiting = l.series("running", "running"), l.series("waiting", "waiting")
	p.KVUse = l.series("kv", "KV cache in use")
	p.ServerHits = l.ratio("hits", "queries", "hit ratio, server")
	p.Generated, p.Prefilled = l.series("generate", "generated"), l.series("prompt", "prompt")
	p.Preempted = l.series("preempt", "preemptions")
	p.GPUUse, p.GPUPower = l.series("gpu", "utilisation"), l.series("power", "power")
}

// ratio divides one rate by another, bin by bin, where there is something to
// divide by.
func (l *serverLines) ratio(over, under, label string) page.Series {
	s := page.Series{Name: label}
	a, b := l.series(over, ""), l.series(under, "")
	at := map[float64]float64{}
	for i, x := range b.X {
		at[x] = b.Y[i]
	}
	for i, x := range a.X {
		if d := at[x]; d > 0 {
			s.X, s.Y = append(s.X, x), append(s.Y, min(a.Y[i]/d, 1))
		}
	}
	return s
}
