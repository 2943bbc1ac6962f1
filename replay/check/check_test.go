package check

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/replay/client"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace/textpage"
	"reprise/trace/token"
)

// checked checks a server of these settings behind a handler that may change its answers.
func checked(t *testing.T, set func(*engine.ServerConfig), wrap func(http.Handler) http.Handler,
	tokenizer string) (*Report, error) {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{}
	if set != nil {
		set(&c)
	}
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	handler := sim.Handler()
	if wrap != nil {
		handler = wrap(handler)
	}
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	tok, err := token.Open(tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Tokenizer: tok, Key: true}
	if o.Endpoint, err = client.New(client.Options{URL: srv.URL, API: result.APICompletions,
		Connections: client.Pooled, APIKey: "SECRET"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Endpoint.Close)
	if o.Admin, err = client.NewAdmin(client.AdminOptions{URLs: []string{srv.URL}, APIKey: "SECRET"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Admin.Close)
	return Run(t.Context(), o)
}

// says are the findings of one check, each with its level.
func (r *Report) said(check string) string {
	var out []string
	for _, f := range r.Findings {
		if f.Check == check {
			out = append(out, f.Level+": "+f.Says)
		}
	}
	return strings.Join(out, "\n")
}

var measured = regexp.MustCompile(`http://[\d.:]+|[\d.]+ ms at the median of 5, [\d.]+ at least|within [\d.]+ s`)

// The whole text of a good server, and the key that it does not ask for.
func TestRunGoodServer(t *testing.T) {
	r, err := checked(t, func(c *engine.ServerConfig) { c.Engine.BlockSize = 32 }, nil, "o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b, textpage.Options{Width: 80, Details: true}); err != nil {
		t.Fatal(err)
	}
	const want = `Ready for a replay: reprise serve at URL, model sim.

Auth           the server answers without the API key that was sent

APIs           completions, chat, responses, messages, embeddings
Model          sim; context 1,048,576 tokens
Usage          all APIs return token counts
Template       tokens added to a prompt: completions 0; chat 22 (8 before the
               prompt and 14 after it, measured); responses 22; messages 22
Prefix cache   on, stated; 64 of 66 repeated tokens were hits
Cached tokens  reported in usage
KV cache       capacity not stated, in blocks of 32
               (vllm:cache_config_info{block_size})
Tokenizer      o200k_base counts as the server does, in 5 texts
Speculation    none seen; 1.00 tokens an event
Round trip     N
Clock          the server's and this machine's agree N (Date headers
               have whole seconds)
Sent`
	got := measured.ReplaceAllStringFunc(b.String(), func(s string) string {
		if strings.HasPrefix(s, "http") {
			return "URL"
		}
		return "N"
	})
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.Sent.Requests > 45 || r.Sent.PromptTokens > 9000 || r.Problems() != 0 {
		t.Errorf("sent %+v, %d problems", r.Sent, r.Problems())
	}
}

// A tokenizer that is not the server's is a problem, and the built-in one that counts as
// the server does is named.
func TestRunOtherTokenizer(t *testing.T) {
	r, err := checked(t, nil, nil, "cl100k_base")
	if err != nil {
		t.Fatal(err)
	}
	want := "problem: the server counts 36.2 % fewer tokens than cl100k_base for Chinese and Japanese. Prompts would not " +
		"have the lengths of the workload: give --tokenizer o200k_base, which counts as the server does"
	if got := r.said("Tokenizer"); got != want || r.Problems() != 1 {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// What a server leaves out is said, and nothing is claimed that rests on it.
func TestRunWithoutUsage(t *testing.T) {
	only := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/responses" || r.URL.Path == "/v1/messages" || r.URL.Path == "/v1/embeddings" ||
				r.URL.Path == "/metrics" {
				http.NotFound(w, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
	r, err := checked(t, func(c *engine.ServerConfig) { c.Quirks = "usage-missing" }, only, "o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for check, want := range map[string]string{
		"APIs": "ok: completions, chat; not responses, messages, embeddings",
		"Usage": "problem: the server counts no tokens in its answers, so that a replay estimates them by " +
			"the tokenizer. Servers of OpenAI's API count where stream_options.include_usage is asked for, which it " +
			"was; a gateway may take it out",
		"Template":      "",
		"Tokenizer":     "note: o200k_base was not compared: the server counted none of the texts",
		"Prefix cache":  "note: not known whether it is on: the server neither states it nor reports cached tokens",
		"Cached tokens": "note: not reported, so that hits come from the server's metrics alone, where it has any",
		"KV cache":      "note: capacity not stated, block size not stated: a replay takes 16 for the expected hit ratio, and --server-block-size names another",
	} {
		if got := r.said(check); got != want {
			t.Errorf("%s: %s\nwant\n%s", check, got, want)
		}
	}
}

// A server without any of the APIs is an error, and so is a refused key.
func TestRunUnusable(t *testing.T) {
	alone := func(status int) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					h.ServeHTTP(w, r)
					return
				}
				http.Error(w, "no", status)
			})
		}
	}
	if _, err := checked(t, nil, alone(http.StatusNotFound), "o200k_base"); !errors.Is(err, errNoAPI) {
		t.Errorf("no API: %v", err)
	}
	var refused *client.SetupError
	if _, err := checked(t, nil, alone(http.StatusUnauthorized), "o200k_base"); !errors.As(err, &refused) ||
		refused.Status != http.StatusUnauthorized {
		t.Errorf("a refused key: %v", err)
	}
}

// What is said of settings that no server here has.
func TestFindings(t *testing.T) {
	yes, no, n := true, false, 3.2
	r := Report{Model: "Qwen/Qwen3-8B", Server: result.ServerModels{Engine: "vllm", BlockSize: 16, KVTokens: 4096,
		PrefixCaching: &no, Speculates: true},
		APIs: []API{{Name: result.APIChat, Has: true, Usage: &yes},
			{Name: result.APICompletions, Has: true, Refused: "HTTP 400: no"}},
		Cache:    Cache{Reported: &no, On: &no, OnFrom: "stated", Sent: 34},
		PerEvent: &n, Clock: &Clock{FromS: 3.2, ToS: 3.9}}
	texts := []Text{{Kind: "English", Tokens: 100}, {Kind: "digits", Tokens: 20}}
	for i, counted := range []int{101, 64} {
		off := float64(counted)/float64(texts[i].Tokens) - 1
		texts[i].Counted, texts[i].OffShare = &counted, &off
	}
	r.Tokenizer = Tokens{Name: "o200k_base", Guessed: true, Texts: texts}
	r.Findings = r.findings()
	for check, want := range map[string]string{
		"APIs":         "ok: chat; not completions\nnote: completions refuses a prompt of one word: HTTP 400: no",
		"Prefix cache": "note: off (--enable-prefix-caching), stated: every prompt is computed whole",
		"Cached tokens": "note: not reported, so that hits come from the server's metrics alone: start it with " +
			"--enable-prompt-tokens-details",
		"Tokenizer": "note: the server counts 220 % more tokens than o200k_base (taken, since none was named) " +
			"for digits. A replay then makes prompts of words that the server counts as one token each. For a " +
			"corpus, name its own with --tokenizer, as the path of its tokenizer.json or, when it is in " +
			"Hugging Face's cache, as Qwen/Qwen3-8B",
		"Speculation": "note: the server decodes speculatively; 3.20 tokens an event: made-up prompts have " +
			"another TPOT than real text. --corpus, --verbatim or record --shadow send real text",
		"Clock": "note: the server's clock is ahead by 3.2 to 3.9 s; Date headers have whole seconds. Its logs " +
			"stand beside a replay only after that is taken off",
	} {
		if got := r.said(check); got != want {
			t.Errorf("%s: %s\nwant\n%s", check, got, want)
		}
	}
}

// The offset lies where all Date headers allow it, each of which may be up to a second old.
func TestClockOf(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(1_700_000_000_000 + int64(ms)) }
	trip := func(sent, received, date int) client.RoundTrip {
		return client.RoundTrip{Sent: at(sent), Received: at(received), Date: at(date)}
	}
	if got := clockOf([]client.RoundTrip{trip(100, 200, 0), trip(900, 910, 0),
		trip(1100, 1110, 1000)}); got == nil || *got != (Clock{-0.11, 1.1}) {
		t.Errorf("%+v", got)
	}
	if got := clockOf([]client.RoundTrip{trip(100, 200, 0), trip(900, 910, 9000)}); got != nil {
		t.Errorf("dates that disagree: %+v", got)
	}
	if got := clockOf([]client.RoundTrip{{Sent: at(0), Received: at(1)}}); got != nil {
		t.Errorf("no date: %+v", got)
	}
}
