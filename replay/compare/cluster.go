package compare

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// Clusters hold the latencies of an arm's requests by their session, for
// intervals by resampling whole sessions: the turns of a session are not
// independent of each other, and single requests would make intervals too narrow.
// A request without a session is a cluster of its own; sessions that parents join are one. The
// times of the sessions themselves are kept too.
//
// They are bounded however many requests there are. Sessions are put by a hash
// into 2,048 groups, which are the clusters from there on: with few sessions
// nearly each has its own, and with many the groups are still independent of each
// other. Of each group a histogram is kept with bars of at most 0.4 % of their
// value, 8 bytes for each bar that holds something: 38 MB for a million requests
// with twenty gaps each, 80 MB for ten million (BenchmarkClusters), and never more
// than the number of groups times that of the bars, for each latency some 100 MB
// where it lies between a microsecond and ten minutes. Twice as much is held while
// cells are added up.
type Clusters struct {
	spreads [spreads]clustered
	rows    int64 // requests in them
	digest  string
	mixed   bool // rows of more than one workload: sessions do not mean the same
}

// groups is the number of groups of sessions. A power of two.
const (
	groupBits = 11
	groups    = 1 << groupBits
)

// A clustered distribution counts values by bar and group.
type clustered struct {
	cells  []cell
	merged int // of cells, the sorted ones
	count  [groups]int64
	sum    [groups]float64
	starts []start // for each of quantilesDrawn
}

// A start is a cell somewhat below a quantile, and what each group has before it: a
// draw seldom has the quantile so much lower, and need not count up to there.
type start struct {
	cell  int
	below [groups]int64
}

// seek finds the starts, in merged cells.
func (c *clustered) seek() {
	total := int64(0)
	for _, n := range c.count {
		total += n
	}
	var s start
	seen := int64(0)
	for _, q := range quantilesDrawn {
		for s.cell < len(c.cells) && float64(seen+int64(c.cells[s.cell].n)) < (q-0.02)*float64(total) {
			x := c.cells[s.cell]
			seen += int64(x.n)
			s.below[x.key&(groups-1)] += int64(x.n)
			s.cell++
		}
		c.starts = append(c.starts, s)
	}
}

// drawn is how many values a draw has before the start.
func (s *start) drawn(weights *[groups]int64) (n int64) {
	for g, w := range weights {
		n += w * s.below[g]
	}
	return n
}

// A cell is a bar of a group: bar<<groupBits | group.
type cell struct {
	key uint32
	n   uint32
}

func (c *clustered) add(group int, v int64) {
	v = max(v, 0)
	c.count[group]++
	c.sum[group] += float64(v)
	c.cells = append(c.cells, cell{uint32(barOf(v))<<groupBits | uint32(group), 1})
	if len(c.cells) >= 2*c.merged+1<<18 {
		c.merge()
	}
}

// merge sorts the cells and adds up those that are the same.
func (c *clustered) merge() {
	slices.SortFunc(c.cells, func(a, b cell) int { return int(int64(a.key) - int64(b.key)) })
	out := c.cells[:0]
	for _, x := range c.cells {
		if n := len(out); n > 0 && out[n-1].key == x.key {
			out[n-1].n += x.n
			continue
		}
		out = append(out, x)
	}
	c.cells, c.merged = out, len(out)
}

// Bars are exact up to 511 and 256 to each doubling beyond.
func barOf(v int64) int {
	e := max(bits.Len64(uint64(v))-9, 0)
	return e<<8 + int(v>>e)
}

// middleOf is the middle of a bar.
func middleOf(bar int) float64 {
	e := max(bar>>8-1, 0)
	return math.Ldexp(float64(bar-e<<8)+0.5, e) - 0.5
}

// A grouping puts requests into groups by their session tree: by their session, or by that of a
// parent of its first turn. A request without a session is by itself.
type grouping struct {
	sessions map[int64]int // of sessions that a parent joins to another
	rows     []uint16      // group of each row of the workload from base on
	base     int64
}

// leastRows and rowsEach bound the rows that a grouping remembers by the number of requests
// that it has met: a damaged file may name any row.
const (
	leastRows = 1 << 16
	rowsEach  = 1 << 10
)

