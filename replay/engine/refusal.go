package engine

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"reprise/replay/openai"
)

// fails does what the manner of a request has in place of an answer, and reports
// whether that was anything.
func (s *Server) fails(w http.ResponseWriter, r *http.Request, m *behaviour) bool {
	switch gate := s.gate.Load(); {
	case m.refuse > 0 && gate == nil:
		s.refuse(w, m, http.StatusNotImplemented, errors.New("the quirk refuse needs a server that has its own port"))
	case m.refuse > 0:
		s.count.aborted.Add(1)
		gate.closeFor(m.refuse)
		abort(drop(w, true))
	case m.hang:
		<-r.Context().Done()
		s.count.aborted.Add(1)
	case m.status != 0:
		s.refuse(w, m, m.status, errors.New("the request was chosen to fail"))
	case m.localOnly && !isLocal(r.Host):
		s.refuse(w, m, http.StatusForbidden, errors.New("the host is not this one"))
	default:
		return false
	}
	return true
}

func isLocal(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refuse counts a completion that is not made, and answers it.
func (s *Server) refuse(w http.ResponseWriter, m *behaviour, status int, err error) {
	s.count.refused.Add(1)
	refuse(w, m, status, err)
}

// refuse answers with an error body as vLLM does. A nil manner is the plain one.
func refuse(w http.ResponseWriter, m *behaviour, status int, err error) {
	if m == nil {
		p := defaultBehaviour()
		m = &p
	}
	if m.retryAfter > 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		w.Header().Set("Retry-After", strconv.Itoa(m.retryAfter-1))
	}
	if m.code == "empty" || status == http.StatusForbidden {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(openai.AppendError(nil, openai.ErrorDetail{Message: err.Error(), Type: kindOf(status), Code: m.codeOf(status)}))
}

// kindOf is what vLLM calls a status.
func kindOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "RateLimitError"
	case status == http.StatusNotFound:
		return "NotFoundError"
	case status >= 500:
		return "InternalServerError"
	}
	return "BadRequestError"
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
