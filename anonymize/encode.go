package anonymize

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"reprise/trace"
	"reprise/trace/block"
)

// An encoded entry is a row whose block ids are still keyed hashes and whose
// names are still the source's. It holds no text.
type encoded struct {
	row         trace.Request // ArrivalNS is Unix time
	user        string
	session     string
	salt        string
	blocks, out []block.ID
	text        bool
	sourceInput *int32 // as the source counted, when the text was counted too
}

// An encoder turns entries into rows. Each worker has its own.
type encoder struct {
	p      *Policy
	hasher *block.Hasher // nil without a tokenizer
	cutter *block.Cutter
	memo   []content // the messages of the entry before, and its reply
}

// content is a tokenised text. The turns of one conversation follow each other
// and share their Texts, so that each is tokenised once.
type content struct {
	text   trace.Text
	tokens []uint32
}

func newEncoder(p *Policy, key block.Key) (*encoder, error) {
	e := &encoder{p: p}
	if p.Tokenizer == nil {
		return e, nil
	}
	var err error
	e.hasher, err = block.NewHasher(key, p.Tokenizer.Name(), p.blockSize())
	return e, err
}

var (
	errNoTime   = errors.New("it has no time of arrival, and others need one: give the arrivals of a source without times")
	errFarTime  = errors.New("its time is outside the years 1970 to 2200")
	errNoLength = errors.New("it has neither text nor token counts")
	errNoTok    = errors.New("it has text, and no tokenizer was chosen")
	errTwoCuts  = errors.New("it has both text and block ids of the source's own")
)

// encode turns one entry into a row.
func (e *encoder) encode(en *trace.Entry) (encoded, error) {
	x := encoded{user: en.User.Reveal(), session: en.Session.Reveal(), salt: en.Salt.Reveal()}
	switch year := en.Time.UTC().Year(); {
	case en.Time.IsZero():
		return x, errNoTime
	case year < 1970 || year > 2200:
		return x, errFarTime
	}
	x.row = trace.Request{
		ArrivalNS: en.Time.UnixNano(), Turn: en.Turn, Parents: en.Parents,
		ThinkNS: nanoseconds(en.Think), ToolNS: nanoseconds(en.Tool),
		Model: en.Model.Reveal(), Adapter: en.Adapter.Reveal(),
		Class: optional(en.Class), Replica: optional(en.Replica),
		Kind: trace.ClosedKind(en.Kind), Status: trace.ClosedStatus(en.Status), FinishReason: trace.ClosedFinish(en.FinishReason),
		ReasoningTokens: en.Reasoning, CachedTokens: en.Cached, ImageTokens: en.ImageTokens, Images: en.Images,
		MaxTokens: en.MaxTokens, Temperature: en.Temperature, Stream: en.Stream,
		TTFTNS: nanoseconds(en.TTFT), E2ENS: nanoseconds(en.E2E),
	}
	if len(en.Messages) > 0 {
		return x, e.encodeText(en, &x)
	}
	if en.InputTokens == nil {
		return x, errNoLength
	}
	x.row.InputTokens = *en.InputTokens
	if en.OutputTokens != nil {
		x.row.OutputTokens = *en.OutputTokens
	}
	x.blocks = make([]block.ID, len(en.SourceBlocks))
	for i, id := range en.SourceBlocks {
		binary.BigEndian.PutUint64(x.blocks[i][8:], id) // the collector adds the domain
	}
	return x, nil
}

// encodeText counts and cuts the messages and the reply. The count wins over
// the source's for the input, since the blocks must agree with the length; for
// the output the source's count wins, since it has seen what the text does not
// show, such as reasoning.
func (e *encoder) encodeText(en *trace.Entry, x *encoded) error {
	switch {
	case e.hasher == nil:
		return errNoTok
	case len(en.SourceBlocks) > 0:
		return errTwoCuts
	}
	root := e.hasher.Root(x.row.Model, x.row.Adapter, x.salt)
	if e.cutter == nil {
		e.cutter = e.hasher.Cutter(root)
	}
	e.cutter.Reset(root)
	tok, tmpl := e.p.Tokenizer, e.p.Template
	var frame []uint32
	for i, m := range en.Messages {
		e.cutter.Write(tok.Append(frame[:0], tmpl.Header(m.Role.String())))
		e.cutter.Write(e.tokens(i, m.Content))
		e.cutter.Write(tok.Append(frame[:0], tmpl.Footer()))
	}
	e.cutter.Write(tmpl.AppendGeneration(frame[:0], tok))
	x.text, x.sourceInput = true, en.InputTokens
	x.row.InputTokens = int32(e.cutter.Len())
	x.blocks = e.cutter.Append(nil)
	if en.Reply != nil {
		reply := e.tokens(len(en.Messages), *en.Reply)
		e.cutter.Write(reply)
		x.row.OutputTokens = int32(len(reply))
		all := e.cutter.Append(nil)
		x.out = all[block.Full(int(x.row.InputTokens), e.p.blockSize()):]
	}
	if en.OutputTokens != nil {
		x.row.OutputTokens = *en.OutputTokens
	}
	return nil
}

// tokens returns the tokens of the i-th text of a conversation.
func (e *encoder) tokens(i int, t trace.Text) []uint32 {
	if i < len(e.memo) && e.memo[i].text == t {
		return e.memo[i].tokens
	}
	// What follows a changed text belongs to another conversation.
	e.memo = append(e.memo[:min(i, len(e.memo))], content{t, e.p.Tokenizer.Append(nil, t.Reveal())})
	return e.memo[len(e.memo)-1].tokens
}

func nanoseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return trace.Ptr(int64(*d))
}

func optional(t trace.Text) *string {
	if t == (trace.Text{}) {
		return nil
	}
	return trace.Ptr(t.Reveal())
}

// entryError says which entry is at fault, without quoting it.
func entryError(n int64, err error) error {
	return fmt.Errorf("request %d of the source: %w", n+1, err)
}
