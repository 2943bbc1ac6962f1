package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/client/internal/h1"
	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/trace"
)

// wireEndpoint trusts its server to keep connections from the beginning.
func wireEndpoint(t testing.TB, o Options) *HTTP {
	h := endpoint(t, o)
	keep, size, err := parseConnections(o.Connections)
	w := h.targets[0].wire
	if err != nil || w == nil {
		t.Fatal("no wire", err)
	}
	w.client.Close()
	w.client = h1.New(h1.Options{Address: h.targets[0].base.Host, Keep: keep, Size: size, Probation: -1})
	return h
}

// Pooled connections are used again by any request, those of a session by its own,
// others by none.
func TestWireConnections(t *testing.T) {
	for conns, want := range map[string]string{PerRequest: "abcdef", Pooled: "aaaaaa", "pooled:1": "aaaaaa", perSession: "abacdb"} {
		var mu sync.Mutex
		peers, order := map[string]string{}, ""
		h := wireEndpoint(t, Options{Connections: conns, URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			name, ok := peers[r.RemoteAddr]
			if !ok {
				name = string(rune('a' + len(peers)))
				peers[r.RemoteAddr] = name
			}
			order += name
			mu.Unlock()
			if r.Close != (conns == PerRequest) {
				t.Errorf("%s: the request asks to close: %v", conns, r.Close)
			}
			stream(tok, stop, done)(w, r)
		})})
		for _, session := range []int64{1, 2, 1, -1, -1, 2} {
			c, err := h.Prepare(result.NoRow, 0, &trace.Request{InputTokens: 1, OutputTokens: new(int32)}, words{})
			if err != nil {
				t.Fatal(err)
			}
			c.(*httpCall).session = session
			var r result.Result
			h.Fire(t.Context(), result.Shot{Call: c, Start: time.Now()}, &r)
			if r.Error != "" {
				t.Error(r.Error)
			}
		}
		if order != want {
			t.Errorf("%s: connections %s, want %s", conns, order, want)
		}
	}
}

// A call that goes to net/http is the same request as one that goes by ours.
func TestWireAndNetHTTPSendTheSame(t *testing.T) {
	var got []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		r.Write(&b) // headers in order, and the body
		got = append(got, fmt.Sprint(r.RequestURI, r.Close, r.ContentLength, b.String()))
		stream(tok, stop, done)(w, r)
	})
	header := http.Header{"x-b": {"1", "2"}, "X-A": {"ä"}, "Content-Length": {"7"}}
	for _, conns := range []string{PerRequest, Pooled} {
		for _, plain := range []bool{true, false} {
			h := endpoint(t, Options{URL: url + "/base?version=1", Connections: conns, Header: header, APIKey: "k", NoTraceHeaders: true})
			if plain {
				byNet(h)
			}
			if r := fire(t, h, trace.Request{InputTokens: 50, OutputTokens: trace.Ptr[int32](2)}, 0); r.Error != "" {
				t.Fatal(r.Error)
			}
		}
		if n := len(got); got[n-1] != got[n-2] {
			t.Errorf("%s:\n%s\n%s", conns, got[n-1], got[n-2])
		}
	}
}

