package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"reprise/trace/ending"
)

// The classes of failure: a closed list, so that results can be counted by it and no
// text of a server's ends in a file.
const (
	KindConnect     = "connect"      // no connection: refused, unreachable, unknown host, dial timeout
	KindTLS         = "tls"          // the connection stood, the handshake failed
	KindTimeout     = "timeout"      // a deadline of ours passed, or HTTP 408
	KindBadRequest  = "bad_request"  // HTTP 4xx without a class of its own
	KindAuth        = "auth"         // HTTP 401, 403
	KindNotFound    = "not_found"    // HTTP 404: path or model
	KindRateLimited = "rate_limited" // HTTP 429
	// HTTP 413, or 400, 422, 500 and errors in a stream that speak of the context length
	KindTooLong     = "too_long"
	KindServer      = "server_error"  // HTTP 5xx without a class of its own
	KindUnavailable = "unavailable"   // HTTP 502, 503, 504, 529: overloaded, loading, or nothing behind the gateway
	KindRedirect    = "redirect"      // HTTP 3xx: none is followed
	KindStream      = ending.InStream // an error after HTTP 200, or an event that cannot be read
	// HTTP 200 and a whole body where a stream was asked for: no token has an instant
	KindNotStreamed = "not_streamed"
	// HTTP 200 and a compressed body, which nobody asked for: a compressor holds events back
	KindCompressed = "compressed"
	// HTTP 200 and an answer that goes on beyond anything that was asked for, see [Bound]
	KindOverlong   = "overlong"
	KindIncomplete = ending.Incomplete // the stream ended in good order, but before [DONE] or a finish reason
	KindAborted    = ending.GaveUp     // the server gave the answer up: its finish reason is abort, or HTTP 499
	KindEmpty      = ending.Empty      // the answer ended in good order, without a token
	KindReset      = "reset"           // the connection broke while the answer was awaited or read
	KindCancelled  = "cancelled"       // we gave up: the run ended or the row was to be cut off
	KindOther      = "other"
)

// A StreamError says how a request failed.
type StreamError struct {
	Said       string // the server's message, see [Said]: it may quote the request, and Error does not have it
	Kind       string // one of the classes above
	HTTPStatus int    // 0 when no status is to blame
	// the server's own, such as "BadRequestError" and "400", if each is a plain identifier of at most 64 bytes
	Type, Code string
}

// Error names the kind and what else is known.
func (e *StreamError) Error() string {
	s := e.Kind
	if e.HTTPStatus != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.HTTPStatus)
	}
	if e.Type != "" {
		s += " type " + e.Type
	}
	if e.Code != "" {
		s += " code " + e.Code
	}
	return s
}

// maxErrorBody is how much of an error's body is looked at.
const maxErrorBody = 64 << 10

// HTTPError makes the error of an answer whose status is not 200. The body may be
// empty, cut off, or no JSON at all.
func HTTPError(status int, body []byte) *StreamError {
	e := &StreamError{Kind: classifyHTTP(status, body), HTTPStatus: status}
	e.describe(body)
	e.Said = Said(body)
	return e
}

// classifyHTTP returns the class of an HTTP status. The body decides only between
// too_long and bad_request, where the status says the same for both.
func classifyHTTP(status int, body []byte) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return KindAuth
	case http.StatusNotFound:
		return KindNotFound
	case http.StatusRequestTimeout:
		return KindTimeout
	case http.StatusRequestEntityTooLarge:
		if bytes.Contains(body, []byte("rate_limit")) { // Groq, of tokens in a minute
			return KindRateLimited
		}
		return KindTooLong
	case http.StatusTooManyRequests:
		return KindRateLimited
	case 499: // nginx: a client closed its connection, which is not ours, since we read this
		return KindAborted
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
		return KindUnavailable
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		if saysTooLong(body) {
			return KindTooLong
		}
	}
	switch {
	case status >= 300 && status < 400:
		return KindRedirect
	case status >= 400 && status < 500:
		return KindBadRequest
	case status >= 500 && status < 600:
		return KindServer
	}
	return KindOther
}

