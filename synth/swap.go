package synth

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"reprise/trace/arrival"
	"reprise/trace/crash"
)

// Settings of the swapping. Of several swaps, each of the best of 16 orders, the one nearest to the trace counts: the
// choice tells at most ten bits about it.
const (
	swapTriesMost = 64
	triesRequests = 240_000 // requests in all of them together
	movedAmong    = 2       // for each of k: requests among which a burst moves
	movedTimes    = 5       // for each of the burst's own: the same
)

// swap moves bursts, and exchanges the parts of places: sizes, endings, and labels that are rare.
func (m *Model) swap(ctx context.Context, e *extractor, opts *FitOptions) error {
	entropy := opts.Entropy
	if entropy == nil {
		entropy = crand.Reader
	}
	s := swapper{k: m.kSwap, size: m.meta.BlockSize, templates: m.templates, labels: m.labels,
		ends: m.ends, domains: domainsOf(m.labels), shapes: e.shapes, times: e.times}
	s.places = slices.Clone(m.places)
	if m.sampled == nil {
		s.arrivals = m.arrivals
	}
	s.prepare()
	tries := 1
	if s.size > 0 {
		tries = max(1, min(swapTriesMost, triesRequests/len(m.places)))
	}
	seeds := make([][32]byte, tries)
	for i := range seeds {
		if _, err := io.ReadFull(entropy, seeds[i][:]); err != nil {
			return fmt.Errorf("read random numbers for swapping: %w", err)
		}
	}

	want := s.keptOf(m.places, m.templates, s.times, tries > 1)
	best := s.nearest(ctx, &want, seeds, opts.Swaps)
	if err := ctx.Err(); err != nil {
		return err
	}
	m.places, m.templates, m.gaps = best.places, best.templates, gapsBetween(best.times)
	return nil
}

// nearest makes a swap from each seed, as many at a time as there are processors, and returns the one whose figures are
// nearest to the wanted ones, of equals the first. It is nil where the context ended before any.
func (s *swapper) nearest(ctx context.Context, want *keptFigures, seeds [][32]byte, watch func(_, _ int)) *swapping {
	var (
		mu          sync.Mutex
		best        *swapping
		bestOff     float64
		begun, from int
	)
	next := func() (try int, more bool) {
		mu.Lock()
		defer mu.Unlock()
		if begun == len(seeds) || ctx.Err() != nil {
			return 0, false
		}
		if watch != nil {
			watch(begun, len(seeds))
		}
		begun++
		return begun - 1, true
	}
	judge := func(try int, t *swapping, off float64) {
		mu.Lock()
		defer mu.Unlock()
		if best == nil || off < bestOff || off == bestOff && try < from {
			best, bestOff, from = t, off, try
		}
	}

	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(seeds)) {
		wait.Go(func() {
			defer crash.Caught()
			for try, more := next(); more; try, more = next() {
				t := s.try(rand.New(rand.NewChaCha8(seeds[try])))
				kept := s.keptOf(t.places, t.templates, t.times, len(seeds) > 1)
				judge(try, t, kept.off(want))
			}
		})
	}
	wait.Wait()
	return best
}

// A swapper makes swaps of the places of one trace.
type swapper struct {
	r         *rand.Rand // of one swap
	k         int
	size      int
	labels    []label
	ends      []end
	templates []template
	domains   []uint16            // by label
	shapes    []shape             // by place
	times     []int64             // by place
	near      []int32             // by place: the one before it in its burst, which is about as long; or none
	arrivals  *arrival.Cascade    // of the whole trace; nil for a sample of its trees
	sourced   bool                // whether the source told sessions
	pairs     map[lengthPair]bool // of the trace
	came      []lengthPair        // those of the trace, in its order

	places  []place
	courses [courses]courseEnergy // those of the trace, with bursts where they have moved
}

// A swapping is one swap.
type swapping struct {
	*swapper
	places    []place
	templates []template
	under     []int32   // by place: it and all below it in the tree of its session
	from      [][]int32 // by place: the places whose size it has, in parts
	output    []int32   // by place: the place whose output it has
	by        []measure // by place: what of its size is exchanged,
	amount    []int64   // and how much of that it has
	common    commonLengths
}

// prepare keeps what the swap is to come to.
func (s *swapper) prepare() {
	s.sourced = slices.ContainsFunc(s.places, func(p place) bool { return p.join != joinless })
	s.pairs = map[lengthPair]bool{}
	for i := range s.places {
		pair := lengthPair{int64(s.shapes[i].tokens), s.places[i].output}
		s.pairs[pair], s.came = true, append(s.came, pair)
	}
	s.rareEdits()
	s.findNear()
}

// rareEdits makes branches of edits where a domain has too few of them for their growths to be exchanged.
func (s *swapper) rareEdits() {
	count := map[uint16]int{}
	for i := range s.places {
		if s.places[i].class == edits {
			count[s.domains[s.places[i].label]]++
		}
	}
	for i := range s.places {
		if p, sh := &s.places[i], &s.shapes[i]; p.class == edits && count[s.domains[p.label]] < 4*s.k {
			p.class = branches
			p.size = size{fresh: sh.length - sh.hit, tail: sh.tail}
		}
	}
}

// try makes a swap of its own by random numbers.
func (s *swapper) try(r *rand.Rand) *swapping {
	of := *s
	of.r = r
	s = of.shuffled(int64(movedAmong * s.k))
	s.courses = coursesOf(s.places, s.shapes, s.size, s.k)
	t := s.unswapped()
	t.dealTemplates()
	t.swapSizes()
	t.swapEndings()
	t.swapLabels()
	return t
}

