package record_test

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
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/datasets/record"
	"reprise/trace"
	"reprise/trace/recording"
)

// A recorded proxy, with the entries that it gave.
type recorded struct {
	*record.Proxy
	url     string
	front   *httptest.Server
	mu      sync.Mutex
	entries []*trace.Entry
}

// proxied starts a proxy in front of servers.
func proxied(t testing.TB, change func(*record.Options), servers ...http.Handler) *recorded {
	t.Helper()
	r := new(recorded)
	o := record.Options{Begin: time.Now(), Memory: 64 << 20, Share: 1, SessionHeaders: []string{"X-Session-Id"}}
	o.Sink = func() (func(*trace.Entry) error, error) {
		return func(e *trace.Entry) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.entries = append(r.entries, e)
			return nil
		}, nil
	}
	for _, h := range servers {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		o.Upstreams = append(o.Upstreams, u)
	}
	if change != nil {
		change(&o)
	}
	var err error
	if r.Proxy, err = record.New(o); err != nil {
		t.Fatal(err)
	}
	r.front = httptest.NewServer(r.Proxy)
	r.url = r.front.URL
	t.Cleanup(r.front.Close)
	return r
}

// over ends the proxy and returns what it recorded.
func (r *recorded) over(t *testing.T) ([]*trace.Entry, recording.Counts) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	if err := r.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	r.Close()
	return r.entries, r.Counts()
}

// post sends a body and returns the answer's.
func (r *recorded) post(t *testing.T, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// answers is a server that gives one answer.
func answers(contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	})
}

// shown is an entry with its texts.
func shown(e *trace.Entry) string {
	var b strings.Builder
	opt := func(p *int32) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	for _, m := range e.Messages {
		fmt.Fprintf(&b, "%s(%s", m.Role, m.Content.Reveal())
		for _, more := range []trace.Text{m.Calls, m.CallID, m.Name} {
			if more.Len() > 0 {
				b.WriteString("|" + more.Reveal())
			}
		}
		b.WriteString(") ")
	}
	if len(e.PromptIDs) > 0 {
		fmt.Fprintf(&b, "ids%v ", e.PromptIDs)
	}
	if e.Tools.Len() > 0 {
		fmt.Fprintf(&b, "tools%s ", e.Tools.Reveal())
	}
	if e.Reply != nil {
		fmt.Fprintf(&b, "-> (%s%s) ", e.Reply.Reveal(), e.ReplyCalls.Reveal())
	}
	fmt.Fprintf(&b, "%s %s %s in=%s out=%s cached=%s reasoning=%s images=%s max=%s", e.Kind, e.Status, e.FinishReason, opt(e.InputTokens), opt(e.OutputTokens), opt(e.Cached), opt(e.Reasoning), opt(e.Images), opt(e.MaxTokens))
	if e.Session.Len()+e.User.Len() > 0 {
		fmt.Fprintf(&b, " session=%s user=%s", e.Session.Reveal(), e.User.Reveal())
	}
	return b.String()
}

// sse joins events.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		name, data, named := strings.Cut(e, "\t")
		if !named {
			data = e
		} else {
			b.WriteString("event: " + name + "\n")
		}
		b.WriteString("data: " + data + "\n\n")
	}
	return b.String()
}

