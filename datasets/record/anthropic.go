package record

import (
	"encoding/json"
	"strings"

	"reprise/replay/openai"
	"reprise/trace"
	"reprise/trace/ending"
	tokenusage "reprise/trace/usage"
)

// messageEvents folds the events of a streamed answer of Anthropic's API: message_start
// has the counts of the prompt, content_block_delta the text, message_delta the counts of
// the output and why it stopped, and message_stop is the end.
type messageEvents struct {
	out    reply
	blocks []messageBlock
	counts tokenusage.Counts
	text   strings.Builder
	begun  bool
	ended  bool

	generated bool // something was
}

// A messageBlock is one of the parts of an answer.
type messageBlock struct {
	kind, id, name string
	input          strings.Builder
}

func (m *messageEvents) take(ev openai.Event) {
	var e struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			ID    string            `json:"id"`
			Usage tokenusage.Counts `json:"usage"`
		} `json:"message"`
		Block struct {
			Type string `json:"type"`
			ID   string `json:"id"`
			Name string `json:"name"`
			Text string `json:"text"`
		} `json:"content_block"`
		Delta struct {
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
			Input    string `json:"partial_json"`
			Reason   string `json:"stop_reason"`
		} `json:"delta"`
		Usage tokenusage.Counts `json:"usage"`
	}
	if json.Unmarshal(ev.Data, &e) != nil {
		return
	}
	token := false
	switch e.Type {
	case "message_start":
		m.begun = true
		m.out.id = e.Message.ID
		m.counts.Add(&e.Message.Usage, true)
	case "content_block_start":
		m.blocks = append(m.blocks, messageBlock{kind: e.Block.Type, id: e.Block.ID, name: e.Block.Name})
		m.text.WriteString(e.Block.Text)
		token = e.Block.Text != "" || e.Block.Type == "tool_use"
	case "content_block_delta":
		token = e.Delta.Text+e.Delta.Thinking+e.Delta.Input != ""
		if m.text.Len() < maxReply {
			m.text.WriteString(e.Delta.Text)
			if n := len(m.blocks); n > 0 {
				m.blocks[n-1].input.WriteString(e.Delta.Input)
			}
		}
	case "message_delta":
		m.counts.Add(&e.Usage, true)
		if e.Delta.Reason != "" {
			m.out.finish = trace.ClosedFinish(e.Delta.Reason)
		}
	case "message_stop":
		m.ended = true
	case "error":
		m.out.failed = true
	}
	if token {
		m.generated = true
		if m.out.first == 0 {
			m.out.first = ev.At
		} else {
			m.out.gaps = append(m.out.gaps, ev.At-m.out.done)
		}
		m.out.done = ev.At
	}
}

// reply is what the events said in all.
func (m *messageEvents) reply() reply {
	r := m.out
	r.text = m.text.String()
	r.count(&m.counts, tokenusage.Exclusive)
	r.judge(ending.Answer{Fault: r.failed, Ended: m.begun && (m.ended || r.finish != ""), Generated: m.generated})
	var calls []toolCall
	for i := range m.blocks {
		b := &m.blocks[i]
		switch b.kind {
		case "text":
		case "tool_use":
			calls = append(calls, newToolCall(b.id, b.name, b.input.String()))
		default: // thinking, or a tool of the server's own
			r.unknown = r.unknown || r.usage.Reasoning == nil
		}
	}
	r.calls = writeCalls(calls)
	return r
}

// wholeMessage reads an answer of Anthropic's API that is no stream.
func wholeMessage(body []byte) reply {
	var m struct {
		ID      string            `json:"id"`
		Type    string            `json:"type"`
		Content json.RawMessage   `json:"content"`
		Reason  string            `json:"stop_reason"`
		Usage   tokenusage.Counts `json:"usage"`
	}
	if json.Unmarshal(body, &m) != nil || m.Type != "message" {
		return reply{failed: true}
	}
	r := reply{id: m.ID, finish: trace.ClosedFinish(m.Reason)}
	r.count(&m.Usage, tokenusage.Exclusive)
	messages, _ := contentMessages(trace.Assistant, m.Content, new(int32))
	for _, part := range messages {
		r.text += part.text
		r.calls = part.calls
	}
	var parts []struct {
		Type string `json:"type"`
	}
	json.Unmarshal(m.Content, &parts)
	others := false // such as thoughts
	for _, p := range parts {
		others = others || p.Type != "text" && p.Type != "tool_use"
	}
	r.unknown = others && r.usage.Reasoning == nil
	r.judge(ending.Answer{Ended: true, Generated: r.text+r.calls != "" || others})
	return r
}
