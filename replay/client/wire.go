package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/client/internal/h1"
	"reprise/replay/host"
	"reprise/replay/result"
)

// perSession keeps a connection for each session of the workload, as a user's
// client does: a balancer of connections then sends a whole session to one
// server. Rows without a session have a connection each.
const perSession = "per-session"

// Auto is what [ChooseConnections] makes of a schedule.
const Auto = "auto"

// A connection for each request costs the client some 0.3 ms of CPU more than one that
// is kept, and holds a local port for a minute. Up to these rates, of all servers
// together, that is less than a tenth of a core and half of the ports.
const (
	cheapRate  = 200  // requests per second, in the busiest ten seconds
	cheapBurst = 1000 // and in the busiest second
)

// ChooseConnections says which connections suit a schedule, and why: PerRequest while that
// is cheap for this machine, else Pooled. The rates are those of the busiest second and
// ten seconds, in requests per second. A closed loop has none, since it sends as fast as
// the server answers.
func ChooseConnections(peak1, peak10 float64, closedLoop bool) (connections, why string) {
	switch {
	case closedLoop:
		return Pooled, "a closed loop sends as fast as the server answers"
	case peak1 > cheapBurst:
		return Pooled, fmt.Sprintf("%.0f requests in the busiest second; per-request up to %d", peak1, cheapBurst)
	case peak10 > cheapRate:
		return Pooled, fmt.Sprintf("%.0f requests/s in the busiest ten seconds; per-request up to %d",
			peak10, cheapRate)
	}
	return PerRequest, fmt.Sprintf("at most %d requests/s in any ten seconds", cheapRate)
}

// NeverPooled says whether so many requests need no kept connections, however they are
// spread over time.
func NeverPooled(requests int64) bool { return requests <= cheapBurst }

// maxSize bounds the connections of pooled:N.
const maxSize = 1 << 16

// parseConnections reads PerRequest, Pooled, pooled:N or per-session; size is N.
func parseConnections(s string) (keep h1.Keep, size int, err error) {
	switch kind, n, sized := strings.Cut(s, ":"); {
	case sized && kind == Pooled:
		if size, err = strconv.Atoi(n); err == nil && size > 0 && size <= maxSize {
			return h1.Pooled, size, nil
		}
	case s == PerRequest:
		return h1.PerRequest, 0, nil
	case s == Pooled:
		return h1.Pooled, 0, nil
	case s == perSession:
		return h1.PerSession, 0, nil
	}
	return 0, 0, fmt.Errorf("client: connections are %s, %s, %s, pooled:N with N connections opened before the "+
		"start, at most %d, or %s", Auto, PerRequest, Pooled, maxSize, perSession)
}

// PoolSize checks a value of [Options].Connections, or Auto, and returns the N of
// pooled:N, else 0.
func PoolSize(connections string) (int, error) {
	if connections == Auto {
		return 0, nil
	}
	_, size, err := parseConnections(connections)
	return size, err
}

// A wire is the exchanger of the hot path: HTTP/1.1 on connections to one server
// that are dialled ahead of need.
type wire struct {
	h      *HTTP
	client *h1.Client
	to     *target
	closes bool              // requests say that their connections close
	heads  map[string]string // of requests with the header that all have, by API
}

// The head ends with the length, of at most this many bytes.
const lengthRoom = len("9223372036854775807\r\n\r\n")

// newWire makes the exchanger for a server, or nil where net/http has to send, by
// HTTP/2 or through a proxy.
func (h *HTTP) newWire(t *target, keep h1.Keep, size int) (*wire, error) {
	if h.opt.HTTP2 {
		return nil, nil
	}
	proxy, err := h.proxy()
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		if u, err := proxy(&http.Request{URL: t.base}); u != nil || err != nil {
			return nil, nil // of a proxy that cannot be read, net/http says so
		}
	}
	port := t.base.Port()
	if port == "" {
		port = "80"
		if t.base.Scheme == "https" {
			port = "443"
		}
	}
	address := net.JoinHostPort(t.base.Hostname(), port)
	o := h1.Options{Address: address, Keep: keep, Size: size, Readers: h.reading,
		Dial: func(ctx context.Context) (net.Conn, error) { return h.dial(ctx, "tcp", address) }}
	if t.base.Scheme == "https" {
		if o.TLS = h.opt.TLS; o.TLS == nil {
			o.TLS = new(tls.Config)
		}
	}
	w := &wire{h: h, client: h1.New(o), to: t, closes: keep == h1.PerRequest, heads: map[string]string{}}
	return w, w.writeHeads()
}

