package client

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// A pickyServer answers chats and completions, but refuses some fields, in words of its own.
type pickyServer struct {
	path   string // of its APIs; "" is /v1, and / its root
	fields []string
	words  string // %s is the field
	status int

	mu   sync.Mutex
	sent []string // bodies, of requests that were answered
}

func (s *pickyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(cmp.Or(s.path, "/v1"), "/")
	body, _ := io.ReadAll(r.Body)
	if tail, ok := strings.CutPrefix(r.URL.Path, path); !ok || tail != "/chat/completions" && tail != "/completions" {
		fails(404, `{"detail":"Not Found"}`)(w, r)
		return
	}
	for _, field := range s.fields {
		if strings.Contains(string(body), `"`+field+`":`) {
			words := s.words
			if strings.Contains(words, "%s") {
				words = fmt.Sprintf(words, field)
			}
			fails(s.status, words)(w, r)
			return
		}
	}
	if !strings.Contains(string(body), "max_") {
		fails(500, `{"error":"a request without a bound"}`)(w, r)
		return
	}
	s.mu.Lock()
	s.sent = append(s.sent, string(body))
	s.mu.Unlock()
	stream(tok, stop, usage, done)(w, r)
}

// What a server refuses is left out, or spelled as it wants it, and said; the requests of the
// run are like the probe that was answered, and what nobody refuses stays.
func TestRefusedFields(t *testing.T) {
	const openAI = `{"error":{"message":"Unsupported parameter: '%s' is not supported with this model. Use 'max_completion_tokens' instead.","param":"%[1]s"}}`
	all := []string{"max_tokens", "min_tokens", "ignore_eos", "stream_options"}
	for name, c := range map[string]struct {
		server *pickyServer
		forced bool
		has    string // of all, and max_completion_tokens
		says   string // words of what is said, one for each line
	}{
		"nothing":                          {&pickyServer{}, true, "max_tokens min_tokens ignore_eos stream_options", ""},
		"max_tokens":                       {&pickyServer{fields: all[:1], words: openAI, status: 400}, false, "stream_options max_completion_tokens", "max_completion_tokens"},
		"max_tokens, in silence":           {&pickyServer{fields: all[:1], words: "{}", status: 400}, true, "min_tokens ignore_eos stream_options max_completion_tokens", "max_completion_tokens"},
		"forced lengths, as transformers":  {&pickyServer{fields: all[1:3], words: `{"detail":"Unexpected fields in the request: {'min_tokens', 'ignore_eos'}"}`, status: 422}, true, "max_tokens stream_options", "min_tokens"},
		"one of them":                      {&pickyServer{fields: all[2:3], words: `{"error":"Unrecognized request argument supplied: %s"}`, status: 400}, true, "max_tokens stream_options", "min_tokens"},
		"forced lengths, in silence":       {&pickyServer{fields: all[1:3], words: "no", status: 400}, true, "max_tokens stream_options", "min_tokens"},
		"stream_options, in silence":       {&pickyServer{fields: all[3:], words: "no", status: 422}, true, "max_tokens min_tokens ignore_eos", "stream_options"},
		"all, one after the other":         {&pickyServer{fields: all, words: `{"error":"unknown field %s"}`, status: 400}, true, "max_completion_tokens", "max_completion_tokens\nmin_tokens\nstream_options"},
		"fields, by status 500":            {&pickyServer{fields: all[3:], words: `{"error":"got an unexpected keyword argument '%s'"}`, status: 500}, true, "max_tokens min_tokens ignore_eos", "stream_options"},
		"forced lengths, by status 501":    {&pickyServer{fields: all[1:3], words: `{"error":"%s is not implemented"}`, status: 501}, true, "max_tokens stream_options", "min_tokens"},
		"one token":                        {&pickyServer{fields: []string{`max_tokens":1,"min_tokens`}, words: `{"error":"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead."}`, status: 400}, true, "max_tokens min_tokens ignore_eos stream_options", "16 tokens"},
		"running counts":                   {&pickyServer{fields: []string{"continuous_usage_stats"}, words: `{"error":"unknown: %s"}`, status: 400}, true, "max_tokens min_tokens ignore_eos stream_options", "continuous_usage_stats"},
		"all, in silence":                  {&pickyServer{fields: all, words: "", status: 400}, true, "max_completion_tokens", "max_completion_tokens\nmin_tokens\nstream_options"},
		"its APIs are at its root":         {&pickyServer{path: "/"}, true, "max_tokens min_tokens ignore_eos stream_options", "are below"},
		"they are below a path without v1": {&pickyServer{path: "/llm"}, true, "max_tokens min_tokens ignore_eos stream_options", "are below"},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.server
			served := httptest.NewServer(s)
			defer served.Close()
			h := endpoint(t, Options{URL: served.URL + s.path, Model: "m", ForceOutput: c.forced, ContinuousUsage: name == "running counts"})
			if _, err := h.Calibrate(t.Context(), " a", 1); err != nil {
				t.Fatal(err)
			}
			row := trace.Request{InputTokens: 1, OutputTokens: trace.Ptr[int32](5), Kind: "chat"}
			if r := fire(t, h, row, 0); r.Error != "" {
				t.Fatalf("the run's request: %s", r.Error)
			}
			for _, body := range s.sent {
				var has []string
				for _, field := range append(all[:4:4], "max_completion_tokens") {
					if strings.Contains(body, `"`+field+`":`) {
						has = append(has, field)
					}
				}
				if got := strings.Join(has, " "); got != c.has {
					t.Errorf("a request has %s, want %s", got, c.has)
				}
			}
			var run result.Run
			h.Describe(&run)
			said := h.Adapted()
			want := strings.Split(c.says, "\n")
			if c.says == "" {
				want = nil
			}
			if len(said) != len(want) || strings.Join(run.Adapted, "\n") != strings.Join(said, "\n") {
				t.Fatalf("it says %q, and the run %q; want %q", said, run.Adapted, want)
			}
			for i := range want {
				if !strings.Contains(said[i], want[i]) {
					t.Errorf("it says %q, want %q", said[i], want[i])
				}
			}
			_, forced := run.Sampling["ignore_eos"]
			if wants := c.forced && strings.Contains(c.has, "ignore_eos"); forced != wants {
				t.Errorf("the run says that lengths are forced: %v, want %v", forced, wants)
			}
		})
	}
}

