package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"reprise/replay/host"
	"reprise/replay/openai"
	"reprise/replay/result"
)

// A SetupError says why a server cannot be used as it was asked to be, before anything
// is measured: what was asked, what came back, and what else the server has.
type SetupError struct {
	Asked   string // method and URL, such as "POST http://localhost:8000/v1/completions"
	Kind    string // one of the classes of package openai, such as [openai.KindAuth]
	Status  int    // of HTTP, 0 without an answer
	Said    string // the server's own message, in one line of at most 300 characters; "" for none
	API     string // that was asked for
	Other   string // an API that the server has instead, "" for none
	Model   string // that was asked for
	Listed  bool   // the server lists models
	Unknown bool   // the server says that it does not know the model, or where it is deployed
	// those of the server, at most 20, where it does not have Model, or where Model is "" and there are several
	Models  []string
	Failure error // without an answer: what failed
}

// Error says what was asked and what came back.
func (e *SetupError) Error() string {
	var came string
	switch {
	case e.Failure != nil:
		came = e.Failure.Error()
	case e.Status != 0:
		came = fmt.Sprintf("HTTP %d", e.Status)
	default:
		came = e.Kind
	}
	if e.Said != "" {
		came += fmt.Sprintf(": %q", e.Said)
	}
	return e.Asked + ": " + came
}

// Unwrap is the failure of a request without an answer.
func (e *SetupError) Unwrap() error { return e.Failure }

// UseAPI changes the API that requests go to, before the first is prepared.
func (h *HTTP) UseAPI(api string) { h.opt.API = api }

// explain says why a server refused a request or failed it, and looks for what it has instead.
// r is the answer, and said what the server says about it.
func (h *HTTP) explain(ctx context.Context, t *target, api string, r *result.Result, said string) error {
	e := &SetupError{Asked: "POST " + t.shown(apiPaths[api]), API: api, Kind: r.Error, Model: h.model, Said: said}
	if r.HTTPStatus != nil {
		e.Status = int(*r.HTTPStatus)
	}
	switch r.Error { // of which another request would say the same
	case openai.KindTimeout:
		e.Status, e.Failure = 0, &late{h.opt.Timeout}
		return e
	case openai.KindOverlong:
		e.Status, e.Failure = 0, openai.ErrOverlong
		return e
	}
	if e.Status == 0 || e.Status/100 == 2 || e.Status/100 == 3 {
		// what became of it without a stream, or where it leads
		status, body, err := h.ask(ctx, t, http.MethodPost, apiPaths[api], h.smallest(api))
		if err != nil {
			e.Failure, e.Status, e.Kind = err, 0, openai.ClassifyError(err)
			return e
		}
		if status == http.StatusOK { // as JSON, and not as the stream that is needed
			e.Status = 0
			e.Failure = fmt.Errorf("a stream of one token failed (%s), though the same request without a "+
				"stream succeeds", r.Error)
			if what := kindOfBody(body); what != "JSON" {
				e.Failure = fmt.Errorf("the answer (HTTP 200) is %s, not one of this API", what)
			}
			return e
		}
		e.Status, e.Said, e.Kind = status, h.spoken(body), openai.HTTPError(status, body).Kind
	}
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		return e
	}
	e.Unknown = e.Status == http.StatusNotFound && h.isOfModel(e.Said)
	models, err := h.modelsOf(ctx, t)
	if e.Listed = err == nil; err == nil && h.model != "" && len(models) > 0 && !slices.Contains(models, h.model) {
		e.Models = labels(models)
		return e
	}
	for _, other := range []string{result.APIChat, result.APICompletions, result.APIResponses, result.APIMessages} {
		if !found(e.Status) && !e.Unknown && other != api {
			if status, _, err := h.ask(ctx, t, http.MethodPost, apiPaths[other], h.smallest(other)); err == nil &&
				status == http.StatusOK {
				e.Other = other
				return e
			}
		}
	}
	return e
}

// isOfModel says that what a server says about a 404 is about the model that was asked for,
// and not about the path.
func (h *HTTP) isOfModel(said string) bool {
	said = strings.ToLower(said)
	return strings.Contains(said, "model") || strings.Contains(said, "deployment") ||
		len(h.model) > 4 && strings.Contains(said, strings.ToLower(h.model))
}

// labels are at most 20 names of models, safe to print.
func labels(models []string) []string {
	out := slices.Clone(models[:min(len(models), mostModels)])
	for i := range out {
		out[i] = host.Label(out[i])
	}
	return out
}