// writeHeads writes the heads of requests with the header that all have.
func (w *wire) writeHeads() (err error) {
	for api := range apiPaths {
		if w.heads[api], err = w.head(api, w.h.header); err != nil {
			return err
		}
	}
	return nil
}

// headOf is the head of a call's request up to the length of its body.
func (w *wire) headOf(c *httpCall) (string, error) {
	if reflect.ValueOf(c.header).Pointer() == reflect.ValueOf(w.h.header).Pointer() { // one and the same map
		return w.heads[c.api], nil
	}
	return w.head(c.api, c.header)
}

// head serialises the head of a request up to the length of its body. Errors do not
// quote: a header may hold a key.
func (w *wire) head(api string, header http.Header) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", w.to.urls[api].RequestURI(), w.to.host)
	if !h1.IsValue(w.to.host) {
		return "", errors.New("client: the Host header has a character that HTTP does not allow")
	}
	closes := w.closes
	for _, name := range slices.Sorted(maps.Keys(header)) {
		switch name {
		case "Content-Length", "Transfer-Encoding", "Host":
			continue // the sender's to say
		case "Connection":
			closes = false
		}
		for _, v := range header[name] {
			if !h1.IsToken(name) || !h1.IsValue(v) {
				return "", errors.New("client: a header has a character that HTTP does not allow")
			}
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	if closes {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("Content-Length: ")
	return b.String(), nil
}

// message returns the whole request of a call: the head goes in front of the body,
// into the room that was left there.
func (w *wire) message(c *httpCall) []byte {
	b := *c.body
	var scratch [lengthRoom]byte
	length := append(strconv.AppendInt(scratch[:0], int64(len(b)-c.at), 10), "\r\n\r\n"...)
	from := c.at - len(length) - len(c.head)
	copy(b[from:], c.head)
	copy(b[c.at-len(length):], length)
	return b[from:]
}

// exchange implements exchanger.
func (w *wire) exchange(ctx context.Context, c *httpCall, t *try, sent func()) (*reply, error) {
	return replied(t)(w.client.Do(ctx, w.message(c), c.session, sent))
}

// start sends a call without waiting, if that can be done. What it returns awaits
// the answer; it is nil when nothing was sent.
func (w *wire) start(c *httpCall, sent func()) (await func(ctx context.Context, t *try) (*reply, error)) {
	x := w.client.Start(w.message(c), c.session, sent)
	if x == nil {
		return nil
	}
	return func(ctx context.Context, t *try) (*reply, error) {
		return replied(t)(x.Await(ctx))
	}
}

// replied makes a reply of an answer, and tells t of a connection that was dead.
func replied(t *try) func(r *h1.Response, err error) (*reply, error) {
	return func(r *h1.Response, err error) (*reply, error) {
		if err != nil {
			t.reused.Store(errors.Is(err, h1.ErrStale))
			return nil, err
		}
		return &reply{status: r.Status(), header: r, body: r}, nil
	}
}

func described(s h1.Stats, ports int64) *result.Wire {
	w := &result.Wire{
		Dials: s.Dials, DialsMinute: s.MaxMinute, Waited: s.Waited, Reused: s.Reused,
		Replaced: s.Replaced, Stale: s.Stale, ServerCloses: s.Closes, LocalPorts: ports,
		PortWaits: s.PortWaits, PortWaitMax: int64(s.PortWait),
	}
	// A port is in use for a minute after its connection (TIME_WAIT), unless the
	// server was the first to close.
	switch {
	case w.PortWaits > 0:
		w.Note = fmt.Sprintf("%d requests waited for a local port, up to %.1f s, and are that late in the send lag: "+
			"more requests were in flight, or connections just closed, than the system has ports (%d). Send less, "+
			"send from several machines, or widen net.ipv4.ip_local_port_range", w.PortWaits,
			s.PortWait.Seconds(), ports)
	case ports > 0 && w.DialsMinute > ports:
		w.Note = fmt.Sprintf("%d connections were opened within a minute and there are %d local ports: where the "+
			"client closes first, requests wait for a port. Use pooled connections, or widen "+
			"net.ipv4.ip_local_port_range", w.DialsMinute, ports)
	}
	return w
}

// spareFiles are kept for what the process has open besides its connections.
const spareFiles = 64

// CheckFiles says whether so many connections can be open at once. The runtime has
// raised the limit to what the process may have.
func CheckFiles(connections int) error {
	limit := host.FileLimit()
	if need := int64(connections) + host.OpenFiles() + spareFiles; need > limit {
		return fmt.Errorf("client: %d connections at once need %d open files in all, and the limit is %d: raise it "+
			"with ulimit -n", connections, need, limit)
	}
	return nil
}
