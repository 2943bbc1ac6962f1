package profile_test

import (
	"container/list"
	"fmt"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/profile"
)

// A naiveReplica is an LRU cache of so many blocks; 0 is without limit.
type naiveReplica struct {
	limit         int
	order         *list.List // front is the most recent
	held          map[uint64]*list.Element
	sent, prefill int64
	requests      int64
}

func (c *naiveReplica) knows(blocks []uint64) (n int) {
	for n < len(blocks) && c.held[blocks[n]] != nil {
		n++
	}
	return n
}

func (c *naiveReplica) touch(blocks []uint64) {
	for _, b := range slices.Backward(blocks) {
		if e := c.held[b]; e != nil {
			c.order.MoveToFront(e)
			continue
		}
		c.held[b] = c.order.PushFront(b)
		if c.limit > 0 && c.order.Len() > c.limit {
			delete(c.held, c.order.Remove(c.order.Back()).(uint64))
		}
	}
}

// A choice is the replica that a request was sent to, and what was hit there.
type choice struct {
	*trace.Request
	hit, hitTokens, server int64
}

// naiveRouting sends all rows through replicas, asking each for each.
func naiveRouting(rows []trace.Request, router string, n, limit int, size, server int64, sessionOf func(int64) int) ([]choice, []*naiveReplica) {
	replicas := make([]*naiveReplica, n)
	for i := range replicas {
		replicas[i] = &naiveReplica{limit: limit, order: list.New(), held: map[uint64]*list.Element{}}
	}
	var done []choice
	turn, total := 0, int64(0)
	for _, r := range load(rows) {
		if len(r.Blocks) == 0 {
			continue
		}
		score := func(i int) float64 {
			held := float64(replicas[i].knows(r.Blocks))
			if router == fleet.Prefix {
				return held
			}
			load := 0.0
			if above := replicas[i].sent*int64(n) - total; above > 0 {
				load = float64(above) / float64(total)
			}
			return held/float64(len(r.Blocks)) - load
		}
		to := 0
		switch {
		case router == fleet.Prefix || router == fleet.PrefixWeighted:
			for i := range replicas {
				if score(i) > score(to) || score(i) == score(to) && replicas[i].sent < replicas[to].sent {
					to = i
				}
			}
		case router == "session" && r.Session != nil:
			to = sessionOf(*r.Session)
		default:
			to = turn % n
			turn++
		}
		c := choice{Request: &r, hit: int64(replicas[to].knows(r.Blocks))}
		if c.hit > 0 {
			c.hitTokens = min(c.hit*size, int64(r.InputTokens))
			c.server = min(c.hitTokens, int64(r.InputTokens)-1) / server * server
		}
		replicas[to].touch(r.Blocks)
		replicas[to].sent += int64(r.InputTokens)
		replicas[to].prefill += int64(r.InputTokens) - c.server
		replicas[to].requests++
		total += int64(r.InputTokens)
		done = append(done, c)
	}
	return done, replicas
}

// checkRouter holds the result of one router against a direct simulation.
func checkRouter(t *testing.T, got fleet.Result, done []choice, replicas []*naiveReplica, one int64) {
	t.Helper()
	var hits, hitTokens, server, blocks, tokens int64
	for _, c := range done {
		hits += c.hit
		hitTokens += c.hitTokens
		server += c.server
		blocks += int64(len(c.Blocks))
		tokens += int64(c.InputTokens)
	}
	want := fleet.Result{Router: got.Router, HitBlocks: hits, HitTokens: hitTokens, HitRatio: ratio(hits, blocks),
		HitRatioByToken: ratio(hitTokens, tokens), ServerHitRatio: ratio(server, tokens), ShareOfOneCache: ratio(hitTokens, one)}
	var requests, mostRequests, prefill, mostPrefill, mostSent int64
	for _, c := range replicas {
		want.Sent, want.Prefill = append(want.Sent, c.sent), append(want.Prefill, c.prefill)
		requests += c.requests
		prefill += c.prefill
		mostRequests, mostPrefill, mostSent = max(mostRequests, c.requests), max(mostPrefill, c.prefill), max(mostSent, c.sent)
	}
	n := int64(len(replicas))
	want.RequestImbalance, want.SentImbalance = ratio(mostRequests*n, requests), ratio(mostSent*n, tokens)
	want.PrefillImbalance = ratio(mostPrefill*n, prefill)
	if a, b := asJSON(t, got), asJSON(t, want); a != b {
		t.Errorf("%d replicas, %s\n%s; want\n%s", n, got.Router, a, b)
	}
}

