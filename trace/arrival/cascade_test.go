package arrival

import (
	"bufio"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// scales are the windows of the index of dispersion, in seconds.
var scales = []float64{0.1, 0.5, 1, 5, 10, 30, 60, 120, 300}

// idc is the variance of the counts in whole windows over their mean.
func idc(times []int64, span int64, window float64) float64 {
	w := int64(window * 1e9)
	counts := make([]float64, span/w)
	for _, t := range times {
		if i := t / w; i < int64(len(counts)) {
			counts[i]++
		}
	}
	mean, m2 := 0., 0.
	for i, c := range counts {
		d := c - mean
		mean += d / float64(i+1)
		m2 += d * (c - mean)
	}
	return m2 / float64(len(counts)-1) / mean
}

// gapCV is the coefficient of variation of the gaps.
func gapCV(times []int64) float64 {
	mean, m2 := 0., 0.
	for i := 1; i < len(times); i++ {
		g := float64(times[i] - times[i-1])
		d := g - mean
		mean += d / float64(i)
		m2 += d * (g - mean)
	}
	return math.Sqrt(m2/float64(len(times)-2)) / mean
}

// zeroGaps is the share of gaps that are 0.
func zeroGaps(times []int64) float64 {
	zero := 0
	for i := 1; i < len(times); i++ {
		if times[i] == times[i-1] {
			zero++
		}
	}
	return float64(zero) / float64(len(times)-1)
}

// distance is the mean of |log2| of the ratios of the index of dispersion.
func distance(a, b []int64, span int64) float64 {
	sum := 0.
	for _, s := range scales {
		sum += math.Abs(math.Log2(idc(a, span, s) / idc(b, span, s)))
	}
	return sum / float64(len(scales))
}

func azureCode(t testing.TB) ([]int64, int64) {
	f, err := os.Open("../../../shared/data/azure_llm_2023_code.csv")
	if err != nil {
		t.Skip("no Azure trace at ../shared/data")
	}
	defer f.Close()
	recs, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var times []int64
	for _, rec := range recs[1:] {
		at, err := time.Parse("2006-01-02 15:04:05.9999999", rec[0])
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, at.UnixNano())
	}
	return fromStart(times)
}

func mooncake(t testing.TB) ([]int64, int64) {
	f, err := os.Open("../../../shared/data/mooncake_conversation.jsonl")
	if err != nil {
		t.Skip("no Mooncake trace at ../shared/data")
	}
	defer f.Close()
	var times []int64
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct{ Timestamp int64 }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		times = append(times, row.Timestamp*1e6)
	}
	return fromStart(times)
}

func fromStart(times []int64) ([]int64, int64) {
	slices.Sort(times)
	first := times[0]
	for i := range times {
		times[i] -= first
	}
	return times, times[len(times)-1] + 1000
}

