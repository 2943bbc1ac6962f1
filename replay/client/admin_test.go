package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// adminServer is a server with some calls, each with the statuses that it answers
// in turn, the last for ever.
type adminServer struct {
	mu    sync.Mutex
	calls map[string][]int
	seen  []string
	keys  []string
	gets  map[string]string
}

func (s *adminServer) start(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		name := r.Method + " " + r.URL.Path
		s.seen, s.keys = append(s.seen, name), append(s.keys, r.Header.Get("Authorization"))
		if body, ok := s.gets[r.URL.Path]; ok && r.Method == http.MethodGet {
			fmt.Fprint(w, body)
			return
		}
		status := s.calls[name]
		if len(status) == 0 {
			http.Error(w, "SECRET", http.StatusNotFound)
			return
		}
		if len(status) > 1 {
			s.calls[name] = status[1:]
		}
		if status[0] == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status[0])
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func adminOf(t *testing.T, urls ...string) *Admin {
	t.Helper()
	a, err := NewAdmin(AdminOptions{URLs: urls, APIKey: "SECRET"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func TestResetCache(t *testing.T) {
	vllm := func() *adminServer { return &adminServer{calls: map[string][]int{"POST " + vllmReset: {200}}} }
	sglang := func() *adminServer {
		return &adminServer{calls: map[string][]int{"POST " + sglangReset: {400, 400, 200}}}
	}
	other := func() *adminServer { return &adminServer{calls: map[string][]int{"POST /mine": {204}}} }
	for _, c := range []struct {
		name    string
		servers []*adminServer
		path    string
		used    string
		none    bool
		err     string
	}{
		{name: "vLLM", servers: []*adminServer{vllm(), vllm()}, used: vllmReset},
		{name: "SGLang, busy at first", servers: []*adminServer{sglang()}, used: sglangReset},
		{name: "both", servers: []*adminServer{vllm(), sglang()}, used: vllmReset + ", " + sglangReset},
		{name: "one has none", servers: []*adminServer{vllm(), other()}, none: true},
		{name: "named", servers: []*adminServer{other()}, path: "/mine", used: "/mine"},
		{name: "named and not there", servers: []*adminServer{vllm()}, path: "/mine", none: true},
		{name: "forbidden", servers: []*adminServer{{calls: map[string][]int{"POST " + vllmReset: {403}}}}, err: "HTTP 403"},
		{name: "redirected", servers: []*adminServer{{calls: map[string][]int{"POST " + vllmReset: {302}}}}, err: "HTTP 302"},
	} {
		var urls []string
		for _, s := range c.servers {
			urls = append(urls, s.start(t)+"/v1")
		}
		used, err := adminOf(t, urls...).ResetCache(t.Context(), c.path)
		switch {
		case c.none != errors.Is(err, ErrNoCall), c.used != used, (err == nil) != (c.used != ""):
			t.Errorf("%s: used %q, error %v", c.name, used, err)
		case err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "SECRET") ||
			strings.Contains(err.Error(), urls[0])):
			t.Errorf("%s: error %v", c.name, err)
		}
		for _, s := range c.servers {
			if slices.ContainsFunc(s.keys, func(k string) bool { return k != "Bearer SECRET" }) ||
				slices.Contains(s.seen, "POST /elsewhere") || slices.Contains(s.seen, "GET /elsewhere") {
				t.Errorf("%s: keys %q, calls %q", c.name, s.keys, s.seen)
			}
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := adminOf(t, gone.URL).ResetCache(t.Context(), ""); err == nil || errors.Is(err, ErrNoCall) ||
		strings.Contains(err.Error(), gone.URL) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestAbout(t *testing.T) {
	models := func(n int) string {
		return fmt.Sprintf(`{"data":[{"id":"other","max_model_len":1},{"id":"m","max_model_len":%d}]}`, n)
	}
	a := (&adminServer{gets: map[string]string{"/version": `{"version":"0.11.0"}`, "/v1/models": models(8192)}}).start(t)
	b := (&adminServer{gets: map[string]string{"/version": `{"version":"0.10.2\u001b"}`,
		"/v1/models": models(4096)}}).start(t)
	c := (&adminServer{gets: map[string]string{"/version": `not JSON`}}).start(t)
	if version, n := About(adminOf(t, a, b, c, a).Survey(t.Context(), "m"), "m"); version != "0.10.2?, 0.11.0" ||
		n != 4096 {
		t.Errorf("%q, %d", version, n)
	}
	if version, n := About(adminOf(t, c).Survey(t.Context(), "m"), "m"); version != "" || n != 0 {
		t.Errorf("%q, %d", version, n)
	}
}