// A header that could end the head early is refused, and not quoted.
func TestWireHeadersAreChecked(t *testing.T) {
	for name, value := range map[string]string{"X-A": "secret\r\nX-B: c", "X B": "secret", "X-C": "secret\x00", "Host": "secret\n"} {
		_, err := New(Options{URL: "http://127.0.0.1:1", Header: http.Header{name: {value}}})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestParseConnections(t *testing.T) {
	for s, want := range map[string]int{"pooled": 0, "pooled:7": 7, "per-request": 0, "per-session": 0,
		"": -1, "pooled:": -1, "pooled:0": -1, "pooled:-1": -1, "pooled:99999999": -1, "per-request:3": -1, "Pooled": -1} {
		_, size, err := parseConnections(s)
		if (err != nil) != (want < 0) || err == nil && size != want {
			t.Errorf("%q: %d, %v", s, size, err)
		}
	}
}

// A launched request has the same Result as a fired one, and nothing is launched
// without a connection.
func TestWireLaunch(t *testing.T) {
	h := wireEndpoint(t, Options{URL: serve(t, stream(role, tok, tok, stop, usage, done)), Connections: Pooled})
	shot := func() result.Shot {
		c, err := h.Prepare(result.NoRow, 0, &trace.Request{InputTokens: 1 << 16, OutputTokens: trace.Ptr[int32](2)}, words{}) // more than a socket takes at once
		if err != nil {
			t.Fatal(err)
		}
		return result.Shot{Call: c, Start: time.Now()}
	}
	var cold result.Result
	s := shot()
	h.targets[0].wire.client.Close() // what was dialled ahead
	if h.Launch(t.Context(), s, &cold) != nil {
		t.Fatal("launched without a connection")
	}
	h = wireEndpoint(t, Options{URL: "http://" + h.targets[0].base.Host, Connections: Pooled})
	var first, r result.Result
	h.Fire(t.Context(), shot(), &first)
	land := h.Launch(t.Context(), shot(), &r)
	if land == nil {
		t.Fatal("not launched on a connection that is kept")
	}
	if r.HeadersNS != nil {
		t.Error("launching waited for the answer")
	}
	land()
	inOrder(t, "launched", r.SentNS, r.HeadersNS, r.FirstTokenNS, r.LastTokenNS, r.DoneNS)
	if first.Error != "" || r.Error != "" || r.Events != 2 || r.SentNS == nil || *r.Output != 3 {
		t.Errorf("fired %+v, launched %+v", first, r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var cut result.Result
	if land := h.Launch(ctx, shot(), &cut); land != nil {
		land()
		if cut.Error != "cancelled" {
			t.Errorf("launched into a run that has ended: %q", cut.Error)
		}
	}
}

// A run says what became of its connections.
func TestWireInRun(t *testing.T) {
	h := wireEndpoint(t, Options{URL: serve(t, stream(tok, stop, done)), Connections: Pooled})
	var out trace.SliceWriter[result.Result]
	run, err := (&replay.Runner{Prompter: words{}, Endpoint: h, Options: replay.Options{MaxInFlight: 1}}).Run(t.Context(), poisson(50, 1e6), &out)
	if err != nil || run.Wire == nil || run.Wire.Dials < 1 || run.Wire.Reused < 50-run.Wire.Dials || run.Wire.Stale != 0 {
		t.Errorf("%+v, %v", run.Wire, err)
	}
}

// More connections in a minute than there are ports are noted.
func TestWirePorts(t *testing.T) {
	for _, c := range []struct {
		dials, ports int64
		noted        bool
	}{{28232, 28232, false}, {28233, 28232, true}, {1 << 20, 0, false}} {
		w := described(h1.Stats{Dials: c.dials, MaxMinute: c.dials}, c.ports)
		if strings.Contains(w.Note, "28233 connections") != c.noted || c.noted == (w.Note == "") {
			t.Errorf("%+v: %q", c, w.Note)
		}
	}
}

func TestCheckFiles(t *testing.T) {
	if err := CheckFiles(1); err != nil {
		t.Error(err)
	}
	// As many as the limit allows if no other file were open: some always are,
	// and how many changes while the connections of other tests close.
	if err := CheckFiles(int(host.FileLimit()) - spareFiles); err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("more than may be open: %v", err)
	}
}

func TestChooseConnections(t *testing.T) {
	for _, c := range []struct {
		peak1, peak10 float64
		closed        bool
		want, why     string
	}{
		{0, 0, false, PerRequest, "at most 200 requests/s in any ten seconds"},
		{1000, 200, false, PerRequest, "at most 200 requests/s in any ten seconds"},
		{1000, 200.1, false, Pooled, "200 requests/s in the busiest ten seconds; per-request up to 200"},
		{2000, 1999, false, Pooled, "2000 requests in the busiest second; per-request up to 1000"},
		{1001, 101, false, Pooled, "1001 requests in the busiest second; per-request up to 1000"},
		{0, 0, true, Pooled, "a closed loop sends as fast as the server answers"},
	} {
		if got, why := ChooseConnections(c.peak1, c.peak10, c.closed); got != c.want || why != c.why {
			t.Errorf("%v/s, %v/s, closed %v: %s, %q", c.peak1, c.peak10, c.closed, got, why)
		}
	}
	if !NeverPooled(1000) || NeverPooled(1001) {
		t.Error("a thousand requests need no kept connections, more may")
	}
	if n, err := PoolSize(Auto); n != 0 || err != nil {
		t.Errorf("auto: %d, %v", n, err)
	}
}
