package client

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// A claim is what a server of the tables counts, in JSON; "" is not told.
type claim struct {
	input, cached, output, reasoning, total string

	pieces    []string // of the text, an event each
	thoughts  []string // of the reasoning, before the text
	running   []string // output counts that come with the pieces
	prompts   []string // and prompt counts
	choices   int      // 0 is one
	asked     int32    // 0 is 16
	toolCalls bool     // the pieces are arguments
}

// usageJSON has the counts under the names of an API.
func (c *claim) usageJSON(api string) string {
	var fields []string
	add := func(format, n string) {
		if n != "" {
			fields = append(fields, fmt.Sprintf(format, n))
		}
	}
	switch api {
	case result.APIResponses:
		add(`"input_tokens":%s`, c.input)
		add(`"input_tokens_details":{"cached_tokens":%s}`, c.cached)
		add(`"output_tokens":%s`, c.output)
		add(`"output_tokens_details":{"reasoning_tokens":%s}`, c.reasoning)
		add(`"total_tokens":%s`, c.total)
	case result.APIMessages:
		add(`"input_tokens":%s`, c.input)
		add(`"cache_read_input_tokens":%s`, c.cached)
		add(`"output_tokens":%s`, c.output)
	default:
		add(`"prompt_tokens":%s`, c.input)
		add(`"prompt_tokens_details":{"cached_tokens":%s}`, c.cached)
		add(`"completion_tokens":%s`, c.output)
		add(`"completion_tokens_details":{"reasoning_tokens":%s}`, c.reasoning)
		add(`"total_tokens":%s`, c.total)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// events are those of a streamed answer.
func (c *claim) events(api string) (out []string) {
	event := func(format string, args ...any) { out = append(out, "data: "+fmt.Sprintf(format, args...)+"\n\n") }
	counts := c.usageJSON(api)
	switch api {
	case result.APIResponses:
		for _, piece := range c.thoughts {
			event(`{"type":"response.reasoning_text.delta","delta":%q}`, piece)
		}
		for _, piece := range c.pieces {
			event(`{"type":"response.output_text.delta","delta":%q}`, piece)
		}
		event(`{"type":"response.completed","response":{"id":"r","object":"response","status":"completed","output":[],"usage":%s}}`, counts)
	case result.APIMessages:
		event(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":%s}}`, counts)
		for _, piece := range c.thoughts {
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":%q}}`, piece)
		}
		for _, piece := range c.pieces {
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, piece)
		}
		event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":%s}`, counts)
		event(`{"type":"message_stop"}`)
	default:
		content := func(name, piece string) string {
			switch {
			case api == result.APICompletions:
				return fmt.Sprintf(`"text":%q`, piece)
			case c.toolCalls:
				return fmt.Sprintf(`"delta":{"tool_calls":[{"index":0,"function":{"name":null,"arguments":%q}}]}`, piece)
			}
			return fmt.Sprintf(`"delta":{%q:%q}`, name, piece)
		}
		for _, piece := range c.thoughts {
			event(`{"choices":[{"index":0,%s,"finish_reason":null}]}`, content("reasoning_content", piece))
		}
		for i, piece := range c.pieces {
			usage := "null"
			if i < len(c.running) {
				usage = fmt.Sprintf(`{"prompt_tokens":%s,"completion_tokens":%s}`, c.input, c.running[i])
			}
			if i < len(c.prompts) {
				usage = fmt.Sprintf(`{"prompt_tokens":%s,"completion_tokens":%d}`, c.prompts[i], i+1)
			}
			for choice := range max(c.choices, 1) {
				event(`{"choices":[{"index":%d,%s,"finish_reason":null}],"usage":%s}`, choice, content("content", piece), usage)
			}
		}
		for choice := range max(c.choices, 1) {
			event(`{"choices":[{"index":%d,%s,"finish_reason":"stop"}]}`, choice, strings.Replace(content("content", ""), `{"content":""}`, "{}", 1))
		}
		event(`{"choices":[],"usage":%s}`, counts)
		event("[DONE]")
	}
	return out
}

// claims answers with what a server of the tables counts.
func (c *claim) claims(api string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if api == result.APIEmbeddings {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"m","usage":%s}`, c.usageJSON(api))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range c.events(api) {
			io.WriteString(w, event)
			w.(http.Flusher).Flush()
		}
	}
}

// said are pieces of text.
func said(n int, piece string) []string { return slices.Repeat([]string{piece}, n) }

var streamed = []string{result.APIChat, result.APICompletions, result.APIResponses, result.APIMessages}

// openaiOnly are the APIs whose usage has cached tokens as a part of the prompt, and a total.
var openaiOnly = []string{result.APIChat, result.APICompletions, result.APIResponses}

// lies are counts that cannot be.
var lies = []struct {
	name    string
	claim   claim
	finding string
	wrong   string // which counts are used for nothing: i, c, o
	apis    []string
}{
	{"100 M tokens in 90 events", claim{input: "20", output: "100000000", pieces: said(90, "word "), asked: 128}, "output_above_time", "o", streamed},
	{"ten times what was asked for", claim{input: "20", output: "1280", total: "1300", pieces: said(90, "word "), asked: 128}, "output_above_asked", "o", streamed},
	{"four times what was asked for, of long words", claim{input: "20", output: "512", pieces: said(128, " responsibilities"), asked: 128}, "output_above_asked", "o", streamed},
	{"more than any model makes, as reasoning", claim{input: "20", output: "90000000", reasoning: "89999910", total: "90000020", pieces: said(90, "word "), asked: 128},
		"output_above_time", "o", openaiOnly},
	{"more cached than prompt", claim{input: "20", cached: "200", output: "8", total: "28", pieces: said(8, "word ")}, "cached_beyond_input", "ic", openaiOnly},
	{"more cached than prompt, without a total", claim{input: "20", cached: "200", output: "8", pieces: said(8, "word ")}, "cached_beyond_input", "ic", openaiOnly},
	{"more reasoning than output", claim{input: "20", output: "8", reasoning: "80", total: "28", pieces: said(8, "word ")}, "reasoning_beyond_output", "o", openaiOnly},
	{"a negative output", claim{input: "20", output: "-8", pieces: said(8, "word ")}, "no_count", "o", streamed},
	{"a negative output, which the total tells", claim{input: "20", output: "-8", total: "28", pieces: said(8, "word ")}, "no_count", "o", openaiOnly},
	{"a negative prompt", claim{input: "-20", output: "8", pieces: said(8, "word ")}, "no_count", "i", streamed},
	{"an output beyond 64 bits", claim{input: "20", output: "99999999999999999999999", pieces: said(8, "word ")}, "no_count", "o", streamed},
	{"an output beyond 32 bits", claim{input: "20", output: "4294967304", pieces: said(8, "word ")}, "no_count", "o", streamed},
	{"half a token", claim{input: "20", output: "8.5", pieces: said(8, "word ")}, "no_count", "o", streamed},
	{"a prompt that the request cannot hold", claim{input: "100000000", output: "8", pieces: said(8, "word ")}, "input_above_prompt", "ic", append(streamed, result.APIEmbeddings)},
	{"a total below its parts", claim{input: "20", output: "8", total: "12", pieces: said(8, "word ")}, "total_below_parts", "ico", openaiOnly},
	{"a text of 300 words for 10 tokens", claim{input: "20", output: "10", pieces: said(10, strings.Repeat(" responsibility", 30))}, "output_below_text", "o", streamed},
	{"an output that falls", claim{input: "20", output: "8", running: []string{"100", "200", "300"}, pieces: said(8, "word "), asked: 400}, "output_fell", "o",
		[]string{result.APIChat, result.APICompletions}},
	{"a prompt that changes", claim{input: "20", output: "8", prompts: []string{"20", "500"}, pieces: said(8, "word ")}, "input_changed", "ic",
		[]string{result.APIChat, result.APICompletions}},
	{"several choices, each with ten times what was asked for", claim{input: "20", output: "5120", choices: 2, pieces: said(90, "word "), asked: 128}, "output_above_asked", "o",
		[]string{result.APIChat, result.APICompletions}},
	{"calls of tools with ten times what was asked for", claim{input: "20", output: "1280", pieces: said(30, `{"a":1}`), asked: 64, toolCalls: true}, "output_above_asked", "o",
		[]string{result.APIChat}},
	{"an embedding that generates", claim{input: "20", output: "5000", pieces: nil}, "output_of_none", "o", []string{result.APIEmbeddings}},
	{"an embedding with more cached than prompt", claim{input: "20", cached: "200"}, "cached_beyond_input", "ic", []string{result.APIEmbeddings}},
}

// odd servers count as they should, and in ways that others do not.
var odd = []struct {
	name  string
	claim claim
	notes string // what is said of it without a doubt about the run
	apis  []string
}{
	{"an event for each token", claim{input: "20", output: "8", total: "28", pieces: said(8, "word ")}, "", streamed},
	{"bytes as tokens", claim{input: "60", output: "240", total: "300", pieces: said(60, "word"), asked: 240}, "", streamed},
	{"many letters in a token", claim{input: "20", output: "10", pieces: said(10, strings.Repeat(" responsibility", 2))}, "", streamed},
	{"white space in long tokens", claim{input: "20", output: "10", pieces: said(10, strings.Repeat(" ", 120))}, "", streamed},
	{"Chinese, two tokens a character", claim{input: "20", output: "80", pieces: said(40, "图"), asked: 80}, "", streamed},
	{"speculative decoding, five tokens in an event", claim{input: "20", output: "40", pieces: said(8, " one two three four five")}, "", streamed},
	{"a few tokens more than asked for", claim{input: "20", output: "133", pieces: said(133, "word "), asked: 128}, "", streamed},
	{"max_tokens is not heeded", claim{input: "20", output: "500", pieces: said(500, "word "), asked: 100}, "", streamed},
	{"reasoning is hidden and told", claim{input: "20", output: "1008", reasoning: "1000", total: "1028", pieces: said(8, "word "), asked: 2000}, "", openaiOnly},
	{"reasoning is hidden, told, and no part of what was asked for", claim{input: "20", output: "1008", reasoning: "1000", total: "1028", pieces: said(8, "word "), asked: 16}, "", openaiOnly},
	{"reasoning stands beside the output", claim{input: "20", output: "8", reasoning: "1000", total: "1028", pieces: said(8, "word "), asked: 16}, "reasoning_added_to_output", openaiOnly},
	{"reasoning is hidden and not told", claim{input: "20", output: "1008", total: "1028", pieces: said(8, "word "), asked: 2000}, "output_unseen", streamed},
	{"reasoning is shown and not told", claim{input: "20", output: "58", thoughts: said(50, "think "), pieces: said(8, "word ")}, "", []string{result.APIChat, result.APIResponses, result.APIMessages}},
	{"tokens without text", claim{input: "20", output: "128", pieces: said(2, "a"), asked: 128}, "output_unseen", streamed},
	{"a call of a tool", claim{input: "20", output: "30", pieces: said(10, `{"a":1}`), toolCalls: true}, "", []string{result.APIChat}},
	{"a system prompt of the server", claim{input: "12000", output: "8", pieces: said(8, "word ")}, "", streamed},
	{"cached tokens stand beside the prompt", claim{input: "20", cached: "200", output: "8", pieces: said(8, "word ")}, "", []string{result.APIMessages}},
	{"all of the prompt is cached", claim{input: "20", cached: "20", output: "8", total: "28", pieces: said(8, "word ")}, "", openaiOnly},
	{"a total without what was cached", claim{input: "20", cached: "16", output: "8", total: "12", pieces: said(8, "word ")}, "total_unexplained", openaiOnly},
	{"a total above its parts", claim{input: "20", output: "8", total: "90", pieces: said(8, "word ")}, "total_unexplained", openaiOnly},
	{"running counts that are estimates", claim{input: "20", output: "8", running: []string{"3", "6", "9", "12"}, pieces: said(8, "word ")}, "", []string{result.APIChat, result.APICompletions}},
	{"several choices", claim{input: "20", output: "24", choices: 3, pieces: said(8, "word "), asked: 8}, "", []string{result.APIChat, result.APICompletions}},
	{"counts written as floats", claim{input: "20.0", output: "8.0", total: "2.8e1", pieces: said(8, "word ")}, "", streamed},
	{"embeddings", claim{input: "20", total: "20"}, "", []string{result.APIEmbeddings}},
	{"embeddings with a count of no output", claim{input: "20", output: "0", total: "20"}, "", []string{result.APIEmbeddings}},
}

// countWords is a tokenizer for which a word is a token, and each character beyond ASCII.
func countWords(text string) int {
	n := len(strings.Fields(text))
	for _, r := range text {
		if r > 127 {
			n++
		}
	}
	return n
}

// claimed sends one request to a server of the tables.
func claimed(t *testing.T, api string, c *claim) (result.Result, result.Odd) {
	t.Helper()
	h := endpoint(t, Options{URL: serve(t, c.claims(api)), API: api, Count: countWords})
	row := trace.Request{InputTokens: 20, OutputTokens: trace.Ptr(max(c.asked, 16))}
	r := fire(t, h, row, 0)
	if r.Error != "" {
		t.Fatalf("%s: it fails as %s", api, r.Error)
	}
	return r, h.odd.counts()
}

func TestLies(t *testing.T) {
	for _, lie := range lies {
		for _, api := range lie.apis {
			r, _ := claimed(t, api, &lie.claim)
			if !slices.Contains(strings.Split(r.Refuted, ","), lie.finding) {
				t.Errorf("%s, %s: refuted %q, want %s", lie.name, api, r.Refuted, lie.finding)
			}
			for _, count := range []struct {
				name string
				n    *int32
			}{{"i", r.Input}, {"c", r.Cached}, {"o", r.Output}} {
				if used := count.n != nil; used && strings.Contains(lie.wrong, count.name) {
					t.Errorf("%s, %s: count %s is used: %d", lie.name, api, count.name, *count.n)
				}
			}
			if strings.Contains(lie.wrong, "o") && (r.OutputFrom != "" || len(r.EventTokens) > 0) {
				t.Errorf("%s, %s: output from %q, tokens of events %v", lie.name, api, r.OutputFrom, r.EventTokens)
			}
		}
	}
}

func TestHonestOddServers(t *testing.T) {
	for _, server := range odd {
		for _, api := range server.apis {
			r, counts := claimed(t, api, &server.claim)
			if r.Refuted != "" {
				t.Errorf("%s, %s: refuted %s", server.name, api, r.Refuted)
			}
			if r.Input == nil || api != result.APIEmbeddings && r.Output == nil {
				t.Errorf("%s, %s: input %v, output %v", server.name, api, r.Input, r.Output)
			}
			var notes []string
			counts.Usage.Each(func(one tokenusage.Finding, n int64) { notes = append(notes, one.Key()) })
			if got := strings.Join(notes, ","); got != server.notes {
				t.Errorf("%s, %s: notes %q, want %q", server.name, api, got, server.notes)
			}
		}
	}
}
