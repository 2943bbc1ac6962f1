package client

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"reprise/replay/openai"
	"reprise/replay/result"
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
// unix:///path/of.sock. A base path may follow after a colon, as in
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
	base, err := baseURL("http://socket-" + strconv.Itoa(index) + socketSuffix + below)
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
		return "", "", errors.New("client: a Unix socket's URL must be like unix:///run/engine.sock, or with a base path unix:///run/engine.sock:/base")
	}
	return socket, path, nil
}

// socketSuffix ends the host name that stands for a Unix socket.
const socketSuffix = ".invalid"

var apiPaths = map[string]string{
	result.APIChat: openai.ChatPath, result.APICompletions: openai.CompletionsPath,
	result.APIResponses: openai.ResponsesPath, result.APIMessages: openai.MessagesPath, result.APIEmbeddings: openai.EmbeddingsPath,
}

// baseURL parses the base and drops a /v1 or the path of an API at its end. Its errors do not quote:
// a URL may hold a password.
func baseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("client: the server's URL must be like http://localhost:8000")
	}
	if u.User != nil {
		return nil, errors.New("client: the server's URL must not hold a password: use a header from the environment or a file")
	}
	path := strings.TrimRight(u.Path, "/")
	if api := APIOfURL(s); api != "" {
		path = strings.TrimSuffix(path, apiPaths[api])
	}
	u.Path, u.RawPath = strings.TrimSuffix(path, "/v1"), ""
	return u, nil
}

// APIOfURL is the API whose path ends a server's URL, as in
// http://localhost:8000/v1/chat/completions, and "" where there is none.
func APIOfURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	for api, path := range apiPaths {
		if strings.HasSuffix(strings.TrimRight(u.Path, "/"), path) {
			return api
		}
	}
	return ""
}

// below keeps the base's query, where some gateways want a version.
func below(base *url.URL, path string) *url.URL {
	u := *base
	u.Path += path
	return &u
}
