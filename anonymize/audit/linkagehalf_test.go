package audit

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/synth/release"
	"reprise/trace"
	"reprise/trace/longtest"
)

// Sessions that are drawn cannot be told from others; rows of the source can, even with
// lengths in half octaves and times moved within a second, and so can a sixth of them.
func TestHalves(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	src := linkHouse(t)
	coarse := func(n int32) int32 { return int32(math.Exp2(float64(halfOctave(n)) / 2)) }
	leak := func(every int64) func(context.Context, anonymize.Source, release.Options, uint64) (trace.Reader[trace.Request], error) {
		return func(ctx context.Context, src anonymize.Source, o release.Options, seed uint64) (trace.Reader[trace.Request], error) {
			rng := rand.New(rand.NewPCG(seed, 1))
			drawn, err := drawSessions(ctx, src, o, seed)
			if err != nil {
				return nil, err
			}
			var out trace.SliceWriter[trace.Request]
			if _, err := trace.Copy(&out, drawn); err != nil {
				return nil, err
			}
			err = eachRow(ctx, src, func(_ int64, r *trace.Request) error {
				if *r.Session%every == 0 {
					out.Rows = append(out.Rows, trace.Request{ArrivalNS: r.ArrivalNS + rng.Int64N(1e9), Session: trace.Ptr(*r.Session + 1e6), InputTokens: coarse(r.InputTokens), OutputTokens: trace.Ptr(coarse(*r.OutputTokens))})
				}
				return nil
			})
			slices.SortStableFunc(out.Rows, func(a, b trace.Request) int { return cmp.Compare(a.ArrivalNS, b.ArrivalNS) })
			return &trace.SliceReader[trace.Request]{Rows: out.Rows}, err
		}
	}
	for name, c := range map[string]struct {
		maker
		unit string
		want Status
	}{
		"users":                   {maker{}, anonymize.UnitUser, Pass},
		"sessions":                {maker{}, anonymize.UnitSession, Pass},
		"requests":                {maker{}, anonymize.UnitRequest, Pass},
		"coarser rows":            {maker{draw: leak(1)}, anonymize.UnitSession, Fail},
		"coarser rows of a sixth": {maker{draw: leak(3)}, anonymize.UnitSession, Fail},
	} {
		drawn := drawnCase(t, src, c.unit, nil)
		drawn.maker = c.maker
		f := linkage(t.Context(), drawn)
		h, _ := f.Figures["half_test"].(halfResult)
		if f.Status != c.want || h.Sessions < 100 || c.unit == anonymize.UnitRequest != (h.Known == 1) && h.Known != 4 {
			t.Errorf("%s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
	few := drawnCase(t, linkTrace(t, trace.Meta{Tier: anonymize.Internal, Capture: trace.RelativeCapture(0, time.Hour)}, population(3, 900)[:450]), anonymize.UnitRequest, nil)
	few.Output.Meta["capture_ids"] = "a"
	few.Internal.Meta.Captures = "b"
	if f := linkage(t.Context(), few); !f.broken || !strings.Contains(f.Why, "another capture") {
		t.Errorf("of another capture: %+v", f)
	}
	h, err := few.halfTest(t.Context(), sliceSource(population(3, 90)[:40]), release.Options{Unit: anonymize.UnitRequest})
	if err != nil || !reflect.DeepEqual(h, halfResult{Known: 1, Sessions: 40}) {
		t.Errorf("of forty requests: %+v, %v", h, err)
	}
}

// What is found needs both to be beyond its limit and beyond chance.
func TestHalvesAtTheLimit(t *testing.T) {
	for _, c := range []struct {
		h    halfResult
		want bool
	}{
		{halfResult{Sessions: 500, AUC: 0.54, Error: 0.001}, false}, {halfResult{Sessions: 500, AUC: 0.56, Error: 0.01}, true},
		{halfResult{Sessions: 500, AUC: 0.44, Error: 0.01}, true}, {halfResult{Sessions: 500, AUC: 0.6, Error: 0.04}, false},
		{halfResult{Sessions: 500, AUC: 0.5, Members: 0.3, Others: 0.11}, true}, {halfResult{Sessions: 50, AUC: 0.5, Members: 0.2, Others: 0.1}, false},
		{halfResult{Sessions: 5000, AUC: 0.5, Members: 0.14, Others: 0.1}, false}, {halfResult{Sessions: 500, AUC: 0.5, Members: 0.1, Others: 0.3}, false},
	} {
		if got := c.h.Found(); got != c.want {
			t.Errorf("%+v: %v", c.h, got)
		}
	}
}

// The nearest row is the one that a look at all finds, and the area is the share of pairs.
func TestNearestRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	row := func() knownRow {
		return knownRow{at: rng.Int64N(600e9), in: rng.Int32N(5000), out: rng.Int32N(300)}
	}
	var rows []knownRow
	for range 300 {
		rows = append(rows, row())
	}
	slices.SortFunc(rows, func(a, b knownRow) int { return cmp.Compare(a.at, b.at) })
	var near [2][]float64
	for i := range 200 {
		k, want := row(), math.Inf(1)
		for i := range rows {
			want = min(want, math.Abs(float64(rows[i].at-k.at))/60e9+k.octaves(&rows[i]))
		}
		got := nearestRow(rows, &k)
		if got != want {
			t.Fatalf("%v, want %v", got, want)
		}
		near[i%2] = append(near[i%2], math.Round(4*got))
	}
	want := 0.0
	for _, m := range near[0] {
		for _, o := range near[1] {
			switch {
			case m < o:
				want++
			case m == o:
				want += 0.5
			}
		}
	}
	if got := nearer(near[0], near[1]); math.Abs(got-want/100/100) > 1e-12 {
		t.Errorf("an area of %v, want %v", got, want/100/100)
	}
}

// Copies are counted with what chance gives within an octave of both lengths: by hand.
func TestCopiedPairs(t *testing.T) {
	of := func(pairs ...[2]int32) (rows []trace.Request) {
		for _, p := range pairs {
			rows = append(rows, trace.Request{InputTokens: p[0], OutputTokens: trace.Ptr(p[1])})
		}
		return rows
	}
	src := sliceSource(of([2]int32{8, 4}, [2]int32{9, 5}, [2]int32{9, 5}, [2]int32{100, 1}))
	out := sliceSource(of([2]int32{8, 5}, [2]int32{9, 4}, [2]int32{9, 5}, [2]int32{15, 7}, [2]int32{100, 1}, [2]int32{300, 300}))
	got, err := copiedPairs(t.Context(), src, out)
	// Of the four of 8 to 15 by 4 to 7: one 8 and one 4, two 9 and two 5. And (100, 1) is alone.
	if want := (pairCopies{Rows: 6, Copied: 2, Chance: 1./4 + 2.*2/4 + 1}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, c := range []struct {
		p    pairCopies
		want bool
	}{{pairCopies{1000, 100, 97}, false}, {pairCopies{1000, 40, 10}, true}, {pairCopies{1000, 20, 10}, false}, {pairCopies{100000, 540, 100}, false}} {
		if c.p.Beyond() != c.want {
			t.Errorf("%+v: %v", c.p, !c.want)
		}
	}
	house := linkHouse(t)
	copied := drawnCase(t, house, anonymize.UnitUser, func(rows []trace.Request) {
		_ = eachRow(t.Context(), sourceOf(house), func(i int64, r *trace.Request) error {
			if i%20 == 0 && int(i) < len(rows) {
				rows[i].InputTokens, rows[i].OutputTokens = r.InputTokens, r.OutputTokens
			}
			return nil
		})
	})
	if f := linkage(t.Context(), copied); f.Status != Fail || !strings.Contains(f.Why, "rows of the source come out") {
		t.Errorf("a twentieth copied: %s, %s", f.Status, f.Why)
	}
}
