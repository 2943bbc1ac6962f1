package client

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"reprise/replay/client/internal/h1"
	"reprise/replay/openai"
	"reprise/replay/result"
)

// APIs asks the first server which APIs it has, by a request of each for an answer of one token
// to one word. It has those that answer, or refuse the request for another reason than its
// path; of embeddings it has to answer, since servers have the path without a model for it. A
// refused key is a [SetupError].
func (h *HTTP) APIs(ctx context.Context) (map[string]bool, error) {
	t, has := &h.targets[0], map[string]bool{}
	for _, api := range []string{result.APICompletions, result.APIChat, result.APIResponses, result.APIMessages,
		result.APIEmbeddings} {
		status, body, err := h.ask(ctx, t, http.MethodPost, apiPaths[api], h.smallest(api))
		h.countProbe(status, body)
		fault := &SetupError{Asked: "POST " + t.shown(apiPaths[api]), API: api}
		switch {
		case err != nil:
			fault.Failure, fault.Kind = err, openai.ClassifyError(err)
			return nil, fault
		case status == http.StatusUnauthorized || status == http.StatusForbidden ||
			status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
			fault.Status, fault.Said, fault.Kind = status, h.spoken(body), openai.HTTPError(status, body).Kind
			return nil, fault
		case api == result.APIEmbeddings:
			has[api] = status == http.StatusOK
		default:
			has[api] = found(status) || status == http.StatusNotFound && h.isOfModel(h.spoken(body))
		}
	}
	return has, nil
}

// countProbe counts a request without a stream, and the tokens of its answer.
func (h *HTTP) countProbe(status int, body []byte) {
	h.probed.Requests++
	if status != http.StatusOK {
		return
	}
	events := openai.NewCollector(0)
	events.AddBody(body, 0)
	if u := events.Finish(0, nil).Usage; u != nil {
		h.probed.PromptTokens += int64(u.PromptTokens)
		h.probed.OutputTokens += int64(u.CompletionTokens)
	}
}

// found says that a status is not that of a path which is not there.
func found(status int) bool {
	return status != http.StatusNotFound && status != http.StatusMethodNotAllowed &&
		status != http.StatusNotImplemented && status/100 != 3
}

// TryPrompt sends a prompt to the first server as requests of a run go, for an answer of at
// most so many tokens, and returns what came of it.
func (h *HTTP) TryPrompt(ctx context.Context, api, text string, tokens int) (result.Result, error) {
	h.text, h.ids, h.ends = append(h.text[:0], text...), h.ids[:0], h.ends[:0]
	c := &httpCall{api: api, session: h1.NoSession, header: h.header}
	return h.sendProbe(ctx, c, &openai.Request{Extra: h.opt.Extra, MaxTokens: &tokens})
}

// Probed counts what was sent before a run.
type Probed struct {
	Requests     int   `json:"requests"` // for tokens; those that were refused too
	PromptTokens int64 `json:"prompt_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}

// Probed is what calibrations, counts and single prompts have sent so far.
func (h *HTTP) Probed() Probed { return h.probed }

// A RoundTrip is one GET of a server's list of models.
type RoundTrip struct {
	Sent, Received time.Time // of the local clock; received are the headers
	Date           time.Time // of the server's clock, in whole seconds; zero without one
	Status         int
}

// RoundTrip asks the first server for its models, on a connection that is kept. withKey
// says whether the API key goes along.
func (a *Admin) RoundTrip(ctx context.Context, withKey bool) (r RoundTrip, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	header := a.header.Clone()
	if !withKey {
		header.Del("Authorization")
	}
	u := below(a.roots[0], modelsPath)
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: header}).WithContext(ctx)
	r.Sent = time.Now()
	resp, err := a.client.Do(req)
	r.Received = time.Now()
	if err != nil {
		return r, fmt.Errorf("client: the server does not answer %s", modelsPath)
	}
	resp.Body.Close()
	r.Status = resp.StatusCode
	r.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	return r, nil
}
