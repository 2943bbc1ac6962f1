package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"reprise/replay/client/internal/h1"
	"reprise/replay/openai"
	"reprise/replay/result"
)

// Values of [Options].Connections, as [result.Run] records them.
const (
	// PerRequest opens a connection for each request and closes it after the
	// answer. It loses nothing to servers that promise
	// keep-alive and close (llama-server after every stream), it lets a
	// balancer of connections spread the load, and no request rides on another's
	// congestion window. Its price is the handshake, which lies between
	// released and sent.
	PerRequest = "per-request"
	// Pooled keeps connections open for later requests. A request on a
	// connection that its server has just closed fails as "reset": nothing is
	// ever sent again unless Retries asks for it.
	Pooled = "pooled"
)

// Options say where and how an [HTTP] sends.
type Options struct {
	// of the server, such as http://localhost:8000, or of its APIs or one of them, see [APIOfURL]. Or
	// unix:///path.sock[:/base]
	URL     string
	Also    []string // further servers of the same model
	Balance string   // of several servers: RoundRobin (also when empty) or BySession
	API     string   // one of the API constants; empty is APIChat
	Model   string   // as the servers call it; when empty, [HTTP.Probe] asks them

	// TemplateTokens is what the servers' template adds to a prompt, in place of the measurement
	// by [HTTP.CalibrateAPI]; nil to measure.
	TemplateTokens *int
	// TemplateBefore is how many of these stand before a prompt; nil where
	// [HTTP.TemplateParts] is to tell.
	TemplateBefore *int

	TokenIDs bool // prompts as token ids, which APICompletions and APIEmbeddings take; with APIAuto, where they can
	// ForceOutput asks for exactly the recorded output length, by ignore_eos and
	// min_tokens, which vLLM, SGLang and llama.cpp know and stricter servers
	// refuse. max_tokens is sent in any case.
	ForceOutput bool
	// ContinuousUsage asks for running usage in every chunk, so that events with
	// several tokens can be counted.
	ContinuousUsage bool
	Extra           openai.Extra // further fields of every request body

	Header      http.Header   // further headers; Host is honoured
	APIKey      string        // sent as a bearer token
	Connections string        // PerRequest (also when empty), Pooled, pooled:N or per-session
	TLS         *tls.Config   // nil for the system's roots
	Proxy       string        // URL of a proxy, or none; empty is the environment's
	HTTP2       bool          // in place of HTTP/1.1: by ALPN over TLS, else by prior knowledge
	Timeout     time.Duration // of one request, dialling, pauses and retries included; 0 means 10 minutes
	// ConnectTimeout limits dialling, and the TLS handshake after it; 0 means 10
	// seconds. Beyond it a request has the class connect, or tls.
	ConnectTimeout time.Duration
	// FirstTokenTimeout limits the time from sending to the first token, and
	// IdleTimeout that between two events; 0 is no limit of its own. Beyond them a
	// request has the class timeout.
	FirstTokenTimeout, IdleTimeout time.Duration

	// Retries is how often a request that failed is sent again, at most: when there
	// was no connection, when the server was full (HTTP 429, 502, 503, 504, 529), or
	// when a pooled connection was closed before a byte came back. Between two is
	// Backoff, then twice that and so on to 30 s, and at least what the server asks
	// for by Retry-After, up to a minute.
	Retries int
	Backoff time.Duration
	// RetryOther has each retry go to the next of several servers: at once to one that
	// the request was not sent to, and after a pause when all of them failed it.
	RetryOther bool

	NoTraceHeaders bool     // leave out X-Request-Id and traceparent
	AffinityHeader string   // name of a header with the pseudonym of the session, for routers
	RecordHeaders  []string // response headers whose value is kept, at most MaxRecordHeaders

	// Models maps a row's adapter, or else its model, to the name that it is served
	// by; others get Model.
	Models map[string]string
	// Priorities maps a row's class to the body's field priority, as vLLM has it.
	Priorities map[string]int
	// Rows, when set, has further headers and fields for single rows.
	Rows RowExtras

	// Count, when set, counts the tokens of an answer whose server sends no
	// usage. It is called from many goroutines. Setting it makes every stream
	// keep up to 1 MiB of its text.
	Count func(text string) int
	// Replies has every stream keep as much of its text, for [result.Shot.Reply].
	Replies bool
}

