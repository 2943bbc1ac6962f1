package record_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/datasets/record"
)

const shortStream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"

// A candidate gets the same bodies and no credentials but its own; its answers make
// pairs with those of the first server.
func TestShadow(t *testing.T) {
	var mu sync.Mutex
	came := map[string]int{}
	candidate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		came[string(body)]++
		if r.Header.Get("Authorization") != "Bearer own" || r.Header.Get("Cookie") != "" || r.URL.Path != "/base/v1/chat/completions" || r.URL.RawQuery != "api-version=1" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the candidate got %s %v", r.URL, r.Header)
		}
		mu.Unlock()
		time.Sleep(30 * time.Millisecond)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, shortStream)
	}))
	t.Cleanup(candidate.Close)
	u, _ := url.Parse(candidate.URL + "/base")
	var pairs []record.Pair
	r := proxied(t, func(o *record.Options) {
		o.Shadow = &record.Shadow{URL: u, Share: 0.5, Key: "own", Done: func(p record.Pair) {
			mu.Lock()
			defer mu.Unlock()
			pairs = append(pairs, p)
		}}
	}, answers("text/event-stream", shortStream))
	for i := range 40 {
		for turn := range 2 {
			body := fmt.Sprintf(`{"stream":true,"messages":[{"role":"user","content":"question %d"},{"role":"assistant","content":"turn %d"}]}`, i, turn)
			if _, text := r.post(t, "/v1/chat/completions?api-version=1&key=clients", body, "Authorization", "Bearer clients", "Cookie", "c=1", "Content-Type", "application/json"); text != shortStream {
				t.Fatal(text)
			}
		}
	}
	_, counts := r.over(t)
	if counts.Recorded != 80 || len(pairs) != len(came) || len(pairs)%2 != 0 || len(pairs) < 16 || len(pairs) > 64 {
		t.Errorf("%d recorded, %d pairs of %d requests", counts.Recorded, len(pairs), len(came))
	}
	for i, p := range pairs {
		if p.Number != int64(i) || p.Primary.Failed || p.Shadow.Failed || *p.Shadow.Output != 1 || p.Shadow.First < 25*time.Millisecond || p.Primary.First <= 0 || p.Primary.First > p.Shadow.First+time.Second || p.Primary.Status != 200 {
			t.Errorf("pair %d: %+v", i, p)
		}
	}
	if _, _, held := r.Status(); held != 0 {
		t.Errorf("%d bytes are held still", held)
	}
}

// A candidate that hangs, breaks or is not there costs the clients nothing.
func TestShadowFails(t *testing.T) {
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-release }))
	t.Cleanup(hangs.Close)
	breaks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(breaks.Close)
	for _, candidate := range []string{hangs.URL, breaks.URL, "http://127.0.0.1:1"} {
		u, _ := url.Parse(candidate)
		var mu sync.Mutex
		failed := 0
		r := proxied(t, func(o *record.Options) {
			o.Shadow = &record.Shadow{URL: u, Share: 1, Done: func(p record.Pair) {
				mu.Lock()
				defer mu.Unlock()
				if p.Shadow.Failed && !p.Primary.Failed {
					failed++
				}
			}}
		}, answers("text/event-stream", shortStream))
		begin := time.Now()
		for range 20 {
			if _, text := r.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"`+strings.Repeat("Hi ", 1000)+`"}]}`); text != shortStream {
				t.Fatal(text)
			}
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: clients waited %v", candidate, took)
		}
		if candidate == hangs.URL {
			close(release)
		}
		if _, counts := r.over(t); counts.Recorded != 20 || failed != 20 {
			t.Errorf("%s: %d recorded, %d pairs with a failed candidate", candidate, counts.Recorded, failed)
		}
	}
}
