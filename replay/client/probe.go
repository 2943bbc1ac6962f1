package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reprise/replay/client/internal/h1"
	"reprise/replay/openai"
	"reprise/replay/result"
)

// Probe asks the servers for their model, unless one was given, and returns it. All must have the same
// one, and no other.
func (h *HTTP) Probe(ctx context.Context) (model string, err error) {
	if h.model != "" {
		return h.model, nil
	}
	for i := range h.targets {
		models, err := h.modelsOf(ctx, &h.targets[i])
		switch {
		case err != nil:
		case len(models) == 0:
			err = &SetupError{Asked: "GET " + h.targets[i].shown(modelsPath), Kind: openai.KindOther,
				Failure: errNoModel}
		case len(models) > 1:
			err = &SetupError{Asked: "GET " + h.targets[i].shown(modelsPath), Kind: openai.KindOther,
				Failure: fmt.Errorf("the server has %d models", len(models)), Models: labels(models)}
		}
		if err != nil {
			return "", h.fromServer(i, err)
		}
		if i > 0 && models[0] != model {
			return "", fmt.Errorf("client: %s and %s serve different models: choose one with --model",
				h.targets[0].name, h.targets[i].name)
		}
		model = models[0]
	}
	h.model = model
	return model, nil
}

// errNoModel says that a server's list of models is empty.
var errNoModel = errors.New("the server lists no model")

// fromServer says which server an error comes from, where there are several.
func (h *HTTP) fromServer(i int, err error) error {
	if len(h.targets) > 1 {
		return fmt.Errorf("%s: %w", h.targets[i].name, err)
	}
	return err
}

// mostTemplate is how many tokens a template may add to a prompt.
const mostTemplate = 1 << 16

// CalibrateAPI measures how many tokens the servers add to a prompt in one of the APIs, by their chat
// template or as a beginning of text: it sends a prompt of one token, as the text word
// or as id where token ids are sent, and returns the servers' own count less one. All
// must add the same, unless [Options] says how many. [HTTP.Describe] records it.
// [ErrUncounted] says that none of the servers counts prompt tokens; requests can be sent all the same.
func (h *HTTP) CalibrateAPI(ctx context.Context, api, word string, id uint32) (overhead int, err error) {
	first := -1 // that counts
	for i := range h.targets {
		h.text, h.ids, h.ends = append(h.text[:0], word...), append(h.ids[:0], id), h.ends[:0]
		n, err := h.countPrompt(ctx, i, api)
		n-- // the prompt itself
		switch {
		case errors.Is(err, ErrUncounted):
		case err != nil:
			return 0, h.fromServer(i, err)
		case n > mostTemplate:
			return 0, h.fromServer(i,
				fmt.Errorf("client: the server counts %d tokens in a prompt of one: no chat template adds so many, "+
					"so its counts mean nothing. Say with --set template-tokens what it adds", n+1))
		case first < 0:
			first, overhead = i, n
		case n != overhead && h.opt.TemplateTokens == nil:
			return 0, fmt.Errorf("client: %s adds %d tokens to a prompt and %s adds %d: they do not serve the same "+
				"model with the same chat template",
				h.targets[first].name, overhead, h.targets[i].name, n)
		}
	}
	if h.opt.TemplateTokens != nil {
		overhead = *h.opt.TemplateTokens
	}
	h.overheads[api] = overhead
	if first < 0 {
		h.uncounted[api] = true
		return overhead, ErrUncounted
	}
	return overhead, nil
}

// Reach asks the servers for one token in an API, for prompts that are not made to a length, in place of
// [HTTP.CalibrateAPI]. Where one refuses stream_options, requests to this API have none. A server that does not count,
// or finds fault with this very prompt, is reached all the same: the prompts of the run are others. Otherwise the error
// is a [SetupError].
func (h *HTTP) Reach(ctx context.Context, api, word string) error {
	for i := range h.targets {
		h.text, h.ends = append(h.text[:0], word...), h.ends[:0]
		_, err := h.countPrompt(ctx, i, api)
		refused, setup := errors.AsType[*SetupError](err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrUncounted), setup && refused.Kind == openai.KindBadRequest:
		case err != nil:
			return h.fromServer(i, err)
		}
	}
	return nil
}

// Count sends a text of several tokens to the first server and returns how many it counts
// in it, without its template. Together with [HTTP.CalibrateAPI], which goes before, it tells a template
// from another tokenizer.
func (h *HTTP) Count(ctx context.Context, api, text string) (tokens int, err error) {
	h.text, h.ids, h.ends = append(h.text[:0], text...), h.ids[:0], h.ends[:0]
	n, err := h.countPrompt(ctx, 0, api)
	return n - h.overheads[api], err
}

