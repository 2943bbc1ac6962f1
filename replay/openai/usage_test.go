package openai

import (
	"bytes"
	"reflect"
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

// What a server says of the times of a request is read in the words of each, and what is no time is unknown.
func TestServerTimes(t *testing.T) {
	ms := func(n float64) *time.Duration { d := time.Duration(n * 1e6); return &d }
	usageOf := func(more string) string {
		return `"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6` + more + "}"
	}
	for said, want := range map[string][2]*time.Duration{
		usageOf("") + `,"metrics":{"time_to_first_token_ms":85.25,"generation_time_ms":1240.5,"queue_time_ms":12.5}`: {ms(12.5), ms(85.25)}, // vLLM
		usageOf("") + `,"timings":{"cache_n":60,"prompt_n":8,"prompt_ms":43.25,"predicted_ms":238.74}`:               {nil, ms(43.25)},      // llama-server
		usageOf("") + `,"time_info":{"queue_time":0.0005,"prompt_time":0.00125,"created":1723733419}`:                {ms(.5), ms(1.25)},    // Cerebras
		usageOf("") + `,"nvext":{"timing":{"prefill_wait_time_ms":12.5,"prefill_time_ms":70.5,"ttft_ms":83}}`:        {ms(12.5), ms(70.5)},  // Dynamo
		usageOf(`,"queue_time":0.0125,"prompt_time":0.002,"total_time":1.5`):                                         {ms(12.5), ms(2)},     // Groq
		`"choices":[],"x_groq":{"usage":{"prompt_tokens":4,"completion_tokens":2,"queue_time":0.25}}`:                {ms(250), nil},

		usageOf("") + `,"metrics":{"queue_time_ms":-1,"time_to_first_token_ms":null}`:    {nil, nil},
		usageOf("") + `,"metrics":{"queue_time_ms":"12","time_to_first_token_ms":1e300}`: {nil, nil},
		usageOf("") + `,"metrics":[12]`: {nil, nil},
	} {
		body := tokA + finish + "data: {" + said + "}\n\n" + done
		o := collect(NewScanner(bytes.NewReader([]byte(body)), noClock, 0), NewCollector(0))
		if !reflect.DeepEqual([2]*time.Duration{o.Queue, o.Prefill}, want) || o.Usage == nil || o.Usage.CompletionTokens != 2 {
			t.Errorf("%s: queue %v, prefill %v, usage %+v", said, o.Queue, o.Prefill, o.Usage)
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
