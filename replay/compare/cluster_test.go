package compare

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/longtest"
)

func TestBars(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for v := int64(0); v < 512; v++ {
		if middleOf(barOf(v)) != float64(v) {
			t.Fatalf("%d has the middle %v", v, middleOf(barOf(v)))
		}
	}
	last := 0
	for range 100000 {
		v := rng.Int64N(report.MaxInstant) >> rng.IntN(50)
		if got := middleOf(barOf(v)); math.Abs(got-float64(v)) > 0.002*float64(v) {
			t.Fatalf("%d has the middle %v", v, got)
		}
		last = max(last, barOf(v))
	}
	if last<<groupBits > math.MaxUint32 {
		t.Fatal("a bar and a group do not fit into a key")
	}
}

// The values of the cells are those that were added, whatever was merged when.
func TestClusteredCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	var c clustered
	want := map[uint32]uint32{}
	for range 700_000 {
		group, v := rng.IntN(groups), rng.Int64N(50)*1000
		c.add(group, v)
		want[uint32(barOf(v))<<groupBits|uint32(group)]++
	}
	c.merge()
	if len(c.cells) != len(want) || !slices.IsSortedFunc(c.cells, func(a, b cell) int { return int(int64(a.key) - int64(b.key)) }) {
		t.Fatalf("%d cells of %d", len(c.cells), len(want))
	}
	for _, x := range c.cells {
		if want[x.key] != x.n {
			t.Fatalf("cell %d has %d, want %d", x.key, x.n, want[x.key])
		}
	}
}

// clustersOf makes an arm of sessions of so many requests, all of a session alike.
func clustersOf(t *testing.T, seed uint64, sessions, each int, digest string) *Clusters {
	rng := rand.New(rand.NewPCG(seed, 9))
	var rows []result.Result
	for s := range sessions {
		first := 100 + 50*rng.NormFloat64()
		for range each {
			r := resulttest.Answer(int64(len(rows)), 0, 0, max(int64(first*1000), 1)/1000)
			r.Session = trace.Ptr(int64(s))
			rows = append(rows, r)
		}
	}
	c := &Clusters{}
	if err := c.Add(result.Run{Source: result.Source{Workload: digest}}, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
		t.Fatal(err)
	}
	return c
}

var meanTTFT = metricOf(figure.Of(figure.Mean, figure.TTFT))

// The interval of a mean is as wide as theory has it for the number of sessions,
// not of requests: 2 · 2.576 · 50 ÷ √sessions ms at 99 %.
func TestResamplingTakesSessions(t *testing.T) {
	for _, each := range []int{1, 20} {
		a := clustersOf(t, 1, 400, each, "w")
		r := resample(a, clustersOf(t, 2, 400, each, "x"), 0.01).of(&meanTTFT)
		width, want := *r.A.High-*r.A.Low, 2*2.576*50/math.Sqrt(400)
		if r.Paired || math.Abs(width/want-1) > 0.15 {
			t.Errorf("%d requests a session: %v ms wide, want %v; paired %v", each, width, want, r.Paired)
		}
	}
}

// The same sessions drawn on both sides cancel; other ones do not.
func TestResamplingPairs(t *testing.T) {
	for digest, narrow := range map[string]bool{"w": true, "x": false} {
		r := resample(clustersOf(t, 1, 400, 3, "w"), clustersOf(t, 1, 400, 3, digest), 0.01).of(&meanTTFT)
		if width := *r.Change.High - *r.Change.Low; (width < 1e-9) != narrow || r.Paired != narrow {
			t.Errorf("%s: %v wide, paired %v", digest, width, r.Paired)
		}
	}
	if resample(clustersOf(t, 1, 5, 30, "w"), clustersOf(t, 1, 5, 30, "w"), 0.01).of(&meanTTFT) != nil {
		t.Error("five sessions were resampled")
	}
}

// Of 100 samples, at least 95 hold the truth between bounds of 99 %.
func TestResamplingCovers(t *testing.T) {
	longtest.Skip(t)
	held := 0
	for seed := range uint64(100) {
		a := clustersOf(t, 2*seed, 100, 1, "w")
		b := clustersOf(t, 2*seed+1, 100, 1, "x")
		if r := resample(a, b, 0.01).of(&meanTTFT); *r.Change.Low <= 0 && *r.Change.High >= 0 {
			held++
		}
	}
	if held < 95 {
		t.Errorf("%d of 100 intervals of 99 %% hold the truth", held)
	}
}

