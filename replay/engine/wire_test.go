package engine_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/engine"
	"reprise/replay/openai"
)

// A wire records what a handler writes, and when: a line for each write, with ^ behind it
// where it was flushed. Once so many writes or flushes have gone well, they fail.
type wire struct {
	start  time.Time
	header http.Header
	lines  []string
	good   int
	late   bool // something was written after one had failed

	broken      bool // a write failed
	brokenAfter time.Duration
}

func newWire() *wire { return &wire{start: time.Now(), header: http.Header{}, good: 1 << 30} }

func (w *wire) Header() http.Header { return w.header }

func (w *wire) log(text string) {
	w.lines = append(w.lines, fmt.Sprintf("%d %s", time.Since(w.start).Milliseconds(),
		strings.NewReplacer("\r", "␍", "\n", "⏎").Replace(text)))
}

func (w *wire) WriteHeader(status int) { w.log(fmt.Sprintf("status %d", status)) }

func (w *wire) Write(b []byte) (int, error) {
	if err := w.spend(); err != nil {
		return 0, err
	}
	w.log(string(b))
	return len(b), nil
}

func (w *wire) FlushError() error {
	if err := w.spend(); err != nil {
		return err
	}
	if n := len(w.lines); n > 0 && !strings.HasSuffix(w.lines[n-1], "^") {
		w.lines[n-1] += "^"
	} else {
		w.log("^")
	}
	return nil
}

func (w *wire) spend() error {
	w.late = w.late || w.broken
	if w.good--; w.good < 0 {
		if !w.broken {
			w.broken, w.brokenAfter = true, time.Since(w.start)
		}
		return errors.New("the client has gone")
	}
	return nil
}

// A hijackable wire has a connection of its own, which is logged like the rest.
type hijackable struct{ *wire }

func (w hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.spend(); err != nil {
		return nil, nil, err
	}
	w.log("hijacked")
	c := wireConn{wire: w.wire}
	return c, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c)), nil
}

type wireConn struct {
	net.Conn
	*wire
}

func (c wireConn) Write(b []byte) (int, error) { return c.wire.Write(b) }
func (c wireConn) Close() error                { c.log("closed"); return nil }

// bubble runs a test in virtual time, and then waits until the engines have done the steps
// of requests that were given up.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		time.Sleep(time.Hour)
	})
}

// slow is a server whose first token takes 20 ms, and each further one 10 ms.
func slow() engine.ServerConfig {
	c := engine.DefaultServerConfig()
	c.Engine.Costs, c.FaultHeader = engine.Costs{Request: 10e9, Step: 10e9}, true
	return c
}

// counts are the tokens and ends that /metrics tells: prompt and generated tokens; answers
// that stopped, reached their length, and were aborted.
func counts(h http.Handler) string {
	text := metricsOf(h)
	var list []string
	for _, name := range []string{"prompt_tokens_total{", "generation_tokens_total{", `reason="stop"`,
		`reason="length"`, `reason="abort"`} {
		_, rest, _ := strings.Cut(text, "vllm:"+name)
		if !strings.HasSuffix(name, "{") {
			_, rest, _ = strings.Cut(text, name)
		}
		_, rest, _ = strings.Cut(rest, "} ")
		value, _, _ := strings.Cut(rest, "\n")
		list = append(list, value)
	}
	return strings.Join(list, " ")
}

// play has a handler answer a request onto a wire. It reports whether the handler reset the
// stream, in net/http's way.
func playWire(t *testing.T, h http.Handler, w http.ResponseWriter, ctx context.Context, path, body,
	quirks string) (reset bool) {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body))
	if quirks != "" {
		r.Header.Set(engine.FaultHeader, quirks)
	}
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			reset = true
		}
	}()
	h.ServeHTTP(w, r)
	return false
}

var letters = regexp.MustCompile(`[A-Za-z]+`)

// wordNames replaces the words of the answers to "one two three" and to its chat by their
// numbers, and leaves out what all chunks have alike.
func wordNames(t *testing.T) func(string) string {
	t.Helper()
	names := map[string]string{}
	h := faultServer(t, fast())
	for path, body := range map[string]string{
		openai.CompletionsPath: `{"prompt":"one two three","max_tokens":9,"ignore_eos":true}`,
		openai.ChatPath:        `{"messages":[{"role":"user","content":"one two three"}],"max_tokens":9,"ignore_eos":true}`,
	} {
		var c openai.Chunk
		if err := json.Unmarshal(faultAsk(t, h, t.Context(), path, body, "").Body.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		text, letter := c.Choices[0].Text, "w"
		if path == openai.ChatPath {
			text, letter = c.Choices[0].Message.Content, "v"
		}
		for i, word := range strings.Fields(*text) {
			names[word] = fmt.Sprintf("%s%d", letter, i)
		}
	}
	alike := strings.NewReplacer(`"object":"text_completion","created":946684800,"model":"sim",`, "§",
		`"object":"chat.completion.chunk","created":946684800,"model":"sim",`, "§",
		`"finish_reason":`, `"finish":`, `"prompt_tokens_details":{"cached_tokens":0}`, `"cached":0`)
	return func(text string) string {
		return alike.Replace(letters.ReplaceAllStringFunc(text, func(s string) string { return cmp.Or(names[s], s) }))
	}
}

func quoteJSON(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// embeddingOf asks for an embedding.
func embeddingOf(t *testing.T, h http.Handler, body string) []float32 {
	t.Helper()
	var list openai.EmbeddingList
	if err := json.Unmarshal(faultAsk(t, h, t.Context(), openai.EmbeddingsPath, body, "").Body.Bytes(),
		&list); err != nil || len(list.Data) != 1 || len(list.Data[0].Embedding) != 16 {
		t.Fatalf("%v: %+v", err, list)
	}
	return list.Data[0].Embedding
}

// lengthOf asks for an answer and returns its tokens, as usage tells them, and how it ended.
func lengthOf(t *testing.T, h http.Handler, path, body, quirks string) (tokens int, finish string) {
	t.Helper()
	var c openai.Chunk
	w := faultAsk(t, h, t.Context(), path, body, quirks)
	if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil || w.Code != 200 {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	return c.Usage.CompletionTokens, *c.Choices[0].FinishReason
}

// statusFrom is the status of a completion asked for under a host name.
func statusFrom(h http.Handler, host string) int {
	r := httptest.NewRequest("POST", openai.CompletionsPath, strings.NewReader(`{"prompt":"x","max_tokens":1}`))
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}