// A refusal that no field explains is an error, in the server's words, and nothing is left out.
func TestRefusedAltogether(t *testing.T) {
	s := httptest.NewServer(&pickyServer{fields: []string{"model"}, words: `{"error":"max_tokens and min_tokens are fine, you are not"}`, status: 400})
	defer s.Close()
	h := endpoint(t, Options{URL: s.URL, Model: "m", ForceOutput: true})
	_, err := h.Calibrate(t.Context(), " a", 1)
	if err == nil || !strings.Contains(err.Error(), "you are not") || len(h.Adapted()) > 0 {
		t.Errorf("%v, %q", err, h.Adapted())
	}
}

// Every probe has a bound, and none is made to be refused.
func TestProbesAreBounded(t *testing.T) {
	s := &pickyServer{}
	served := httptest.NewServer(s)
	defer served.Close()
	h := endpoint(t, Options{URL: served.URL, Model: "m", ForceOutput: true})
	has, err := h.APIs(t.Context())
	if err != nil || !has[result.APIChat] || !has[result.APICompletions] || has[result.APIResponses] || has[result.APIEmbeddings] {
		t.Errorf("%v, %v", has, err)
	}
	for _, body := range s.sent {
		if !strings.Contains(body, `"max_tokens":1`) {
			t.Errorf("a probe without a bound: %s", body)
		}
	}
}

// A 404 that is about the model does not mean that there is no API.
func TestUnknownModel(t *testing.T) {
	for said, has := range map[string]bool{
		`{"error":{"message":"The model 'm' does not exist.","code":"model_not_found"}}`:                           true,
		`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`: true,
		`{"detail":"Not Found"}`: false, `{"error":{"code":"404","message":"Resource not found"}}`: false, "404 page not found": false,
	} {
		s := httptest.NewServer(fails(404, said))
		h := endpoint(t, Options{URL: s.URL, Model: "m"})
		apis, err := h.APIs(t.Context())
		if err != nil || apis[result.APIChat] != has || apis[result.APIEmbeddings] {
			t.Errorf("%s: %v, %v", said, apis, err)
		}
		s.Close()
	}
}

// What servers say about errors is kept once for each class and status, without what they
// quote of a prompt or a key.
func TestWordsOfServers(t *testing.T) {
	const key = "sk-PLANTED-KEY"
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked, _ := openai.DecodeRequest(strings.NewReader(string(body)), 1<<20)
		prompt := string(asked.Messages[0].Content)
		switch n++; n {
		case 1:
			fails(400, `{"error":{"message":"cannot take `+strings.TrimSpace(prompt)+` with `+key+` today"}}`)(w, r)
		case 2:
			fails(400, `{"error":{"message":"another time"}}`)(w, r)
		case 3:
			fails(500, `{"detail":"out of memory"}`)(w, r)
		case 4:
			stream(tok, `data: {"error":{"message":"engine died: `+prompt+`"}}`+"\n\n")(w, r)
		default:
			fails(404, `{"detail":"no [`+prompt+`]"}`)(w, r)
		}
	}))
	defer s.Close()
	for _, http2 := range []string{PerRequest, Pooled} {
		n = 0
		h := endpoint(t, Options{URL: s.URL, Model: "m", APIKey: key, Connections: http2})
		for range 5 {
			fire(t, h, trace.Request{InputTokens: 9, OutputTokens: trace.Ptr[int32](5), Kind: "chat"}, 0)
		}
		said := h.Report().Said
		want := []result.Said{{Class: "bad_request", Status: 400, Words: "cannot take … with *** today"}, {Class: "server_error", Status: 500, Words: "out of memory"},
			{Class: "stream_error", Words: "engine died"}, {Class: "not_found", Status: 404, Words: "no [ …]"}}
		if fmt.Sprint(said) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", http2, said, want)
		}
	}
}

func TestWithoutPrompt(t *testing.T) {
	prompt := promptOf([]byte(`{"model":"model-of-mine","messages":[{"role":"system","content":"You are the planted secret of an enterprise."},{"role":"user","content":[{"type":"text","text":"zebra\ncrossing"}]}],"max_tokens":9}`))
	for said, want := range map[string]string{
		"model-of-mine has no max_tokens":                      "model-of-mine has no max_tokens",
		"bad: planted secret of an enterprise. Try again":      "bad: …. Try again",
		"the zebra exceeds the context":                        "the … exceeds the context",
		"content of the message must be text, not secret":      "content of the message must be text, not …",
		"input 'zebra crossing' is refused, user":              "input '…' is refused, user",
		"ids 1, 2, 3, 4, 5 are out of range 32000":             "ids … are out of range 32000",
		"ébad: You are the planted secret of an enterprise. é": "ébad: … é",
	} {
		if got := withoutPrompt(said, prompt); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
