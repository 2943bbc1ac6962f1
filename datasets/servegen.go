package datasets

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/trace"
)

// defaultPoolSpan is how much of a pool is expanded unless told: an hour, since
// the 14 days of the larger pools are 10⁸ requests.
const defaultPoolSpan = time.Hour

// poolFile matches the files of a client; other files are left alone.
var poolFile = regexp.MustCompile(`^chunk-(\d{1,9})-(trace\.csv|dataset\.json)$`)

// serveGenReads is what is read of a pool. Columns of the trace have no names.
var serveGenReads = []SourceField{
	fieldAt("number of the client in the names of its files", "user", ""),
	fieldAt("start (column 1)", "arrival_ns", "requests are drawn for each window"),
	fieldAt("rate (column 2)", "arrival_ns", "requests are drawn for each window"),
	fieldAt("pattern (column 4)|shape (column 5)", "arrival_ns", "requests are drawn for each window"),
	fieldAt("CV (column 3)|scale (column 6)", "", passed),
	fieldAt("input_tokens|text_tokens", "input_tokens", drawnFrom),
	fieldAt("output_tokens", "output_tokens", drawnFrom),
	fieldAt("reason_ratio", "reasoning_tokens", drawnFrom),
	fieldAt("image_tokens|image_count", "input_tokens image_tokens images", drawnFrom),
	fieldAt("audio_tokens|video_tokens|audio_count|video_count", "input_tokens", drawnFrom),
}

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
		Name:    "servegen",
		reads:   serveGenReads,
		About:   "ServeGen client pools: chunk-N-trace.csv and chunk-N-dataset.json for each client, expanded to requests",
		Example: "600,0.935,0.7622,Weibull,1.3304,1.1678",
		pool:    true,
		detectFiles: func(files []File) bool {
			pairs, _ := poolClients(files)
			return len(pairs) > 0
		},
		openFiles: openServeGen,
	}
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
		return nil, usage("the part of the pool is not whole seconds from 0 to 10 years")
	}
	clients, alone := poolClients(files)
	if len(clients) == 0 {
		return nil, usage("servegen wants the files chunk-N-trace.csv and chunk-N-dataset.json of at least one client")
	}
	if alone > 0 {
		s.notes.say(fmt.Sprintf("clients without one of their two files, left out: %d", alone))
	}
	d := &serveGenDecoder{s: s}
	var end time.Duration
	for _, f := range clients {
		c, last, err := openClient(f, o.Seed, start, start+span, s)
		if err != nil {
			return nil, err
		}
		end = max(end, last)
		if c.advance() {
			d.clients = append(d.clients, c)
		}
	}
	if start >= end {
		return nil, usage("the part of the pool begins behind its end, which is at %v", end)
	}
	heap.Init(&d.clients)
	s.info.HasTimes, s.info.HasUsers, s.info.TimeUnit = true, true, "s"
	s.notes.say(fmt.Sprintf("requests were drawn for the part from %v to %v of a pool of %d clients and %v", start, min(start+span, end), len(clients), end))
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
