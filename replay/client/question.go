package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// questionTime is how long an answer may take.
const questionTime = 2 * time.Minute

// Question sends a prompt to the first server, at temperature 0 and without a stream, and
// returns the text of the answer, of at most so many tokens. It is one of no run: nothing is
// timed. Errors quote neither the prompt nor the answer. It may be called by several
// goroutines at a time.
func (h *HTTP) Question(ctx context.Context, prompt string, most int) (answer string, err error) {
	api := apiOf(h.opt.API, &trace.Request{})
	zero, seed := 0.0, int64(1)
	r := &openai.Request{Model: h.model, MaxTokens: &most, Temperature: &zero, Seed: &seed, Extra: h.opt.Extra}
	h.adapt(api, r)
	switch api {
	case result.APIChat:
		r.Messages = []openai.Message{{Role: "user", Content: []byte(prompt)}}
	case result.APIMessages:
		r.Kind, r.Messages = openai.MessageKind, []openai.Message{{Role: "user", Content: []byte(prompt)}}
	case result.APIResponses:
		r.Kind, r.Prompt = openai.Response, []byte(prompt)
	case result.APIEmbeddings:
		return "", errors.New("client: embeddings answer no questions")
	default:
		r.Prompt = []byte(prompt)
	}
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	status, body, err := h.askOnce(ctx, &h.targets[0], http.MethodPost, apiPaths[api], openai.AppendRequest(nil, r))
	switch {
	case err != nil:
		return "", fmt.Errorf("client: a question to %s failed: %s", h.targets[0].name, openai.ClassifyError(err))
	case status != http.StatusOK:
		return "", fmt.Errorf("client: a question to %s failed: HTTP %d, %s", h.targets[0].name, status, openai.HTTPError(status, body).Kind)
	}
	answer, ok := answerText(body)
	if !ok {
		return "", fmt.Errorf("client: the answer of %s to a question is %s without the text of an answer", h.targets[0].name, kindOfBody(body))
	}
	return answer, nil
}

// answerText is the text of a whole answer of any of the APIs, without reasoning.
func answerText(body []byte) (string, bool) {
	type part struct{ Type, Text string }
	var a struct {
		Choices []struct {
			Text    *string
			Message *struct{ Content *string }
		}
		Content []part
		Output  []struct {
			Type    string
			Content []part
		}
	}
	if json.Unmarshal(body, &a) != nil {
		return "", false
	}
	text, found := "", false
	add := func(parts []part) {
		for _, p := range parts {
			if p.Type == "text" || p.Type == "output_text" {
				text, found = text+p.Text, true
			}
		}
	}
	if len(a.Choices) > 0 {
		switch c := a.Choices[0]; {
		case c.Text != nil:
			return *c.Text, true
		case c.Message != nil && c.Message.Content != nil:
			return *c.Message.Content, true
		case c.Message != nil: // it reasoned until its tokens were used up, or called a tool
			return "", true
		}
	}
	add(a.Content)
	for _, o := range a.Output {
		add(o.Content)
		found = found || o.Type == "message" || o.Type == "reasoning"
	}
	return text, found
}