func TestRoutingAgainstNaive(t *testing.T) {
	shapes := map[string]shape{"system": shapes["system prompt"], "prompts": crowds["prompts"], "everything": crowds["everything"]}
	for name, s := range shapes {
		for _, limit := range []int{0, 1, 7, 60, 400} {
			t.Run(fmt.Sprint(name, limit), func(t *testing.T) {
				rows := generate(151, 400, s)
				opts := profile.ProfilerOptions{ServerBlock: 3, Replicas: []int{5, 1, 2, 5, 64}, ReplicaBlocks: int64(limit)}
				sum := profileOf(t, rows, trace.Meta{BlockSize: s.block}, opts).Summary()
				if len(sum.Routing.Fleets) != 4 {
					t.Fatalf("there are %d fleets", len(sum.Routing.Fleets))
				}
				for i, f := range sum.Routing.Fleets {
					checkFleet(t, f, []int{1, 2, 5, 64}[i], rows, s, limit)
				}
				checkWaterfalls(t, sum, rows, s, limit)
			})
		}
	}
}

func checkFleet(t *testing.T, f fleet.Fleet, n int, rows []trace.Request, s shape, limit int) {
	t.Helper()
	run := func(router string, n, limit int) ([]choice, []*naiveReplica) {
		return naiveRouting(rows, router, n, limit, int64(s.block), 3, sticky(n))
	}
	done, replicas := run(fleet.RoundRobin, 1, n*limit)
	checkRouter(t, f.OneCache, done, replicas, f.OneCache.HitTokens)
	want := []string{fleet.RoundRobin, "session", fleet.Prefix, fleet.PrefixWeighted}
	if !s.sessions {
		want = slices.Delete(want, 1, 2)
	}
	if n == 1 {
		want = nil
	}
	if f.Replicas != n || len(f.Routers) != len(want) {
		t.Fatalf("%d replicas have %d routers; want %d and %v", f.Replicas, len(f.Routers), n, want)
	}
	for i, router := range want {
		done, replicas := run(router, n, limit)
		if f.Routers[i].Router != router {
			t.Errorf("router %d is %s; want %s", i, f.Routers[i].Router, router)
		}
		checkRouter(t, f.Routers[i], done, replicas, f.OneCache.HitTokens)
	}
}

// sticky is the hash of sessions: the finaliser of SplitMix64 of the golden
// ratio's next multiple, modulo the replicas.
func sticky(n int) func(int64) int {
	return func(session int64) int {
		z := (uint64(session) + 1) * 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return int((z ^ z>>31) % uint64(n))
	}
}

// checkWaterfalls adds every step up again, over all rows and over those with
// cached tokens that can be.
func checkWaterfalls(t *testing.T, sum profile.Summary, rows []trace.Request, s shape, limit int) {
	t.Helper()
	var want []fleet.Waterfall
	recorded := func(r *trace.Request) bool {
		return r.CachedTokens != nil && *r.CachedTokens >= 0 && *r.CachedTokens <= r.InputTokens
	}
	for _, n := range []int{1, 2, 5, 64} {
		for _, kind := range []string{"all", "recorded"} {
			w := fleet.Waterfall{Rows: kind, Replicas: n}
			keep := func(r *trace.Request) bool { return kind == "all" || recorded(r) }
			var cached int64
			ceiling, _ := naiveRouting(rows, fleet.RoundRobin, 1, 0, int64(s.block), 3, nil)
			for _, c := range ceiling {
				if keep(c.Request) {
					w.Requests++
					w.PromptTokens += int64(c.InputTokens)
					if c.CachedTokens != nil {
						cached += int64(*c.CachedTokens)
					}
				}
			}
			if w.Requests == 0 {
				continue
			}
			last := fleet.Step{}
			add := func(step, router string, left int64) {
				one := fleet.Step{Step: step, Router: router, HitRatio: ratio(left, w.PromptTokens), After: last.Step}
				if last.Step != "" {
					one.CostPoints = trace.Ptr(100 * (*last.HitRatio - *one.HitRatio))
				}
				if w.Steps = append(w.Steps, one); router == "" {
					last = one
				}
			}
			total := func(done []choice, of func(choice) int64) (sum int64) {
				for _, c := range done {
					if keep(c.Request) {
						sum += of(c)
					}
				}
				return sum
			}
			server := func(router string, n, limit int) int64 {
				done, _ := naiveRouting(rows, router, n, limit, int64(s.block), 3, sticky(n))
				return total(done, func(c choice) int64 { return c.server })
			}
			add("ceiling", "", total(ceiling, func(c choice) int64 { return c.hitTokens }))
			add("block-rounding", "", server("round-robin", 1, 0))
			if limit > 0 {
				add("capacity", "", server("round-robin", 1, n*limit))
			}
			for _, router := range []string{"round-robin", "session", "prefix", "prefix-weighted"} {
				if n > 1 && (router != "session" || s.sessions) {
					add("routing", router, server(router, n, limit))
				}
			}
			if kind == "recorded" {
				add("recorded", "", cached)
			}
			want = append(want, w)
		}
	}
	if a, b := asJSON(t, sum.Waterfalls), asJSON(t, want); a != b {
		t.Errorf("the waterfalls are\n%s; want\n%s", a, b)
	}
	if !s.people {
		return
	}
	if !slices.ContainsFunc(sum.Warnings, func(w profile.Warning) bool { return w.Code == "cached_over_prompt" }) {
		t.Error("nothing says that some cached tokens cannot be")
	}
}

