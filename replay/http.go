package replay

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/replay/internal/h1"
	"reprise/replay/openai"
	"reprise/trace"
)

// Values of [HTTPOptions].API and Connections, as [Run] records them.
const (
	APIChat        = "chat"
	APICompletions = "completions"

	// PerRequest gives each request a connection of its own, which is closed after
	// the answer. It is the default: it loses nothing to servers that promise
	// keep-alive and close (llama-server after every stream), it lets a
	// balancer of connections spread the load, and no request rides on another's
	// congestion window. Connections are dialled ahead of need.
	PerRequest = "per-request"
	// Pooled keeps connections for later requests; pooled:N opens N of them when
	// the first request is prepared. None is used again before the first has
	// outlived its answer for a while, and never with a server that closes them
	// all the same. A request on one that is closed just as it is sent fails as
	// "reset": nothing is ever sent again behind the user's back.
	Pooled = "pooled"
)

// HTTPOptions say where and how an [HTTP] sends.
type HTTPOptions struct {
	URL   string // base of the server, such as http://localhost:8000; /v1 may follow
	API   string // APIChat (also when empty) or APICompletions
	Model string // as the server calls it; when empty, [HTTP.Probe] asks the server

	TokenIDs bool // prompts as token ids, which only APICompletions takes
	// ForceOutput asks for exactly the recorded output length, by ignore_eos and
	// min_tokens, which vLLM, SGLang and llama.cpp know and stricter servers
	// refuse. max_tokens is sent in any case.
	ForceOutput bool
	// ContinuousUsage asks for running usage in every chunk, so that events with
	// several tokens are told apart.
	ContinuousUsage bool
	Extra           openai.Extra // further fields of every request body

	Header      http.Header   // further headers; Host is honoured
	APIKey      string        // sent as a bearer token
	Connections string        // PerRequest (also when empty), Pooled, pooled:N or PerSession
	Timeout     time.Duration // of one request, dialling included; 0 means 10 minutes
	TLS         *tls.Config   // nil for the system's roots

	// Count, when set, counts the tokens of an answer whose server sends no
	// usage. It is called from many goroutines. Setting it makes every stream
	// keep up to 1 MiB of its text.
	Count func(text string) int
	// Replies has every stream keep as much of its text, for [Shot.Reply].
	Replies bool
}

// maxText is how much of an answer is kept for Count and Replies. A longer one
// stays uncounted, and is no reply.
const maxText = 1 << 20

// HTTP is an [Endpoint] that speaks the OpenAI API over HTTP/1.1: a streamed
// chat or text completion for every row. It follows no redirect and repeats no
// request. It sends on connections of its own, which it dials ahead of need and
// looks after; where the environment names a proxy, net/http sends.
//
// Sent is taken at the entry to the write of the request, whose head and body go
// out at once. A request that finds no connection ready dials; that stands between
// released and sent, so that TTFT does not count it and every latency from the due
// time does. The alternative, to count from the dial, would charge the engine for
// the network's handshake.
//
// Prepare may be called by one goroutine at a time, Fire by any number.
type HTTP struct {
	opt       HTTPOptions
	url       *url.URL // of the API
	models    *url.URL
	host      string
	header    http.Header
	transport *http.Transport
	exchanger exchanger
	wire      *wire  // the exchanger, unless net/http sends
	room      []byte // left in front of each body
	model     string
	overhead  int

	text []byte // scratch of Prepare
	ids  []uint32
	ends []int // of the messages in text; none is one message
	talk []openai.Message

	bodies  sync.Pool // *[]byte
	readers sync.Pool // *answer

	odd oddities
}

// NewHTTP checks the options and makes an endpoint. It connects to nothing.
func NewHTTP(o HTTPOptions) (*HTTP, error) {
	if o.API == "" {
		o.API = APIChat
	}
	if o.Connections == "" {
		o.Connections = PerRequest
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	switch {
	case o.API != APIChat && o.API != APICompletions:
		return nil, fmt.Errorf("replay: the API is %s or %s", APIChat, APICompletions)
	case o.TokenIDs && o.API != APICompletions:
		return nil, fmt.Errorf("replay: token ids can be sent to the %s API only", APICompletions)
	case o.Timeout < 0:
		return nil, errors.New("replay: a timeout cannot be negative")
	}
	base, err := baseURL(o.URL)
	if err != nil {
		return nil, err
	}
	h := &HTTP{opt: o, model: o.Model, host: base.Host, models: below(base, "/v1/models"), url: below(base, openai.ChatPath)}
	if o.API == APICompletions {
		h.url = below(base, openai.CompletionsPath)
	}
	h.setHeader()
	h.transport = transport(o)
	if err := h.connect(); err != nil {
		return nil, err
	}
	h.bodies.New = func() any { return new([]byte) }
	h.readers.New = func() any { return newAnswer(o.Count != nil || o.Replies) }
	return h, nil
}

// baseURL parses the base and drops a /v1 at its end. Its errors do not quote:
// a URL may hold a password.
func baseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("replay: the server's URL must be like http://localhost:8000")
	}
	if u.User != nil {
		return nil, errors.New("replay: the server's URL must not hold a password: use a header from the environment or a file")
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1"), ""
	return u, nil
}

