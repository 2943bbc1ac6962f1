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
	h.text, h.ids, h.ends = append(h.text[:0], word...), append(h.ids[:0], id), h.ends[:0]
	n, err := h.counted(ctx)
	if err != nil {
		return 0, err
	}
	h.overhead = n - 1
	return h.overhead, nil
}

// CalibrateTurn measures how many tokens a chat template adds with a reply and
// the message that follows it. [HTTP.Calibrate] goes before. It sends three
// messages of one word each, and is 0 where prompts are no chats.
func (h *HTTP) CalibrateTurn(ctx context.Context, word string) (overhead int, err error) {
	if h.opt.API != APIChat {
		return 0, nil
	}
	h.text, h.ends = h.text[:0], h.ends[:0]
	for range 3 {
		h.text = append(h.text, word...)
		h.ends = append(h.ends, len(h.text))
	}
	n, err := h.counted(ctx)
	if err != nil {
		return 0, err
	}
	if n -= h.overhead + 3; n < 0 {
		return 0, errors.New("replay: the server's template drops messages of a conversation")
	}
	return n, nil
}

// counted sends the prompt in the scratch buffers and returns the server's count
// of its tokens.
func (h *HTTP) counted(ctx context.Context) (int, error) {
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
	return int(*r.Input), nil
}
