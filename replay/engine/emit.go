package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"reprise/replay/openai"
)

// errFault says that a fault ended the stream.
var errFault = errors.New("a fault ended the stream")

// An emitter writes one streamed answer by the behaviour of its request. It gathers
// events and writes them together when they are flushed.
type emitter struct {
	s         *Server
	j         *serverJob
	behaviour *behaviour
	w         http.ResponseWriter
	to        *http.ResponseController
	usage     usageMode

	chunk          openai.Chunk
	delta          openai.Delta
	one            [1]openai.Choice
	buf            []byte
	bufferedEvents int // token events in buf
	sentTokens     int // tokens so far
	opened         bool
}

func (e *emitter) keepAlives() {
	e.buf = e.behaviour.frame.AppendComment(e.buf, "")
	e.buf = e.behaviour.frame.AppendComment(e.buf, "ping")
	e.buf = e.behaviour.frame.AppendEvent(e.buf, []byte(": keepalive"))
	e.buf = e.behaviour.frame.AppendEvent(e.buf, nil)
}

// putTokens puts tokens i to i+k into one event for each choice.
func (e *emitter) putTokens(i, k int) {
	if !e.opened && e.j.chat && !e.behaviour.roleEvery {
		for c := range e.behaviour.choices {
			// Servers that write content null are imitated by putting it in later: the
			// encoder leaves out what is nil.
			empty := ""
			e.delta = openai.Delta{Role: "assistant", Content: &empty}
			e.appendChoice(c, nil, "")
		}
	}
	e.opened = true
	if e.behaviour.comments {
		e.keepAlives()
	}
	if e.behaviour.empties && i > 0 {
		e.putChunk(0, "", nil, "")
	}
	e.sentTokens = i + k
	shown := min(i+k, max(1, e.j.output-e.behaviour.swallowed))
	for c := e.behaviour.choices - 1; c >= 0; c-- {
		var finish *string
		if e.behaviour.tools && e.j.chat && e.sentTokens == e.j.output && !e.behaviour.noFinish {
			finish = &e.j.finish
		}
		e.putChunk(c, e.text(c, i, shown), finish, "")
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

// putChunk appends a chunk with a piece of a choice's answer. Members are further
// JSON of the chunk.
func (e *emitter) putChunk(choice int, text string, finish *string, members string) {
	e.delta = openai.Delta{Content: &text}
	first := e.sentTokens <= e.behaviour.perEvent
	switch {
	case !e.j.chat:
	case e.behaviour.tools && text != "":
		call := openai.ToolCall{}
		call.Function.Arguments = text
		if first {
			name := "look_up"
			call.ID, call.Type, call.Function.Name = e.j.id+"-tool-"+strconv.Itoa(choice), "function", &name
			call.Function.Arguments = `{"words":"` + text
		}
		if finish != nil {
			call.Function.Arguments += `"}`
		}
		e.delta = openai.Delta{ToolCalls: []openai.ToolCall{call}}
	case text != "" && e.sentTokens <= e.behaviour.reasoning:
		e.delta = openai.Delta{ReasoningContent: &text}
		if e.behaviour.reasoningField == "reasoning" {
			e.delta = openai.Delta{Reasoning: &text}
		}
	}
	if e.behaviour.roleEvery {
		e.delta.Role = "assistant"
	}
	e.appendChoice(choice, finish, members)
}

// appendChoice makes an event of the delta at hand.
func (e *emitter) appendChoice(choice int, finish *string, members string) {
	c := &e.chunk
	e.one[0] = openai.Choice{Index: choice, FinishReason: finish}
	if e.j.chat {
		e.one[0].Delta = &e.delta
	} else {
		e.one[0].Text = e.delta.Content
	}
	c.ID, c.Choices, c.Usage = e.j.id, e.one[:], nil
	if e.behaviour.choiceIDs {
		c.ID += "-" + strconv.Itoa(choice)
	}
	running := e.usage == usageEvery || e.usage == usageAsked && e.j.req.ContinuousUsage
	switch {
	case finish != nil && (e.usage == usageOnFinish || e.behaviour.choices > 1 && e.usage != usageMissing):
		c.Usage = e.usageAfter(e.sentTokens)
	case e.usage == usageZeros && e.j.req.IncludeUsage:
		c.Usage = &openai.Usage{}
	case running:
		c.Usage = e.usageAfter(e.sentTokens)
	case e.usage == usageNull:
		if members != "" {
			members += ","
		}
		members += `"usage":null`
	}
	e.appendEvent(members)
}

// usageAfter is the usage after so many tokens of each choice.
func (e *emitter) usageAfter(tokens int) *openai.Usage {
	u := e.j.usage()
	u.CompletionTokens = tokens
	u.TotalTokens = u.PromptTokens + tokens
	return u
}

// appendEvent appends the chunk at hand with further members.
func (e *emitter) appendEvent(members string) {
	if members == "" && !e.behaviour.lines && !e.behaviour.nullContent && !e.behaviour.tools {
		e.buf = e.behaviour.frame.AppendChunk(e.buf, &e.chunk)
		return
	}
	b := openai.AppendChunk(nil, &e.chunk)
	if members != "" {
		b = append(append(append(b[:len(b)-1], ','), members...), '}')
	}
	if e.behaviour.nullContent {
		b = bytes.Replace(b, []byte(`"role":"assistant","content":""`), []byte(`"role":"assistant","content":null`), 1)
	}
	if e.behaviour.tools {
		b = bytes.Replace(b, []byte(`"function":{"arguments"`), []byte(`"function":{"name":null,"arguments"`), 1)
	}
	if e.behaviour.lines {
		b = bytes.Replace(b, []byte(`,"choices":`), []byte(",\n\"choices\":"), 1)
	}
	e.buf = e.behaviour.frame.AppendEvent(e.buf, b)
}

// putEnd puts what follows the tokens: finish, usage, [DONE].
func (e *emitter) putEnd() {
	timings := ""
	if e.behaviour.timings {
		timings = e.timings()
	}
	own := e.usage != usageOnFinish && e.usage != usageMissing && e.j.req.IncludeUsage && e.behaviour.choices == 1
	if !e.behaviour.noFinish && !(e.behaviour.tools && e.j.chat) {
		for c := e.behaviour.choices - 1; c >= 0; c-- {
			text := ""
			if e.delta = (openai.Delta{}); !e.j.chat || e.behaviour.roleEvery {
				e.delta.Content = &text
			}
			if e.behaviour.roleEvery {
				e.delta.Role = "assistant"
			}
			members := ""
			if !own {
				members = timings
			}
			e.appendChoice(c, &e.j.finish, members)
		}
	}
	if own {
		e.chunk.Choices, e.chunk.Usage = nil, e.j.usage()
		e.appendEvent(timings)
	}
	for range e.behaviour.doneMarks {
		e.buf = e.behaviour.frame.AppendDone(e.buf)
	}
}

// timings are as llama-server writes them.
func (e *emitter) timings() string {
	prompt := e.j.first.Sub(e.j.came)
	answer := e.j.last.Sub(e.j.first)
	return fmt.Sprintf(`"timings":{"cache_n":%d,"prompt_n":%d,"prompt_ms":%.3f,"predicted_n":%d,"predicted_ms":%.3f}`,
		e.j.cached, len(e.j.prompt)-e.j.cached, prompt.Seconds()*1e3, e.j.output, answer.Seconds()*1e3)
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
		e.buf = m.frame.AppendEvent(e.buf, openai.AppendError(nil, openai.ErrorDetail{
			Message: "the engine failed", Type: "InternalServerError", Code: m.codeOf(http.StatusInternalServerError)}))
		if m.errorThen == "done" {
			e.buf = m.frame.AppendDone(e.buf)
		}
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

func (j *serverJob) chunk(model string) openai.Chunk {
	c := openai.Chunk{ID: j.id, Object: openai.ObjectCompletion, Created: time.Now().Unix(), Model: model, Choices: make([]openai.Choice, 1)}
	if j.chat {
		c.Object = openai.ObjectChatChunk
	}
	return c
}
