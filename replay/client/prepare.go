package client

import (
	"errors"
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
	"reprise/trace/sample"
)

// Prepare implements [result.Endpoint]: it makes the prompt, chooses the server and
// encodes the request. A row without a number, [result.NoRow], has no extras; the round tells such
// requests apart.
//
// Every request but one for embeddings is streamed, also one that was not in the
// source, since the latencies are those of its tokens. A row without output asks for
// one token, the least that servers take.
func (h *HTTP) Prepare(id int64, round int32, row *trace.Request, p result.Prompter) (result.Call, error) {
	call, err := h.prepare(id, round, row, p, openai.Extra{})
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return call, nil
}

// outputLength is the most tokens to ask for: the recorded output, or where that is unknown
// the bound that the row has. A request that its user cancelled had asked for more than it got.
func outputLength(row *trace.Request) (int, error) {
	output := row.OutputOr(0)
	switch {
	case row.OutputTokens == nil && row.MaxTokens == nil:
		return 0, errNoOutputLength
	case row.OutputTokens == nil:
		output = *row.MaxTokens
	case row.Status == trace.StatusCancelled && row.MaxTokens != nil:
		output = max(output, *row.MaxTokens)
	}
	return int(max(output, 1)), nil
}

var errNoOutputLength = errors.New("the row has no output length: give one with --output-tokens")

// prepare makes a row's request. The fields of last stand above all others.
func (h *HTTP) prepare(id int64, round int32, row *trace.Request, p result.Prompter,
	last openai.Extra) (*httpCall, error) {
	verbatim, isVerbatim := p.(result.Verbatim)
	length, err := outputLength(row)
	if err != nil && !isVerbatim { // whose body need not have a bound
		return nil, err
	}
	req := openai.Request{MaxTokens: &length, Model: h.model, Extra: h.opt.Extra}
	if row.Temperature != nil {
		// As the decimal that it is: converted as a number, it would be sent as
		// 0.699999988079071.
		wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(*row.Temperature), 'g', -1, 32), 64)
		if err == nil && !math.IsNaN(wide) && !math.IsInf(wide, 0) {
			req.Temperature = &wide
		}
	}
	for _, label := range []string{row.Model, row.Adapter} { // the adapter stands above the model
		if name, ok := h.opt.Models[label]; ok && label != "" {
			req.Model = name
		}
	}
	if h.opt.ForceOutput && row.OutputTokens != nil {
		req.MinTokens, req.IgnoreEOS = &length, true
	}
	api := apiOf(h.opt.API, row)
	// The prompt is made in the scratch buffers.
	h.ends = h.ends[:0]
	talk, several := p.(result.Conversation)
	switch {
	case isVerbatim:
		var fields []byte
		api, h.text, fields, err = verbatim.Input(id, row, h.text[:0])
		if req.Input = h.text; err == nil {
			err = asRecorded(&req, row, fields)
		}
	case h.asIDs(api):
		h.ids, err = p.Tokens(row, h.ids[:0])
	case several && (api == result.APIChat || api == result.APIMessages):
		h.text, h.ends, err = talk.Messages(row, h.text[:0], h.ends)
	default:
		h.text, err = p.Prompt(row, h.text[:0])
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
	if more.Body.Forbids("ignore_eos") {
		req.MinTokens, req.IgnoreEOS, req.Extra = nil, false, req.Extra.LeftOut("ignore_eos")
	}
	c := &httpCall{api: api, target: h.choose(row), session: h1.NoSession,
		header: h.rowHeader(id, round, row, more.Header)}
	if row.Session != nil {
		c.session = *row.Session
	}
	return c, h.encode(c, &req)
}

// asRecorded gives a request what the source's had beside its input: all members of its body, in place of any that
// are made, or, where the body is not known, its bound if it had one. The bound is the row's: a length that is forced,
// or that the user gave in place of the source's, stands above the body's. The fields that are added to every request
// stand above all of them.
func asRecorded(req *openai.Request, row *trace.Request, fields []byte) error {
	var recorded openai.Extra
	if fields != nil {
		var err error
		if recorded, err = openai.ParseExtra(fields); err != nil {
			return errors.New("the members of the recorded body are no JSON object, or have its input")
		}
		req.Temperature = nil
	}
	switch {
	case req.MinTokens != nil: // the length was asked to be forced
		recorded = recorded.Unbounded()
	case row.MaxTokens != nil && recorded.MaxTokens() != int(*row.MaxTokens):
		most := int(*row.MaxTokens)
		req.MaxTokens, recorded = &most, recorded.Unbounded()
	case fields != nil:
		req.MaxTokens = nil // in the body, if it has any
	case row.OutputTokens == nil:
		return errNoOutputLength
	}
	req.Extra = recorded.With(req.Extra)
	return nil
}

