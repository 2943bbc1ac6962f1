package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// words is a Prompter whose prompts are a word for each token.
type words struct{}

func (words) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	if row.InputTokens < 1 {
		return nil, errors.New("a prompt has at least one token")
	}
	for i := range row.InputTokens {
		buf = fmt.Appendf(buf, " w%d", i)
	}
	return buf, nil
}

func (words) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	for i := range row.InputTokens {
		buf = append(buf, uint32(i+10))
	}
	return buf, nil
}

// Pieces of streams.
const (
	role  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}` + "\n\n"
	tok   = `data: {"choices":[{"index":0,"delta":{"content":"a b"},"finish_reason":null}]}` + "\n\n"
	stop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	usage = `data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":8}}}` + "\n\n"
	done  = "data: [DONE]\n\n"
)

// stream answers 200 with the pieces, each flushed.
func stream(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	}
}

// hangs sends the pieces, then nothing until the client goes or the test ends.
func hangs(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(pieces...)(w, r)
		<-r.Context().Done()
	}
}

// breaks sends the pieces and then resets the connection.
func breaks(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(pieces...)(w, r)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}
}

func fails(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func endpoint(t testing.TB, o Options) *HTTP {
	t.Helper()
	if o.Model == "" {
		o.Model = "m"
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// fire sends one row.
func fire(t testing.TB, h *HTTP, row trace.Request, cut time.Duration) result.Result {
	t.Helper()
	c, err := h.Prepare(result.NoRow, 0, &row, words{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Size() <= 0 {
		t.Errorf("the size of a call is %d", c.Size())
	}
	var r result.Result
	h.Fire(t.Context(), result.Shot{Call: c, Start: time.Now(), Cut: cut}, &r)
	return r
}

// inOrder fails unless the instants that are there come in their order.
func inOrder(t *testing.T, name string, instants ...*int64) {
	t.Helper()
	last := int64(-1)
	for i, at := range instants {
		if at == nil {
			continue
		}
		if *at < last {
			t.Errorf("%s: instant %d is %d, before %d", name, i, *at, last)
		}
		last = *at
	}
}

func TestAnswers(t *testing.T) {
	row := trace.Request{InputTokens: 3, OutputTokens: trace.Ptr[int32](3)}
	count := func(text string) int { return len(strings.Fields(text)) }
	long := strings.Repeat(strings.Replace(tok, "a b", strings.Repeat("a ", 1<<16), 1), 10)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		opt     Options
		error   string
		status  int32
		tokens  int32 // token events
		output  int32 // -1 is null
		from    string
		finish  string
	}{
		{"whole", stream(role, tok, tok, tok, stop, usage, done), Options{}, "", 200, 3, 3, result.FromUsage, "length"},
		{"usage stands above a count", stream(tok, stop, usage, done), Options{Count: count}, "", 200, 1, 3, result.FromUsage, "length"},
		{"counted", stream(role, tok, tok, stop, done), Options{Count: count}, "", 200, 2, 3, result.FromTokenizer, "length"},
		{"too long to count", stream(long, stop, done), Options{Count: count}, "", 200, 10, -1, "", "length"},
		{"not counted", stream(role, tok, stop, done), Options{}, "", 200, 1, -1, "", "length"},
		{"no tokens", stream(role, stop, done), Options{Count: count}, openai.KindEmpty, 200, 0, -1, "", "length"},
		{"own finish reason", stream(tok, strings.Replace(stop, "length", "cache_threshold", 1), done), Options{}, "", 200, 1, -1, "", "other"},
		{"given up", stream(tok, strings.Replace(stop, "length", "abort", 1), done), Options{}, openai.KindAborted, 200, 1, -1, "", "abort"},
		{"hangs after the end", hangs(tok, stop, usage, done), Options{}, "", 200, 1, 3, result.FromUsage, "length"},
		{"no end", stream(role, tok), Options{Count: count}, openai.KindIncomplete, 200, 1, 2, result.FromTokenizer, ""},
		{"error inside", stream(tok, `data: {"error":{"message":"x","code":500}}`+"\n\n"), Options{}, openai.KindStream, 200, 1, -1, "", ""},
		{"breaks before the answer", breaks(), Options{}, openai.KindReset, 0, 0, -1, "", ""},
		{"breaks inside", breaks(role, tok), Options{}, openai.KindReset, 200, 1, -1, "", ""},
		{"time limit", hangs(role, tok), Options{Timeout: 50 * time.Millisecond}, openai.KindTimeout, 200, 1, -1, "", ""},
		{"time limit before headers", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() },
			Options{Timeout: 50 * time.Millisecond}, openai.KindTimeout, 0, 0, -1, "", ""},
		{"busy", fails(429, `{"error":{}}`), Options{}, openai.KindRateLimited, 429, 0, -1, "", ""},
		{"too long", fails(400, `{"error":{"message":"maximum context length is 8"}}`), Options{}, openai.KindTooLong, 400, 0, -1, "", ""},
		{"forbidden", fails(403, ""), Options{}, openai.KindAuth, 403, 0, -1, "", ""},
		{"server error", fails(500, "oops"), Options{}, openai.KindServer, 500, 0, -1, "", ""},
		{"a redirect is not followed", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusTemporaryRedirect) },
			Options{}, openai.KindRedirect, 307, 0, -1, "", ""},
		{"no stream", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"a b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":2}}`)
		}, Options{}, openai.KindNotStreamed, 200, 0, 2, result.FromUsage, "stop"},
		{"a page in place of a stream", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>\nsign in</html>\n")
		}, Options{}, openai.KindNotStreamed, 200, 0, -1, "", ""},
		{"an empty stream", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Type", "text/event-stream") },
			Options{}, openai.KindIncomplete, 200, 0, -1, "", ""},
		{"events under another type", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, role+tok+stop+usage+done)
		}, Options{}, "", 200, 1, 3, result.FromUsage, "length"},
		{"broken JSON", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"choices":[`)
		}, Options{}, openai.KindReset, 200, 0, -1, "", ""},
		{"an error with 200", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"error":{"message":"x"}}`)
		}, Options{}, openai.KindStream, 200, 0, -1, "", ""},
	} {
		for _, conns := range []string{PerRequest, Pooled} {
			name := c.name + ", " + conns
			opt := c.opt
			opt.Connections, opt.URL = conns, serve(t, c.handler)
			r := fire(t, endpoint(t, opt), row, 0)
			output := int32(-1)
			if r.Output != nil {
				output = *r.Output
			}
			status := int32(0)
			if r.HTTPStatus != nil {
				status = *r.HTTPStatus
			}
			if r.Error != c.error || status != c.status || r.Events != c.tokens || output != c.output || r.OutputFrom != c.from || r.FinishReason != c.finish {
				t.Errorf("%s: error %q, status %d, %d token events, output %d from %q, finish %q", name, r.Error, status, r.Events, output, r.OutputFrom, r.FinishReason)
			}
			if r.SentNS == nil || r.DoneNS == nil || (r.HeadersNS == nil) != (c.status == 0) || (r.FirstTokenNS == nil) != (c.tokens == 0) || (r.LastTokenNS == nil) != (c.tokens == 0) {
				t.Errorf("%s: instants %+v", name, r)
			}
			inOrder(t, name, r.SentNS, r.HeadersNS, r.FirstEventNS, r.FirstTokenNS, r.LastTokenNS, r.DoneNS)
			sum := int64(0)
			for _, g := range r.GapsNS {
				sum += g
			}
			if len(r.GapsNS) != int(max(c.tokens-1, 0)) || c.tokens > 0 && sum != *r.LastTokenNS-*r.FirstTokenNS {
				t.Errorf("%s: gaps %v", name, r.GapsNS)
			}
			if c.from == result.FromUsage && c.finish == "length" && (*r.Input != 11 || *r.Cached != 8) {
				t.Errorf("%s: input %v, cached %v", name, r.Input, r.Cached)
			}
		}
	}
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	r := fire(t, endpoint(t, Options{URL: url}), trace.Request{InputTokens: 1, OutputTokens: new(int32)}, 0)
	if r.Error != openai.KindConnect || r.SentNS != nil || r.DoneNS == nil || r.HTTPStatus != nil {
		t.Errorf("%+v", r)
	}
}

func TestEventTokens(t *testing.T) {
	piece := func(n int) string {
		return fmt.Sprintf(`data: {"choices":[{"index":0,"text":"x","finish_reason":null}],"usage":{"prompt_tokens":1,"completion_tokens":%d}}`+"\n\n", n)
	}
	for _, c := range []struct{ running, want []int }{{[]int{1, 2, 3}, nil}, {[]int{1, 4, 5}, []int{1, 3, 1}}} {
		var pieces []string
		for _, n := range c.running {
			pieces = append(pieces, piece(n))
		}
		url := serve(t, stream(append(pieces, done)...))
		r := fire(t, endpoint(t, Options{URL: url, API: result.APICompletions, ContinuousUsage: true}), trace.Request{InputTokens: 1, OutputTokens: new(int32)}, 0)
		var got []int
		for _, n := range r.EventTokens {
			got = append(got, int(n))
		}
		if !slices.Equal(got, c.want) || r.Error != "" {
			t.Errorf("running usage %v: %v, want %v (%s)", c.running, got, c.want, r.Error)
		}
	}
}

// A cancelled row is disconnected, the server notices, and it is no error.
func TestCut(t *testing.T) {
	for _, after := range [][]string{nil, {role}, {role, tok}} {
		gone := make(chan struct{})
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			hangs(after...)(w, r)
			close(gone)
		})
		const cut = 30 * time.Millisecond
		r := fire(t, endpoint(t, Options{URL: url}), trace.Request{InputTokens: 1, OutputTokens: new(int32)}, cut)
		<-gone
		if r.Error != openai.KindCancelled || r.Failed() || *r.DoneNS-*r.SentNS < int64(cut) {
			t.Errorf("after %d pieces: %+v", len(after), r)
		}
	}
	r := fire(t, endpoint(t, Options{URL: serve(t, stream(tok, stop, done))}), trace.Request{InputTokens: 1, OutputTokens: new(int32)}, time.Hour)
	if r.Error != "" {
		t.Errorf("an answer before the cut: %q", r.Error)
	}
}

// The requests that arrive are those that the options ask for.
func TestRequests(t *testing.T) {
	extra, err := openai.ParseExtra([]byte(`{"cache_salt":"s"}`))
	if err != nil {
		t.Fatal(err)
	}
	row := trace.Request{InputTokens: 3, OutputTokens: trace.Ptr[int32](5), Temperature: trace.Ptr(float32(0.7))}
	cancelled := row
	cancelled.Status, cancelled.MaxTokens = trace.StatusCancelled, trace.Ptr(int32(100))
	const text, ids = " w0 w1 w2", "[10 11 12]"
	for _, c := range []struct {
		name string
		opt  Options
		row  trace.Request
		path string
		want string
	}{
		{"chat", Options{}, row, "/v1/chat/completions", "m user:" + text + " 5/- false 0.7 true"},
		{"forced", Options{ForceOutput: true}, row, "/v1/chat/completions", "m user:" + text + " 5/5 true 0.7 true"},
		{"text", Options{API: result.APICompletions}, row, "/v1/completions", "m " + text + " 5/- false 0.7 true"},
		{"ids", Options{API: result.APICompletions, TokenIDs: true}, row, "/v1/completions", "m " + ids + " 5/- false 0.7 true"},
		{"no output", Options{ForceOutput: true}, trace.Request{InputTokens: 3, OutputTokens: new(int32)}, "/v1/chat/completions", "m user:" + text + " 1/1 true - true"},
		{"cancelled", Options{ForceOutput: true}, cancelled, "/v1/chat/completions", "m user:" + text + " 100/100 true 0.7 true"},
		{"extra", Options{Extra: extra}, row, "/v1/chat/completions", "m user:" + text + ` 5/- false 0.7 true "s"`},
	} {
		var got, path string
		var header http.Header
		var length int64
		var host string
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			path, header, length, host = r.URL.Path, r.Header, r.ContentLength, r.Host
			q, err := openai.DecodeRequest(r.Body, 1<<20)
			if err != nil {
				t.Error(err)
				return
			}
			got = describe(q)
			stream(tok, stop, done)(w, r)
		})
		c.opt.URL = url + "/v1/" // as users write it
		c.opt.APIKey, c.opt.Header = "key", http.Header{"x-team": {"a"}, "host": {"localhost"}}
		if r := fire(t, endpoint(t, c.opt), c.row, 0); r.Error != "" {
			t.Errorf("%s: %s", c.name, r.Error)
		}
		if got != c.want || path != c.path {
			t.Errorf("%s: %s\n got %s\nwant %s", c.name, path, got, c.want)
		}
		if header.Get("Authorization") != "Bearer key" || header.Get("X-Team") != "a" || host != "localhost" || length <= 0 || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: host %q, length %d, header %v", c.name, host, length, header)
		}
	}
}

func describe(q *openai.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", q.Model)
	switch {
	case q.Messages != nil:
		fmt.Fprintf(&b, "%s:%s", q.Messages[0].Role, q.Messages[0].Content)
	case q.PromptIDs != nil:
		fmt.Fprint(&b, q.PromptIDs)
	default:
		fmt.Fprintf(&b, "%s", q.Prompt)
	}
	fmt.Fprintf(&b, " %d/", *q.MaxTokens)
	if q.MinTokens != nil {
		fmt.Fprint(&b, *q.MinTokens)
	} else {
		b.WriteString("-")
	}
	fmt.Fprint(&b, " ", q.IgnoreEOS, " ")
	if q.Temperature != nil {
		fmt.Fprint(&b, *q.Temperature)
	} else {
		b.WriteString("-")
	}
	fmt.Fprint(&b, " ", q.Stream && q.IncludeUsage)
	if salt, ok := q.Extra.Get("cache_salt"); ok {
		fmt.Fprintf(&b, " %s", salt)
	}
	return b.String()
}

// A server that promises keep-alive and closes after each answer, as llama-server
// does, costs no request, whether connections are pooled or not, and none is sent twice.
func TestClosingServer(t *testing.T) {
	const n = 500
	for _, conns := range []string{"", Pooled, perSession} {
		var seen sync.Map
		var twice atomic.Int64
		url := closingServer(t, func(body []byte) {
			if _, loaded := seen.LoadOrStore(string(body), true); loaded {
				twice.Add(1)
			}
		})
		h := endpoint(t, Options{URL: url, Connections: conns})
		var rows []trace.Request
		for i := range n { // every body is another
			rows = append(rows, trace.Request{InputTokens: int32(i + 1), OutputTokens: trace.Ptr[int32](1)})
		}
		var out trace.SliceWriter[result.Result]
		run, err := (&replay.Runner{Prompter: words{}, Endpoint: h, Options: replay.Options{Concurrency: 32}}).Run(t.Context(), reader(rows), &out)
		if err != nil || len(out.Rows) != n || run.Requests != n {
			t.Fatalf("%d results, run %+v, %v", len(out.Rows), run, err)
		}
		lost := 0
		for _, r := range out.Rows {
			inOrder(t, "closing server", &r.DueNS, r.ReleasedNS, r.SentNS, r.HeadersNS, r.FirstTokenNS, r.DoneNS)
			if r.Error != "" {
				lost++
			}
			if r.Error != "" && r.Error != openai.KindReset {
				t.Errorf("error %q", r.Error)
			}
		}
		if twice.Load() > 0 || lost > 0 {
			t.Errorf("connections %q: %d lost, %d sent twice", conns, lost, twice.Load())
		}
	}
}

// closingServer speaks HTTP by hand, since net/http keeps its promises.
func closingServer(t *testing.T, got func(body []byte)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				body, err := io.ReadAll(req.Body)
				if err != nil {
					return
				}
				got(body)
				answer := tok + stop + done
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5, max=100\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(answer), answer)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestHTTPOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{}, {URL: "localhost:8000"}, {URL: "ftp://x"}, {URL: "http://u:secret@x"}, {URL: "http://x:secret"}, {URL: "http://x", API: "images"},
		{URL: "http://x", TokenIDs: true}, {URL: "http://x", Connections: "shared"}, {URL: "http://x", Timeout: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("an error quotes the URL: %v", err)
		}
	}
}

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		name, body, model, want string
		status                  int
	}{
		{"one", `{"data":[{"id":"qwen"}]}`, "qwen", "", 200},
		{"one in a bare list", `[{"id":"qwen","object":"model"}]`, "qwen", "", 200},
		{"two", `{"data":[{"id":"a"},{"id":"b"}]}`, "", "/v1/models: the server has 2 models", 200},
		{"none", `{"data":[]}`, "", "/v1/models: the server lists no model", 200},
		{"no list", `<html>`, "", "/v1/models: the answer is a page of HTML instead of a list of models", 200},
		{"unknown", `{}`, "", "/v1/models: HTTP 404", 404},
	} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" || r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer k" {
				t.Errorf("%s %s %v", r.Method, r.URL.Path, r.Header)
			}
			fails(c.status, c.body)(w, r)
		})
		h, err := New(Options{URL: url, APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		model, err := h.Probe(t.Context())
		if model != c.model || c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", c.name, model, err)
		}
		var run result.Run
		if h.Describe(&run); run.Model != c.model || run.API != result.APIChat || run.Prompts != "text" || run.Connections != PerRequest {
			t.Errorf("%s: run %+v", c.name, run)
		}
	}
	h := endpoint(t, Options{URL: "http://127.0.0.1:1", Model: "given", API: result.APICompletions, TokenIDs: true, Connections: Pooled})
	if model, err := h.Probe(t.Context()); model != "given" || err != nil {
		t.Errorf("a given model: %q, %v", model, err)
	}
	var run result.Run
	if h.Describe(&run); run.API != result.APICompletions || run.Prompts != "ids" || run.Connections != Pooled {
		t.Errorf("run %+v", run)
	}
}

func TestCalibrate(t *testing.T) {
	for _, c := range []struct {
		name    string
		opt     Options
		handler http.HandlerFunc
		prompt  string
		want    int
		error   string
	}{
		{"chat", Options{}, stream(tok, stop, usage, done), "user: hello", 10, ""},
		{"text", Options{API: result.APICompletions}, stream(tok, stop, usage, done), " hello", 10, ""},
		{"ids", Options{API: result.APICompletions, TokenIDs: true}, stream(tok, stop, usage, done), "[77]", 10, ""},
		{"no usage", Options{}, stream(tok, stop, done), "user: hello", 0, "does not count"},
	} {
		c.opt.URL = serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			q, err := openai.DecodeRequest(bytes.NewReader(body), 1<<20)
			if err != nil {
				t.Error(err)
				return
			}
			if got := describe(q); got != "m "+c.prompt+" 1/- false - true" {
				t.Errorf("%s: asked %q", c.name, got)
			}
			c.handler(w, r)
		})
		h := endpoint(t, c.opt)
		got, err := h.Calibrate(t.Context(), " hello", 77)
		if got != c.want || c.error == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.error) {
			t.Errorf("%s: %d, %v", c.name, got, err)
		}
		var run result.Run
		if h.Describe(&run); run.Overhead != c.want {
			t.Errorf("%s: overhead %d in the run", c.name, run.Overhead)
		}
	}
}

// A server that counts nothing can be sent to all the same, one that refuses
// stream_options without them. Other refusals are errors, as the server words them.
func TestCalibrateUncounted(t *testing.T) {
	refuses := func(field string, then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte(field)) {
				fails(400, `{"error":{"message":"unknown field"}}`)(w, r)
				return
			}
			then(w, r)
		}
	}
	counts, silent := stream(tok, stop, usage, done), stream(tok, stop, done)
	for name, c := range map[string]struct {
		servers           []http.HandlerFunc
		overhead          int
		uncounted, error  string
		withoutOptions    bool
		withContinuous    bool
		wantsOptionsInRun bool
	}{
		"no usage":                       {servers: []http.HandlerFunc{silent}, uncounted: "chat", wantsOptionsInRun: true},
		"stream_options refused":         {servers: []http.HandlerFunc{refuses("stream_options", silent)}, uncounted: "chat", withoutOptions: true},
		"refused, and counted unasked":   {servers: []http.HandlerFunc{refuses("stream_options", counts)}, overhead: 10, withoutOptions: true},
		"one of two counts":              {servers: []http.HandlerFunc{silent, counts}, overhead: 10, wantsOptionsInRun: true},
		"one of two refuses":             {servers: []http.HandlerFunc{counts, refuses("stream_options", silent)}, overhead: 10, withoutOptions: true},
		"something else is refused":      {servers: []http.HandlerFunc{refuses(`"model"`, silent)}, error: `HTTP 400: "unknown field"`, wantsOptionsInRun: true},
		"running usage is asked for too": {servers: []http.HandlerFunc{refuses("stream_options", silent)}, uncounted: "chat", withoutOptions: true, withContinuous: true},
	} {
		o := Options{ContinuousUsage: c.withContinuous}
		for i, s := range c.servers {
			if url := serve(t, s); i == 0 {
				o.URL = url
			} else {
				o.Also = append(o.Also, url)
			}
		}
		h := endpoint(t, o)
		got, err := h.Calibrate(t.Context(), " hello", 77)
		switch {
		case c.error != "":
			if err == nil || !strings.Contains(err.Error(), c.error) {
				t.Errorf("%s: %v", name, err)
			}
		case got != c.overhead || errors.Is(err, ErrUncounted) != (c.uncounted != "") || err != nil && c.uncounted == "":
			t.Errorf("%s: %d, %v", name, got, err)
		}
		var run result.Run
		h.Describe(&run)
		if strings.Join(run.Uncounted, " ") != c.uncounted || (len(run.NoStreamOptions) > 0) != c.withoutOptions || run.Overhead != c.overhead {
			t.Errorf("%s: run %+v", name, run)
		}
		call, err := h.Prepare(result.NoRow, 0, &trace.Request{InputTokens: 1, OutputTokens: trace.Ptr[int32](1)}, words{})
		if err != nil {
			t.Fatal(err)
		}
		sent := call.(*httpCall)
		if asks := bytes.Contains((*sent.body)[sent.at:], []byte("include_usage")); asks != c.wantsOptionsInRun {
			t.Errorf("%s: a request asks for usage: %v", name, asks)
		}
		if h.odd.counts() != (result.Odd{}) {
			t.Errorf("%s: what was measured counts as odd: %+v", name, h.odd.counts())
		}
	}
}

// An interrupted run keeps what was under way, cut off.
func TestInterruptedHTTP(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var open atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(tok)(w, r)
		if open.Add(1) == 10 {
			cancel()
		}
		<-r.Context().Done()
	})
	rows := workload(append(make([]time.Duration, 10), time.Hour)...)
	rows[0].InputTokens = 1
	var out trace.SliceWriter[result.Result]
	run, err := (&replay.Runner{Prompter: words{}, Endpoint: endpoint(t, Options{URL: url}), Options: replay.Options{Grace: time.Millisecond}}).Run(ctx, reader(rows), &out)
	if err != nil || run.Requests != 10 || run.NotSent != 1 || run.EndedEarly != "interrupted" || len(out.Rows) != 10 {
		t.Fatalf("run %+v, %v", run, err)
	}
	for _, r := range out.Rows {
		if r.Error != openai.KindCancelled || r.Events > 1 || r.DoneNS == nil {
			t.Errorf("%+v", r)
		}
	}
	if run.ClientCPU <= 0 {
		t.Errorf("the client used %v cores", run.ClientCPU)
	}
}
