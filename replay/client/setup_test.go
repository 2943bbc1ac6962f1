package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// Calibrate is [HTTP.CalibrateAPI] for the API of the endpoint.
func (h *HTTP) Calibrate(ctx context.Context, word string, id uint32) (overhead int, err error) {
	return h.CalibrateAPI(ctx, apiOf(h.opt.API, &trace.Request{}), word, id)
}

// A refusing server answers some paths, and says why it refuses the others.
type refusing struct {
	models string         // of /v1/models, comma-separated
	status map[string]int // by path; 0 is 200
	said   string         // body of a refusal
}

func (s *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if status := s.status[r.URL.Path]; status != 0 {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, s.said)
		return
	}
	if r.URL.Path == "/v1/models" {
		var list []string
		for name := range strings.SplitSeq(s.models, ",") {
			list = append(list, fmt.Sprintf(`{"id":%q}`, name))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(list, ","))
		return
	}
	_, _ = io.WriteString(w, `{}`)
}

func TestSetupErrors(t *testing.T) {
	const key = "sk-PLANTED-KEY"
	for name, c := range map[string]struct {
		server refusing
		api    string
		model  string
		want   SetupError
	}{
		"chat only": {refusing{models: "m", status: map[string]int{"/v1/completions": 404}, said: `{"detail":"Not Found. Did you mean v1/chat/completions?"}`}, result.APICompletions, "",
			SetupError{Listed: true, Asked: "POST URL/v1/completions", Kind: openai.KindNotFound, Status: 404, Said: "Not Found. Did you mean v1/chat/completions?", API: result.APICompletions, Other: result.APIChat, Model: "m"}},
		"completions only": {refusing{models: "m", status: map[string]int{"/v1/chat/completions": 405}}, result.APIChat, "",
			SetupError{Listed: true, Asked: "POST URL/v1/chat/completions", Kind: openai.KindBadRequest, Status: 405, API: result.APIChat, Other: result.APICompletions, Model: "m"}},
		"a key": {refusing{models: "m", status: map[string]int{"/v1/completions": 401}, said: `{"error":{"message":"Incorrect API key provided: ` + key + `.\nSee the docs."}}`}, result.APICompletions, "",
			SetupError{Asked: "POST URL/v1/completions", Kind: openai.KindAuth, Status: 401, Said: "Incorrect API key provided: ***. See the docs.", API: result.APICompletions, Model: "m"}},
		"a key for the models": {refusing{status: map[string]int{"/v1/models": 403}, said: `{"error":"forbidden"}`}, result.APICompletions, "",
			SetupError{Asked: "GET URL/v1/models", Kind: openai.KindAuth, Status: 403, Said: "forbidden"}},
		"another model": {refusing{models: "m,n", status: map[string]int{"/v1/completions": 404}, said: `{"message":"The model x does not exist"}`}, result.APICompletions, "x",
			SetupError{Listed: true, Unknown: true, Asked: "POST URL/v1/completions", Kind: openai.KindNotFound, Status: 404, Said: "The model x does not exist", API: result.APICompletions, Model: "x", Models: []string{"m", "n"}}},
		"a page": {refusing{models: "m", status: map[string]int{"/v1/completions": 502}, said: "<html>bad gateway</html>"}, result.APICompletions, "",
			SetupError{Listed: true, Asked: "POST URL/v1/completions", Kind: openai.KindUnavailable, Status: 502, API: result.APICompletions, Model: "m"}},
		"a long text": {refusing{models: "m", status: map[string]int{"/v1/completions": 400}, said: strings.Repeat("no ", 200)}, result.APICompletions, "",
			SetupError{Listed: true, Asked: "POST URL/v1/completions", Kind: openai.KindBadRequest, Status: 400, Said: strings.Repeat("no ", 99) + "no…", API: result.APICompletions, Model: "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(&c.server)
			defer s.Close()
			h, err := New(Options{URL: s.URL, API: c.api, Model: c.model, APIKey: key})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			_, err = h.Probe(context.Background())
			if err == nil {
				_, err = h.Calibrate(context.Background(), "a", 1)
			}
			got, ok := errors.AsType[*SetupError](err)
			if !ok {
				t.Fatalf("no setup error: %v", err)
			}
			c.want.Asked = strings.Replace(c.want.Asked, "URL", s.URL, 1)
			if g, w := fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", c.want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
			if strings.Contains(err.Error(), key) {
				t.Errorf("the key is quoted: %v", err)
			}
		})
	}
}

