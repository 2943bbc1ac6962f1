package fidelity

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace"
)

// A naive is a trace with what its prompts show, found by looking at all rows before each.
type naive struct {
	rows    []trace.Request
	hit     []int
	parent  []int
	session []int
	size    int
	from    int
	global  int
}

func naiveOf(rows []trace.Request, size, from int) *naive {
	n := &naive{rows: rows, size: size, from: from}
	carry := map[uint64]int{}
	for _, r := range rows {
		for _, id := range r.Blocks {
			carry[id]++
		}
	}
	for n.global < len(rows[0].Blocks) && 2*carry[rows[0].Blocks[n.global]] > len(rows) {
		n.global++
	}
	sessions := 0
	for i, r := range rows {
		hit, parent := 0, -1
		for hit < len(r.Blocks) && slices.ContainsFunc(rows[:i], func(o trace.Request) bool { return slices.Contains(o.Blocks, r.Blocks[hit]) }) {
			hit++
		}
		if hit > n.global {
			for parent = i - 1; !slices.Contains(rows[parent].Blocks, r.Blocks[hit-1]); parent-- {
			}
			n.session = append(n.session, n.session[parent])
		} else {
			n.session = append(n.session, sessions)
			sessions++
		}
		n.hit, n.parent = append(n.hit, hit), append(n.parent, parent)
	}
	return n
}

func (n *naive) second(row int) float64 {
	return float64(n.rows[row].ArrivalNS-n.rows[0].ArrivalNS) / 1e9
}

// lists are LRU caches as lists, the newest last.
type lists [][]uint64

func (l lists) depth(replica int, blocks []uint64) int {
	for i, id := range blocks {
		if !slices.Contains(l[replica], id) {
			return i
		}
	}
	return len(blocks)
}

func (l lists) send(replica int, blocks []uint64, capacity int) {
	for _, id := range slices.Backward(blocks) {
		list := slices.DeleteFunc(l[replica], func(old uint64) bool { return old == id })
		l[replica] = append(list, id)
	}
	if over := len(l[replica]) - capacity; over > 0 {
		l[replica] = l[replica][over:]
	}
}

// routed is the hit ratio of a router, with the load of the last minute added up anew for
// each request.
func (n *naive) routed(router string, replicas, capacity int, session []int) float64 {
	caches := make(lists, replicas)
	to, missing := make([]int, len(n.rows)), make([]int, len(n.rows))
	var hits, references int
	for i, r := range n.rows {
		switch router {
		case routeRoundRobin:
			to[i] = i % replicas
		case routeSticky:
			to[i] = session[i] * 2654435761 >> 7 % replicas
		default:
			load := make([]int, replicas)
			for j := range i {
				if n.second(j) >= n.second(i)-60 {
					load[to[j]] += missing[j]
				}
			}
			least := slices.Min(load)
			for q := range replicas {
				score := func(q int) int { return caches.depth(q, r.Blocks) - (load[q] - least) }
				if a, b := score(q), score(to[i]); a > b || a == b && load[q] < load[to[i]] {
					to[i] = q
				}
			}
		}
		depth := caches.depth(to[i], r.Blocks)
		missing[i] = len(r.Blocks) - depth
		if i >= n.from {
			hits += depth
			references += len(r.Blocks)
		}
		caches.send(to[i], r.Blocks, capacity)
	}
	return float64(hits) / float64(references)
}

// percentile is that of sorted values, by linear interpolation.
func percentile(values []float64, p float64) float64 {
	slices.Sort(values)
	place := float64(len(values)-1) * p / 100
	low := int(place)
	high := min(low+1, len(values)-1)
	return values[low] + (values[high]-values[low])*(place-float64(low))
}

func (n *naive) queued(load float64) [3]float64 {
	cache := make(lists, 1)
	var work, input []float64
	total := 0.0
	for i, r := range n.rows {
		in := math.Max(float64(int(r.InputTokens)-cache.depth(0, r.Blocks)*n.size), 1)
		cache.send(0, r.Blocks, queueCacheTokens/n.size)
		input, work = append(input, in), append(work, in+20*float64(*r.OutputTokens))
		if i >= n.from {
			total += work[i]
		}
	}
	unit := load * (n.second(len(n.rows)-1) - n.second(n.from)) / total
	var waits []float64
	free := 0.0
	for i := n.from; i < len(n.rows); i++ {
		start := math.Max(free, n.second(i))
		waits = append(waits, start-n.second(i)+unit*input[i])
		free = start + unit*work[i]
	}
	return [3]float64{percentile(waits, 50), percentile(waits, 90), percentile(waits, 99)}
}

