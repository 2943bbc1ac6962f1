package client

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reprise/replay/result"
)

// A question has the text of the answer, whatever API it goes to, and asks for it at
// temperature 0; what fails says how, and quotes nothing.
func TestQuestion(t *testing.T) {
	const secret = "SECRET-QUESTION"
	for _, c := range []struct {
		api, path, status, body string
		want, fault             string
	}{
		{result.APIChat, "/v1/chat/completions", "", `{"choices":[{"message":{"role":"assistant","content":"42"}}]}`, "42", ""},
		{result.APIChat, "/v1/chat/completions", "", `{"choices":[{"message":{"content":null,"reasoning_content":"hm"}}]}`, "", ""},
		{result.APIAuto, "/v1/chat/completions", "", `{"choices":[{"message":{"content":"a"}}]}`, "a", ""},
		{result.APICompletions, "/v1/completions", "", `{"choices":[{"text":" 42\n"}]}`, " 42\n", ""},
		{result.APIResponses, "/v1/responses", "", `{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"4"},{"type":"output_text","text":"2"}]}]}`, "42", ""},
		{result.APIMessages, "/v1/messages", "", `{"content":[{"type":"text","text":"42"}]}`, "42", ""},
		{result.APICompletions, "/v1/completions", "", secret, "", "is text that is not JSON without the text"},
		{result.APICompletions, "/v1/completions", "", `{"a":"` + secret + `"}`, "", "is JSON without the text of an answer"},
		{result.APICompletions, "/v1/completions", "400", `{"error":{"message":"` + secret + `"}}`, "", "HTTP 400"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.URL.Path != c.path || !strings.Contains(string(body), secret) || !strings.Contains(string(body), `"temperature":0`) || strings.Contains(string(body), `"stream":true`) {
				t.Errorf("%s: %s %s", c.api, r.URL.Path, body)
			}
			if c.status != "" {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprint(w, c.body)
		}))
		h, err := New(Options{URL: server.URL, API: c.api, Model: "m", Connections: Pooled})
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.Question(t.Context(), secret, 5)
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && (!strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: %q, %v; want %q, %q", c.api, got, err, c.want, c.fault)
		}
		h.Close()
		server.Close()
	}
}

// Whatever a server sends, the answer is a text or none.
func FuzzAnswerText(f *testing.F) {
	for _, seed := range []string{`{"choices":[{"text":"a"}]}`, `{"output":[{"content":[{"type":"output_text","text":"b"}]}]}`, `{"choices":[{}]}`, `[`, `{"choices":null,"content":[{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if text, ok := answerText(body); !ok && text != "" {
			t.Error("a text that is none")
		}
	})
}
