package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrTooLarge says that a request body was longer than the limit (HTTP 413).
var ErrTooLarge = errors.New("request body is too large")

// A badRequest says why [DecodeRequest] refused a body (HTTP 400). It names the field
// and never quotes a value.
type badRequest struct {
	Param  string // the field at fault as a path, such as messages[2].content; "" for the body as a whole
	Offset int64  // bytes read when the fault was found
	Reason string
}

// Error names the field, the byte and the reason.
func (e *badRequest) Error() string {
	if e.Param == "" {
		return fmt.Sprintf("request body: byte %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("request body: byte %d: %s: %s", e.Offset, e.Param, e.Reason)
}

// DecodeRequest reads the body of a chat completion (which has messages) or of a text
// completion (which has a prompt). Content may be a string, null, or a list of parts of
// type text, which are joined, and of a chat image_url; a prompt may be a string, a list of one string, or a
// list of token ids. max_completion_tokens stands for max_tokens. Fields that Request
// does not name are kept in Extra; of a repeated field the last one counts.
//
// The error is [ErrTooLarge] for more than limit bytes, a [*badRequest], or the
// reader's own.
//
// The body is checked by encoding/json and then walked once, which for a prompt of
// 500 KB costs a third of what decoding into nested raw messages does.
func DecodeRequest(src io.Reader, limit int64) (*Request, error) {
	return decodeRequest(src, limit, Completion)
}

// DecodeResponse reads the body of a request of the Responses API, as [DecodeRequest]
// does: input may be a string, which becomes a message of the user, or a list of
// messages; instructions become a message of the system before them.
func DecodeResponse(src io.Reader, limit int64) (*Request, error) {
	return decodeRequest(src, limit, Response)
}

// DecodeEmbedding reads the body of a request for one embedding, as [DecodeRequest]
// does: input may be what a prompt may be, or a list of one list of token ids.
func DecodeEmbedding(src io.Reader, limit int64) (*Request, error) {
	return decodeRequest(src, limit, Embedding)
}

// DecodeMessage reads the body of a request of the Messages API, as [DecodeRequest] does:
// system, a string or a list of parts, becomes a message of the system before the others.
func DecodeMessage(src io.Reader, limit int64) (*Request, error) {
	return decodeRequest(src, limit, MessageKind)
}

func decodeRequest(src io.Reader, limit int64, kind Kind) (*Request, error) {
	body, err := io.ReadAll(io.LimitReader(src, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading the request body: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, ErrTooLarge
	}
	if !json.Valid(body) {
		bad := &badRequest{Reason: "not valid JSON"} // the error of encoding/json quotes its input
		var whole json.RawMessage
		if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &whole)); ok {
			bad.Offset = syntax.Offset
		}
		return nil, bad
	}
	d := decoder{cursor: cursor{b: body}, req: Request{Kind: kind}}
	if d.peek() != '{' {
		return nil, &badRequest{Reason: "must be a JSON object"}
	}
	d.request()
	if d.err == nil {
		d.i = len(body)
		d.complete()
	}
	if d.err != nil {
		return nil, d.err
	}
	if d.req.Extra, err = newExtra(d.others); err != nil {
		return nil, err
	}
	return &d.req, nil
}

// A decoder walks over a body that is known to be valid JSON. The first error stays.
type decoder struct {
	cursor
	req          Request
	hasPrompt    bool   // or an input
	instructions []byte // of a response, or the system's of a message
	others       map[string]json.RawMessage
	err          error
}

func (d *decoder) refuse(param, reason string) {
	if d.err == nil {
		d.err = &badRequest{Param: param, Offset: int64(d.i), Reason: reason}
	}
}

func (d *decoder) request() {
	d.open('{')
	for first := true; d.more('}', first); first = false {
		name := string(d.key())
		if d.peek() == 'n' { // null is as good as absent
			d.skip()
			continue
		}
		switch name {
		case "model":
			d.req.Model = string(d.text(name))
		case "messages", "prompt", "input", "instructions", "system":
			d.asked(name)
		case "stream":
			d.req.Stream = d.boolean(name)
		case "stream_options":
			d.streamOptions()
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			d.req.MaxTokens = d.natural(name)
		case "min_tokens":
			d.req.MinTokens = d.natural(name)
		case "ignore_eos":
			d.req.IgnoreEOS = d.boolean(name)
		case "temperature":
			f, err := strconv.ParseFloat(string(d.value()), 64)
			if err != nil {
				d.refuse(name, "must be a number")
			}
			d.req.Temperature = &f
		case "seed":
			n, err := strconv.ParseInt(string(d.value()), 10, 64)
			if err != nil {
				d.refuse(name, "must be a whole number of at most 64 bits")
			}
			d.req.Seed = &n
		default:
			d.other(name)
		}
	}
}

// asked reads the member that holds what is asked, or keeps it as a further field where
// it means nothing to this kind of request.
func (d *decoder) asked(name string) {
	switch {
	case name == "messages" && (d.req.Kind == Completion || d.req.Kind == MessageKind):
		d.messages(name)
	case name == "prompt" && d.req.Kind == Completion:
		d.prompt(name)
	case name == "input" && d.req.Kind == Embedding:
		d.prompt(name)
	case name == "input" && d.req.Kind == Response:
		d.hasPrompt = true
		if d.peek() != '"' {
			d.messages("input")
			return
		}
		d.req.Messages = []Message{{Role: "user", Content: d.text("input")}}
	case name == "instructions" && d.req.Kind == Response:
		d.instructions = d.text(name)
	case name == "system" && d.req.Kind == MessageKind:
		d.instructions, _ = d.content(name)
	default:
		d.other(name)
	}
}

// complete checks that something was asked, once all of the body was read.
func (d *decoder) complete() {
	switch {
	case d.req.Kind == Completion && (d.req.Messages != nil) == d.hasPrompt:
		d.refuse("", "must have either messages or a prompt")
	case d.req.Kind == MessageKind && d.req.Messages == nil:
		d.refuse("", "must have messages")
	case d.req.Kind == MessageKind && d.req.MaxTokens == nil:
		d.refuse("", "must have max_tokens")
	case (d.req.Kind == Response || d.req.Kind == Embedding) && !d.hasPrompt:
		d.refuse("", "must have an input")
	}
	if d.instructions != nil {
		d.req.Messages = append([]Message{{Role: "system", Content: d.instructions}}, d.req.Messages...)
	}
}

// other keeps a field that Request does not name. Its name is as encoding/json reads it, so that it
// stands at the same place among the others when it is written again.
func (d *decoder) other(name string) {
	if d.others == nil {
		d.others = make(map[string]json.RawMessage)
	}
	d.others[strings.ToValidUTF8(name, "\ufffd")] = d.value()
}

// text reads a string, without a copy where it holds no escape.
func (d *decoder) text(param string) []byte {
	if d.peek() != '"' {
		d.refuse(param, "must be a string")
		d.skip()
		return nil
	}
	s := d.str()
	if !s.escaped && utf8.Valid(s.raw) {
		return s.raw
	}
	return appendUnquoted(make([]byte, 0, len(s.raw)), s)
}

func (d *decoder) boolean(param string) bool {
	switch string(d.value()) {
	case "true":
		return true
	case "false":
		return false
	}
	d.refuse(param, "must be true or false")
	return false
}

func (d *decoder) natural(param string) *int {
	n, err := strconv.Atoi(string(d.value()))
	if err != nil || n < 0 {
		d.refuse(param, "must be a whole number, not negative")
	}
	return &n
}

func (d *decoder) streamOptions() {
	if d.peek() != '{' {
		d.refuse("stream_options", "must be an object")
	}
	if !d.open('{') {
		return
	}
	for first := true; d.more('}', first); first = false {
		switch name := string(d.key()); {
		case name == "include_usage" && d.peek() != 'n':
			d.req.IncludeUsage = d.boolean("stream_options." + name)
		case name == "continuous_usage_stats" && d.peek() != 'n':
			d.req.ContinuousUsage = d.boolean("stream_options." + name)
		default:
			d.skip()
		}
	}
}

func (d *decoder) messages(param string) {
	if d.peek() != '[' {
		d.refuse(param, "must be a list")
	}
	if !d.open('[') {
		return
	}
	d.req.Messages = []Message{}
	for first := true; d.more(']', first); first = false {
		path := param + "[" + strconv.Itoa(len(d.req.Messages)) + "]"
		if d.peek() != '{' {
			d.refuse(path, "must be an object")
		}
		var m Message
		if d.open('{') {
			for first := true; d.more('}', first); first = false {
				switch string(d.key()) {
				case "role":
					m.Role = string(d.text(path + ".role"))
				case "content":
					m.Content, m.Images = d.content(path + ".content")
				default:
					d.skip()
				}
			}
			if m.Role == "" {
				d.refuse(path+".role", "is missing")
			}
		}
		d.req.Messages = append(d.req.Messages, m)
	}
	if len(d.req.Messages) == 0 {
		d.refuse(param, "must not be empty")
	}
}

// content reads what a message says: its text, and the URLs of its images.
func (d *decoder) content(path string) (text []byte, images [][]byte) {
	switch d.peek() {
	case '"':
		return d.text(path), nil
	case 'n':
		d.skip()
		return nil, nil
	case '[':
		d.i++
	default:
		d.refuse(path, "must be a string or a list of text parts")
		d.skip()
		return nil, nil
	}
	text = []byte{}
	n := 0
	for first := true; d.more(']', first); first = false {
		more, image := d.part(path + "[" + strconv.Itoa(n) + "]")
		text = append(text, more...)
		if image != nil {
			images = append(images, image)
		}
		n++
	}
	return text, images
}

func (d *decoder) part(path string) (text, image []byte) {
	if d.peek() != '{' {
		d.refuse(path, "must be an object")
	}
	if !d.open('{') {
		return nil, nil
	}
	kind := ""
	for first := true; d.more('}', first); first = false {
		switch string(d.key()) {
		case "type":
			kind = string(d.text(path + ".type"))
		case "text":
			text = d.text(path + ".text")
		case "image_url":
			image = d.imageURL(path + ".image_url")
		default:
			d.skip()
		}
	}
	switch {
	case d.req.Kind == Completion && kind == "image_url":
		if image == nil {
			d.refuse(path+".image_url", "is missing")
		}
		return nil, image
	case kind == "text", d.req.Kind == Response && (kind == "input_text" || kind == "output_text"):
	case d.req.Kind == Completion:
		d.refuse(path+".type", "only parts of type text and image_url are supported")
	default:
		d.refuse(path+".type", "only parts of type text are supported")
	}
	return text, nil
}

// imageURL reads {"url":…}. Other shapes, as other APIs have them, have none.
func (d *decoder) imageURL(path string) (url []byte) {
	if d.peek() != '{' {
		d.skip()
		return nil
	}
	d.open('{')
	for first := true; d.more('}', first); first = false {
		if string(d.key()) == "url" {
			url = d.text(path + ".url")
		} else {
			d.skip()
		}
	}
	return url
}

func (d *decoder) prompt(param string) {
	d.hasPrompt = true
	d.req.Prompt, d.req.PromptIDs = nil, nil
	switch d.peek() {
	case '"':
		d.req.Prompt = d.text(param)
		return
	case '[':
		d.i++
	default:
		d.refuse(param, "must be a string, a list of one string, or a list of token ids")
		d.skip()
		return
	}
	n := 0
	for first := true; d.more(']', first); first = false {
		switch {
		case d.peek() == '"' && n == 0:
			d.req.Prompt = d.text(param + "[0]")
		case d.peek() == '"' || d.req.Prompt != nil:
			d.refuse(param, "only one prompt in a request is supported")
			d.skip()
		case d.peek() == '[' && n == 0 && param == "input":
			d.prompt(param + "[0]")
		default:
			id, ok := tokenID(d.value())
			if !ok {
				d.refuse(param+"["+strconv.Itoa(n)+"]", "must be a token id")
			}
			d.req.PromptIDs = append(d.req.PromptIDs, id)
		}
		n++
	}
	if n == 0 {
		d.refuse(param, "must not be empty")
	}
}

// tokenID reads a number of 32 bits. Prompts have a hundred thousand of them, so that
// strconv's copies and errors would be felt.
func tokenID(raw []byte) (uint32, bool) {
	if len(raw) == 0 || len(raw) > 10 {
		return 0, false
	}
	var id uint64
	for _, ch := range raw {
		if ch < '0' || ch > '9' {
			return 0, false
		}
		id = id*10 + uint64(ch-'0')
	}
	return uint32(id), id <= math.MaxUint32
}