// What each API says becomes an entry, streamed or not, and passes unchanged.
func TestAPIs(t *testing.T) {
	for name, c := range map[string]struct{ path, request, kind, answer, want string }{
		"chat": {"/v1/chat/completions", `{"model":"m","max_tokens":9,"user":"u","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"data:x"}}]}]}`,
			"application/json", `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Good."},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}}`,
			`system(Be brief.) user(Look) -> (Good.) chat  stop in=12 out=2 cached=8 reasoning=- images=1 max=9 session= user=u`},
		"streamed chat": {"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}`,
			"text/event-stream", sse(`{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, `{"id":"1","choices":[{"index":0,"delta":{"content":"Go"}}]}`,
				`{"id":"1","choices":[{"index":0,"delta":{"content":"od"},"finish_reason":"stop"}]}`, `{"id":"1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":7,"completion_tokens_details":{"reasoning_tokens":5}}}`, "[DONE]"),
			`user(Hi) -> (Good) chat  stop in=3 out=7 cached=- reasoning=5 images=- max=-`},
		"chat with tools": {"/v1/chat/completions", `{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"b":1,"a":2}}}],"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"42"}]}`,
			"application/json", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c2"}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":30,"completion_tokens":9}}`,
			`user(Hi) assistant(|[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]) tool(42|c1) tools[{"type":"function","function":{"name":"f","parameters":{"b":1,"a":2}}}] -> ([{"id":"c2"}]) chat  tool_calls in=30 out=9 cached=- reasoning=- images=- max=-`},
		"completion": {"/v1/completions", `{"prompt":"Once","max_tokens":2}`, "application/json", `{"choices":[{"text":" upon","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			`user(Once) -> ( upon) completion  length in=1 out=1 cached=- reasoning=- images=- max=2`},
		"token ids": {"/v1/completions", `{"prompt":[1,2,3]}`, "application/json", `{"choices":[{"text":"x","finish_reason":"stop"}]}`,
			`ids[1 2 3] -> (x) completion  stop in=3 out=- cached=- reasoning=- images=- max=-`},
		"token ids of two prompts": {"/v1/completions", `{"prompt":[[1,2,3],[4]]}`, "application/json", `{"choices":[{"text":"x","finish_reason":"stop"}]}`,
			`-> (x) completion  stop in=4 out=- cached=- reasoning=- images=- max=-`},
		"token ids that are none": {"/v1/completions", `{"prompt":[1,-2]}`, "application/json", `{"choices":[{"text":"x","finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":1}}`,
			`-> (x) completion  stop in=2 out=1 cached=- reasoning=- images=- max=-`},
		"embedding": {"/v1/embeddings", `{"input":["one"]}`, "application/json", `{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`,
			`user(one) embedding   in=1 out=- cached=- reasoning=- images=- max=-`},
		"response": {"/v1/responses", `{"instructions":"Be brief.","prompt_cache_key":"s1","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"c","output":"42"}]}`,
			"application/json", `{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Good."}]}],"usage":{"input_tokens":20,"output_tokens":2,"input_tokens_details":{"cached_tokens":16}}}`,
			`system(Be brief.) user(Hi) assistant(|[{"type":"function","id":"c","function":{"name":"f","arguments":{"a":1}}}]) tool(42|c) -> (Good.) responses  stop in=20 out=2 cached=16 reasoning=- images=- max=- session=s1 user=`},
		"streamed response": {"/v1/responses", `{"stream":true,"input":"Hi"}`,
			"text/event-stream; charset=utf-8", sse("response.created\t"+`{"type":"response.created","response":{"id":"r","model":"m"}}`, "response.output_text.delta\t"+`{"type":"response.output_text.delta","delta":"Good."}`,
				"response.completed\t"+`{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":4,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0}}}}`),
			`user(Hi) -> (Good.) responses  stop in=4 out=2 cached=- reasoning=- images=- max=-`},
		"message": {"/v1/messages", `{"model":"c","max_tokens":64,"system":[{"type":"text","text":"Be brief."}],"metadata":{"user_id":"user_a_account_b_session_c"},"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":"Look:"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"42"}]},{"type":"text","text":"And?"}]}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]}`,
			"application/json", `{"id":"m1","type":"message","role":"assistant","content":[{"type":"text","text":"Good."}],"stop_reason":"end_turn","usage":{"input_tokens":5,"cache_creation_input_tokens":100,"cache_read_input_tokens":20,"output_tokens":2}}`,
			`system(Be brief.) user(Hi) assistant(Look:|[{"type":"function","id":"t1","function":{"name":"f","arguments":{"a":1}}}]) tool(42|t1) user(And?) tools[{"function":{"name":"f","description":"d","parameters":{"type":"object"}},"type":"function"}] -> (Good.) chat  stop in=125 out=2 cached=20 reasoning=- images=- max=64 session=c user=user_a_account_b`},
		"streamed message": {"/v1/messages", `{"model":"c","stream":true,"messages":[{"role":"user","content":"Hi"}]}`,
			"text/event-stream", sse("message_start\t"+`{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":5,"cache_read_input_tokens":20,"output_tokens":1}}}`, "content_block_start\t"+`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				"ping\t"+`{"type":"ping"}`, "content_block_delta\t"+`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good."}}`, "content_block_stop\t"+`{"type":"content_block_stop","index":0}`,
				"content_block_start\t"+`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`, "content_block_delta\t"+`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
				"content_block_delta\t"+`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}`, "content_block_stop\t"+`{"type":"content_block_stop","index":1}`,
				"message_delta\t"+`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`, "message_stop\t"+`{"type":"message_stop"}`),
			`user(Hi) -> (Good.[{"type":"function","id":"t","function":{"name":"f","arguments":{"a":1}}}]) chat  tool_calls in=25 out=9 cached=20 reasoning=- images=- max=-`},
		"error": {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}]}`, "application/json", `{"error":{"message":"no"}}`,
			`user(Hi) chat failed  in=- out=- cached=- reasoning=- images=- max=-`},
	} {
		t.Run(name, func(t *testing.T) {
			var came string
			r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				came = string(body)
				answers(c.kind, c.answer).ServeHTTP(w, r)
			}))
			_, got := r.post(t, c.path, c.request)
			if got != c.answer || came != c.request {
				t.Errorf("the server got %q, the client %q", came, got)
			}
			entries, counts := r.over(t)
			if len(entries) != 1 || counts.Recorded != 1 || counts.Lost() != 0 {
				t.Fatalf("%d entries, %+v", len(entries), counts)
			}
			if e := shown(entries[0]); e != c.want {
				t.Errorf("got  %s\nwant %s", e, c.want)
			}
			if stream := strings.HasPrefix(c.kind, "text"); (entries[0].TTFT != nil) != stream || entries[0].E2E == nil || *entries[0].E2E <= 0 {
				t.Errorf("TTFT %v, E2E %v", entries[0].TTFT, entries[0].E2E)
			}
		})
	}
}

