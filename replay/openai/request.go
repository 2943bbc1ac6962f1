package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// The paths of the endpoints, below a server's base URL.
const (
	ChatPath        = "/v1/chat/completions"
	CompletionsPath = "/v1/completions"
	ResponsesPath   = "/v1/responses"
	EmbeddingsPath  = "/v1/embeddings"
	MessagesPath    = "/v1/messages" // of Anthropic
)

// A Kind tells requests apart that have the same fields.
type Kind uint8

const (
	// Completion is a chat when Messages is not nil, and a text completion otherwise.
	Completion Kind = iota
	// Response is a request of the Responses API: its input is Messages, or Prompt. It
	// has max_output_tokens for MaxTokens, neither stream_options nor min_tokens, which
	// no server knows there, and store is false: what a load test asks need not stay.
	Response
	// Embedding asks for the embedding of Prompt or PromptIDs, and has nothing else of
	// a Request than Model and Extra.
	Embedding
	// MessageKind is a request of Anthropic's Messages API: its input is Messages. It has
	// no stream_options, min_tokens and seed.
	MessageKind
)

// A Message is one message of a chat. Content is plain UTF-8 text; nil is written as
// null, which an assistant's message that only called tools has.
type Message struct {
	Role    string
	Content []byte

	// Images, of a chat, are the URLs of images that follow the text, such as
	// data:image/png;base64,…: the content is then written as a list of parts.
	Images [][]byte
}

// A Request is the body of a chat completion or of a text completion, as Kind says, of
// the Responses or the Messages API, or of a request for embeddings. A nil pointer leaves its field out,
// so that the server's own default holds.
//
// Texts are byte slices because prompts are made in buffers that are used again. What
// [DecodeRequest] returns shares memory with the body it read.
type Request struct {
	Kind     Kind
	Model    string
	Messages []Message

	Prompt    []byte   // text of a completion, when PromptIDs is nil
	PromptIDs []uint32 // token ids of a completion

	// Input, when not nil, is written in place of all of these: members of the body
	// as JSON, without the braces, such as "messages":[…],"tools":[…]. An Extra must
	// not have them too.
	Input []byte

	Stream          bool
	IncludeUsage    bool // stream_options.include_usage; written only when Stream is set
	ContinuousUsage bool // stream_options.continuous_usage_stats: running usage in every chunk (vLLM, SGLang)

	MaxTokens *int // tokens to generate at most
	// MaxTokens of a Completion is written as max_completion_tokens, which newer models of OpenAI want
	CompletionTokens bool
	MinTokens        *int     // tokens before a stop is honoured (vLLM, SGLang)
	IgnoreEOS        bool     // generate up to MaxTokens whatever the model says (vLLM, SGLang, llama.cpp)
	Temperature      *float64 // NaN and infinities, which JSON lacks, are written as null
	Seed             *int64

	Extra Extra // further fields, merged at top level
}

// reservedFields are the fields that Extra may not set: the measurement depends on them.
var reservedFields = []string{"messages", "prompt", "input", "stream", "stream_options"}

// Extra holds fields of a request body that Request does not name, such as cache_salt,
// priority or top_p. A field that Request does name, as temperature, is replaced by the
// one in Extra; messages, prompt, input, stream and stream_options cannot be. The zero value
// is empty, and an Extra may be shared between requests and goroutines.
type Extra struct {
	fields  map[string]json.RawMessage
	encoded []byte // the members without the braces, in the order of their names
}

// ParseExtra reads the extra fields from a JSON object. Its errors name the field at
// fault, never a value.
func ParseExtra(object []byte) (Extra, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return Extra{}, fmt.Errorf("extra request fields: not valid JSON at byte %d", syntax.Offset)
		}
		return Extra{}, errors.New("extra request fields: must be a JSON object")
	}
	for _, name := range reservedFields {
		if _, ok := fields[name]; ok {
			return Extra{}, fmt.Errorf("extra request fields: %q is set by the replay itself", name)
		}
	}
	return newExtra(fields)
}

func newExtra(fields map[string]json.RawMessage) (Extra, error) {
	if len(fields) == 0 {
		return Extra{}, nil
	}
	var buf bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] == nil { // it is left out
			continue
		}
		if buf.Len() > 0 {
			buf.WriteByte(',')
		}
		buf.Write(appendString(nil, name))
		buf.WriteByte(':')
		if err := json.Compact(&buf, fields[name]); err != nil {
			return Extra{}, errors.New("extra request fields: a value is not valid JSON")
		}
	}
	return Extra{fields: fields, encoded: buf.Bytes()}, nil
}

// With returns e with the fields of more, which replace those of the same name.
func (e Extra) With(more Extra) Extra {
	switch {
	case len(more.fields) == 0:
		return e
	case len(e.fields) == 0:
		return more
	}
	fields := maps.Clone(e.fields)
	maps.Copy(fields, more.fields)
	both, _ := newExtra(fields) // of values that were valid
	return both
}

// Get returns the value of a field as JSON, and whether the field is there.
func (e Extra) Get(name string) (json.RawMessage, bool) {
	v, ok := e.fields[name]
	return v, ok && v != nil
}

// Forbids says that a field which is true or false is false or null.
func (e Extra) Forbids(name string) bool {
	v, _ := e.Get(name)
	return string(v) == "false" || string(v) == "null"
}