// smallest is the body of a request for one token, without a stream.
func (h *HTTP) smallest(api string) []byte {
	fewest, word := h.fewest(api), []byte("a")
	r := &openai.Request{Model: h.model, MaxTokens: &fewest, Extra: h.opt.Extra}
	h.adapt(api, r)
	switch api {
	case result.APIChat:
		r.Messages = []openai.Message{{Role: "user", Content: word}}
	case result.APIMessages:
		r.Kind, r.Messages = openai.MessageKind, []openai.Message{{Role: "user", Content: word}}
	case result.APIResponses:
		r.Kind, r.Prompt = openai.Response, word
	case result.APIEmbeddings:
		r.Kind, r.Prompt = openai.Embedding, word
	default:
		r.Prompt = word
	}
	return openai.AppendRequest(nil, r)
}

// getTime limits a GET before a run.
const getTime = 30 * time.Second

// A late error says that a server has not answered within a time. It is a timeout, and
// [context.DeadlineExceeded].
type late struct{ after time.Duration }

func (e *late) Error() string { return fmt.Sprintf("no whole answer within %v", e.after) }

func (e *late) Is(target error) bool { return target == context.DeadlineExceeded }

// ask makes one call beside the requests of the run, and reads at most 4 MiB of the
// answer, which of a redirect is where it leads, without a query. One whose connection
// breaks is made again. What a model has to answer may take as long as a request of the run,
// and anything else getTime at most.
func (h *HTTP) ask(ctx context.Context, t *target, method, path string,
	body []byte) (status int, answer []byte, err error) {
	limit := h.opt.Timeout
	if method == http.MethodGet {
		limit = min(limit, getTime)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &late{limit})
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	for try := range resets {
		if try > 0 && !pauseFor(ctx, resetPause<<(try-1)) {
			break
		}
		if status, answer, err = h.askOnce(ctx, t, method, path, body); err == nil ||
			openai.ClassifyError(err) != openai.KindReset {
			break
		}
	}
	return status, answer, err
}

func (h *HTTP) askOnce(ctx context.Context, t *target, method, path string,
	body []byte) (status int, answer []byte, err error) {
	req := (&http.Request{Method: method, URL: below(t.root, path), Host: t.host,
		Header: h.header.Clone()}).WithContext(ctx)
	if body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := h.transport.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		to.RawQuery, to.Fragment, to.User = "", "", nil
		return resp.StatusCode, []byte("it sends clients to " + to.String()), nil
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	return resp.StatusCode, answer, err
}

// modelsOf are the names of the server's models.
func (h *HTTP) modelsOf(ctx context.Context, t *target) ([]string, error) {
	fault := &SetupError{Asked: "GET " + t.shown(modelsPath), Model: h.model}
	status, body, err := h.ask(ctx, t, http.MethodGet, modelsPath, nil)
	if err != nil {
		fault.Failure, fault.Kind = err, openai.ClassifyError(err)
		return nil, fault
	}
	if status != http.StatusOK {
		fault.Status, fault.Said, fault.Kind = status, h.spoken(body), openai.HTTPError(status, body).Kind
		return nil, fault
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil && json.Unmarshal(body, &list.Data) != nil { // Together's is a bare list
		fault.Kind, fault.Failure = openai.KindOther,
			fmt.Errorf("the answer is %s instead of a list of models", kindOfBody(body))
		return nil, fault
	}
	var names []string
	for _, m := range list.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	return names, nil
}

// modelsPath is where servers list their models, below the root of their APIs.
const modelsPath = "/models"

// kindOfBody says what an answer is that is not what was asked for. It quotes nothing.
func kindOfBody(body []byte) string {
	switch body = bytes.TrimSpace(body); {
	case len(body) == 0:
		return "empty"
	case body[0] == '<':
		return "a page of HTML"
	case json.Valid(body):
		return "JSON"
	}
	return "text that is not JSON"
}

// spoken is what a server says about a refusal, in one line of at most 300 characters,
// without the secrets that were sent. A page of HTML says nothing.
func (h *HTTP) spoken(body []byte) string { return h.withoutSecrets(openai.Said(body)) }

// withoutSecrets takes the values of headers out of what a server says.
func (h *HTTP) withoutSecrets(said string) string {
	for name, values := range h.header {
		for _, v := range values {
			v = strings.TrimPrefix(v, "Bearer ")
			if name != "Content-Type" && name != "Accept" && len(v) >= 6 {
				said = strings.ReplaceAll(said, v, "***")
			}
		}
	}
	return said
}