// A request that goes on from an earlier answer, or in a conversation that the server
// keeps, has all of the prompt, whether the answer was streamed or not; where the earlier
// answer is not known there is no text, and nothing is made up. All of a chain is in the
// sample or none of it.
func TestResponseChains(t *testing.T) {
	responses := 0
	engine := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		responses++
		whole := fmt.Sprintf(`{"id":"r%d","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"answer %d"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"usage":{"input_tokens":20,"output_tokens":2}}`, responses, responses)
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			answers("application/json", whole).ServeHTTP(w, r)
			return
		}
		answers("text/event-stream", sse("response.created\t"+fmt.Sprintf(`{"type":"response.created","response":{"id":"r%d"}}`, responses),
			"response.function_call_arguments.delta\t"+`{"type":"response.function_call_arguments.delta","delta":"{}"}`,
			"response.completed\t"+`{"type":"response.completed","response":`+whole+`}`)).ServeHTTP(w, r)
	})
	r := proxied(t, nil, engine)
	for _, body := range []string{`"input":"one","instructions":"first"`, `"input":"two","previous_response_id":"r1","instructions":"second","stream":true`,
		`"input":[{"type":"function_call_output","call_id":"c","output":"42"}],"previous_response_id":"r2"`,
		`"input":"lost","previous_response_id":"r99"`, `"input":"three","conversation":{"id":"conv"}`, `"input":"four","conversation":"conv"`} {
		r.post(t, "/v1/responses", "{"+body+"}")
	}
	const call = `[{"type":"function","id":"c","function":{"name":"f","arguments":{}}}]`
	want := []string{
		"system(first) user(one) -> (answer 1" + call + ") responses  tool_calls in=20 out=2 cached=- reasoning=- images=- max=- answer=r1 after=",
		"system(second) user(one) assistant(answer 1|" + call + ") user(two) -> (answer 2" + call + ") responses  tool_calls in=20 out=2 cached=- reasoning=- images=- max=- answer=r2 after=r1",
		"user(one) assistant(answer 1|" + call + ") user(two) assistant(answer 2|" + call + ") tool(42|c) -> (answer 3" + call + ") responses  tool_calls in=20 out=2 cached=- reasoning=- images=- max=- answer=r3 after=r2",
		"responses  tool_calls in=20 out=2 cached=- reasoning=- images=- max=- answer=r4 after=r99",
		"user(three) -> (answer 5" + call + ") responses  tool_calls in=20 out=2 cached=- reasoning=- images=- max=- session=conv user= answer=r5 after=",
		"user(three) assistant(answer 5|" + call + ") user(four) -> (answer 6" + call + ") responses  tool_calls in=20 out=2 cached=- reasoning=- images=- max=- session=conv user= answer=r6 after=",
	}
	entries, _ := r.over(t)
	for i, e := range entries {
		if got := shown(e) + " answer=" + e.Response.Reveal() + " after=" + e.Previous.Reveal(); got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}

	responses = 0
	r = proxied(t, func(o *record.Options) { o.Share = 0.5 }, engine)
	for i := range 40 {
		r.post(t, "/v1/responses", fmt.Sprintf(`{"input":"question %d"}`, i))
		r.post(t, "/v1/responses", fmt.Sprintf(`{"input":"and?","previous_response_id":"r%d"}`, 2*i+1))
	}
	entries, c := r.over(t)
	for i := 0; i+1 < len(entries); i += 2 {
		if entries[i+1].Previous.Reveal() != entries[i].Response.Reveal() {
			t.Fatalf("%d of 80 requests, and a chain is not whole", len(entries))
		}
	}
	if c.Recorded+c.SampledOut != 80 || len(entries) < 20 || len(entries) > 60 {
		t.Errorf("%d of 80 requests", len(entries))
	}
}

