package record

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"reprise/trace"
)

// A Shadow is a candidate server that gets some of the requests too. Its answers are
// timed and dropped: no client sees them, and none waits for them.
type Shadow struct {
	URL   *url.URL
	Share float64 // of the sessions
	Key   string  // a bearer token of its own, or empty; those of clients are not sent to it

	// Done takes each request that both servers answered, or failed. It must not block.
	Done func(Pair)
}

// A Pair is a request as two servers answered it.
type Pair struct {
	Number  int64 // from 0, in the order in which both had answered
	Primary Answered
	Shadow  Answered
}

// Answered is what a server made of a request.
type Answered struct {
	Sent          time.Duration   // since [Options].Begin: all of the request was on its way
	First, Done   time.Duration   // since Sent: the first token, 0 where that is not known, and the last
	Gaps          []time.Duration // between token events
	Input, Output *int32          // by usage
	Cached        *int32
	Status        int // of HTTP; 0 where the server could not be reached
	Finish        string
	Failed        bool
}

// shadowing sends requests to the candidate.
type shadowing struct {
	*Shadow
	w         *workers
	transport *http.Transport
	seed      maphash.Seed
	places    chan struct{}
	ctx       context.Context
	cancel    context.CancelFunc
	group     sync.WaitGroup
	numbers   atomic.Int64
	skipped   atomic.Int64
}

// shadowed is how many requests may be with the candidate at once. Beyond it they are
// left out, and counted.
const shadowed = 512

// A pairing waits for both answers to a request.
type pairing struct {
	s    *shadowing
	mu   sync.Mutex
	half int
	pair Pair
}

// add takes one of the two.
func (p *pairing) add(to *Answered, a Answered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*to = a
	if p.half++; p.half == 2 {
		p.pair.Number = p.s.numbers.Add(1) - 1
		p.s.Done(p.pair)
	}
}

// begin sends a request on to the candidate, when all of it has passed. It is called
// under the lock of the exchange and returns at once.
func (s *shadowing) begin(x *exchange) {
	select {
	case s.places <- struct{}{}:
	default:
		s.skipped.Add(1)
		return
	}
	body, held := x.body, int64(len(x.body))
	if !s.w.hold(held) {
		<-s.places
		s.skipped.Add(1)
		return
	}
	p := &pairing{s: s}
	x.pair, x.sent = p, x.since()
	s.group.Go(func() {
		defer func() {
			_ = recover() // a fault costs a pair, and nothing else
			s.w.held.Add(-held)
			<-s.places
		}()
		if s.Share < 1 {
			var f fields
			unpacked, err := plain(body, x.request)
			if err != nil || json.Unmarshal(unpacked, &f) != nil {
				return
			}
			messages, _ := x.prompt(f, new(trace.Entry), new(int32))
			user, session := f.who(x.session)
			key := sampleKey(session, user, messages, x.begin.UnixNano())
			if float64(maphash.String(s.seed, key)>>11)/(1<<53) >= s.Share {
				return // its session is not in the share
			}
		}
		p.add(&p.pair.Shadow, s.ask(x, body))
	})
}

// shadowTimeout is how long the candidate may take.
const shadowTimeout = 10 * time.Minute

// ask sends a request to the candidate and reads its answer to the end. Of the client's
// headers it gets those that say what the body is.
func (s *shadowing) ask(x *exchange, body []byte) (out Answered) {
	ctx, cancel := context.WithTimeout(s.ctx, shadowTimeout)
	defer cancel()
	out.Failed = true
	u := s.URL.JoinPath(x.path)
	if asked, err := url.ParseQuery(x.query); err == nil { // of which some are credentials
		kept := url.Values{}
		for _, name := range []string{"api-version", "beta"} {
			if asked.Has(name) {
				kept.Set(name, asked.Get(name))
			}
		}
		u.RawQuery = kept.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return out
	}
	r.Header = x.about.Clone()
	if s.Key != "" {
		r.Header.Set("Authorization", "Bearer "+s.Key)
		if x.api == messagesAPI {
			r.Header.Set("X-Api-Key", s.Key)
		}
	}
	begin := time.Now()
	out.Sent = begin.Sub(s.w.o.Begin)
	resp, err := s.transport.RoundTrip(r)
	if err != nil {
		out.Done = time.Since(begin)
		return out
	}
	defer resp.Body.Close()
	var a answer
	a.begin(x.api, resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"))
	buf := make([]byte, copySize)
	for {
		n, err := resp.Body.Read(buf)
		at := time.Since(begin)
		a.write(buf[:n], at)
		if err != nil || a.size() > maxExchange {
			return said(a.reply(x.api, resp.StatusCode, at, err == io.EOF), out.Sent, 0, resp.StatusCode)
		}
	}
}

// said is a reply as a side of a pair. sent is when all of the request was on its way, and
// before how long before that the reply's clock began.
func said(r reply, sent, before time.Duration, status int) Answered {
	a := Answered{Sent: sent, Done: r.done - before, Gaps: r.gaps, Input: r.usage.Input, Output: r.usage.Output,
		Cached: r.usage.Cached,
		Status: status, Finish: r.finish, Failed: r.failed}
	if r.first > 0 {
		a.First = r.first - before
	}
	return a
}

// stop waits for the candidate, not longer than so long.
func (s *shadowing) stop(wait time.Duration) {
	timer := time.AfterFunc(wait, s.cancel)
	defer timer.Stop()
	s.group.Wait()
	s.cancel()
}
