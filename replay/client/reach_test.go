package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

var reachOne = trace.Request{InputTokens: 1, OutputTokens: trace.Ptr[int32](1)}

func reachOK(t *testing.T, name string, h *HTTP) result.Result {
	t.Helper()
	r := fire(t, h, reachOne, 0)
	if r.Error != "" || r.Events != 1 || r.SentNS == nil || r.Attempts != 1 {
		t.Errorf("%s: %+v", name, r)
	}
	inOrder(t, name, r.SentNS, r.HeadersNS, r.FirstTokenNS, r.DoneNS)
	return r
}

// TLS: the certificate is checked against the authorities given, or not at all when
// told so, and the client shows its own.
func TestReachTLS(t *testing.T) {
	var clients atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clients.Add(int64(len(r.TLS.PeerCertificates)))
		stream(tok, stop, done)(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	for _, c := range []struct {
		name  string
		tls   *tls.Config
		error string
	}{
		{"the system's authorities", nil, openai.KindTLS},
		{"its authority", &tls.Config{RootCAs: pool}, ""},
		{"another name", &tls.Config{RootCAs: pool, ServerName: "elsewhere.test"}, openai.KindTLS},
		{"its other name", &tls.Config{RootCAs: pool, ServerName: "example.com"}, ""},
		{"unchecked", &tls.Config{InsecureSkipVerify: true}, ""},
		{"client certificate", &tls.Config{RootCAs: pool, Certificates: s.TLS.Certificates}, ""},
	} {
		h := endpoint(t, Options{URL: s.URL, TLS: c.tls})
		if r := fire(t, h, reachOne, 0); r.Error != c.error {
			t.Errorf("%s: error %q, want %q", c.name, r.Error, c.error)
		}
		var run result.Run
		if h.Describe(&run); run.TLSUnverified != (c.name == "unchecked") {
			t.Errorf("%s: unverified %v", c.name, run.TLSUnverified)
		}
	}
	if clients.Load() != 1 {
		t.Errorf("%d clients showed a certificate", clients.Load())
	}
}

// HTTP/2 over TLS and without; HTTP/1.1 is the default even where the server has both.
func TestReachHTTP2(t *testing.T) {
	var proto, peers sync.Map
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto.Store(r.ProtoMajor, true)
		peers.Store(r.RemoteAddr, true)
		stream(role, tok, stop, usage, done)(w, r)
	})
	over := httptest.NewUnstartedServer(handler)
	over.EnableHTTP2 = true
	over.Config.ErrorLog = log.New(io.Discard, "", 0)
	over.StartTLS()
	t.Cleanup(over.Close)
	plain := httptest.NewUnstartedServer(handler)
	plain.Config.Protocols = new(http.Protocols)
	plain.Config.Protocols.SetHTTP1(true)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	t.Cleanup(plain.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(over.Certificate())
	for _, conns := range []string{PerRequest, Pooled} {
		for url, h2 := range map[string]bool{over.URL: true, over.URL + "/": false, plain.URL: true, plain.URL + "/": false} {
			proto.Clear()
			peers.Clear()
			h := endpoint(t, Options{URL: url, HTTP2: h2, Connections: conns, TLS: &tls.Config{RootCAs: trusted}})
			for range 3 {
				reachOK(t, url, h)
			}
			want := 1
			if h2 {
				want = 2
			}
			connections := 0
			peers.Range(func(any, any) bool { connections++; return true })
			wanted := map[string]int{PerRequest: 3, Pooled: 1}[conns]
			if !h2 && conns == Pooled {
				wanted = connections // our own are used again when the first has proved its server
			}
			if connections != wanted {
				t.Errorf("%s, %s, HTTP/%d: %d connections for 3 requests, want %d", url, conns, want, connections, wanted)
			}
			if _, ok := proto.Load(want); !ok {
				t.Errorf("%s, %s: not HTTP/%d", url, conns, want)
			}
			if _, ok := proto.Load(3 - want); ok {
				t.Errorf("%s, %s: HTTP/%d", url, conns, 3-want)
			}
		}
	}
	// Requests at once may choose one connection that has room for one of them: the
	// others must go out on connections of their own.
	for _, conns := range []string{PerRequest, Pooled} {
		h := endpoint(t, Options{URL: over.URL, HTTP2: true, Connections: conns, TLS: &tls.Config{RootCAs: trusted}})
		var all sync.WaitGroup
		for range 64 {
			c, err := h.Prepare(result.NoRow, 0, &reachOne, words{})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				var r result.Result
				if h.Fire(t.Context(), result.Shot{Call: c, Start: time.Now()}, &r); r.Error != "" {
					t.Errorf("%s, at once: %+v", conns, r)
				}
			})
		}
		all.Wait()
	}
	// A server without HTTP/2 is not talked to in another way.
	old := endpoint(t, Options{URL: serve(t, stream(tok, stop, done)), HTTP2: true})
	if r := fire(t, old, reachOne, 0); r.Error == "" {
		t.Errorf("a server without HTTP/2: %+v", r)
	}
}

func TestReachUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if len(path) > 100 { // the limit of the address
		dir, err := os.MkdirTemp("", "r")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		path = filepath.Join(dir, "s")
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var host, asked string
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, asked = r.Host, r.URL.Path
		stream(tok, stop, done)(w, r)
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // which a socket has no use for
	for below, want := range map[string]string{"": "/v1/chat/completions", ":/engine/v1/": "/engine/v1/chat/completions"} {
		h := endpoint(t, Options{URL: "unix://" + path + below})
		reachOK(t, below, h)
		if host != "localhost" || asked != want {
			t.Errorf("%q: host %q, path %q", below, host, asked)
		}
		if names := h.Endpoints(); names[0] != "unix://"+path+below {
			t.Errorf("it is called %q", names)
		}
	}
	if r := fire(t, endpoint(t, Options{URL: "unix://" + path + "x"}), reachOne, 0); r.Error != openai.KindConnect {
		t.Errorf("no socket there: %q", r.Error)
	}
	for _, bad := range []string{"unix://relative", "unix://", "unix:///s:base"} {
		if _, err := New(Options{URL: bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// A proxy gets the whole URL of a plain request, and a tunnel for TLS.
func TestReachProxy(t *testing.T) {
	var seen sync.Map
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Method+" "+r.URL.Host, true)
		if r.Method != http.MethodConnect {
			stream(tok, stop, done)(w, r)
			return
		}
		reachTunnel(t, w, r.Host)
	})
	over := httptest.NewUnstartedServer(stream(tok, stop, done))
	over.Config.ErrorLog = log.New(io.Discard, "", 0)
	over.StartTLS()
	t.Cleanup(over.Close)
	insecure := &tls.Config{InsecureSkipVerify: true}
	reachOK(t, "plain", endpoint(t, Options{URL: "http://engine.test:81", Proxy: proxy}))
	reachOK(t, "TLS", endpoint(t, Options{URL: over.URL, Proxy: proxy, TLS: insecure}))
	host := strings.TrimPrefix(over.URL, "https://")
	for _, want := range []string{"POST engine.test:81", "CONNECT " + host} {
		if _, ok := seen.Load(want); !ok {
			t.Errorf("the proxy did not see %s", want)
		}
	}
	seen.Clear()
	reachOK(t, "none", endpoint(t, Options{URL: over.URL, Proxy: noProxy, TLS: insecure}))
	seen.Range(func(k, _ any) bool { t.Errorf("the proxy saw %v", k); return true })
	for _, bad := range []string{"http://u:secret@x", "x", "ftp://x"} {
		if _, err := New(Options{URL: "http://x", Proxy: bad}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// reachTunnel joins a client to an address.
func reachTunnel(t *testing.T, w http.ResponseWriter, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { io.Copy(to, conn); to.Close() }()
	go func() { io.Copy(conn, to); conn.Close() }()
}

// Several servers: round and round, or by session; each result says which.
func TestReachSeveral(t *testing.T) {
	var hits [3]atomic.Int64
	var urls []string
	for i := range hits {
		urls = append(urls, serve(t, func(w http.ResponseWriter, r *http.Request) {
			hits[i].Add(1)
			stream(tok, stop, done)(w, r)
		}))
	}
	for _, balance := range []string{RoundRobin, BySession} {
		for i := range hits {
			hits[i].Store(0)
		}
		h := endpoint(t, Options{URL: urls[0], Also: urls[1:], Balance: balance})
		var rows []trace.Request
		for i := range int64(90) {
			row := reachOne
			if i%3 > 0 {
				row.Session = trace.Ptr(i % 20)
			}
			rows = append(rows, row)
		}
		var out trace.SliceWriter[result.Result]
		run, err := (&replay.Runner{Prompter: words{}, Endpoint: h}).Run(t.Context(), reader(rows), &out)
		if err != nil || len(out.Rows) != 90 {
			t.Fatal(err)
		}
		_ = run
		went := map[int64]map[int32]bool{}
		var counts [3]int64
		for _, r := range out.Rows {
			if r.Error != "" || r.Endpoint == nil {
				t.Fatalf("%+v", r)
			}
			counts[*r.Endpoint]++
			if r.Session != nil {
				if went[*r.Session] == nil {
					went[*r.Session] = map[int32]bool{}
				}
				went[*r.Session][*r.Endpoint] = true
			}
		}
		for i := range hits {
			if counts[i] != hits[i].Load() || counts[i] < 15 || balance == RoundRobin && counts[i] != 30 {
				t.Errorf("%s: server %d had %d requests, the results say %d", balance, i, hits[i].Load(), counts[i])
			}
		}
		for session, to := range went {
			if balance == BySession && len(to) != 1 {
				t.Errorf("session %d went to %d servers", session, len(to))
			}
		}
	}
}

// Servers must serve one model and one template, and the error says which does not.
func TestReachSeveralAgree(t *testing.T) {
	server := func(model string, prompt int) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				fmt.Fprintf(w, `{"data":[{"id":%q}]}`, model)
				return
			}
			stream(tok, stop, strings.NewReplacer("11", fmt.Sprint(prompt), "14", fmt.Sprint(prompt+3), `:8}`, `:0}`).Replace(usage), done)(w, r)
		})
	}
	a, b, other, long := server("m", 5), server("m", 5), server("x", 5), server("m", 6)
	for _, c := range []struct {
		url, models, template string
	}{{b, "", ""}, {other, "different models", ""}, {long, "", "adds 4 tokens"}, {"http://127.0.0.1:1/v1?key=secret", "127.0.0.1:1", ""}} {
		h, err := New(Options{URL: a + "/v1", Also: []string{c.url}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		_, err = h.Probe(context.Background())
		if c.models == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), c.models) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: probe: %v", c.url, err)
		}
		if err != nil {
			continue
		}
		n, err := h.Calibrate(t.Context(), " hello", 1)
		if c.template == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.template) || err == nil && n != 4 {
			t.Errorf("%s: calibrate: %d, %v", c.url, n, err)
		}
		var run result.Run
		if h.Describe(&run); len(run.Endpoints) != 2 || strings.Contains(strings.Join(run.Endpoints, ""), "secret") || run.Balance != RoundRobin {
			t.Errorf("run %+v", run)
		}
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(stream(tok, stop, done))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	row := trace.Request{InputTokens: 1, OutputTokens: new(int32)}
	if r := fire(t, endpoint(t, Options{URL: s.URL}), row, 0); r.Error != openai.KindTLS || r.SentNS != nil {
		t.Errorf("a certificate of unknown origin: %+v", r)
	}
	if r := fire(t, endpoint(t, Options{URL: s.URL, TLS: &tls.Config{InsecureSkipVerify: true}}), row, 0); r.Error != "" {
		t.Errorf("told not to mind: %q", r.Error)
	}
}