// Each piece of an answer is with the client before the next one is made, and the
// instants are those of the pieces.
func TestStreamsAtOnce(t *testing.T) {
	next := make(chan struct{})
	r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	resp, err := http.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		for lines.Scan() && lines.Text() == "" {
		}
		if want := fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"%d"}}]}`, i); lines.Text() != want {
			t.Fatalf("got %q", lines.Text())
		}
		time.Sleep(20 * time.Millisecond)
		next <- struct{}{}
	}
	io.Copy(io.Discard, resp.Body)
	entries, _ := r.over(t)
	if e := entries[0]; *e.TTFT > 15*time.Millisecond && *e.TTFT > *e.E2E/2 || *e.E2E < 40*time.Millisecond {
		t.Errorf("TTFT %v, E2E %v of three pieces 20 ms apart", *e.TTFT, *e.E2E)
	}
}

// Headers pass, but for those of the connection; what is not an API passes and is
// counted; the query is as it came.
func TestPassesOn(t *testing.T) {
	r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Answer", "1")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s auth=%s te=%s secret=%s for=%s agent=%s", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("Te"), r.Header.Get("X-Hop"), r.Header.Get("X-Forwarded-For"), r.Header.Get("User-Agent"))
	}))
	req, _ := http.NewRequest("PATCH", r.url+"/a%2Fb//c?x=1;y=%zz", nil)
	req.Header = http.Header{"Authorization": {"Bearer k"}, "X-Hop": {"1"}, "Connection": {"X-Hop"}, "X-Forwarded-For": {"10.0.0.1"}, "User-Agent": {"a/1"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	want := "PATCH /a%2Fb//c?x=1;y=%zz auth=Bearer k te= secret= for=10.0.0.1, 127.0.0.1 agent=a/1"
	if string(text) != want || resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Answer") != "1" || resp.Header.Get("Keep-Alive") != "" {
		t.Errorf("%d %v\n%s\n%s", resp.StatusCode, resp.Header, text, want)
	}
	if _, c := r.over(t); c.NotAsked != 1 || c.Recorded != 0 {
		t.Errorf("%+v", c)
	}
}

// A client that hangs up is recorded as that, at its instant; the server learns of it.
func TestClientHangsUp(t *testing.T) {
	ended := make(chan struct{})
	r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	ctx, hangUp := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"Hi"}]}`))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Read(make([]byte, 1))
	hangUp()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the server was not told")
	}
	entries, _ := r.over(t)
	if got := shown(entries[0]); got != "user(Hi) -> (a) chat cancelled  in=- out=- cached=- reasoning=- images=- max=-" {
		t.Error(got)
	}
}

// A server that dies in the middle, and one that is not there.
func TestServerDies(t *testing.T) {
	r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	resp, err := http.Post(r.url+"/v1/chat/completions", "", strings.NewReader(`{"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client saw %v", err)
	}
	entries, _ := r.over(t)
	if got := shown(entries[0]); got != "user(Hi) chat failed  in=- out=- cached=- reasoning=- images=- max=-" {
		t.Error(got)
	}

	var said []string
	gone := proxied(t, func(o *record.Options) {
		o.Upstreams = []*url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}
		o.Message = func(s string) { said = append(said, s) }
	})
	for range 3 {
		if code, text := gone.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}]}`); code != 502 || !strings.Contains(text, "did not answer") {
			t.Errorf("%d %s", code, text)
		}
	}
	_, counts := gone.over(t)
	if counts.Unreached != 3 || len(said) != 1 || said[0] != "127.0.0.1:1 cannot be reached; requests to it are answered with 502" {
		t.Errorf("%+v, said %q", counts, said)
	}
}

// A client that hangs up before its request is whole is no engine that cannot be reached.
func TestClientGoneEarly(t *testing.T) {
	came := make(chan struct{})
	r := proxied(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		io.Copy(io.Discard, r.Body)
	}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n{\"messages\":[")
	<-came
	conn.Close()
	if _, counts := r.over(t); counts.ClientGone != 1 || counts.Lost() != 1 {
		t.Errorf("%+v", counts)
	}
}

