package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"reprise/replay/openai"
)

// An httpCall is an encoded request.
type httpCall struct {
	body    *[]byte
	at      int    // where the body begins; in front is room for the head
	head    string // of the request, up to its length; empty where net/http sends
	api     string
	target  int
	session int64       // for its connection; h1.NoSession is none
	header  http.Header // only read
	text    *textHash   // where the answer's is wanted
	said    *string     // takes what the server says about an error, where that is wanted
	asked   int         // the most tokens that it asks for; 0 is not known
	bytes   int         // of the body; 0 where the prompt has tokens that are no part of it
	echoes  bool        // the answer holds the prompt
	probe   bool        // none of the run, so that what is odd about the answer does not count
	bound   openai.Bound
	holders int32 // of the body, beside the attempt that it is sent by; changed atomically
}

// Size implements [result.Call].
func (c *httpCall) Size() int { return cap(*c.body) }

// A try is what the next attempt at a request must know of the last one.
type try struct {
	start    int64 // its beginning, on the run's clock
	armed    bool  // the row's disconnection was timed by an earlier attempt
	reused   atomic.Bool
	answered atomic.Bool // a byte came back
}

// release takes the buffer of a call that is not sent again, once nothing reads it any more.
func (h *HTTP) release(c *httpCall) {
	if h.opt.Retries == 0 && atomic.AddInt32(&c.holders, -1) < 0 {
		h.bodies.Put(c.body)
	}
}

// An exchanger sends one encoded request, and returns when the head of its answer
// is there. sent is called at the entry to the write. An exchanger sends nothing twice; it
// tells t what a retry must know.
type exchanger interface {
	exchange(ctx context.Context, c *httpCall, t *try, sent func()) (*reply, error)
}

// A reply is the head of an answer, and its body to come. The body must be closed;
// it need not be read to its end.
type reply struct {
	status int
	header interface{ Get(name string) string } // such as http.Header
	body   io.ReadCloser
}

// readAt is when what was read last was taken from the system: now, unless the body knows.
func (r *reply) readAt() time.Time {
	if t, ok := r.body.(interface{ ReadAt() time.Time }); ok && !t.ReadAt().IsZero() {
		return t.ReadAt()
	}
	return time.Now()
}

// A netExchanger sends by net/http, which speaks HTTP/2 and knows proxies.
type netExchanger struct{ h *HTTP }

func (e netExchanger) exchange(ctx context.Context, c *httpCall, t *try, sent func()) (*reply, error) {
	resp, err := e.h.transport.RoundTrip(e.request(ctx, c, t, sent))
	if err != nil {
		if openai.IsHTTP2End(err) {
			t.reused.Store(false) // its connection was not dead: the server may have the request
		}
		return nil, err
	}
	return &reply{status: resp.StatusCode, header: resp.Header, body: resp.Body}, nil
}

// errBodySent keeps net/http from sending again what a server may have seen.
var errBodySent = errors.New("client: the server refused a request whose body was on its way")

// A markedBody tells that it was read. Requests at once may choose one HTTP/2
// connection that has room for fewer; net/http closes the body of the one too many
// before it has read any of it, and must have it anew for another connection.
type markedBody struct {
	io.Reader
	read *atomic.Bool
}

func (b markedBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.Reader.Read(p)
}

func (markedBody) Close() error { return nil }

// request builds the HTTP request around the encoded body, which it takes over.
//
// The body is one that net/http knows to be in memory, else it would write the
// headers by themselves; so its first Read cannot be the mark of sending. Without
// GetBody it cannot be sent a second time behind our back. Where we may send it
// again ourselves, it is kept.
func (e netExchanger) request(ctx context.Context, c *httpCall, t *try, sent func()) *http.Request {
	h := e.h
	to := &h.targets[c.target]
	body := (*c.body)[c.at:]
	req := &http.Request{
		Method: http.MethodPost, URL: to.urls[c.api], Host: to.host, Header: c.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	hooks := httptrace.ClientTrace{
		WroteHeaders: sent,
		GotConn:      func(info httptrace.GotConnInfo) { t.reused.Store(info.Reused) },
		// The last that net/http does with the body, be it after the answer.
		WroteRequest: func(httptrace.WroteRequestInfo) { h.release(c) },
	}
	atomic.StoreInt32(&c.holders, 1)
	if h.opt.HTTP2 { // whose headers have gone out when they are said to be written
		hooks.WroteHeaders, hooks.GotConn = nil, func(info httptrace.GotConnInfo) {
			t.reused.Store(info.Reused)
			sent()
		}
		read := new(atomic.Bool)
		req.GetBody = func() (io.ReadCloser, error) {
			if read.Load() {
				return nil, errBodySent
			}
			return markedBody{bytes.NewReader(body), read}, nil
		}
		req.Body = markedBody{bytes.NewReader(body), read}
	}
	if h.opt.Retries > 0 {
		hooks.WroteRequest = nil
		hooks.GotFirstResponseByte = func() { t.answered.Store(true) }
	}
	return req.WithContext(httptrace.WithClientTrace(ctx, &hooks))
}
