package replay

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
)

// An exchanger sends one encoded request, and returns when the head of its answer
// is there. sent is called at the entry to the write. The buffer of the call is
// the exchanger's: it goes back to where it came from when nothing reads it any
// more. Nothing is sent twice.
type exchanger interface {
	exchange(ctx context.Context, c *httpCall, sent func()) (*reply, error)
}

// A reply is the head of an answer, and its body to come. The body must be closed;
// it need not be read to its end.
type reply struct {
	status int
	header interface{ Get(name string) string } // such as http.Header
	body   io.ReadCloser
}

// A netExchanger sends by net/http, which speaks HTTP/2 and knows proxies.
type netExchanger struct{ h *HTTP }

func (e netExchanger) exchange(ctx context.Context, c *httpCall, sent func()) (*reply, error) {
	resp, err := e.h.transport.RoundTrip(e.request(ctx, c, sent))
	if err != nil {
		return nil, err
	}
	return &reply{status: resp.StatusCode, header: resp.Header, body: resp.Body}, nil
}

// request builds the HTTP request around the encoded body, which it takes over.
//
// The body is one that net/http knows to be in memory, else it would write the
// headers by themselves; so its first Read cannot be the mark of sending. Without
// GetBody it cannot be sent a second time.
func (e netExchanger) request(ctx context.Context, c *httpCall, sent func()) *http.Request {
	h := e.h
	req := &http.Request{
		Method: http.MethodPost, URL: h.url, Host: h.host, Header: h.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body:          io.NopCloser(bytes.NewReader((*c.body)[c.at:])),
		ContentLength: int64(len(*c.body) - c.at),
	}
	return req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: sent,
		// The last that net/http does with the body, be it after the answer.
		WroteRequest: func(httptrace.WroteRequestInfo) { h.bodies.Put(c.body) },
	}))
}
