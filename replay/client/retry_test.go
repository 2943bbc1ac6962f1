package client

import (
	"bufio"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// retryServer answers a request's n-th attempt with the n-th handler, and further ones
// with the last.
func retryServer(t *testing.T, asked *atomic.Int64, h ...http.HandlerFunc) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1)) - 1
		h[min(n, len(h)-1)](w, r)
	})
}

func retryLater(status int, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", after)
		fails(status, "")(w, r)
	}
}

func TestRetries(t *testing.T) {
	good := stream(tok, stop, usage, done)
	for _, c := range []struct {
		name     string
		handlers []http.HandlerFunc
		retries  int
		error    string
		attempts int32
		after    time.Duration // -1 is null
	}{
		{"none by default", []http.HandlerFunc{fails(429, ""), good}, 0, openai.KindRateLimited, 1, -1},
		{"asked to wait, and not told to", []http.HandlerFunc{retryLater(429, "7"), good}, 0, openai.KindRateLimited, 1, 7 * time.Second},
		{"full, then not", []http.HandlerFunc{fails(429, ""), fails(503, ""), good}, 2, "", 3, -1},
		{"full for too long", []http.HandlerFunc{fails(529, "")}, 2, openai.KindUnavailable, 3, -1},
		{"at once", []http.HandlerFunc{retryLater(503, "0"), good}, 1, "", 2, 0},
		{"an error that may have cost", []http.HandlerFunc{fails(500, ""), good}, 3, openai.KindServer, 1, -1},
		{"a bad request", []http.HandlerFunc{fails(400, ""), good}, 3, openai.KindBadRequest, 1, -1},
		{"broken on a new connection", []http.HandlerFunc{breaks(), good}, 3, openai.KindReset, 1, -1},
		{"broken inside", []http.HandlerFunc{breaks(tok), good}, 3, openai.KindReset, 1, -1},
		{"good", []http.HandlerFunc{good}, 3, "", 1, -1},
	} {
		for _, conns := range []string{PerRequest, Pooled} {
			var asked atomic.Int64
			h := endpoint(t, Options{URL: retryServer(t, &asked, c.handlers...), Connections: conns, Retries: c.retries, Backoff: time.Millisecond})
			r := fire(t, h, trace.Request{InputTokens: 30, OutputTokens: trace.Ptr[int32](1)}, 0)
			after := time.Duration(-1)
			if r.RetryAfterNS != nil {
				after = time.Duration(*r.RetryAfterNS)
			}
			if r.Error != c.error || r.Attempts != c.attempts || asked.Load() != int64(c.attempts) || after != c.after {
				t.Errorf("%s, %s: %q after %d attempts, %d seen, Retry-After %v", c.name, conns, r.Error, r.Attempts, asked.Load(), after)
			}
			inOrder(t, c.name, r.SentNS, r.HeadersNS, r.FirstTokenNS, r.DoneNS)
			if c.error == "" && (*r.Output != 3 || *r.HTTPStatus != 200 || *r.HeadersNS-*r.SentNS < int64(c.attempts-1)*int64(c.after)) {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
	}
}

// What is written to a pooled connection that its server has closed goes again: not a
// byte came back.
func TestRetryStaleConnection(t *testing.T) {
	var seen sync.Map
	var twice atomic.Int64
	url := closingServer(t, func(body []byte) {
		if _, loaded := seen.LoadOrStore(string(body), true); loaded {
			twice.Add(1)
		}
	})
	h := endpoint(t, Options{URL: url, Connections: Pooled, Retries: 5})
	again := 0
	for i := range 50 {
		r := fire(t, h, trace.Request{InputTokens: int32(i + 1), OutputTokens: trace.Ptr[int32](1)}, 0)
		if r.Error != "" {
			t.Errorf("request %d: %q after %d attempts", i, r.Error, r.Attempts)
		}
		again += int(r.Attempts) - 1
	}
	if twice.Load() > 0 {
		t.Errorf("%d bodies were read twice", twice.Load())
	}
	t.Logf("%d further attempts", again)
}

// Without a server, sent is when the first attempt began, so that latencies include
// what followed.
func TestRetryWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	r := fire(t, endpoint(t, Options{URL: "http://" + address, Retries: 2, Backoff: time.Millisecond}), reachOne, 0)
	if r.Error != openai.KindConnect || r.Attempts != 3 || r.SentNS == nil || *r.DoneNS-*r.SentNS < int64(3*time.Millisecond) {
		t.Errorf("%+v", r)
	}
}

// A row that is cut off, and a request whose time is up, end in the middle of a pause.
func TestRetryPauseEnds(t *testing.T) {
	busy := serve(t, retryLater(429, "60"))
	h := endpoint(t, Options{URL: busy, Retries: 3})
	if r := fire(t, h, reachOne, 20*time.Millisecond); r.Error != openai.KindCancelled || r.Attempts != 1 || r.DoneNS == nil {
		t.Errorf("cut: %+v", r)
	}
	h = endpoint(t, Options{URL: busy, Retries: 3, Timeout: 20 * time.Millisecond})
	if r := fire(t, h, reachOne, 0); r.Error != openai.KindTimeout || r.Attempts != 1 {
		t.Errorf("time limit: %+v", r)
	}
}

// A row is cut off by the clock of its first attempt, in virtual time.
func TestRetryKeepsTheCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := endpoint(t, Options{URL: "http://x", Retries: 1, Backoff: 4 * time.Second})
		var tries int
		byNet(h)
		h.transport.Proxy = nil
		h.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			tries++
			first := tries == 1
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				req, err := http.ReadRequest(bufio.NewReader(server))
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body)
				if first {
					io.WriteString(server, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
					return
				}
				io.Copy(io.Discard, server) // until the client goes
			}()
			return client, nil
		}
		r := fire(t, h, reachOne, 10*time.Second)
		if r.Error != openai.KindCancelled || r.Attempts != 2 || *r.DoneNS-*r.SentNS != int64(10*time.Second) {
			t.Errorf("%q after %d attempts and %v", r.Error, r.Attempts, time.Duration(*r.DoneNS-*r.SentNS))
		}
		h.Close()
	})
}

