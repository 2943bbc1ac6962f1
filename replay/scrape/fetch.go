package scrape

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxBody is the most that is read of an answer, in bytes, after decompression.
const maxBody = 16 << 20

// Classes of failures, as [TargetStats] counts them.
const (
	FailConnect  = "connect"     // no answer: refused, reset, unknown host
	FailTimeout  = "timeout"     // no whole answer in time
	FailStatus   = "http_status" // another status than 200; redirects are not followed
	FailTooLarge = "too_large"   // an answer beyond maxBody
	FailDecode   = "decode"      // an answer in another form
)

// A failure is an error with its class.
type failure struct{ class string }

func (f *failure) Error() string {
	switch f.class {
	case FailTimeout:
		return "there was no whole answer in time"
	case FailStatus:
		return "the answer has another status than 200"
	case FailTooLarge:
		return "the answer is larger than 16 MB"
	case FailDecode:
		return "the answer is of another form"
	}
	return "there was no answer"
}

// classOf is the class of an error of this package, FailConnect for others.
func classOf(err error) string {
	var f *failure
	if errors.As(err, &f) {
		return f.class
	}
	return FailConnect
}

// get reads the answer to a GET. begun and headers are when the request was
// handed over and when the headers of its answer were there.
func get(ctx context.Context, via http.RoundTripper, u *url.URL, header http.Header,
	timeout time.Duration) (body []byte, begun, headers time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: header}).WithContext(ctx)
	begun = time.Now()
	resp, err := via.RoundTrip(req)
	headers = time.Now()
	if err != nil {
		return nil, begun, headers, netFailure(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, begun, headers, &failure{FailStatus}
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, begun, headers, netFailure(ctx, err)
	case len(body) > maxBody:
		return nil, begun, headers, &failure{FailTooLarge}
	}
	return body, begun, headers, nil
}

func netFailure(ctx context.Context, err error) error {
	var timeout net.Error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return &failure{FailTimeout}
	}
	return &failure{FailConnect}
}

// newTransport keeps connections open, so that a scrape costs the server no
// handshake, and takes compressed pages, which vLLM's are a tenth of.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 16,
	}
}

// parseURL takes a URL and does not quote it: it may hold a password.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("want a URL like http://localhost:8000/metrics")
	}
	if u.User != nil {
		return nil, errors.New("the URL must not hold a password")
	}
	return u, nil
}