// Where nothing answers, the failure itself is kept.
func TestSetupErrorWithoutAnAnswer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	h, err := New(Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, err = h.Probe(context.Background())
	if e, ok := errors.AsType[*SetupError](err); !ok || e.Kind != openai.KindConnect || e.Failure == nil || !strings.HasPrefix(err.Error(), "GET "+s.URL+"/v1/models: ") {
		t.Errorf("%v", err)
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	if h, err = New(Options{URL: tls.URL}); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, err = h.Probe(context.Background())
	if e, ok := errors.AsType[*SetupError](err); !ok || e.Kind != openai.KindTLS {
		t.Errorf("%v", err)
	}
}

// A full URL names its API, and is as good as its base.
func TestAPIOfURL(t *testing.T) {
	for url, want := range map[string][2]string{
		"http://h":                             {"", "http://h"},
		"http://h/v1":                          {"", "http://h"},
		"http://h/v1/chat/completions":         {result.APIChat, "http://h"},
		"http://h/gw/v1/completions/":          {result.APICompletions, "http://h/gw"},
		"https://h/v1/responses?api-version=2": {result.APIResponses, "https://h"},
		"http://h/v1/embeddings":               {result.APIEmbeddings, "http://h"},
		"http://h/completions":                 {result.APICompletions, "http://h"},
	} {
		if got := APIOfURL(url); got != want[0] {
			t.Errorf("%s: API %q", url, got)
		}
		if one, err := parseTarget(url, 0); err != nil || one.name != want[1] {
			t.Errorf("%s: base %q, %v", url, one.name, err)
		}
	}
}

// Two texts of different length tell a template from another tokenizer, and tokens of a
// template that are given go before those that are measured.
func TestCount(t *testing.T) {
	counts := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		q, err := openai.DecodeRequest(strings.NewReader(string(body)), 1<<20)
		if err != nil {
			t.Error(err)
			return
		}
		usage := ""
		if counts {
			usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":1}`, 7+len(q.Prompt))
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":\"length\"}]%s}\n\ndata: [DONE]\n\n", usage)
	}))
	defer s.Close()
	four := 4
	for _, c := range []struct {
		given    *int
		counts   bool
		overhead int
		err      error
		count    int
	}{
		{nil, true, 7, nil, 10},
		{&four, true, 4, nil, 13},
		{nil, false, 0, ErrUncounted, 0},
		{&four, false, 4, ErrUncounted, 0},
	} {
		counts = c.counts
		h, err := New(Options{URL: s.URL, API: result.APICompletions, Model: "m", TemplateTokens: c.given})
		if err != nil {
			t.Fatal(err)
		}
		overhead, err := h.Calibrate(t.Context(), "a", 1)
		if overhead != c.overhead || !errors.Is(err, c.err) {
			t.Errorf("%+v: %d, %v", c, overhead, err)
		}
		n, err := h.Count(t.Context(), result.APICompletions, "ten bytes.")
		if !errors.Is(err, c.err) || err == nil && n != c.count {
			t.Errorf("%+v: %d counted, %v", c, n, err)
		}
		var run result.Run
		if h.Describe(&run); run.Overhead != c.overhead {
			t.Errorf("%+v: the run says %d", c, run.Overhead)
		}
		h.Close()
	}
}
