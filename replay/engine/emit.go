package engine

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"reprise/replay/openai"
)

// errFault says that a fault ended the stream.
var errFault = errors.New("a fault ended the stream")

// An emitter writes one streamed answer by the behaviour of its request. It gathers
// events and writes them together when they are flushed. The events are those of a
// dialect.
type emitter struct {
	s         *Server
	j         *serverJob
	behaviour *behaviour
	w         http.ResponseWriter
	to        *http.ResponseController
	dialect   dialect

	buf            []byte
	bufferedEvents int // token events in buf
	sentTokens     int // tokens so far
	opened         bool
}

// A dialect is how one of the APIs says what an answer is. Its methods append to the
// emitter that it belongs to.
type dialect interface {
	open()                           // what stands before the first token
	progress()                       // a report of the prefill, where the API has any
	piece(choice int, text string)   // a piece of a choice's answer as one event; "" is an empty one
	fault(detail openai.ErrorDetail) // an error in mid-stream
	end()                            // what follows the last token
	whole(text string) []byte        // the body of an answer that is not streamed
}

func (s *Server) newEmitter(w http.ResponseWriter, j *serverJob) *emitter {
	e := &emitter{s: s, j: j, behaviour: j.behaviour, w: w, to: http.NewResponseController(w)}
	switch j.req.Kind {
	case openai.Response:
		e.dialect = &responseDialect{emitter: e}
	case openai.MessageKind:
		e.dialect = &messageDialect{emitter: e}
	default:
		e.dialect = newChunkDialect(e)
	}
	return e
}

// keepAlives puts what keeps a connection alive, where the behaviour has any.
func (e *emitter) keepAlives() {
	f := e.behaviour.frame
	if e.behaviour.comments {
		e.buf = f.AppendComment(e.buf, "")
		e.buf = f.AppendComment(e.buf, "ping")
		e.buf = f.AppendEvent(e.buf, []byte(": keepalive"))
		e.buf = f.AppendEvent(e.buf, nil)
	}
	if e.behaviour.pings {
		e.buf = f.AppendNamed(e.buf, "ping", []byte(`{"type":"ping"}`))
	}
}

// putOpening puts what stands before the first token, once.
func (e *emitter) putOpening() {
	if !e.opened {
		e.dialect.open()
	}
	e.opened = true
}

// putEarly puts what goes out with headers that are early.
func (e *emitter) putEarly() {
	e.keepAlives()
	if e.behaviour.progress {
		e.dialect.progress()
	}
	if e.behaviour.empties {
		e.dialect.piece(0, "")
	}
}

// putTokens puts tokens i to i+k into one event for each choice.
func (e *emitter) putTokens(i, k int) {
	e.putOpening()
	e.keepAlives()
	if e.behaviour.empties && i > 0 {
		e.dialect.piece(0, "")
	}
	e.sentTokens = i + k
	shown := min(i+k, max(1, e.j.output-e.behaviour.swallowed))
	for c := e.behaviour.choices - 1; c >= 0; c-- {
		e.dialect.piece(c, e.text(c, i, shown))
	}
	e.bufferedEvents++
}

// text joins tokens from to shown of a choice; swallowed ones are not in it.
func (e *emitter) text(choice, from, shown int) string {
	at := choice * e.j.output // every choice has words of its own
	if from+1 == shown {
		word, _ := e.s.word(e.j, at+from)
		return word
	}
	var b strings.Builder
	for i := from; i < shown; i++ {
		word, _ := e.s.word(e.j, at+i)
		b.WriteString(word)
	}
	return b.String()
}

// put appends an event of some JSON, which has a name where the API names its events.
func (e *emitter) put(name string, data []byte) {
	if e.behaviour.lines {
		member := []byte(`,"choices":`)
		if !bytes.Contains(data, member) {
			member = []byte(`,"`) // the first of the text stands between members
		}
		data = bytes.Replace(data, member, append([]byte(",\n"), member[1:]...), 1)
	}
	if name == "" {
		e.buf = e.behaviour.frame.AppendEvent(e.buf, data)
		return
	}
	e.buf = e.behaviour.frame.AppendNamed(e.buf, name, data)
}

// flush writes what is gathered, once that is as many token events as leave
// together, or all of it.
func (e *emitter) flush(all bool) error {
	if !all && e.bufferedEvents < e.behaviour.perWrite {
		return nil
	}
	e.bufferedEvents = 0
	step := len(e.buf)
	if e.behaviour.perByte > 0 {
		step = e.behaviour.perByte
	}
	for from := 0; from < len(e.buf); from += step {
		if _, err := e.w.Write(e.buf[from:min(from+step, len(e.buf))]); err != nil {
			return err
		}
		if err := e.to.Flush(); err != nil {
			return err
		}
	}
	if len(e.buf) == 0 {
		return e.to.Flush()
	}
	e.buf = e.buf[:0]
	return nil
}

// injectFault stalls, fails or drops the stream in its middle, if its behaviour says so.
func (e *emitter) injectFault(ctx context.Context) error {
	m := e.behaviour
	if m.stall > 0 {
		if err := until(ctx, time.Now().Add(m.stall)); err != nil {
			return err
		}
	}
	switch {
	case m.errorThen != "":
		e.dialect.fault(openai.ErrorDetail{Message: "the engine failed", Type: "InternalServerError",
			Code: m.codeOf(http.StatusInternalServerError)})
		if err := e.flush(true); err != nil {
			return err
		}
		return errFault
	case m.reset, m.cut:
		if err := e.flush(true); err != nil {
			return err
		}
		return errors.Join(errFault, drop(e.w, m.reset))
	}
	return nil
}
