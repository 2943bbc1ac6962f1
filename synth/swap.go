package synth

import (
	"bufio"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"reprise/trace/sample"
)

// Settings of the swapping. Of several swaps the one counts whose figures are nearest
// to the trace's: the choice tells at most the binary logarithm of their number in bits
// about the swap. A small trace needs more of them and takes less time for each.
const (
	swapTriesMost = 64
	triesRequests = 240_000 // requests in all of them together
)

// swap exchanges the parts of places: links, sizes, endings, labels that are rare, and
// last the order.
//
// What is left: each part still is one that occurred, so this is no differential
// privacy, and a value far from all others stays far. A place keeps its user, and about
// its place in the order.
func (m *Model) swap(ctx context.Context, e *extractor, entropy io.Reader) error {
	if entropy == nil {
		entropy = crand.Reader
	}
	src := &entropySource{r: bufio.NewReader(entropy)}
	s := swapper{r: rand.New(src), k: m.kSwap, size: m.meta.BlockSize, templates: m.templates, labels: m.labels, ends: m.ends, domains: domainsOf(m.labels), shapes: e.shapes, times: e.times}
	s.places = slices.Clone(m.places)
	s.prepareLinks()
	tries := 1
	if s.size > 0 {
		tries = max(1, min(swapTriesMost, triesRequests/len(m.places)))
	}
	want := s.keptOf(m.places, m.templates, tries > 1)
	best := -1.0
	for range tries {
		if err := ctx.Err(); err != nil {
			return err
		}
		try := s.try()
		kept := s.keptOf(try.places, try.templates, tries > 1)
		off := kept.off(&want)
		if best >= 0 && off >= best {
			continue
		}
		best = off
		m.places, m.templates, m.swapped = try.places, try.templates, try.did
	}
	if src.err != nil {
		return fmt.Errorf("read random numbers for swapping: %w", src.err)
	}
	return nil
}

// entropySource draws from a reader and keeps its error, after which the draws
// are worth nothing. They still differ: package rand draws again and again until
// a number suits it.
type entropySource struct {
	r    io.Reader
	err  error
	last uint64
}

func (e *entropySource) Uint64() uint64 {
	var b [8]byte
	if e.err == nil {
		_, e.err = io.ReadFull(e.r, b[:])
	}
	if e.err != nil {
		e.last += sample.Golden
		return sample.Mix64(e.last)
	}
	return binary.LittleEndian.Uint64(b[:])
}

// A swapper makes swaps of the places of one trace.
type swapper struct {
	r         *rand.Rand
	k         int
	size      int
	labels    []label
	ends      []end
	templates []template
	domains   []uint16            // by label
	shapes    []shape             // by place
	times     []int64             // by place
	sourced   bool                // whether the source told sessions
	pairs     map[lengthPair]bool // of the trace
	came      []lengthPair        // those of the trace, in its order

	places         []place // with the links cut that have too few alike
	begin          []int32 // by place: the template that its prompt begins with in the trace, or none
	onward         []bool  // by place: it opens on the template that its session goes on with
	wires          []wire
	strays         []wire    // that lead to any of some places
	clock          []float64 // blocks referenced before each place
	cut            int
	turns, prompts []int32               // of the sessions, and of the trees of prompts, as they were
	lags           lagEnergy             // that of the trace, which the exchange is to come to
	strayLags      lagEnergy             // the same of the strays
	courses        [courses]courseEnergy // those of the trace
}

// A swapping is one swap.
type swapping struct {
	*swapper
	places    []place
	templates []template
	did       swapFigures
	under     []int32   // by place: it and all below it in the tree of its session
	from      [][]int32 // by place: the places whose size it has, in parts
	output    []int32   // by place: the place whose output it has
	common    commonLengths
}

func (s *swapper) try() *swapping {
	s = s.shuffled(int64(2 * s.k))
	t := &swapping{swapper: s, places: slices.Clone(s.places), templates: s.templates, from: make([][]int32, len(s.places)), common: s.commonLengths()}
	t.did = swapFigures{Links: len(s.wires) + len(s.strays) + s.cut, Cut: s.cut}
	t.leadStrays()
	t.exchangeLinks()
	t.goOnward()
	t.dealTemplates()
	t.swapSizes()
	t.swapEndings()
	t.swapLabels()
	return t
}

// shuffled moves each place among so many neighbours, but never before what it builds
// on or may. It comes before the exchange, which then mends what lags it changes: moved
// last, short ones would be another's.
func (s *swapper) shuffled(among int64) *swapper {
	keys := make([]dealt, len(s.places))
	next := 0 // of the strays, which are in the order of their places
	for i := range s.places {
		key := int64(i)<<16 + s.r.Int64N(among<<16)
		follow := func(up int32) {
			if up != none {
				key = max(key, keys[up].key+1)
			}
		}
		follow(s.places[i].parent)
		follow(s.places[i].after)
		for ; next < len(s.strays) && int(s.strays[next].place) == i; next++ {
			for _, up := range s.strays[next].near {
				follow(up)
			}
		}
		keys[i] = dealt{key: key, place: int32(i)}
	}
	slices.SortFunc(keys, dealt.compare)
	return s.reordered(keys)
}

// reordered is the swapper of the places in another order. Places come at the times of
// those that stood there.
func (s *swapper) reordered(keys []dealt) *swapper {
	out := *s
	at := make([]int32, len(s.places))
	for r, d := range keys {
		at[d.place] = int32(r)
	}
	out.places, out.shapes, out.onward = make([]place, len(keys)), make([]shape, len(keys)), make([]bool, len(keys))
	for r, d := range keys {
		t := s.places[d.place]
		for _, up := range [...]*int32{&t.parent, &t.after} {
			if *up != none {
				*up = at[*up]
			}
		}
		out.places[r], out.shapes[r], out.onward[r] = t, s.shapes[d.place], s.onward[d.place]
	}
	out.wires, out.strays = slices.Clone(s.wires), slices.Clone(s.strays)
	for w := range out.wires {
		out.wires[w].place = at[out.wires[w].place]
	}
	for w := range out.strays {
		x := &out.strays[w]
		x.place, x.near = at[x.place], slices.Clone(x.near)
		for i := range x.near {
			x.near[i] = at[x.near[i]]
		}
	}
	out.countBlocks()
	return &out
}

// countBlocks sets the clock.
func (s *swapper) countBlocks() {
	s.clock = make([]float64, len(s.places))
	blocks := 0.0
	for i := range s.places {
		s.clock[i] = blocks
		blocks += float64(max(1, s.shapes[i].length))
	}
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
