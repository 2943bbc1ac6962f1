package record

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/recording"
)

// Options say where requests go and what is recorded of them.
type Options struct {
	// Upstreams are the servers, by their base URL. A request goes to the one with the
	// fewest in flight.
	Upstreams []*url.URL
	TLS       *tls.Config // towards the servers; nil is the usual

	// Begin is when the capture began, by [time.Now]: arrivals are counted from it by the
	// monotonic clock, so that a clock that is set makes no request earlier.
	Begin time.Time

	// Sink makes the function that takes entries, for one worker. It is called once for
	// each. The entry is the function's until it returns. Its error says that the entry
	// has no length.
	Sink func() (func(*trace.Entry) error, error)

	Workers int     // that make entries; 0 is 1
	Memory  int64   // bytes of texts that are held at once
	Share   float64 // of the sessions that are recorded; 1 is all

	// Draw gives the name of a session a number in [0, 1), the same each time: sessions
	// below Share are recorded. Nil draws for this proxy alone.
	Draw func(session string) float64

	// SessionHeaders are the names of headers that name a session, the first that is
	// there counts. They stand above what the body says.
	SessionHeaders []string

	Shadow *Shadow // nil for none

	// Message is told, in a sentence, what the operator should know: a server that
	// cannot be reached, or that can again. It may be nil.
	Message func(string)
}

// A Proxy forwards requests and records them. Serve it with [http.Server].
type Proxy struct {
	o       Options
	forward *httputil.ReverseProxy
	servers []*server
	turn    atomic.Uint64
	flying  sync.WaitGroup
	work    *workers
}

// A server is one of the upstreams.
type server struct {
	url      *url.URL
	inFlight atomic.Int64
	avoid    atomic.Int64 // Unix time in ns until which others go first
	down     atomic.Bool
	said     atomic.Int64 // Unix time of the last message of a connection that ended
}

const (
	// idle is less than the time after which servers close a connection that nothing
	// comes on: uvicorn and llama-server take 5 s. A request that meets its closing fails.
	idle     = 4 * time.Second
	copySize = 8 << 10 // of a read of an answer: there are thousands of streams
	avoided  = 2 * time.Second
)

// New makes a proxy and starts its workers.
func New(o Options) (*Proxy, error) {
	if len(o.Upstreams) == 0 {
		return nil, errors.New("no upstream to forward to")
	}
	p := &Proxy{o: o}
	for _, u := range o.Upstreams {
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
			return nil, errors.New("want http://HOST:PORT or https://HOST, without password or query")
		}
		p.servers = append(p.servers, &server{url: u})
	}
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:       o.TLS,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // else it would ask for an encoding that the client did not
		MaxIdleConns:          0,
		MaxIdleConnsPerHost:   1 << 14,
		IdleConnTimeout:       idle,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		WriteBufferSize:       16 << 10,
		ReadBufferSize:        8 << 10,
	}
	p.forward = &httputil.ReverseProxy{
		Transport: resender{transport}, FlushInterval: -1, BufferPool: &buffers{},
		Rewrite: p.rewrite, ModifyResponse: p.answered, ErrorHandler: p.failed,
		ErrorLog: log.New(io.Discard, "", 0), // its words may quote what passes
	}
	var err error
	if p.work, err = startWorkers(&p.o); err != nil || o.Shadow == nil {
		return p, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.work.shadow = &shadowing{Shadow: o.Shadow, w: p.work, transport: transport.Clone(), seed: maphash.MakeSeed(),
		places: make(chan struct{}, shadowed), ctx: ctx, cancel: cancel}
	return p, nil
}

// A passage is what belongs to a request on its way.
type passage struct {
	to *server
	x  *exchange // nil where it is not recorded
}

type passageKey struct{}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.flying.Add(1)
	defer p.flying.Done()
	pass := &passage{to: p.choose(), x: p.work.begin(r)}
	pass.to.inFlight.Add(1)
	defer pass.to.inFlight.Add(-1)
	if pass.x != nil {
		if len(p.servers) > 1 {
			pass.x.server = pass.to.url.Host
		}
		// Deferred: the proxy panics to end the connection of a client whose answer broke.
		defer func() { p.work.end(pass.x, r.Context().Err()) }()
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passageKey{}, pass)))
}

