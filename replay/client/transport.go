package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// noProxy is the value of [Options].Proxy that uses none.
const noProxy = "none"

// maxResponseHeader bounds the head of an answer that net/http reads, in bytes.
const maxResponseHeader = 1 << 20

// proxy chooses the proxy of a request: that of the options, or of the environment
// (HTTP_PROXY, HTTPS_PROXY, NO_PROXY). A Unix socket has none.
func (h *HTTP) proxy() (func(*http.Request) (*url.URL, error), error) {
	choose := http.ProxyFromEnvironment
	switch h.opt.Proxy {
	case "":
	case noProxy:
		return nil, nil
	default:
		u, err := url.Parse(h.opt.Proxy)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
			return nil, errors.New("client: want the proxy's URL, such as http://localhost:3128")
		}
		if u.User != nil {
			return nil, errors.New("client: the proxy's URL must not hold a password: set HTTPS_PROXY in the " +
				"environment instead")
		}
		choose = http.ProxyURL(u)
	}
	return func(r *http.Request) (*url.URL, error) {
		if h.socket(r.URL.Host) != "" {
			return nil, nil
		}
		return choose(r)
	}, nil
}

// newTransport makes the transport of net/http for the options of h.
func (h *HTTP) newTransport() (*http.Transport, error) {
	o := &h.opt
	proxy, err := h.proxy()
	if err != nil {
		return nil, err
	}
	one := new(http.Protocols)
	if o.HTTP2 {
		one.SetHTTP2(true)            // over TLS
		one.SetUnencryptedHTTP2(true) // by prior knowledge, without
	} else {
		one.SetHTTP1(true)
	}
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            h.dial,
		TLSClientConfig:        o.TLS,
		TLSHandshakeTimeout:    o.ConnectTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableKeepAlives:      !strings.HasPrefix(o.Connections, Pooled),
		DisableCompression:     true, // a compressor holds events back
		MaxIdleConnsPerHost:    1 << 16,
		IdleConnTimeout:        90 * time.Second,
		Protocols:              one,
		// Headers and a prompt of some thousand tokens in one write.
		WriteBufferSize: 16 << 10,
	}, nil
}

// socket is the path of the Unix socket that a host stands for, or empty.
func (h *HTTP) socket(host string) string {
	for i := range h.targets {
		if t := &h.targets[i]; t.socket != "" && t.base.Host == host {
			return t.socket
		}
	}
	return ""
}

// dial connects to a server or a proxy: what a URL calls a socket's host is the socket.
func (h *HTTP) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: h.opt.ConnectTimeout} // with TCP_NODELAY, Go's default
	if host, _, err := net.SplitHostPort(address); err == nil {
		if socket := h.socket(host); socket != "" {
			return d.DialContext(ctx, "unix", socket)
		}
	}
	return d.DialContext(ctx, network, address)
}
