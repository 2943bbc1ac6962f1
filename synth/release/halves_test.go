package release_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/sample"
)

// A halfResult says how well somebody who knows a few requests of a unit, with their times and lengths, tells whether
// it was in the source of a release. Of the source two releases are made, each of one half of the units. Everybody
// asked about is a member of one and no member of the other.
type halfResult struct {
	Known, Units    int     // requests that are known of each unit, and how many units are asked about
	AUC, Error      float64 // of telling members from others by how near rows are, 0.5 is chance; its standard error
	Members, Others float64 // share that exactly one released session matches in half octaves of the lengths
}

// found reports whether members can be told from others: by more than 0.05 of the area, or by 5 points more of them
// singled out, and three standard errors.
func (h *halfResult) found() bool {
	off, more := math.Abs(h.AUC-0.5), h.Members-h.Others
	sd := math.Sqrt((h.Members*(1-h.Members) + h.Others*(1-h.Others)) / float64(max(1, h.Units)))
	return off > 0.05 && off > 3*h.Error || more > 0.05 && more > 3*sd
}

// String is a line for people.
func (h halfResult) String() string {
	return fmt.Sprintf("%d requests known of one of %d tell with an AUC of %.3f (± %.3f), and single out %.1f %% of "+
		"members and %.1f %% of others", h.Known, h.Units, h.AUC, 2*h.Error, 100*h.Members, 100*h.Others)
}

// ofUnit tells the unit of a row, as a release does.
func ofUnit(unit string, meta trace.Meta, trunk, row int, r *trace.Request) int64 {
	switch {
	case unit == synth.UnitUser:
		return *r.User
	case unit == synth.UnitSession && meta.Sessions == "source":
		return *r.Session
	case unit == synth.UnitSession && len(r.Blocks) > trunk:
		return int64(r.Blocks[trunk])
	}
	return -1 - int64(row)
}

func halfOctave(n int32) int { return int(2 * math.Log2(1+float64(max(n, 0)))) }

// minutesApart is the distance of two rows, where a quarter octave of a length is as far as a minute.
func minutesApart(a, b *trace.Request) float64 {
	octaves := func(x, y int32) float64 {
		return math.Abs(math.Log2(1+float64(x)) - math.Log2(1+float64(y)))
	}
	return math.Abs(float64(a.ArrivalNS-b.ArrivalNS))/60e9 +
		4*(octaves(a.InputTokens, b.InputTokens)+octaves(a.OutputOr(0), b.OutputOr(0)))
}

// A drawing makes a release of rows and draws from it, in order of time.
type drawing func(t testing.TB, rows []trace.Request, meta trace.Meta, o release.Options, seed uint64) []trace.Request

