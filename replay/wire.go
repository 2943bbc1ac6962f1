package replay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/internal/h1"
)

// PerSession keeps a connection for each session of the workload, as a user's
// client does: a balancer of connections then sends a whole session to one
// server. Rows without a session have a connection each.
const PerSession = "per-session"

// maxSize bounds the connections of pooled:N.
const maxSize = 1 << 16

// parseConnections reads PerRequest, Pooled, pooled:N or PerSession; size is N.
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
	case s == PerSession:
		return h1.PerSession, 0, nil
	}
	return 0, 0, fmt.Errorf("replay: connections are %s, %s, pooled:N with N connections opened before the start, at most %d, or %s", PerRequest, Pooled, maxSize, PerSession)
}

// PoolSize checks a value of [HTTPOptions].Connections, and returns the N of
// pooled:N, else 0.
func PoolSize(connections string) (int, error) {
	_, size, err := parseConnections(connections)
	return size, err
}

// A wire is the exchanger of the hot path: HTTP/1.1 on connections that are
// dialled ahead of need.
type wire struct {
	h      *HTTP
	client *h1.Client
	head   string // of every request, up to its length
}

// The head ends with the length, of at most this many bytes.
const lengthRoom = len("9223372036854775807\r\n\r\n")

// connect chooses the exchanger.
func (h *HTTP) connect() error {
	keep, size, err := parseConnections(h.opt.Connections)
	if err != nil {
		return err
	}
	h.exchanger = netExchanger{h}
	if h.wire, err = newWire(h, keep, size); h.wire != nil {
		h.exchanger, h.room = h.wire, make([]byte, len(h.wire.head)+lengthRoom)
	}
	return err
}

// newWire makes the exchanger for a URL, or nil where net/http has to send, since
// there is a proxy.
func newWire(h *HTTP, keep h1.Keep, size int) (*wire, error) {
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: h.url}); proxy != nil || err != nil {
		return nil, nil
	}
	o := h1.Options{Address: dialAddress(h.url), Keep: keep, Size: size}
	if h.url.Scheme == "https" {
		if o.TLS = h.opt.TLS; o.TLS == nil {
			o.TLS = new(tls.Config)
		}
	}
	head, err := requestHead(h.url, h.host, h.header, keep == h1.PerRequest)
	if err != nil {
		return nil, err
	}
	return &wire{h: h, client: h1.New(o), head: head}, nil
}

func dialAddress(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// requestHead serialises the head of a request up to the length of its body. Errors
// do not quote: a header may hold a key.
func requestHead(u *url.URL, host string, header http.Header, closes bool) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", u.RequestURI(), host)
	if !h1.IsValue(host) {
		return "", errors.New("replay: the Host header has a character that no header may have")
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		switch name {
		case "Content-Length", "Transfer-Encoding", "Host":
			continue // the sender's to say
		case "Connection":
			closes = false
		}
		for _, v := range header[name] {
			if !h1.IsToken(name) || !h1.IsValue(v) {
				return "", errors.New("replay: a header has a character that no header may have")
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
	from := c.at - len(length) - len(w.head)
	copy(b[from:], w.head)
	copy(b[c.at-len(length):], length)
	return b[from:]
}

// exchange implements exchanger.
func (w *wire) exchange(ctx context.Context, c *httpCall, sent func()) (*reply, error) {
	defer w.h.bodies.Put(c.body)
	return replied(w.client.Do(ctx, w.message(c), c.session, sent))
}

// start sends a call without waiting, if that can be done. What it returns awaits
// the answer; it is nil when nothing was sent.
func (w *wire) start(c *httpCall, sent func()) (await func(ctx context.Context) (*reply, error)) {
	x := w.client.Start(w.message(c), c.session, sent)
	if x == nil {
		return nil
	}
	return func(ctx context.Context) (*reply, error) {
		defer w.h.bodies.Put(c.body)
		return replied(x.Await(ctx))
	}
}

func replied(r *h1.Response, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return &reply{status: r.Status(), header: r, body: r}, nil
}
