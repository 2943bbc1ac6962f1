package synth

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/longtest"
)

// A sequence yields each place after those that it builds on, and names their requests.
// One as long as the trace yields every place once: the first population's in order,
// others near theirs. A longer one yields each as often as others in whole passes, and a
// turn as many requests behind its parent as in the trace.
func TestSequences(t *testing.T) {
	_, places := swapperOf(t, talk{block: 8, models: 1, sessions: true}.rows(1, 500), trace.Meta{BlockSize: 8}, 10)
	n := len(places)
	for name, c := range map[string]struct {
		population, requests int
	}{"first": {0, n}, "second": {1, n}, "short": {0, n / 2}, "long": {0, 10 * n}, "second, long": {1, 7*n + 13}} {
		s := newSequence(places, c.population, int64(c.requests), rand.New(rand.NewPCG(1, 1)))
		at := make([]int32, c.requests)
		count := make([]int, n)
		moved, near, links := 0, 0, 0
		for r := range at {
			i, _, parent, after := s.nextPlace()
			at[r] = i
			count[i]++
			for _, up := range [...][2]int32{{places[i].parent, parent}, {places[i].after, after}} {
				if (up[0] == none) != (up[1] == none) || up[1] >= int32(r) || up[1] != none && at[up[1]] != up[0] {
					t.Fatalf("%s: request %d, of place %d, builds on request %d; want place %d", name, r, i, up[1], up[0])
				}
				if up[0] != none {
					links++
					lag, want := r-int(up[1]), int(i-up[0])
					if math.Abs(float64(lag-want)) <= 12+float64(want)/4 {
						near++
					}
				}
			}
			if int(i) != r {
				moved++
			}
			if d := int(i) - r; c.population == 1 && c.requests == n && (d > shuffleWindow || d < -2*shuffleWindow) {
				t.Errorf("%s: request %d is of place %d", name, r, i)
			}
		}
		if c.requests > n {
			// The last passes are not whole: what is cut off is no more than two of them.
			if least, most := slices.Min(count), slices.Max(count); least < c.requests/n-2 || most > c.requests/n+1 {
				t.Errorf("%s: places come from %d to %d times", name, least, most)
			}
			if near < links*9/10 {
				t.Errorf("%s: of %d links %d are about as long as in the trace", name, links, near)
			}
			continue
		}
		if slices.Max(count) > 1 || (moved > 0) != (c.population > 0) {
			t.Errorf("%s: %d moved, and one came %d times", name, moved, slices.Max(count))
		}
	}
}

// cvOf is the coefficient of variation of the counts of rows in whole windows, and their
// index of dispersion.
func cvOf(rows []trace.Request, window, span int64) (cv, idc float64) {
	counts := make([]float64, span/window)
	for i := range rows {
		if at := rows[i].ArrivalNS / window; int(at) < len(counts) {
			counts[at]++
		}
	}
	mean, square := 0.0, 0.0
	for _, c := range counts {
		mean += c / float64(len(counts))
	}
	for _, c := range counts {
		square += (c - mean) * (c - mean) / float64(len(counts)-1)
	}
	return math.Sqrt(square) / mean, square / mean
}

