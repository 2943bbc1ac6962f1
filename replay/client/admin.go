package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Paths that empty a prefix cache: vLLM's, which it has in its development mode
// (VLLM_SERVER_DEV_MODE=1), and SGLang's.
const (
	vllmReset   = "/reset_prefix_cache"
	sglangReset = "/flush_cache"
)

// AdminOptions say where the servers take calls other than requests. Servers behind a
// balancer are given by addresses of their own.
type AdminOptions struct {
	URLs    []string // bases; /v1 may follow
	APIKey  string   // sent as a bearer token
	Header  http.Header
	Timeout time.Duration // of one call; 0 means 2 minutes
	TLS     *tls.Config
	Proxy   string // as that of [Options]
}

// An Admin makes calls to every server: to empty its cache, and to ask what it is.
type Admin struct {
	opt    AdminOptions
	bases  []*url.URL
	roots  []*url.URL // of the APIs
	header http.Header
	client *http.Client
}

// NewAdmin checks the options. It connects to nothing.
func NewAdmin(o AdminOptions) (*Admin, error) {
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	if len(o.URLs) == 0 || o.Timeout < 0 {
		return nil, errors.New("client: there is no server to call, or its time limit is negative")
	}
	a := &Admin{opt: o, header: http.Header{"User-Agent": {"reprise"}}}
	via := &HTTP{opt: Options{URL: o.URLs[0], Also: o.URLs[1:], Connections: Pooled, TLS: o.TLS, Proxy: o.Proxy,
		ConnectTimeout: connectTimeout}}
	var err error
	if via.targets, err = via.opt.targets(); err != nil {
		return nil, err
	}
	for _, t := range via.targets {
		a.bases, a.roots = append(a.bases, t.base), append(a.roots, t.root)
	}
	if o.APIKey != "" {
		a.header.Set("Authorization", "Bearer "+o.APIKey)
	}
	for name, values := range o.Header {
		if name = http.CanonicalHeaderKey(name); name != "Host" {
			a.header[name] = values
		}
	}
	t, err := via.newTransport()
	if err != nil {
		return nil, err
	}
	// A redirect would take the key elsewhere.
	a.client = &http.Client{Transport: t, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return a, nil
}

// Servers returns the number of servers.
func (a *Admin) Servers() int { return len(a.bases) }

// Close drops the idle connections.
func (a *Admin) Close() { a.client.CloseIdleConnections() }

// ErrNoCall says that a server has no call that empties its cache.
var ErrNoCall = errors.New("has no call that empties its cache")

// busyFor is how long a server may say that it is busy: SGLang refuses to empty its
// cache while a request is there, and that of a client that has its answer may be
// there for some steps.
const busyFor = 5 * time.Second

// ResetCache empties the prefix cache of every server, by a POST to the path, or
// when the path is empty to the one of vLLM's and SGLang's that the server has. It
// returns the paths that were used. The error wraps [ErrNoCall] when a server has none.
//
// vLLM does not report whether it emptied the cache: it does nothing while requests run.
func (a *Admin) ResetCache(ctx context.Context, path string) (used string, err error) {
	paths := []string{vllmReset, sglangReset}
	if path != "" {
		paths = []string{path}
	}
	var all []string
	for i := range a.bases {
		one, err := a.postFirst(ctx, i, paths)
		if err != nil {
			return "", err
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, ", "), nil
}

// postFirst posts to the first of the paths that a server has, and returns it.
func (a *Admin) postFirst(ctx context.Context, server int, paths []string) (string, error) {
	for _, path := range paths {
		err := a.post(ctx, server, path)
		for patience := time.Now().Add(busyFor); errors.Is(err, errBusy) && time.Now().Before(patience); {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			err = a.post(ctx, server, path)
		}
		if !errors.Is(err, ErrNoCall) {
			return path, err
		}
	}
	return "", fmt.Errorf("server %d %w", server+1, ErrNoCall)
}

var errBusy = errors.New("client: a server is busy with requests")

// post makes one call. Its errors quote neither the address nor the answer.
func (a *Admin) post(ctx context.Context, server int, path string) error {
	status, _, err := a.call(ctx, http.MethodPost, server, path)
	switch {
	case err != nil:
		return err
	case status/100 == 2:
		return nil
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented:
		return ErrNoCall
	case status == http.StatusBadRequest:
		return fmt.Errorf("%w: server %d refuses %s (HTTP 400)", errBusy, server+1, path)
	}
	return fmt.Errorf("client: server %d refuses %s (HTTP %d)", server+1, path, status)
}

func (a *Admin) call(ctx context.Context, method string, server int, path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.opt.Timeout)
	defer cancel()
	u := below(a.bases[server], path)
	if path == modelsPath {
		u = below(a.roots[server], path)
	}
	req := (&http.Request{Method: method, URL: u, Host: u.Host, Header: a.header}).WithContext(ctx)
	resp, err := a.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	}
	if err != nil {
		return 0, nil, fmt.Errorf("client: server %d does not answer %s", server+1, path)
	}
	return resp.StatusCode, body, nil
}

// ask decodes the answer to a GET, if there is a good one.
func (a *Admin) ask(ctx context.Context, server int, path string, into any) bool {
	status, body, err := a.call(ctx, http.MethodGet, server, path)
	return err == nil && status == http.StatusOK && json.Unmarshal(body, into) == nil
}