// maxText is how much of an answer is kept for Count and Replies. A longer one
// stays uncounted, and is no reply.
const maxText = 1 << 20

// HTTP is an [result.Endpoint] that speaks the APIs of OpenAI and Anthropic over HTTP/1.1,
// or HTTP/2: a streamed chat, text completion, response or message, or a request for
// embeddings, for every row. It follows no redirect, and repeats a request only as its options say. It
// sends HTTP/1.1 on connections of its own, which it dials ahead of need and looks
// after; HTTP/2, and through a proxy, by net/http.
//
// Sent is taken at the entry to the write of the request, whose head and body go
// out at once. A request that finds no connection ready dials; that stands between
// released and sent, so that TTFT does not count it and every latency from the due
// time does. The alternative, to count from the dial, would charge the engine for
// the network's handshake. Of a request that was sent several times it is the first.
//
// Prepare may be called by one goroutine at a time, Fire by any number.
type HTTP struct {
	opt       Options
	targets   []target
	header    http.Header
	transport *http.Transport
	model     string
	overheads map[string]int // of each API that was calibrated
	templates map[string]result.Template
	uncounted map[string]bool     // those of them whose servers send no usage
	dialects  map[string]*dialect // of each API whose probes were refused
	traceID   string              // empty without trace headers
	served    *servedBy
	turn      uint64 // of the round robin
	priority  map[string]openai.Extra

	aside *sync.Mutex // of probes side by side: who waits for a server does not hold it; nil for one at a time
	text  []byte      // scratch of Prepare
	ids   []uint32
	ends  []int // of the messages in text; none is one message
	talk  []openai.Message

	reading *h1.Readers // nil where Go's poller reads

	bodies  sync.Pool // *[]byte
	readers sync.Pool // *answer
	room    *openai.Room

	odd    oddities
	words  serverWords
	probed Probed
	wrong  []result.Result // of probes, the first for each contradiction
}

// connectTimeout is that of options which have none.
const connectTimeout = 10 * time.Second

// check refuses options that mean nothing, or cannot be used together.
func (o *Options) check() error {
	ids := o.API == result.APICompletions || o.API == result.APIEmbeddings || o.API == result.APIAuto
	switch {
	case apiPaths[o.API] == "" && o.API != result.APIAuto:
		return fmt.Errorf("client: the API is %s, %s, %s, %s, %s or %s", result.APIChat, result.APICompletions,
			result.APIResponses, result.APIMessages, result.APIEmbeddings, result.APIAuto)
	case o.Balance != RoundRobin && o.Balance != BySession:
		return fmt.Errorf("client: requests are balanced by %s or %s", RoundRobin, BySession)
	case o.TokenIDs && !ids:
		return fmt.Errorf("client: token ids can be sent to the %s and %s APIs only", result.APICompletions,
			result.APIEmbeddings)
	case o.Timeout < 0 || o.ConnectTimeout < 0 || o.FirstTokenTimeout < 0 || o.IdleTimeout < 0 || o.Backoff < 0:
		return errors.New("client: a timeout cannot be negative")
	case o.Retries < 0:
		return errors.New("client: a number of retries cannot be negative")
	case o.RetryOther && (o.Retries == 0 || len(o.Also) == 0):
		return errors.New("client: retries at another server need several servers and a number of retries")
	case len(o.RecordHeaders) > result.MaxRecordHeaders:
		return fmt.Errorf("client: at most %d response headers can be recorded", result.MaxRecordHeaders)
	}
	names := o.RecordHeaders
	if o.AffinityHeader != "" {
		names = append(names[:len(names):len(names)], o.AffinityHeader)
	}
	for _, name := range names {
		if !validHeader(name, "") {
			return errors.New("client: a header's name may only have letters, digits and hyphens")
		}
	}
	for name, values := range o.Header {
		for _, value := range values {
			if !validHeader(name, value) {
				return errors.New("client: a header that HTTP does not allow: in the name only letters, digits and " +
					"hyphens, in the value no line ends")
			}
		}
	}
	return nil
}

// targets reads the servers' URLs.
func (o *Options) targets() ([]target, error) {
	var out []target
	for i, s := range append([]string{o.URL}, o.Also...) {
		t, err := parseTarget(s, i)
		if err != nil {
			return nil, err
		}
		t.setRoot(t.root)
		out = append(out, t)
	}
	return out, nil
}
