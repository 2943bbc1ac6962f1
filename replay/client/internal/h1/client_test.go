package h1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/replay/openai"
)

const request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

const streamed = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5, max=100\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"

// A peer is a server by hand: serve has each connection, and it is closed after.
func peer(t *testing.T, serve func(c net.Conn, number int64)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c, n.Add(1))
			}()
		}
	}()
	return l.Addr().String()
}

// asked reads a request.
func asked(b *bufio.Reader) bool {
	r, err := http.ReadRequest(b)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

// answers is a server that keeps its connections.
func answers(c net.Conn, _ int64) {
	for b := bufio.NewReader(c); asked(b); {
		io.WriteString(c, streamed)
	}
}

func client(t *testing.T, o Options) *Client {
	if o.Readers == nil {
		o.Readers = NewReaders()
		t.Cleanup(o.Readers.Close)
	}
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

// do sends a request and reads the answer.
func do(ctx context.Context, c *Client, session int64) (reused bool, err error) {
	r, err := c.Do(ctx, []byte(request), session, func() {})
	if err != nil {
		return false, err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err == nil && string(body) != "ab" {
		err = errors.New("another body")
	}
	return r.Reused(), err
}

// until waits for a condition that others bring about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

func (c *Client) counts() (fresh, kept, parting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.fresh), len(c.kept), len(c.parting)
}

// stocked says whether a request would find a connection.
func (c *Client) stocked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.fresh) > 0 || c.again(NoSession, time.Now()) >= 0
}

// Requests that are expected find their connections, as many as may be.
func TestDialledAhead(t *testing.T) {
	for _, o := range []Options{{Keep: PerRequest}, {Keep: Pooled}, {Keep: Pooled, Size: 20}} {
		o.Address = peer(t, answers)
		c := client(t, o)
		for range 10 {
			c.Expect()
		}
		want := max(firstStock, o.Size)
		until(t, "the stock is full", func() bool { n, _, _ := c.counts(); return n == want })
		for range 10 {
			until(t, "a connection is ready", c.stocked) // one that is kept may still be on probation
			x := c.Start([]byte(request), NoSession, func() {})
			if x == nil {
				t.Fatal("no connection is ready")
			}
			if r, err := x.Await(t.Context()); err != nil {
				t.Fatal(err)
			} else if body, err := io.ReadAll(r); string(body) != "ab" || err != nil {
				t.Fatal(string(body), err)
			}
		}
		if s := c.Stats(); s.Waited != 0 || s.Stale != 0 || s.Replaced != 0 || s.MaxMinute < s.Dials/2 {
			t.Errorf("%+v", s)
		}
	}
}

// A connection that the server closes while it idles is replaced before it is
// needed.
func TestReplaced(t *testing.T) {
	end := make(chan struct{})
	c := client(t, Options{Address: peer(t, func(conn net.Conn, n int64) {
		if n <= firstStock {
			<-end
			return
		}
		answers(conn, n)
	})})
	for range 20 {
		c.Expect()
	}
	until(t, "the stock is full", func() bool { n, _, _ := c.counts(); return n == firstStock })
	close(end)
	until(t, "all are replaced", func() bool {
		replaced := c.Stats().Replaced // first: before it is so, the stock is the old one
		n, _, _ := c.counts()
		return replaced == firstStock && n == firstStock
	})
	if _, err := do(t.Context(), c, NoSession); err != nil {
		t.Error(err)
	}
	if s := c.Stats(); s.Waited != 0 || s.Dials < 2*firstStock {
		t.Errorf("%+v", s)
	}
}

// A server that promises keep-alive and closes after each answer, at once or a
// little later, loses no request, and is found out.
func TestClosingServer(t *testing.T) {
	for _, keep := range []Keep{Pooled, PerSession} {
		var got atomic.Int64
		c := client(t, Options{Keep: keep, Address: peer(t, func(conn net.Conn, _ int64) {
			if asked(bufio.NewReader(conn)) {
				got.Add(1)
				io.WriteString(conn, streamed)
				if ms := rand.IntN(4); ms > 0 {
					<-time.After(time.Duration(ms) * time.Millisecond)
				}
			}
		})})
		const n, workers = 500, 32
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := w; i < n; i += workers {
					c.Expect()
					if reused, err := do(t.Context(), c, int64(w)); err != nil || reused {
						t.Errorf("reused %v: %v", reused, err)
					}
				}
			})
		}
		wg.Wait()
		until(t, "found out", func() bool { return c.Stats().Closes })
		if s := c.Stats(); got.Load() != n || s.Stale != 0 || s.Reused != 0 {
			t.Errorf("%d requests, %+v", got.Load(), s)
		}
	}
}