// A pooled connection that breaks after the first byte of an answer was not dead: the
// request may have been computed. On one that was new, the server got it.
func TestRetryOfBrokenConnections(t *testing.T) {
	h := endpoint(t, Options{URL: "http://x", Retries: 1, Backoff: time.Second})
	for _, c := range []struct{ reused, answered, want bool }{{true, false, true}, {true, true, false}, {false, false, false}, {false, true, false}} {
		var last try
		last.reused.Store(c.reused)
		last.answered.Store(c.answered)
		if wait, ok := h.again(&last, &result.Result{Error: openai.KindReset, Attempts: 1}); ok != c.want || wait != 0 {
			t.Errorf("%+v: %v, %v", c, ok, wait)
		}
	}
}

// Pauses double up to a bound, and are as long as the server asks within another.
func TestRetryBackoff(t *testing.T) {
	h := endpoint(t, Options{URL: "http://x", Retries: 100, Backoff: time.Second})
	status := int32(503)
	for _, c := range []struct {
		attempts int32
		after    *int64
		want     time.Duration
	}{{1, nil, time.Second}, {2, nil, 2 * time.Second}, {5, nil, 16 * time.Second}, {6, nil, 30 * time.Second}, {99, nil, 30 * time.Second},
		{1, trace.Ptr(int64(10 * time.Second)), 10 * time.Second}, {1, trace.Ptr(int64(time.Hour)), time.Minute}, {3, trace.Ptr(int64(1)), 4 * time.Second}} {
		r := result.Result{Error: openai.KindUnavailable, HTTPStatus: &status, Attempts: c.attempts, RetryAfterNS: c.after}
		if got, ok := h.again(&try{}, &r); got != c.want || !ok {
			t.Errorf("after %d attempts: %v, %v, want %v", c.attempts, got, ok, c.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2025, 6, 1, 10, 0, 0, 0, time.UTC)
	for v, want := range map[string]int64{
		"": -1, "x": -1, "-5": -1, "1.5": -1, "99999999999999999999": -1, "0": 0, " 120 ": 120e9,
		"Sun, 01 Jun 2025 10:00:30 GMT": 30e9, "Sun, 01 Jun 2025 09:00:00 GMT": 0,
	} {
		got, ok := retryAfter(http.Header{"Retry-After": {v}}, now)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", v, got, want)
		}
	}
}

// The limits on silence, in virtual time over a pipe.
func TestSilence(t *testing.T) {
	const first, idle = 10 * time.Second, 3 * time.Second
	comment := ": ping\n\n"
	type step struct {
		after time.Duration
		write string
	}
	for _, c := range []struct {
		name        string
		first, idle time.Duration
		steps       []step
		error       string
		at          time.Duration // from sent to the end; 0 is not looked at
		events      int32
	}{
		{"in time", first, idle, []step{{9 * time.Second, tok}, {2 * time.Second, tok}, {2 * time.Second, stop + done}}, "", 13 * time.Second, 2},
		{"no first token", first, idle, []step{{2 * time.Second, role}, {2 * time.Second, role}, {2 * time.Second, role}, {2 * time.Second, role}, {time.Hour, ""}}, openai.KindTimeout, first, 0},
		{"silent at once", first, 0, []step{{time.Hour, ""}}, openai.KindTimeout, first, 0},
		{"a role is no token", first, 0, []step{{time.Second, role}, {time.Hour, ""}}, openai.KindTimeout, first, 0},
		{"silent behind a role", first, idle, []step{{time.Second, role}, {time.Hour, ""}}, openai.KindTimeout, 4 * time.Second, 0},
		{"silent between events", 0, idle, []step{{time.Minute, role}, {2 * time.Second, tok}, {time.Hour, ""}}, openai.KindTimeout, time.Minute + 5*time.Second, 1},
		{"kept alive, and silent", first, idle, []step{{time.Second, tok}, {2 * time.Second, comment}, {2 * time.Second, comment}}, openai.KindTimeout, 4 * time.Second, 1},
		{"no limit", 0, 0, []step{{time.Minute, role}, {time.Minute, tok}, {time.Minute, stop + done}}, "", 3 * time.Minute, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := endpoint(t, Options{URL: "http://x", FirstTokenTimeout: c.first, IdleTimeout: c.idle, Timeout: time.Hour})
			client, server := net.Pipe()
			h.transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return client, nil }
			byNet(h)
			h.transport.Proxy = nil
			over, gone := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(gone)
				defer server.Close()
				req, err := http.ReadRequest(bufio.NewReader(server))
				if err == nil {
					_, err = io.Copy(io.Discard, req.Body)
				}
				if err != nil {
					return
				}
				time.Sleep(0)
				io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
				for _, s := range c.steps {
					select {
					case <-time.After(s.after):
					case <-over:
						return
					}
					if _, err := io.WriteString(server, s.write); err != nil {
						return
					}
				}
			}()
			r := fire(t, h, reachOne, 0)
			if r.SentNS == nil {
				t.Fatalf("%s: %+v", c.name, r)
			}
			if r.Error != c.error || r.Events != c.events || c.at > 0 && time.Duration(*r.DoneNS-*r.SentNS) != c.at {
				t.Errorf("%s: %q after %v, %d token events", c.name, r.Error, time.Duration(*r.DoneNS-*r.SentNS), r.Events)
			}
			close(over)
			<-gone
			client.Close()
			h.Close()
		})
	}
}

