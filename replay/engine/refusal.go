package engine

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"reprise/replay/openai"
)

// fails applies the faults that take the place of an answer, and reports whether there
// was one.
func (s *Server) fails(w http.ResponseWriter, r *http.Request, m *behaviour) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	switch gate := s.gate.Load(); {
	case m.refuse > 0 && gate == nil:
		refuse(w, r, m, http.StatusNotImplemented, errors.New("the quirk refuse needs a server that has its own port"))
	case m.refuse > 0:
		s.count.aborted.Add(1)
		gate.closeFor(m.refuse)
		abort(drop(w, true))
	case m.hang:
		<-r.Context().Done()
		s.count.aborted.Add(1)
	case m.redirected:
		w.Header().Set("Location", "http://"+net.JoinHostPort(host, "1")+r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
	case m.status != 0:
		refuse(w, r, m, m.status, errors.New("the request was chosen to fail"))
	case m.localOnly && !local:
		refuse(w, r, m, http.StatusForbidden, errors.New("the host is not this server's"))
	default:
		return false
	}
	return true
}

// refuse answers with an error body as vLLM does, and under the Messages API as Anthropic
// does. A nil behaviour is the default.
func refuse(w http.ResponseWriter, r *http.Request, m *behaviour, status int, err error) {
	if m == nil {
		m = new(defaultBehaviour())
	}
	if m.retryAfter > 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		w.Header().Set("Retry-After", strconv.Itoa(m.retryAfter-1))
	}
	if m.code == "empty" || status == http.StatusForbidden {
		w.WriteHeader(status)
		return
	}
	names, i := [2]string{"BadRequestError", "invalid_request_error"}, 0 // as vLLM and Anthropic name statuses
	switch {
	case status == http.StatusTooManyRequests:
		names = [2]string{"RateLimitError", "rate_limit_error"}
	case status == http.StatusNotFound:
		names = [2]string{"NotFoundError", "not_found_error"}
	case status == http.StatusRequestEntityTooLarge:
		names[1] = "request_too_large"
	case status == 529:
		names = [2]string{"InternalServerError", "overloaded_error"}
	case status >= 500:
		names = [2]string{"InternalServerError", "api_error"}
	}
	appendError := openai.AppendError
	if r.URL.Path == openai.MessagesPath {
		appendError, i = openai.AppendMessageError, 1
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(appendError(nil, openai.ErrorDetail{Message: err.Error(), Type: names[i], Code: m.codeOf(status)}))
}

// codeOf is the code of an error's body.
func (m *behaviour) codeOf(status int) any {
	switch m.code {
	case "string":
		return "error_" + strconv.Itoa(status)
	case "null":
		return nil
	}
	return status
}
