package record

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// A resender sends a request once more where the server had closed the connection that it
// went out on, as servers do with connections that were idle: the request and the end of
// the connection pass each other. The client does not know of that connection, and would
// see a 502 that it would not have seen without the proxy. net/http does the same for
// requests without a body.
type resender struct{ *http.Transport }

// closing is how soon after a request the end of such a connection is seen. What fails
// later has failed in the server's hands.
const closing = time.Second

// RoundTrip implements [http.RoundTripper].
func (t resender) RoundTrip(r *http.Request) (*http.Response, error) {
	pass, ok := r.Context().Value(passageKey{}).(*passage)
	if !ok || pass.x == nil || r.Body == nil {
		return t.Transport.RoundTrip(r)
	}
	var reused, answered bool
	var sent time.Time
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn:              func(c httptrace.GotConnInfo) { reused, sent = c.Reused, time.Now() },
		GotFirstResponseByte: func() { answered = true },
	})
	resp, err := t.Transport.RoundTrip(r.WithContext(ctx))
	if err == nil || !reused || answered || time.Since(sent) > closing || r.Context().Err() != nil {
		return resp, err
	}
	body, whole := pass.x.sentBody(r.ContentLength)
	if !whole {
		return resp, err
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.Close = true // on a connection of its own
	return t.Transport.RoundTrip(again)
}

// sentBody is the body of the request, where all of it was read and is held.
func (x *exchange) sentBody(length int64) (body []byte, whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.body, x.lost == kept && (x.read || int64(len(x.body)) == length)
}
