package record_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reprise/datasets/record"
	"reprise/trace"
)

// served is a proxy on a port of its own, with the limits that it has in earnest.
func served(t *testing.T, r *recorded, o record.ServeOptions) (address string, stop func() (cutOff int)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		n, err := r.Serve(ctx, l, o)
		if err != nil {
			t.Errorf("serve: %v", err)
		}
		done <- n
	}()
	var once sync.Once
	n := 0
	stop = func() int { once.Do(func() { end(); n = <-done }); return n }
	t.Cleanup(func() { stop() })
	return l.Addr().String(), stop
}

// rawServer takes connections and answers each request on it with 200, and keeps what came.
func rawServer(t *testing.T, each func(c net.Conn, nth int)) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); each(c, n) }()
		}
	}()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}
}

// A request that two servers could cut in two ways reaches the engine as one, or not at
// all.
func TestSmuggling(t *testing.T) {
	for name, raw := range map[string]string{
		"both lengths":     "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
		"two lengths":      "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 36\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
		"spaced name":      "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length : 36\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
		"odd coding":       "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
		"line in a header": "POST /v1/completions HTTP/1.1\r\nHost: a\r\nX: a\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
		"signed length":    "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: +36\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var came bytes.Buffer
			u := rawServer(t, func(c net.Conn, _ int) {
				b := make([]byte, 4096)
				n, _ := c.Read(b)
				mu.Lock()
				came.Write(b[:n])
				mu.Unlock()
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			})
			r := proxied(t, func(o *record.Options) { o.Upstreams = []*url.URL{u} })
			address, stop := served(t, r, record.ServeOptions{Drain: time.Second})
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(2 * time.Second))
			io.WriteString(c, raw)
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			stop()
			mu.Lock()
			defer mu.Unlock()
			text := came.String()
			if answer.StatusCode != 400 && answer.StatusCode != 501 {
				// Then the second request is one of its own, on a connection of its own, and
				// the first has one length.
				first, _, _ := strings.Cut(text, "\r\n\r\n")
				if strings.Contains(first, "Content-Length") && strings.Contains(first, "Transfer-Encoding") || strings.Contains(first, "smuggled") {
					t.Errorf("status %d, the engine got\n%s", answer.StatusCode, text)
				}
			} else if text != "" {
				t.Errorf("status %d, and yet the engine got\n%s", answer.StatusCode, text)
			}
		})
	}
}

// Heads beyond the limit are refused by the proxy; long bodies are none of its business.
func TestOversized(t *testing.T) {
	var came int64
	r := proxied(t, func(o *record.Options) { o.Memory = 256 << 20 }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came, _ = io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"choices":[{"text":"x","finish_reason":"stop"}]}`)
	}))
	address, _ := served(t, r, record.ServeOptions{Drain: time.Second})
	req, _ := http.NewRequest("POST", "http://"+address+"/v1/completions", strings.NewReader(`{"prompt":"x"}`))
	req.Header.Set("X-Long", strings.Repeat("x", 2<<20))
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge || came != 0 {
		t.Errorf("a head of 2 MiB: %v, %v, the engine got %d bytes", resp, err, came)
	}
	body := `{"prompt":"` + strings.Repeat("long ", 32<<20/5) + `"}`
	resp, err = http.Post("http://"+address+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || came != int64(len(body)) {
		t.Errorf("a prompt of 32 MB: status %d, the engine got %d of %d bytes", resp.StatusCode, came, len(body))
	}
	entries, counts := r.over(t)
	if len(entries) != 1 || entries[0].Messages[0].Content.Len() != len(body)-len(`{"prompt":""}`) {
		t.Errorf("%d entries, %+v", len(entries), counts)
	}
}

// pipes is a listener in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client that sends its head by drops is cut off after 30 s, and one that sends nothing
// more after 6 minutes.
func TestSlowHeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := record.New(record.Options{Begin: time.Now(), Memory: 1 << 20, Share: 1, Upstreams: []*url.URL{{Scheme: "http", Host: "127.0.0.1:1"}},
			Sink: func() (func(*trace.Entry) error, error) { return func(*trace.Entry) error { return nil }, nil }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		l, served := make(pipes), make(chan error, 1)
		go func() {
			_, err := p.Serve(ctx, l, record.ServeOptions{})
			served <- err
		}()
		for head, want := range map[string]time.Duration{"POST /v1/completions HTTP/1.1\r\nHost: a\r\nX-Slow: ": 30 * time.Second, "": 30 * time.Second} {
			client, server := net.Pipe()
			l <- server
			begin := time.Now()
			go io.WriteString(client, head)
			var drops sync.WaitGroup
			drops.Go(func() { // one a second
				for {
					time.Sleep(time.Second)
					if head == "" {
						return
					}
					if _, err := client.Write([]byte{'x'}); err != nil {
						return
					}
				}
			})
			io.Copy(io.Discard, client)
			if cut := time.Since(begin); cut < want || cut > want+time.Second {
				t.Errorf("%q: cut off after %v", head, cut)
			}
			client.Close()
			drops.Wait()
		}
		stop()
		<-served
		p.Close()
	})
}

// A client that reads nothing holds up neither others nor memory: what it does not take
// stays with the engine.
func TestSlowReaders(t *testing.T) {
	var sent atomic.Int64
	r := proxied(t, func(o *record.Options) { o.Memory = 256 << 20 }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Header.Get("X-Short") != "" {
			io.WriteString(w, shortStream)
			return
		}
		piece := []byte(":" + strings.Repeat("x", 64<<10) + "\n\n")
		for range 1 << 10 { // 64 MB in all
			n, err := w.Write(piece)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	}))
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"stream":true,"prompt":"x"}`
	fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	last := int64(-1)
	for range 100 { // until no more goes out
		time.Sleep(20 * time.Millisecond)
		now := sent.Load()
		if now == last && now > 0 {
			break
		}
		last = now
	}
	if last == 64<<20 || last <= 0 {
		t.Errorf("the engine could send %d bytes", last)
	}
	for range 20 {
		if status, text := r.post(t, "/v1/completions", body, "X-Short", "1"); status != 200 || text != shortStream {
			t.Fatalf("%d %q", status, text)
		}
	}
	c.Close()
	if _, counts := r.over(t); counts.Recorded != 21 {
		t.Errorf("%+v", counts)
	}
}

