package engine

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"reprise/replay/openai"
)

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
	}, func(ctx context.Context, w http.ResponseWriter, j *serverJob, wait waiter) error {
		if err := wait(ctx, 0); err != nil {
			return err
		}
		j.last = time.Now()
		values, rng := make([]float32, dimensions), rand.New(rand.NewPCG(j.seed, 0)) // they depend on the prompt alone
		for i := range values {
			values[i] = 2*rng.Float32() - 1
		}
		n := len(j.prompt)
		list := openai.EmbeddingList{Object: "list", Model: s.c.Model,
			Data: []openai.EmbeddingRow{{Object: "embedding", Embedding: values}}}
		if j.behaviour.usage != usageMissing {
			list.Usage = &openai.EmbeddingUsage{PromptTokens: n, TotalTokens: n}
		}
		writeJSON(w, list)
		return nil
	})
}