// below keeps the base's query, where some gateways want a version.
func below(base *url.URL, path string) *url.URL {
	u := *base
	u.Path += path
	return &u
}

func (h *HTTP) setHeader() {
	h.header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"reprise"},
	}
	if h.opt.APIKey != "" {
		h.header.Set("Authorization", "Bearer "+h.opt.APIKey)
	}
	for name, values := range h.opt.Header {
		if name = http.CanonicalHeaderKey(name); name == "Host" && len(values) > 0 {
			h.host = values[0]
			continue
		}
		h.header[name] = values
	}
}

func transport(o HTTPOptions) *http.Transport {
	one := new(http.Protocols)
	one.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext, // with TCP_NODELAY, Go's default
		TLSClientConfig:     o.TLS,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableKeepAlives:   !strings.HasPrefix(o.Connections, Pooled),
		DisableCompression:  true, // a compressor holds events back
		MaxIdleConnsPerHost: 1 << 16,
		IdleConnTimeout:     90 * time.Second,
		Protocols:           one,
		// Headers and a prompt of some thousand tokens in one write.
		WriteBufferSize: 16 << 10,
	}
}

// Describe notes in run how the endpoint sends.
func (h *HTTP) Describe(run *Run) {
	run.API, run.Model, run.Connections, run.Overhead = h.opt.API, h.model, h.opt.Connections, h.overhead
	if run.Prompts = "text"; h.opt.TokenIDs {
		run.Prompts = "ids"
	}
}

// Close drops the idle connections.
func (h *HTTP) Close() {
	h.transport.CloseIdleConnections()
	if h.wire != nil {
		h.wire.client.Close()
	}
}

// An httpCall is an encoded request body, which begins at an offset of its buffer.
type httpCall struct {
	body    *[]byte
	at      int
	session int64
}

// Size implements [Call].
func (c *httpCall) Size() int { return cap(*c.body) }

// Prepare implements [Endpoint]: it makes the prompt and encodes the request.
//
// Every request is streamed, also one that was not in the source, since the
// latencies are those of its tokens. A row without output asks for one token,
// the least that servers take.
func (h *HTTP) Prepare(row *trace.Request, p Prompter) (Call, error) {
	length := int(max(wantedLength(row), 1))
	req := openai.Request{MaxTokens: &length, Temperature: widened(row.Temperature)}
	if h.opt.ForceOutput {
		req.MinTokens, req.IgnoreEOS = &length, true
	}
	if err := h.prompt(row, p); err != nil {
		return nil, err
	}
	c := h.encode(&req)
	if row.Session != nil {
		c.session = *row.Session
	}
	if h.wire != nil {
		h.wire.client.Expect()
	}
	return c, nil
}

// prompt makes the prompt in the scratch buffers.
func (h *HTTP) prompt(row *trace.Request, p Prompter) (err error) {
	h.ends = h.ends[:0]
	talk, several := p.(Conversation)
	switch {
	case h.opt.TokenIDs:
		h.ids, err = p.Tokens(row, h.ids[:0])
	case several && h.opt.API == APIChat:
		h.text, h.ends, err = talk.Messages(row, h.text[:0], h.ends)
	default:
		h.text, err = p.Prompt(row, h.text[:0])
	}
	return err
}

// wantedLength is the output to ask for: that recorded. A request that its user
// cancelled had asked for more than it got.
func wantedLength(row *trace.Request) int32 {
	if row.Status == trace.StatusCancelled && row.MaxTokens != nil {
		return max(row.OutputTokens, *row.MaxTokens)
	}
	return row.OutputTokens
}

// widened keeps 0.7 what it is: converted as a number, it would be sent as
// 0.699999988079071.
func widened(f *float32) *float64 {
	if f == nil {
		return nil
	}
	wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(*f), 'g', -1, 32), 64)
	if err != nil || math.IsNaN(wide) || math.IsInf(wide, 0) {
		return nil
	}
	return &wide
}

// encode completes a request by the prompt in the scratch buffers.
func (h *HTTP) encode(req *openai.Request) *httpCall {
	req.Model, req.Extra = h.model, h.opt.Extra
	req.Stream, req.IncludeUsage, req.ContinuousUsage = true, true, h.opt.ContinuousUsage
	switch {
	case h.opt.API == APIChat:
		req.Messages = h.messages()
	case h.opt.TokenIDs:
		req.PromptIDs = h.ids
	default:
		req.Prompt = h.text
	}
	buf := h.bodies.Get().(*[]byte)
	*buf = openai.AppendRequest(append((*buf)[:0], h.room...), req)
	return &httpCall{body: buf, at: len(h.room), session: h1.NoSession}
}

// messages cuts the text into those of user and assistant in turn.
func (h *HTTP) messages() []openai.Message {
	h.talk = h.talk[:0]
	from, roles := 0, [2]string{"user", "assistant"}
	for i, end := range h.ends {
		h.talk = append(h.talk, openai.Message{Role: roles[i%2], Content: h.text[from:end:end]})
		from = end
	}
	if len(h.ends) == 0 {
		h.talk = append(h.talk, openai.Message{Role: "user", Content: h.text})
	}
	return h.talk
}