// Every request says which it is, and which session and run it belongs to.
func TestTraceHeaders(t *testing.T) {
	var mu sync.Mutex
	got := map[string]http.Header{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got[r.Header.Get("X-Request-Id")] = r.Header
		mu.Unlock()
		w.Header().Set("X-Pod", "p"+r.Header.Get("X-Session"))
		stream(tok, stop, done)(w, r)
	}))
	t.Cleanup(s.Close)
	h := endpoint(t, Options{URL: s.URL, AffinityHeader: "x-session", RecordHeaders: []string{"x-pod", "x-none"}})
	rows := []trace.Request{reachOne, reachOne, reachOne}
	rows[1].Session, rows[2].Session = trace.Ptr(int64(4)), trace.Ptr(int64(4))
	var out trace.SliceWriter[result.Result]
	run, err := (&replay.Runner{Prompter: words{}, Endpoint: h}).Run(t.Context(), reader(rows), &out)
	if err != nil {
		t.Fatal(err)
	}
	h.Describe(&run)
	if len(run.TraceID) != 32 || strings.Trim(run.TraceID, "0123456789abcdef") != "" {
		t.Fatalf("trace id %q", run.TraceID)
	}
	for row, session := range []string{"", "s4", "s4"} {
		id := run.TraceID + "-" + string(rune('0'+row))
		want := "00-" + run.TraceID + "-000000000000000" + string(rune('1'+row)) + "-01"
		if head := got[id]; head.Get("Traceparent") != want || head.Get("X-Session") != session {
			t.Errorf("row %d: %v", row, head)
		}
	}
	if len(run.Served) != 2 || run.Served[0].Header != "X-Pod" || len(run.Served[0].Values) != 2 || len(run.Served[1].Values) != 0 {
		t.Fatalf("served %+v", run.Served)
	}
	for _, r := range out.Rows {
		want := "p"
		if r.Session != nil {
			want = "ps4"
		}
		if len(r.Served) != 2 || run.Served[0].Values[r.Served[0]] != want || r.Served[1] != -1 {
			t.Errorf("row %d: served %v", r.RowID, r.Served)
		}
	}
	if other := endpoint(t, Options{URL: s.URL}); other.traceID == h.traceID {
		t.Error("two runs have one id")
	}

	clear(got)
	mine := http.Header{"X-Request-Id": {"mine"}}
	fire(t, endpoint(t, Options{URL: s.URL, Header: mine}), reachOne, 0)
	if head := got["mine"]; head == nil || head.Get("Traceparent") == "" {
		t.Errorf("a header that was given: %v", got)
	}
	clear(got)
	fire(t, endpoint(t, Options{URL: s.URL, NoTraceHeaders: true}), reachOne, 0)
	if head := got[""]; head == nil || head.Get("Traceparent") != "" {
		t.Errorf("switched off: %v", got)
	}
}