// What a benchmark feels is what a plain simulation gives, with a history and without.
func TestFeltIsWhatPlainSimulationsGive(t *testing.T) {
	c := chatTrace{seed: 21, n: 360, size: 8}
	all := burst(c.rows())
	rows := load(all)
	for i := range rows { // parents follow prompts, and not the source's sessions
		rows[i].Session = nil
	}
	meta := trace.Meta{BlockSize: c.size, Convention: trace.PartialTail}
	for name, opts := range map[string]Options{"whole": {}, "half": {From: 0.5}} {
		s := signatureOf(t, meta, all, opts)
		k := tallyOf(t, s).kept
		from := slices.IndexFunc(rows, func(r trace.Request) bool { return r.ArrivalNS-rows[0].ArrivalNS >= s.warmUp() })
		n := naiveOf(rows, c.size, from)
		if k.from != from || k.global != n.global || n.global == 0 {
			t.Fatalf("%s: from %d, a global prefix of %d blocks; want %d and %d", name, k.from, k.global, from, n.global)
		}
		for i := range rows {
			if int(k.parent[i]) != n.parent[i] || int(k.session[i]) != n.session[i] {
				t.Fatalf("%s: row %d follows %d in session %d, want %d in %d", name, i, k.parent[i], k.session[i], n.parent[i], n.session[i])
			}
		}
		distinct := map[uint64]bool{}
		for _, r := range rows {
			for _, id := range r.Blocks {
				distinct[id] = true
			}
		}
		_, routed := k.routedRows()
		capacities := routeCapacities(routed)
		for i, share := range routeShares {
			if want := math.Round(share * float64(len(distinct))); math.Abs(float64(capacities[i])-want) > 1 || i > 0 && capacities[i] < 4 {
				t.Errorf("%s: a capacity of %d blocks, want %v", name, capacities[i], want)
			}
		}
		ratios := k.routeRatiosOf(capacities, false)
		for r, router := range routeNames {
			for x, replicas := range routeReplicas {
				for y, capacity := range capacities {
					got, what := ratios[r][x][y], fmt.Sprint(name, " ", router, replicas, capacity)
					if router == routeSticky { // the mean of hashes, of which the first is the plain one
						sum := 0.0
						for hash := range uint64(k.limit.hashes) {
							sum += k.routed(router, replicas, capacity, bySize(k.session), hash)
						}
						near(t, what+" mean", got, sum/float64(k.limit.hashes))
						got = k.routed(router, replicas, capacity, k.session, 0)
					}
					near(t, what, got, n.routed(router, replicas, int(capacity), n.session))
				}
			}
		}
		hits := k.queueHits(c.size)
		for _, load := range queueLoads {
			got, want := k.queued(float64(load)/100, hits, c.size), n.queued(float64(load)/100)
			for i, v := range []float64{got.P50, got.P90, got.P99} {
				if math.Abs(v-want[i]) > 2e-9 {
					t.Errorf("%s: at %d %% quantile %d is %v, want %v", name, load, i, v, want[i])
				}
			}
		}
		n.checkRates(t, name, k)
		n.checkLinks(t, name, k)
	}
}

// checkRates holds rates against sums over all rows for each window.
func (n *naive) checkRates(t *testing.T, name string, k *keptRows) {
	t.Helper()
	tokens, requests := k.rates()
	start, end := n.second(n.from), n.second(len(n.rows)-1)
	counts := func(width int, of func(r *trace.Request) float64) (sums []float64) {
		for w := 0; (w+1)*width <= int(end-start); w++ {
			sum := 0.0
			for i := n.from; i < len(n.rows); i++ {
				if at := n.second(i) - start; at >= float64(w*width) && at < float64((w+1)*width) {
					sum += of(&n.rows[i])
				}
			}
			sums = append(sums, sum)
		}
		return sums
	}
	inTokens := func(r *trace.Request) float64 { return float64(r.InputTokens) }
	one := func(*trace.Request) float64 { return 1 }
	moments := func(x []float64) (mean, variance float64) {
		for _, v := range x {
			mean += v / float64(len(x))
		}
		for _, v := range x {
			variance += (v - mean) * (v - mean) / float64(len(x)-1)
		}
		return mean, variance
	}
	for _, width := range []int{1, 3, 10, 30} {
		cv, _ := dispersion(tokens, width)
		_, idc := dispersion(requests, width)
		mean, variance := moments(counts(width, inTokens))
		near(t, fmt.Sprint(name, " CV ", width), *cv, math.Sqrt(variance)/mean)
		mean, variance = moments(counts(width, one))
		near(t, fmt.Sprint(name, " IDC ", width), *idc, variance/mean)
	}
	x := counts(1, inTokens)
	mean, variance := moments(x)
	m, v := meanAndVariance(tokens)
	for _, lag := range []int{1, 3, 10} {
		want := 0.0
		for i := lag; i < len(x); i++ {
			want += (x[i] - mean) * (x[i-lag] - mean) / variance / float64(len(x))
		}
		near(t, fmt.Sprint(name, " ACF ", lag), *autocorrelation(tokens, m, v, lag), want)
	}
	if a := autocorrelation(tokens, m, v, len(x)/3); a != nil {
		t.Errorf("%s: a lag of a third of the time has %v", name, *a)
	}
}