// Quantiles of a draw are those of its values, whether the start is below them or not.
func TestDrawnQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	c := &Clusters{}
	values := map[int][]int64{}
	for range 3000 {
		group, v := rng.IntN(40), rng.Int64N(500)
		v += int64(group) // groups differ, so that draws do
		v = min(v, 511)   // exact bars
		c.spreads[spreadTTFT].add(group, v)
		values[group] = append(values[group], v)
	}
	c.spreads[spreadTTFT].merge()
	c.spreads[spreadTTFT].seek()
	for draw := range 50 {
		var weights [groups]int64
		var all []int64
		for range 40 {
			g := rng.IntN(40)
			if draw%2 == 0 {
				g = rng.IntN(5) // far from the whole
			}
			weights[g]++
			all = append(all, values[g]...)
		}
		slices.Sort(all)
		c.measure(&weights, func(s resampledStat, got float64) {
			if s.quantile < 0 {
				return
			}
			if want := all[int(math.Round(s.quantile*float64(len(all)-1)))]; got != float64(want) {
				t.Fatalf("draw %d: quantile %v is %v, want %v", draw, s.quantile, got, want)
			}
		})
	}
}

// A stream of results that are made as they are read.
type endless struct {
	rng  *rand.Rand
	left int
	row  int64
	gaps [20]int64
}

func (e *endless) Read(rows []result.Result) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(rows), e.left)
	e.left -= n
	for i := range rows[:n] {
		e.row++
		at := int64(math.Exp(18 + 0.6*e.rng.NormFloat64()))
		r := result.Result{RowID: e.row, Session: trace.Ptr(e.row / 4), SentNS: trace.Ptr(int64(0)), FirstTokenNS: trace.Ptr(at), Events: 21,
			Output: trace.Ptr(int32(21))}
		for g := range e.gaps {
			e.gaps[g] = int64(math.Exp(16.5 + 0.3*e.rng.NormFloat64()))
			at += e.gaps[g]
		}
		r.GapsNS, r.LastTokenNS, r.DoneNS = e.gaps[:], &at, &at
		rows[i] = r
	}
	return n, nil
}

// BenchmarkClusters says what the resampling of a run of many requests takes, of
// both sides.
func BenchmarkClusters(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var sides [2]*Clusters
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range sides {
					sides[i] = &Clusters{}
					if err := sides[i].Add(result.Run{Source: result.Source{Workload: "w"}}, &endless{rng: rand.New(rand.NewPCG(1, uint64(i))), left: n}); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				began := time.Now()
				resample(sides[0], sides[1], 0.01)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/2e6, "MB/side")
				b.ReportMetric(time.Since(began).Seconds(), "s-to-draw")
			}
		})
	}
}

// Requests of a session that a parent joins to another are in the group of that one, and the times
// of sessions are those of the whole tree.
func TestClustersTakeTrees(t *testing.T) {
	var rows []result.Result
	for tree := range int64(40) {
		for part := range int64(2) {
			r := resulttest.Answer(int64(len(rows)), 1000*tree+100*part, 0, 10+tree, 20+tree)
			r.Session, r.Turn = trace.Ptr(2*tree+part), trace.Ptr(int32(0))
			if part == 1 {
				r.Parents = []int64{r.RowID - 1}
			}
			rows = append(rows, r)
		}
	}
	var c Clusters
	if err := c.Add(result.Run{}, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
		t.Fatal(err)
	}
	for tree := range int64(40) {
		group := groupOf(trace.Ptr(2*tree), 0)
		if c.spreads[spreadTTFT].count[group] != 2*c.spreads[spreadSession].count[group] || c.spreads[spreadSession].count[group] < 1 {
			t.Errorf("tree %d: %d requests and %d sessions in its group", tree, c.spreads[spreadTTFT].count[group], c.spreads[spreadSession].count[group])
		}
	}
	total := 0.0
	for _, sum := range c.spreads[spreadSession].sum {
		total += sum
	}
	if want := 40 * (100 + 20 + 19.5) * 1e6; math.Abs(total/want-1) > 1e-9 {
		t.Errorf("the sessions took %v, want %v", total, want)
	}
}