// A redirect is passed on and not followed, so that no credential goes where it leads; and
// of an engine that answers nonsense nothing is repeated.
func TestCredentialsStay(t *testing.T) {
	var elsewhere atomic.Int32
	other := rawServer(t, func(c net.Conn, _ int) { elsewhere.Add(1) })
	r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", other.String()+"/v1/completions")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	req, _ := http.NewRequest("POST", r.url+"/v1/completions", strings.NewReader(`{"prompt":"x"}`))
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || resp.Header.Get("Location") != other.String()+"/v1/completions" || elsewhere.Load() != 0 {
		t.Errorf("status %d to %q; %d connections elsewhere", resp.StatusCode, resp.Header.Get("Location"), elsewhere.Load())
	}

	for _, nonsense := range []string{"HTTP/1.1 secret\r\n\r\n", "secret", "HTTP/1.1 200 OK\r\nsecret\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n"} {
		var said []string
		u := rawServer(t, func(c net.Conn, _ int) {
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, nonsense)
		})
		r := proxied(t, func(o *record.Options) {
			o.Upstreams, o.Message = []*url.URL{u}, func(s string) { said = append(said, s) }
		})
		status, text := r.post(t, "/v1/completions", `{"prompt":"secret"}`, "Authorization", "Bearer secret")
		r.over(t)
		if status != 502 || len(said) != 1 || strings.Contains(text+said[0], "secret") {
			t.Errorf("%q: %d %q, said %q", nonsense, status, text, said)
		}
	}
}

// A request that goes out on a connection which the server closes at that instant is
// sent once more; one that the server took and dropped is not.
func TestIdleConnectionCloses(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	read := func(c net.Conn) bool {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return false
		}
		io.Copy(io.Discard, r.Body)
		return true
	}
	u := rawServer(t, func(c net.Conn, nth int) {
		if read(c) {
			io.WriteString(c, ok)
		}
		read(c) // and closes, as if it had been idle too long
	})
	r := proxied(t, func(o *record.Options) { o.Upstreams = []*url.URL{u} })
	for i := range 6 {
		if status, text := r.post(t, "/v1/completions", `{"prompt":"x"}`); status != 200 || text != "ok" {
			t.Fatalf("request %d: %d %s", i, status, text)
		}
	}
	var taken atomic.Int32
	u = rawServer(t, func(c net.Conn, nth int) { read(c); taken.Add(1) })
	r = proxied(t, func(o *record.Options) { o.Upstreams = []*url.URL{u} })
	if status, _ := r.post(t, "/v1/completions", `{"prompt":"x"}`); status != 502 || taken.Load() != 1 {
		t.Errorf("status %d, sent %d times", status, taken.Load())
	}
}