// of is the group of a request, met in the order of rows.
func (g *grouping) of(r *result.Result) int {
	if g.sessions == nil {
		g.sessions, g.base = map[int64]int{}, r.RowID
	}
	group := groupOf(r.Session, r.RowID)
	if r.Session != nil {
		joined, ok := g.sessions[*r.Session]
		if ok {
			group = joined
		}
		for _, parent := range r.Parents {
			at := parent - g.base
			if !ok && at >= 0 && at < int64(len(g.rows)) && parent < r.RowID && g.rows[at] > 0 &&
				int(g.rows[at])-1 != group && (r.Turn == nil || *r.Turn == 0) {
				group = int(g.rows[at]) - 1
				g.sessions[*r.Session] = group
				break
			}
		}
		if at := r.RowID - g.base; at >= 0 && at < leastRows+rowsEach*int64(len(g.rows)+1) {
			for int64(len(g.rows)) <= at {
				g.rows = append(g.rows, 0)
			}
			g.rows[at] = uint16(group) + 1
		}
	}
	return group
}

// ofSession is the group of a session whose requests were met.
func (g *grouping) ofSession(session int64) int {
	if group, ok := g.sessions[session]; ok {
		return group
	}
	return groupOf(&session, 0)
}

// groupOf is the group of a session, or of a row without one.
func groupOf(session *int64, row int64) int {
	x := uint64(row)<<1 | 1
	if session != nil {
		x = uint64(*session) << 1
	}
	return int(sample.Mix64(x+sample.Golden) & (groups - 1))
}

// Add takes the successful requests of a run, of all that are measured.
func (c *Clusters) Add(run result.Run, results trace.Reader[result.Result]) error {
	if c.rows > 0 && run.Workload != c.digest {
		c.mixed = true
	}
	c.digest = run.Workload
	var groups grouping
	sessions := report.NewSessionTimes(&run)
	err := trace.Each(results, func(_ int64, r *result.Result) error {
		l, ok, err := report.Measured(&run, r)
		if err != nil {
			return err
		}
		group := groups.of(r)
		sessions.Add(r)
		if !ok {
			return nil
		}
		if c.rows++; c.rows > math.MaxUint32/4 {
			return errors.New("compare: too many requests to resample")
		}
		c.addSpan(spreadTTFT, group, l.TTFT[report.FromDue])
		c.addSpan(spreadTPOT, group, l.TPOT)
		c.addSpan(spreadE2E, group, l.E2E[report.FromDue])
		for _, gap := range r.Gaps {
			c.spreads[spreadITL].add(group, gap)
		}
		return nil
	})
	if err != nil {
		return err
	}
	all := sessions.Sessions()
	if !slices.ContainsFunc(all, func(s report.SessionTime) bool { return s.Requests > 1 }) {
		return nil // as in a report: single requests are no sessions
	}
	for i := range all {
		if s := &all[i]; s.Outcome == report.SessionSucceeded {
			group := groups.ofSession(s.Key.Session)
			c.spreads[spreadSession].add(group, s.NS)
			c.spreads[spreadSessionServer].add(group, s.ServerNS)
		}
	}
	return nil
}

func (c *Clusters) addSpan(spread, group int, d report.Span) {
	if d.OK {
		c.spreads[spread].add(group, d.NS)
	}
}

// Resampled are intervals from resampling sessions, of all runs of an arm
// together: what other sessions of the same kind would have given. They know
// nothing of how runs differ from each other.
type Resampled struct {
	Clusters   int       `json:"clusters"`   // groups of sessions that were drawn from
	Paired     bool      `json:"paired"`     // both arms drew the same sessions
	Replicates int       `json:"replicates"` // draws
	A          *Interval `json:"a"`          // in the unit
	B          *Interval `json:"b"`
	Change     *Interval `json:"change"`
}

const replicates = 2000

// resampling are the statistics of every draw, and of the requests as they were.
type resampling struct {
	alpha    float64
	clusters int
	paired   bool
	draws    map[resampledStat][2][]float64 // first of the requests as they were
}

// A resampledStat is a statistic of a distribution; the quantile is −1 for the mean.
type resampledStat struct {
	spread   int
	quantile float64
}

// leastClusters is how many clusters a draw needs to say anything.
const leastClusters = 10

