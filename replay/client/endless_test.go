package client

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/longtest"
)

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	bodyHead   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
	oneToken   = `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n"
)

// endlessServers answer without end: once what is in first, then what is in again for ever, with
// a pause after each where there is one. The kind is what becomes of a request for 16 tokens
// with a time limit of two seconds.
var endlessServers = []struct {
	name, first, again string
	pause              time.Duration
	kind               string
}{
	{"content", streamHead, oneToken, 0, openai.KindOverlong},
	{"reasoning", streamHead, strings.Replace(oneToken, "content", "reasoning", 1), 0, openai.KindOverlong},
	{"comments", streamHead, ": wait\n\n", 0, openai.KindOverlong},
	{"pings", streamHead, "event: ping\ndata: {\"type\":\"ping\"}\n\n", 0, openai.KindOverlong},
	{"empty chunks", streamHead, `data: {"choices":[{"index":0,"delta":{"content":""}}]}` + "\n\n", 0, openai.KindOverlong},
	{"content after a finish reason", streamHead + `data: {"choices":[{"index":0,"finish_reason":"length","delta":{"content":"a"}}]}` + "\n\n", oneToken, 0, openai.KindOverlong},
	{"content after [DONE]", streamHead + oneToken + "data: [DONE]\n\n", oneToken, 0, ""},
	{"comments after [DONE]", streamHead + oneToken + "data: [DONE]\n\n", ": wait\n\n", 0, ""},
	{"one line", streamHead + "data: ", strings.Repeat("a", 1<<10), 0, openai.KindOverlong},
	{"one event of many lines", streamHead, "data: a\n", 0, openai.KindOverlong},
	{"line ends", streamHead, "\n\r\n\r", 0, openai.KindOverlong},
	{"one body of JSON", bodyHead + `{"choices":[{"text":"`, strings.Repeat("a", 1<<10), 0, openai.KindOverlong},
	{"a body of JSON, deeply nested", bodyHead + `{"choices":[`, `{"a":[`, 0, openai.KindOverlong},
	{"spaces before a body", bodyHead, "    \n", 0, openai.KindOverlong},
	{"a page of HTML", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>", "<p>wait", 0, openai.KindOverlong},
	{"an error's body", "HTTP/1.1 500 Oh\r\n\r\n", strings.Repeat("a", 1<<10), 0, openai.KindServer},
	{"a compressed body", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", strings.Repeat("\x00", 1<<10), 0, openai.KindCompressed},
	{"a redirect", "HTTP/1.1 307 Go\r\nLocation: /v1/chat/completions\r\n\r\n", "a", 0, openai.KindRedirect},
	{"header fields", "HTTP/1.1 200 OK\r\n", "X-Wait: yes\r\n", 0, openai.KindStream},
	{"one header field", "HTTP/1.1 200 OK\r\nX-Wait: ", "yes", 0, openai.KindStream},
	{"interim answers", "", "HTTP/1.1 102 Processing\r\n\r\n", 0, openai.KindStream},
	{"a slow line", streamHead + "data: ", "a", 50 * time.Millisecond, openai.KindTimeout},
	{"slow comments", streamHead, ": wait\n\n", 50 * time.Millisecond, openai.KindTimeout},
	{"slow headers", "HTTP/1.1 200 OK\r\nX-Wait: ", "a", 50 * time.Millisecond, openai.KindTimeout},
	{"slow content", streamHead, oneToken, 50 * time.Millisecond, openai.KindTimeout},
	{"slow content after [DONE]", streamHead + oneToken + "data: [DONE]\n\n", oneToken, 50 * time.Millisecond, ""},
	{"nothing", "", "", 50 * time.Millisecond, openai.KindTimeout},
}

// endless serves one of endlessServers, and counts the bytes that it could send.
func endless(t *testing.T, first, again string, pause time.Duration) (url string, sent *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	sent = new(atomic.Int64)
	batch := again
	if pause == 0 {
		batch = strings.Repeat(again, 16<<10/len(again))
	}
	serve := func(c net.Conn) {
		defer c.Close()
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		for text := first; ; text = batch {
			n, err := io.WriteString(c, text)
			if sent.Add(int64(n)); err != nil {
				return
			}
			time.Sleep(pause)
			if again == "" { // a peer that has gone shows by a read alone
				_ = c.SetReadDeadline(time.Now().Add(pause))
				if _, err := c.Read(make([]byte, 1)); err == io.EOF {
					return
				}
			}
		}
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go serve(c)
		}
	}()
	return "http://" + l.Addr().String(), sent
}

// An answer without end is over within its bound, in its own class, and takes little memory,
// on connections of our own and on those of net/http.
func TestAnswersWithoutEnd(t *testing.T) {
	longtest.Skip(t)
	row := trace.Request{InputTokens: 4, OutputTokens: trace.Ptr[int32](16), Kind: "chat"}
	most := openai.BoundOf(16, 1<<10).Bytes + 16<<20 // and what the buffers of sockets hold
	for _, s := range endlessServers {
		for _, proxied := range []bool{false, true} {
			name := s.name
			if proxied {
				name += ", by net/http"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url, sent := endless(t, s.first, s.again, s.pause)
				o := Options{URL: url, Model: "m", Timeout: 2 * time.Second, Replies: true}
				if proxied { // an address that no proxy is needed for is behind one all the same
					o.URL, o.Proxy = "http://server.invalid", url
				}
				if s.pause == 0 {
					o.Timeout = time.Minute // it is not what ends them
				}
				r := fire(t, endpoint(t, o), row, 0)
				// Of a head that cannot be read net/http has words of its own.
				if r.Error != s.kind && !(proxied && s.kind == openai.KindStream && r.Error == openai.KindOther) {
					t.Errorf("it ended as %q, want %q", r.Error, s.kind)
				}
				if n := sent.Load(); n > most && !strings.Contains(s.name, "[DONE]") {
					t.Errorf("it took %d bytes, want at most %d", n, most)
				}
				if n := len(r.GapsNS); n > openai.BoundOf(16, 0).Events {
					t.Errorf("it has %d gaps", n)
				}
			})
		}
	}
}

// The end of the context ends the reading of any answer at once, also of one that comes faster
// than it is read.
func TestInterruptedAnswersWithoutEnd(t *testing.T) {
	row := trace.Request{InputTokens: 4, OutputTokens: trace.Ptr[int32](1 << 30), Kind: "chat"} // so that no bound ends it
	for _, s := range endlessServers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			url, _ := endless(t, s.first, s.again, s.pause)
			h := endpoint(t, Options{URL: url, Model: "m"})
			call, err := h.Prepare(0, 0, &row, words{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, cancel)
			over := make(chan struct{})
			go func() {
				defer close(over)
				h.Fire(ctx, result.Shot{Call: call, Start: time.Now()}, new(result.Result))
			}()
			select {
			case <-over:
			case <-time.After(20 * time.Second): // a machine may be slow, and what has no end is slower
				t.Error("it goes on after its context has ended")
			}
		})
	}
}

// Many large events at once share the room of one endpoint.
func TestManyLargeEventsShareRoom(t *testing.T) {
	longtest.Skip(t)
	url, _ := endless(t, streamHead+"data: ", strings.Repeat("a", 1<<10), 0)
	h := endpoint(t, Options{URL: url, Model: "m", Timeout: time.Minute})
	row := trace.Request{InputTokens: 4, OutputTokens: trace.Ptr[int32](1 << 30), Kind: "chat"}
	var peak uint64
	done := make(chan result.Result)
	const requests = 64
	for range requests {
		call, err := h.Prepare(0, 0, &row, words{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			var r result.Result
			h.Fire(t.Context(), result.Shot{Call: call, Start: time.Now()}, &r)
			done <- r
		}()
	}
	for range requests {
		if r := <-done; r.Error != openai.KindOverlong {
			t.Errorf("it ended as %q", r.Error)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
	}
	if peak > 512<<20 {
		t.Errorf("%d bytes of memory at once", peak)
	}
}
