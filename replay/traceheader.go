package replay

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"reprise/trace"
)

// Names of the headers that tell requests apart in a server's logs and traces.
const (
	requestIDHeader   = "X-Request-Id"
	traceparentHeader = "Traceparent"
)

// newTraceID makes the id of a run: 16 random bytes, so that two runs that begin at
// once on two machines differ.
func newTraceID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

// rowHeader makes the header of one row's request. What the user set stands.
func (h *HTTP) rowHeader(id int64, row *trace.Request, more http.Header) http.Header {
	if h.traceID == "" && h.opt.AffinityHeader == "" && len(more) == 0 {
		return h.header // shared, and only read
	}
	header := maps.Clone(h.header)
	set := func(name, value string) {
		if _, given := h.header[name]; !given {
			header[name] = []string{value}
		}
	}
	if h.traceID != "" {
		set(requestIDHeader, h.traceID+"-"+strconv.FormatInt(id, 10))
		// W3C Trace Context, level 1: version, trace, parent span, sampled. A span is
		// not 0.
		set(traceparentHeader, fmt.Sprintf("00-%s-%016x-01", h.traceID, uint64(id)+1))
	}
	if name := h.opt.AffinityHeader; name != "" && row.Session != nil {
		set(http.CanonicalHeaderKey(name), "s"+strconv.FormatInt(*row.Session, 10))
	}
	for name, values := range more {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return header
}