// LeftOut returns e with a field that is left out of the request.
func (e Extra) LeftOut(name string) Extra {
	return e.With(Extra{fields: map[string]json.RawMessage{name: nil}})
}

// Renamed returns e with a field under another name, unless it has one of that name.
func (e Extra) Renamed(from, to string) Extra {
	v, ok := e.Get(from)
	if _, taken := e.fields[to]; !ok || taken {
		return e
	}
	return e.With(Extra{fields: map[string]json.RawMessage{from: nil, to: v}})
}

// AppendRequest appends the JSON of r to dst. It equals what encoding/json would make
// of the same fields, apart from the order of fields and the escaping of '<', '>', '&'.
func AppendRequest(dst []byte, r *Request) []byte {
	// Enough for a request whose text holds few escapes, so that a large prompt does not
	// grow its buffer step by step.
	size := 256 + len(r.Model) + len(r.Extra.encoded) + len(r.Prompt) + len(r.Prompt)/32 +
		7*len(r.PromptIDs) + len(r.Input)
	for _, m := range r.Messages {
		size += 32 + len(m.Role) + len(m.Content) + len(m.Content)/32
		for _, url := range m.Images {
			size += 64 + len(url)
		}
	}
	dst = slices.Grow(dst, size)
	w := object{dst: append(dst, '{'), extra: r.Extra}
	if w.field("model") {
		w.dst = appendString(w.dst, r.Model)
	}
	w.prompt(r)
	if r.Kind != Embedding {
		w.generation(r)
	}
	if len(r.Extra.encoded) > 0 {
		w.comma()
		w.dst = append(w.dst, r.Extra.encoded...)
	}
	return append(w.dst, '}')
}

// generation says how to generate.
func (w *object) generation(r *Request) {
	length := "max_tokens"
	switch {
	case r.CompletionTokens && r.Kind == Completion:
		length = "max_completion_tokens"
	case r.Kind == Response:
		length = "max_output_tokens"
		if w.field("store") {
			w.dst = append(w.dst, "false"...)
		}
	}
	if r.Stream {
		w.field("stream")
		w.dst = append(w.dst, "true"...)
		if r.Kind == Completion {
			w.streamOptions(r)
		}
	}
	if r.MaxTokens != nil && w.field(length) {
		w.dst = strconv.AppendInt(w.dst, int64(*r.MaxTokens), 10)
	}
	if r.MinTokens != nil && r.Kind == Completion && w.field("min_tokens") {
		w.dst = strconv.AppendInt(w.dst, int64(*r.MinTokens), 10)
	}
	if r.IgnoreEOS && w.field("ignore_eos") {
		w.dst = append(w.dst, "true"...)
	}
	if r.Temperature != nil && w.field("temperature") {
		if f := *r.Temperature; math.IsNaN(f) || math.IsInf(f, 0) {
			w.dst = append(w.dst, "null"...)
		} else { // the shortest number that reads back as f
			w.dst = strconv.AppendFloat(w.dst, f, 'g', -1, 64)
		}
	}
	if r.Seed != nil && r.Kind != MessageKind && w.field("seed") {
		w.dst = strconv.AppendInt(w.dst, *r.Seed, 10)
	}
}

// An object appends the members of a JSON object.
type object struct {
	dst   []byte
	extra Extra
}

func (w *object) comma() {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
}

// field begins a member, unless an extra field takes its place.
func (w *object) field(name string) bool {
	if _, replaced := w.extra.fields[name]; replaced {
		return false
	}
	w.comma()
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, '"', ':')
	return true
}

func (w *object) prompt(r *Request) {
	text, messages := "prompt", "messages"
	if r.Kind == Response || r.Kind == Embedding {
		text, messages = "input", "input"
	}
	switch {
	case r.Input != nil:
		w.comma()
		w.dst = append(w.dst, r.Input...)
	case r.Messages != nil:
		w.field(messages)
		w.dst = append(w.dst, '[')
		for i, m := range r.Messages {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = appendString(append(w.dst, `{"role":`...), m.Role)
			w.dst = append(w.dst, `,"content":`...)
			if len(m.Images) > 0 {
				w.dst = appendText(append(w.dst, `[{"type":"text","text":`...), m.Content)
				for _, url := range m.Images {
					w.dst = append(appendText(append(w.dst, `},{"type":"image_url","image_url":{"url":`...), url), '}')
				}
				w.dst = append(w.dst, "}]}"...)
				continue
			}
			if m.Content == nil {
				w.dst = append(w.dst, "null}"...)
				continue
			}
			w.dst = append(appendText(w.dst, m.Content), '}')
		}
		w.dst = append(w.dst, ']')
	case r.PromptIDs != nil:
		w.field(text)
		w.dst = append(w.dst, '[')
		for i, id := range r.PromptIDs {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = strconv.AppendUint(w.dst, uint64(id), 10)
		}
		w.dst = append(w.dst, ']')
	default:
		w.field(text)
		w.dst = appendText(w.dst, r.Prompt)
	}
}

// streamOptions is left out when empty: servers that do not know it refuse it.
func (w *object) streamOptions(r *Request) {
	switch {
	case r.IncludeUsage && r.ContinuousUsage:
		w.dst = append(w.dst, `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`...)
	case r.IncludeUsage:
		w.dst = append(w.dst, `,"stream_options":{"include_usage":true}`...)
	case r.ContinuousUsage:
		w.dst = append(w.dst, `,"stream_options":{"continuous_usage_stats":true}`...)
	}
}
