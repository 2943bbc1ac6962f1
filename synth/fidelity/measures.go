package fidelity

import (
	"fmt"
	"math"

	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/profile"
)

// reuse compares what caches find: of every capacity, and without a limit.
func (c *comparison) reuse() {
	const what = "prefix blocks"
	capacities := curveCapacities(curveTo)
	if c.ref.references <= curveTo {
		capacities = curveCapacities(curveTo / 2)
	}
	ref, cand := c.ref.meanRatio(capacities), c.cand.meanRatio(capacities)
	var mae, most, refAt, candAt *float64
	if ref != nil && cand != nil {
		var sum float64
		worst := CurvePair{}
		for i, capacity := range capacities {
			p := CurvePair{capacity, c.ref.curve[capacity], c.cand.curve[capacity]}
			c.f.LRUCurve = append(c.f.LRUCurve, p)
			sum += math.Abs(p.Ref - p.Cand)
			if i == 0 || math.Abs(p.Ref-p.Cand) > math.Abs(worst.Ref-worst.Cand) {
				worst = p
			}
		}
		mae = trace.Ptr(sum / float64(len(c.f.LRUCurve)))
		refAt, candAt = &worst.Ref, &worst.Cand
		most = difference(refAt, candAt)
	} else {
		refAt, candAt = ref, cand
	}
	c.add("mrc_mae", ref, cand, mae, what)
	c.add("mrc_max", refAt, candAt, most, what)
	r, s := c.ref.ratios, c.cand.ratios
	c.add("hit_by_block", r.ByBlock, s.ByBlock, difference(r.ByBlock, s.ByBlock), what)
	c.add("hit_by_token", r.ByToken, s.ByToken, difference(r.ByToken, s.ByToken), what)
	c.add("hit_mean_over_requests", r.MeanOverRequests, s.MeanOverRequests,
		difference(r.MeanOverRequests, s.MeanOverRequests), what)
	c.add("hit_full_blocks_only", r.FullBlocksOnly, s.FullBlocksOnly, difference(r.FullBlocksOnly, s.FullBlocksOnly),
		"full prefix blocks")
	point := []int64{pointCapacity}
	ref, cand = c.ref.meanRatio(point), c.cand.meanRatio(point)
	c.add("hit_at_1000_blocks", ref, cand, difference(ref, cand), what)
}

// meanRatio is the mean hit ratio over capacities; nil without references.
func (t *signatureTally) meanRatio(capacities []int64) *float64 {
	if t.curve == nil {
		return nil
	}
	var sum float64
	for _, capacity := range capacities {
		sum += t.curve[capacity]
	}
	return trace.Ptr(sum / float64(len(capacities)))
}

// lengths compares the two lengths, each by itself.
func (c *comparison) lengths() {
	for _, l := range []struct {
		name      string
		ref, cand valueCounts
	}{{"input", c.ref.input, c.cand.input}, {"output", c.ref.output, c.cand.output}} {
		pair := cdfPair{name: l.name + " tokens", per: 1, ref: l.ref.sorted(), cand: l.cand.sorted()}
		c.f.curves = append(c.f.curves, pair)
		c.addKS(l.name+"_ks", pair, "requests")
		if len(pair.ref) == 0 || len(pair.cand) == 0 { // no length is known
			c.add(l.name+"_w1", nil, nil, nil, "requests")
			continue
		}
		ref, cand := pair.ref.mean(), pair.cand.mean()
		var w *float64
		if ref > 0 {
			w = trace.Ptr(wassersteinDistance(pair.ref, pair.cand) / ref)
		}
		c.add(l.name+"_w1", &ref, &cand, w, "requests")
	}
}

// addKS adds the distance between two distributions, beside their medians.
func (c *comparison) addKS(name string, p cdfPair, what string) {
	middle := func(l valueList) *float64 {
		if len(l) == 0 {
			return nil
		}
		return trace.Ptr(l.median() / p.per)
	}
	ref, cand := middle(p.ref), middle(p.cand)
	var d *float64
	if ref != nil && cand != nil {
		d = trace.Ptr(ksDistance(p.ref, p.cand))
	}
	c.add(name, ref, cand, d, what)
}

// joint compares what goes with what.
func (c *comparison) joint() {
	type columns func(t *sampledTuple) (x, y int32)
	rho := func(t *signatureTally, of columns) *float64 {
		return rankCorrelation(len(t.sample.rows), func(i int) (x, y int32) { return of(&t.sample.rows[i]) })
	}
	add := func(name string, of columns, ok func(*signatureTally) bool, what string) {
		var ref, cand *float64
		if ok(c.ref) {
			ref = rho(c.ref, of)
		}
		if ok(c.cand) {
			cand = rho(c.cand, of)
		}
		c.add(name, ref, cand, difference(ref, cand), what)
	}
	always := func(*signatureTally) bool { return true }
	blocks := func(t *signatureTally) bool { return t.blocks }
	add("rho_input_output", func(t *sampledTuple) (x, y int32) { return t.in, t.out }, always, "lengths that vary")
	add("rho_hit_new", func(t *sampledTuple) (x, y int32) { return t.hit, t.fresh }, blocks,
		"hit and new blocks that vary")
	add("rho_new_output", func(t *sampledTuple) (x, y int32) { return t.fresh, t.out }, blocks,
		"new blocks and outputs that vary")
}

