package record

import (
	"hash/maphash"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/recording"
	"reprise/trace/usage"
)

// workers make entries of exchanges that are over.
type workers struct {
	o     *Options
	held  atomic.Int64 // bytes of texts
	queue chan *exchange
	group sync.WaitGroup

	shadow *shadowing // nil for none
	chains chains

	recorded, sampledOut, other, memory, tooLong, unreadable, unreached, clientGone, noLength, fault atomic.Int64

	usageLock sync.Mutex
	usage     usage.Tally
}

// waiting is how many exchanges may wait. Their texts are within the limit of memory.
const waiting = 1 << 16

func startWorkers(o *Options) (*workers, error) {
	w := &workers{o: o, queue: make(chan *exchange, waiting)}
	if seed := maphash.MakeSeed(); o.Draw == nil {
		o.Draw = func(session string) float64 { return float64(maphash.String(seed, session)>>11) / (1 << 53) }
	}
	w.chains.limit = o.Memory / 4
	for range max(o.Workers, 1) {
		sink, err := o.Sink()
		if err != nil {
			w.close()
			return nil, err
		}
		w.group.Go(func() {
			defer crash.Caught()
			for x := range w.queue {
				w.record(x, sink)
			}
		})
	}
	return w, nil
}

func (w *workers) close() {
	close(w.queue)
	w.group.Wait()
}

// hold takes n bytes of the limit, or gives them back where n is negative.
func (w *workers) hold(n int64) bool {
	if w.held.Add(n) > w.o.Memory && n > 0 {
		w.held.Add(-n)
		return false
	}
	return true
}

// exchangeBytes stand for what an exchange takes beside its texts.
const exchangeBytes = 4 << 10

// begin begins to record a request; nil where it is none of the APIs.
func (w *workers) begin(r *http.Request) *exchange {
	is := apiOf(r)
	if is == noAPI {
		w.other.Add(1)
		return nil
	}
	x := &exchange{w: w, api: is, begin: time.Now(), request: r.Header.Get("Content-Encoding")}
	if w.shadow != nil {
		x.path, x.query, x.about = r.URL.Path, r.URL.RawQuery, http.Header{}
		for _, name := range []string{"Content-Type", "Content-Encoding", "Accept", "Anthropic-Version",
			"Anthropic-Beta"} {
			if v, ok := r.Header[name]; ok {
				x.about[name] = v
			}
		}
	}
	for _, name := range w.o.SessionHeaders {
		if x.session = r.Header.Get(name); x.session != "" {
			break
		}
	}
	x.guarded(func() { x.hold(exchangeBytes) })
	return x
}

// end hands an exchange over when its answer has gone. clientErr is set where the client
// has gone too.
func (w *workers) end(x *exchange, clientErr error) {
	x.mu.Lock()
	x.over = true
	x.gone = clientErr != nil || x.status != 0 && !x.ended && !x.broke
	if x.last == 0 {
		x.last = x.since()
	}
	lost := x.lost
	x.mu.Unlock()
	if lost == kept {
		select {
		case w.queue <- x:
			return
		default:
			lost = lostMemory
		}
	}
	switch lost {
	case lostMemory:
		w.memory.Add(1)
	case lostTooLong:
		w.tooLong.Add(1)
	default:
		w.fault.Add(1)
	}
	w.free(x)
}

func (w *workers) free(x *exchange) {
	x.mu.Lock()
	x.drop(kept)
	x.mu.Unlock()
}

// record makes an entry of an exchange and gives it to the sink.
func (w *workers) record(x *exchange, sink func(*trace.Entry) error) {
	counted := &w.fault
	defer func() {
		if recover() != nil {
			counted = &w.fault
		}
		counted.Add(1)
		w.free(x)
	}()
	e, key, ok := x.entry()
	switch {
	case !ok && x.status == 0 && x.gone:
		counted = &w.clientGone
	case !ok && x.status == 0:
		counted = &w.unreached
	case !ok:
		counted = &w.unreadable
	case w.o.Share < 1 && w.o.Draw(key) >= w.o.Share:
		counted = &w.sampledOut
	case sink(e) != nil:
		counted = &w.noLength
	default:
		counted = &w.recorded
		w.found(x.found)
	}
}

// found counts what was found in the usage of a recorded answer.
func (w *workers) found(found usage.Findings) {
	if found != 0 {
		w.usageLock.Lock()
		w.usage.Add(found)
		w.usageLock.Unlock()
	}
}

func (w *workers) counts() recording.Counts {
	w.usageLock.Lock()
	defer w.usageLock.Unlock()
	return recording.Counts{Usage: w.usage, Recorded: w.recorded.Load(), SampledOut: w.sampledOut.Load(),
		NotAsked: w.other.Load(), Memory: w.memory.Load(),
		TooLong: w.tooLong.Load(), Unreadable: w.unreadable.Load(), Unreached: w.unreached.Load(),
		ClientGone: w.clientGone.Load(), NoLength: w.noLength.Load(), Failed: w.fault.Load()}
}
