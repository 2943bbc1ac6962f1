package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"reprise/replay/openai"
)

// generate serves the APIs whose answers are generated: the decoder is that of the kind of
// request.
func (s *Server) generate(decode func(io.Reader, int64) (*openai.Request, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, func(m *behaviour) (*serverJob, int, error) {
			req, err := decode(r.Body, maxBody)
			return s.decoded(r, req, err, m)
		}, s.write)
	}
}

// write writes an answer as it was asked for.
func (s *Server) write(ctx context.Context, w http.ResponseWriter, j *serverJob, wait waiter) error {
	if j.req.Stream && !j.behaviour.notStreamed {
		return s.stream(ctx, w, j, wait)
	}
	// At once, when its last token is due.
	text, err := s.answerText(ctx, j, wait)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(s.newEmitter(w, j).dialect.whole(text))
	return err
}

// decoded begins the job of a request that was read, or not.
func (s *Server) decoded(r *http.Request, req *openai.Request, err error, m *behaviour) (*serverJob, int, error) {
	if m.choices > 1 && r.URL.Path != openai.ChatPath && r.URL.Path != openai.CompletionsPath {
		one := *m
		one.choices, m = 1, &one // other APIs have none
	}
	j, status, err := s.newJob(req, err, m)
	if err != nil {
		return nil, status, err
	}
	j.chat = r.URL.Path != openai.CompletionsPath
	if req.Kind == openai.Completion && j.chat != (req.Messages != nil) {
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
	e := s.newEmitter(w, j)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	if m.shut {
		w.Header().Set("Keep-Alive", "timeout=5, max=100")
	}
	if m.early {
		// The headers, and what stands before the first token.
		w.WriteHeader(http.StatusOK)
		e.putEarly()
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
	e.dialect.end()
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
	return text.String(), nil
}