// ErrUncounted says that a server sends no usage.
var ErrUncounted = errors.New("client: the server does not count prompt tokens")

// CalibrateTurn measures how many tokens a chat template adds with a reply and
// the message that follows it, at the first server. [HTTP.CalibrateAPI] goes before. It
// sends three messages of one word each, and is 0 where prompts are no chats.
func (h *HTTP) CalibrateTurn(ctx context.Context, word string) (overhead int, err error) {
	api := h.opt.API
	if api != result.APIChat && api != result.APIMessages {
		return 0, nil
	}
	h.text, h.ends = h.text[:0], h.ends[:0]
	for range 3 {
		h.text = append(h.text, word...)
		h.ends = append(h.ends, len(h.text))
	}
	n, err := h.countPrompt(ctx, 0, api)
	if err != nil {
		return 0, err
	}
	if n -= h.overheads[api] + 3; n < 0 {
		return 0, errors.New("client: the server's template drops messages of a conversation")
	}
	return n, nil
}

// countPrompt sends the prompt in the scratch buffers and returns the server's count
// of its tokens, or [ErrUncounted].
func (h *HTTP) countPrompt(ctx context.Context, target int, api string) (int, error) {
	r, said, err := h.probe(target, api, func() (result.Result, string, error) {
		return h.sendScratch(ctx, target, api)
	})
	if err != nil {
		return 0, err
	}
	switch {
	case !answered(&r):
		return 0, h.explain(ctx, &h.targets[target], api, &r, said)
	case r.Input == nil:
		return 0, ErrUncounted
	}
	return int(*r.Input), nil
}

// answered reports whether a probe was answered: one token that has no letters is an answer to
// a question of counts.
func answered(r *result.Result) bool { return r.Error == "" || r.Error == openai.KindEmpty }

// sendScratch sends the prompt in the scratch buffers. said is the server's word on an error.
func (h *HTTP) sendScratch(ctx context.Context, target int, api string) (r result.Result, said string, err error) {
	c := &httpCall{api: api, target: target, session: h1.NoSession, header: h.header, said: &said}
	r, err = h.sendProbe(ctx, c, &openai.Request{Extra: h.opt.Extra})
	return r, said, err
}

// Probes whose connection breaks are sent again, resets times in all, after a pause that
// doubles: a server that starts, or a balancer before it, may drop the first ones.
const (
	resets     = 3
	resetPause = 250 * time.Millisecond
)

// sendProbe sends a request, for [HTTP.fewest] tokens where it does not say for more, which is
// none of the run: what is odd about the answer does not count. It has the fields of the
// run's, which force its length where those do.
func (h *HTTP) sendProbe(ctx context.Context, c *httpCall, req *openai.Request) (r result.Result, err error) {
	if fewest := h.fewest(c.api); req.MaxTokens == nil || *req.MaxTokens < fewest {
		req.MaxTokens = &fewest
	}
	if h.opt.ForceOutput {
		req.MinTokens, req.IgnoreEOS = req.MaxTokens, true
	}
	req.Model = h.model
	text := bytes.Clone(h.text) // another probe may have its own there by the next try
	for try := range resets {
		if try > 0 && !pauseFor(ctx, resetPause<<(try-1)) {
			break
		}
		again := *c
		again.probe = true
		once := *req // which is adapted to what the server takes
		h.text = append(h.text[:0], text...)
		if err := h.encode(&again, &once); err != nil {
			return r, err
		}
		r = result.Result{}
		if h.aside != nil {
			h.aside.Unlock()
		}
		h.Fire(ctx, result.Shot{Call: &again, Start: time.Now()}, &r)
		if h.aside != nil {
			h.aside.Lock()
		}
		h.probed.Requests++
		if r.Error != openai.KindReset {
			break
		}
	}
	h.keepWrong(&r)
	if r.Input != nil {
		h.probed.PromptTokens += int64(*r.Input)
	}
	if r.Output != nil {
		h.probed.OutputTokens += int64(*r.Output)
	}
	return r, nil
}

// keepWrong keeps a probe whose counts cannot be, if none before it shows the same.
func (h *HTTP) keepWrong(r *result.Result) {
	isLikeIt := func(before result.Result) bool { return before.Refuted == r.Refuted }
	if r.Refuted != "" && !slices.ContainsFunc(h.wrong, isLikeIt) {
		h.wrong = append(h.wrong, *r)
	}
}

// Impossible are the probes whose counts of tokens cannot be, one for each way.
func (h *HTTP) Impossible() []result.Result { return h.wrong }

// pauseFor waits, and reports whether ctx still goes on.
func pauseFor(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