// resample draws clusters with replacement, as many as there are, and computes
// every statistic of each draw: the cluster bootstrap of A. C. Davison and D. V.
// Hinkley (1997), Bootstrap Methods, section 3.8, with percentile intervals. Where
// both arms sent the same rows, a draw takes the same sessions in both. The draws
// have a fixed seed.
func resample(a, b *Clusters, alpha float64) *resampling {
	if a == nil || b == nil {
		return nil
	}
	r := &resampling{alpha: alpha, draws: map[resampledStat][2][]float64{}}
	r.paired = a.digest == b.digest && a.digest != "" && !a.mixed && !b.mixed
	arms := [2]*Clusters{a, b}
	var present [2][]int
	for i, c := range arms {
		present[i] = c.present()
		for s := range c.spreads {
			c.spreads[s].merge()
			c.spreads[s].seek()
		}
	}
	if r.paired {
		both := append(present[0], present[1]...)
		slices.Sort(both)
		both = slices.Compact(both)
		present = [2][]int{both, both}
	}
	r.clusters = min(len(present[0]), len(present[1]))
	if r.clusters < leastClusters {
		return r
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var weights [2][groups]int64
	for draw := range replicates + 1 {
		for i := range arms {
			if i == 1 && r.paired {
				weights[1] = weights[0]
				continue
			}
			weights[i] = [groups]int64{}
			for _, g := range present[i] {
				if draw > 0 {
					g = present[i][rng.IntN(len(present[i]))]
				}
				weights[i][g]++
			}
		}
		for i, c := range arms {
			c.measure(&weights[i], func(s resampledStat, v float64) {
				both := r.draws[s]
				both[i] = append(both[i], v)
				r.draws[s] = both
			})
		}
	}
	return r
}

// present lists the groups that have a request.
func (c *Clusters) present() (all []int) {
	for g := range groups {
		for s := range c.spreads {
			if c.spreads[s].count[g] > 0 {
				all = append(all, g)
				break
			}
		}
	}
	return all
}

var quantilesDrawn = func() (all []float64) {
	for _, s := range statistics {
		if q, ok := s.Share(); ok {
			all = append(all, q)
		}
	}
	return all
}()

// measure computes every statistic with each group counted so many times. A draw
// without a value of a distribution gives NaN.
func (c *Clusters) measure(weights *[groups]int64, told func(resampledStat, float64)) {
	for s := range c.spreads {
		d := &c.spreads[s]
		if len(d.cells) == 0 {
			continue
		}
		total, sum := int64(0), 0.0
		for g, w := range weights {
			total += w * d.count[g]
			sum += float64(w) * d.sum[g]
		}
		told(resampledStat{s, -1}, sum/float64(total))
		for j, q := range quantilesDrawn {
			at := int64(math.Round(q * float64(total-1)))
			seen, i := d.starts[j].drawn(weights), d.starts[j].cell
			if seen > at {
				seen, i = 0, 0
			}
			for i < len(d.cells) && seen <= at {
				seen += int64(d.cells[i].n) * weights[d.cells[i].key&(groups-1)]
				i++
			}
			if total == 0 {
				told(resampledStat{s, q}, math.NaN())
				continue
			}
			told(resampledStat{s, q}, middleOf(int(d.cells[i-1].key>>groupBits)))
		}
	}
}

// of are the intervals of a metric; nil where nothing was drawn of it.
func (r *resampling) of(m *metric) *Resampled {
	if r == nil || m.spread == noSpread {
		return nil
	}
	q, ok := m.Statistic.Share()
	if !ok {
		q = -1
	}
	both, ok := r.draws[resampledStat{m.spread, q}]
	if !ok || len(both[0]) == 0 || len(both[1]) == 0 {
		return nil
	}
	out := &Resampled{Clusters: r.clusters, Paired: r.paired, Replicates: replicates}
	var logs []float64
	for i := range both[0] {
		logs = append(logs, math.Log(both[1][i]/both[0][i]))
	}
	milliseconds := func(ns float64) float64 { return ns / 1e6 }
	out.A, out.B = r.interval(both[0], milliseconds), r.interval(both[1], milliseconds)
	out.Change = r.interval(logs, math.Expm1)
	if out.A == nil || out.B == nil || out.Change == nil {
		return nil
	}
	return out
}

// of puts the figures of all requests, which bars have to some 0.4 % and percentiles between two requests not at all,
// in place of its own: a change has one figure wherever it stands.
func (r *Resampled) of(a, b *float64, change *Interval) *Resampled {
	if r == nil {
		return nil
	}
	for i, estimate := range []*float64{a, b, &change.Estimate} {
		at := []*Interval{r.A, r.B, r.Change}[i]
		at.Estimate, *at.Low, *at.High = *estimate, min(*at.Low, *estimate), max(*at.High, *estimate)
	}
	return r
}

// interval is the first value between quantiles of the others; nil when a value
// is missing.
func (r *resampling) interval(values []float64, as func(float64) float64) *Interval {
	drawn := slices.Clone(values[1:])
	slices.Sort(drawn) // NaN first
	if math.IsNaN(drawn[0]) || math.IsInf(drawn[0], 0) || math.IsInf(drawn[len(drawn)-1], 0) || math.IsNaN(values[0]) {
		return nil
	}
	tail := int(r.alpha / 2 * float64(len(drawn)))
	return &Interval{Estimate: *report.Rounded(as(values[0]), 1e9), Low: report.Rounded(as(drawn[tail]), 1e9),
		High: report.Rounded(as(drawn[len(drawn)-1-tail]), 1e9)}
}
