package client

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"reprise/replay/client/internal/h1"
	"reprise/replay/openai"
	"reprise/replay/result"
)

// New checks the options and makes an endpoint. It connects to nothing.
func New(o Options) (*HTTP, error) {
	o.API, o.Connections, o.Balance = cmp.Or(o.API, result.APIChat), cmp.Or(o.Connections, PerRequest),
		cmp.Or(o.Balance, RoundRobin)
	o.Timeout, o.ConnectTimeout = cmp.Or(o.Timeout, 10*time.Minute), cmp.Or(o.ConnectTimeout, connectTimeout)
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Extra.Forbids("ignore_eos") { // so that it is not sent, and no length is forced in another way
		o.ForceOutput, o.Extra = false, o.Extra.LeftOut("ignore_eos")
	}
	h := &HTTP{opt: o, model: o.Model, overheads: map[string]int{}, uncounted: map[string]bool{},
		dialects: map[string]*dialect{}, served: newServedBy(o.RecordHeaders), priority: map[string]openai.Extra{}}
	var err error
	if h.targets, err = o.targets(); err != nil {
		return nil, err
	}
	for class, n := range o.Priorities {
		if h.priority[class], err = openai.ParseExtra(fmt.Appendf(nil, `{"priority":%d}`, n)); err != nil {
			return nil, err
		}
	}
	h.header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream, application/json"},
		"User-Agent": {"reprise"},
	}
	if o.API == result.APIMessages {
		h.header.Set("Anthropic-Version", "2023-06-01") // which Anthropic asks for; there is no other
	}
	if o.APIKey != "" {
		h.header.Set("Authorization", "Bearer "+o.APIKey)
	}
	for name, values := range o.Header {
		if name = http.CanonicalHeaderKey(name); name == "Host" && len(values) > 0 {
			for i := range h.targets {
				h.targets[i].host = values[0]
			}
			continue
		}
		h.header[name] = values
	}
	if !o.NoTraceHeaders {
		// 16 random bytes, so that two runs that begin at once on two machines differ.
		var id [16]byte
		rand.Read(id[:]) // never fails, by its documentation
		h.traceID = hex.EncodeToString(id[:])
	}
	if h.transport, err = h.newTransport(); err != nil {
		return nil, err
	}
	keep, size, err := parseConnections(o.Connections)
	if err != nil {
		return nil, err
	}
	h.reading = h1.NewReaders()
	for i := range h.targets {
		t := &h.targets[i]
		t.exchanger = netExchanger{h}
		if t.wire, err = h.newWire(t, keep, size); err != nil {
			return nil, err
		}
		if t.wire != nil {
			t.exchanger = t.wire
		}
	}
	h.room = openai.NewRoom()
	h.bodies.New = func() any { return new([]byte) }
	h.readers.New = func() any { return newAnswer(o.Count != nil || o.Replies) }
	return h, nil
}

// Close drops the idle connections.
func (h *HTTP) Close() {
	h.transport.CloseIdleConnections()
	for i := range h.targets {
		if w := h.targets[i].wire; w != nil {
			w.client.Close()
		}
	}
	h.reading.Close()
}

// Watch has each goroutine that reads answers call beat at least each millisecond, with its
// number, until the next call; a nil beat ends it. It returns how many they are: 0 where
// some servers' answers are read otherwise, by TLS, a Unix socket, HTTP/2 or a proxy.
func (h *HTTP) Watch(beat func(reader int)) (readers int) {
	for i := range h.targets {
		if t := &h.targets[i]; t.wire == nil || t.base.Scheme != "http" || t.socket != "" {
			return 0
		}
	}
	return h.reading.Watch(beat)
}
