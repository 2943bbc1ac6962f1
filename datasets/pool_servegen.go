package datasets

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/datasets/internal/fault"
	"reprise/trace"
	"reprise/trace/arrival"
)

// defaultPoolSpan is how much of a pool is expanded unless told: an hour, since
// the 14 days of the larger pools are 10⁸ requests.
const defaultPoolSpan = time.Hour

// poolFile matches the files of a client; other files are left alone.
var poolFile = regexp.MustCompile(`^chunk-(\d{1,9})-(trace\.csv|dataset\.json)$`)

const drawnFrom = "a distribution, from which requests are drawn"

// serveGenFormat reads a client pool of ServeGen (arXiv:2505.09999;
// github.com/alibaba/ServeGen) and expands a part of it, Options.PoolSpan from
// Options.PoolStart on (the first hour), to the requests of its clients in
// order of time. It differs from ServeGen's own generator, which draws all
// lengths of a request from one uniform and so correlates them perfectly, fixes
// the count of each window, and silences clients of less than a request in one:
//
//   - rate × width of a window is a count that was observed. The count drawn is
//     Poisson around it, so that a slow client emits now and then.
//   - The arrivals in a window have gaps of its gamma or Weibull shape, scaled to
//     fill the window. The recorded scale is not used: it and the rate disagree
//     in a quarter of the windows.
//   - Each field is drawn by itself, by the inverse of its distribution in the
//     6-hour window of that moment, or in the latest one before it that has any.
//   - Tokens of images are drawn for each image, and likewise audio and video.
//     All are part of the input.
//
// Every window of every client has random streams of its own, made of
// Options.Seed, so that the same hour has the same requests whatever else is
// expanded. Memory is that of the distributions that are in the part, 8 bytes
// for each of their values. Times are those of the pool.
func serveGenFormat() Format {
	return Format{
		pool: true,
		detectFiles: func(files []File) bool {
			pairs, _ := poolClients(files)
			return len(pairs) > 0
		},
		openFiles: openServeGen,
	}.described("servegen")
}

// A clientFiles are the two files of a client.
type clientFiles struct {
	id             int
	trace, dataset *File
}

// poolClients pairs the files of clients; alone counts those without a partner.
func poolClients(files []File) (clients []clientFiles, alone int) {
	byID := map[int]*clientFiles{}
	for i := range files {
		name := poolFile.FindStringSubmatch(path.Base(strings.ReplaceAll(files[i].Name, `\`, "/")))
		if name == nil {
			continue
		}
		id, _ := strconv.Atoi(name[1]) // digits, by the pattern
		if byID[id] == nil {
			byID[id] = &clientFiles{id: id}
		}
		if name[2] == "trace.csv" {
			byID[id].trace = &files[i]
		} else {
			byID[id].dataset = &files[i]
		}
	}
	for _, c := range byID {
		if c.trace != nil && c.dataset != nil {
			clients = append(clients, *c)
		} else {
			alone++
		}
	}
	slices.SortFunc(clients, func(a, b clientFiles) int { return cmp.Compare(a.id, b.id) })
	return clients, alone
}

func openServeGen(files []File, o Options, s *Source) (decoder, error) {
	start, span := o.PoolStart, o.PoolSpan
	if span == 0 {
		span = defaultPoolSpan
	}
	if start < 0 || span < 0 || start%time.Second != 0 || span%time.Second != 0 || start > maxPool || span > maxPool {
		return nil, fault.Usage("the part of the pool is not whole seconds from 0 to 10 years")
	}
	clients, alone := poolClients(files)
	if len(clients) == 0 {
		return nil, fault.Usage("servegen wants the files chunk-N-trace.csv and chunk-N-dataset.json of at least " +
			"one client")
	}
	if alone > 0 {
		s.notes.SayOnce(fmt.Sprintf("clients without one of their two files, left out: %d", alone))
	}
	d := &serveGenDecoder{s: s}
	var end time.Duration
	for _, f := range clients {
		windows, last, err := readWindows(f.trace)
		if err != nil {
			return nil, err
		}
		end = max(end, last)
		c := &poolClient{id: f.id, name: trace.NewText(strconv.Itoa(f.id)), seed: o.Seed, from: start,
			to: start + span, s: s}
		for _, w := range windows {
			if w.rate > 0 && w.start < c.to && w.start+w.width > c.from {
				c.windows = append(c.windows, w)
			}
		}
		if n := len(c.windows); n > 0 {
			if c.lengths, err = readLengths(f.dataset, c.windows[0].start, c.windows[n-1].start, s.fields); err != nil {
				return nil, err
			}
		}
		if c.advance() {
			d.clients = append(d.clients, c)
		}
	}
	if start >= end {
		return nil, fault.Usage("the part of the pool begins behind its end, which is at %v", end)
	}
	heap.Init(&d.clients)
	s.info.HasTimes, s.info.HasUsers, s.info.TimeUnit = true, true, "s"
	s.notes.SayOnce(fmt.Sprintf("requests were drawn for the part from %v to %v of a pool of %d clients and %v",
		start, min(start+span, end), len(clients), end))
	return d, nil
}

// maxPool keeps sums of times far from the limits of a time.Duration.
const maxPool = 10 * 365 * 24 * time.Hour

// A serveGenDecoder merges the requests of the clients by time.
type serveGenDecoder struct {
	clients clientHeap // with a request each
	s       *Source
}

func (d *serveGenDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	if len(d.clients) == 0 {
		return dst, io.EOF
	}
	c := d.clients[0]
	dst = append(dst, c.request())
	if c.advance() {
		heap.Fix(&d.clients, 0)
	} else {
		heap.Pop(&d.clients)
	}
	return dst, nil
}

// A clientHeap orders clients by their next request; of requests at the same
// time the client with the lower id comes first.
type clientHeap []*poolClient

func (h clientHeap) Len() int { return len(h) }

func (h clientHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].id < h[j].id
}

func (h clientHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface; clients are never added.
func (h *clientHeap) Push(x any) { *h = append(*h, x.(*poolClient)) }

// Pop implements heap.Interface.
func (h *clientHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

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

	next   int // window after the current one
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
			c.enterWindow()
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

// enterWindow draws the number of arrivals of the window and the sum of its gaps. The
// gaps before the first arrival and after the last count, so that there is one
// more of them than arrivals; with a shape of 1 this is exactly Poisson.
func (c *poolClient) enterWindow() {
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
		c.s.notes.Count("active windows of clients without lengths, left out")
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