// categories compares the shares of the reuse categories: of all requests that
// have one.
func (c *comparison) categories() {
	shares := func(t *signatureTally) (of func(category string) *float64) {
		var all int64
		for _, n := range t.categories {
			all += n
		}
		return func(category string) *float64 {
			if all == 0 {
				return nil
			}
			return trace.Ptr(float64(t.categories[category]) / float64(all))
		}
	}
	const what = "prefix blocks"
	ref, cand := shares(c.ref), shares(c.cand)
	var worst Measure
	var each []Measure
	for _, name := range trace.Categories() {
		m := Measure{Name: "category_" + name, Ref: ref(name), Cand: cand(name)}
		m.Distance = difference(m.Ref, m.Cand)
		if len(each) == 0 || m.Distance != nil && *m.Distance > *worst.Distance {
			worst = m
		}
		each = append(each, m)
	}
	c.add("categories", worst.Ref, worst.Cand, worst.Distance, what)
	for _, m := range each {
		c.add(m.Name, m.Ref, m.Cand, m.Distance, what)
	}
}

// sessions compares who comes back and when, and when blocks do.
func (c *comparison) sessions() {
	ref, cand := &c.ref.inferred, &c.cand.inferred
	c.f.Sessions = "inferred"
	// The reference's own sessions are the measure where nothing else can be:
	// a candidate without any then lacks them.
	if len(c.ref.bySource.turns) > 0 && (len(c.cand.bySource.turns) > 0 || len(ref.turns) == 0) {
		ref, cand = &c.ref.bySource, &c.cand.bySource
		c.f.Sessions = sourceSessions
	} else if len(ref.turns) == 0 {
		c.f.Sessions = ""
	}
	turns := cdfPair{name: "turns of a session", per: 1, ref: ref.lengths().sorted(), cand: cand.lengths().sorted()}
	gaps := cdfPair{name: "turn gap", unit: "s", per: 1e9}
	gaps.ref, gaps.cand = gapLists(&ref.gaps, &cand.gaps)
	reuse := cdfPair{"block reuse time", "s", 1e9, bucketList(&c.ref.reuseTime), bucketList(&c.cand.reuseTime)}
	think := cdfPair{"think time", "s", 1e9, bucketList(&c.ref.think), bucketList(&c.cand.think)}
	c.f.curves = append(c.f.curves, turns, gaps, reuse, think)
	c.addKS("turns_ks", turns, "sessions")
	c.turnQuantiles(ref, cand)
	c.addKS("turn_gap_ks", gaps, "sessions of several turns")
	c.addKS("reuse_time_ks", reuse, "blocks that are used again")
	c.addKS("think_ks", think, "think times")
}

const (
	leastWindows = 10   // of a scale, to compare counts by
	leastTicks   = 10   // of a quantised clock in a window
	tickSlack    = 0.01 // of a tick may be jitter
)

// An arrivalSide is what arrivals look like on one side.
type arrivalSide struct {
	name    string
	windows *[len(idcScales)]windowTally
	profile.Arrivals
}

// unusable says why the scale at width seconds tells nothing of this side, or
// is empty when it does.
func (s *arrivalSide) unusable(scale int, width float64) string {
	w := &s.windows[scale]
	switch {
	case w.window < leastWindows:
		return fmt.Sprintf("fewer than %d windows in the %s", leastWindows, s.name)
	case s.Clock != nil && width < leastTicks*s.Clock.TickS*(1-tickSlack):
		return fmt.Sprintf("below %d ticks of the %s's clock, %s s each", leastTicks, s.name,
			doc.Number(s.Clock.TickS))
	}
	return ""
}

// arrivals compares the dispersion of arrivals across scales, and their gaps.
func (c *comparison) arrivals() {
	ref := arrivalSide{"reference", &c.ref.windows, c.ref.arrivals.Summary().Arrivals}
	cand := arrivalSide{"candidate", &c.cand.windows, c.cand.arrivals.Summary().Arrivals}
	var refs, cands, usable []float64 // logarithms of the IDC
	distance := scaleDistance{even: evenIDC}
	for i, ms := range idcScales {
		p := IDCPair{WindowS: float64(ms) / 1000, Ref: ref.windows[i].idc(), Cand: cand.windows[i].idc()}
		if p.LeftOut = ref.unusable(i, p.WindowS); p.LeftOut == "" {
			usable = append(usable, log2IDC(p.Ref))
			p.LeftOut = cand.unusable(i, p.WindowS)
		}
		if p.LeftOut == "" {
			refs, cands = append(refs, log2IDC(p.Ref)), append(cands, log2IDC(p.Cand))
			distance.add(p.Ref, p.Cand)
		}
		c.f.IDC = append(c.f.IDC, p)
	}
	if len(refs) == 0 {
		refs = usable // the candidate then lacks what the reference has
	}
	c.add("idc_log2", geometricMean(refs), geometricMean(cands), distance.mean(),
		"scales at which counts can be compared")
	c.add("iat_cv", ref.CV, cand.CV, relative(ref.CV, cand.CV), "gaps between requests that vary")
}

// log2IDC is the binary logarithm of an IDC, which may be 0.
func log2IDC(idc *float64) float64 { return math.Log2(max(*idc, 1e-9)) }

// geometricMean returns the geometric mean of the numbers with these binary logarithms.
func geometricMean(logs []float64) *float64 {
	if len(logs) == 0 {
		return nil
	}
	var sum float64
	for _, l := range logs {
		sum += l
	}
	return trace.Ptr(math.Exp2(sum / float64(len(logs))))
}
