package openai

import (
	"bytes"
	"testing"
	"time"

	"reprise/trace/usage/usagetest"
)

// The usage of an answer is the same in the words of each API, behind a stream and in a whole
// answer.
func TestUsageDialects(t *testing.T) {
	for _, d := range usagetest.Dialects() {
		for form, body := range map[string]string{
			"a chunk at the end":     tokA + finish + `data: {"id":"c1","choices":[],"usage":` + d.Usage + "}\n\n" + done,
			"on the last choice":     tokA + `data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":` + d.Usage + "}\n\n" + done,
			"behind a placeholder":   tokA + `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}` + "\n\n" + finish + `data: {"choices":[],"usage":` + d.Usage + "}\n\n" + done,
			"within the last choice": tokA + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":` + d.Usage + "}]}\n\n" + done,
			"as Groq's":              tokA + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":` + d.Usage + "}}\n\n" + done,
			"a response":             `data: {"type":"response.completed","response":{"status":"completed","usage":` + d.Usage + "}}\n\n",
		} {
			s, c := NewScanner(bytes.NewReader([]byte(body)), noClock, 0), NewCollector(0)
			u := collect(s, c).Usage
			if u == nil {
				t.Errorf("%s, %s: no usage", d.Name, form)
				continue
			}
			cached, reasoning := 0, 0
			if u.PromptTokensDetails != nil {
				cached = u.PromptTokensDetails.CachedTokens
			}
			if u.CompletionTokensDetails != nil {
				reasoning = u.CompletionTokensDetails.ReasoningTokens
			}
			if u.PromptTokens != d.Input || u.CompletionTokens != d.Output || cached != d.Cached || reasoning != d.Reasoning {
				t.Errorf("%s, %s: prompt %d, cached %d, output %d, reasoning %d", d.Name, form, u.PromptTokens, cached, u.CompletionTokens, reasoning)
			}
		}
	}
}

// Servers that count each choice by itself count the prompt in all of them.
func TestUsageOfSeveralChoices(t *testing.T) {
	c := NewCollector(0)
	for i, choice := range []string{"0", "1"} {
		c.Add(Event{At: time.Duration(i), Data: []byte(`{"choices":[{"index":` + choice + `,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}`)})
	}
	if u := c.Finish(9, nil).Usage; u == nil || u.PromptTokens != 5 || u.CompletionTokens != 6 || u.TotalTokens != 11 {
		t.Errorf("%+v", u)
	}
}
