package engine

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"reprise/replay/openai"
)

// A chunkDialect writes the chunks of chat and text completions.
type chunkDialect struct {
	*emitter
	usage usageMode
	chunk openai.Chunk
	delta openai.Delta
	one   [1]openai.Choice
}

func newChunkDialect(e *emitter) *chunkDialect {
	d := &chunkDialect{emitter: e, chunk: e.j.chunk(e.s.c.Model)}
	if m := e.behaviour; m.usageOf == "" || !e.j.chat {
		d.usage = m.usage
	}
	return d
}

// open puts the role, alone.
func (e *chunkDialect) open() {
	if !e.j.chat || e.behaviour.roleEvery {
		return
	}
	for c := range e.behaviour.choices {
		// Servers that write content null are imitated by putting it in later: the
		// encoder leaves out what is nil.
		empty := ""
		e.delta = openai.Delta{Role: "assistant", Content: &empty}
		e.appendChoice(c, nil, "")
	}
}

func (e *chunkDialect) progress() {
	e.putChunk(0, "", nil, fmt.Sprintf(`"prompt_progress":{"total":%d,"cache":0,"processed":0,"time_ms":0}`,
		len(e.j.prompt)))
}

func (e *chunkDialect) piece(choice int, text string) {
	var finish *string
	if text != "" && e.behaviour.tools && e.j.chat && e.sentTokens == e.j.output && !e.behaviour.noFinish {
		finish = &e.j.finish
	}
	e.putChunk(choice, text, finish, "")
}

func (e *chunkDialect) fault(detail openai.ErrorDetail) {
	f := e.behaviour.frame
	e.buf = f.AppendEvent(e.buf, openai.AppendError(nil, detail))
	if e.behaviour.errorThen == "done" {
		e.buf = f.AppendDone(e.buf)
	}
}

func (e *chunkDialect) whole(text string) []byte {
	c := e.j.chunk(e.s.c.Model)
	if e.behaviour.usage != usageMissing {
		c.Usage = e.j.usage()
	}
	c.Choices[0].FinishReason = &e.j.finish
	if e.j.chat {
		c.Object = openai.ObjectChat
		c.Choices[0].Message = &openai.Delta{Role: "assistant", Content: &text}
	} else {
		c.Choices[0].Text = &text
	}
	return openai.AppendChunk(nil, &c)
}

// putChunk appends a chunk with a piece of a choice's answer. Members are further
// JSON of the chunk.
func (e *chunkDialect) putChunk(choice int, text string, finish *string, members string) {
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
func (e *chunkDialect) appendChoice(choice int, finish *string, members string) {
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
func (e *chunkDialect) usageAfter(tokens int) *openai.Usage {
	u := e.j.usage()
	u.CompletionTokens = tokens
	u.TotalTokens = u.PromptTokens + tokens
	return u
}

// appendEvent appends the chunk at hand with further members.
func (e *chunkDialect) appendEvent(members string) {
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
	e.put("", b)
}

// end puts finish, usage and [DONE].
func (e *chunkDialect) end() {
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
func (e *chunkDialect) timings() string {
	prompt := e.j.first.Sub(e.j.came)
	answer := e.j.last.Sub(e.j.first)
	return fmt.Sprintf(`"timings":{"cache_n":%d,"prompt_n":%d,"prompt_ms":%.3f,"predicted_n":%d,"predicted_ms":%.3f}`,
		e.j.cached, len(e.j.prompt)-e.j.cached, prompt.Seconds()*1e3, e.j.output, answer.Seconds()*1e3)
}

func (j *serverJob) chunk(model string) openai.Chunk {
	c := openai.Chunk{ID: j.id, Object: openai.ObjectCompletion, Created: time.Now().Unix(), Model: model,
		Choices: make([]openai.Choice, 1)}
	if j.chat {
		c.Object = openai.ObjectChatChunk
	}
	return c
}
