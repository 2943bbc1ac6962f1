package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

// only is a simulated endpoint that has no other API than one, and asks for a key.
func only(t *testing.T, path, key string, refusal string) *httptest.Server {
	t.Helper()
	sim := simulate(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case key != "" && r.Header.Get("Authorization") != "Bearer "+key:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"You didn't provide an API key."}}`)
			return
		case r.URL.Path != path && r.URL.Path != "/v1/models":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, refusal)
			return
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, sim+r.URL.Path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(s.Close)
	return s
}

// A hosted endpoint that has chat alone and asks for a key is replayed without a flag
// for either; what is wrong is told with what to do next.
func TestFirstContact(t *testing.T) {
	long(t)
	dir := t.TempDir()
	w, out := filepath.Join(dir, "w.parquet"), filepath.Join(dir, "r.parquet")
	must(t, "synth", "baseline", "-n", "3", "-o", w)
	t.Setenv("OPENAI_API_KEY", "")
	chat := only(t, "/v1/chat/completions", "sk-planted", `{"detail":"Not Found. Did you mean v1/chat/completions?"}`)
	quick := []string{"--speed", "100", "--trust", "max-stall-ttft=off,max-stall-gap=off,max-lag=off,max-lag-p50=off," +
		"max-lag-drift=off,max-cpu=off", "-o", out}
	try := func(url string, more ...string) (errs string, code int) {
		_, errs, code = reprise(t, append(append([]string{"replay", w, "--url", url}, more...), quick...)...)
		return errs, code
	}
	if errs, code := try(chat.URL); code != cli.Failure || !strings.HasSuffix(errs, "\nreprise: GET "+chat.URL+"/v1/models: HTTP 401: \"You didn't provide an API key.\"\n"+
		"Set OPENAI_API_KEY to the API key, or name another variable with --api-key-env.\n") {
		t.Errorf("no key: code %d, %s", code, errs)
	}
	t.Setenv("OPENAI_API_KEY", "sk-wrong-key")
	if errs, code := try(chat.URL); code != cli.Failure || !strings.HasSuffix(errs, "The key from OPENAI_API_KEY was sent and refused. --api-key-env names another variable.\n") || strings.Contains(errs, "sk-wrong") {
		t.Errorf("a wrong key: code %d, %s", code, errs)
	}
	t.Setenv("OPENAI_API_KEY", "sk-planted")
	// The key is for the endpoint alone: neither for pages of metrics nor for admin calls elsewhere.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Authorization"); key != "" {
			t.Errorf("%s got %q", r.URL.Path, key)
		}
		_, _ = io.WriteString(w, "up 1\n")
	}))
	defer elsewhere.Close()
	errs, code := try(chat.URL, "--scrape", elsewhere.URL, "--set", "admin-url="+elsewhere.URL)
	for _, want := range []string{"endpoint: the API key is from OPENAI_API_KEY\n", "endpoint: it has no completions API, so requests go to chat (--api chat)\n", ", chat, model sim, "} {
		if code != cli.Good || !strings.Contains(errs, want) || strings.Contains(errs, "sk-planted") {
			t.Errorf("chat alone: code %d, no %q in %s", code, want, errs)
		}
	}
	if errs, code := try(chat.URL+"/v1/chat/completions", "--overwrite"); code != cli.Good || strings.Contains(errs, "it has no") {
		t.Errorf("a full URL: code %d, %s", code, errs)
	}
	if errs, code := try(chat.URL, "--api", "completions", "--overwrite"); code != cli.Failure || !strings.HasSuffix(errs, "endpoint: the API key is from OPENAI_API_KEY\nreprise: POST "+chat.URL+
		"/v1/completions: HTTP 404: \"Not Found. Did you mean v1/chat/completions?\"\nThe server has no completions API, but has chat: use --api chat.\n") {
		t.Errorf("completions asked for: code %d, %s", code, errs)
	}
	if errs, code := try(chat.URL, "--model", "gpt-x", "--overwrite"); code != cli.Failure || !strings.HasSuffix(errs, "The server has no model \"gpt-x\". It has: sim. Name one with --model.\n") {
		t.Errorf("another model: code %d, %s", code, errs)
	}
	// A key in the environment does not cross a network unencrypted.
	if errs, code := try("http://192.0.2.1:1", "--set", "connect-timeout=50ms", "--overwrite"); code != cli.Failure || strings.Contains(errs, "the API key is that of") ||
		!strings.HasSuffix(errs, "Check that the server runs and that --url names it.\n") {
		t.Errorf("another host: code %d, %s", code, errs)
	}
}