// One that keeps its promise is trusted once a connection has outlived its answer.
func TestKeepingServer(t *testing.T) {
	c := client(t, Options{Keep: Pooled, Address: peer(t, answers)})
	if reused, err := do(t.Context(), c, NoSession); reused || err != nil {
		t.Fatal(reused, err)
	}
	if reused, err := do(t.Context(), c, NoSession); reused || err != nil {
		t.Fatal("reused before anything is known of the server", err)
	}
	until(t, "trusted", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.trusted })
	for range 3 {
		if reused, err := do(t.Context(), c, NoSession); !reused || err != nil {
			t.Error("not reused", err)
		}
	}
	if s := c.Stats(); s.Dials != 2 || s.Reused != 3 || s.Closes {
		t.Errorf("%+v", s)
	}
}

// A connection is used again only if the answer allows it and nothing follows it.
func TestKept(t *testing.T) {
	const sized = "Content-Length: 2\r\n\r\nab"
	for answer, want := range map[string]bool{
		"HTTP/1.1 200 OK\r\n" + sized: true,
		streamed:                      true,
		"HTTP/1.0 200 OK\r\n" + sized: false,
		"HTTP/1.1 200 OK\r\nConnection: x, Close\r\n" + sized: false,
		"HTTP/1.1 200 OK\r\n" + sized + "HTTP":                false,
		streamed + "HTTP":                                     false,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nab\r\n0\r\n\r\n": false,
	} {
		c := client(t, Options{Keep: Pooled, Probation: -1, Address: peer(t, func(conn net.Conn, _ int64) {
			for b := bufio.NewReader(conn); asked(b); {
				io.WriteString(conn, answer)
			}
		})})
		for i := range 2 {
			if reused, err := do(t.Context(), c, NoSession); err != nil || reused != (want && i > 0) {
				t.Errorf("%q: reused %v, %v", answer, reused, err)
			}
		}
	}
}

// A connection that has ended is not used, though nobody has looked at it since.
func TestAskedBeforeUse(t *testing.T) {
	if !askedAtUse {
		t.Skip("not on this system")
	}
	end := make(chan struct{})
	c := client(t, Options{Keep: Pooled, Probation: -1, Address: peer(t, func(conn net.Conn, n int64) {
		b := bufio.NewReader(conn)
		for ; asked(b); <-end {
			io.WriteString(conn, streamed)
			if n == 1 {
				<-end
				return
			}
		}
	})})
	c.sweeping = true // by nobody
	if _, err := do(t.Context(), c, NoSession); err != nil {
		t.Fatal(err)
	}
	close(end)
	until(t, "the end has come", func() bool { return !c.kept[0].silent() })
	if reused, err := do(t.Context(), c, NoSession); reused || err != nil || c.Stats().Replaced != 1 {
		t.Errorf("reused %v, %v, %+v", reused, err, c.Stats())
	}
}

// What dies on a kept connection before an answer is told apart from what dies
// elsewhere. Both are resets, and neither is sent again.
func TestStale(t *testing.T) {
	for good, stale := range map[int]bool{0: false, 1: true} {
		var got atomic.Int64
		c := client(t, Options{Keep: Pooled, Probation: -1, Address: peer(t, func(conn net.Conn, _ int64) {
			b := bufio.NewReader(conn)
			for i := 0; asked(b); i++ {
				if got.Add(1); i == good {
					return
				}
				io.WriteString(conn, streamed)
			}
		})})
		var err error
		for range good + 1 {
			_, err = do(t.Context(), c, NoSession)
		}
		if errors.Is(err, ErrStale) != stale || openai.ClassifyError(err) != openai.KindReset || got.Load() != int64(good+1) {
			t.Errorf("after %d answers: %v, %d requests", good, err, got.Load())
		}
		if s := c.Stats(); (s.Stale == 1) != stale || s.Closes != stale {
			t.Errorf("%+v", s)
		}
	}
	// Half an answer is no stale connection, whatever was before.
	c := client(t, Options{Keep: Pooled, Probation: -1, Address: peer(t, func(conn net.Conn, _ int64) {
		b := bufio.NewReader(conn)
		if asked(b) {
			io.WriteString(conn, streamed)
		}
		if asked(b) {
			io.WriteString(conn, streamed[:20])
		}
	})})
	do(t.Context(), c, NoSession)
	if _, err := do(t.Context(), c, NoSession); errors.Is(err, ErrStale) || openai.ClassifyError(err) != openai.KindReset {
		t.Error(err)
	}
}