// choose says which server a row goes to. One goroutine calls it, in the order in
// which rows are prepared.
func (h *HTTP) choose(row *trace.Request) int {
	n := uint64(len(h.targets))
	if h.opt.Balance == BySession && row.Session != nil {
		// Sessions are numbered as they appear, and their remainders would go round as
		// requests do.
		return int(sample.Mix64(uint64(*row.Session)+sample.Golden) % n)
	}
	h.turn++
	return int((h.turn - 1) % n)
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

// encode completes a call by the request around the prompt in the scratch buffers.
func (h *HTTP) encode(c *httpCall, req *openai.Request) (err error) {
	req.Stream, req.IncludeUsage, req.ContinuousUsage = true, true, h.opt.ContinuousUsage
	h.adapt(c.api, req)
	switch {
	case req.Input != nil:
	case h.asIDs(c.api):
		req.PromptIDs = h.ids
	case c.api == result.APIChat || c.api == result.APIMessages:
		// The text is cut into messages of user and assistant in turn.
		h.talk = h.talk[:0]
		from, roles := 0, [2]string{"user", "assistant"}
		for i, end := range h.ends {
			h.talk = append(h.talk, openai.Message{Role: roles[i%2], Content: h.text[from:end:end]})
			from = end
		}
		if len(h.ends) == 0 {
			h.talk = append(h.talk, openai.Message{Role: "user", Content: h.text})
		}
		req.Messages = h.talk
	default:
		req.Prompt = h.text
	}
	switch c.api {
	case result.APIResponses:
		req.Kind = openai.Response
	case result.APIMessages:
		req.Kind = openai.MessageKind
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
	if c.asked = 0; req.MaxTokens != nil && req.Input == nil && !hasAny(&req.Extra, otherBounds) {
		c.asked = *req.MaxTokens
	}
	c.body = h.bodies.Get().(*[]byte)
	*c.body = openai.AppendRequest(slices.Grow((*c.body)[:0], c.at)[:c.at], req)
	c.bound = openai.BoundOf(req.Asked(), len(*c.body)-c.at)
	if c.bytes = 0; req.Input == nil && !hasAny(&req.Extra, otherPrompts) {
		c.bytes = len(*c.body) - c.at
	}
	c.echoes = hasAny(&req.Extra, []string{"echo"})
	return nil
}

// Fields with which a user bounds answers otherwise than by their length, has several made of
// which one comes, or adds to a prompt what is not in the request.
var (
	otherBounds  = append([]string{"best_of"}, openai.Bounds...)
	otherPrompts = []string{"previous_response_id", "conversation", "prompt_id", "messages", "input"}
)

// hasAny reports whether extra fields have one of these names.
func hasAny(extra *openai.Extra, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, has := extra.Get(name)
		return has
	})
}

// Names of the headers that tell requests apart in a server's logs and traces.
const (
	requestIDHeader   = "X-Request-Id"
	traceparentHeader = "Traceparent"
)

// rowHeader makes the header of one row's request. No other request has its ids: in later rounds
// they name the round. A header that the user set is kept.
func (h *HTTP) rowHeader(id int64, round int32, row *trace.Request, more http.Header) http.Header {
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
		name, upper, lower := (&result.Transport{TraceID: h.traceID}).RequestID(id, round), uint32(round), uint32(id+1)
		if id == result.NoRow {
			name, upper, lower = fmt.Sprintf("%s-before-%d", h.traceID, round), math.MaxUint32, uint32(round)
		}
		set(requestIDHeader, name)
		// W3C Trace Context, level 1: version, trace, parent span, sampled. A span is
		// not 0: it has the round in its upper half, and below it the row from 1.
		set(traceparentHeader, fmt.Sprintf("00-%s-%08x%08x-01", h.traceID, upper, lower))
	}
	if name := h.opt.AffinityHeader; name != "" && row.Session != nil {
		set(http.CanonicalHeaderKey(name), "s"+strconv.FormatInt(*row.Session, 10))
	}
	for name, values := range more {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return header
}