// When texts exceed the limit, and when the recorder itself is at fault, traffic goes on
// and the count says so.
func TestFailsOpen(t *testing.T) {
	big := `{"messages":[{"role":"user","content":"` + strings.Repeat("long ", 1<<18) + `"}]}`
	whole := `{"choices":[{"message":{"content":"` + strings.Repeat("x", 1<<16) + `"},"finish_reason":"stop"}]}`
	r := proxied(t, func(o *record.Options) { o.Memory = 1 << 20 }, answers("application/json", whole))
	for range 3 {
		if _, text := r.post(t, "/v1/chat/completions", big); text != whole {
			t.Fatal("another answer")
		}
	}
	r.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}]}`)
	r.post(t, "/v1/chat/completions", `{"messages":`)
	r.post(t, "/v1/chat/completions", `["no request"]`)
	_, c := r.over(t)
	if c.Memory != 3 || c.Recorded != 1 || c.Unreadable != 2 {
		t.Errorf("%+v", c)
	}
	if _, _, held := r.Status(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}

	// A sink that waits, as for a tokenizer that is behind, holds up no request.
	release := make(chan struct{})
	behind := proxied(t, func(o *record.Options) {
		o.Memory = 1 << 20
		o.Sink = func() (func(*trace.Entry) error, error) {
			return func(*trace.Entry) error { <-release; return nil }, nil
		}
	}, answers("application/json", whole))
	begin := time.Now()
	for range 40 {
		if _, text := behind.post(t, "/v1/completions", `{"prompt":"x"}`); text != whole {
			t.Fatal("another answer")
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("clients waited %v", took)
	}
	close(release)
	if _, c := behind.over(t); c.Recorded+c.Memory != 40 || c.Memory == 0 || c.Recorded == 0 {
		t.Errorf("%+v", c)
	}

	faulty := proxied(t, func(o *record.Options) {
		o.Sink = func() (func(*trace.Entry) error, error) { return func(*trace.Entry) error { panic("fault") }, nil }
	}, answers("application/json", whole))
	for range 2 {
		if _, text := faulty.post(t, "/v1/completions", `{"prompt":"x"}`); text != whole {
			t.Fatal("another answer")
		}
	}
	if _, c := faulty.over(t); c.Failed != 2 || c.Lost() != 2 {
		t.Errorf("%+v", c)
	}
}

// A sample has all requests of a session or none: by header, by body, by how the chat
// begins.
func TestSampleBySession(t *testing.T) {
	r := proxied(t, func(o *record.Options) { o.Share = 0.5 }, answers("application/json", `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`))
	for i := range 60 {
		chat := fmt.Sprintf(`{"role":"system","content":"same"},{"role":"user","content":"question %d"}`, i)
		r.post(t, "/v1/chat/completions", `{"messages":[`+chat+`]}`)
		r.post(t, "/v1/chat/completions", `{"messages":[`+chat+`,{"role":"assistant","content":"x"},{"role":"user","content":"and?"}]}`)
		for range 2 {
			r.post(t, "/v1/completions", `{"prompt":"x"}`, "X-Session-Id", fmt.Sprint("s", i))
		}
	}
	entries, c := r.over(t)
	turns := map[string]int{}
	for _, e := range entries {
		key := e.Session.Reveal()
		if key == "" {
			key = e.Messages[1].Content.Reveal()
		}
		turns[key]++
	}
	for key, n := range turns {
		if n != 2 {
			t.Errorf("%s: %d of 2 turns", key, n)
		}
	}
	if c.Recorded+c.SampledOut != 240 || len(turns) < 30 || len(turns) > 90 {
		t.Errorf("%d of 120 sessions, %+v", len(turns), c)
	}
}

// Bodies that are compressed pass as they are, and are read all the same.
func TestCompressed(t *testing.T) {
	stream := sse(`{"choices":[{"index":0,"delta":{"content":"Good"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "[DONE]")
	packed := gzipped(stream)
	r := proxied(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		for _, piece := range [][]byte{packed[:10], packed[10:]} {
			w.Write(piece)
			w.(http.Flusher).Flush()
		}
	}))
	request := string(gzipped(`{"stream":true,"messages":[{"role":"user","content":"Hi"}]}`))
	req, _ := http.NewRequest("POST", r.url+"/v1/chat/completions", strings.NewReader(request))
	req.Header = http.Header{"Content-Encoding": {"gzip"}, "Accept-Encoding": {"gzip"}}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(resp.Body)
	if !bytes.Equal(got, packed) {
		t.Error("the answer was changed")
	}
	entries, _ := r.over(t)
	if got := shown(entries[0]); got != "user(Hi) -> (Good) chat  stop in=3 out=1 cached=- reasoning=- images=- max=-" || entries[0].TTFT == nil {
		t.Error(got)
	}
}