// An engine that answers before it has all of a request is heard to the end.
func TestEarlyAnswer(t *testing.T) {
	for _, long := range []int{100 << 10, 4 << 20} {
		r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			for range 5 {
				io.WriteString(w, "too long\n")
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		}))
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", 2*long)
		io.WriteString(c, strings.Repeat("x", long))
		go func() {
			time.Sleep(10 * time.Millisecond)
			io.WriteString(c, strings.Repeat("x", long))
		}()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 413 || strings.Count(string(text), "too long") != 5 {
			t.Errorf("%d bytes: %d %q %v", 2*long, resp.StatusCode, text, err)
		}
	}
}

// WebSockets pass both ways, and are waited for when the proxy stops.
func TestWebSocket(t *testing.T) {
	r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(c, "echo "+line)
		}
	}))
	address, stop := served(t, r, record.ServeOptions{Drain: 200 * time.Millisecond})
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(c, "GET /v1/realtime HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "x" {
		t.Fatalf("%v %v", resp, err)
	}
	for i := range 3 {
		fmt.Fprintf(c, "%d\n", i)
		if line, err := in.ReadString('\n'); err != nil || line != fmt.Sprintf("echo %d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
	}
	if n := stop(); n != 1 {
		t.Errorf("%d cut off, want 1", n)
	}
	if _, err := in.ReadString('\n'); err != io.EOF {
		t.Errorf("the WebSocket ended with %v", err)
	}
}

// HTTP/2 with and without TLS, towards clients and towards the engine.
func TestHTTP2AndTLS(t *testing.T) {
	engine := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, `{"choices":[{"text":"%s","finish_reason":"stop"}]}`, r.Proto)
	}))
	engine.EnableHTTP2 = true
	engine.StartTLS()
	t.Cleanup(engine.Close)
	pool := x509.NewCertPool()
	pool.AddCert(engine.Certificate())
	trusting := &tls.Config{RootCAs: pool}
	u, _ := url.Parse(engine.URL)
	r := proxied(t, func(o *record.Options) { o.Upstreams, o.TLS = []*url.URL{u}, trusting.Clone() })
	secure, _ := served(t, r, record.ServeOptions{Drain: time.Second, Certificate: &engine.TLS.Certificates[0]})
	open, _ := served(t, r, record.ServeOptions{Drain: time.Second})
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	for _, c := range []struct {
		url, proto string
		transport  *http.Transport
	}{
		{"https://" + secure, "HTTP/2.0", &http.Transport{TLSClientConfig: trusting.Clone(), ForceAttemptHTTP2: true}},
		{"https://" + secure, "HTTP/1.1", &http.Transport{TLSClientConfig: trusting.Clone()}},
		{"http://" + open, "HTTP/2.0", &http.Transport{Protocols: h2c}},
	} {
		resp, err := (&http.Client{Transport: c.transport}).Post(c.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		c.transport.CloseIdleConnections()
		if resp.Proto != c.proto || !strings.Contains(string(text), "HTTP/2.0") {
			t.Errorf("%s: client %s, %s", c.url, resp.Proto, text)
		}
	}
	if entries, _ := r.over(t); len(entries) != 3 || entries[0].Status == trace.StatusFailed {
		t.Errorf("%d entries", len(entries))
	}

	// An engine whose certificate is not trusted gets nothing.
	r = proxied(t, func(o *record.Options) { o.Upstreams = []*url.URL{u} })
	if status, _ := r.post(t, "/v1/completions", `{"prompt":"x"}`); status != 502 {
		t.Errorf("status %d", status)
	}
}

// When it stops, a stream in flight comes to its end and no new connection is taken.
func TestDrain(t *testing.T) {
	next := make(chan struct{})
	r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n")
			w.(http.Flusher).Flush()
			<-next
		}
	}))
	draining := make(chan int, 1)
	address, stop := served(t, r, record.ServeOptions{Drain: 10 * time.Second, Draining: func(n int) { draining <- n }})
	resp, err := http.Post("http://"+address+"/v1/completions", "", strings.NewReader(`{"stream":true,"prompt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan int)
	go func() { stopped <- stop() }()
	if n := <-draining; n != 1 {
		t.Errorf("%d in flight", n)
	}
	for range 100 { // the listener closes at the beginning of the end
		c, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		c.Close()
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("it takes connections still")
	}
	next <- struct{}{}
	next <- struct{}{}
	text, err := io.ReadAll(resp.Body)
	if err != nil || strings.Count(string(text), "data:") != 2 {
		t.Errorf("%q %v", text, err)
	}
	if n := <-stopped; n != 0 {
		t.Errorf("%d cut off", n)
	}
	if entries, _ := r.over(t); len(entries) != 1 || entries[0].Status != "" {
		t.Errorf("%v", entries)
	}
}