// The end of the context ends the wait for a connection, an answer and a body, and
// hangs up.
func TestCancelled(t *testing.T) {
	for name, begin := range map[string]string{"before the answer": "", "inside": streamed[:len(streamed)-7]} {
		gone := make(chan struct{}, 1)
		c := client(t, Options{Keep: Pooled, Address: peer(t, func(conn net.Conn, _ int64) {
			if b := bufio.NewReader(conn); asked(b) {
				io.WriteString(conn, begin)
				b.ReadByte() // the end
				gone <- struct{}{}
			}
		})})
		for _, class := range []string{openai.KindCancelled, openai.KindTimeout} {
			ctx, cancel := context.WithCancel(t.Context())
			if class == openai.KindTimeout {
				ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
			} else {
				time.AfterFunc(20*time.Millisecond, cancel)
			}
			if _, err := do(ctx, c, NoSession); openai.ClassifyError(err) != class {
				t.Errorf("%s: %v, want %s", name, err, class)
			}
			<-gone
			cancel()
		}
		if _, kept, parting := c.counts(); kept+parting > 0 {
			t.Error("a connection is kept after a cancellation")
		}
	}
}

// Over TLS the tickets of a session that come behind the handshake are no answer,
// and an end is seen.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		io.WriteString(w, "b")
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	address := s.Listener.Addr().String()
	config := s.Client().Transport.(*http.Transport).TLSClientConfig
	c := client(t, Options{Keep: Pooled, Probation: -1, Address: address, TLS: config})
	c.Expect()
	until(t, "one is ready", func() bool { n, _, _ := c.counts(); return n == 1 })
	for i := range 3 {
		c.sweepOnce()
		if reused, err := do(t.Context(), c, NoSession); err != nil || reused != (i > 0) {
			t.Errorf("%v, %v", reused, err)
		}
	}
	s.CloseClientConnections()
	until(t, "the end is seen", func() bool { c.sweepOnce(); return c.Stats().Replaced == 1 })

	for name, o := range map[string]Options{
		"unknown authority": {Address: address, TLS: &tls.Config{}},
		"no TLS":            {Address: peer(t, func(c net.Conn, _ int64) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }), TLS: config},
		"no handshake":      {Address: peer(t, func(net.Conn, int64) {}), TLS: config},
	} {
		if _, err := do(t.Context(), client(t, o), NoSession); openai.ClassifyError(err) != openai.KindTLS {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A dead address fails each request as "connect", expected or not, and the
// dialling ahead of need does not run wild.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	var dials atomic.Int64
	c := client(t, Options{Dial: func(ctx context.Context) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}})
	for range 1000 {
		c.Expect()
	}
	if _, err := do(t.Context(), c, NoSession); openai.ClassifyError(err) != openai.KindConnect {
		t.Error(err)
	}
	if n := dials.Load(); n > 2*mostDials {
		t.Errorf("%d dials", n)
	}
}

// A server's Keep-Alive is heeded: before its time is over the connection is not
// used any more.
func TestKeepAliveTimeout(t *testing.T) {
	c := New(Options{Keep: Pooled, Probation: -1})
	c.sweeping = true // by nobody: k has no socket
	k := &conn{client: c}
	k.give(NoSession, true, true, 5*time.Second)
	for age, want := range map[time.Duration]bool{0: true, 3900 * time.Millisecond: true, 4 * time.Second: false} {
		if got := c.usable(k, k.since.Add(age)); got != want {
			t.Errorf("after %v: %v", age, got)
		}
	}
	c.kept = nil
}

func TestMinute(t *testing.T) {
	var m minute
	at := time.Unix(1e9, 0)
	for _, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {0, 2}, {30 * time.Second, 3}, {29 * time.Second, 4}, {time.Second, 3}, {29 * time.Second, 4}, {time.Second, 4}, {time.Hour, 1}} {
		at = at.Add(c.after)
		if got := m.count(at); got != c.want {
			t.Errorf("at %v: %d, want %d", at.Unix(), got, c.want)
		}
	}
}

func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	}))
	c := New(Options{Address: l.Addr().String(), Keep: Pooled})
	defer c.Close()
	r, err := c.Do(context.Background(), []byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"), NoSession, func() {})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	fmt.Println(r.Status(), string(body), err)
	// Output: 200 hello <nil>
}
