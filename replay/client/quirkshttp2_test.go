package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/replay/engine"
	"reprise/replay/openai"
)

// Over HTTP/2 without TLS every quirk of the server has the result that it has over
// HTTP/1.1: what drops a connection there resets the stream here.
func TestQuirksOverHTTP2(t *testing.T) {
	c := quirkConfig()
	c.FaultHeader = true
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	protocols := make(chan int, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			protocols <- r.ProtoMajor
		}
		s.Handler().ServeHTTP(w, r)
	}))
	srv.Listener = s.Gate(srv.Listener)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	for _, row := range quirkRows {
		if strings.HasPrefix(row.quirk, "stall") {
			continue // by the clock, nothing else
		}
		reachable(t, srv.URL)
		idle(t, srv.URL)
		forget, err := http.Post(srv.URL+"/reset_prefix_cache", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		forget.Body.Close()
		o := quirkOptions(row, srv.URL)
		o.HTTP2 = true
		h := endpoint(t, o)
		r := fire(t, h, quirkRequest, 0)
		if got := quirkSummary(&r, h.odd.counts()); got != row.want {
			t.Errorf("%s: %s, want %s", row.quirk, got, row.want)
		}
		inOrder(t, row.quirk, r.SentNS, r.HeadersNS, r.FirstEventNS, r.FirstTokenNS, r.LastTokenNS, r.DoneNS)
		if v := <-protocols; v != 2 {
			t.Fatalf("%s: HTTP/%d", row.quirk, v)
		}
	}
}

// idle waits until the server computes nothing. A request that its client gave up may
// still hold its blocks, and a server forgets only blocks that no request holds.
func idle(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r, err := http.Get(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		metrics, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if busy := regexp.MustCompile(`(?m)^vllm:num_requests_(running|waiting)\b.* [^0\n]\S*$`); !busy.Match(metrics) {
			return
		}
	}
	t.Fatal("the server is still busy with a request of before")
}

// A stream that its server has reset may have been computed: it is not sent again,
// also on a connection that has served before.
func TestRetryOfResetStreams(t *testing.T) {
	asked := 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 2 {
			panic(http.ErrAbortHandler)
		}
		stream(tok, stop, usage, done)(w, r)
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	h := endpoint(t, Options{URL: srv.URL, HTTP2: true, Connections: Pooled, Retries: 3})
	for i, want := range []string{"", openai.KindReset, ""} {
		if r := fire(t, h, reachOne, 0); r.Error != want || r.Attempts != 1 {
			t.Errorf("request %d: %q after %d attempts", i, r.Error, r.Attempts)
		}
	}
}
