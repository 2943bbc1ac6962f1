package client

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// A request that its server cannot take goes to the next, whatever its address looks
// like, and at once while there is one that was not asked.
func TestRetryOther(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	var asked []string
	take := func(name string, then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = append(asked, name+" "+r.Host+r.URL.Path+" "+string(body))
			then(w, r)
		}
	}
	full := serve(t, take("full", retryLater(503, "3600")))
	fine := serve(t, take("fine", stream(tok, stop, usage, done)))
	long := "/a/much/longer/path/than/that/of/the/others"
	for _, conns := range []string{PerRequest, Pooled, perSession} {
		for name, c := range map[string]struct {
			urls     []string
			retries  int
			error    string
			attempts int32
			end      int32
		}{
			"refused":        {[]string{closed, fine + long}, 1, "", 2, 1},
			"full":           {[]string{full, fine + long}, 1, "", 2, 1},
			"refused, full":  {[]string{closed, full + long, fine}, 2, "", 3, 2},
			"not often":      {[]string{closed, full + long, fine}, 1, openai.KindUnavailable, 2, 1},
			"good":           {[]string{fine, full}, 5, "", 1, 0},
			"full and no to": {[]string{full + long, closed}, 1, openai.KindConnect, 2, 1},
		} {
			asked = nil
			h := endpoint(t, Options{URL: c.urls[0], Also: c.urls[1:], Connections: conns, Retries: c.retries, RetryOther: true, Backoff: time.Hour})
			r := fire(t, h, trace.Request{InputTokens: 30, OutputTokens: trace.Ptr[int32](1)}, 0)
			if r.Error != c.error || r.Attempts != c.attempts || *r.Endpoint != c.end {
				t.Errorf("%s, %s: %q after %d attempts at %d", name, conns, r.Error, r.Attempts, *r.Endpoint)
			}
			var bodies []string
			for _, a := range asked {
				server, body, _ := strings.Cut(strings.SplitN(a, " ", 2)[1], " ")
				if !slices.ContainsFunc(c.urls, func(u string) bool { return "http://"+server == u+openai.ChatPath }) {
					t.Errorf("%s: asked for %s", name, server)
				}
				bodies = append(bodies, body)
			}
			if len(slices.Compact(bodies)) > 1 || len(bodies) > 0 && !strings.HasSuffix(bodies[0], "}") {
				t.Errorf("%s: bodies %q", name, bodies)
			}
			inOrder(t, name, r.SentNS, r.DoneNS)
		}
	}
	for _, bad := range []Options{{URL: fine, Retries: 1, RetryOther: true}, {URL: fine, Also: []string{full}, RetryOther: true}} {
		if _, err := New(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// What net/http sends goes to the next as well, and one may be sent by it and the
// other on a connection of our own.
func TestRetryOtherByNet(t *testing.T) {
	full, fine := serve(t, fails(503, "")), serve(t, stream(tok, stop, usage, done))
	for _, net := range [][]int{{0}, {1}, {0, 1}} {
		h := endpoint(t, Options{URL: full, Also: []string{fine + "/some/longer/base"}, Retries: 1, RetryOther: true})
		for _, i := range net {
			h.targets[i].wire.client.Close()
			h.targets[i].wire, h.targets[i].exchanger = nil, netExchanger{h}
		}
		if r := fire(t, h, reachOne, 0); r.Error != "" || r.Attempts != 2 || *r.Endpoint != 1 {
			t.Errorf("%v: %q after %d attempts", net, r.Error, r.Attempts)
		}
	}
}

// A server that answers before it has read a long request is left, while that may
// still be written.
func TestRetryOtherOfALongRequest(t *testing.T) {
	full := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	var got int64
	fine := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.Copy(io.Discard, r.Body)
		stream(tok, stop, usage, done)(w, r)
	})
	h := endpoint(t, Options{URL: full, Also: []string{fine + "/base"}, Retries: 1, RetryOther: true})
	r := fire(t, h, trace.Request{InputTokens: 500_000, OutputTokens: trace.Ptr[int32](1)}, 0)
	if r.Error == openai.KindReset { // the answer was lost with the connection
		t.Skip("the server's reset overtook its answer")
	}
	if r.Error != "" || r.Attempts != 2 || got < 1_000_000 {
		t.Errorf("%q after %d attempts, %d bytes", r.Error, r.Attempts, got)
	}
}

// The pause comes when all servers have failed, and doubles with each round of them.
func TestRetryOtherBackoff(t *testing.T) {
	h := endpoint(t, Options{URL: "http://x", Also: []string{"http://y", "http://z"}, Retries: 100, RetryOther: true, Backoff: time.Second})
	status := int32(503)
	for _, c := range []struct {
		attempts int32
		after    *int64
		want     time.Duration
	}{{1, nil, 0}, {2, trace.Ptr(int64(10e9)), 0}, {3, nil, time.Second}, {3, trace.Ptr(int64(10e9)), 10 * time.Second}, {5, nil, time.Second}, {6, nil, 2 * time.Second}, {99, nil, 30 * time.Second}} {
		r := result.Result{Error: openai.KindUnavailable, HTTPStatus: &status, Attempts: c.attempts, RetryAfterNS: c.after}
		if got, ok := h.again(&try{}, &r); got != c.want || !ok {
			t.Errorf("after %d attempts: %v, %v, want %v", c.attempts, got, ok, c.want)
		}
	}
}
