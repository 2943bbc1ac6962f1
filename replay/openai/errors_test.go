package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestClassifyHTTP(t *testing.T) {
	for _, row := range []struct {
		status int
		body   string
		want   string
	}{
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9002","type":"BadRequestError","param":null,"code":400}}`, "too_long (HTTP 400) type BadRequestError code 400"},
		{400, `{"error":{"code":400,"message":"the request exceeds","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":5}}`, "too_long (HTTP 400) type exceed_context_size_error code 400"},
		{400, `{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}`, "too_long (HTTP 400) type invalid_request_error code context_length_exceeded"},
		{400, `{"error":{"message":"secret sentence","type":"a type, with spaces","code":null}}`, "bad_request (HTTP 400)"},
		{422, `{"detail":"secret"}`, "bad_request (HTTP 422)"},
		{401, "", "auth (HTTP 401)"},
		{403, "", "auth (HTTP 403)"},
		{404, `{"object":"error","message":"secret","type":"NotFoundError","code":404}`, "not_found (HTTP 404) type NotFoundError code 404"},
		{405, "", "bad_request (HTTP 405)"},
		{408, "", "timeout (HTTP 408)"},
		{413, "", "too_long (HTTP 413)"},
		{429, `{"error":{"type":"RateLimitError","code":"` + strings.Repeat("x", 65) + `"}}`, "rate_limited (HTTP 429) type RateLimitError"},
		{499, "", "aborted (HTTP 499)"},
		{413, `{"error":{"message":"Request too large for model m on tokens per minute","code":"rate_limit_exceeded"}}`, "rate_limited (HTTP 413) code rate_limit_exceeded"},
		{422, `{"error":"Input validation error: ` + "`inputs` tokens + `max_new_tokens`" + ` must be <= 2048","error_type":"validation"}`, "too_long (HTTP 422)"},
		{400, `[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed","status":"INVALID_ARGUMENT"}}]`, "too_long (HTTP 400)"},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 9 > 8"}}`, "too_long (HTTP 400) type invalid_request_error"},
		{400, `{"error":{"message":"Range of input length should be [1, 98304]"}}`, "too_long (HTTP 400)"},
		{500, `{"error":{"type":"server_error","code":500,"message":"context length"}}`, "too_long (HTTP 500) type server_error code 500"},
		{400, `{"error":"it is above the maximum context of 10"}`, "too_long (HTTP 400)"},
		{502, "<html>secret</html>", "unavailable (HTTP 502)"},
		{503, `{"error":{"type":"InternalServerError","code":503}`, "unavailable (HTTP 503) type InternalServerError code 503"},
		{504, "", "unavailable (HTTP 504)"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"secret"}}`, "unavailable (HTTP 529) type overloaded_error"},
		{302, "", "redirect (HTTP 302)"},
		{200, "", "other (HTTP 200)"},
		{500, `{"error":"secret sentence"}`, "server_error (HTTP 500)"},
		{500, `["secret"]`, "server_error (HTTP 500)"},
		{400, strings.Repeat(`{"error":`, 100_000), "bad_request (HTTP 400)"},
	} {
		got := HTTPError(row.status, []byte(row.body))
		if got.Error() != row.want {
			t.Errorf("%d %.80s: %v, want %s", row.status, row.body, got, row.want)
		}
		if kind := classifyHTTP(row.status, []byte(row.body)); kind != got.Kind {
			t.Errorf("%d: kind %s", row.status, kind)
		}
	}
}

type timeout struct{ error }

func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return false }

func TestClassifyError(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, row := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{context.Canceled, KindCancelled},
		{&net.OpError{Op: "read", Err: net.ErrClosed}, KindCancelled},
		{context.DeadlineExceeded, KindTimeout},
		{fmt.Errorf("wrapped: %w", timeout{io.EOF}), KindTimeout},
		{refused, KindConnect},
		{fmt.Errorf("post: %w", refused), KindConnect},
		{&net.OpError{Op: "dial", Err: timeout{errors.New("i/o timeout")}}, KindConnect},
		{&net.DNSError{IsNotFound: true}, KindConnect},
		{&net.OpError{Op: "remote error", Err: errors.New("bad certificate")}, KindTLS},
		{timeout{errors.New("net/http: TLS handshake timeout")}, KindTLS},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, KindReset},
		{syscall.ECONNRESET, KindReset},
		{io.ErrUnexpectedEOF, KindReset},
		{fmt.Errorf("post: %w", io.EOF), KindReset},
		{errEventTooLong, KindOverlong},
		{io.ErrNoProgress, KindStream},
		{&StreamError{Kind: KindIncomplete}, KindIncomplete},
		{errors.New("strange"), KindOther},
	} {
		if got := ClassifyError(row.err); got != row.want {
			t.Errorf("%v: %s, want %s", row.err, got, row.want)
		}
	}
}

// The errors that net/http really gives.
func TestClassifyRealErrors(t *testing.T) {
	hang := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := func() net.Conn {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			return c
		}
		switch r.URL.Path {
		case "/close":
			conn().Close()
		case "/reset":
			c := conn()
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		case "/cut":
			c := conn()
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			c.Close()
		case "/hang":
			<-hang
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	defer close(hang)
	gone := httptest.NewServer(nil)
	gone.Close()

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancelLate()
	for _, row := range []struct {
		name, url string
		ctx       context.Context
		want      string
	}{
		{"nobody listens", gone.URL, t.Context(), KindConnect},
		{"certificate of an unknown authority", secure.URL, t.Context(), KindTLS},
		{"https to an http port", "https" + strings.TrimPrefix(plain.URL, "http"), t.Context(), KindTLS},
		{"closed before the answer", plain.URL + "/close", t.Context(), KindReset},
		{"reset before the answer", plain.URL + "/reset", t.Context(), KindReset},
		{"cut in the body", plain.URL + "/cut", t.Context(), KindReset},
		{"cancelled", plain.URL, cancelled, KindCancelled},
		{"no answer in time", plain.URL + "/hang", late, KindTimeout},
	} {
		req, err := http.NewRequestWithContext(row.ctx, "POST", row.url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if got := ClassifyError(err); got != row.want {
			t.Errorf("%s: %s, want %s (%v)", row.name, got, row.want, err)
		}
	}
}
