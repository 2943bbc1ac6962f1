package engine

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"reprise/replay/openai"
)

// respond serves the Responses API: the prompt is that of a chat. Faults of answers
// are those of refused and failing requests alone.
func (s *Server) respond(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, func(m *behaviour) (*serverJob, int, error) {
		req, err := openai.DecodeResponse(r.Body, maxBody)
		j, status, err := s.newJob(req, err, m)
		if err != nil {
			return nil, status, err
		}
		j.chat = true
		return s.prepareJob(j)
	}, func(ctx context.Context, j *serverJob, wait waiter) error {
		if j.req.Stream {
			return s.streamResponse(ctx, w, j, wait)
		}
		text, err := s.answerText(ctx, j, wait)
		if err != nil {
			return err
		}
		status := openai.StatusCompleted
		if j.finish == "length" {
			status = openai.StatusIncomplete
		}
		writeJSON(w, s.response(j, status, text))
		return nil
	})
}

// dimensions of an embedding; small, since nobody uses it.
const dimensions = 16

// embed serves embeddings: a prefill, whose end is the answer.
func (s *Server) embed(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, func(m *behaviour) (*serverJob, int, error) {
		req, err := openai.DecodeEmbedding(r.Body, maxBody)
		j, status, err := s.newJob(req, err, m)
		if err != nil {
			return nil, status, err
		}
		one := 1
		req.MaxTokens, req.IgnoreEOS = &one, true
		return s.prepareJob(j)
	}, func(ctx context.Context, j *serverJob, wait waiter) error {
		if err := wait(ctx, 0); err != nil {
			return err
		}
		j.last = time.Now()
		values, rng := make([]float32, dimensions), rand.New(rand.NewPCG(j.seed, 0)) // they depend on the prompt alone
		for i := range values {
			values[i] = 2*rng.Float32() - 1
		}
		n := len(j.prompt)
		writeJSON(w, openai.EmbeddingList{Object: "list", Model: s.c.Model,
			Data:  []openai.EmbeddingRow{{Object: "embedding", Embedding: values}},
			Usage: openai.EmbeddingUsage{PromptTokens: n, TotalTokens: n}})
		return nil
	})
}

// streamResponse writes the events of a response, each token at its instant. Nothing
// goes out before the first, as with the other streams.
func (s *Server) streamResponse(ctx context.Context, w http.ResponseWriter, j *serverJob, wait waiter) error {
	flush := http.NewResponseController(w)
	var buf []byte
	zero, sequence := 0, 0
	add := func(e openai.ResponseEvent) {
		e.Sequence = sequence
		sequence++
		buf = openai.AppendResponseEvent(buf, openai.Framing{}, &e)
	}
	var text strings.Builder
	for i := range j.output {
		if err := wait(ctx, i); err != nil {
			return err
		}
		if i == 0 {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-cache")
			add(openai.ResponseEvent{Type: openai.EventCreated, Response: s.response(j, openai.StatusInProgress, "")})
		}
		word, _ := s.word(j, i)
		text.WriteString(word)
		add(openai.ResponseEvent{Type: openai.EventTextDelta, ItemID: "msg-" + j.id, OutputIndex: &zero, ContentIndex: &zero, Delta: word})
		s.recordTokens(j, 1)
		if i == j.output-1 {
			s.cacheAnswer(j)
			kind, status := openai.EventCompleted, openai.StatusCompleted
			if j.finish == "length" {
				kind, status = openai.EventIncomplete, openai.StatusIncomplete
			}
			add(openai.ResponseEvent{Type: kind, Response: s.response(j, status, text.String())})
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
		if err := flush.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// response is the body of a response so far.
func (s *Server) response(j *serverJob, status, text string) *openai.ResponseBody {
	b := &openai.ResponseBody{ID: "resp-" + j.id, Object: "response", CreatedAt: time.Now().Unix(), Status: status, Model: s.c.Model, Output: []openai.ResponseItem{}}
	if status == openai.StatusInProgress {
		return b
	}
	b.Output = append(b.Output, openai.ResponseItem{ID: "msg-" + j.id, Type: "message", Role: "assistant", Status: status,
		Content: []openai.ResponsePart{{Type: "output_text", Text: text}}})
	b.Usage = j.usage().Responses()
	if status == openai.StatusIncomplete {
		b.Incomplete = &openai.IncompleteDetails{Reason: "max_output_tokens"}
	}
	return b
}
