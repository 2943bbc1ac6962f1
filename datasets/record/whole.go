package record

import (
	"encoding/json"

	"reprise/trace/ending"
	tokenusage "reprise/trace/usage"
)

// wholeReply reads an answer that is no stream.
func wholeReply(is api, body []byte) reply {
	switch is {
	case messagesAPI:
		return wholeMessage(body)
	case responsesAPI:
		return wholeResponse(body)
	}
	var b struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Error   json.RawMessage `json:"error"`
		Data    json.RawMessage `json:"data"` // of embeddings
		Choices []struct {
			Text    string          `json:"text"`
			Finish  string          `json:"finish_reason"`
			Error   json.RawMessage `json:"error"`
			Message struct {
				Content   json.RawMessage `json:"content"`
				Refusal   string          `json:"refusal"`
				Call      json.RawMessage `json:"function_call"`
				Reasoning string          `json:"reasoning_content"`
				Thoughts  string          `json:"reasoning"`
				Calls     json.RawMessage `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
		Usage tokenusage.Counts `json:"usage"`
	}
	if json.Unmarshal(body, &b) != nil {
		return reply{failed: true}
	}
	r := reply{id: b.ID}
	r.count(&b.Usage, tokenusage.Body)
	if is == embeddingsAPI {
		r.unknown, r.failed = true, isSet(b.Error)
		return r
	}
	a := ending.Answer{Fault: isSet(b.Error) || len(b.Choices) == 0, Ended: true}
	for i, c := range b.Choices {
		text := c.Text + c.Message.Refusal
		if t, ok := contentText(c.Message.Content); ok {
			text += t
		}
		switch finish := ending.Finish(c.Finish); {
		case i == 0, ending.OfFinish(finish) == ending.Failed: // of several choices one that failed counts
			r.finish = finish
		}
		if i == 0 && isSet(c.Message.Calls) {
			r.calls = compact(c.Message.Calls)
		}
		called := isSet(c.Message.Calls) || isSet(c.Message.Call)
		a.Fault = a.Fault || isSet(c.Error)
		a.Generated = a.Generated || called || text+c.Message.Reasoning+c.Message.Thoughts != "" ||
			hasParts(c.Message.Content)
		if c.Message.Reasoning+c.Message.Thoughts != "" {
			r.unknown = r.unknown || r.usage.Reasoning == nil
		}
		r.text += text
	}
	r.unknown = r.unknown || len(b.Choices) > 1
	r.judge(a)
	return r
}

// judge asks whether an answer failed, by what is known of it beside its finish reason and its
// counts.
func (r *reply) judge(a ending.Answer) {
	if a.Finish = r.finish; r.usage.Output != nil {
		a.Tokens = int(*r.usage.Output)
	}
	r.failed = a.Failure() != ""
}

// hasParts reports whether a content is a list that holds something.
func hasParts(content json.RawMessage) bool { return isSet(content) && content[0] == '[' }

// wholeResponse reads an answer of the Responses API.
func wholeResponse(body []byte) reply {
	var b struct {
		ID         string          `json:"id"`
		Status     string          `json:"status"`
		Error      json.RawMessage `json:"error"`
		Output     json.RawMessage `json:"output"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage tokenusage.Counts `json:"usage"`
	}
	if json.Unmarshal(body, &b) != nil {
		return reply{failed: true}
	}
	r := reply{id: b.ID, finish: ending.Response(b.Status, b.Incomplete.Reason)}
	r.count(&b.Usage, tokenusage.Body)
	items, unknown, _ := inputItems(b.Output, new(int32))
	r.unknown = unknown && r.usage.Reasoning == nil
	for _, m := range items {
		r.text += m.text
		if m.calls != "" {
			r.calls, r.finish = m.calls, ending.ToolCalls
		}
	}
	r.judge(ending.Answer{Fault: isSet(b.Error), Ended: r.finish != "", Generated: hasParts(b.Output)})
	return r
}

// completed takes from the last event of a streamed response what the others say in
// pieces: calls of tools, and text without the reasoning.
func (r *reply) completed(event []byte) {
	var e struct {
		Response json.RawMessage `json:"response"`
	}
	if json.Unmarshal(event, &e) != nil {
		return
	}
	if all := wholeResponse(e.Response); len(all.text)+len(all.calls) > 0 {
		r.text, r.calls, r.finish, r.unknown = all.text, all.calls, all.finish, all.unknown
	}
}

func isSet(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "[]", "{}":
		return false
	}
	return true
}
