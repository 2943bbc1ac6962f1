package client

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
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
	base   *url.URL // below which /version, /metrics and the like are
	root   *url.URL // below which its APIs and its models are, such as http://localhost:8000/v1
	first  *url.URL // the root that the URL says
	given  bool     // the URL is that of an API: its root is no guess
	name   string   // its URL without query, for people and results
	host   string   // of the Host header
	socket string   // path of a Unix socket, in place of the network
	urls   map[string]*url.URL

	exchanger exchanger
	wire      *wire // the exchanger, unless net/http sends
}

// parseTarget reads a server's URL: that of its base, of its APIs, such as one that ends in /v1,
// or of one API, or unix:///path/of.sock. A base path may follow after a colon, as in
// unix:///run/engine.sock:/base. Its errors do not quote: a URL may hold a password.
func parseTarget(s string, index int) (target, error) {
	socket, path, err := SplitSocket(s)
	if err != nil {
		return target{}, err
	}
	if socket != "" {
		// The address that the transport sees names the socket and can be no host.
		base, root, err := splitURL("http://socket-" + strconv.Itoa(index) + socketSuffix + path)
		return target{base: base, root: root, first: root, given: APIOfURL("http://socket"+path) != "", name: s,
			host: "localhost", socket: socket}, err
	}
	base, root, err := splitURL(s)
	if err != nil {
		return target{}, err
	}
	shown := *root
	if root.Path == base.Path+versionPath {
		shown = *base
	}
	shown.RawQuery, shown.Fragment = "", ""
	return target{base: base, root: root, first: root, given: APIOfURL(s) != "", name: shown.String(),
		host: base.Host}, nil
}

// setRoot says below which URL the APIs are.
func (t *target) setRoot(root *url.URL) {
	t.root, t.urls = root, map[string]*url.URL{}
	for api, path := range apiPaths {
		t.urls[api] = below(root, path)
	}
}

// otherRoot is where the APIs may be if they are not where they were looked for: below the
// URL itself in place of its /v1, or the other way round.
func (t *target) otherRoot() *url.URL {
	other := *t.root
	var versioned bool
	if other.Path, versioned = strings.CutSuffix(t.root.Path, versionPath); !versioned {
		other.Path += versionPath
	}
	return &other
}

// shown is the URL of a path below the APIs' root, without its query, for people.
func (t *target) shown(path string) string {
	if t.socket != "" {
		return t.name + strings.TrimPrefix(t.root.Path, t.base.Path) + path
	}
	u := below(t.root, path)
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}

// SplitSocket takes the URL of a Unix socket apart. Of any other URL, socket is empty.
func SplitSocket(s string) (socket, path string, err error) {
	rest, isSocket := strings.CutPrefix(s, "unix://")
	if !isSocket {
		return "", "", nil
	}
	socket, path, _ = strings.Cut(rest, ":")
	if !strings.HasPrefix(socket, "/") || path != "" && !strings.HasPrefix(path, "/") {
		return "", "", errors.New("client: a Unix socket's URL must be like unix:///run/engine.sock, or with a base " +
			"path unix:///run/engine.sock:/base")
	}
	return socket, path, nil
}

// socketSuffix ends the host name that stands for a Unix socket.
const socketSuffix = ".invalid"

// versionPath is where servers have their APIs unless their URL says otherwise.
const versionPath = "/v1"

// apiPaths are the paths of the APIs below the root that they have in common.
var apiPaths = map[string]string{
	result.APIChat: unversioned(openai.ChatPath), result.APICompletions: unversioned(openai.CompletionsPath),
	result.APIResponses: unversioned(openai.ResponsesPath), result.APIMessages: unversioned(openai.MessagesPath),
	result.APIEmbeddings: unversioned(openai.EmbeddingsPath),
}

func unversioned(path string) string { return strings.TrimPrefix(path, versionPath) }

// apiVersion matches a part of a path that says a version of APIs, such as v1, v1beta or v4.
var apiVersion = regexp.MustCompile(`^v[0-9]+([a-z]+[0-9]*)?$`)

// splitURL reads a server's URL, and returns the base of the server and the root of its APIs.
// A URL of an API, such as https://host/openai/deployments/m/chat/completions?api-version=1, is
// used as it is. Of a path that says a version, the APIs are below it; of any other below its
// /v1. Its errors do not quote: a URL may hold a password.
func splitURL(s string) (base, root *url.URL, err error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil, errors.New("client: the server's URL must be like http://localhost:8000")
	}
	if u.User != nil {
		return nil, nil, errors.New("client: the server's URL must not hold a password: use a header from the " +
			"environment or a file")
	}
	path := strings.TrimRight(u.Path, "/")
	api := APIOfURL(s)
	path = strings.TrimSuffix(path, apiPaths[api])
	u.Path, u.RawPath = path, ""
	root = new(url.URL)
	*root = *u

	parts := strings.Split(path, "/")
	version := slices.IndexFunc(parts, apiVersion.MatchString)
	switch {
	case version >= 0:
		u.Path = strings.Join(parts[:version], "/")
	case api == "":
		root.Path += versionPath
	}
	return u, root, nil
}

// APIOfURL is the API whose path ends a server's URL, as in
// http://localhost:8000/v1/chat/completions, and "" where there is none.
func APIOfURL(s string) (longest string) {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	for api, path := range apiPaths {
		if strings.HasSuffix(strings.TrimRight(u.Path, "/"), path) && len(path) > len(apiPaths[longest]) {
			longest = api
		}
	}
	return longest
}

// PageBeside is the URL of a page that a server has beside its APIs, such as /metrics. A URL
// that cannot be read comes back as it is, to be refused by whoever asks it.
func PageBeside(server, page string) string {
	if socket, path, err := SplitSocket(server); err == nil && socket != "" {
		if base, _, err := splitURL("http://socket" + path); err == nil {
			return "unix://" + socket + ":" + base.Path + page
		}
	}
	base, _, err := splitURL(server)
	if err != nil {
		return server
	}
	return below(base, page).String()
}

// below keeps the base's query, where some gateways want a version.
func below(base *url.URL, path string) *url.URL {
	u := *base
	u.Path += path
	return &u
}