// checkLinks holds growth, fan-out, the most used block and chains against the rows.
func (n *naive) checkLinks(t *testing.T, name string, k *keptRows) {
	t.Helper()
	growth := valueCounts{}
	children, uses, head := map[int]int{}, map[uint64]int{}, map[uint64]bool{}
	var chains [][3]int32
	for i := n.from; i < len(n.rows); i++ {
		for depth, id := range n.rows[i].Blocks {
			uses[id]++
			head[id] = head[id] || depth < n.global
		}
		p := n.parent[i]
		if p < 0 {
			continue
		}
		growth[int64(n.rows[i].InputTokens-n.rows[p].InputTokens)]++
		children[p]++
		if n.parent[p] >= 0 {
			chains = append(chains, [3]int32{int32(n.parent[p]), int32(p), int32(i)})
		}
	}
	several, most, top := 0, 0, 1
	for _, c := range children {
		most = max(most, c)
		if c > 1 {
			several++
		}
	}
	for id, u := range uses {
		if !head[id] {
			top = max(top, u)
		}
	}
	if !slices.Equal(k.growth().sorted(), growth.sorted()) || len(growth) < 20 {
		t.Errorf("%s: growth of %v, want %v", name, k.growth().sorted(), growth.sorted())
	}
	if s, m := k.fanOut(); s != several || m != most || several < 3 {
		t.Errorf("%s: %d with several children, at most %d; want %d and %d", name, s, m, several, most)
	}
	if got := k.topBlock(); got != top || top < 3 {
		t.Errorf("%s: the most used block has %d uses, want %d", name, got, top)
	}
	if !slices.Equal(k.chains(false), chains) || len(chains) < 20 {
		t.Errorf("%s: %d chains, want %d", name, len(k.chains(false)), len(chains))
	}
}

// Sessions of the source decide where sticky routing sends, where both have them.
func TestStickyFollowsTheSourcesSessions(t *testing.T) {
	c := chatTrace{seed: 5, n: 300, size: 8}
	rows := load(burst(c.rows()))
	k := tallyOf(t, signatureOf(t, c.meta(), rows, Options{})).kept
	n := naiveOf(rows, c.size, 0)
	var sessions []int
	number := map[int64]int{}
	for _, r := range rows {
		if _, known := number[*r.Session]; !known {
			number[*r.Session] = len(number)
		}
		sessions = append(sessions, number[*r.Session])
	}
	_, routed := k.routedRows()
	capacities := routeCapacities(routed)
	got := k.routed(routeSticky, 8, capacities[1], k.sessionsBy(true), 0)
	near(t, "sticky", got, n.routed(routeSticky, 8, int(capacities[1]), sessions))
	if inferred := k.routed(routeSticky, 8, capacities[1], k.sessionsBy(false), 0); inferred == got {
		t.Error("sessions of the source and of links give the same ratio, which tells nothing")
	}
}

// A few large sessions meet on a replica, or do not, alike on both sides, in whatever order they begin. Sessions that
// are apart differ.
func TestStickyOfFewLargeSessions(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	traffic := func(order []int, apart bool) []trace.Request {
		var rows []trace.Request
		for i := range 1500 {
			session := min(len(order)-1, bits.LeadingZeros32(rng.Uint32())) // half are of one, a fourth of the next
			if i < len(order) {
				session = order[i]
			}
			blocks := make([]uint64, 12)
			for b := range blocks {
				blocks[b] = uint64(session)<<32 | uint64(b)
			}
			if apart {
				blocks[0] = uint64(i) << 40
			}
			rows = append(rows, trace.Request{ArrivalNS: int64(i) * 1e8, InputTokens: 96, Blocks: blocks,
				Session: trace.Ptr(int64(session))})
		}
		return rows
	}
	meta := trace.Meta{BlockSize: 8, Convention: trace.PartialTail, Sessions: sourceSessions}
	order := []int{0, 1, 2, 3, 4, 5, 6, 7}
	ref := traffic(order, false)
	slices.Reverse(order)
	for apart, beyond := range map[bool]bool{false: false, true: true} {
		f := compared(t, meta, ref, traffic(order, apart))
		if m, _ := f.Measure("route_sticky"); *m.Distance > DefaultThresholds(1500)["route_sticky"] != beyond {
			t.Errorf("apart %v: sticky differs by %.3f", apart, *m.Distance)
		}
	}
}

