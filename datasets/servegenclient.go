package datasets

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/trace"
	"reprise/trace/arrival"
)

// A poolClient yields the requests of one client of a pool in order of time. A
// window's gaps are drawn twice, once for their sum and once for the arrivals,
// so that a window of any length takes no memory.
type poolClient struct {
	id       int
	name     trace.Text
	seed     uint64
	from, to time.Duration // the part of the pool
	windows  []poolWindow
	lengths  []lengthWindow
	s        *Source

	next   int // window behind the current one
	window poolWindow
	left   int // arrivals of the window to come
	gap    func() uint64
	passed uint64 // sum of the gaps so far
	total  uint64 // sum of all gaps of the window
	draw   map[string]*rand.Rand
	dist   *lengthWindow
	at     time.Duration // of the current request
	entry  trace.Entry
}

// A poolWindow is a time in which a client sends at one rate.
type poolWindow struct {
	start, width time.Duration // whole seconds
	rate         float64       // requests per second
	weibull      bool
	shape        float64
}

// stream returns the random stream of one purpose in the current window.
func (c *poolClient) stream(purpose string) *rand.Rand {
	return arrival.Stream(c.seed, fmt.Sprintf("servegen/%d/%d/%s", c.id, c.window.start/time.Second, purpose))
}

// advance goes to the next request in the part; ok is false at the end.
func (c *poolClient) advance() (ok bool) {
	for {
		for c.left == 0 {
			if c.next == len(c.windows) {
				return false
			}
			c.window = c.windows[c.next]
			c.next++
			c.enter()
		}
		c.left--
		c.passed += c.gap()
		hi, lo := bits.Mul64(c.passed, uint64(c.window.width/time.Microsecond))
		us, _ := bits.Div64(hi, lo, c.total) // passed < total, so that it lies inside the window
		c.at = c.window.start + time.Duration(us)*time.Microsecond
		c.entry = c.dist.request(c.draw, c.s)
		if c.at >= c.to {
			return false
		}
		if c.at >= c.from {
			return true
		}
	}
}

// enter draws the number of arrivals of the window and the sum of its gaps. The
// gaps before the first arrival and behind the last count, so that there is one
// more of them than arrivals; with a shape of 1 this is exactly Poisson.
func (c *poolClient) enter() {
	if c.dist = c.lengthsAt(c.window.start); c.dist == nil {
		return
	}
	count := distuv.Poisson{Lambda: c.window.rate * c.window.width.Seconds(), Src: c.stream("count")}.Rand()
	c.left = int(count)
	if c.left == 0 {
		return
	}
	c.total, c.passed = 0, 0
	gap := c.window.gaps(c.stream("gaps"))
	for range c.left + 1 {
		c.total += gap()
	}
	c.gap = c.window.gaps(c.stream("gaps"))
	c.draw = map[string]*rand.Rand{}
	for _, field := range poolFields {
		c.draw[field] = c.stream(field)
	}
}

// With some 10⁷ arrivals in a window at most, sums of gaps stay below 2⁶⁴.
const (
	meanGap = 1 << 20
	maxGap  = 1 << 34
)

// gaps draws gaps whose mean is a million, in whole numbers: math functions
// differ in their last bits between processors, and what is rounded before it is
// added up does not. A gap is at least 1, so that a sum is never 0.
func (w *poolWindow) gaps(r *rand.Rand) func() uint64 {
	draw, mean := distuv.Gamma{Alpha: w.shape, Beta: 1, Src: r}.Rand, w.shape
	if w.weibull {
		draw, mean = distuv.Weibull{K: w.shape, Lambda: 1, Src: r}.Rand, math.Gamma(1+1/w.shape)
	}
	return func() uint64 {
		return 1 + uint64(min(math.Round(draw()/mean*meanGap), maxGap))
	}
}

// lengthsAt returns the distributions at a time: the latest that begin before
// it, or, when there are none yet, the first; nil when the client has none.
func (c *poolClient) lengthsAt(at time.Duration) *lengthWindow {
	if len(c.lengths) == 0 {
		c.s.notes.count("active windows of clients without lengths, left out")
		return nil
	}
	found := &c.lengths[0]
	for i := range c.lengths {
		if c.lengths[i].start <= at {
			found = &c.lengths[i]
		}
	}
	return found
}

// request returns the current request.
func (c *poolClient) request() trace.Entry {
	e := c.entry
	e.Time = Epoch.Add(c.at)
	e.User = c.name
	return e
}

// openClient reads the files of a client, of its lengths those that the part
// from from to to needs. end is when its last window ends.
func openClient(f clientFiles, seed uint64, from, to time.Duration, s *Source) (c *poolClient, end time.Duration, err error) {
	c = &poolClient{id: f.id, name: trace.NewText(strconv.Itoa(f.id)), seed: seed, from: from, to: to, s: s}
	windows, end, err := readWindows(f.trace)
	if err != nil {
		return nil, 0, err
	}
	for _, w := range windows {
		if w.rate > 0 && w.start < to && w.start+w.width > from {
			c.windows = append(c.windows, w)
		}
	}
	if len(c.windows) > 0 {
		first, last := c.windows[0], c.windows[len(c.windows)-1]
		if c.lengths, err = readLengths(f.dataset, first.start, last.start, s.fields); err != nil {
			return nil, 0, err
		}
	}
	return c, end, nil
}
