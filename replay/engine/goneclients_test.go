package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/openai"
)

// answerForms are ways in which a request of four tokens is answered.
var answerForms = []struct {
	path, quirks string
	stream       bool
}{
	{openai.CompletionsPath, "", true},
	{openai.CompletionsPath, "", false},
	{openai.ChatPath, "comments,progress-events,empty-deltas", true},
	{openai.CompletionsPath, "early-headers,split-writes=90", true},
	{openai.CompletionsPath, "stall=25ms,no-done,no-finish-reason", true},
	{openai.CompletionsPath, "slow-headers=15ms", true},
	{openai.CompletionsPath, "several-events-per-write=3", true},
	{openai.ResponsesPath, "", true},
	{openai.ResponsesPath, "", false},
	{openai.EmbeddingsPath, "", false},
}

func fourTokens(path string, stream bool) string {
	prompt := `"prompt":"one two three"`
	switch path {
	case openai.ChatPath:
		prompt = `"messages":[{"role":"user","content":"one two three"}]`
	case openai.ResponsesPath:
		prompt = `"input":"one two three","max_output_tokens":4`
	case openai.EmbeddingsPath:
		prompt = `"input":"one two three"`
	}
	return fmt.Sprintf(`{%s,"stream":%v,"ignore_eos":true,"max_tokens":4}`, prompt, stream)
}

// An answer whose write or flush fails, whichever it is, ends at once as aborted, and
// nothing is written after that.
func TestFailedWritesAbort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, form := range answerForms {
			if form.path == openai.EmbeddingsPath || form.path == openai.ResponsesPath && !form.stream {
				continue // written whole by net/http's buffer
			}
			for good, whole := 0, false; !whole; good++ {
				h := faultServer(t, slow())
				w := newWire()
				w.good = good
				playWire(t, h, w, t.Context(), form.path, fourTokens(form.path, form.stream), form.quirks)
				whole = !w.broken
				_, ends, _ := strings.Cut(counts(h), " ") // of the prompt, the others follow
				_, ends, _ = strings.Cut(ends, " ")
				want := "0 0 1"
				if whole {
					want = "0 1 0"
				}
				if ends != want || w.late {
					t.Fatalf("%+v with %d good writes: stopped, whole and aborted are %s, want %s; written after a failure: %v", form, good, ends, want, w.late)
				}
			}
		}
	})
}

// The same of a fault in mid-stream, and of connections that are taken over.
func TestFailedWritesOfFaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, quirks := range []string{"error-mid-stream,several-events-per-write=9", "error-mid-stream=close",
			"cut", "reset,several-events-per-write=9", "slow-headers=71ms", "slow-headers=71ms,cut", "close-keep-alive"} {
			for good, whole := 0, false; !whole; good++ {
				h := faultServer(t, slow())
				w := newWire()
				w.good = good
				playWire(t, h, hijackable{w}, t.Context(), openai.CompletionsPath, fourTokens(openai.CompletionsPath, true), quirks)
				whole = !w.broken
				aborted := strings.HasSuffix(counts(h), " 0 0 1")
				fine := whole && quirks == "slow-headers=71ms" || quirks == "close-keep-alive" && good >= 10 &&
					good != 11 // all is written but the last chunk
				if aborted == fine || w.late && !strings.Contains(quirks, "slow") {
					t.Fatalf("%s with %d good writes: %s; written after a failure: %v", quirks, good, counts(h), w.late)
				}
				noticed := w.brokenAfter
				if strings.Contains(quirks, "slow") && good > 0 { // by the first token, if it was in the headers
					noticed = max(noticed, 20*time.Millisecond)
				}
				if w.broken && time.Since(w.start) != noticed {
					t.Fatalf("%s with %d good writes: broken after %v, over after %v", quirks, good, w.brokenAfter,
						time.Since(w.start))
				}
			}
		}
	})
}

// A client that hangs up ends its answer at that instant, and frees its place.
func TestHangUpEndsTheAnswer(t *testing.T) {
	for _, form := range answerForms {
		// Tokens are due after 20, 30, 40 and 50 ms.
		for gone := 5 * time.Millisecond; gone < 50*time.Millisecond; gone += 10 * time.Millisecond {
			if form.path == openai.EmbeddingsPath && gone > 20*time.Millisecond {
				break
			}
			bubble(t, func(t *testing.T) {
				h := faultServer(t, slow())
				ctx, cancel := context.WithTimeout(t.Context(), gone)
				defer cancel()
				w := newWire()
				playWire(t, h, w, ctx, form.path, fourTokens(form.path, form.stream), form.quirks)
				if took := time.Since(w.start); took != gone || !strings.HasSuffix(counts(h), " 0 0 1") {
					t.Errorf("%+v: hung up after %v, over after %v with %s", form, gone, took, counts(h))
				}
				time.Sleep(time.Second)
				text := metricsOf(h)
				for _, want := range []string{"num_requests_running", "e2e_request_latency_seconds_count"} {
					if !strings.Contains(text, want+`{model_name="sim"} 0`) {
						t.Errorf("%+v: %s is not 0:\n%s", form, want, text)
					}
				}
			})
		}
	}
}

// One that hangs up while it waits for a place gets nothing, and leaves the queue.
func TestHangUpInTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := slow()
		c.Engine.MaxSeqs, c.Engine.Costs.Step = 1, 1e12
		h := faultServer(t, c)
		go playWire(t, h, newWire(), t.Context(), openai.CompletionsPath, fourTokens(openai.CompletionsPath, true), "")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		w := newWire()
		go func() {
			time.Sleep(400 * time.Millisecond)
			if text := metricsOf(h); !strings.Contains(text, `num_requests_waiting{model_name="sim"} 1`) {
				t.Errorf("nobody waits:\n%s", text)
			}
		}()
		playWire(t, h, w, ctx, openai.CompletionsPath, fourTokens(openai.CompletionsPath, true), "")
		if len(w.lines) != 0 || time.Since(w.start) != 500*time.Millisecond ||
			!strings.Contains(metricsOf(h), `num_requests_waiting{model_name="sim"} 0`) {
			t.Errorf("after %v: %v", time.Since(w.start), w.lines)
		}
	})
}

// A server that hangs answers nothing until the client goes.
func TestHang(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := faultServer(t, slow())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w := newWire()
		playWire(t, h, w, ctx, openai.CompletionsPath, fourTokens(openai.CompletionsPath, true), "hang")
		if len(w.lines) != 0 || time.Since(w.start) != time.Hour || counts(h) != "0 0 0 0 1" {
			t.Errorf("after %v: %v, %s", time.Since(w.start), w.lines, counts(h))
		}
	})
}

func metricsOf(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
