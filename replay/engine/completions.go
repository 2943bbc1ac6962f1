package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"reprise/replay/openai"
)

// complete serves both kinds of completion.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, func(m *behaviour) (*serverJob, int, error) { return s.decode(r, m) }, func(ctx context.Context, j *serverJob, wait waiter) error {
		if j.req.Stream {
			return s.stream(ctx, w, j, wait)
		}
		return s.whole(ctx, w, j, wait)
	})
}

// decode reads a request and begins its job.
func (s *Server) decode(r *http.Request, m *behaviour) (*serverJob, int, error) {
	req, err := openai.DecodeRequest(r.Body, maxBody)
	j, status, err := s.newJob(req, err, m)
	if err != nil {
		return nil, status, err
	}
	if j.chat = r.URL.Path == openai.ChatPath; j.chat != (req.Messages != nil) {
		return nil, http.StatusBadRequest, errors.New("want messages for a chat, or a prompt for a completion")
	}
	return s.prepareJob(j)
}

// stream writes the answer token by token, each at its instant, by the behaviour of
// the request. Headers go out with the first token unless the behaviour sends them early.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, j *serverJob, wait waiter) error {
	m := j.behaviour
	if m.drip > 0 {
		d, err := drip(w, m.drip)
		switch {
		case err == nil:
			defer d.conn.Close()
			w = d
		case !errors.Is(err, errStream):
			return err
		default: // headers are one frame, that comes late
			if err := until(ctx, time.Now().Add(m.drip)); err != nil {
				return err
			}
		}
	}
	e := &emitter{s: s, j: j, behaviour: m, w: w, to: http.NewResponseController(w), chunk: j.chunk(s.c.Model)}
	if m.usageOf == "" || !j.chat {
		e.usage = m.usage
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	if m.shut {
		w.Header().Set("Keep-Alive", "timeout=5, max=100")
	}
	if m.early {
		// The headers, and what stands before the first token.
		w.WriteHeader(http.StatusOK)
		if m.comments {
			e.keepAlives()
		}
		if m.progress {
			e.putChunk(0, "", nil, fmt.Sprintf(`"prompt_progress":{"total":%d,"cache":0,"processed":0,"time_ms":0}`, len(j.prompt)))
		}
		if m.empties {
			e.putChunk(0, "", nil, "")
		}
		if err := e.flush(true); err != nil {
			return err
		}
	}
	half := max(1, j.output/2)
	for i := 0; i < j.output; {
		k := min(m.perEvent, j.output-i)
		if err := wait(ctx, i+k-1); err != nil {
			return err
		}
		s.recordTokens(j, k)
		e.putTokens(i, k)
		if err := e.flush(false); err != nil {
			return err
		}
		if i += k; i >= half && i-k < half {
			if err := e.injectFault(ctx); err != nil {
				return err
			}
		}
	}
	s.cacheAnswer(j)
	e.putEnd()
	if err := e.flush(true); err != nil {
		return err
	}
	if m.shut {
		// The chunked body ends as it should, and then the connection, whatever the
		// headers promised.
		conn, out, err := e.to.Hijack()
		if err != nil {
			return nil // such an answer closes its connection by itself
		}
		_, err = out.WriteString("0\r\n\r\n")
		return errors.Join(err, out.Flush(), conn.Close())
	}
	return nil
}

// whole writes the answer at once, when its last token is due.
func (s *Server) whole(ctx context.Context, w http.ResponseWriter, j *serverJob, wait waiter) error {
	answer, err := s.answerText(ctx, j, wait)
	if err != nil {
		return err
	}
	c := j.chunk(s.c.Model)
	if j.behaviour.usage != usageMissing {
		c.Usage = j.usage()
	}
	c.Choices[0].FinishReason = &j.finish
	if j.chat {
		c.Object = openai.ObjectChat
		c.Choices[0].Message = &openai.Delta{Role: "assistant", Content: &answer}
	} else {
		c.Choices[0].Text = &answer
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(openai.AppendChunk(nil, &c))
	return err
}

// answerText is the text of an answer, when its last token is due.
func (s *Server) answerText(ctx context.Context, j *serverJob, wait waiter) (string, error) {
	var text strings.Builder
	for i := range j.output {
		if err := wait(ctx, i); err != nil {
			return "", err
		}
		s.recordTokens(j, 1)
		word, _ := s.word(j, i)
		text.WriteString(word)
	}
	s.cacheAnswer(j)
	return text.String(), nil
}
