// Command truth is the server of the race: an OpenAI-compatible completions endpoint
// that answers at fixed times, and records, outside the client, when each request came
// and when each token was written. What a client reports is compared with that record.
//
//	truth -ttft 200ms -itl 20ms -log truth.jsonl
//
// It listens on a free port of the loopback interface and prints its URL as the first
// line of stdout. Records stay in memory, so that no write to disk falls into the race.
// An interrupt or SIGTERM writes them to the log, one JSON object a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	ttft := flag.Duration("ttft", 200*time.Millisecond, "time from a request to its first token")
	itl := flag.Duration("itl", 20*time.Millisecond, "time between two tokens")
	logFile := flag.String("log", "truth.jsonl", "file of the records, written at the end")
	flag.Parse()
	if err := listen(newServer(*ttft, *itl), *logFile); err != nil {
		log.Fatal(err)
	}
}

// listen serves until an interrupt or SIGTERM, then writes the records.
func listen(s *server, logFile string) error {
	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())

	web := http.Server{Handler: s}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-stopped.Done():
	}
	// A request whose client was killed ends at its next write.
	ended, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return errors.Join(web.Shutdown(ended), s.writeRecords(logFile))
}

// A server answers each request for a completion at the same times, and records when
// it did so.
type server struct {
	ttft, itl time.Duration
	started   time.Time

	arrived atomic.Int64 // requests for completions

	mu      sync.Mutex
	records []record
}

// A record is what the server saw of one request, and did.
type record struct {
	// ArrivalUnixNS counts from the start of the server by the monotonic clock, so that
	// a step of the system's clock does not show.
	ArrivalUnixNS int64 `json:"arrival_unix_ns"`
	MaxTokens     int   `json:"max_tokens"`
	BodyBytes     int   `json:"body_bytes"`
	// WritesUS are the instants, in µs from the arrival, at which the tokens had been
	// written: what the server did, not what it meant to do.
	WritesUS []int64 `json:"writes_us"`
}

func newServer(ttft, itl time.Duration) *server {
	return &server{ttft: ttft, itl: itl, started: time.Now()}
}

// ServeHTTP answers /v1/completions, and lists one model under /v1/models. Everything
// else, such as a health check, has an empty answer.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/completions"):
		s.complete(w, r, arrived)
	case strings.HasSuffix(r.URL.Path, "/models"):
		fmt.Fprint(w, `{"object":"list","data":[{"id":"truth","object":"model","owned_by":"reprise","max_model_len":131072}]}`)
	case r.URL.Path == "/arrived": // for who disturbs a client at a known moment
		fmt.Fprint(w, s.arrived.Load())
	case strings.HasSuffix(r.URL.Path, "/tokenize"): // vLLM's client asks, and goes on without
		http.NotFound(w, r)
	}
}

// A completionRequest is what the server reads of a body.
type completionRequest struct {
	Prompt        json.RawMessage `json:"prompt"`
	MaxTokens     int             `json:"max_tokens"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// Every token is the same common word, which a tokenizer that was trained on English
// counts as one: some clients count tokens by their text.
const word = " the"

func (s *server) complete(w http.ResponseWriter, r *http.Request, arrived time.Time) {
	s.arrived.Add(1)
	body, err := io.ReadAll(r.Body)
	var q completionRequest
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"the body is not a completion request in JSON","code":400}}`)
		return
	}
	if q.MaxTokens == 0 {
		q.MaxTokens = 16 // as OpenAI and vLLM
	}
	prompt := promptTokens(q.Prompt)
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, prompt, q.MaxTokens,
		prompt+q.MaxTokens)
	seen := record{ArrivalUnixNS: s.started.UnixNano() + int64(arrived.Sub(s.started)), MaxTokens: q.MaxTokens,
		BodyBytes: len(body)}
	if q.Stream {
		seen.WritesUS = s.stream(w, q, usage, arrived)
	} else {
		s.sleepUntilToken(q.MaxTokens-1, arrived)
		fmt.Fprintf(w, `{"id":"truth","object":"text_completion","created":1,"model":"truth","choices":[{"index":0,"text":%q,"finish_reason":"length"}],"usage":%s}`,
			strings.Repeat(word, q.MaxTokens), usage)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, seen)
}

// stream writes the tokens as server-sent events and returns when each was written, in
// µs from the arrival. They are fewer than asked for when the client goes away. As with
// vLLM, the reason for the end has a chunk of its own, and usage is sent when it is
// asked for.
func (s *server) stream(w http.ResponseWriter, q completionRequest, usage string, arrived time.Time) []int64 {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(event string) error {
		if _, err := fmt.Fprintf(w, "data: %s\n\n", event); err != nil {
			return err
		}
		return out.Flush()
	}
	if out.Flush() != nil { // the headers, before the first token
		return nil
	}
	writes := make([]int64, 0, q.MaxTokens)
	for i := range q.MaxTokens {
		s.sleepUntilToken(i, arrived)
		if send(`{"id":"truth","object":"text_completion","created":1,"model":"truth","choices":[{"index":0,"text":"`+
			word+`","logprobs":null,"finish_reason":null}]}`) != nil {
			return writes
		}
		writes = append(writes, time.Since(arrived).Microseconds())
	}
	end := []string{`{"id":"truth","object":"text_completion","created":1,"model":"truth","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length"}]}`}
	if q.StreamOptions.IncludeUsage {
		end = append(end, `{"id":"truth","object":"text_completion","created":1,"model":"truth","choices":[],"usage":`+
			usage+`}`)
	}
	for _, event := range append(end, "[DONE]") {
		if send(event) != nil {
			break // all tokens were written
		}
	}
	return writes
}

// sleepUntilToken waits until a token is due: each one at its own distance from the
// arrival, so that a late one does not move those after it.
func (s *server) sleepUntilToken(i int, arrived time.Time) {
	time.Sleep(time.Until(arrived.Add(s.ttft + time.Duration(i)*s.itl)))
}

// promptTokens counts the token ids of a prompt, or the words of one that is text,
// since the server has no tokenizer. Prompts of a batch are added up.
func promptTokens(prompt json.RawMessage) int {
	var ids []int
	if json.Unmarshal(prompt, &ids) == nil {
		return len(ids)
	}
	var text string
	if json.Unmarshal(prompt, &text) == nil {
		return len(strings.Fields(text))
	}
	var batch []json.RawMessage
	if json.Unmarshal(prompt, &batch) != nil {
		return 0
	}
	n := 0
	for _, one := range batch {
		n += promptTokens(one)
	}
	return n
}

// writeRecords writes the records in the order of their ends.
func (s *server) writeRecords(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	buffered := bufio.NewWriter(f)
	lines := json.NewEncoder(buffered)
	for _, r := range s.records {
		if err := lines.Encode(r); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(buffered.Flush(), f.Close())
}