// No two requests of a run have the same id or span, whichever rows are sent again in whichever
// rounds, and whatever is sent before the run.
func TestRequestIDsAreUnique(t *testing.T) {
	h := endpoint(t, Options{URL: "http://127.0.0.1:1"})
	seen := map[string]bool{}
	for _, id := range []int64{result.NoRow, 0, 1, 10, 11, 110, 1 << 31} {
		for _, round := range []int32{0, 1, 2, 10, math.MaxInt32} {
			head := h.rowHeader(id, round, &reachOne, nil)
			name, parent := head.Get("X-Request-Id"), head.Get("Traceparent")
			if seen[name] || seen[parent] || len(parent) != 55 || strings.Contains(parent, "-0000000000000000-") {
				t.Errorf("row %d, round %d: %s, %s", id, round, name, parent)
			}
			seen[name], seen[parent] = true, true
		}
	}
}

// Whatever servers send, the dictionary of a header is bounded, and holds short tokens alone.
func TestServedIsBounded(t *testing.T) {
	s := newServedBy([]string{"a"})
	seen := map[int32]bool{}
	for i := range 5000 {
		value := strings.Repeat("x", i+1)
		seen[s.note(http.Header{"A": {value}})[0]] = true
	}
	for i := range 3000 {
		seen[s.note(http.Header{"A": {string(rune('a'+i%26)) + string(rune('0'+i/26%10)) + strings.Repeat("y", i/260)}})[0]] = true
	}
	list := s.all()[0].Values
	if len(list) != maxServedValues || list[maxServedValue] != result.OtherValue || len(seen) != len(list) {
		t.Errorf("%d values, %d indexes, %q after those of 1 to 64 bytes", len(list), len(seen), list[maxServedValue])
	}
	for _, v := range list {
		if len(v) > maxServedValue {
			t.Errorf("a value of %d bytes", len(v))
		}
	}
	// A server that sends the prompt back in a header.
	for _, value := range []string{"write a poem", "a=b", "né", "a\x1b[31mé\n", "tab\tbed", `"quoted"`, "(x)", strings.Repeat("x", 65)} {
		s := newServedBy([]string{"a"})
		s.note(http.Header{"A": {value}})
		if got := s.all()[0].Values; len(got) != 1 || got[0] != result.OtherValue {
			t.Errorf("%q is kept as %q", value, got)
		}
	}
	s = newServedBy([]string{"a"})
	if s.note(http.Header{"A": {"Pod-3.eu_1:8000"}}); s.all()[0].Values[0] != "Pod-3.eu_1:8000" {
		t.Errorf("%q", s.all()[0].Values)
	}
}
