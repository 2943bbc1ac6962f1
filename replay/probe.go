package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"reprise/replay/openai"
)

// Probe asks the server for its model, at /v1/models, unless one was given, and
// returns it. A server with several needs one to be given.
func (h *HTTP) Probe(ctx context.Context) (model string, err error) {
	if h.model != "" {
		return h.model, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req := (&http.Request{Method: http.MethodGet, URL: h.models, Host: h.host, Header: h.header}).WithContext(ctx)
	resp, err := h.transport.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("replay: the server's list of models: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return "", fmt.Errorf("replay: the server's list of models: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("replay: the server's list of models: %w", openai.HTTPError(resp.StatusCode, body))
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	switch err := json.Unmarshal(body, &list); {
	case err != nil:
		return "", errors.New("replay: the server's list of models is not one; name the model")
	case len(list.Data) != 1 || list.Data[0].ID == "":
		return "", fmt.Errorf("replay: the server has %d models; name the one to use", len(list.Data))
	}
	h.model = list.Data[0].ID
	return h.model, nil
}

// Calibrate measures how many tokens the server adds to a prompt, by its chat
// template or as a beginning of text: it sends a prompt of one token, as the
// text word or as id where token ids are sent, and returns the server's own
// count less one. [HTTP.Describe] records it.
func (h *HTTP) Calibrate(ctx context.Context, word string, id uint32) (overhead int, err error) {
	h.text, h.ids = append(h.text[:0], word...), append(h.ids[:0], id)
	one := 1
	call := h.encode(&openai.Request{MaxTokens: &one})
	var r Result
	h.Fire(ctx, Shot{Call: call, Start: time.Now()}, &r)
	switch {
	case r.Error != "" && r.HTTPStatus != nil:
		return 0, fmt.Errorf("replay: the request that measures the template failed: %s (HTTP %d)", r.Error, *r.HTTPStatus)
	case r.Error != "":
		return 0, fmt.Errorf("replay: the request that measures the template failed: %s", r.Error)
	case r.Input == nil:
		return 0, errors.New("replay: the server does not count prompt tokens, so the template's overhead must be given")
	}
	h.overhead = int(*r.Input) - 1
	return h.overhead, nil
}
