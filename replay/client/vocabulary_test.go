package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"reprise/replay/result"
)

// Words of one token are found in requests side by side, and are those, in their order, that one at a time finds.
func TestOneTokenSideBySide(t *testing.T) {
	var words []string
	var want []int
	single := map[string]bool{}
	for i := range 400 {
		words = append(words, fmt.Sprintf("w%c%c", 'a'+i/20, 'a'+i%20))
		if single[words[i]] = i%5 != 1; single[words[i]] {
			want = append(want, i)
		}
	}
	word := regexp.MustCompile(`[a-z]+|1`)
	var now, most, asked atomic.Int64
	var search atomic.Bool // whose first requests are answered when as many have come as may come at once
	var begun sync.Once
	together := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		n := now.Add(1)
		if n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		if search.Load() && n == oneTokenAtOnce {
			begun.Do(func() { close(together) })
		}
		if search.Load() {
			<-together
		}
		var body struct{ Prompt string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		tokens := 0
		for _, part := range word.FindAllString(body.Prompt, -1) {
			if tokens++; part != "1" && !single[part] {
				tokens++
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, `data: {"choices":[{"index":0,"text":"x","finish_reason":"length"}],"usage":{"prompt_tokens":%d,`+
			`"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n", tokens)
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer server.Close()
	h := endpoint(t, Options{URL: server.URL, Model: "m", API: result.APICompletions})
	if _, err := h.CalibrateAPI(t.Context(), result.APICompletions, words[0], 0); err != nil {
		t.Fatal(err)
	}
	search.Store(true)
	got, err := h.OneToken(t.Context(), result.APICompletions, words, 64, 256)
	if err != nil || len(got) < 64 || !slices.Equal(got, want[:len(got)]) {
		t.Errorf("words %v, %v, want those first of %v", got, err, want)
	}
	if most.Load() != oneTokenAtOnce {
		t.Errorf("%d requests at once, want %d", most.Load(), oneTokenAtOnce)
	}
	if n := h.Probed().Requests; n != int(asked.Load()) {
		t.Errorf("%d requests are counted of %d", n, asked.Load())
	}
	if odd := h.Report().Odd; odd != (result.Odd{}) {
		t.Errorf("probes are counted as answers of the run: %+v", odd)
	}
}
