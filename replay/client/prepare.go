package client

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"reprise/replay/client/internal/h1"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// An httpCall is an encoded request.
type httpCall struct {
	body    *[]byte
	at      int    // where the body begins; in front is room for the head
	head    string // of the request, up to its length; empty where net/http sends
	api     string
	target  int
	session int64       // for its connection; h1.NoSession is none
	header  http.Header // only read
	text    *textHash   // where the answer's is wanted
}

// Size implements [result.Call].
func (c *httpCall) Size() int { return cap(*c.body) }

// Prepare implements [result.Endpoint]: it makes the prompt, chooses the server and
// encodes the request. A row without a number, [result.NoRow], has no extras.
//
// Every request but one for embeddings is streamed, also one that was not in the
// source, since the latencies are those of its tokens. A row without output asks for
// one token, the least that servers take.
func (h *HTTP) Prepare(id int64, row *trace.Request, p result.Prompter) (result.Call, error) {
	call, err := h.prepare(id, row, p, openai.Extra{})
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return call, nil
}

// prepare makes a row's request. The fields of last stand above all others.
func (h *HTTP) prepare(id int64, row *trace.Request, p result.Prompter, last openai.Extra) (*httpCall, error) {
	length := int(max(wantedLength(row), 1))
	req := openai.Request{MaxTokens: &length, Temperature: widened(row.Temperature), Model: h.modelOf(row), Extra: h.opt.Extra}
	if h.opt.ForceOutput {
		req.MinTokens, req.IgnoreEOS = &length, true
	}
	api := apiOf(h.opt.API, row)
	var err error
	if v, ok := p.(result.Verbatim); ok {
		api, h.text, err = v.Input(id, row, h.text[:0])
		req.Input = h.text
	} else {
		err = h.prompt(api, row, p)
	}
	if err != nil {
		return nil, err
	}
	if row.Class != nil {
		req.Extra = req.Extra.With(h.priority[*row.Class])
	}
	var more RowExtra
	if h.opt.Rows != nil && id != result.NoRow {
		if more, err = h.opt.Rows.At(id); err != nil {
			return nil, err
		}
		req.Extra = req.Extra.With(more.Body)
	}
	req.Extra = req.Extra.With(last)
	c := &httpCall{api: api, target: h.choose(row), session: h1.NoSession, header: h.rowHeader(id, row, more.Header)}
	if row.Session != nil {
		c.session = *row.Session
	}
	return c, h.encode(c, &req)
}

// prompt makes the prompt in the scratch buffers.
func (h *HTTP) prompt(api string, row *trace.Request, p result.Prompter) (err error) {
	h.ends = h.ends[:0]
	talk, several := p.(result.Conversation)
	switch {
	case h.asIDs(api):
		h.ids, err = p.Tokens(row, h.ids[:0])
	case several && api == result.APIChat:
		h.text, h.ends, err = talk.Messages(row, h.text[:0], h.ends)
	default:
		h.text, err = p.Prompt(row, h.text[:0])
	}
	return err
}

// apiOf is the API that a row goes to.
func apiOf(api string, row *trace.Request) string {
	if api != result.APIAuto {
		return api
	}
	return KindAPI(row.Kind)
}

// KindAPI is the API that [result.APIAuto] sends a row of some kind to.
func KindAPI(kind string) string {
	switch kind {
	case "completion":
		return result.APICompletions
	case "embedding":
		return result.APIEmbeddings
	case "responses":
		return result.APIResponses
	}
	return result.APIChat
}

// asIDs says whether the prompts of an API are token ids.
func (h *HTTP) asIDs(api string) bool {
	return h.opt.TokenIDs && (api == result.APICompletions || api == result.APIEmbeddings)
}

// modelOf is the model to ask for.
func (h *HTTP) modelOf(row *trace.Request) string {
	for _, label := range []string{row.Adapter, row.Model} {
		if name, ok := h.opt.Models[label]; ok && label != "" {
			return name
		}
	}
	return h.model
}

// priorities encodes what a class adds to a body.
func (o *Options) priorities() (map[string]openai.Extra, error) {
	out := map[string]openai.Extra{}
	for class, n := range o.Priorities {
		e, err := openai.ParseExtra(fmt.Appendf(nil, `{"priority":%d}`, n))
		if err != nil {
			return nil, err
		}
		out[class] = e
	}
	return out, nil
}

// wantedLength is the output to ask for: that recorded. A request that its user
// cancelled had asked for more than it got.
func wantedLength(row *trace.Request) int32 {
	if row.Status == trace.StatusCancelled && row.MaxTokens != nil {
		return max(row.OutputTokens, *row.MaxTokens)
	}
	return row.OutputTokens
}

// widened keeps 0.7 what it is: converted as a number, it would be sent as
// 0.699999988079071.
func widened(f *float32) *float64 {
	if f == nil {
		return nil
	}
	wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(*f), 'g', -1, 32), 64)
	if err != nil || math.IsNaN(wide) || math.IsInf(wide, 0) {
		return nil
	}
	return &wide
}

// encode completes a call by the request around the prompt in the scratch buffers.
func (h *HTTP) encode(c *httpCall, req *openai.Request) (err error) {
	asks := !h.bare[c.api]
	req.Stream, req.IncludeUsage, req.ContinuousUsage = true, asks, asks && h.opt.ContinuousUsage
	switch {
	case req.Input != nil:
	case h.asIDs(c.api):
		req.PromptIDs = h.ids
	case c.api == result.APIChat:
		req.Messages = h.messages()
	default:
		req.Prompt = h.text
	}
	switch c.api {
	case result.APIResponses:
		req.Kind = openai.Response
	case result.APIEmbeddings:
		req.Kind = openai.Embedding
	}
	if w := h.targets[c.target].wire; w != nil {
		if c.head, err = w.headOf(c); err != nil {
			return err
		}
		c.at = len(c.head) + lengthRoom
		w.client.Expect()
	}
	c.body = h.bodies.Get().(*[]byte)
	*c.body = openai.AppendRequest(slices.Grow((*c.body)[:0], c.at)[:c.at], req)
	return nil
}

// messages cuts the text into those of user and assistant in turn.
func (h *HTTP) messages() []openai.Message {
	h.talk = h.talk[:0]
	from, roles := 0, [2]string{"user", "assistant"}
	for i, end := range h.ends {
		h.talk = append(h.talk, openai.Message{Role: roles[i%2], Content: h.text[from:end:end]})
		from = end
	}
	if len(h.ends) == 0 {
		h.talk = append(h.talk, openai.Message{Role: "user", Content: h.text})
	}
	return h.talk
}

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