func drawnAgain(t testing.TB, rows []trace.Request, meta trace.Meta, o release.Options, seed uint64) []trace.Request {
	o.Noise = dp.NewNoiseFrom(rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}))
	m, _, err := release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Generate(release.Drawing{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	var out trace.SliceWriter[trace.Request]
	if _, err := trace.Copy(&out, w.Reader()); err != nil {
		t.Fatal(err)
	}
	return out.Rows
}

// halfTest plays the test with a release of each half.
func halfTest(t testing.TB, rows []trace.Request, meta trace.Meta, o release.Options, seed uint64,
	draw drawing) (h halfResult) {
	rng := rand.New(rand.NewPCG(seed, 0x4a1f))
	salt, trunk := rng.Uint64(), max(0, o.TrunkBlocks)
	o.Unchecked = true
	key := func(i int) int64 { return ofUnit(o.Unit, meta, trunk, i, &rows[i]) }
	half := func(unit int64) int { return int(sample.Mix64(salt^uint64(unit)) & 1) }

	of := map[int64][]int{} // rows of each unit
	for i := range rows {
		of[key(i)] = append(of[key(i)], i)
	}
	var units []int64
	for h.Known = 4; ; h.Known-- { // the most requests that a hundred units have
		units = units[:0]
		for unit, all := range of {
			if len(all) >= h.Known {
				units = append(units, unit)
			}
		}
		if len(units) >= 100 || h.Known == 1 {
			break
		}
	}
	slices.Sort(units)
	rng.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
	units = units[:min(len(units), 2000)]
	h.Units = len(units)
	known := make([][]int, len(units))
	for i, unit := range units {
		for _, at := range rng.Perm(len(of[unit]))[:h.Known] {
			known[i] = append(known[i], of[unit][at])
		}
	}

	near, alone := [2][]float64{}, [2]int{} // members, others
	for side := range 2 {
		var part []trace.Request
		for i := range rows {
			if half(key(i)) == side {
				part = append(part, rows[i])
			}
		}
		released := draw(t, part, meta, o, seed<<1|uint64(side))
		sessions := map[int64]map[[2]int]int{} // how often a released session has each pair of half octaves
		for i := range released {
			r, session := &released[i], int64(-1-i)
			if r.Session != nil {
				session = *r.Session
			}
			if sessions[session] == nil {
				sessions[session] = map[[2]int]int{}
			}
			sessions[session][[2]int{halfOctave(r.InputTokens), halfOctave(r.OutputOr(0))}]++
		}
		for i, unit := range units {
			member := half(unit) ^ side
			sum, need := 0.0, map[[2]int]int{}
			for _, at := range known[i] {
				r, best := &rows[at], math.Inf(1)
				for j := range released {
					best = min(best, minutesApart(r, &released[j]))
				}
				sum += best
				need[[2]int{halfOctave(r.InputTokens), halfOctave(r.OutputOr(0))}]++
			}
			near[member] = append(near[member], sum)
			matches := 0
			for _, has := range sessions {
				all := true
				for pair, n := range need {
					all = all && has[pair] >= n
				}
				if all {
					matches++
				}
			}
			if matches == 1 {
				alone[member]++
			}
		}
	}

	n, nearer := float64(h.Units), 0.0
	for _, m := range near[0] {
		for _, other := range near[1] {
			switch {
			case m < other:
				nearer++
			case m == other:
				nearer += 0.5
			}
		}
	}
	h.AUC, h.Error = nearer/n/n, math.Sqrt((2*n+1)/(12*n*n))
	h.Members, h.Others = float64(alone[0])/n, float64(alone[1])/n
	return h
}

// Nobody tells from a release who was in its source. Rows of the source tell it, even with lengths in half octaves and
// times moved within a second, and so does a third of them.
func TestHalves(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	var rows []trace.Request
	for s := range int64(400) {
		for turn := range int32(1 + rng.IntN(6)) {
			rows = append(rows, trace.Request{ArrivalNS: int64(len(rows)) * 1e9, Session: trace.Ptr(s),
				Turn: trace.Ptr(turn),
				User: trace.Ptr(s % 150), Status: trace.StatusOK, InputTokens: int32(20 + rng.ExpFloat64()*500),
				OutputTokens: trace.Ptr(int32(5 + rng.ExpFloat64()*100))})
		}
	}
	meta := trace.Meta{Tier: "internal", Sessions: "source", Capture: trace.RelativeCapture(0, time.Hour)}
	leak := func(every int64) drawing {
		coarse := func(n int32) int32 { return int32(math.Exp2(float64(halfOctave(n)) / 2)) }
		return func(t testing.TB, rows []trace.Request, meta trace.Meta, o release.Options,
			seed uint64) []trace.Request {
			rng, out := rand.New(rand.NewPCG(seed, 1)), drawnAgain(t, rows, meta, o, seed)
			for i := range rows {
				if r := rows[i]; *r.Session%every == 0 {
					out = append(out, trace.Request{ArrivalNS: r.ArrivalNS + rng.Int64N(1e9),
						Session:     trace.Ptr(*r.Session + 1e6),
						InputTokens: coarse(r.InputTokens), OutputTokens: trace.Ptr(coarse(*r.OutputTokens))})
				}
			}
			slices.SortStableFunc(out, func(a, b trace.Request) int { return cmp.Compare(a.ArrivalNS, b.ArrivalNS) })
			return out
		}
	}
	for name, c := range map[string]struct {
		unit string
		draw drawing
		want bool
	}{
		"users":                   {synth.UnitUser, drawnAgain, false},
		"sessions":                {synth.UnitSession, drawnAgain, false},
		"requests":                {synth.UnitRequest, drawnAgain, false},
		"coarser rows":            {synth.UnitSession, leak(1), true},
		"coarser rows of a third": {synth.UnitSession, leak(3), true},
	} {
		h := halfTest(t, rows, meta, release.Options{Unit: c.unit, TrunkBlocks: -1}, 1, c.draw)
		t.Logf("%s: %s", name, h)
		if h.found() != c.want || h.Units < 100 || c.unit == synth.UnitRequest != (h.Known == 1) && h.Known != 4 {
			t.Errorf("%s: %s", name, h)
		}
	}
}

// What is found needs both to be beyond its limit and beyond chance.
func TestHalvesAtTheLimit(t *testing.T) {
	for _, c := range []struct {
		h    halfResult
		want bool
	}{
		{halfResult{Units: 500, AUC: 0.54, Error: 0.001}, false}, {halfResult{Units: 500, AUC: 0.56,
			Error: 0.01}, true},
		{halfResult{Units: 500, AUC: 0.44, Error: 0.01}, true}, {halfResult{Units: 500, AUC: 0.6, Error: 0.04}, false},
		{halfResult{Units: 500, AUC: 0.5, Members: 0.3, Others: 0.11}, true}, {halfResult{Units: 50, AUC: 0.5,
			Members: 0.2, Others: 0.1}, false},
		{halfResult{Units: 5000, AUC: 0.5, Members: 0.14, Others: 0.1}, false}, {halfResult{Units: 500, AUC: 0.5,
			Members: 0.1, Others: 0.3}, false},
	} {
		if got := c.h.found(); got != c.want {
			t.Errorf("%+v: %v", c.h, got)
		}
	}
}

// The half test of the Mooncake conversation trace, by the default budget. REPRISE_TEST_DP=1 plays it eight times,
// with other halves and noise.
func TestHalvesOfPublished(t *testing.T) {
	runs := uint64(1)
	if os.Getenv("REPRISE_TEST_DP") != "" {
		runs = 8
	} else {
		longtest.Skip(t)
	}
	t.Parallel()
	rows := published(t, "mooncake_conversation.jsonl")
	var said []string
	for seed := range runs {
		h := halfTest(t, rows, metaOf(time.Hour), release.Options{Unit: synth.UnitSession, TrunkBlocks: 1}, seed,
			drawnAgain)
		said = append(said, h.String())
		if h.found() {
			t.Errorf("it can be told who was in the source: %s", h)
		}
	}
	t.Log(strings.Join(said, "\n"))
}
