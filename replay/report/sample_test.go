package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace/sample"
)

// What a histogram cannot hold is clamped, and minimum and maximum are not.
func TestHistogramClamps(t *testing.T) {
	var s sample.Values
	for _, v := range []int64{-5e6, -5e6, 1e6, 2 * 24 * 3600 * 1e9, 2 * 24 * 3600 * 1e9} {
		s.Add(v)
	}
	st, q := StatOf(&s)
	is(t, "min", st.Min, -5)
	is(t, "max", st.Max, 2*24*3600*1e9/1e6)
	if low := q.At(0, 1); low > 0 {
		t.Errorf("the lowest is %d", low)
	}
	near(t, "p50", st.P50, 1, 1e-3)
}

func TestCDF(t *testing.T) {
	for _, n := range []int{1, 2, 7, 1000, 300_000} {
		s := sample.Values{Limit: 1 << 20}
		for i := range n {
			s.Add(int64(i) * 1000)
		}
		q := s.Order()
		x, y := distributionOf(&q, 0.002)
		if len(x) > 300 || !slices.IsSorted(x) || !slices.IsSorted(y) {
			t.Errorf("%d values: %d points, or not in order", n, len(x))
		}
		if x[0] != 0.002 || y[0] != 0 || y[len(y)-1] != 1 || x[len(x)-1] != max(float64(n-1)/1e3, 0.002) {
			t.Errorf("%d values: from (%v, %v) to (%v, %v)", n, x[0], y[0], x[len(x)-1], y[len(y)-1])
		}
		if n == 300_000 && y[len(y)-2] < 0.99999 {
			t.Errorf("the tail ends at %v", y[len(y)-2])
		}
	}
	if x, _ := distributionOf(new(sample.Order), 0); x != nil {
		t.Error("points of nothing")
	}
}

func TestLengthBuckets(t *testing.T) {
	var l lengths
	for n := range int32(1 << 16) {
		l.add(n)
	}
	l.add(math.MaxInt32)
	s, next := l.series("all"), 0.0
	for i := range len(s.X) - 1 {
		if s.X[i] != next || s.Y[i] != s.Hi[i]-s.X[i] {
			t.Fatalf("bucket %v to %v holds %v", s.X[i], s.Hi[i], s.Y[i])
		}
		if w := s.Hi[i] - s.X[i]; w > 1 && w > 1+s.X[i]*0.0906 {
			t.Errorf("the bucket at %v is %v wide", s.X[i], w)
		}
		next = s.Hi[i]
	}
	if last := len(s.X) - 1; s.Y[last] != 1 || s.X[last] > math.MaxInt32 || s.Hi[last] <= math.MaxInt32 {
		t.Errorf("the last bucket is %v to %v", s.X[last], s.Hi[last])
	}
	if len(lengthEdges) > 256 {
		t.Errorf("%d edges", len(lengthEdges))
	}
}

// A timeline that folded is the one that began as wide, whatever the order.
func TestTimelineFolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var instants []int64
	for range 3000 {
		instants = append(instants, rng.Int64N(1e13)>>rng.IntN(30))
	}
	slices.Sort(instants) // so that every fold has something to lose
	instants = append(instants, 1e13-1)
	fill := func(width int64) timeline {
		line := timeline{width: width}
		for _, at := range instants {
			s := line.at(at)
			s.due++
			s.ttft = longer(s.ttft, Span{at % 1000, true})
			s.lag = longer(s.lag, Span{at % 997, true})
		}
		return line
	}
	folded := fill(0)
	whole := fill(folded.width)
	if folded.width <= firstSlot || len(folded.slots) > maxSlots || len(folded.slots) < maxSlots/2 {
		t.Errorf("%d slots of %d ns", len(folded.slots), folded.width)
	}
	if !slices.Equal(folded.slots, whole.slots) {
		t.Error("folding lost something")
	}
	far := timeline{}
	far.at(MaxInstant)
	if len(far.slots) > maxSlots {
		t.Errorf("%d slots", len(far.slots))
	}
}

// The sample is of the size that it says, and even over the run.
func TestPicksAreUniform(t *testing.T) {
	var p picks
	for i := range int64(100_000) {
		p.add(i, pick{due: i, sent: i})
	}
	p.finish()
	var quarters [4]int
	for _, q := range p.held {
		quarters[q.due/25_000]++
	}
	if len(p.held) != maxPicks {
		t.Errorf("%d picks", len(p.held))
	}
	for _, n := range quarters { // 500 expected, sd 19
		if n < 400 || n > 600 {
			t.Errorf("quarters %v", quarters)
		}
	}
}