// Without options there is a ceiling and what is recorded, and no simulation.
func TestWaterfallWithoutRouting(t *testing.T) {
	s := crowds["prompts"]
	sum := profileOf(t, generate(152, 200, s), trace.Meta{BlockSize: s.block}, profile.ProfilerOptions{}).Summary()
	var steps []string
	for _, w := range sum.Waterfalls {
		for _, step := range w.Steps {
			steps = append(steps, w.Rows+" "+step.Step)
		}
	}
	want := []string{"all ceiling", "all block-rounding", "recorded ceiling", "recorded block-rounding", "recorded recorded"}
	if !slices.Equal(steps, want) || sum.Routing != nil {
		t.Errorf("the steps are %v; want %v", steps, want)
	}
	if *sum.Waterfalls[0].Steps[1].HitRatio != *sum.Server.HitRatio {
		t.Error("the waterfall and the server's reuse differ")
	}
}

func TestRoutingOptions(t *testing.T) {
	for _, o := range []profile.ProfilerOptions{{Replicas: []int{0}}, {Replicas: []int{65}}, {Replicas: []int{2, -1}}, {ReplicaBlocks: -1}} {
		p := profile.NewProfiler(trace.Meta{BlockSize: 4}, o)
		if _, err := p.Write([]trace.Request{{}}); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	rows := generate(153, 50, shape{block: 4})
	huge := profileOf(t, rows, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{Replicas: []int{64}, ReplicaBlocks: 1 << 62}).Summary()
	free := profileOf(t, rows, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{Replicas: []int{64}}).Summary()
	if asJSON(t, huge.Routing.Fleets) != asJSON(t, free.Routing.Fleets) {
		t.Error("a cache that is larger than any trace is not one without limit")
	}
}

// A reference computation over the conversation trace of Mooncake, eight
// replicas with 10,000 blocks each: the hit ratio by block of each router.
func TestMooncakeRouting(t *testing.T) {
	rows := mooncake(t)
	annotate(rows, 512, profile.Options{})
	opts := profile.ProfilerOptions{Replicas: []int{8}, ReplicaBlocks: 10_000}
	s := profileOf(t, rows, trace.Meta{BlockSize: 512, Sessions: "inferred"}, opts).Summary()
	f := s.Routing.Fleets[0]
	want := []string{"12.6", "32.6", "21.2", "36.1"}
	for i, r := range f.Routers {
		checkDigits(t, []digits{{r.Router, 100 * *r.HitRatio, 1, want[i]}})
	}
	// All prompts begin with one block, so pure prefix routing sends them all to
	// the replica that had it first: an LRU cache of 10,000 blocks.
	checkDigits(t, []digits{{"prompt tokens of the fullest replica behind prefix", *f.Routers[2].SentImbalance, 1, "8.0"},
		{"the same behind prefix-weighted", *f.Routers[3].SentImbalance, 2, "1.00"}})
	for _, p := range s.Reuse.LRUCurve {
		if p.CapacityBlocks != nil && *p.CapacityBlocks == 10_000 && (p.HitRatio != *f.Routers[2].HitRatio || *p.HitRatioByToken != *f.Routers[2].HitRatioByToken) {
			t.Errorf("prefix hits %v of the blocks; one cache of this size %v", *f.Routers[2].HitRatio, p.HitRatio)
		}
	}
}