func fitted(t testing.TB, times []int64, span int64) *Cascade {
	t.Helper()
	c, err := FitCascade(times, span, 10)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func poissonTimes(t testing.TB, spec string, n int) ([]int64, int64) {
	p := processOf(t, spec, 7)
	times := make([]int64, n)
	at := int64(0)
	for i := range times {
		at += int64(p.Next())
		times[i] = at
	}
	return fromStart(times)
}

// bursty is a Poisson process whose rate is the product of three on-off
// processes, of sojourns of about 0.3, 5 and 60 s.
func bursty(seed uint64, span int64) []int64 {
	r := Stream(seed, "bursty")
	rates := [3]float64{0.25, 0.25, 0.25}
	var times []int64
	for step := int64(0); step < span; step += 1e7 { // 10 ms
		rate := 40.
		for i, sojourn := range []float64{0.3, 5, 60} {
			if r.Float64() < 0.01/sojourn {
				rates[i] = 2 - rates[i]
			}
			rate *= rates[i]
		}
		for range 4 {
			if r.Float64() < rate*0.01/4 {
				times = append(times, step+r.Int64N(1e7))
			}
		}
	}
	slices.Sort(times)
	return times
}

// The published trace keeps its burstiness over more than three decades of time.
func TestCascadeKeepsAzureCode(t *testing.T) {
	times, span := azureCode(t)
	c := fitted(t, times, span)
	if width := span >> c.levels; width > 50e6 {
		t.Errorf("the finest bins are %v wide", time.Duration(width))
	}
	want := gapCV(times)
	var meanDistance, meanCV float64
	for seed := range uint64(5) {
		made := timesOf(c, Stream(seed, "c"), len(times), span)
		d, cv := distance(made, times, span), gapCV(made)
		t.Logf("seed %d: mean |log2 IDC ratio| %.3f, CV %.2f for %.2f", seed, d, cv, want)
		meanDistance += d / 5
		meanCV += cv / 5
		if math.Abs(cv/want-1) > 0.2 {
			t.Errorf("seed %d: CV %.2f, want %.2f", seed, cv, want)
		}
	}
	t.Logf("mean: %.3f, CV %.2f", meanDistance, meanCV)
	if meanDistance > 0.2 {
		t.Errorf("mean |log2 IDC ratio| %.3f", meanDistance)
	}
	if math.Abs(meanCV/want-1) > 0.1 {
		t.Errorf("mean CV %.2f, want %.2f", meanCV, want)
	}
}

// A clock of 3 s ticks, on which ten requests come at once.
func TestCascadeKeepsTicks(t *testing.T) {
	times, span := mooncake(t)
	c := fitted(t, times, span)
	for seed := range uint64(5) {
		made := timesOf(c, Stream(seed, "c"), len(times), span)
		d, zero := distance(made, times, span), zeroGaps(made)
		for i := 1; i < len(made); i++ { // as the source, within 3 ms of its clock
			if gap := (made[i] - made[0] + 10e6) % 3e9; gap > 20e6 {
				t.Fatalf("seed %d: instant %d is %d ns off its tick", seed, i, gap-10e6)
			}
		}
		t.Logf("seed %d: mean |log2 IDC ratio| %.3f, zero gaps %.3f for %.3f, CV %.2f for %.2f", seed, d, zero, zeroGaps(times), gapCV(made), gapCV(times))
		if d > 0.2 || math.Abs(zero-zeroGaps(times)) > 0.01 {
			t.Errorf("seed %d: mean |log2 IDC ratio| %.3f, zero gaps %.3f", seed, d, zero)
		}
	}
}

func TestCascadeOfPoissonIsPoisson(t *testing.T) {
	times, span := poissonTimes(t, "poisson:20", 80_000)
	made := timesOf(fitted(t, times, span), Stream(1, "c"), len(times), span)
	for _, s := range scales {
		windows := float64(span) / 1e9 / s
		if got := idc(made, span, s); math.Abs(got-1) > 0.05+4/math.Sqrt(windows) {
			t.Errorf("IDC over %g s is %.3f", s, got)
		}
	}
	if cv := gapCV(made); math.Abs(cv-1) > 0.04 {
		t.Errorf("CV of the gaps %.3f", cv)
	}
}

func TestCascadeKeepsBursts(t *testing.T) {
	const span = 4 * 3600e9
	times := bursty(1, span)
	c := fitted(t, times, span)
	for seed := range uint64(3) {
		made := timesOf(c, Stream(seed, "c"), len(times), span)
		for _, s := range scales {
			if want, got := idc(times, span, s), idc(made, span, s); math.Abs(math.Log2(got/want)) > 0.5 {
				t.Errorf("seed %d: IDC over %g s is %.2f, want %.2f", seed, s, got, want)
			}
		}
	}
}

// Phases of 20 s and pauses of 100 s do not end at the edges of bins.
func TestCascadeKeepsPhases(t *testing.T) {
	times, span := poissonTimes(t, "onoff:20,on=20s,off=100s", 60_000)
	c := fitted(t, times, span)
	mean := 0.
	for seed := range uint64(5) {
		mean += distance(timesOf(c, Stream(seed, "c"), len(times), span), times, span) / 5
	}
	t.Logf("mean |log2 IDC ratio| %.3f", mean)
	if mean > 0.11 {
		t.Errorf("mean |log2 IDC ratio| %.3f", mean)
	}
}

// A burst whose neighbours are equal comes early as often as late.
func TestCascadeForgetsPlaces(t *testing.T) {
	times := []int64{5e9, 5e9, 5e9, 6e9, 6e9, 6e9}
	c := fitted(t, times, 100e9)
	r, early := Stream(1, "c"), 0
	for range 2000 {
		if timesOf(c, r, len(times), 100e9)[0] < 50e9 {
			early++
		}
	}
	if math.Abs(float64(early)-1000) > 120 {
		t.Errorf("%d of 2000 bursts are early", early)
	}
}

// timesOf draws n instants within span: the parts of c, again and again.
func timesOf(c *Cascade, r *rand.Rand, n int, span int64) []int64 {
	return c.Times(r, n, Repeat(c.Parts(), span))
}

// checkTimes holds what every draw promises.
func checkTimes(t *testing.T, made []int64, n int, span int64) {
	t.Helper()
	if len(made) != max(n, 0) {
		t.Fatalf("%d instants, want %d", len(made), n)
	}
	if !slices.IsSorted(made) || n > 0 && (made[0] < 0 || made[n-1] >= span) {
		t.Fatalf("not ascending in [0, %d)", span)
	}
}

func TestCascadeTimesAnyCountAndSpan(t *testing.T) {
	r := Stream(3, "property")
	for range 30 {
		fitSpan := int64(1000) << r.IntN(30)
		times := make([]int64, 2+r.IntN(400))
		for i := range times {
			times[i] = r.Int64N(fitSpan) >> r.IntN(12)
		}
		slices.Sort(times)
		c := fitted(t, times, fitSpan)
		checkTimes(t, timesOf(c, r, len(times), fitSpan), len(times), fitSpan)
		for _, span := range []int64{1, 2 + r.Int64N(fitSpan), fitSpan + 1, 7*fitSpan + r.Int64N(fitSpan), math.MaxInt64} {
			n := r.IntN(2000)
			checkTimes(t, timesOf(c, r, n, span), n, span)
		}
	}
}

// A longer span repeats the coarse shape, with as many arrivals each time.
func TestCascadeContinues(t *testing.T) {
	const span = 3600e9
	times := bursty(2, span)
	c := fitted(t, times, span)
	n := len(times)
	made := timesOf(c, Stream(1, "c"), 2*n, 2*span)
	count := func(times []int64, from, to int64) int {
		i, _ := slices.BinarySearch(times, from)
		j, _ := slices.BinarySearch(times, to)
		return j - i
	}
	for period := range int64(2) {
		if got := count(made, period*span, (period+1)*span); got != n {
			t.Errorf("period %d holds %d, want %d", period, got, n)
		}
		from := period * span
		for k, p := range c.Parts() {
			if got := count(made, from, from+p.Width); int64(got) != p.Count {
				t.Errorf("period %d, part %d holds %d, want %d", period, k, got, p.Count)
			}
			from += p.Width
		}
	}
	if slices.Equal(made[:n], made[n:2*n]) {
		t.Error("the second period is the first")
	}
}

// A fifth of the source's arrivals are as bursty as a random fifth of them.
func TestCascadeThins(t *testing.T) {
	const span = 4 * 3600e9
	times := bursty(1, span)
	c := fitted(t, times, span)
	r := Stream(1, "fifth")
	var want []int64
	for _, at := range times {
		if r.IntN(5) == 0 {
			want = append(want, at)
		}
	}
	for seed := range uint64(3) {
		if d := distance(timesOf(c, Stream(seed, "c"), len(want), span), want, span); d > 0.25 {
			t.Errorf("seed %d: mean |log2 IDC ratio| %.3f", seed, d)
		}
	}
}

// Ten times the arrivals of a Poisson process do not come in clumps of ten.
func TestCascadeThickensWithoutClumps(t *testing.T) {
	times, span := poissonTimes(t, "poisson:20", 80_000)
	c, err := FitCascade(times, span, 500) // 32 parts, whose counts are multiplied as they are
	if err != nil {
		t.Fatal(err)
	}
	made := timesOf(c, Stream(1, "c"), 10*len(times), span)
	for _, s := range scales[:3] {
		if got := idc(made, span, s); math.Abs(got-1) > 0.2 {
			t.Errorf("IDC over %g s is %.2f", s, got)
		}
	}
}

// Twice as many arrivals over the same span keep the shape of the rate.
func TestCascadeThickens(t *testing.T) {
	const span = 3600e9
	times := bursty(3, span)
	c := fitted(t, times, span)
	made := timesOf(c, Stream(1, "c"), 2*len(times), span)
	from := int64(0)
	for k, p := range c.Parts() {
		i, _ := slices.BinarySearch(made, from)
		from += p.Width
		j, _ := slices.BinarySearch(made, from)
		if want := 2 * p.Count; math.Abs(float64(int64(j-i)-want)) > 5 {
			t.Errorf("part %d holds %d, want %d", k, j-i, want)
		}
	}
}

func TestCascadeGolden(t *testing.T) {
	const span = 600e9
	made := timesOf(fitted(t, bursty(4, span), span), Stream(42, "c"), 3000, 2*span)
	sum := fnv.New64a()
	for _, at := range made {
		binary.Write(sum, binary.BigEndian, at)
	}
	if got, want := fmt.Sprintf("%d %d %#x", made[0], made[1], sum.Sum64()), "2387389688 2617053270 0xa73626732555c60c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The tables against a count with maps: each bin of two or more is split once,
// and each pair of neighbours in a finest bin is a gap.
func TestFitCascadeCountsAllBins(t *testing.T) {
	const span = 600e9
	times := bursty(5, span)
	c := fitted(t, times, span)
	got := make([]int64, c.levels+1)
	for _, r := range c.Rows() {
		if r.Kind == cascadeSplit || r.Kind == cascadeGap {
			got[r.Level] += r.Count
		}
	}
	for level := c.depth; level <= c.levels; level++ {
		counts := make(map[int64]int64)
		for _, at := range times {
			k := new(big.Int).Lsh(big.NewInt(at), uint(level))
			counts[k.Div(k, big.NewInt(span)).Int64()]++
		}
		want := int64(0)
		for _, n := range counts {
			if level == c.levels {
				want += n - 1
			} else if n > 1 {
				want++
			}
		}
		if got[level] != want {
			t.Errorf("level %d: %d rows, want %d", level, got[level], want)
		}
	}
}

func TestFitCascadeRefuses(t *testing.T) {
	for _, c := range []struct {
		times []int64
		span  int64
	}{
		{nil, 1e9}, {[]int64{0}, 1e9}, {[]int64{0, 1}, 0}, {[]int64{0, 1}, -1}, {[]int64{0, 1}, 999}, {[]int64{0, 1}, math.MaxInt64},
		{[]int64{1, 0}, 1e9}, {[]int64{-1, 0}, 1e9}, {[]int64{0, 1e9}, 1e9},
	} {
		if _, err := FitCascade(c.times, c.span, 10); err == nil {
			t.Errorf("FitCascade(%v, %d) has no error", c.times, c.span)
		}
	}
	if timesOf((&Cascade{}), Stream(1, ""), 5, 5) != nil {
		t.Error("the zero Cascade makes instants")
	}
}

func TestBusyness(t *testing.T) {
	for n, want := range map[int64]int{1: 0, 2: 2, 3: 3, 4: 4, 5: 4, 6: 5, 7: 5, 8: 6, 11: 6, 12: 7, 1 << 40: 80} {
		if got := busyness(n); got != want {
			t.Errorf("busyness(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestGapBucket(t *testing.T) {
	next := int64(0)
	for next < 1<<20 {
		b := gapBucket(next)
		if b.left != next || b.right < b.left || gapBucket(b.right) != b || float64(b.right-b.left) > float64(b.left)/16 {
			t.Fatalf("bucket of %d is %v", next, b)
		}
		next = b.right + 1
	}
}

// What is on a clock's ticks goes back to them: all of one tick at once, in order, as far off it as the source's.
func TestOnAndOffTicks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const tick = 3e9
	var times []int64
	for i := range int64(200) {
		off := int64(0)
		if i > 0 {
			off = r.Int64N(8e6) - 4e6
		}
		for range 1 + r.IntN(4) {
			times = append(times, i*tick+off)
		}
	}
	c, err := FitCascade(times, 200*tick, 10)
	if err != nil || c.Tick() != tick {
		t.Fatalf("the tick is %d: %v", c.Tick(), err)
	}

	on := c.OnTicks(times)
	for i, at := range on {
		if at%tick != 0 || at-times[i] > 4e6 || times[i]-at > 4e6 {
			t.Fatalf("arrival %d at %d is put at %d", i, times[i], at)
		}
	}
	off, was := slices.Clone(on), map[int64]bool{}
	for i, at := range times {
		was[at-on[i]] = true
	}
	c.OffTicks(r, off)
	moved := 0
	for i, at := range off {
		if i > 0 && (at < off[i-1] || (on[i] == on[i-1]) != (at == off[i-1])) {
			t.Fatalf("arrivals %d and %d, of ticks %d and %d, come at %d and %d", i-1, i, on[i-1], on[i], off[i-1], at)
		}
		if by := at - on[i]; !was[by] {
			t.Fatalf("arrival %d is %d off its tick, as none of the source is", i, by)
		} else if by != 0 {
			moved++
		}
	}
	if off[0] != 0 || moved < len(off)*9/10 {
		t.Errorf("the first comes at %d, and %d of %d are off their tick", off[0], moved, len(off))
	}
	none := &Cascade{}
	if got := none.OnTicks(times); !slices.Equal(got, times) {
		t.Error("without a clock arrivals move")
	}
}