func (s *swapper) unswapped() *swapping {
	t := &swapping{swapper: s, places: slices.Clone(s.places), templates: s.templates,
		under: subtrees(s.places, s.sourced)}
	t.from, t.by, t.amount = make([][]int32, len(s.places)), make([]measure, len(s.places)),
		make([]int64, len(s.places))
	t.common = t.commonLengths()
	return t
}

// shuffled moves each burst among so many requests, or five times as many as it has, and jobs that come by a clock
// among so many of their kind, but never before the places that they build on, and exchanges the gaps in them. Of
// several ways it takes the one whose counts vary as the trace's.
func (s *swapper) shuffled(among int64) *swapper {
	type order struct {
		places []place
		times  []int64
	}
	follows := followed(s.places, s.templates, s.times, s.k)
	heads, group := groupHeads(s.places, s.templates, follows, s.times, s.k)
	requests, with := burstSizes(follows), movesWith(s.places, follows, s.near, heads, s.k)

	groups := make([][]int, 1+len(s.templates))
	for head, of := range group {
		groups[of] = append(groups[of], head)
	}

	draw := func() order {
		slots := make([]int, len(heads)) // by head: whose time it takes
		by := make([]int64, len(heads))  // by head: how far it moves
		for _, of := range groups {
			keys := make([]dealt, len(of))
			for rank, head := range of {
				place, width := int64(heads[head]), max(among, movedTimes*requests[heads[head]])
				if group[head] > 0 {
					place, width = int64(rank), among
				}
				by[head] = s.r.Int64N(width<<16) - width<<15
				if other := with[head]; group[head] == group[other] {
					by[head] = by[other]
				}
				keys[rank] = dealt{key: place<<16 + by[head], place: int32(head)}
			}
			slices.SortFunc(keys, dealt.compare)
			for rank, d := range keys {
				slots[d.place] = of[rank]
			}
		}
		at := blurredHeads(heads, group, s.times, s.k, s.r)
		moved := make([]int64, len(heads))
		for head, slot := range slots {
			moved[head] = at[slot]
		}
		places, gaps := s.exchangedGaps(follows)
		return order{places, timed(places, follows, s.near, s.times, gaps, moved)}
	}
	if s.arrivals == nil {
		o := draw()
		return s.reordered(o.places, o.times)
	}
	o, _ := arrival.Nearest(s.arrivals, draw, func(o order) []int64 { return slices.Sorted(slices.Values(o.times)) })
	return s.reordered(o.places, o.times)
}

// exchangedGaps exchanges the gaps between places and those that they follow, with the pauses that go with them, and
// returns the places and the gaps.
func (s *swapper) exchangedGaps(follows []int32) ([]place, []int64) {
	type kind struct {
		join                   join
		waits, paused, clumped bool
	}
	var kinds numbering[kind]
	var alike [][]int32
	for i, up := range follows {
		if p := &s.places[i]; up != none {
			k := kinds.numberOf(kind{p.join, p.waits, p.pause != nil, up != p.parent && up != p.after})
			if int(k) == len(alike) {
				alike = append(alike, nil)
			}
			alike[k] = append(alike[k], int32(i))
		}
	}

	places, was := slices.Clone(s.places), gapsTo(follows, s.times)
	gaps := slices.Clone(was)
	for _, of := range alike {
		for window := range slices.Chunk(of, gapsTogether*s.k) {
			from, _ := gapsExchanged(instants(window, was), s.k, s.r)
			for i, j := range from {
				to, of := window[i], window[j]
				gaps[to], places[to].pause = was[of], s.places[of].pause
			}
		}
	}
	return places, gaps
}

// reordered is the swapper of places at other times.
func (s *swapper) reordered(places []place, times []int64) *swapper {
	out := *s
	order := byTime(times)
	at := make([]int32, len(s.places))
	for r, d := range order {
		at[d.place] = int32(r)
	}
	out.places, out.shapes, out.times, out.near = make([]place, len(order)), make([]shape, len(order)),
		make([]int64, len(order)), make([]int32, len(order))
	for r, d := range order {
		t := places[d.place]
		for _, up := range [...]*int32{&t.parent, &t.after} {
			if *up != none {
				*up = at[*up]
			}
		}
		out.places[r], out.shapes[r], out.times[r], out.near[r] = t, s.shapes[d.place], d.key, s.near[d.place]
		if up := s.near[d.place]; up != none {
			out.near[r] = at[up]
		}
	}
	return &out
}

// swapLabels mixes labels that fewer than k places have with those of places near
// them in the order, k in all, of the same domain.
func (t *swapping) swapLabels() {
	count := make([]int, len(t.labels))
	for i := range t.places {
		count[t.places[i].label]++
	}
	for from := range t.places {
		if count[t.places[from].label] >= t.k {
			continue
		}
		near := []int{from}
		domain := t.domains[t.places[from].label]
		for off := 1; len(near) < t.k && off < len(t.places); off++ {
			for _, i := range [...]int{from - off, from + off} {
				if i >= 0 && i < len(t.places) && t.domains[t.places[i].label] == domain {
					near = append(near, i)
				}
			}
		}
		to := near[t.r.IntN(len(near))]
		t.places[from].label, t.places[to].label = t.places[to].label, t.places[from].label
	}
}