// Populations that are superposed vary less, as the square root of their number says,
// and their index of dispersion stays. With a shared course they vary as one.
func TestUsersSuperpose(t *testing.T) {
	longtest.Skip(t)
	var rows []trace.Request
	rng := rand.New(rand.NewPCG(1, 1))
	const span = 4000
	for at := range span { // the rate goes up and down every 400 s, and over the whole
		rate := 3 + 2*math.Sin(2*math.Pi*float64(at)/400) + 2*math.Sin(2*math.Pi*float64(at)/span)
		for range 10 {
			if rng.Float64() < rate/10 {
				rows = append(rows, trace.Request{ArrivalNS: int64(at)*1e9 + rng.Int64N(1e9), InputTokens: 5})
			}
		}
	}
	slices.SortFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
	m := fitted(t, rows, trace.Meta{}, 10, 1)
	mean := func(o Options) (cv, idc float64) {
		const runs = 6
		for seed := range uint64(runs) {
			o.Seed = seed
			c, i := cvOf(generated(t, m, o), 100e9, span*1e9)
			cv, idc = cv+c/runs, idc+i/runs
		}
		return cv, idc
	}
	one, oneIDC := mean(Options{})
	if source, _ := cvOf(rows, 100e9, span*1e9); math.Abs(one/source-1) > .1 {
		t.Errorf("one population has a CV of %.3f, the trace %.3f", one, source)
	}
	four, fourIDC := mean(Options{Users: 4})
	if ratio := four / one; ratio < .35 || ratio > .65 {
		t.Errorf("the CV of four is %.2f of that of one, want about a half", ratio)
	}
	if ratio := fourIDC / oneIDC; ratio < .5 || ratio > 1.6 {
		t.Errorf("the IDC of four is %.2f of that of one", ratio)
	}
	// The slow half is common, the fast one is not.
	shared, _ := mean(Options{Users: 4, SharedAbove: 800 * time.Second})
	if shared < four*1.15 || shared > one*.95 {
		t.Errorf("the CV of four with a shared course is %.3f; of one %.3f, of four apart %.3f", shared, one, four)
	}
}

// A course is turned, dealt or shared by its parts, whose time and counts stay.
func TestCourses(t *testing.T) {
	var parts []arrival.Part
	total, span := int64(0), int64(0)
	for i := range int64(40) {
		p := arrival.Part{Width: 100, Count: 60 + 7*(i%5) + min(i, 40-i)}
		if i == 39 {
			p.Width = 30
		}
		parts = append(parts, p)
		total, span = total+p.Count, span+p.Width
	}
	sums := func(c []arrival.Part) (counts, widths int64) {
		for _, p := range c {
			counts, widths = counts+p.Count, widths+p.Width
		}
		return counts, widths
	}
	r := rand.New(rand.NewPCG(1, 1))
	if got := course(parts, r, 1, span, span, 0); !slices.Equal(got, parts) {
		t.Errorf("one population: %v", got)
	}
	turned := course(parts, r, 3, span, span, 0)
	first := slices.Index(parts, turned[0])
	if !slices.Equal(turned, slices.Concat(parts[first:], parts[:first])) || first == 0 {
		t.Errorf("turned by %d: %v", first, turned)
	}
	shared := course(parts, r, 3, span, span, 1000)
	if counts, widths := sums(shared); counts != total || widths != span || slices.Equal(shared, parts) {
		t.Errorf("a shared course has %d in %d, want %d in %d", counts, widths, total, span)
	}
	for j := 5; j < 35; j += 5 { // its mean around each is the trace's
		got, _ := sums(shared[j-5 : j+6])
		want, _ := sums(parts[j-5 : j+6])
		if math.Abs(float64(got)/float64(want)-1) > .06 {
			t.Errorf("around part %d the shared course has %d, want %d", j, got, want)
		}
	}
	long := course(parts, r, 1, 5*span, span, 0)
	for pass := range 5 {
		got := slices.Clone(long[pass*len(parts) : (pass+1)*len(parts)])
		if slices.Equal(got, parts) {
			t.Errorf("pass %d is in order", pass)
		}
		want := slices.Clone(parts)
		for _, c := range [][]arrival.Part{got, want} {
			slices.SortFunc(c, func(a, b arrival.Part) int { return int(a.Count*1000 + a.Width - b.Count*1000 - b.Width) })
		}
		if !slices.Equal(got, want) {
			t.Errorf("pass %d is not of all parts", pass)
		}
	}
	if _, widths := sums(course(parts, r, 1, span/3, span, 0)); widths != span/3 {
		t.Errorf("a third takes %d of %d", widths, span)
	}
}
