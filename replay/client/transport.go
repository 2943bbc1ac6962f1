package client

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// NoProxy is the value of [Options].Proxy that uses none.
const NoProxy = "none"

// proxy chooses the proxy of a request: that of the options, or of the environment
// (HTTP_PROXY, HTTPS_PROXY, NO_PROXY). A Unix socket has none.
func (h *HTTP) proxy() (func(*http.Request) (*url.URL, error), error) {
	choose := http.ProxyFromEnvironment
	switch h.opt.Proxy {
	case "":
	case NoProxy:
		return nil, nil
	default:
		u, err := url.Parse(h.opt.Proxy)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
			return nil, errors.New("replay: the proxy's URL must be like http://localhost:3128")
		}
		if u.User != nil {
			return nil, errors.New("replay: the proxy's URL must not hold a password: set HTTPS_PROXY in the environment instead")
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
		Proxy:               proxy,
		DialContext:         h.dial,
		TLSClientConfig:     o.TLS,
		TLSHandshakeTimeout: o.ConnectTimeout,
		DisableKeepAlives:   !strings.HasPrefix(o.Connections, Pooled),
		DisableCompression:  true, // a compressor holds events back
		MaxIdleConnsPerHost: 1 << 16,
		IdleConnTimeout:     90 * time.Second,
		Protocols:           one,
		// Headers and a prompt of some thousand tokens in one write.
		WriteBufferSize: 16 << 10,
	}, nil
}
