package client

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// Values of [Options].Balance.
const (
	// RoundRobin gives each next request to the next server.
	RoundRobin = "round-robin"
	// BySession gives all requests of a session to one server, chosen by a hash of
	// the session, and the others to the next.
	BySession = "session"
)

// A target is one server.
type target struct {
	base   *url.URL
	name   string // its URL without query, for people and results
	host   string // of the Host header
	socket string // path of a Unix socket, in place of the network
	urls   map[string]*url.URL

	exchanger exchanger
	wire      *wire // the exchanger, unless net/http sends
}

// parseTarget reads a server's URL: that of its base, /v1 may follow, or
// unix:///path/of.sock, behind which a base path may follow after a colon, as in
// unix:///run/engine.sock:/base. Its errors do not quote: a URL may hold a password.
func parseTarget(s string, index int) (target, error) {
	socket, below, err := SplitSocket(s)
	if err != nil {
		return target{}, err
	}
	if socket == "" {
		base, err := baseURL(s)
		if err != nil {
			return target{}, err
		}
		shown := *base
		shown.RawQuery, shown.Fragment = "", ""
		return target{base: base, name: shown.String(), host: base.Host}, nil
	}
	// The address that the transport sees names the socket and can be no host.
	base, err := baseURL("http://" + socketHost(index) + below)
	return target{base: base, name: s, host: "localhost", socket: socket}, err
}

// SplitSocket takes the URL of a Unix socket apart. Of any other URL, socket is empty.
func SplitSocket(s string) (socket, path string, err error) {
	rest, isSocket := strings.CutPrefix(s, "unix://")
	if !isSocket {
		return "", "", nil
	}
	socket, path, _ = strings.Cut(rest, ":")
	if !strings.HasPrefix(socket, "/") || path != "" && !strings.HasPrefix(path, "/") {
		return "", "", errors.New("replay: a Unix socket's URL must be like unix:///run/engine.sock, or with a base path unix:///run/engine.sock:/base")
	}
	return socket, path, nil
}

func socketHost(index int) string { return "socket-" + strconv.Itoa(index) + socketSuffix }

const socketSuffix = ".invalid"

// targets reads the servers' URLs.
func (o *Options) targets() ([]target, error) {
	var out []target
	for i, s := range append([]string{o.URL}, o.Also...) {
		t, err := parseTarget(s, i)
		if err != nil {
			return nil, err
		}
		t.urls = map[string]*url.URL{}
		for api, path := range apiPaths {
			t.urls[api] = below(t.base, path)
		}
		out = append(out, t)
	}
	return out, nil
}

var apiPaths = map[string]string{
	result.APIChat: openai.ChatPath, result.APICompletions: openai.CompletionsPath,
	result.APIResponses: openai.ResponsesPath, result.APIEmbeddings: openai.EmbeddingsPath,
}

// choose says which server a row goes to. One goroutine calls it, in the order in
// which rows are prepared.
func (h *HTTP) choose(row *trace.Request) int {
	n := uint64(len(h.targets))
	if h.opt.Balance == BySession && row.Session != nil {
		// Sessions are numbered as they appear, and their remainders would go round as
		// requests do.
		return int(sample.Mix64(uint64(*row.Session)+sample.Golden) % n)
	}
	h.turn++
	return int((h.turn - 1) % n)
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
