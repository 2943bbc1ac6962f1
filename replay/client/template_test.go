package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"reprise/replay/result"
)

// A templated server counts a chat whose template is like that of Llama 3, of 5 tokens
// before the prompt and 7 after it, and caches one sequence, or all of them.
type templated struct {
	continues  bool   // knows continue_final_message
	assistants bool   // takes a message that is continued for the assistant's
	alternates bool   // refuses two messages of one role
	think      int    // tokens that only a reply to come begins with
	block      int    // of the cache; 0 reports no cached tokens
	slot       bool   // keeps the last sequence alone
	refuses    string // a field

	cached [][]string
}

func (s *templated) ServeHTTP(w http.ResponseWriter, r *http.Request) {

	body, _ := io.ReadAll(r.Body)
	var q struct {
		Messages             []struct{ Role, Content string }
		Input                string // of the Responses API, which has a second beginning of text
		ContinueFinalMessage bool   `json:"continue_final_message"`
		AddGenerationPrompt  *bool  `json:"add_generation_prompt"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	tokens := []string{"<bos>"}
	if q.Input != "" {
		tokens = append(tokens, "<bos>")
		q.Messages = append(q.Messages, struct{ Role, Content string }{"user", q.Input})
	}
	header := func(role string) {
		tokens = append(tokens, "<start>", role, "<end>", "\n\n")
		if role == "assistant" {
			tokens = append(tokens, "is", "tant")
		}
	}
	last := ""
	for _, m := range q.Messages {
		if s.alternates && m.Role == last || s.refuses != "" && strings.Contains(string(body), s.refuses) {
			http.Error(w, `{"error":{"message":"no"}}`, 400)
			return
		}
		last = m.Role
		if q.ContinueFinalMessage && s.assistants {
			m.Role = "assistant"
		}
		header(m.Role)
		tokens = append(append(tokens, strings.Fields(m.Content)...), "<eot>")
	}
	switch {
	case q.ContinueFinalMessage && (s.continues || s.assistants):
		tokens = tokens[:len(tokens)-1]
	case q.AddGenerationPrompt == nil || *q.AddGenerationPrompt || !s.continues && !s.assistants:
		header("assistant")
		tokens = append(tokens, make([]string, s.think)...)
	}
	shared := 0
	for _, c := range s.cached {
		n := 0
		for n < min(len(c), len(tokens)-1) && c[n] == tokens[n] {
			n++
		}
		shared = max(shared, n)
	}
	if s.slot {
		s.cached = nil
	}
	s.cached = append(s.cached, tokens)
	details := ""
	if s.block > 0 {
		details = fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, shared/s.block*s.block)
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1%s}}\n\ndata: [DONE]\n\n", len(tokens), details)
}

// What stands before a prompt is told from what stands after it by one of three ways, as
// far as a server answers, and else taken to stand after.
func TestTemplateParts(t *testing.T) {
	words := strings.Fields("a b c d e f g h")
	four := 4
	for name, c := range map[string]struct {
		server templated
		given  *int
		want   result.Template
		api    string
	}{
		"continued":              {templated{continues: true, block: 128}, nil, result.Template{Before: 5, After: 7, Found: result.TemplateMeasured}, ""},
		"cached":                 {templated{block: 16}, nil, result.Template{Before: 5, After: 7, Found: result.TemplateMeasured}, ""},
		"cached in large blocks": {templated{block: 1024}, nil, result.Template{Before: 5, After: 7, Found: result.TemplateMeasured}, ""},
		"one slot":               {templated{assistants: true, block: 1, slot: true}, nil, result.Template{Before: 5, After: 7, Found: result.TemplateMeasured}, ""},
		"thoughts, cached":       {templated{think: 2, block: 64}, nil, result.Template{Before: 5, After: 9, Found: result.TemplateMeasured}, ""},
		"counts alone":           {templated{}, nil, result.Template{Before: 5, After: 7, Found: result.TemplateDerived}, ""},
		"roles alternate":        {templated{alternates: true, refuses: "continue_final"}, nil, result.Template{Before: 5, After: 7, Found: result.TemplateDerived}, ""},
		"one message at a time":  {templated{refuses: "},{"}, nil, result.Template{After: 12, Found: result.TemplateAssumed}, ""},
		"given":                  {templated{continues: true}, &four, result.Template{Before: 4, After: 8, Found: result.TemplateGiven}, ""},
		"another than chats":     {templated{continues: true, block: 128}, nil, result.Template{Before: 6, After: 7, Found: result.TemplateMeasured}, result.APIResponses},
		"another, no cache":      {templated{continues: true}, nil, result.Template{After: 13, Found: result.TemplateAssumed}, result.APIResponses},
	} {
		api := cmp.Or(c.api, result.APIChat)
		h := endpoint(t, Options{API: api, URL: serve(t, c.server.ServeHTTP), TemplateBefore: c.given})
		if _, err := h.Calibrate(t.Context(), words[0], 1); err != nil {
			t.Fatal(name, err)
		}
		got := h.TemplateParts(t.Context(), api, words, max(c.server.block, 1))
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		var run result.Run
		if h.Describe(&run); run.Templates[api] != got {
			t.Errorf("%s: the run says %+v", name, run.Templates)
		}
	}
	// A beginning of text stands before the prompt, and is not asked for.
	h := endpoint(t, Options{API: result.APICompletions, URL: apisServer(t, func(string, string) {})})
	if _, err := h.Calibrate(t.Context(), "a", 1); err != nil {
		t.Fatal(err)
	}
	if got, want := h.TemplateParts(t.Context(), result.APICompletions, words, 16), (result.Template{Before: 10, Found: result.TemplateMeasured}); got != want {
		t.Errorf("completions: %+v, want %+v", got, want)
	}
}