// choose is the server with the fewest requests in flight, by turns among equals. One
// that just could not be reached comes last.
func (p *Proxy) choose() *server {
	if len(p.servers) == 1 {
		return p.servers[0]
	}
	now, from := time.Now().UnixNano(), p.turn.Add(1)
	var best *server
	var load int64
	for i := range p.servers {
		s := p.servers[(from+uint64(i))%uint64(len(p.servers))]
		l := s.inFlight.Load()
		if s.avoid.Load() > now {
			l += 1 << 40
		}
		if best == nil || l < load {
			best, load = s, l
		}
	}
	return best
}

// rewrite leaves all of a request as it came but the address, the hop-by-hop headers,
// and the headers that say for whom it is forwarded.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	pass := r.In.Context().Value(passageKey{}).(*passage)
	r.SetURL(pass.to.url)
	r.Out.Close = r.In.Close               // a client that wants no connection kept gets none kept
	r.Out.URL.RawQuery = r.In.URL.RawQuery // also what is not well-formed
	for _, name := range []string{"Forwarded", "X-Forwarded-For"} {
		if v, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = v
		}
	}
	r.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} { // of the first proxy
		if v, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = v
		}
	}
	if r.Out.Body != nil {
		r.Out.Body = &requestBody{ReadCloser: r.Out.Body, x: pass.x, left: r.In.ContentLength,
			over: r.In.Context().Done()}
	}
}

// answered has an answer looked at on its way.
func (p *Proxy) answered(r *http.Response) error {
	pass, ok := r.Request.Context().Value(passageKey{}).(*passage)
	if !ok {
		return nil
	}
	if pass.to.down.CompareAndSwap(true, false) {
		p.message(fmt.Sprintf("%s answers again", pass.to.url.Host))
	}
	if x := pass.x; x != nil {
		x.answered(r)
		if r.StatusCode != http.StatusSwitchingProtocols {
			r.Body = &answerBody{ReadCloser: r.Body, x: x}
		}
	}
	return nil
}

// failed answers in place of a server that could not be reached, or that ended the
// connection before its answer.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	pass := r.Context().Value(passageKey{}).(*passage)
	if r.Context().Err() != nil { // the client has gone
		panic(http.ErrAbortHandler)
	}
	var tooLarge *http.MaxBytesError
	var dial *net.OpError
	switch {
	case errors.As(err, &tooLarge):
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	case errors.As(err, &dial) && dial.Op == "dial":
		pass.to.avoid.Store(time.Now().Add(avoided).UnixNano())
		if !pass.to.down.Swap(true) {
			p.message(fmt.Sprintf("%s cannot be reached; requests to it are answered with 502", pass.to.url.Host))
		}
	case time.Now().Unix() != pass.to.said.Swap(time.Now().Unix()): // the error itself may quote what the server sent
		p.message(fmt.Sprintf("%s ended a connection before its answer; the request was answered with 502",
			pass.to.url.Host))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	io.WriteString(w, badGateway)
}

const badGateway = `{"error":{"message":"the server behind this proxy did not answer","type":"bad_gateway","param":null,"code":502}}` + "\n"

func (p *Proxy) message(text string) {
	if p.o.Message != nil {
		p.o.Message(text)
	}
}

// Wait returns when no request is under way, or ctx ends.
func (p *Proxy) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer crash.Caught()
		p.flying.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits until the workers have made entries of what has passed. No request may be
// under way.
func (p *Proxy) Close() {
	if s := p.work.shadow; s != nil {
		s.stop(shadowRest)
	}
	p.work.close()
}

// shadowRest is how long the candidate may take when all else is over.
const shadowRest = 20 * time.Second

// NotShadowed is how many requests the candidate did not get, since too many were with it
// or there was no memory.
func (p *Proxy) NotShadowed() int64 {
	if p.work.shadow == nil {
		return 0
	}
	return p.work.shadow.skipped.Load()
}

// Counts say what became of the requests so far. What the sink did not keep is its own
// to count.
func (p *Proxy) Counts() recording.Counts { return p.work.counts() }

// Status is what is under way: requests in flight, those that wait to become entries, and
// the bytes of their texts.
func (p *Proxy) Status() (inFlight, waiting, bytes int64) {
	for _, s := range p.servers {
		inFlight += s.inFlight.Load()
	}
	return inFlight, int64(len(p.work.queue)), p.work.held.Load()
}

// buffers are those that answers are copied through.
type buffers struct{ pool sync.Pool }

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, copySize)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