// Ticks: of four gaps one is 0, and two of the other three are on a clock of 3 s.
func TestClockTicks(t *testing.T) {
	k := &keptRows{at: []float64{0, 3, 3, 6.004, 8}}
	if got := *k.ticks(); got.zero != 0.25 || math.Abs(got.onMode-2./3) > 1e-12 {
		t.Errorf("%+v", got)
	}
	for n, want := range map[int]int{50: 0, 51: 100, 149: 100, 150: 200, 250: 200, 3004: 3000} {
		if got := hundreds(n); got != want {
			t.Errorf("%d rounds to %d, want %d", n, got, want)
		}
	}
}

// Of a long trace the first requests are measured, and a warning says so. A warm-up beyond
// them leaves nothing to measure, with its reason.
func TestFirstRequests(t *testing.T) {
	c := chatTrace{seed: 41, n: 900, size: 8}
	rows := load(burst(c.rows()))
	short := func(opts Options) *Signature {
		s := NewSignature(c.meta(), opts)
		s.limits.kept = keptLimits{rows: 600, references: 1 << 20, routed: 1 << 20, hashes: defaultKept.hashes}
		if _, err := trace.Copy(s, copied(rows)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	f, err := Compare(short(Options{}), short(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	first := signatureOf(t, c.meta(), rows[:600], Options{})
	want, err := Compare(first, first)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"route_sticky", "queue_85_log2", "token_acf", "growth_p50", "fanout", linkageName} {
		a, _ := f.Measure(name)
		b, _ := want.Measure(name)
		if a.Ref == nil || *a.Ref != *b.Ref {
			t.Errorf("%s of the first requests is %v, want %v", name, a.Ref, b.Ref)
		}
	}
	warned := 0
	for _, w := range f.Warnings {
		if w.Code == "first_requests" {
			warned++
		}
	}
	if warned != 2 {
		t.Errorf("%d warnings of %v", warned, f.Warnings)
	}
	f, err = Compare(short(Options{From: 0.9}), short(Options{From: 0.9}))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Measures {
		if first := aboutMeasure(m.Name).first; first != (m.Why == "neither has requests that count among the first 600") {
			t.Errorf("%s: %v %q", m.Name, m.Distance, m.Why)
		}
	}
	few := signatureOf(t, c.meta(), rows, Options{Brief: true})
	if f, err = Compare(few, few); err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Measures {
		if aboutMeasure(m.Name).first {
			t.Errorf("a brief comparison has %s", m.Name)
		}
	}
}

// The name copies stands for all measures of copies.
func TestThresholdOfCopies(t *testing.T) {
	limits := DefaultThresholds(smallRequests)
	if err := limits.Set("copies=off"); err != nil {
		t.Fatal(err)
	}
	for _, name := range copyMeasures {
		if _, asked := limits[name]; asked {
			t.Errorf("%s is still checked", name)
		}
	}
	if err := limits.Set("copies=2"); err != nil || limits[linkageName] != 2 {
		t.Errorf("%v, %v", limits, err)
	}
	if err := limits.Set("copies=x"); err == nil {
		t.Error("copies=x is taken")
	}
}

// Limits grow as the error of a figure of few requests does; those of copies and of the longest stay.
func TestThresholdsBySize(t *testing.T) {
	for requests, want := range map[int64][4]float64{
		1e9: {0.005, 0.035, 0.35, 0.005}, smallRequests: {0.005, 0.035, 0.35, 0.005}, 1250: {0.01, 0.07, 0.35, 0.005},
		289: {0.0208, 0.146, 0.35, 0.005}, leastRequests: {0.0354, 0.247, 0.35, 0.005}, 0: {0.0354, 0.247, 0.35, 0.005},
	} {
		got := DefaultThresholds(requests)
		for i, name := range []string{"mrc_mae", "input_ks", "turns_top10_log2", uniquePairMatchName} {
			if got[name] != want[i] {
				t.Errorf("%d requests: the limit of %s is %g, want %g", requests, name, got[name], want[i])
			}
		}
	}
}