// saysTooLong says whether an error speaks of a prompt that does not fit.
func saysTooLong(body []byte) bool {
	body = bytes.ToLower(body[:min(len(body), maxErrorBody)])
	return slices.ContainsFunc(lengthPhrases, func(phrase []byte) bool { return bytes.Contains(body, phrase) })
}

// lengthPhrases are what servers say about a prompt that does not fit: OpenAI's code,
// llama-server's type, the messages of engines, and last those of Gemini, TGI, Anthropic and DashScope.
var lengthPhrases = [][]byte{
	[]byte("context_length"), []byte("context length"), []byte("maximum context"), []byte("exceed_context_size"),
	[]byte("context size"),
	[]byte("context window"), []byte("maximum model length"), []byte("max_model_len"), []byte("max_seq_len"),
	[]byte("too many tokens"), []byte("prompt is too long"), []byte("input is too long"), []byte("prompt length"),
	[]byte("input token count"), []byte("`inputs` tokens"), []byte("context limit"), []byte("range of input length"),
}

// ClassifyError returns the class of an error met while connecting, sending or reading;
// "" for nil. What is both a cancellation and something else is a cancellation.
func ClassifyError(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*StreamError](err); ok {
		return e.Kind
	}
	op, isOp := errors.AsType[*net.OpError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	ne, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return KindCancelled
	case isTLS(err):
		return KindTLS
	case isOp && op.Op == "dial", isDNS, errors.Is(err, syscall.ECONNREFUSED):
		return KindConnect
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isNet && ne.Timeout():
		return KindTimeout
	case errors.Is(err, ErrOverlong):
		return KindOverlong
	case errors.Is(err, io.ErrNoProgress):
		return KindStream
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED),
		errors.Is(err, io.EOF), // net/http's error when the server closed the connection before it answered
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), IsHTTP2End(err):
		return KindReset
	}
	return KindOther
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	// The alert that a peer sends has no exported type, but its operation a name.
	op, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, http.ErrSchemeMismatch) ||
		ok && (op.Op == "remote error" || op.Op == "local error") ||
		strings.Contains(err.Error(), "TLS handshake timeout")
}

// IsHTTP2End reports whether a server ended a stream, or its connection, by
// HTTP/2's RST_STREAM or GOAWAY. The server may have begun to work on the request. The errors of
// net/http have no exported type.
func IsHTTP2End(err error) bool {
	text := err.Error()
	return strings.Contains(text, "stream error: stream ID ") || strings.Contains(text, "http2: server sent GOAWAY") ||
		strings.Contains(text, "http2: client connection lost")
}

// describe reads type and code of an error body: {"error":{…}}, {"error":"…"}, or
// the members at top level, as old vLLM and FastChat have them. The inner ones win.
func (e *StreamError) describe(body []byte) {
	c := cursor{b: body[:min(len(body), maxErrorBody)]}
	if inner := e.members(&c); inner != nil {
		e.members(&cursor{b: inner})
	}
}

// members reads type and code of one object and returns its member error, if it has one.
func (e *StreamError) members(c *cursor) (inner []byte) {
	if !c.open('{') {
		return nil
	}
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "error":
			inner = c.value()
		case "type":
			e.Type = identifier(c.value())
		case "code":
			e.Code = identifier(c.value())
		default:
			c.skip()
		}
	}
	return inner
}

// identifier returns a JSON string or number if it is short and made of letters,
// digits, '_', '-' and '.' alone, else "": no sentence passes.
func identifier(raw []byte) string {
	if len(raw) >= 2 && raw[0] == '"' {
		raw = raw[1 : len(raw)-1]
	} else if string(raw) == "null" {
		return ""
	}
	if len(raw) > 64 {
		return ""
	}
	for _, ch := range raw {
		switch {
		case ch >= 'a' && ch <= 'z', ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9', ch == '_', ch == '-', ch == '.':
		default:
			return ""
		}
	}
	return string(raw)
}
