package simserver

import (
	"context"
	"net/http"
	"strings"
	"time"

	"reprise/replay/openai"
)

// stream writes the answer token by token, each at its instant. Headers go out
// with the first token.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, j *job, wait waiter) error {
	if err := wait(ctx, 0); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	var frame openai.Framing
	var buf []byte
	c := j.chunk(s.c.Model)
	send := func() error {
		_, err := w.Write(buf)
		buf = buf[:0]
		if err == nil {
			err = flush.Flush()
		}
		return err
	}
	if j.chat {
		empty := ""
		c.Choices[0].Delta = &openai.Delta{Role: "assistant", Content: &empty}
		buf = frame.AppendChunk(buf, &c)
	}
	for i := range j.output {
		if i > 0 {
			if err := wait(ctx, i); err != nil {
				return err
			}
		}
		word, _ := s.word(j, i)
		c.Choices[0] = j.choice(&word)
		buf = frame.AppendChunk(buf, &c)
		s.count.generated.Add(1)
		if err := send(); err != nil {
			return err
		}
	}
	c.Choices[0] = j.choice(nil)
	c.Choices[0].FinishReason = &j.finish
	buf = frame.AppendChunk(buf, &c)
	if j.req.IncludeUsage {
		c.Choices, c.Usage = nil, j.usage()
		buf = frame.AppendChunk(buf, &c)
	}
	buf = frame.AppendDone(buf)
	return send()
}

// whole writes the answer at once, when its last token is due.
func (s *Server) whole(ctx context.Context, w http.ResponseWriter, j *job, wait waiter) error {
	if err := wait(ctx, j.output-1); err != nil {
		return err
	}
	var text strings.Builder
	for i := range j.output {
		word, _ := s.word(j, i)
		text.WriteString(word)
	}
	s.count.generated.Add(int64(j.output))
	answer := text.String()
	c := j.chunk(s.c.Model)
	c.Usage = j.usage()
	c.Choices[0].FinishReason = &j.finish
	if j.chat {
		c.Object = openai.ObjectChat
		c.Choices[0].Message = &openai.Delta{Role: "assistant", Content: &answer}
	} else {
		c.Choices[0].Text = &answer
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(openai.AppendChunk(nil, &c))
	return err
}

func (j *job) chunk(model string) openai.Chunk {
	c := openai.Chunk{ID: j.id, Object: openai.ObjectCompletion, Created: time.Now().Unix(), Model: model, Choices: make([]openai.Choice, 1)}
	if j.chat {
		c.Object = openai.ObjectChatChunk
	}
	return c
}

// choice holds a piece of the answer; nil is the empty piece of the last chunk.
func (j *job) choice(word *string) openai.Choice {
	if j.chat {
		return openai.Choice{Delta: &openai.Delta{Content: word}}
	}
	if word == nil {
		word = new(string)
	}
	return openai.Choice{Text: word}
}
